"""Reads JSON texts: a C scanner for what is plain JSON, jq's own rules and messages for all else."""

import codecs
import json
import re
from collections.abc import Iterator
from math import inf
from typing import Any

import msgspec

from belljar.bin._kit.cstack import bounded
from belljar.bin.jq.exact import MAX_PARSING_DEPTH, ExactParser, ParseError
from belljar.bin.jq.numbers import INFINITE, NAN, Number, parse_fraction, parse_integer

__all__ = ["Decoder", "ParseError", "parse_one", "parse_whole"]

BLANK = re.compile(r"[ \t\r\n]*")
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
FIRST_TRY = 1 << 16
LONGEST_ESCAPE = 13
CUT_WORD = re.compile(r"\s*[-+.\w]{0,4000}\s*")
BATCH = 256
CONSTANTS = {"NaN": NAN, "Infinity": INFINITE, "-Infinity": Number(-inf)}

_fast = msgspec.json.Decoder(float_hook=parse_fraction)
_scanner = json.JSONDecoder(parse_float=parse_fraction, parse_int=parse_integer, parse_constant=CONSTANTS.__getitem__)
FAILURES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, OverflowError)


def parse_whole(data: bytes) -> list[Any] | None:
    """The one value `data` holds, in a list, if the fast scanner can tell; else None."""
    if b"-0" in data:
        return None
    try:
        return [bounded(MAX_PARSING_DEPTH, _fast.decode, data)]
    except FAILURES:
        return None


def parse_one(text: str) -> Any:
    """`fromjson`: the only value in `text`; ParseError names the text."""
    if "-0" not in text:
        try:
            return bounded(MAX_PARSING_DEPTH, _fast.decode, text)
        except FAILURES:
            pass
    parser = ExactParser()
    try:
        values = [*parser.feed(text), *parser.close()]
    except ParseError as error:
        raise ParseError(f"{error} (while parsing '{text}')") from None
    if len(values) != 1:
        reason = "Unexpected extra JSON values" if values else "Expected JSON value"
        raise ParseError(f"{reason} (while parsing '{text}')")
    return values[0]


class Decoder:
    """Turns chunks of bytes into values as they become complete.

    Text the C scanner refuses goes to `ExactParser`, which stays in charge from there on.
    """

    def __init__(self, exact: ExactParser | None = None) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._try_at = 0
        self._exact = exact
        self._started = False
        self._line = 1
        self._column = 0
        self._before = 0
        self._seen: tuple[str | bytes, int] = ("", 0)

    @property
    def lines(self) -> int:
        """Lines read when the latest value was complete, the one it ends in included."""
        text, end = self._seen
        newline: Any = "\n" if isinstance(text, str) else b"\n"
        rest = text.find(newline, end) >= 0
        return self._before + text.count(newline, 0, end) + rest

    @property
    def held(self) -> int:
        """Characters of a value that is not complete yet."""
        return len(self._text) + (self._exact.held if self._exact is not None else 0)

    def new_file(self) -> None:
        self._before = 0
        self._seen = ("", 0)

    def whole(self, data: bytes) -> Iterator[Any]:
        """The values in a whole file."""
        if not self._text and self._exact is None:
            found = parse_whole(data)
            if found is not None:
                self._seen = (data, len(data))
                self._started = True
                return iter(found)
        return self.feed(data)

    def feed(self, data: bytes, final: bool = False) -> Iterator[Any]:
        text = self._utf8.decode(data, final)
        if not self._started and text:
            self._started = True
            if text[0] == "\ufeff":
                text = text[1:]
        if self._exact is not None:
            yield from self._exactly(text)
            return
        self._text = self._text + text if self._text else text
        if len(self._text) >= self._try_at:
            yield from self._scan(False)

    def close(self) -> Iterator[Any]:
        """The values that only the end of all input completes."""
        yield from self.feed(b"", True)
        if self._exact is None:
            yield from self._scan(True)
        if self._exact is not None:
            yield from self._exact.close()

    def _exactly(self, text: str) -> Iterator[Any]:
        assert self._exact is not None
        before = self._exact.line
        for value in self._exact.feed(text):
            self._seen = ("\n" * max(1, self._exact.line - before), self._exact.line - before)
            yield value
        self._before += text.count("\n")
        self._seen = ("", 0)

    def _scan(self, ended: bool) -> Iterator[Any]:
        text, start = self._text, 0
        doubtful = ESCAPED_SURROGATE.search(text) is not None
        problem: int | None = None
        while problem is None:
            found, start, problem = bounded(MAX_PARSING_DEPTH, scan_batch, text, start)
            for value, end in found:
                self._seen = (text, end)
                if value.__class__ not in (dict, list, str):
                    if end == len(text) and not ended:
                        # More digits may follow.
                        self._keep(text, _start_of(text, end))
                        return
                    if end < len(text) and text[end] not in ' \t\r\n[{"':
                        begin = _start_of(text, end)
                        yield from self._hand_over(text, begin)
                        return
                yield without_surrogates(value) if doubtful else value
        if start == len(text):
            self._keep(text, start)
            self._try_at = 0
        elif not ended and may_be_cut(text, problem):
            self._keep(text, start)
            self._try_at = len(self._text) * 4 if len(self._text) >= FIRST_TRY else 0
        else:
            yield from self._hand_over(text, start)

    def _keep(self, text: str, start: int) -> None:
        """Hold back what begins at `start`, to be read again with more."""
        gone = text[:start]
        newlines = gone.count("\n")
        self._line += newlines
        self._before += newlines
        self._column = len(gone) - gone.rfind("\n") - 1 if newlines else self._column + len(gone)
        self._text = text[start:]
        self._seen = (self._text, 0)

    def _hand_over(self, text: str, start: int) -> Iterator[Any]:
        self._keep(text, start)
        rest, self._text = self._text, ""
        self._exact = ExactParser(line=self._line, column=self._column)
        yield from self._exactly(rest)


def _start_of(text: str, end: int) -> int:
    """Return where the bare word that ends at `end` begins."""
    start = end
    while start and text[start - 1] in "-+.0123456789eEaflnrstuyINi":
        start -= 1
    return start


def scan_batch(text: str, start: int) -> tuple[list[tuple[Any, int]], int, int | None]:
    """Some values from `start` on, where the next would be, and the place of trouble (the end, if it is that)."""
    found: list[tuple[Any, int]] = []
    scan, skip, size = _scanner.raw_decode, BLANK.match, len(text)
    while len(found) < BATCH:
        start = skip(text, start).end()  # type: ignore[union-attr]
        if start == size:
            return found, start, size
        try:
            value, end = scan(text, start)
        except json.JSONDecodeError as error:
            # An unfinished string is reported where it began, an unfinished escape just before the end.
            unfinished = error.msg.startswith("Unterminated") or (
                error.msg.startswith("Invalid \\") and size - error.pos < LONGEST_ESCAPE
            )
            return found, start, size if unfinished else error.pos
        except (ValueError, RecursionError):
            return found, start, start
        found.append((value, end))
        start = end
    return found, start, None


def may_be_cut(text: str, position: int | None) -> bool:
    """True if the scanner's trouble may only be that the text ends too early."""
    return position is not None and CUT_WORD.fullmatch(text, position) is not None


def without_surrogates(value: Any) -> Any:
    """Lone surrogates that `\\ud800` escapes made become U+FFFD."""
    kind = value.__class__
    if kind is str:
        return LONE_SURROGATE.sub("\ufffd", value)
    if kind is list:
        return [without_surrogates(item) for item in value]
    if kind is dict:
        return {without_surrogates(key): without_surrogates(item) for key, item in value.items()}
    return value
