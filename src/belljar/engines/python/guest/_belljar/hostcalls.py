"""Host calls: one function that takes bytes and returns bytes, served by the engine process around the guest."""

import errno as _errno
import os
import struct

import _host
from _belljar.protocol import (
    CALLS,
    PROGRAM_CLOSED_SHIFT,
    PROGRAM_SESSION,
    PROGRAM_SITE,
    PROGRAM_TERMINAL,
    decode,
    encode,
)

PARK, EXIT, MARK, COMPARE, IMMORTAL, LAST, PROCESSOR = 1000, 1001, 1002, 1003, 1004, 1005, 1006
_NUMBER = struct.Struct("<H")
_STATUS = struct.Struct("<i")
_PROGRAM = struct.Struct("<iII6q")
"""The answer to PARK: status (run or warm up), argc, flags, and START's numbers; strings follow."""

_CONVERSE = CALLS["converse"].number
_WRITES, _READS, _READ = struct.Struct("<HqI"), struct.Struct("<qq"), struct.Struct("<iqI")

# Linux's error numbers (which the kernel speaks) to this C library's, which Python here has in `errno`.
LINUX = {
    "EPERM": 1,
    "ENOENT": 2,
    "ESRCH": 3,
    "EINTR": 4,
    "EIO": 5,
    "ENXIO": 6,
    "E2BIG": 7,
    "ENOEXEC": 8,
    "EBADF": 9,
    "ECHILD": 10,
    "EAGAIN": 11,
    "ENOMEM": 12,
    "EACCES": 13,
    "EFAULT": 14,
    "EBUSY": 16,
    "EEXIST": 17,
    "EXDEV": 18,
    "ENODEV": 19,
    "ENOTDIR": 20,
    "EISDIR": 21,
    "EINVAL": 22,
    "ENFILE": 23,
    "EMFILE": 24,
    "ENOTTY": 25,
    "ETXTBSY": 26,
    "EFBIG": 27,
    "ENOSPC": 28,
    "ESPIPE": 29,
    "EROFS": 30,
    "EMLINK": 31,
    "EPIPE": 32,
    "EDOM": 33,
    "ERANGE": 34,
    "EDEADLK": 35,
    "ENAMETOOLONG": 36,
    "ENOLCK": 37,
    "ENOSYS": 38,
    "ENOTEMPTY": 39,
    "ELOOP": 40,
    "EPROTO": 71,
    "EOVERFLOW": 75,
    "EILSEQ": 84,
    "ENOTSOCK": 88,
    "EMSGSIZE": 90,
    "ENOTSUP": 95,
    "EAFNOSUPPORT": 97,
    "EADDRINUSE": 98,
    "ENETUNREACH": 101,
    "ECONNABORTED": 103,
    "ECONNRESET": 104,
    "EISCONN": 106,
    "ENOTCONN": 107,
    "ETIMEDOUT": 110,
    "ECONNREFUSED": 111,
    "EHOSTUNREACH": 113,
    "EALREADY": 114,
    "EINPROGRESS": 115,
    "ESTALE": 116,
    "EDQUOT": 122,
}
FROM_LINUX = {number: getattr(_errno, name) for name, number in LINUX.items() if hasattr(_errno, name)}
TO_LINUX = {ours: number for number, ours in FROM_LINUX.items()}


def error(number, *names):
    """The OSError for one of Linux's error numbers."""
    ours = FROM_LINUX.get(number, _errno.EIO)
    if not names:
        return OSError(ours, os.strerror(ours))
    if len(names) == 1:
        return OSError(ours, os.strerror(ours), names[0])
    return OSError(ours, os.strerror(ours), names[0], None, names[1])


def exchange(number, body):
    """Make a request; return the answer's status and results."""
    answer = _host.call(_NUMBER.pack(number) + body)
    return _STATUS.unpack_from(answer)[0], answer[4:]


def call(name, *arguments, names=()):
    """Make a system call. Raises OSError, with the names given."""
    number, takes, gives = CALLS[name]
    while True:
        status, results = exchange(number, encode(takes, arguments))
        if status == 0:
            return decode(gives, results)
        if status != 4:
            raise error(status, *names)
        # EINTR: if there is a handler that raises, it runs when this function is entered again; else go on.
        _checkpoint()


def _checkpoint():
    """Do nothing: CPython runs pending signal handlers when a function is entered."""


def calibrate():
    """Raise some signals, without bytecode in between, for `interrupt_host` to find the interpreter's signal flags."""
    import _thread
    import signal
    from functools import partial
    from operator import call as invoke

    seen = []
    signal.signal(signal.SIGTERM, lambda *_: seen.append(1))
    for number in (2, 15, 0, 2, 15, 0, 2, 15, 0):
        raised = partial(_thread.interrupt_main, number) if number else partial(int, 5)
        compared = partial(_host.call, _NUMBER.pack(COMPARE) + bytes([number]))
        steps = (partial(_host.call, _NUMBER.pack(MARK)), raised, compared)
        try:
            list(map(invoke, steps))
        except KeyboardInterrupt:
            seen.append(2)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)


def park():
    """Wait for a program: return (argv, environment, directory, options, numbers), and whether to run it or to warm up.

    The answer is one string, split by two calls: each program waits for this.
    """
    answer = _host.call(_NUMBER.pack(PARK))
    status, words, flags, *numbers = _PROGRAM.unpack_from(answer)
    executable, directory, *rest = answer[_PROGRAM.size :].split(b"\0")
    engine = {
        "executable": os.fsdecode(executable),
        "session": bool(flags & PROGRAM_SESSION),
        "site": bool(flags & PROGRAM_SITE),
        "terminal": bool(flags & PROGRAM_TERMINAL),
        "closed": flags >> PROGRAM_CLOSED_SHIFT & 7,
    }
    return (rest[:words], rest[words:], directory, engine, numbers), status == 0


def converse(target, data, source, size):
    """Write all of it, then read, in one call; return the errno of the read, and the data.

    Written out for speed: each run of an interpreter passes here.
    """
    request = b"".join((_WRITES.pack(_CONVERSE, target, len(data)), data, _READS.pack(source, size)))
    while True:
        answer = _host.call(request)
        (status,) = _STATUS.unpack_from(answer)
        if status == 0:
            return _READ.unpack_from(answer)[1], answer[_READ.size :]
        if status != 4:
            raise error(status)
        _checkpoint()


def processor_ns():
    """Processor time of this program, in nanoseconds."""
    return int.from_bytes(exchange(PROCESSOR, b"")[1], "little")


def buffer_output():
    """Buffer standard output from now on; it is sent along with the exit of this process."""
    _host.call(_NUMBER.pack(LAST))


def leave(code, signal=0):
    """Exit. Returns, with the error, if buffered output can't be written: then exit again."""
    return error(exchange(EXIT, struct.pack("<qq", code, signal))[0])
