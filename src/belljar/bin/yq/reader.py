"""Reads YAML 1.2 (what configuration files use of it) into values, keeping how they were written.

Guest text is hostile: nesting is limited, and an alias shares the value it names, so a bomb of aliases costs nothing
here; what it costs to write is measured where it is written.
"""

import re
from collections.abc import Callable
from typing import Any

from belljar.bin.jq.values import to_text
from belljar.bin.yq.nodes import Document, Node, YamlError
from belljar.bin.yq.scalars import resolve

MAX_DEPTH = 500
BLANKS = re.compile(r"[ \t]*")
COMMENT = re.compile(r"[ \t]*(#[^\n]*)")
NAME = re.compile(r"[^\s,\[\]{}]+")
TAG = re.compile(r"!(?:<[^>]*>|[^\s,\[\]{}]*)")
MARKER = re.compile(r"(?:---|\.\.\.)(?=\s|\Z)")
PLAIN_BLOCK = re.compile(r"(?:[^\s:#]|:(?=\S)|(?<=\S)\#|[ \t]+(?=[^\s#:]|:\S))+")
PLAIN_FLOW = re.compile(r"(?:[^\s:#,\[\]{}]|:(?=[^\s,\[\]{}])|(?<=\S)\#|[ \t]+(?=[^\s#:,\[\]{}]))+")
SIMPLE_ESCAPES = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    " ": " ",
    '"': '"',
    "/": "/",
    "\\": "\\",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}
ESCAPE = re.compile(r"\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|(\n[ \t]*)|(.))", re.DOTALL)


def read_documents(text: str, charge: Callable[[int], None]) -> list[Document]:
    """All documents of a stream. YamlError if it is not YAML."""
    text = text.removeprefix("\ufeff").replace("\r\n", "\n")
    charge(len(text) >> 6)
    return Reader(text, charge).stream()


