"""Reads JSON texts: a C scanner for what is plain JSON, jq's own rules and messages for all else."""

import codecs
import json
import re
from collections.abc import Callable, Iterator
from typing import Any

import msgspec

from belljar.bin.jq.exact import ExactParser, ParseError
from belljar.bin.jq.numbers import parse_fraction, parse_integer

__all__ = ["Decoder", "ParseError", "parse_one", "parse_whole"]

BLANK = re.compile(r"[ \t\r\n]*")
LONE_SURROGATE = re.compile(r"[\ud800-\udfff]")
ESCAPED_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
FIRST_TRY = 1 << 16
MAX_BUFFER = 1 << 30

_fast = msgspec.json.Decoder(float_hook=parse_fraction)
_scanner = json.JSONDecoder(parse_float=parse_fraction, parse_int=parse_integer, strict=False)
FAILURES = (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, OverflowError)


def parse_whole(data: bytes) -> list[Any] | None:
    """The one value `data` holds, in a list, if the fast scanner can tell; else None."""
    if b"-0" in data:
        return None
    try:
        return [_fast.decode(data)]
    except FAILURES:
        return None


def parse_one(text: str) -> Any:
    """`fromjson`: the only value in `text`; ParseError names the text."""
    if "-0" not in text:
        try:
            return _fast.decode(text)
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

    def __init__(self) -> None:
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")
        self._text = ""
        self._try_at = 0
        self._exact: ExactParser | None = None
        self._started = False
        self.lines = 0
        """Newlines seen so far, for `input_line_number`."""
        self._line = 1
        self._column = 0

    def values(self, chunks: Iterator[bytes], whole: bool) -> Iterator[Any]:
        """All values in `chunks`; `whole` says they come from a file whose end is near."""
        if whole:
            parts = list(chunks)
            data = parts[0] if len(parts) == 1 else b"".join(parts)
            found = parse_whole(data)
            self.lines += data.count(b"\n")
            if found is not None:
                yield from found
                return
            chunks = iter([data])
        for chunk in chunks:
            if not whole:
                self.lines += chunk.count(b"\n")
            yield from self.feed(self._utf8.decode(chunk))
        yield from self.feed(self._utf8.decode(b"", True))

    def feed(self, text: str) -> Iterator[Any]:
        if not self._started and text:
            self._started = True
            if text[0] == "\ufeff":
                text = text[1:]
        if self._exact is not None:
            yield from self._exact.feed(text)
            return
        self._text = self._text + text if self._text else text
        if len(self._text) >= self._try_at:
            yield from self._scan(False)

    def close(self) -> Iterator[Any]:
        """The values that only the end of all input completes."""
        if self._exact is None:
            yield from self._scan(True)
        if self._exact is not None:
            yield from self._exact.close()

    def _scan(self, ended: bool) -> Iterator[Any]:
        text, start, size = self._text, 0, len(self._text)
        decode: Callable[..., tuple[Any, int]] = _scanner.scan_once  # type: ignore[attr-defined]
        skip = BLANK.match
        doubtful = ESCAPED_SURROGATE.search(text) is not None
        while True:
            start = skip(text, start).end()  # type: ignore[union-attr]
            if start == size:
                self._text, self._try_at = "", 0
                return
            # jq also takes nan, +1, 01 and the like; those, and everything wrong, are for the exact parser.
            try:
                value, end = decode(text, start)
            except (StopIteration, ValueError, RecursionError) as error:
                position = getattr(error, "pos", None)
                if not ended and self._may_be_cut(text, start, position, size):
                    self._text = text[start:]
                    self._advance(text[:start])
                    self._try_at = len(self._text) * 4 if len(self._text) >= FIRST_TRY else 0
                    return
                self._advance(text[:start])
                self._fall_back(text[start:])
                yield from self._exact.feed(text[start:])  # type: ignore[union-attr]
                return
            if value.__class__ not in (dict, list, str):
                if end == size and not ended:
                    self._text = text[start:]
                    self._advance(text[:start])
                    return
                if end < size and text[end] not in ' \t\r\n[{"':
                    self._advance(text[:start])
                    self._fall_back(text[start:])
                    yield from self._exact.feed(text[start:])  # type: ignore[union-attr]
                    return
            if doubtful:
                value = without_surrogates(value)
            start = end
            yield value

    def _may_be_cut(self, text: str, start: int, position: int | None, size: int) -> bool:
        if size > MAX_BUFFER:
            return False
        # The scanner reports an unfinished string where it began, other unfinished text at the end.
        return position is None or position >= size - 8 or self._ends_inside_string(text, position)

    def _ends_inside_string(self, text: str, position: int) -> bool:
        return position > 0 and text[position - 1 : position] == '"' or text[position : position + 1] == '"'

    def _advance(self, text: str) -> None:
        newlines = text.count("\n")
        if newlines:
            self._line += newlines
            self._column = len(text) - text.rfind("\n") - 1
        else:
            self._column += len(text)

    def _fall_back(self, rest: str) -> None:
        self._text = ""
        self._exact = ExactParser(line=self._line, column=self._column)


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
