"""jq's JSON parser proper: its leniences (nan, 01, +1), its depth limit, its messages and its event streams."""

import re
from collections.abc import Iterator
from math import inf
from typing import Any

from belljar.bin.jq.numbers import INFINITE, NAN, NUMERIC, Number, parse_literal

MAX_PARSING_DEPTH = 10_000
PLAIN = re.compile(r"[^\[\]{},:\"\s\x1e]+")
SPACE = re.compile(r"[ \t\r\n]+")
STRING = re.compile(r'[^"\\]*(?:\\.[^"\\]*)*"', re.DOTALL)
ESCAPE = re.compile(r"\\(u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u.{0,4}|.|$)", re.DOTALL)
SIMPLE = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
CONTROL = re.compile(r"[\x00-\x1f]")
ABSENT: Any = object()


class ParseError(Exception):
    """The text is not JSON; the message says where."""


class Complaint(Exception):
    """A syntax error whose position is not known yet."""


def string_value(body: str) -> str:
    """The string a JSON string's inside stands for."""
    if CONTROL.search(body):
        raise Complaint("Invalid string: control characters from U+0000 through U+001F must be escaped")
    return unescape(body)


def unescape(body: str) -> str:
    """Text with its backslash escapes resolved."""
    return ESCAPE.sub(_unescape_one, body) if "\\" in body else body


def _unescape_one(match: "re.Match[str]") -> str:
    code = match.group(1)
    if not code:
        raise Complaint("Expected escape character at end of string")
    if code[0] != "u":
        try:
            return SIMPLE[code]
        except KeyError:
            raise Complaint("Invalid escape") from None
    if len(code) > 5:
        return chr(0x10000 + ((int(code[1:5], 16) & 0x3FF) << 10 | int(code[7:11], 16) & 0x3FF))
    if len(code) < 5:
        raise Complaint("Invalid \\uXXXX escape")
    try:
        point = int(code[1:], 16)
    except ValueError:
        raise Complaint("Invalid characters in \\uXXXX escape") from None
    return "\ufffd" if 0xD800 <= point < 0xE000 else chr(point)


def literal(word: str) -> Any:
    """The value of a bare word."""
    first = word[0]
    if first == "'":
        raise Complaint("Invalid string literal; expected \", but got '")
    if first == "t" or first == "f" or (first == "n" and word != "nan"):
        known = {"t": "true", "f": "false", "n": "null"}[first]
        if word != known:
            raise Complaint("Invalid literal")
        return {"t": True, "f": False, "n": None}[first]
    if NUMERIC.fullmatch(word):
        return parse_literal(word)
    bare = word.lstrip("-+") if word[:2] not in ("--", "++", "+-", "-+") else word
    if bare.lower() == "nan":
        return NAN
    if bare.lower() in ("infinity", "inf"):
        return Number(-inf) if first == "-" else INFINITE
    raise Complaint("Invalid numeric literal")


LONG_TOKEN = 1 << 16


