"""A YAML document as values, and how each was written: style, comments, anchors."""

from typing import Any

from belljar.abi.dataclass import dataclass, field


class YamlError(Exception):
    """The text is not YAML we can read; the message says where."""


@dataclass(slots=True, eq=False)
class Node:
    """How one value was written. `children` follow the value's own keys or places."""

    value: Any
    style: str = ""
    """"" plain or block, flow, single, double, literal, folded."""
    tag: str = ""
    anchor: str = ""
    alias: str = ""
    head: list[str] = field(default_factory=list)
    """Comment lines before it, with their #; an empty string is a blank line."""
    line: str = ""
    """The comment at its end."""
    foot: list[str] = field(default_factory=list)
    """Comment lines after the last item of the whole document."""
    text: str = ""
    """A plain scalar as written."""
    children: dict[Any, "Node"] = field(default_factory=dict)
    keys: dict[str, "Node"] = field(default_factory=dict)
    """How the keys of a mapping were written."""


@dataclass(slots=True, eq=False)
class Document:
    root: Node
    explicit: bool = False
    """Whether it was introduced by ---."""
    by_id: dict[int, Node] = field(default_factory=dict)
    """The nodes of containers, by the identity of their values."""
