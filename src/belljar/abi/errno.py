"""Linux's error numbers and messages on every host: those of macOS and of a browser differ."""

import errno
from typing import Final

EPERM: Final = 1
ENOENT: Final = 2
ESRCH: Final = 3
EINTR: Final = 4
EIO: Final = 5
ENXIO: Final = 6
E2BIG: Final = 7
ENOEXEC: Final = 8
EBADF: Final = 9
ECHILD: Final = 10
EAGAIN: Final = 11
ENOMEM: Final = 12
EACCES: Final = 13
EFAULT: Final = 14
EBUSY: Final = 16
EEXIST: Final = 17
EXDEV: Final = 18
ENODEV: Final = 19
ENOTDIR: Final = 20
EISDIR: Final = 21
EINVAL: Final = 22
ENFILE: Final = 23
EMFILE: Final = 24
ENOTTY: Final = 25
ETXTBSY: Final = 26
EFBIG: Final = 27
ENOSPC: Final = 28
ESPIPE: Final = 29
EROFS: Final = 30
EMLINK: Final = 31
EPIPE: Final = 32
EDOM: Final = 33
ERANGE: Final = 34
EDEADLK: Final = 35
ENAMETOOLONG: Final = 36
ENOLCK: Final = 37
ENOSYS: Final = 38
ENOTEMPTY: Final = 39
ELOOP: Final = 40
EOVERFLOW: Final = 75
EPROTO: Final = 71
EILSEQ: Final = 84
ENOTSUP: Final = 95
ENOTSOCK: Final = 88
EDESTADDRREQ: Final = 89
EMSGSIZE: Final = 90
EPROTOTYPE: Final = 91
ENOPROTOOPT: Final = 92
EPROTONOSUPPORT: Final = 93
EAFNOSUPPORT: Final = 97
EADDRINUSE: Final = 98
EADDRNOTAVAIL: Final = 99
ENETDOWN: Final = 100
ENETUNREACH: Final = 101
ENETRESET: Final = 102
ECONNABORTED: Final = 103
ENOBUFS: Final = 105
EISCONN: Final = 106
ENOTCONN: Final = 107
ECONNRESET: Final = 104
ETIMEDOUT: Final = 110
ECONNREFUSED: Final = 111
EHOSTUNREACH: Final = 113
EALREADY: Final = 114
EINPROGRESS: Final = 115
ECANCELED: Final = 125
EDQUOT: Final = 122
ESTALE: Final = 116

REASONS: Final[dict[int, str]] = {
    EPERM: "Operation not permitted",
    ENOENT: "No such file or directory",
    ESRCH: "No such process",
    EINTR: "Interrupted system call",
    EIO: "Input/output error",
    ENXIO: "No such device or address",
    E2BIG: "Argument list too long",
    ENOEXEC: "Exec format error",
    EBADF: "Bad file descriptor",
    ECHILD: "No child processes",
    EAGAIN: "Resource temporarily unavailable",
    ENOMEM: "Cannot allocate memory",
    EACCES: "Permission denied",
    EFAULT: "Bad address",
    EBUSY: "Device or resource busy",
    EEXIST: "File exists",
    EXDEV: "Invalid cross-device link",
    ENODEV: "No such device",
    ENOTDIR: "Not a directory",
    EISDIR: "Is a directory",
    EINVAL: "Invalid argument",
    ENFILE: "Too many open files in system",
    EMFILE: "Too many open files",
    ENOTTY: "Inappropriate ioctl for device",
    ETXTBSY: "Text file busy",
    EFBIG: "File too large",
    ENOSPC: "No space left on device",
    ESPIPE: "Illegal seek",
    EROFS: "Read-only file system",
    EMLINK: "Too many links",
    EPIPE: "Broken pipe",
    EDOM: "Numerical argument out of domain",
    ERANGE: "Numerical result out of range",
    EDEADLK: "Resource deadlock avoided",
    ENAMETOOLONG: "File name too long",
    ENOLCK: "No locks available",
    ENOSYS: "Function not implemented",
    ENOTEMPTY: "Directory not empty",
    ELOOP: "Too many levels of symbolic links",
    EOVERFLOW: "Value too large for defined data type",
    EPROTO: "Protocol error",
    EILSEQ: "Invalid or incomplete multibyte or wide character",
    ENOTSUP: "Operation not supported",
    ENOTSOCK: "Socket operation on non-socket",
    EDESTADDRREQ: "Destination address required",
    EMSGSIZE: "Message too long",
    EPROTOTYPE: "Protocol wrong type for socket",
    ENOPROTOOPT: "Protocol not available",
    EPROTONOSUPPORT: "Protocol not supported",
    EAFNOSUPPORT: "Address family not supported by protocol",
    EADDRINUSE: "Address already in use",
    EADDRNOTAVAIL: "Cannot assign requested address",
    ENETDOWN: "Network is down",
    ENETUNREACH: "Network is unreachable",
    ENETRESET: "Network dropped connection on reset",
    ECONNABORTED: "Software caused connection abort",
    ENOBUFS: "No buffer space available",
    EISCONN: "Transport endpoint is already connected",
    ENOTCONN: "Transport endpoint is not connected",
    ECONNRESET: "Connection reset by peer",
    ETIMEDOUT: "Connection timed out",
    ECONNREFUSED: "Connection refused",
    EHOSTUNREACH: "No route to host",
    EALREADY: "Operation already in progress",
    EINPROGRESS: "Operation now in progress",
    ECANCELED: "Operation canceled",
    EDQUOT: "Disk quota exceeded",
    ESTALE: "Stale file handle",
}
"""Linux's message for each."""
NAMES: Final[dict[int, str]] = {value: name for name, value in list(globals().items()) if isinstance(value, int)}
_HOST: Final[dict[int, int]] = {getattr(errno, name): value for value, name in NAMES.items() if hasattr(errno, name)}


def from_host(number: int | None) -> int:
    """Linux's number for one of the host's; EIO if Linux has none."""
    return _HOST.get(number or EIO, EIO)


def strerror(number: int) -> str:
    """Linux's message for an errno."""
    return REASONS.get(number) or f"Unknown error {number}"
