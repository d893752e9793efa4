"""Exit statuses, and the exception that ends a process."""

from typing import Final, NamedTuple


class ExitStatus(NamedTuple):
    """An exit code, or the signal that ended (or stopped) the process."""

    code: int = 0
    signal: int = 0

    @property
    def shell(self) -> int:
        """The status as a shell's $?."""
        return 128 + self.signal if self.signal else self.code


EXITED: Final = tuple(ExitStatus(code) for code in range(256))
"""The status for each exit code."""


class WaitResult(NamedTuple):
    """Result of wait(): a child ended, stopped or continued."""

    pid: int
    status: ExitStatus
    stopped: bool = False
    continued: bool = False


class ProcessExit(BaseException):
    """Unwinds a process to its end. Not an Exception: only the kernel catches it."""

    def __init__(self, status: ExitStatus) -> None:
        super().__init__(status)
        self.status = status
