"""XML documents as trees: read without ever expanding an entity or opening another file, and written back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from xml.parsers import expat

from belljar.abi.dataclass import dataclass, field
from belljar.kernel.budget import Budget

DEPTH_MAX: Final = 256
"""How deep elements may nest, as in libxml2."""
_BLANK: Final = re.compile(r"[ \t\r\n]*")


class XmlError(Exception):
    """An error in a document, with its position."""

    def __init__(self, message: str, line: int, column: int) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


@dataclass(eq=False, slots=True)
class Node:
    """Anything in a document; `order` is its place in it."""

    parent: Element | None = None
    order: tuple[int, int] = (0, 0)


@dataclass(eq=False, slots=True)
class Text(Node):
    value: str = ""
    is_cdata: bool = False


@dataclass(eq=False, slots=True)
class Comment(Node):
    value: str = ""


@dataclass(eq=False, slots=True)
class Instruction(Node):
    name: str = ""
    value: str = ""


@dataclass(eq=False, slots=True)
class Attribute(Node):
    name: str = ""
    value: str = ""


@dataclass(eq=False, slots=True)
class Element(Node):
    """An element; the document itself is one without a name."""

    name: str = ""
    attributes: list[Attribute] = field(default_factory=list)
    children: list[Node] = field(default_factory=list)
    line: int = 0
    default_namespace: str = ""

    @property
    def namespace(self) -> str:
        """That of an element without prefix; a prefixed one is told by its prefix."""
        return "" if ":" in self.name else self.default_namespace


@dataclass(eq=False, slots=True)
class Document(Element):
    version: str = "1.0"
    encoding: str | None = None
    standalone: int = -1
    doctype: str | None = None


class Reader:
    """Builds a tree from what the parser reports."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self._count = 0
        self._cdata = False
        self.document = Document()
        self.open: list[Element] = [self.document]
        parser = self.parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.ordered_attributes = True
        parser.XmlDeclHandler = self._declaration
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = self._entity
        parser.StartElementHandler = self._start
        parser.EndElementHandler = self._end
        parser.CharacterDataHandler = self._text
        parser.CommentHandler = lambda text: self._add(Comment(value=text))
        parser.ProcessingInstructionHandler = lambda name, text: self._add(Instruction(name=name, value=text))
        parser.StartCdataSectionHandler = lambda: self._in_cdata(True)
        parser.EndCdataSectionHandler = lambda: self._in_cdata(False)

    def _fail(self, message: str) -> XmlError:
        return XmlError(message, self.parser.CurrentLineNumber, self.parser.CurrentColumnNumber)

    def _declaration(self, version: str, encoding: str | None, standalone: int) -> None:
        self.document.version, self.document.encoding, self.document.standalone = version, encoding, standalone

    def _doctype(self, name: str, system: str | None, public: str | None, _has_subset: bool) -> None:
        where = f' PUBLIC "{public}" "{system}"' if public else f' SYSTEM "{system}"' if system else ""
        self.document.doctype = f"<!DOCTYPE {name}{where}>"

    def _entity(self, name: str, *_: object) -> None:
        raise self._fail(f"Entity '{name}' declared: entities are not expanded here")

    def _place(self, node: Node) -> None:
        self._budget.charge()
        self._count += 1
        node.order = (self._count, 0)
        node.parent = self.open[-1]

    def _add(self, node: Node) -> None:
        self._place(node)
        self.open[-1].children.append(node)

    def _start(self, name: str, attributes: list[str]) -> None:
        if len(self.open) > DEPTH_MAX:
            raise self._fail(f"Excessive depth in document: {DEPTH_MAX} use XML_PARSE_HUGE option")
        element = Element(name=name, line=self.parser.CurrentLineNumber)
        self._add(element)
        element.default_namespace = self.open[-1].default_namespace
        for place, key in enumerate(attributes[::2]):
            value = attributes[2 * place + 1]
            if key == "xmlns":
                element.default_namespace = value
            element.attributes.append(Attribute(element, (self._count, place + 1), key, value))
        self.open.append(element)

    def _end(self, _name: str) -> None:
        self.open.pop()

    def _in_cdata(self, inside: bool) -> None:
        self._cdata = inside
        if inside:
            self._add(Text(value="", is_cdata=True))

    def _text(self, text: str) -> None:
        children = self.open[-1].children
        last = children[-1] if children else None
        if isinstance(last, Text) and last.is_cdata is self._cdata:
            last.value += text
        elif len(self.open) > 1:
            self._add(Text(value=text, is_cdata=self._cdata))


