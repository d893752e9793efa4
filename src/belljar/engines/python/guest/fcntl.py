"""Control of open files: flags, locks of whole files, and the requests that terminals and pipes answer."""

import errno
import operator
import os
import struct

from _belljar import hostcalls

F_DUPFD, F_GETFD, F_SETFD, F_GETFL, F_SETFL, F_GETLK, F_SETLK, F_SETLKW = range(8)
F_DUPFD_CLOEXEC, FD_CLOEXEC = 1030, 1
F_RDLCK, F_WRLCK, F_UNLCK = 0, 1, 2
LOCK_SH, LOCK_EX, LOCK_NB, LOCK_UN = 1, 2, 4, 8

_TIOCGPGRP, _TIOCSPGRP, _TIOCGSID = 0x540F, 0x5410, 0x5429
_TIOCGWINSZ, _TIOCSWINSZ, _FIONREAD, _FIONBIO, _FIONCLEX, _FIOCLEX = 0x5413, 0x5414, 0x541B, 0x5421, 0x5450, 0x5451
_TIOCGPTN, _TIOCSPTLCK = 0x80045430, 0x40045431
_APPEND, _NONBLOCK = 0o2000, 0o4000
"""Linux's flags; those of `os` here are WASI's."""
_ACCESS = (os.O_RDONLY, os.O_WRONLY, os.O_RDWR)


def _descriptor(file):
    fd = file if isinstance(file, int) else file.fileno()
    fd = operator.index(fd)
    if fd < 0:
        raise ValueError(f"file descriptor cannot be a negative integer ({fd})")
    return fd


def fcntl(fd, cmd, arg=0, /):
    fd = _descriptor(fd)
    if cmd in (F_DUPFD, F_DUPFD_CLOEXEC):
        return hostcalls.call("dup", fd, operator.index(arg), int(cmd == F_DUPFD_CLOEXEC))[0]
    flags, cloexec = hostcalls.call("getfl", fd)
    if cmd == F_GETFD:
        return FD_CLOEXEC if cloexec else 0
    if cmd == F_SETFD:
        hostcalls.call("setcloexec", fd, operator.index(arg) & FD_CLOEXEC)
        return 0
    if cmd == F_GETFL:
        found = _ACCESS[min(flags & 3, 2)]
        return found | (os.O_APPEND if flags & _APPEND else 0) | (os.O_NONBLOCK if flags & _NONBLOCK else 0)
    if cmd == F_SETFL:
        arg = operator.index(arg)
        os.set_blocking(fd, not arg & os.O_NONBLOCK)
        if bool(arg & os.O_APPEND) != bool(flags & _APPEND):
            wanted = (_APPEND if arg & os.O_APPEND else 0) | (_NONBLOCK if arg & os.O_NONBLOCK else 0)
            hostcalls.call("setfl", fd, wanted)
        return 0
    raise OSError(errno.EINVAL, os.strerror(errno.EINVAL))


def flock(fd, operation, /):
    hostcalls.call("flock", _descriptor(fd), operator.index(operation))


def lockf(fd, cmd, len=0, start=0, whence=0, /):
    """Lock or unlock a file. It is locked as a whole: there are no locks of ranges of bytes here."""
    if not cmd & (LOCK_SH | LOCK_EX | LOCK_UN):
        raise ValueError("unrecognized lockf argument")
    fd = _descriptor(fd)
    access = hostcalls.call("getfl", fd)[0] & 3
    if (cmd & LOCK_EX and access == 0) or (cmd & LOCK_SH and access == 1):
        raise OSError(errno.EBADF, os.strerror(errno.EBADF))
    hostcalls.call("flock", fd, operator.index(cmd))


def _answered(fd, request, data):
    """The bytes that a request leaves where its argument points."""
    if request == _TIOCGWINSZ:
        return struct.pack("4H", *hostcalls.call("winsize", fd), 0, 0)
    if request == _TIOCSWINSZ:
        hostcalls.call("setwinsize", fd, *struct.unpack("4H", data[:8])[:2])
    elif request in (_FIONREAD, _TIOCGPGRP, _TIOCGSID):
        name = {_FIONREAD: "unread", _TIOCGPGRP: "tcgetpgrp", _TIOCGSID: "tcgetsid"}[request]
        return struct.pack("i", *hostcalls.call(name, fd))
    elif request == _TIOCSPGRP:
        hostcalls.call("tcsetpgrp", fd, *struct.unpack("i", data[:4]))
    elif request == _TIOCGPTN:
        return struct.pack("i", int(hostcalls.call("ptsname", fd)[0].rpartition(b"/")[2]))
    elif request in (_FIOCLEX, _FIONCLEX):
        hostcalls.call("setcloexec", fd, int(request == _FIOCLEX))
    elif request == _FIONBIO:
        os.set_blocking(fd, not any(data[:4]))
    elif request == _TIOCSPTLCK:
        hostcalls.call("ptsname", fd)
    else:
        hostcalls.call("getfl", fd)
        raise OSError(errno.ENOTTY, os.strerror(errno.ENOTTY))
    return b""


def ioctl(fd, request, arg=0, mutate_flag=True, /):
    fd, request = _descriptor(fd), operator.index(request) & 0xFFFFFFFF
    if isinstance(arg, int):
        _answered(fd, request, struct.pack("q", arg))
        return 0
    if isinstance(arg, str):
        arg = arg.encode()
    view = memoryview(arg).cast("B")
    data = bytes(view)
    answer = _answered(fd, request, data)
    if view.readonly or not mutate_flag:
        return (answer + data[len(answer) :])[: len(data)]
    view[: len(answer)] = answer[: len(view)]
    return 0
