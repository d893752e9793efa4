"""Writes values as YAML in yq's layout, with the comments, styles and anchors they were read with."""

import re
from collections.abc import Iterator
from typing import Any

from belljar.bin.jq.numbers import format_number
from belljar.bin.jq.values import is_number
from belljar.bin.yq.nodes import Document, Node, YamlError
from belljar.bin.yq.scalars import AMBIGUOUS, is_plain, resolve

MAX_DEPTH = 1_000
CONTROL = re.compile(r"[\x00-\x1f\x7f]")
NONE = Node(None)
DOUBLE = re.compile(r'[\x00-\x1f"\\\x7f\x85\xa0\u2028\u2029\ufeff]')
NAMED = {
    "\n": "\\n",
    "\t": "\\t",
    "\r": "\\r",
    '"': '\\"',
    "\\": "\\\\",
    "\0": "\\0",
    "\x1b": "\\e",
    "\b": "\\b",
    "\a": "\\a",
}


def double_quoted(text: str) -> str:
    def escape(match: "re.Match[str]") -> str:
        letter = match.group()
        code = ord(letter)
        return NAMED.get(letter) or (f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}")

    return '"' + DOUBLE.sub(escape, text) + '"'


def special_float(value: Any) -> str | None:
    text = format_number(value)
    if text == "null":
        return ".nan"
    if text == "1.7976931348623157e+308" and getattr(value, "literal", None) is None:
        return ".inf"
    if text == "-1.7976931348623157e+308" and getattr(value, "literal", None) is None:
        return "-.inf"
    return None


