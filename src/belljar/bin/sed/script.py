"""The syntax tree of a sed script: a flat list of commands, blocks and branches as positions in it."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass, field
from belljar.regex import Regex


@dataclass(frozen=True, slots=True)
class LineNumber:
    number: int


@dataclass(frozen=True, slots=True)
class Step:
    """`first~step`"""

    first: int
    step: int


@dataclass(frozen=True, slots=True)
class Last:
    """`$`"""


@dataclass(frozen=True, slots=True)
class Pattern:
    """`/re/`; no regex: the last one used."""

    regex: Regex | None


@dataclass(frozen=True, slots=True)
class Plus:
    """`addr,+N`"""

    count: int


@dataclass(frozen=True, slots=True)
class Multiple:
    """`addr,~N`"""

    of: int


Address = LineNumber | Step | Last | Pattern | Plus | Multiple


@dataclass(frozen=True, slots=True)
class Reference:
    """A part of the right side of `s`: the whole match (0) or a group."""

    group: int


@dataclass(frozen=True, slots=True)
class CaseChange:
    """\\L \\U (until \\E), \\l \\u (next character)"""

    kind: str


Part = bytes | Reference | CaseChange


@dataclass(frozen=True, slots=True)
class Substitution:
    regex: Regex | None
    parts: tuple[Part, ...]
    globally: bool = False
    number: int = 1
    prints: int = 0
    filename: str | None = None


@dataclass(slots=True)
class Command:
    name: str
    first: Address | None = None
    second: Address | None = None
    negated: bool = False
    text: bytes = b""
    label: str = ""
    number: int | None = None
    filename: str = ""
    substitution: Substitution | None = None
    mapping: dict[str, str] = field(default_factory=dict)
    target: int = 0  # where a branch or the end of a block is


@dataclass(slots=True)
class Script:
    commands: list[Command]
    quiet: bool = False  # the first line is #n
