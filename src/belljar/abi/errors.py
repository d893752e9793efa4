"""Errors of a guest's request (a system error, an exceeded limit), and the base of the owner's errors."""

from collections.abc import Callable

from belljar.abi.errno import NAMES, strerror


class SandboxError(Exception):
    """Base of all errors an owner of a sandbox sees. They can be pickled, whatever their constructors take."""

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...]]:
        return _restore, (type(self), self.args, self.__dict__)


def _restore(kind: type[SandboxError], args: tuple[object, ...], attributes: dict[str, object]) -> SandboxError:
    """Make an unpickled error anew, without its constructor: that takes other arguments than `args`."""
    error = kind.__new__(kind)
    error.args = args
    error.__dict__.update(attributes)
    return error


class PolicyError(SandboxError):
    """A network policy that makes no sense, or that failed while it decided."""


class SnapshotError(SandboxError):
    """A snapshot could not be made, found, read or trusted."""

    result: object = None
    """Of a checkpoint after a command: the command's result."""


class ImageError(SandboxError):
    """An image could not be built, found, read, written or trusted."""


class SysError(Exception):
    """A failed system call of a guest, with its errno; `why` adds to the message where that says too little."""

    def __init__(self, errno: int, path: str | None = None, why: str = "") -> None:
        super().__init__(errno, path)
        self.errno = errno
        self.path = path
        self.why = why

    @property
    def reason(self) -> str:
        return f"{strerror(self.errno)} ({self.why})" if self.why else strerror(self.errno)

    @property
    def name(self) -> str:
        return NAMES.get(self.errno, str(self.errno))

    def __str__(self) -> str:
        return self.reason if self.path is None else f"{self.path}: {self.reason}"


class Refused(SysError):
    """A system call that a rule of the owner's forbids: the rule's name, and the host's path it was about."""

    def __init__(self, errno: int, why: str, rule: str, host_path: str) -> None:
        super().__init__(errno, None, why)
        self.rule = rule
        self.host_path = host_path


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
