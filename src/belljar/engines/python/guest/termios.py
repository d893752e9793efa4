"""Terminals' settings, with Linux's numbers."""

import errno as _errno
import os as _os

from _belljar import hostcalls as _hostcalls
from _belljar.termios_names import NUMBERS as _NUMBERS
from _belljar.termios_names import SPEEDS as _SPEEDS

globals().update(_NUMBERS)
_NCCS, _KERNEL_NCCS = 32, 19
_TO_SPEED = {number: speed for speed, number in _SPEEDS.items()}
_ICANON, _VMIN, _VTIME = _NUMBERS["ICANON"], _NUMBERS["VMIN"], _NUMBERS["VTIME"]


class error(Exception):
    __module__ = "termios"


def _fileno(fd):
    return fd if isinstance(fd, int) else fd.fileno()


def _call(name, fd, *arguments):
    try:
        return _hostcalls.call(name, _fileno(fd), *arguments)
    except OSError as problem:
        raise error(problem.errno, problem.strerror) from None


def tcgetattr(fd, /):
    (numbers,) = _call("tcgetattr", fd)
    iflag, oflag, cflag, lflag, ispeed, ospeed, *cc = numbers
    shown = [bytes([value]) for value in cc] + [b"\0"] * (_NCCS - len(cc))
    if not lflag & _ICANON:
        shown[_VMIN], shown[_VTIME] = cc[_VMIN], cc[_VTIME]
    speeds = [_SPEEDS.get(speed, 0) for speed in (ispeed, ospeed)]
    return [iflag, oflag, cflag, lflag, *speeds, shown]


def tcsetattr(fd, when, attributes, /):
    if not isinstance(attributes, list) or len(attributes) != 7:
        raise TypeError("tcsetattr, arg 3: must be 7 element list")
    *flags, ispeed, ospeed, cc = attributes
    if not isinstance(cc, list) or len(cc) != _NCCS:
        raise TypeError(f"tcsetattr: attributes[6] must be {_NCCS} element list")
    numbers = []
    for value in cc:
        if isinstance(value, bytes) and len(value) == 1:
            numbers.append(value[0])
        elif isinstance(value, int):
            numbers.append(value & 0xFF)
        else:
            raise TypeError("tcsetattr: elements of attributes must be characters or integers")
    if ispeed not in _TO_SPEED or ospeed not in _TO_SPEED:
        raise error(_errno.EINVAL, _os.strerror(_errno.EINVAL))
    speeds = [_TO_SPEED[speed] for speed in (ispeed, ospeed)]
    _call("tcsetattr", fd, when, [*(flag & 0xFFFFFFFF for flag in flags), *speeds, *numbers[:_KERNEL_NCCS]])


def tcflush(fd, queue, /):
    _call("tcflush", fd, queue)


def tcdrain(fd, /):
    """Wait until all output was taken: it is as soon as it is written."""
    _call("tcgetattr", fd)


def tcsendbreak(fd, duration, /):
    _call("tcgetattr", fd)


def tcflow(fd, action, /):
    _call("tcgetattr", fd)


def tcgetwinsize(fd, /):
    return tuple(_call("winsize", fd))


def tcsetwinsize(fd, winsize, /):
    rows, columns = winsize
    _call("setwinsize", fd, rows, columns)
