"""Output that needs a whole file at hand: columns, replacements, headings, JSON, multi-line matches."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from belljar.abi.dataclass import dataclass
from belljar.regex import Match, Regex

_COLORS = {"path": b"\33[35m", "line": b"\33[32m", "match": b"\33[1m\33[31m"}


@dataclass(frozen=True, slots=True)
class Layout:
    names: bool = False
    numbers: bool = False
    columns: bool = False
    offsets: bool = False
    each_match: bool = False  # --vimgrep: a line for every match
    heading: bool = False
    only_matching: bool = False
    invert: bool = False
    multiline: bool = False
    replacement: str | None = None
    trim: bool = False
    max_columns: int = 0
    before: int = 0
    after: int = 0
    passthru: bool = False
    limit: int | None = None
    separator: bytes | None = b"--"
    null: bool = False
    color: bool = False


@dataclass(slots=True)
class Line:
    """Lines [start:end) of a file (one, unless a match spans more), with the matches in them."""

    number: int
    start: int
    end: int
    matches: list[Match] | None  # None: a context line


class Shower:
    """Formats the results of one pattern, file by file."""

    def __init__(self, regex: Regex, layout: Layout, write: Callable[[bytes], None]) -> None:
        self.regex = regex
        self.layout = layout
        self.write = write
        self.files = 0

    # -- finding

    def selected(self, data: bytes) -> Iterator[Line]:
        layout = self.layout
        if layout.multiline:
            yield from self.spanning(data)
            return
        number, counted = 1, 0
        found = _inverted(self.regex, data) if layout.invert else self.regex.lines(data)
        for start, end in islice(found, layout.limit):
            number += data.count(b"\n", counted, start)
            counted = start
            matches = [] if layout.invert else list(self.regex.finditer(data[start:end]))
            yield Line(number, start, end, matches)

    def spanning(self, data: bytes) -> Iterator[Line]:
        """Matches that may cross lines, joined where they share one."""
        current: Line | None = None
        taken = 0
        for match in self.regex.finditer(data):
            if match.start() >= len(data):
                break
            start = data.rfind(b"\n", 0, match.start()) + 1
            end = data.find(b"\n", max(match.end() - 1, match.start()))
            end = len(data) if end < 0 else end
            if current is not None and start <= current.end and current.matches is not None:
                current.end = max(end, current.end)
                current.matches.append(match)
                continue
            if current is not None:
                yield current
            if self.layout.limit is not None and taken >= self.layout.limit:
                return
            taken += 1
            current = Line(data.count(b"\n", 0, start) + 1, start, end, [match])
        if current is not None:
            yield current

    def with_context(self, data: bytes, lines: list[Line]) -> Iterator[Line | None]:
        """The lines with those around them; None marks a gap."""
        layout = self.layout
        if not (layout.before or layout.after or layout.passthru):
            yield from lines
            return
        starts = [0]
        while (found := data.find(b"\n", starts[-1])) >= 0 and found + 1 < len(data):
            starts.append(found + 1)
        shown = 0  # lines up to this number have been dealt with
        for index, line in enumerate(lines):
            last = line.number + data.count(b"\n", line.start, line.end)
            first = 1 if layout.passthru else line.number - layout.before
            first = max(first, shown + 1)
            if shown and first > shown + 1:
                yield None
            for number in range(first, line.number):
                yield _plain(data, starts, number)
            yield line
            shown = last
            following = lines[index + 1].number if index + 1 < len(lines) else len(starts) + 1
            reach = len(starts) if layout.passthru else last + layout.after
            for number in range(last + 1, min(reach + 1, following, len(starts) + 1)):
                yield _plain(data, starts, number)
                shown = number

    # -- showing

    def show(self, name: bytes, data: bytes) -> int:
        """Print a file's results; returns how many lines were selected."""
        layout = self.layout
        lines = list(self.selected(data))
        if not lines and not layout.passthru:
            return 0
        if self.files and (layout.heading and layout.names):
            self.write(b"\n")
        elif self.files and (layout.before or layout.after) and layout.separator is not None:
            self.write(layout.separator + b"\n")
        self.files += 1
        if layout.heading and layout.names:
            self.write(self.paint("path", name) + b"\n")
        out: list[bytes] = []
        for line in self.with_context(data, lines):
            if line is None:
                if layout.separator is not None:
                    out.append(layout.separator + b"\n")
            else:
                out += self.rows(name, data, line)
        self.write(b"".join(out))
        return len(lines)

    def rows(self, name: bytes, data: bytes, line: Line) -> Iterator[bytes]:
        layout = self.layout
        mark = b":" if line.matches is not None else b"-"
        text = data[line.start : line.end]
        base = line.start if layout.multiline else 0
        if layout.only_matching and line.matches:
            for match in line.matches:
                start = match.start() - base
                if match.start() != match.end():
                    shown = self.replaced(match) if layout.replacement is not None else match.group()
                    column, offset = start + 1, line.start + start
                    yield self.head(name, line.number, column, offset, mark) + self.paint("match", shown) + b"\n"
            return
        if layout.each_match and line.matches:
            for match in line.matches:
                column = match.start() - base + 1
                yield self.head(name, line.number, column, line.start, mark) + self.body(text, line, base) + b"\n"
            return
        column = line.matches[0].start() - base + 1 if line.matches else 0
        body = self.body(text, line, base)
        for index, row in enumerate(body.split(b"\n")):
            yield self.head(name, line.number + index, column if index == 0 else 0, line.start, mark) + row + b"\n"

    def body(self, text: bytes, line: Line, base: int) -> bytes:
        layout = self.layout
        if line.matches and (layout.replacement is not None or layout.color):
            out: list[bytes] = []
            last = 0
            for match in line.matches:
                start, end = match.start() - base, match.end() - base
                new = self.replaced(match) if layout.replacement is not None else text[start:end]
                out += [text[last:start], self.paint("match", new)]
                last = end
            text = b"".join(out) + text[last:]
        if layout.trim:
            text = text.lstrip(b" \t")
        if layout.max_columns and len(text) > layout.max_columns:
            kind = b"matching line" if line.matches is not None else b"context line"
            return b"[Omitted long " + kind + b"]"
        return text

    def replaced(self, match: Match) -> bytes:
        """-r: $1, ${1}, $0, $$"""
        out: list[str] = []
        text = self.layout.replacement or ""
        pos = 0
        while pos < len(text):
            char = text[pos]
            pos += 1
            if char != "$" or pos >= len(text):
                out.append(char)
                continue
            braced = text[pos] == "{"
            end = pos + braced
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
            reference = text[pos + braced : end]
            if text[pos] == "$":
                out.append("$")
                pos += 1
            elif not reference:
                out.append("$")
            else:
                number = int(reference[:9]) if reference.isdecimal() else -1
                if 0 <= number <= self.regex.groups:
                    out.append((match.group(number) or b"").decode("utf-8", "surrogateescape"))
                pos = end + braced
        return "".join(out).encode("utf-8", "surrogateescape")

    def head(self, name: bytes, number: int, column: int, offset: int, mark: bytes) -> bytes:
        layout = self.layout
        out = b""
        if layout.names and not layout.heading:
            out += self.paint("path", name) + (b"\0" if layout.null else mark)
        if layout.numbers:
            out += self.paint("line", b"%d" % number) + mark
        if layout.columns and column:
            out += b"%d" % column + mark
        if layout.offsets:
            out += b"%d" % offset + mark
        return out

    def paint(self, what: str, text: bytes) -> bytes:
        return b"\33[0m" + _COLORS[what] + text + b"\33[0m" if self.layout.color else text

    # -- JSON

    def events(self, name: bytes, data: bytes) -> int:
        """--json: one object a line."""
        lines = list(self.selected(data))
        if not lines:
            return 0
        path = _text(name)
        self.event("begin", {"path": path})
        matches = 0
        for line in self.with_context(data, lines):
            if line is None:
                continue
            base = line.start if self.layout.multiline else 0
            found = line.matches or []
            matches += len(found)
            self.event(
                "match" if line.matches is not None else "context",
                {
                    "path": path,
                    "lines": _text(data[line.start : line.end + 1]),
                    "line_number": line.number,
                    "absolute_offset": line.start,
                    "submatches": [
                        {"match": _text(match.group()), "start": match.start() - base, "end": match.end() - base}
                        for match in found
                    ],
                },
            )
        stats = {
            "elapsed": {"secs": 0, "nanos": 0, "human": "0.000000s"},
            "searches": 1,
            "searches_with_match": 1,
            "bytes_searched": len(data),
            "bytes_printed": 0,
            "matched_lines": len(lines),
            "matches": matches,
        }
        self.event("end", {"path": path, "binary_offset": None, "stats": stats})
        return len(lines)

    def event(self, kind: str, data: dict[str, Any]) -> None:
        self.write(json.dumps({"type": kind, "data": data}, separators=(",", ":"), ensure_ascii=False).encode() + b"\n")


def _text(data: bytes) -> dict[str, str]:
    try:
        return {"text": data.decode()}
    except UnicodeDecodeError:
        return {"bytes": base64.b64encode(data).decode()}


def _plain(data: bytes, starts: list[int], number: int) -> Line:
    start = starts[number - 1]
    end = starts[number] - 1 if number < len(starts) else len(data.removesuffix(b"\n"))
    return Line(number, start, end, None)


def _inverted(regex: Regex, data: bytes) -> Iterator[tuple[int, int]]:
    """The lines without a match."""
    last = 0

    def between(low: int, high: int) -> Iterator[tuple[int, int]]:
        while low < high:
            end = data.find(b"\n", low, high)
            end = high if end < 0 else end
            yield low, end
            low = end + 1

    for start, end in regex.lines(data):
        yield from between(last, start)
        last = end + 1
    yield from between(last, len(data))