class Reader:
    def __init__(self, text: str, charge: Callable[[int], None]) -> None:
        self.text = text
        self.charge = charge
        self.position = 0
        self.depth = 0
        self.anchors: dict[str, Node] = {}
        self.comments: list[str] = []
        self.document = Document(Node(None))

    # The stream

    def stream(self) -> list[Document]:
        documents: list[Document] = []
        while True:
            self.skip()
            explicit = False
            while self.text.startswith("%", self.position) and self.column() == 0:
                self.position = self.line_end()
                self.skip()
            if self.marker("---"):
                self.position += 3
                explicit = True
            elif self.position >= len(self.text):
                if not documents and self.comments:
                    self.document.root.head = self.comments
                    documents.append(self.document)
                return documents
            self.anchors = {}
            self.document = Document(Node(None), explicit)
            node = self.block(-1)
            self.document.root = node
            documents.append(self.document)
            self.skip()
            node.foot = self.comments
            self.comments = []
            while self.marker("..."):
                self.position += 3
                self.skip()
            if self.position < len(self.text) and not self.marker("---"):
                raise self.error("did not find expected <document start>")

    def error(self, message: str) -> YamlError:
        return YamlError(f"yaml: line {self.text.count(chr(10), 0, self.position) + 1}: {message}")

    # Positions

    def column(self) -> int:
        return self.position - self.text.rfind("\n", 0, self.position) - 1

    def line_end(self) -> int:
        end = self.text.find("\n", self.position)
        return end if end >= 0 else len(self.text)

    def marker(self, mark: str) -> bool:
        return (
            self.column() == 0
            and self.text.startswith(mark, self.position)
            and bool(MARKER.match(self.text, self.position))
        )

    def peek(self, ahead: int = 0) -> str:
        return self.text[self.position + ahead : self.position + ahead + 1]

    def skip(self) -> None:
        """Skip to the next token, over blank lines and comments, which are kept for it."""
        text = self.text
        while True:
            self.position = BLANKS.match(text, self.position).end()  # type: ignore[union-attr]
            ch = self.peek()
            if ch == "#":
                end = self.line_end()
                self.comments.append(text[self.position : end].rstrip())
                self.position = end
            elif ch == "\n":
                self.position += 1
                after = BLANKS.match(text, self.position).end()  # type: ignore[union-attr]
                if self.comments and text[after : after + 1] == "\n" and self.comments[-1]:
                    self.comments.append("")
            else:
                return

    def take_comments(self) -> list[str]:
        comments, self.comments = self.comments, []
        return comments

    def end_of_line(self, node: Node) -> None:
        """Take the comment on a value's line as its own."""
        match = COMMENT.match(self.text, self.position)
        if match is not None:
            node.line = match.group(1).rstrip()
            self.position = match.end()

    def enter(self) -> None:
        self.depth += 1
        self.charge(1)
        if self.depth > MAX_DEPTH:
            raise self.error("exceeded max depth of nested collections")

    # Block nodes

    def block(self, indent: int, after_key: bool = False) -> Node:
        """The node whose lines are indented more than `indent`; a null if there is none."""
        began = self.position
        self.end_of_line(carrier := Node(None))
        self.skip()
        anchor, tag = self.properties()
        if anchor or tag:
            self.end_of_line(carrier)
            self.skip()
        node = self.bare_block(indent, after_key, began)
        if carrier.line and not node.line:
            node.line = carrier.line
        if tag:
            self.apply_tag(node, tag)
        if anchor:
            node.anchor = anchor
            self.anchors[anchor] = node
        return node

    def bare_block(self, indent: int, after_key: bool, began: int) -> Node:
        column, ch = self.column(), self.peek()
        at_end = self.position >= len(self.text) or self.marker("---") or self.marker("...")
        dashes = ch == "-" and self.peek(1) in ("", " ", "\n", "\t")
        # A sequence may stand at its key's own indentation.
        beside_key = after_key and dashes and column == indent
        if at_end or (column <= indent and not beside_key):
            return Node(None)
        head = self.take_comments()
        if dashes:
            node = self.sequence(column)
        elif ch in "|>":
            node = self.block_scalar(indent)
        else:
            same_line = after_key and self.text.find("\n", began, self.position) < 0
            node = self.mapping_or_scalar(indent, column, same_line)
        node.head = head + node.head
        return node

    def properties(self) -> tuple[str, str]:
        anchor = tag = ""
        while True:
            ch = self.peek()
            if ch == "&" and not anchor:
                match = NAME.match(self.text, self.position + 1)
                if match is None:
                    raise self.error("did not find expected alphabetic or numeric character")
                anchor = match.group()
            elif ch == "!" and not tag:
                match = TAG.match(self.text, self.position)
                assert match is not None
                tag = match.group()
            else:
                return anchor, tag
            self.position = BLANKS.match(self.text, match.end()).end()  # type: ignore[union-attr]

    def apply_tag(self, node: Node, tag: str) -> None:
        node.tag = tag
        value = node.value
        if tag in ("!!str", "!") and not isinstance(value, str | list | dict):
            node.value = node.text if value is not None or node.text else ""
        elif tag in ("!!int", "!!float", "!!bool", "!!null") and isinstance(value, str):
            node.value = resolve(value)

    def sequence(self, column: int) -> Node:
        self.enter()
        items: list[Any] = []
        node = Node(items)
        while True:
            head = self.take_comments()
            self.position += 1
            child = self.block(column)
            child.head = head + child.head
            node.children[len(items)] = child
            items.append(child.value)
            self.skip()
            if not (self.column() == column and self.peek() == "-" and self.peek(1) in ("", " ", "\n", "\t")):
                break
            if self.marker("---"):
                break
        self.after(column)
        self.remember(node)
        return node

    def after(self, column: int) -> None:
        self.depth -= 1
        if self.position < len(self.text) and self.column() > column and self.peek() not in ("", "\n"):
            raise self.error("did not find expected key or item: bad indentation")

    def mapping_or_scalar(self, indent: int, column: int, same_line: bool) -> Node:
        start = self.position
        if self.peek() == "?" and self.peek(1) in ("", " ", "\n"):
            return self.mapping(column)
        key = self.key()
        if key is not None:
            if same_line:
                raise self.error("mapping values are not allowed in this context")
            self.position = start
            return self.mapping(column)
        self.position = start
        ch = self.peek()
        if ch in "[{":
            node = self.flow()
        elif ch in "\"'":
            node = self.quoted()
        elif ch == "*":
            node = self.alias()
        else:
            return self.plain(indent)
        self.end_of_line(node)
        if self.peek() not in ("", "\n"):
            raise self.error("did not find expected end of line")
        return node

    def key(self) -> Node | None:
        """The implicit key that begins here, up to its colon; None if what begins here is no key."""
        start = self.position
        anchor, tag = self.properties()
        ch = self.peek()
        line_end = self.line_end()
        if ch in "\"'":
            try:
                node = self.quoted()
            except YamlError:
                self.position = start
                return None
        elif ch == "*":
            node = self.alias()
        elif ch in "[{":
            try:
                node = self.flow()
            except YamlError:
                self.position = start
                return None
        else:
            match = PLAIN_BLOCK.match(self.text, self.position)
            if match is None or ch in "|>@`%":
                node = Node(None) if ch == ":" else Node(None, text="\0")
                if ch != ":":
                    self.position = start
                    return None
            else:
                text = match.group()
                node = Node(resolve(text), text=text)
                self.position = match.end()
        self.position = BLANKS.match(self.text, self.position).end()  # type: ignore[union-attr]
        if self.position > line_end or self.peek() != ":" or self.peek(1) not in ("", " ", "\n", "\t"):
            self.position = start
            return None
        self.position += 1
        node.anchor, node.tag = anchor, tag
        if anchor:
            self.anchors[anchor] = node
        return node

    def mapping(self, column: int) -> Node:
        self.enter()
        members: dict[str, Any] = {}
        node = Node(members)
        merges: list[Any] = []
        while True:
            head = self.take_comments()
            if self.peek() == "?" and self.peek(1) in ("", " ", "\n"):
                self.position += 1
                key = self.block(column)
                self.skip()
                child = Node(None)
                if self.peek() == ":" and self.column() == column:
                    self.position += 1
                    child = self.block(column)
            else:
                found = self.key()
                if found is None:
                    raise self.error("could not find expected ':'")
                key = found
                child = self.block(column, after_key=True)
            key.head = head
            self.member(node, members, merges, key, child)
            self.skip()
            if self.position >= len(self.text) or self.column() != column or self.marker("---") or self.marker("..."):
                break
        self.merge(members, merges)
        self.after(column)
        self.remember(node)
        return node

    def member(self, node: Node, members: dict[str, Any], merges: list[Any], key: Node, child: Node) -> None:
        if key.text == "<<" and not key.style:
            merges.append(child.value)
            node.keys[f"<<{len(merges)}"] = key
            node.children[f"<<{len(merges)}"] = child
            return
        name = key.value if isinstance(key.value, str) else key.text or to_text(key.value)
        if name in members and name in node.keys:
            raise self.error(f'mapping key "{name}" already defined')
        members[name] = child.value
        node.keys[name] = key
        node.children[name] = child

    def merge(self, members: dict[str, Any], merges: list[Any]) -> None:
        for source in merges:
            for part in source if isinstance(source, list) else [source]:
                if not isinstance(part, dict):
                    raise self.error("map merge requires map or sequence of maps as the value")
                self.charge(len(part))
                for name, value in part.items():
                    members.setdefault(name, value)

    def remember(self, node: Node) -> None:
        self.document.by_id[id(node.value)] = node

    # Scalars

    def alias(self) -> Node:
        match = NAME.match(self.text, self.position + 1)
        name = match.group() if match is not None else ""
        if name.endswith(":"):
            name = name[:-1]
        target = self.anchors.get(name)
        if match is None or target is None:
            raise self.error(f"unknown anchor '{name}' referenced")
        self.position += 1 + len(name)
        return Node(target.value, alias=name, text=target.text)

    def plain(self, indent: int) -> Node:
        lines: list[str] = []
        node = Node(None)
        blank = 0
        folded = ""
        while True:
            match = PLAIN_BLOCK.match(self.text, self.position)
            if match is None or (not lines and match.group()[0] in "@`%,]}"):
                if not lines:
                    raise self.error(f"found character that cannot start any token: {self.peek()!r}")
                break
            lines.append(match.group())
            folded = folded + ("\n" * blank if blank else " " if folded else "") + match.group() if folded else lines[0]
            self.position = match.end()
            if COMMENT.match(self.text, self.position) and self.peek() != "#":
                self.end_of_line(node)
                break
            if self.peek() == ":":
                raise self.error("mapping values are not allowed in this context")
            saved, blank = self.position, -1
            ended = False
            while not ended:
                self.position = BLANKS.match(self.text, self.position).end()  # type: ignore[union-attr]
                if self.peek() == "\n":
                    blank += 1
                    self.position += 1
                else:
                    ended = True
            if (
                self.position >= len(self.text)
                or self.column() <= indent
                or self.peek() == "#"
                or self.marker("---")
                or self.marker("...")
                or self.key_ahead()
            ):
                self.position = saved
                break
        node.text = folded
        node.value = resolve(folded) if len(lines) == 1 else folded
        if len(lines) > 1:
            node.text = ""
        return node

    def key_ahead(self) -> bool:
        """A continuation line that looks like a key: the scalar before it was mis-indented."""
        start = self.position
        found = self.key() is not None
        self.position = start
        if found:
            raise self.error("mapping values are not allowed in this context")
        return False

    def quoted(self) -> Node:
        quote = self.peek()
        start = self.position + 1
        if quote == "'":
            match = re.compile(r"(?:[^']|'')*'").match(self.text, start)
        else:
            match = re.compile(r'(?:[^"\\]|\\.)*"', re.DOTALL).match(self.text, start)
        if match is None:
            raise self.error("found unexpected end of stream in a quoted scalar")
        self.position = match.end()
        body = match.group()[:-1]
        if quote == "'":
            return Node(fold_lines(body).replace("''", "'"), "single")
        return Node(self.unescape(body), "double")

    def unescape(self, body: str) -> str:
        if "\n" in body:
            body = fold_lines(body)
        if "\\" not in body:
            return body

        def one(match: "re.Match[str]") -> str:
            code = match.group(1) or match.group(2) or match.group(3)
            if code:
                point = int(code, 16)
                return chr(point) if point < 0x110000 and not 0xD800 <= point < 0xE000 else "\ufffd"
            if match.group(4) is not None:
                return ""
            letter = match.group(5)
            if letter not in SIMPLE_ESCAPES:
                raise self.error("found unknown escape character")
            return SIMPLE_ESCAPES[letter]

        return ESCAPE.sub(one, body)

    def block_scalar(self, indent: int) -> Node:
        style = "literal" if self.peek() == "|" else "folded"
        header = re.compile(r"[|>]([-+]?)([1-9]?)([-+]?)[ \t]*(#[^\n]*)?(?=\n|\Z)").match(self.text, self.position)
        if header is None:
            raise self.error("did not find expected comment or line break")
        chomp = header.group(1) or header.group(3)
        self.position = header.end() + (header.end() < len(self.text))
        parent = max(indent, 0) if indent >= 0 else 0
        width = parent + int(header.group(2)) if header.group(2) else 0
        lines: list[str] = []
        while self.position < len(self.text):
            end = self.line_end()
            line = self.text[self.position : end]
            stripped = line.lstrip(" ")
            spaces = len(line) - len(stripped)
            if not stripped:
                lines.append(line[width:] if width else "")
            else:
                if not width:
                    if spaces <= indent:
                        break
                    width = spaces
                if spaces < width or (spaces == 0 and MARKER.match(line)):
                    break
                lines.append(line[width:])
            self.position = min(end + 1, len(self.text))
        trailing = 0
        while lines and not lines[-1]:
            lines.pop()
            trailing += 1
        body = "\n".join(lines) if style == "literal" else fold_block(lines)
        if chomp == "+":
            body += "\n" * (trailing + bool(lines))
        elif chomp != "-" and lines:
            body += "\n"
        # The newline that ended it stays, so that what follows starts a line.
        return Node(body, style, line=(header.group(4) or "").rstrip())

    # Flow collections

    def flow_skip(self) -> None:
        while True:
            self.position = re.compile(r"\s*").match(self.text, self.position).end()  # type: ignore[union-attr]
            if self.peek() != "#":
                return
            self.position = self.line_end()

    def flow(self) -> Node:
        ch = self.peek()
        anchor, tag = self.properties()
        if anchor or tag:
            self.flow_skip()
            ch = self.peek()
        if ch == "[":
            node = self.flow_sequence()
        elif ch == "{":
            node = self.flow_mapping()
        elif ch in "\"'" and ch:
            node = self.quoted()
        elif ch == "*":
            node = self.alias()
        else:
            match = PLAIN_FLOW.match(self.text, self.position)
            if match is None:
                if ch in (",", "]", "}", ":"):
                    node = Node(None)
                else:
                    raise self.error("did not find expected node content")
            else:
                self.position = match.end()
                node = Node(resolve(match.group()), text=match.group())
        if tag:
            self.apply_tag(node, tag)
        if anchor:
            node.anchor = anchor
            self.anchors[anchor] = node
        return node

    def flow_sequence(self) -> Node:
        self.enter()
        items: list[Any] = []
        node = Node(items, "flow")
        self.position += 1
        while True:
            self.flow_skip()
            if self.peek() == "]":
                break
            child = self.flow()
            self.flow_skip()
            if self.peek() == ":":
                self.position += 1
                self.flow_skip()
                inner = self.flow()
                single = {child.value if isinstance(child.value, str) else child.text: inner.value}
                child = Node(single, "flow", children={next(iter(single)): inner}, keys={next(iter(single)): child})
                self.flow_skip()
            node.children[len(items)] = child
            items.append(child.value)
            if self.peek() == ",":
                self.position += 1
            elif self.peek() != "]":
                raise self.error("did not find expected ',' or ']'")
        self.position += 1
        self.depth -= 1
        self.remember(node)
        return node

    def flow_mapping(self) -> Node:
        self.enter()
        members: dict[str, Any] = {}
        merges: list[Any] = []
        node = Node(members, "flow")
        self.position += 1
        while True:
            self.flow_skip()
            if self.peek() == "}":
                break
            key = self.flow()
            self.flow_skip()
            child = Node(None)
            if self.peek() == ":":
                self.position += 1
                self.flow_skip()
                child = self.flow()
                self.flow_skip()
            self.member(node, members, merges, key, child)
            if self.peek() == ",":
                self.position += 1
            elif self.peek() != "}":
                raise self.error("did not find expected ',' or '}'")
        self.position += 1
        self.merge(members, merges)
        self.depth -= 1
        self.remember(node)
        return node


def fold_lines(body: str) -> str:
    """A quoted scalar's line breaks: one is a space, more are one less."""
    if "\n" not in body:
        return body
    lines = body.split("\n")
    result = lines[0].rstrip(" \t")
    blank = 0
    for place, line in enumerate(lines[1:], 1):
        stripped = line.lstrip(" \t") if place == len(lines) - 1 else line.strip(" \t")
        if not stripped and place < len(lines) - 1:
            blank += 1
            continue
        if result.endswith("\\") and not blank:
            result = result[:-1] + stripped
        else:
            result += ("\n" * blank if blank else " ") + stripped
        blank = 0
    return result


def fold_block(lines: list[str]) -> str:
    """A folded block scalar: neighbouring lines join, those indented further do not."""
    result, blank, previous = "", 0, ""
    for place, line in enumerate(lines):
        if not line:
            blank += 1
            continue
        if place == 0 or (not result and not blank):
            result += line
        elif line[0] in " \t" or previous[:1] in (" ", "\t"):
            result += "\n" * (blank + 1) + line
        else:
            result += ("\n" * blank if blank else " ") + line
        blank, previous = 0, line
    return result