def parse(data: bytes, budget: Budget) -> Document:
    """XmlError."""
    reader = Reader(budget)
    try:
        reader.parser.Parse(data, True)
    except expat.ExpatError as error:
        raise XmlError(_message(error, reader, data), error.lineno, error.offset) from None
    return reader.document


def _message(error: expat.ExpatError, reader: Reader, data: bytes) -> str:
    """libxml2's words for the mistakes people make."""
    inner = reader.open[-1]
    rest = data.splitlines()[error.lineno - 1][error.offset :] if error.lineno <= len(data.splitlines()) else b""
    match error.code:
        case 3:
            if inner is reader.document:
                return "Document is empty" if not inner.children else "Start tag expected, '<' not found"
            return f"Premature end of data in tag {inner.name} line {inner.line}"
        case 7:
            found = re.match(rb"</?([^>\s]*)", rest)
            name = found[1].decode("utf-8", "replace") if found else rest.partition(b">")[0].decode("utf-8", "replace")
            return f"Opening and ending tag mismatch: {inner.name} line {inner.line} and {name}"
        case 9:
            return "Extra content at the end of the document"
        case 11:
            found = re.match(rb"&([^;]*);", rest)
            return f"Entity '{found[1].decode('utf-8', 'replace') if found else ''}' not defined"
        case 2:
            return "Start tag expected, '<' not found" if inner is reader.document else "StartTag: invalid element name"
        case 8:
            return "Attribute redefined"
    return expat.ErrorString(error.code)


def drop_blanks(element: Element) -> None:
    """Forget white space that only lays out the text, as libxml2 tells it from the rest."""
    kept: list[Node] = []
    for node in element.children:
        if isinstance(node, Element):
            drop_blanks(node)
        elif (
            isinstance(node, Text)
            and not node.is_cdata
            and _BLANK.fullmatch(node.value)
            and len(element.children) > 1
            and not (kept and (isinstance(kept[0], Text) or isinstance(kept[-1], Text)))
        ):
            continue
        kept.append(node)
    element.children = kept


def escape(text: str, *, attribute: bool, plain: bool) -> str:
    text = text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;").replace("\r", "&#13;")
    if attribute:
        text = text.replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
    if plain or text.isascii():
        return text
    return "".join(char if char < "\x80" else f"&#x{ord(char):X};" for char in text)


def write(node: Node, *, indent: str | None, level: int = 0, plain: bool = True) -> Iterator[str]:
    """The text of a node; `plain` leaves characters outside ASCII as they are."""
    match node:
        case Text():
            yield f"<![CDATA[{node.value}]]>" if node.is_cdata else escape(node.value, attribute=False, plain=plain)
        case Comment():
            yield f"<!--{node.value}-->"
        case Instruction():
            yield f"<?{node.name} {node.value}?>" if node.value else f"<?{node.name}?>"
        case Attribute():
            yield f' {node.name}="{escape(node.value, attribute=True, plain=plain)}"'
        case Element():
            yield f"<{node.name}"
            for attribute in node.attributes:
                yield from write(attribute, indent=None, plain=plain)
            if not node.children:
                yield "/>"
                return
            yield ">"
            if any(isinstance(child, Text) for child in node.children):
                indent = None
            for child in node.children:
                if indent is not None:
                    yield "\n" + indent * (level + 1)
                yield from write(child, indent=indent, level=level + 1, plain=plain)
            if indent is not None:
                yield "\n" + indent * level
            yield f"</{node.name}>"


def write_document(document: Document, *, indent: str | None) -> bytes:
    """All of a document, in the encoding it declares."""
    encoding = document.encoding
    declared = f' encoding="{encoding}"' if encoding else ""
    alone = "" if document.standalone < 0 else f' standalone="{"yes" if document.standalone else "no"}"'
    parts = [f'<?xml version="{document.version}"{declared}{alone}?>\n']
    if document.doctype is not None:
        parts.append(document.doctype + "\n")
    for child in document.children:
        parts += [*write(child, indent=indent, plain=encoding is not None), "\n"]
    try:
        return "".join(parts).encode(encoding or "utf-8", "xmlcharrefreplace")
    except LookupError:
        return "".join(parts).encode()