class ExactParser:
    """Feeds on text, yields values."""

    def __init__(self, line: int = 1, column: int = 0) -> None:
        self.line = line
        self.column = column
        self._rest: list[str] = []
        self.held = 0
        """Characters of a token that is not complete yet."""
        self._try_at = 0
        self._started = line != 1 or column != 0
        self.reset()

    def reset(self) -> None:
        self.stack: list[Any] = []
        self.next: Any = ABSENT

    def feed(self, text: str, ended: bool = False) -> Iterator[Any]:
        if not self._started and text:
            self._started = True
            if text[0] == "\ufeff":
                text = text[1:]
        self._rest.append(text)
        self.held += len(text)
        if self.held < self._try_at and not ended:
            return
        text = "".join(self._rest)
        self._hold("")
        position, size = 0, len(text)
        while position < size:
            ch = text[position]
            token = SPACE.match(text, position)
            if token is not None:
                self._move(token.group())
                position = token.end()
                yield from self._flush()
                continue
            if ch == '"':
                token = STRING.match(text, position + 1)
                if token is None:
                    if not ended:
                        self._hold(text[position:])
                        return
                    self._move(text[position:])
                    raise ParseError(f"Unfinished string at EOF at line {self.line}, column {self.column}")
                yield from self._flush()
                self._move(text[position : token.end()])
                try:
                    self.value(string_value(token.group()[:-1]))
                except Complaint as complaint:
                    raise self._located(complaint) from None
                position = token.end()
                continue
            if ch in "[]{},:":
                self._move(ch)
                position += 1
                if ch in "[{":
                    yield from self._flush()
                try:
                    self.structure(ch)
                except Complaint as complaint:
                    raise self._located(complaint) from None
                yield from self._events()
                continue
            token = PLAIN.match(text, position)
            if token is None:
                self._move(ch)
                raise self._located(Complaint("Invalid numeric literal"))
            if token.end() == size and not ended:
                self._hold(text[position:])
                return
            yield from self._flush()
            self._move(token.group())
            position = token.end()
            try:
                self.value(literal(token.group()))
            except Complaint as complaint:
                # jq judges a word when it meets the character after it.
                if position < size:
                    self._move(text[position])
                    raise self._located(complaint) from None
                raise ParseError(f"{complaint} at EOF at line {self.line}, column {self.column}") from None
        if not self.stack:
            yield from self._flush()

    def _hold(self, text: str) -> None:
        """Keep a token's beginning; it is looked at again when it has doubled, so that long ones take linear time."""
        self._rest = [text] if text else []
        self.held = len(text)
        self._try_at = 2 * len(text) if len(text) >= LONG_TOKEN else 0

    def close(self) -> Iterator[Any]:
        if self._rest:
            yield from self.feed("", ended=True)
        if self.stack:
            self.reset()
            raise ParseError(f"Unfinished JSON term at EOF at line {self.line}, column {self.column}")
        yield from self._flush()

    def _move(self, text: str) -> None:
        newlines = text.count("\n")
        if newlines:
            self.line += newlines
            self.column = len(text) - text.rfind("\n") - 1
        else:
            self.column += len(text)

    def _located(self, complaint: Complaint) -> ParseError:
        self.reset()
        return ParseError(f"{complaint} at line {self.line}, column {self.column}")

    def _flush(self) -> Iterator[Any]:
        if self.next is not ABSENT and not self.stack:
            value, self.next = self.next, ABSENT
            yield value

    def _events(self) -> Iterator[Any]:
        return self._flush()

    def value(self, value: Any) -> None:
        if self.next is not ABSENT:
            raise Complaint("Expected separator between values")
        self.next = value

    def structure(self, ch: str) -> None:
        """One of `[]{},:`, with jq's opinion of it. The stack holds containers and pending keys."""
        stack = self.stack
        if ch in "[{":
            if len(stack) >= MAX_PARSING_DEPTH:
                raise Complaint("Exceeds depth limit for parsing")
            if self.next is not ABSENT:
                raise Complaint("Expected separator between values")
            stack.append([] if ch == "[" else {})
            return
        top = stack[-1] if stack else ABSENT
        if ch == ":":
            if self.next is ABSENT:
                raise Complaint("Expected string key before ':'")
            if top.__class__ is not dict:
                raise Complaint("':' not as part of an object")
            if self.next.__class__ is not str:
                raise Complaint("Object keys must be strings")
            stack.append(self.next)
            self.next = ABSENT
        elif ch == ",":
            if self.next is ABSENT:
                raise Complaint("Expected value before ','")
            if top is ABSENT:
                raise Complaint("',' not as part of an object or array")
            if top.__class__ is dict:
                raise Complaint("Objects must consist of key:value pairs")
            self._store()
        elif ch == "]":
            if top.__class__ is not list:
                raise Complaint("Unmatched ']'")
            if self.next is not ABSENT:
                self._store()
            elif top:
                raise Complaint("Expected another array element")
            self.next = stack.pop()
        else:
            if top is ABSENT:
                raise Complaint("Unmatched '}'")
            if self.next is not ABSENT:
                if top.__class__ is not str:
                    raise Complaint("Objects must consist of key:value pairs")
                self._store()
            elif top.__class__ is not dict:
                raise Complaint("Unmatched '}'")
            elif top:
                raise Complaint("Expected another key-value pair")
            self.next = stack.pop()

    def _store(self) -> None:
        stack = self.stack
        if stack[-1].__class__ is list:
            stack[-1].append(self.next)
        else:
            key = stack.pop()
            stack[-1][key] = self.next
        self.next = ABSENT


