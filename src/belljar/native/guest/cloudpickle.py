"""Functions and classes of a session by value, where the image has no cloudpickle: what `state.py` uses of that."""

import marshal
import pickle
import sys
import types

VERSION = sys.version_info[:2]
_TYPES = {id(kind): name for name, kind in vars(types).items() if isinstance(kind, type)}
"""Types that their own names do not lead to."""
_UNWRITTEN = ("__dict__", "__weakref__", "__abstractmethods__", "_abc_impl")


class Pickler(pickle._Pickler):
    """As pickle's, in Python, where `memo` can be read."""

    def __init__(self, file):
        super().__init__(file, pickle.HIGHEST_PROTOCOL)

    def reducer_override(self, value):
        if isinstance(value, types.ModuleType):
            return _module, (value.__name__,)
        if isinstance(value, types.CodeType):
            return _code, (VERSION, marshal.dumps(value))
        if isinstance(value, types.CellType):
            try:
                return types.CellType, (value.cell_contents,)
            except ValueError:
                return types.CellType, ()
        if isinstance(value, property):
            return property, (value.fget, value.fset, value.fdel, value.__doc__)
        if isinstance(value, (staticmethod, classmethod)):
            return type(value), (value.__func__,)
        if isinstance(value, type) and id(value) in _TYPES:
            return getattr, (types, _TYPES[id(value)])
        if isinstance(value, type) and value.__module__ == "__main__":
            return self._class(value)
        return NotImplemented

    def _class(self, kind):
        body = {name: held for name, held in kind.__dict__.items() if name not in _UNWRITTEN}
        slots = body.get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            body.pop(name, None)
        return _make_class, (type(kind), kind.__name__, kind.__bases__, slots), body, None, None, _fill_class


def _module(name):
    return __import__(name, fromlist=["*"])


def _code(version, data):
    if tuple(version) != VERSION:
        raise ValueError(f"its code is of Python {version[0]}.{version[1]}")
    return marshal.loads(data)


def _make_class(kind, name, bases, slots):
    return kind(name, bases, {"__slots__": slots, "__module__": "__main__"} if slots else {"__module__": "__main__"})


def _fill_class(kind, body):
    for name, held in body.items():
        if name != "__slots__":
            setattr(kind, name, held)
