"""The syntax tree every regular-expression dialect is parsed to."""

from __future__ import annotations

from enum import Enum

from msgspec import Struct


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


class Char(Struct, frozen=True):
    """One literal character, by code point (0xDC80-0xDCFF: a raw byte)."""

    code: int


class Any(Struct, frozen=True):
    """`.`"""


class Set(Struct, frozen=True):
    """A bracket expression: code-point ranges and named classes."""

    negated: bool
    ranges: tuple[tuple[int, int], ...]
    classes: tuple[str, ...] = ()


class Assert(Struct, frozen=True):
    kind: Zero


class Cat(Struct, frozen=True):
    items: tuple[Node, ...]


class Alt(Struct, frozen=True):
    branches: tuple[Node, ...]


class Group(Struct, frozen=True):
    index: int
    body: Node


class Repeat(Struct, frozen=True):
    """`body` from `low` to `high` times; `high` None is unbounded."""

    body: Node
    low: int
    high: int | None


class Backref(Struct, frozen=True):
    index: int


Node = Char | Any | Set | Assert | Cat | Alt | Group | Repeat | Backref
EMPTY = Cat(())
WORD = Set(negated=False, ranges=((0x5F, 0x5F),), classes=("alnum",))
NOT_WORD = Set(negated=True, ranges=((0x5F, 0x5F),), classes=("alnum",))
SPACE = Set(negated=False, ranges=(), classes=("space",))
NOT_SPACE = Set(negated=True, ranges=(), classes=("space",))
