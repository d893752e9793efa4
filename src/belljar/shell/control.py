"""Exceptions for control flow: loops, functions, the shell's exit, and errors that abandon a command."""

from __future__ import annotations


class ControlFlow(BaseException):
    """Base of control flow. Not an Exception, so that no utility code takes it for an error."""


class Break(ControlFlow):
    """`break n`: the loop that catches it raises it again while `levels` are left.

    `status` is that of the loop: 1 after `break 0`.
    """

    def __init__(self, levels: int = 1, status: int = 0) -> None:
        self.levels = levels
        self.status = status

    def outward(self) -> Break:
        """The same for the next loop outside."""
        return Break(self.levels - 1, self.status)


class Continue(ControlFlow):
    """`continue n`."""

    status = 0

    def __init__(self, levels: int = 1) -> None:
        self.levels = levels

    def outward(self) -> Continue:
        """The same for the next loop outside."""
        return Continue(self.levels - 1)


class Return(ControlFlow):
    """`return status`, caught by the function call or `source` it ends."""

    def __init__(self, status: int) -> None:
        self.status = status


class ExitShell(ControlFlow):
    """`exit status`, errexit and fatal errors: ends this shell process after its EXIT trap."""

    def __init__(self, status: int) -> None:
        self.status = status


class Discard(ControlFlow):
    """An error, already reported, that abandons the whole top-level command (bash's DISCARD); the shell goes on.

    A non-interactive shell that bash would end for the error raises ExitShell instead.
    """

    def __init__(self, status: int = 1) -> None:
        self.status = status


class Abandon(Discard):
    """A Discard raised for a failed expansion or assignment: also `eval` ends it."""


class KilledBySignal(BaseException):
    """A fatal signal reached a shell with an EXIT trap, which runs before the shell dies of it.

    No Exception: it may come wherever the shell waits, and only the shell's outermost frame takes it.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class ShellError(Exception):
    """An error not yet reported: `str(error)` is bash's message without the `bash: line N: ` prefix.

    `fatal`: bash abandons the command, and a non-interactive shell where POSIX says so; otherwise the command at hand
    just fails with `status`.
    """

    status = 1

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        self.status = status


class ReadonlyError(ShellError):
    """An assignment to a readonly variable."""

    def __init__(self, name: str) -> None:
        super().__init__(f"{name}: readonly variable")
        self.name = name


class ArithError(ShellError):
    """An arithmetic expression that can't be evaluated."""


class SubscriptError(ShellError):
    """An index that can't be evaluated: bash abandons the whole command, wherever the index stands."""


class BadElementError(ShellError):
    """An invalid element: its key is empty, or its index is before the first."""


class ExpansionError(ShellError):
    """An expansion that can't be done: bad substitution, unbound variable, `${x?message}`.

    `exits`: a non-interactive shell ends with `status`.
    """

    def __init__(self, message: str, status: int = 1, *, exits: bool = False) -> None:
        super().__init__(message, status)
        self.exits = exits


class SubstringError(ExpansionError):
    """`${x:1:-9}`: a length that ends before the offset."""

    def __init__(self, length: int) -> None:
        super().__init__(f"{length}: substring expression < 0")
