"""What the parser reports: syntax errors in bash's words, and warnings that don't stop it."""

from __future__ import annotations

from dataclasses import dataclass


class ShellSyntaxError(Exception):
    """A command that can't be parsed.

    `message` is bash's text without the "name: line N: " prefix; `source_line` is the line bash shows beneath it
    (None when bash shows none). `incomplete`: the text ended too early, more of it could complete the command.
    """

    def __init__(self, line: int, message: str, source_line: str | None = None, *, incomplete: bool = False) -> None:
        super().__init__(line, message)
        self.line = line
        self.message = message
        self.source_line = source_line
        self.incomplete = incomplete

    def messages(self) -> list[str]:
        """The lines bash prints, each to be prefixed with "NAME: line LINE: "."""
        if self.source_line is None:
            return [self.message]
        return [self.message, f"`{self.source_line}'"]


@dataclass(frozen=True, slots=True)
class Warned:
    """A warning, e.g. of a here-document ended by the end of the file; print as "NAME: line LINE: warning: MESSAGE"."""

    line: int
    message: str


class ArithSyntaxError(Exception):
    """An arithmetic expression that can't be parsed.

    Bash prints `EXPRESSION: MESSAGE (error token is "TOKEN")`, with leading blanks of the expression removed.
    """

    def __init__(self, expression: str, message: str, token: str) -> None:
        super().__init__(expression, message, token)
        self.expression = expression
        self.message = message
        self.token = token

    def __str__(self) -> str:
        shown = self.expression.lstrip()
        return f'{shown}: {self.message} (error token is "{self.token}")'
