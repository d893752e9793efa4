"""Results of an interpreter's runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, Self

from belljar.api.errors import SandboxError, printable
from belljar.api.results import decode

ErrorCode = Literal[
    "CPU_LIMIT",
    "WALL_LIMIT",
    "MEMORY_LIMIT",
    "BRIDGE_LIMIT",
    "OUTPUT_LIMIT",
    "SYNTAX_ERROR",
    "RUNTIME_ERROR",
    "CRASHED",
]


_LINES: Final = 40


class RunFailed(SandboxError):
    """A run that was to succeed did not (`RunResult.check`); `result` has the rest."""

    def __init__(self, result: RunResult) -> None:
        assert result.error is not None
        super().__init__("\n".join(map(printable, f"{result.error}\n{result.error.stack}".splitlines()[-_LINES:])))
        self.result = result


class NotExported(SandboxError, KeyError):
    """A name the run did not export, or whose value can't cross; the message says which and why."""

    __str__ = SandboxError.__str__


class Exports(dict[str, Any]):
    """Exports of a run, by name: `exports["default"]` is its default export, or its last expression.

    Asking for what is missing says why it is: not exported at all, or not plain data.
    """

    def __init__(self, values: Mapping[str, Any] = {}, unsent: Mapping[str, str] = {}) -> None:
        super().__init__(values)
        self.unsent = dict(unsent)
        """The names whose values could not cross, and why."""

    def __missing__(self, name: str) -> Any:
        why = self.unsent.get(name)
        raise NotExported(printable(why) if why is not None else f"the run exported no {name!r}")


@dataclass(frozen=True, slots=True)
class Output:
    """Something a run showed: a figure, a table."""

    mime: str
    data: bytes

    @property
    def text(self) -> str:
        """The data as text, for a `text/...` type."""
        return decode(self.data)


@dataclass(frozen=True, slots=True)
class RunError:
    """Why a run did not end well."""

    code: ErrorCode
    name: str
    """The exception's class, or the limit's name."""
    message: str
    stack: str = ""
    """The guest's traceback, if it has one."""

    def __str__(self) -> str:
        return f"{self.code}: {self.name}: {self.message}"


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run ended, what it said and what it gave back."""

    ok: bool
    exports: Exports = field(default_factory=Exports)
    stdout: str = ""
    stderr: str = ""
    duration_ms: float = 0.0
    error: RunError | None = None
    outputs: list[Output] = field(default_factory=list)
    """Outputs that it showed, in order: figures as image/png, tables as text/html and text/plain."""
    bridge_calls: int = 0

    @property
    def value(self) -> Any:
        """The last expression as plain data; None if there is none. Raises NotExported if it can't cross.

        It is None after an error, too: `result.check().value` raises that instead.
        """
        if "default" in self.exports or "default" in self.exports.unsent:
            return self.exports["default"]
        return None

    def check(self) -> Self:
        """Itself if the run ended well; else raises `RunFailed`, with the guest's traceback."""
        if self.error is not None:
            raise RunFailed(self)
        return self
