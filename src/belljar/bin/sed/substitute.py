"""The right side of `s`, and its execution on one pattern space."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belljar.bin.sed.script import CaseChange, Part, Reference, Substitution
from belljar.regex import Match, Regex

Expand = Callable[[Match], bytes]
_LONG_REPLACEMENT = 4096
Replace = Callable[[Regex, bytes], bytes | None]


def expander(parts: tuple[Part, ...]) -> Expand:
    """A function from a match to its replacement."""
    if any(isinstance(part, CaseChange) for part in parts):
        return lambda match: _with_cases(parts, match)
    if not any(isinstance(part, Reference) for part in parts):
        constant = b"".join([part for part in parts if isinstance(part, bytes)])
        return lambda match: constant
    pieces: list[bytes | int] = [part.group if isinstance(part, Reference) else part for part in parts]  # type: ignore[misc]

    def expand(match: Match) -> bytes:
        return b"".join([(match.group(piece) or b"") if isinstance(piece, int) else piece for piece in pieces])

    return expand


def _with_cases(parts: tuple[Part, ...], match: Match) -> bytes:
    lasting = once = ""
    out: list[str] = []
    for part in parts:
        if isinstance(part, CaseChange):
            if part.kind in "lu":
                once = part.kind
            else:
                lasting = "" if part.kind == "E" else part.kind
                once = ""
            continue
        data = (match.group(part.group) or b"") if isinstance(part, Reference) else part
        if not data:
            continue
        text = data.decode("utf-8", "surrogateescape")
        if lasting == "U":
            text = text.upper()
        elif lasting == "L":
            text = text.lower()
        if once:
            text = (text[0].upper() if once == "u" else text[0].lower()) + text[1:]
            once = ""
        out.append(text)
    return "".join(out).encode("utf-8", "surrogateescape")


def template(parts: tuple[Part, ...], shift: int = 0) -> bytes | None:
    """The replacement in `re`'s own notation, with groups renumbered; None if it changes case."""
    out: list[bytes] = []
    for part in parts:
        if isinstance(part, CaseChange):
            return None
        out.append(b"\\g<%d>" % (part.group + shift) if isinstance(part, Reference) else part.replace(b"\\", b"\\\\"))
    return b"".join(out)


def replacer(substitution: Substitution) -> Replace:
    """A function from a regex and a pattern space to the new pattern space, or None without a match."""
    expand = expander(substitution.parts)
    if not substitution.globally and substitution.number == 1:

        def replace_first(regex: Regex, space: bytes) -> bytes | None:
            match = regex.search(space)
            if match is None:
                return None
            start, end = match.span()
            return space[:start] + expand(match) + space[end:]

        return replace_first

    number, globally = substitution.number, substitution.globally

    def replace(regex: Regex, space: bytes) -> bytes | None:
        out: list[bytes] = []
        last = 0
        for count, match in enumerate(regex.finditer(space), 1):
            if count < number:
                continue
            start, end = match.span()
            out.append(space[last:start])
            out.append(expand(match))
            last = end
            if not globally:
                break
        if not out:
            return None
        out.append(space[last:])
        return b"".join(out)

    return replace


def quick_replacer(substitution: Substitution, regex: Regex) -> Callable[[bytes], Any] | None:
    """`s` on an ASCII pattern space by `re` alone: (new space, number of replacements). None if it can't be."""
    compiled = regex.quick
    text = template(substitution.parts)
    if (
        compiled is None
        or text is None
        or len(text) > _LONG_REPLACEMENT
        or substitution.number != 1
        or (substitution.globally and regex.may_be_empty)
    ):
        return None
    count = 0 if substitution.globally else 1
    subn = compiled.subn
    return lambda space: subn(text, space, count)
