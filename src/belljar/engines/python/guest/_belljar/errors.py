"""Errors that read as on Linux: this C library numbers them differently, and messages show the number."""

import builtins
import errno
import gc

from _belljar.hostcalls import TO_LINUX


def _text(self):
    number = TO_LINUX.get(self.errno, self.errno)
    if self.filename2 is not None:
        return f"[Errno {number}] {self.strerror}: {self.filename!r} -> {self.filename2!r}"
    if self.filename is not None:
        return f"[Errno {number}] {self.strerror}: {self.filename!r}"
    if self.errno is not None and self.strerror is not None:
        return f"[Errno {number}] {self.strerror}"
    return super(type(self), self).__str__()


def _representation(self):
    values = self.args
    if len(values) >= 2 and values[0] == self.errno:
        values = (TO_LINUX.get(self.errno, self.errno), *values[1:])
    return f"{type(self).__name__}{values!r}"


def _reduce(self):
    return (type(self).__base__, *super(type(self), self).__reduce__()[1:])


def install():
    """Have errors with a number be of a class that shows Linux's. `except` and isinstance see no difference."""
    table = next(
        found
        for found in gc.get_objects()
        if type(found) is dict and found.get(errno.ENOENT) is builtins.FileNotFoundError
    )
    made = {}
    for number in TO_LINUX:
        base = table.get(number, OSError)
        if base not in made:
            made[base] = type(
                base.__name__,
                (base,),
                {
                    "__str__": _text,
                    "__repr__": _representation,
                    "__reduce__": _reduce,
                    "__module__": "builtins",
                    "__doc__": base.__doc__,
                    "__slots__": (),
                },
            )
        table[number] = made[base]
