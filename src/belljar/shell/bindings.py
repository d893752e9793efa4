"""Values of variables: plain text, or a variable with attributes; and the frames that hide bindings."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final, TypeAlias

from belljar.shell.arrays import Array, Assoc

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

EXPORT: Final = 1
READONLY: Final = 2
INTEGER: Final = 4
LOWER: Final = 8
UPPER: Final = 16
CAPITAL: Final = 32
NAMEREF: Final = 64
TRACE: Final = 128
ARRAY: Final = 256
ASSOC: Final = 512
CASE: Final = LOWER | UPPER | CAPITAL

LETTERS: Final = (
    (ARRAY, "a"), (ASSOC, "A"), (INTEGER, "i"), (NAMEREF, "n"), (READONLY, "r"), (TRACE, "t"), (EXPORT, "x"),
    (CAPITAL, "c"), (LOWER, "l"), (UPPER, "u"),
)  # fmt: skip
"""Attributes in the order `declare -p` prints them."""

NAMEREF_DEPTH: Final = 8

Contents: TypeAlias = "str | Array | Assoc | None"


class Epoch:
    """The time between two forks of one shell: variables made in it may be changed in place while it has no sharers."""

    __slots__ = ("alive", "parent", "sharers")

    def __init__(self, parent: Epoch | None = None) -> None:
        self.parent = parent
        self.sharers = 0
        self.alive = True
        if parent is not None:
            parent.sharers += 1

    def end(self) -> None:
        """End the shell's use of it; once its own forks end too, it no longer shares its parent's variables."""
        self.alive = False
        epoch: Epoch | None = self
        while epoch is not None and not epoch.alive and epoch.sharers == 0 and epoch.parent is not None:
            parent, epoch.parent = epoch.parent, None
            parent.sharers -= 1
            epoch = parent


class Var:
    """A variable that is more than a plain string. `value` None: declared but unset."""

    __slots__ = ("attrs", "epoch", "value")

    def __init__(self, value: Contents = None, attrs: int = 0, epoch: Epoch | None = None) -> None:
        self.value = value
        self.attrs = attrs
        self.epoch = epoch

    def read(self, shell: Shell) -> str | None:
        """The scalar value: of an array element 0."""
        value = self.value
        if value is None or isinstance(value, str):
            return value
        return value.scalar()

    def contents(self, shell: Shell) -> Contents:
        """The whole value."""
        return self.value

    def copy(self, epoch: Epoch) -> Var:
        value = self.value
        return Var(value if value is None or isinstance(value, str) else value.copy(), self.attrs, epoch)


class DynamicVar(Var):
    """A special variable: computed when read; assigning calls `write`, or is ignored where there is none."""

    __slots__ = ("reader", "writer")

    def __init__(
        self,
        reader: Callable[[Shell], Contents],
        writer: Callable[[Shell, str], None] | None = None,
        attrs: int = 0,
    ) -> None:
        super().__init__(None, attrs)
        self.reader = reader
        self.writer = writer

    def read(self, shell: Shell) -> str | None:
        value = self.reader(shell)
        return value if value is None or isinstance(value, str) else value.scalar()

    def contents(self, shell: Shell) -> Contents:
        return self.reader(shell)

    def copy(self, epoch: Epoch) -> Var:
        fresh = DynamicVar(self.reader, self.writer, self.attrs)
        fresh.epoch = epoch
        return fresh


Entry: TypeAlias = "str | int | Var"


class Frame:
    """One function call or `source`: what its locals hide, and where it was called from."""

    __slots__ = ("args", "exports", "function", "line", "name", "options", "saved", "source", "temporary")

    def __init__(self, name: str, source: str, line: int, *, function: bool) -> None:
        self.name = name
        """FUNCNAME; "source" for a sourced file."""
        self.source = source
        """BASH_SOURCE: the file the function was defined in."""
        self.line = line
        """BASH_LINENO: the line of the call."""
        self.function = function
        self.saved: dict[str, Entry | None] = {}
        """The hidden bindings of the names local here; None: there was none."""
        self.temporary: frozenset[str] = frozenset()
        """Names bound by `name=value call`."""
        self.args: list[str] = []
        self.options: object = None
        """The options saved by `local -`, restored on return."""

    def copy(self) -> Frame:
        fresh = Frame(self.name, self.source, self.line, function=self.function)
        fresh.saved = self.saved.copy()
        fresh.temporary = self.temporary
        fresh.args = self.args
        fresh.options = self.options
        return fresh


def is_name(text: str) -> bool:
    """Whether the text is a shell identifier."""
    return text.isidentifier() and text.isascii()