class EventParser(ExactParser):
    """`--stream`: yields `[path, leaf]` and `[path]` events while it reads, never a whole document."""

    def reset(self) -> None:
        super().reset()
        self.path: list[Any] = []
        self.last: list[str] = []
        """For each open container: "" nothing yet, "v" a value was emitted, ":" a key waits for its value."""
        self.pending: list[Any] = []

    def value(self, value: Any) -> None:
        if self.next is not ABSENT:
            raise Complaint("Expected separator between values")
        self.next = value

    def structure(self, ch: str) -> None:
        path, last = self.path, self.last
        if ch in "[{":
            if len(path) >= MAX_PARSING_DEPTH:
                raise Complaint("Exceeds depth limit for parsing")
            if self.next is not ABSENT:
                raise Complaint("Expected a separator between values")
            if path and path[-1].__class__ is not int and last[-1] != ":":
                raise Complaint(f"Expected string key after '{'{' if not last[-1] else ','}', not '{ch}'")
            path.append(0 if ch == "[" else None)
            last.append("")
            self.stack.append(ch)
            return
        if ch == ":":
            if not path or path[-1].__class__ is int:
                raise Complaint("':' not as part of an object")
            if self.next is ABSENT or last[-1] == ":":
                raise Complaint("Expected string key before ':'")
            if self.next.__class__ is not str:
                raise Complaint("Object keys must be strings")
            path[-1], self.next = self.next, ABSENT
            last[-1] = ":"
        elif ch == ",":
            if not path:
                raise Complaint("',' not as part of an object or array")
            self._leaf(ch)
        else:
            self._close(ch)

    def _leaf(self, ch: str) -> None:
        path, last = self.path, self.last
        if path[-1].__class__ is int:
            if self.next is not ABSENT:
                self.pending.append([list(path), self.next])
            elif last[-1] != "v":
                raise Complaint("Expected value before ','")
            path[-1] += 1
        else:
            if self.next is not ABSENT:
                if last[-1] != ":":
                    raise Complaint("Objects must consist of key:value pairs")
                self.pending.append([list(path), self.next])
            elif last[-1] != "v":
                raise Complaint("Expected value before ','")
        self.next = ABSENT
        last[-1] = ","

    def _close(self, ch: str) -> None:
        path, last = self.path, self.last
        if not path:
            raise Complaint(f"Unmatched '{ch}' at the top-level")
        array = path[-1].__class__ is int
        if array != (ch == "]"):
            raise Complaint(f"Unmatched '{ch}' in the middle of an {'array' if array else 'object'}")
        if self.next is not ABSENT:
            if not array and last[-1] != ":":
                raise Complaint("Objects must consist of key:value pairs")
            self.pending.append([list(path), self.next])
            self.next = ABSENT
            self.pending.append([list(path)])
        elif last[-1] == "v":
            self.pending.append([list(path)])
        elif last[-1] == "":
            self.pending.append([path[:-1], [] if array else {}])
        else:
            raise Complaint("Expected another array element" if array else "Expected another key:value pair")
        path.pop()
        last.pop()
        self.stack.pop()
        if path:
            last[-1] = "v"

    def _flush(self) -> Iterator[Any]:
        if self.next is not ABSENT and not self.stack:
            value, self.next = self.next, ABSENT
            yield [[], value]

    def _events(self) -> Iterator[Any]:
        if self.pending:
            events, self.pending = self.pending, []
            yield from events