class Writer:
    def __init__(self, indent: int = 2, document: Document | None = None, pretty: bool = False) -> None:
        self.step = max(indent, 1)
        self.document = document
        self.pretty = pretty
        self.anchored: set[str] = set()

    def write(self, value: Any) -> str:
        """The document's text, newline included."""
        node = self.presentation(value)
        lines = [*comment_lines(node.head, ""), *self.block(value, node, 0, "")]
        lines += comment_lines(node.foot, "")
        return "".join(line + "\n" for line in lines)

    def presentation(self, value: Any) -> Node:
        """Return how `value` was written in the document it comes from, as far as that can be told."""
        if self.document is None:
            return NONE
        root = self.document.root
        if value.__class__ not in (dict, list):
            return root if value is root.value and value.__class__ is root.value.__class__ else NONE
        known = self.document.by_id.get(id(value))
        if known is not None:
            return known
        # A changed copy of the document: it still has some of the same members.
        same = value.__class__ is root.value.__class__
        if same and (isinstance(value, list) or value.keys() & root.value.keys()):
            return root
        return NONE

    def style(self, node: Node) -> str:
        return "" if self.pretty else node.style

    def block(self, value: Any, node: Node, depth: int, first: str) -> Iterator[str]:
        """The lines of a value that stands by itself; `first` is put before its first line."""
        if depth > MAX_DEPTH:
            raise YamlError("value is nested too deeply for YAML")
        pad = " " * (depth * self.step)
        if value.__class__ in (dict, list) and value and self.style(node) != "flow" and not self.is_alias(value, node):
            prefix = self.properties(node)
            if prefix:
                yield f"{first}{prefix.rstrip()}"
                first = ""
            if isinstance(value, dict):
                yield from self.mapping(value, node, depth, first, pad)
            else:
                yield from self.sequence(value, node, depth, first, pad)
        else:
            yield from self.inline(first or pad, value, node, depth)

    def properties(self, node: Node) -> str:
        text = f"{node.tag} " if node.tag and not self.pretty else ""
        if node.anchor and node.anchor not in self.anchored:
            self.anchored.add(node.anchor)
            text = f"&{node.anchor} {text}"
        return text

    def is_alias(self, value: Any, node: Node) -> bool:
        return bool(node.alias) and node.alias in self.anchored and node.value is value

    def child(self, node: Node, key: Any, value: Any) -> Node:
        """Return how a member was written; a container that moved here from elsewhere brings its own."""
        found = node.children.get(key)
        if self.document is not None and value.__class__ in (dict, list):
            known = self.document.by_id.get(id(value))
            if known is not None and (found is None or found.value is not value):
                return known
        if found is None:
            return NONE
        if found.value.__class__ is not value.__class__ and (found.style in ("flow", "literal", "folded") or found.tag):
            return Node(None, head=found.head, line=found.line)
        return found

    def mapping(self, value: dict[str, Any], node: Node, depth: int, first: str, pad: str) -> Iterator[str]:
        merged: set[str] = set()
        for name, key in node.keys.items():
            if name.startswith("<<") and key.text == "<<":
                source = node.children[name]
                parts = source.value if isinstance(source.value, list) else [source.value]
                for part in parts:
                    merged |= {k for k, v in part.items() if k in value and value[k] is v and k not in node.children}
                yield from comment_lines(key.head, pad)
                yield from self.member(first or pad, "<<", source.value, source, depth)
                first = ""
        for name, item in value.items():
            if name in merged:
                continue
            key = node.keys.get(name, NONE)
            heads = comment_lines(key.head, pad)
            if heads and first:
                yield from (line if place else first + line.lstrip() for place, line in enumerate(heads))
                first = ""
            else:
                yield from heads
            yield from self.member(first or pad, self.key(name, key), item, self.child(node, name, item), depth)
            first = ""

    def key(self, name: str, node: Node) -> str:
        anchor = f"&{node.anchor} " if node.anchor else ""
        if node.text and not node.style and not self.pretty:
            return anchor + node.text
        if self.style(node) == "double":
            return anchor + double_quoted(name)
        if self.style(node) == "single":
            return anchor + "'" + name.replace("'", "''") + "'"
        return anchor + (name if is_plain(name) else double_quoted(name))

    def member(self, start: str, key: str, value: Any, node: Node, depth: int) -> Iterator[str]:
        nested = value.__class__ in (dict, list) and value and self.style(node) != "flow"
        if nested and not self.is_alias(value, node):
            comment = f" {node.line}" if node.line else ""
            prefix = self.properties(node).rstrip()
            yield f"{start}{key}:{' ' + prefix if prefix else ''}{comment}"
            pad = " " * ((depth + 1) * self.step)
            yield from comment_lines(node.head, pad)
            if value.__class__ is dict:
                yield from self.mapping(value, node, depth + 1, "", pad)
            else:
                yield from self.sequence(value, node, depth + 1, "", pad)
        else:
            yield from self.inline(f"{start}{key}: ", value, node, depth + 1)

    def sequence(self, value: list[Any], node: Node, depth: int, first: str, pad: str) -> Iterator[str]:
        for place, item in enumerate(value):
            child = self.child(node, place, item)
            yield from comment_lines(child.head, pad)
            yield from self.block(item, child, depth + 1, (first or pad) + "- ")
            first = ""

    def inline(self, start: str, value: Any, node: Node, depth: int) -> Iterator[str]:
        """A scalar, an alias or a flow collection after `start`."""
        comment = f" {node.line}" if node.line else ""
        if self.is_alias(value, node):
            yield f"{start}*{node.alias}{comment}"
            return
        prefix = self.properties(node)
        if isinstance(value, str) and ("\n" in value or node.style in ("literal", "folded")):
            style = self.style(node)
            if literal_fits(value) and ((style == "" and "\n" in value) or style in ("literal", "folded")):
                yield from self.literal(start + prefix, value, depth, "|" if style != "folded" else ">", comment)
                return
        yield (start + prefix + self.scalar(value, node)).rstrip(" ") + comment

    def literal(self, start: str, value: str, depth: int, mark: str, comment: str) -> Iterator[str]:
        body = value.rstrip("\n")
        ends = len(value) - len(body)
        chomp = "-" if ends == 0 else "" if ends == 1 else "+"
        lines = body.split("\n")
        if mark == ">":
            lines = [part for line in lines for part in (line, "")][:-1]
        hint = str(self.step) if lines[0].startswith(" ") else ""
        yield f"{start}{mark}{hint}{chomp}{comment}"
        pad = " " * (max(depth, 1) * self.step)
        for line in lines:
            yield pad + line if line else ""
        for _ in range(ends - 1):
            yield ""

    def scalar(self, value: Any, node: Node) -> str:
        kind = value.__class__
        if kind is dict or kind is list:
            return self.flow(value, node, 0)
        if kind is str:
            return self.string(value, node)
        same = bool(node.text) and not node.style and not self.pretty and node.value is value
        if same or (node.text and kind is node.value.__class__ and node.value == value):
            return node.text
        if value is None:
            return "null" if node.value is not None or node is NONE or self.pretty else node.text
        if kind is bool:
            return "true" if value else "false"
        if is_number(value):
            return special_float(value) or format_number(value)
        raise YamlError(f"cannot write {kind.__name__}")

    def string(self, value: str, node: Node) -> str:
        style = self.style(node)
        if style == "double":
            return double_quoted(value)
        if style == "single" and not CONTROL.search(value):
            return "'" + value.replace("'", "''") + "'"
        if node.tag in ("!!str", "!") and not self.pretty and node.text == value:
            return value
        if is_plain(value) or (value == node.text and not style and not self.pretty and node.value == value):
            return value
        if not isinstance(resolve(value), str) or AMBIGUOUS.fullmatch(value) or CONTROL.search(value) or not value:
            return double_quoted(value)
        return "'" + value.replace("'", "''") + "'"

    def flow(self, value: Any, node: Node, depth: int) -> str:
        if depth > MAX_DEPTH:
            raise YamlError("value is nested too deeply for YAML")
        if value.__class__ is list:
            return (
                "["
                + ", ".join(self.flow_item(item, self.child(node, k, item), depth) for k, item in enumerate(value))
                + "]"
            )
        members = (
            f"{self.key(name, node.keys.get(name, NONE))}: {self.flow_item(item, self.child(node, name, item), depth)}"
            for name, item in value.items()
        )
        return "{" + ", ".join(members) + "}"

    def flow_item(self, value: Any, node: Node, depth: int) -> str:
        if self.is_alias(value, node):
            return f"*{node.alias}"
        prefix = self.properties(node)
        if value.__class__ in (dict, list):
            return prefix + self.flow(value, node, depth + 1)
        text = self.scalar(value, node)
        if isinstance(value, str) and text and text[0] not in "\"'" and re.search(r"[,\[\]{}]", text):
            text = double_quoted(value)
        return prefix + text


def literal_fits(value: str) -> bool:
    """True if a block scalar can hold the text."""
    return not re.search(r"[\x00-\x08\x0b-\x1f\x7f]", value) and not value.startswith("\n") and value.strip("\n") != ""


def comment_lines(comments: list[str], pad: str) -> list[str]:
    lines = [pad + line if line else "" for line in comments]
    while lines and not lines[-1]:
        lines.pop()
    return lines
