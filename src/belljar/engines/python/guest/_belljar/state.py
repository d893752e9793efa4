"""An interpreter's variables as bytes, written and read only in here.

Data, functions and classes go by value, modules by name. Variables that share something are one record, so that they
still share it afterwards. All others are records of their own: one that can't be read back costs only itself.
"""

import io
import pickle
import struct
import types
import zlib

import cloudpickle

SIZE = struct.Struct("<I")
NEVER_SHARED = (str, bytes, tuple, frozenset, types.CodeType, types.ModuleType, types.BuiltinFunctionType)
"""Types for which sharing makes no difference: immutable values, and objects written by name."""
REASON_MAX = 200


class TooLarge(Exception):
    pass


class Identities:
    """A set of objects by what they are, not by what they equal."""

    def __init__(self):
        self.kept = {}

    def update(self, values):
        self.kept.update((id(value), value) for value in values)

    def __contains__(self, value):
        return id(value) in self.kept


class Writer(cloudpickle.Pickler):
    """Functions of `__main__` refer to its variables, also to those that are not there yet."""

    def __init__(self, file, session):
        super().__init__(file)
        self.session = session
        self.cells = Identities()

    def reducer_override(self, value):
        kind = type(value)
        if kind is types.FunctionType:
            if _is_host(value):
                return _host_function, (value.host_name,)
            if value.__globals__ is self.session.namespace:
                return self._function(value)
        elif kind is types.CellType and value in self.cells:
            return types.CellType, ()  # filled with its function's state: it may hold the function itself
        return super().reducer_override(value)

    def _function(self, function):
        cells = function.__closure__ or ()
        self.cells.update(cells)
        names = (
            "__name__",
            "__qualname__",
            "__doc__",
            "__module__",
            "__defaults__",
            "__kwdefaults__",
            "__type_params__",
        )
        state = {name: getattr(function, name) for name in names if hasattr(function, name)}
        annotate = getattr(function, "__annotate__", None)
        state["__annotate__" if annotate is not None else "__annotations__"] = annotate or function.__annotations__
        filled = [_contents(name, cell) for name, cell in zip(function.__code__.co_freevars, cells)]
        return (
            _make_function,
            (function.__code__, cells),
            (state, function.__dict__, filled),
            None,
            None,
            _fill_function,
        )


class _Empty:
    """Stands for the contents of a cell that has none."""


def _contents(name, cell):
    try:
        held = cell.cell_contents
    except ValueError:
        return _Empty
    if name == "__classdict__":  # where annotations of a class look first: its own dict, with what only types may hold
        return {key: value for key, value in held.items() if not _is_own(key)}
    return held


class _Current:
    session = None
    """Whose state is being read."""


def _is_host(value):
    return type(value) is types.FunctionType and "host_name" in value.__dict__


def _host_function(name):
    if name not in _Current.session.bound:
        raise LookupError(f"{name}() is not a function of the host any more")
    return _Current.session.function(name)


def _make_function(code, cells):
    return types.FunctionType(code, _Current.session.namespace, code.co_name, None, cells)


def _fill_function(function, state):
    attributes, extra, filled = state
    for name, value in attributes.items():
        setattr(function, name, value)
    function.__dict__.update(extra)
    for cell, value in zip(function.__closure__ or (), filled):
        if value is not _Empty:
            cell.cell_contents = value


class Bounded(io.BytesIO):
    def __init__(self, most):
        super().__init__()
        self.most = most

    def write(self, data):
        if self.tell() + len(data) > self.most:
            raise TooLarge
        return super().write(data)


def save(session, max_bytes, leave_out):
    """The variables as bytes, and the names of those that are not in them, with the reason."""
    left_out = {}
    records = []
    room = max_bytes
    for names, record in _records(session, leave_out, max_bytes, left_out):
        if len(record) <= room:
            room -= len(record)
            for part in (pickle.dumps(names), record):
                records += [SIZE.pack(len(part)), part]
        else:
            why = f"too large: {len(record)} bytes, and there is room for {room} more of {max_bytes}"
            left_out.update(dict.fromkeys(names, why))
    return zlib.compress(b"".join(records), 1), left_out


def _records(session, leave_out, max_bytes, left_out):
    """The names in each record, and the record."""
    alone, owners, groups = {}, {}, {}
    memos = []  # kept: the number of an object is its own only as long as it lives
    for name, value in session.namespace.items():
        if name in leave_out or _is_own(name) or (_is_host(value) and value.host_name == name):
            continue
        out = Bounded(max_bytes)
        writer = Writer(out, session)
        try:
            writer.dump({name: value})
        except Exception as error:
            left_out[name] = _reason(error, max_bytes)
            continue
        alone[name] = out.getvalue()
        group = groups[name] = [name]
        memo = writer.memo.copy()
        memos.append(memo)
        for number, (_, shared) in memo.items():
            if isinstance(shared, NEVER_SHARED) or _is_named(shared, session):
                continue
            other = groups[owners.setdefault(number, name)]
            if other is not group:
                other += group
                for member in group:
                    groups[member] = other
                group = other
    for group in {id(group): group for group in groups.values()}.values():
        if len(group) == 1:
            yield group, alone[group[0]]
            continue
        out = Bounded(max_bytes)
        try:
            Writer(out, session).dump({name: session.namespace[name] for name in group})
        except Exception as error:
            left_out.update(dict.fromkeys(group, _reason(error, max_bytes)))
        else:
            yield group, out.getvalue()


def _is_own(name):
    return name.startswith("__") and name.endswith("__")


def _is_named(value, session):
    """Whether it is written as a name, to be looked up again."""
    if isinstance(value, types.FunctionType):
        return value.__globals__ is not session.namespace
    return isinstance(value, type) and value.__module__ != "__main__"


def _reason(error, max_bytes):
    if isinstance(error, TooLarge):
        return f"too large: more than {max_bytes} bytes"
    if isinstance(error, RecursionError) or "recursion" in str(error):
        return "nested too deeply"
    if isinstance(error, MemoryError):
        return "too large for the memory there is"
    return f"{type(error).__name__}: {error}"[:REASON_MAX]


def load(session, data):
    """Bind the variables; gives the names of those that can't be had back, with the reason."""
    content = memoryview(zlib.decompress(data))
    lost = {}
    _Current.session = session
    try:
        while content:
            names, content = _cut(content)
            record, content = _cut(content)
            names = pickle.loads(names)
            try:
                session.namespace.update(pickle.loads(record))
            except Exception as error:
                lost.update(dict.fromkeys(names, _reason(error, 0)))
    finally:
        _Current.session = None
    return lost


def _cut(content):
    end = SIZE.size + SIZE.unpack_from(content)[0]
    return content[SIZE.size : end], content[end:]
