"""The syntax tree of jq's language."""

from collections.abc import Iterator
from typing import Any, Union

from belljar.abi.dataclass import dataclass, field, fields, is_dataclass


@dataclass(frozen=True, slots=True)
class Identity:
    pass


@dataclass(frozen=True, slots=True)
class RecurseDefault:
    pass


@dataclass(frozen=True, slots=True)
class Literal:
    value: Any


@dataclass(frozen=True, slots=True)
class Text:
    """A string with interpolations, each rendered by `format`."""

    parts: tuple["str | Node", ...]
    format: str


@dataclass(frozen=True, slots=True)
class Format:
    name: str


@dataclass(frozen=True, slots=True)
class Index:
    target: "Node"
    key: "Node"


@dataclass(frozen=True, slots=True)
class Slice:
    target: "Node"
    start: "Node | None"
    end: "Node | None"


@dataclass(frozen=True, slots=True)
class Iterate:
    target: "Node"


@dataclass(frozen=True, slots=True)
class Negate:
    body: "Node"


@dataclass(frozen=True, slots=True)
class Array:
    body: "Node | None"


@dataclass(frozen=True, slots=True)
class Object:
    entries: tuple[tuple["Node", "Node"], ...]


@dataclass(frozen=True, slots=True)
class Pipe:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Comma:
    parts: tuple["Node", ...]


@dataclass(frozen=True, slots=True)
class Binary:
    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Logic:
    """`and` and `or`."""

    operator: str
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Alternative:
    left: "Node"
    right: "Node"


@dataclass(frozen=True, slots=True)
class Update:
    """`=`, `|=`, `+=` and their like; `operator` is without the final `=`."""

    operator: str
    target: "Node"
    value: "Node"


@dataclass(frozen=True, slots=True)
class If:
    condition: "Node"
    then: "Node"
    otherwise: "Node | None"


@dataclass(frozen=True, slots=True)
class Try:
    body: "Node"
    handler: "Node | None"


@dataclass(frozen=True, slots=True)
class BindVariable:
    name: str


@dataclass(frozen=True, slots=True)
class BindArray:
    items: tuple["Pattern", ...]


@dataclass(frozen=True, slots=True)
class BindObject:
    """Entries of (key, variable bound to the whole member, pattern for the member)."""

    entries: tuple[tuple["Node", str | None, "Pattern | None"], ...]


Pattern = Union[BindVariable, BindArray, BindObject]  # noqa: UP007 (the parts refer to the union)


@dataclass(frozen=True, slots=True)
class Bind:
    source: "Node"
    patterns: tuple[Pattern, ...]
    body: "Node"


@dataclass(frozen=True, slots=True)
class Reduce:
    source: "Node"
    patterns: tuple[Pattern, ...]
    initial: "Node"
    update: "Node"


@dataclass(frozen=True, slots=True)
class Foreach:
    source: "Node"
    patterns: tuple[Pattern, ...]
    initial: "Node"
    update: "Node"
    extract: "Node | None"


@dataclass(frozen=True, slots=True)
class Label:
    name: str
    body: "Node"


@dataclass(frozen=True, slots=True)
class BreakOut:
    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Variable:
    name: str
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Location:
    """`$__loc__`."""

    line: int


@dataclass(frozen=True, slots=True)
class Call:
    name: str
    arguments: tuple["Node", ...]
    at: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class Function:
    """A definition; a parameter that begins with `$` is a value, another a filter."""

    name: str
    parameters: tuple[str, ...]
    body: "Node"


@dataclass(frozen=True, slots=True)
class Define:
    function: Function
    rest: "Node"


Node = (
    Identity
    | RecurseDefault
    | Literal
    | Text
    | Format
    | Index
    | Slice
    | Iterate
    | Negate
    | Array
    | Object
    | Pipe
    | Comma
    | Binary
    | Logic
    | Alternative
    | Update
    | If
    | Try
    | Bind
    | Reduce
    | Foreach
    | Label
    | BreakOut
    | Variable
    | Location
    | Call
    | Define
)


def children(node: Any) -> list[Any]:
    """Return the children of a node, or of a tuple of nodes: nodes and tuples."""
    parts = node if isinstance(node, tuple) else [getattr(node, part.name) for part in fields(node)]
    return [part for part in parts if isinstance(part, tuple) or is_dataclass(part)]


def walk_nodes(node: Any) -> Iterator[Any]:
    """A node and all below it, without recursion."""
    stack = [node]
    while stack:
        node = stack.pop()
        if not isinstance(node, tuple):
            yield node
        stack += children(node)


@dataclass(frozen=True, slots=True)
class Import:
    path: str
    name: str | None
    """None for `include`."""
    data: bool
    metadata: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Program:
    metadata: dict[str, Any] | None
    imports: tuple[Import, ...]
    functions: tuple[Function, ...]
    body: Node | None
    """None in a module, which only defines."""
    source: str = ""
    file: str = "<top-level>"
