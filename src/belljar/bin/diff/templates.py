"""Output by the user's own formats: --line-format, --GTYPE-group-format and friends, and -D's merged files."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin.diff.sides import Comparison

_NUMBER: Final = re.compile(rb"%(-?'?0?\d*)(?:\.(\d+))?([doxX])([EFLMNeflmn])")
_CHAR: Final = re.compile(rb"%c'(\\[0-7]{1,3}|[^\\'])'")
_WIDEST: Final = 4096


@dataclass(frozen=True, slots=True)
class Formats:
    """A group format for each kind of group and a line format for each kind of line."""

    groups: Mapping[str, bytes]
    lines: Mapping[str, bytes]


def complete(groups: Mapping[str, bytes], lines: Mapping[str, bytes]) -> Formats:
    """Fill in what wasn't given, the way diff does."""
    line = {kind: lines.get(kind, b"%l\n") for kind in ("old", "new", "unchanged")}
    old = groups.get("old", groups.get("changed", b"%<"))
    new = groups.get("new", groups.get("changed", b"%>"))
    changed = groups.get("changed", old + new)
    return Formats({"old": old, "new": new, "changed": changed, "unchanged": groups.get("unchanged", b"%=")}, line)


def ifdef(name: str) -> Formats:
    text = fsencode(name)
    old = b"#ifndef " + text + b"\n%<#endif /* ! " + text + b" */\n"
    new = b"#ifdef " + text + b"\n%>#endif /* " + text + b" */\n"
    changed = b"#ifndef " + text + b"\n%<#else /* " + text + b" */\n%>#endif /* " + text + b" */\n"
    plain = dict.fromkeys(("old", "new", "unchanged"), b"%l\n")
    return Formats({"old": old, "new": new, "changed": changed, "unchanged": b"%="}, plain)


def formatted(comparison: Comparison, formats: Formats) -> Iterator[bytes]:
    at_a = at_b = 0
    for change in comparison.changes:
        if change.trivial:
            continue
        if change.low_a > at_a:
            yield from _Group(comparison, formats, at_a, change.low_a, at_b, change.low_b, "unchanged").render()
        kind = "changed"
        if change.low_a == change.high_a:
            kind = "new"
        elif change.low_b == change.high_b:
            kind = "old"
        yield from _Group(comparison, formats, change.low_a, change.high_a, change.low_b, change.high_b, kind).render()
        at_a, at_b = change.high_a, change.high_b
    first, second = comparison.lines
    if len(first) > at_a or len(second) > at_b:
        yield from _Group(comparison, formats, at_a, len(first), at_b, len(second), "unchanged").render()


@dataclass(slots=True)
class _Group:
    comparison: Comparison
    formats: Formats
    low_a: int
    high_a: int
    low_b: int
    high_b: int
    kind: str

    def render(self) -> Iterator[bytes]:
        yield from self._expand(self.formats.groups[self.kind])

    def _expand(self, text: bytes) -> Iterator[bytes]:
        position = 0
        while (percent := text.find(b"%", position)) >= 0:
            yield text[position:percent]
            what = text[percent + 1 : percent + 2]
            position = percent + 2
            match what:
                case b"%":
                    yield b"%"
                case b"<":
                    yield from self._lines(0, self.low_a, self.high_a, "old")
                case b">":
                    yield from self._lines(1, self.low_b, self.high_b, "new")
                case b"=":
                    yield from self._lines(0, self.low_a, self.high_a, "unchanged")
                case b"(":
                    then, position = self._condition(text, position)
                    yield from self._expand(then)
                case _:
                    piece, position = self._value(text, percent)
                    yield piece
        yield text[position:]

    def _value(self, text: bytes, start: int) -> tuple[bytes, int]:
        if match := _NUMBER.match(text, start):
            return _number(match, self._letter(match[4])), match.end()
        if match := _CHAR.match(text, start):
            return _character(match), match.end()
        return text[start : start + 2], start + 2

    def _letter(self, letter: bytes) -> int:
        low, high = (self.low_a, self.high_a) if letter.islower() else (self.low_b, self.high_b)
        return {b"e": low, b"f": low + 1, b"l": high, b"m": high + 1, b"n": high - low}[letter.lower()]

    def _condition(self, text: bytes, start: int) -> tuple[bytes, int]:
        """%(A=B?T:E)"""
        match = re.compile(rb"(\d+|[EFLMNeflmn])=(\d+|[EFLMNeflmn])\?").match(text, start)
        if match is None:
            return b"%(", start
        a, b = (int(side) if side.isdigit() else self._letter(side) for side in match.groups())
        middle = _end(text, match.end(), b":")
        end = _end(text, middle + 1, b")")
        chosen = text[match.end() : middle] if a == b else text[middle + 1 : end]
        return chosen, end + 1

    def _lines(self, side: int, low: int, high: int, kind: str) -> Iterator[bytes]:
        template = self.formats.lines[kind]
        lines = self.comparison.lines[side]
        unfinished = len(lines) - 1 if not self.comparison.complete[side] else -1
        if template in (b"%L", b"%l\n") and low < high:
            text = b"\n".join(lines[low:high])
            yield text if template == b"%L" and high - 1 == unfinished else text + b"\n"
            return
        for index in range(low, high):
            yield _line(template, lines[index], index, index == unfinished)


def _line(template: bytes, line: bytes, index: int, unfinished: bool) -> bytes:
    parts: list[bytes] = []
    position = 0
    while (percent := template.find(b"%", position)) >= 0:
        parts.append(template[position:percent])
        position = percent + 2
        match template[percent + 1 : percent + 2]:
            case b"l":
                parts.append(line)
            case b"L":
                parts.append(line if unfinished else line + b"\n")
            case b"%":
                parts.append(b"%")
            case _:
                if match := _NUMBER.match(template, percent):
                    parts.append(_number(match, index + 1))
                    position = match.end()
                elif match := _CHAR.match(template, percent):
                    parts.append(_character(match))
                    position = match.end()
                else:
                    parts.append(template[percent : percent + 2])
    parts.append(template[position:])
    return b"".join(parts)


def _number(match: re.Match[bytes], value: int) -> bytes:
    flags = match[1].replace(b"'", b"")
    left = flags.startswith(b"-")
    digits = flags.lstrip(b"-")
    zero = digits.startswith(b"0") and not left
    width = min(int(digits or b"0"), _WIDEST)
    text = format(value, {b"d": "d", b"o": "o", b"x": "x", b"X": "X"}[match[3]])
    if match[2]:
        text = text.rjust(min(int(match[2]), _WIDEST), "0")
    return (text.ljust(width) if left else text.rjust(width, "0" if zero and not match[2] else " ")).encode()


def _character(match: re.Match[bytes]) -> bytes:
    text = match[1]
    return bytes([int(text[1:], 8) & 0xFF]) if text.startswith(b"\\") else text


def _end(text: bytes, start: int, stop: bytes) -> int:
    """Return where a branch of a condition ends: at `stop`, conditions inside it skipped."""
    depth = 0
    index = start
    while index < len(text):
        char = text[index : index + 1]
        if char == b"%":
            if text[index + 1 : index + 2] == b"(":
                depth += 1
            index += 2
            continue
        if char == stop and depth == 0:
            return index
        if char == b")" and depth:
            depth -= 1
        index += 1
    return index
