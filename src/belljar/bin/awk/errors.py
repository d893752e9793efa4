"""The ways an awk program ends early: its own mistakes and its control transfers."""

from __future__ import annotations


class AwkSyntaxError(Exception):
    """The program text is wrong; `report` is the complete text for standard error."""

    def __init__(self, report: str) -> None:
        super().__init__(report)
        self.report = report


class AwkFatal(Exception):
    """A run-time error that ends the program with status 2."""

    def __init__(self, message: str, line: int = 0, *, kind: str = "fatal") -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.kind = kind


class NextRecord(Exception):
    """`next` inside a function."""


class NextFile(Exception):
    """`nextfile`."""


class ExitProgram(Exception):
    """`exit`; the status has been stored in the runtime."""
