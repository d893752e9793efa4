"""The syntax tree every regular-expression dialect is parsed to."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class RegexError(ValueError):
    """A pattern that does not compile; the text is GNU's message."""


class Zero(Enum):
    """Zero-width assertions."""

    LINE_START = "^"
    LINE_END = "$"
    BUFFER_START = "\\`"
    BUFFER_END = "\\'"
    WORD_START = "\\<"
    WORD_END = "\\>"
    WORD_EDGE = "\\b"
    NOT_WORD_EDGE = "\\B"
    NOT_AFTER_WORD = "(?<!\\w)"  # grep -w: what stands before is no word character
    NOT_BEFORE_WORD = "(?!\\w)"


@dataclass(frozen=True, slots=True)
class Char:
    """One literal character, by code point (0xDC80-0xDCFF: a raw byte)."""

    code: int


@dataclass(frozen=True, slots=True)
class Any:
    """`.`"""


@dataclass(frozen=True, slots=True)
class Set:
    """A bracket expression: code-point ranges and named classes."""

    negated: bool
    ranges: tuple[tuple[int, int], ...]
    classes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Assert:
    kind: Zero


@dataclass(frozen=True, slots=True)
class Cat:
    items: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Alt:
    branches: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Group:
    index: int
    body: Node


@dataclass(frozen=True, slots=True)
class Repeat:
    """`body` from `low` to `high` times; `high` None is unbounded."""

    body: Node
    low: int
    high: int | None


@dataclass(frozen=True, slots=True)
class Backref:
    index: int


Node = Char | Any | Set | Assert | Cat | Alt | Group | Repeat | Backref
EMPTY = Cat(())
WORD = Set(negated=False, ranges=((0x5F, 0x5F),), classes=("alnum",))
NOT_WORD = Set(negated=True, ranges=((0x5F, 0x5F),), classes=("alnum",))
SPACE = Set(negated=False, ranges=(), classes=("space",))
NOT_SPACE = Set(negated=True, ranges=(), classes=("space",))
