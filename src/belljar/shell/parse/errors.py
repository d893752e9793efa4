"""Syntax errors in bash's words, and warnings that don't stop the parser."""

from __future__ import annotations

from msgspec import Struct


class ShellSyntaxError(Exception):
    """A command that can't be parsed.

    `message` is bash's text without the "name: line N: " prefix; `detail` is the second line it prints, mostly the
    offending source line, or None. `incomplete`: the text ended too early, more of it could complete the command.
    `mild`: a script goes on after it, in the next line (a token that can't stand in `a=(...)`).
    `ends`: to bash the script just ends there (an error in `[[ ]]`), with the status it had.
    """

    mild = False
    ends = False
    status = 2

    def __init__(self, line: int, message: str, detail: str | None = None, *, incomplete: bool = False) -> None:
        super().__init__(line, message)
        self.line = line
        self.message = message
        self.detail = detail
        self.incomplete = incomplete

    def messages(self) -> list[str]:
        """The lines bash prints, each to be prefixed with "NAME: line LINE: "."""
        return [self.message] if self.detail is None else [self.message, self.detail]


class Warned(Struct, frozen=True):
    """A warning, e.g. of a here-document ended by the end of the file; print as "NAME: line LINE: warning: MESSAGE"."""

    line: int
    message: str


class ArithSyntaxError(Exception):
    """An arithmetic expression that can't be parsed.

    Bash prints `EXPRESSION: MESSAGE (error token is "TOKEN")`, without the expression's leading blanks (newlines stay).
    """

    def __init__(self, expression: str, message: str, token: str) -> None:
        super().__init__(expression, message, token)
        self.expression = expression
        self.message = message
        self.token = token

    def __str__(self) -> str:
        shown = self.expression.lstrip(" \t")
        return f'{shown}: {self.message} (error token is "{self.token}")'
