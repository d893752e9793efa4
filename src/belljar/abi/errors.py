"""How a guest's request ends badly, a system error or a spent budget; and the root of the owner's errors."""

import errno as codes
from typing import Final

_REASONS: Final[dict[int, str]] = {
    codes.EPERM: "Operation not permitted",
    codes.ENOENT: "No such file or directory",
    codes.ESRCH: "No such process",
    codes.EINTR: "Interrupted system call",
    codes.EIO: "Input/output error",
    codes.ENXIO: "No such device or address",
    codes.E2BIG: "Argument list too long",
    codes.ENOEXEC: "Exec format error",
    codes.EBADF: "Bad file descriptor",
    codes.ECHILD: "No child processes",
    codes.EAGAIN: "Resource temporarily unavailable",
    codes.ENOMEM: "Cannot allocate memory",
    codes.EACCES: "Permission denied",
    codes.EFAULT: "Bad address",
    codes.EBUSY: "Device or resource busy",
    codes.EEXIST: "File exists",
    codes.EXDEV: "Invalid cross-device link",
    codes.ENODEV: "No such device",
    codes.ENOTDIR: "Not a directory",
    codes.EISDIR: "Is a directory",
    codes.EINVAL: "Invalid argument",
    codes.ENFILE: "Too many open files in system",
    codes.EMFILE: "Too many open files",
    codes.ENOTTY: "Inappropriate ioctl for device",
    codes.ETXTBSY: "Text file busy",
    codes.EFBIG: "File too large",
    codes.ENOSPC: "No space left on device",
    codes.ESPIPE: "Illegal seek",
    codes.EROFS: "Read-only file system",
    codes.EMLINK: "Too many links",
    codes.EPIPE: "Broken pipe",
    codes.EDOM: "Numerical argument out of domain",
    codes.ERANGE: "Numerical result out of range",
    codes.EDEADLK: "Resource deadlock avoided",
    codes.ENAMETOOLONG: "File name too long",
    codes.ENOLCK: "No locks available",
    codes.ENOSYS: "Function not implemented",
    codes.ENOTEMPTY: "Directory not empty",
    codes.ELOOP: "Too many levels of symbolic links",
    codes.EOVERFLOW: "Value too large for defined data type",
    codes.EPROTO: "Protocol error",
    codes.EILSEQ: "Invalid or incomplete multibyte or wide character",
    codes.ENOTSUP: "Operation not supported",
    codes.ENOTSOCK: "Socket operation on non-socket",
    codes.EDESTADDRREQ: "Destination address required",
    codes.EMSGSIZE: "Message too long",
    codes.EPROTOTYPE: "Protocol wrong type for socket",
    codes.ENOPROTOOPT: "Protocol not available",
    codes.EPROTONOSUPPORT: "Protocol not supported",
    codes.EAFNOSUPPORT: "Address family not supported by protocol",
    codes.EADDRINUSE: "Address already in use",
    codes.EADDRNOTAVAIL: "Cannot assign requested address",
    codes.ENETDOWN: "Network is down",
    codes.ENETUNREACH: "Network is unreachable",
    codes.ENETRESET: "Network dropped connection on reset",
    codes.ECONNABORTED: "Software caused connection abort",
    codes.ENOBUFS: "No buffer space available",
    codes.EISCONN: "Transport endpoint is already connected",
    codes.ENOTCONN: "Transport endpoint is not connected",
    codes.ECONNRESET: "Connection reset by peer",
    codes.ETIMEDOUT: "Connection timed out",
    codes.ECONNREFUSED: "Connection refused",
    codes.EHOSTUNREACH: "No route to host",
    codes.EALREADY: "Operation already in progress",
    codes.EINPROGRESS: "Operation now in progress",
    codes.ECANCELED: "Operation canceled",
    codes.EDQUOT: "Disk quota exceeded",
    codes.ESTALE: "Stale file handle",
}


def strerror(errno: int) -> str:
    """Linux's words for an errno, whatever system we run on."""
    return _REASONS.get(errno) or f"Unknown error {errno}"


class SandboxError(Exception):
    """The root of all errors an owner of a sandbox sees."""


class PolicyError(SandboxError):
    """A network policy that makes no sense, or that failed while it decided."""


class SysError(Exception):
    """A guest's mistake, or the world's answer to it: what a system call returns as errno."""

    def __init__(self, errno: int, path: str | None = None) -> None:
        super().__init__(errno, path)
        self.errno = errno
        self.path = path

    @property
    def reason(self) -> str:
        return strerror(self.errno)

    @property
    def name(self) -> str:
        return codes.errorcode.get(self.errno, str(self.errno))

    def __str__(self) -> str:
        return self.reason if self.path is None else f"{self.path}: {self.reason}"


class OutputError(Exception):
    """A program's standard output can't be written.

    Not a SysError: it happens while some file is read, and whoever handles that file's errors must not take it for one.
    """

    def __init__(self, errno: int) -> None:
        super().__init__(errno)
        self.errno = errno

    @property
    def reason(self) -> str:
        return strerror(self.errno)


class BudgetExceeded(BaseException):
    """A limit was reached. Not an Exception, so that no utility can swallow it.

    `limit` is the name of the field of `Limits` that was spent.
    """

    def __init__(self, limit: str, allowed: float) -> None:
        super().__init__(limit, allowed)
        self.limit = limit
        self.allowed = allowed

    def __str__(self) -> str:
        return f"limit reached: {self.limit} ({self.allowed:g})"
