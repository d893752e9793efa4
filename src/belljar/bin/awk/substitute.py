"""sub(), gsub() and gensub(): replacement texts and their application."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache

from belljar.bin.awk.patterns import Pattern

_AMPERSAND = re.compile(r"\\*&")

ChargeSize = Callable[[int], None]


@lru_cache(maxsize=256)
def parse_replacement(text: str, posix: bool = False) -> tuple[str, ...]:
    """The literal pieces of a sub() replacement; the matched text goes between them."""
    pieces: list[str] = []
    current = ""
    at = 0
    for match in _AMPERSAND.finditer(text):
        current += text[at : match.start()]
        slashes = len(match.group()) - 1
        current += "\\" * (slashes // 2)
        if slashes % 2:
            current += "&"
        else:
            pieces.append(current)
            current = ""
        at = match.end()
    pieces.append(current + text[at:])
    if posix:
        pieces = [piece.replace("\\\\", "\\") for piece in pieces]
    return tuple(pieces)


def substitute_all(pattern: Pattern, replacement: str, text: str, charge_size: ChargeSize) -> tuple[str, int]:
    """gsub: the new text and how many were replaced."""
    pieces = parse_replacement(replacement)
    literal = pattern.literal
    if literal is not None:
        count = text.count(literal)
        if not count:
            return text, 0
        new = pieces[0] if len(pieces) == 1 else literal.join(pieces)
        charge_size(len(text) + count * len(new))
        return text.replace(literal, new), count
    spans = pattern.spans(text)
    if not spans:
        return text, 0
    out: list[str] = []
    at = 0
    if len(pieces) == 1:
        new = pieces[0]
        charge_size(len(text) + len(spans) * len(new))
        for start, end in spans:
            out.append(text[at:start])
            out.append(new)
            at = end
    else:
        longest = sum(end - start for start, end in spans)
        charge_size(len(text) + len(spans) * len(replacement) + longest * len(pieces))
        for start, end in spans:
            out.append(text[at:start])
            out.append(text[start:end].join(pieces))
            at = end
    out.append(text[at:])
    return "".join(out), len(spans)


def substitute_first(pattern: Pattern, replacement: str, text: str, charge_size: ChargeSize) -> tuple[str, int]:
    """sub."""
    match = pattern.search(text)
    if match is None:
        return text, 0
    start, end = match.span()
    pieces = parse_replacement(replacement)
    if len(pieces) > 1:
        charge_size(len(text) + (end - start) * len(pieces))
    return text[:start] + text[start:end].join(pieces) + text[end:], 1


@lru_cache(maxsize=256)
def parse_general_replacement(text: str) -> tuple[str | int, ...]:
    """gensub's replacement: literal pieces and group numbers."""
    pieces: list[str | int] = []
    current = ""
    at = 0
    while at < len(text):
        char = text[at]
        if char == "&":
            pieces += [current, 0]
            current = ""
        elif char == "\\" and at + 1 < len(text):
            at += 1
            char = text[at]
            if char in "0123456789":
                pieces += [current, int(char)]
                current = ""
            else:
                current += char
        else:
            current += char
        at += 1
    pieces.append(current)
    return tuple(pieces)


def substitute_general(pattern: Pattern, replacement: str, which: int, text: str, charge_size: ChargeSize) -> str:
    """gensub: replace every match (which = 0) or only the which-th."""
    pieces = parse_general_replacement(replacement)
    groups = pattern.regex.groups
    out: list[str] = []
    at = 0
    total = len(text)
    for number, match in enumerate(pattern.finditer(text), 1):
        if which and number != which:
            continue
        start, end = match.span()
        out.append(text[at:start])
        for piece in pieces:
            if isinstance(piece, str):
                out.append(piece)
                total += len(piece)
            elif piece <= groups:
                found = match.group(piece) or ""
                out.append(found)
                total += len(found)
        charge_size(total)
        at = end
        if which:
            break
    out.append(text[at:])
    return "".join(out)
