r"""Bash patterns, compiled once: full match, shortest and longest prefix and suffix, and search for `${x//p/r}`.

A pattern without extended forms becomes an `re` that can't backtrack badly: between two `*` every match has a fixed
length, so the first place where it fits is as good as any other (an atomic group). All others run on position sets.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import lru_cache

from belljar.libc.pattern_parse import AnyMany, AnyOne, Group, Item, Items, Set, Text, class_ranges, parse_pattern
from belljar.libc.pattern_sets import Subject, ends

_SPECIAL = re.compile(r"[*?\[\\]")
_SPECIAL_EXTENDED = re.compile(r"[*?\[\\]|[+@!]\(")
_CACHED_SIZE = 2000


def compile_pattern(text: str, *, extglob: bool = True, nocase: bool = False) -> Pattern:
    r"""The pattern `text`, whose quoted characters the caller has escaped as `\x`."""
    if len(text) > _CACHED_SIZE:
        return Pattern(text, extglob, nocase)
    return _compile(text, extglob, nocase)


@lru_cache(maxsize=4096)
def _compile(text: str, extglob: bool, nocase: bool) -> Pattern:
    return Pattern(text, extglob, nocase)


def escape(text: str) -> str:
    r"""A pattern that matches exactly `text`."""
    return re.sub(r"([*?\[\]\\()|!+@^-])", r"\\\1", text)


_ACTIVE = re.compile(r"\\.|[*?\[]|[+@!]\(", re.DOTALL)


def is_pattern(text: str, *, extglob: bool = True) -> bool:
    """Whether anything in it is special, so that it could match another text than its own."""
    bracket, parenthesis = text.rfind("]"), text.rfind(")") if extglob else -1
    for match in _ACTIVE.finditer(text):
        found = match.group()
        if found in ("*", "?"):
            return True
        if found[0] != "\\" and match.end() <= (bracket if found == "[" else parenthesis):
            return True
    return False


def unescape(text: str) -> str:
    r"""`text` without the backslashes that quote its characters."""
    return re.sub(r"\\(.)", r"\1", text, flags=re.DOTALL) if "\\" in text else text


class Pattern:
    """One compiled pattern."""

    __slots__ = ("_both_ways", "_nocase", "_regexes", "_reversed", "items", "literal", "matches", "text")

    def __init__(self, text: str, extglob: bool, nocase: bool) -> None:
        self.text = text
        self._nocase = nocase
        self._regexes: _Regexes | None = None
        self._reversed: _Regexes | None = None
        self._both_ways = True
        if not (_SPECIAL_EXTENDED if extglob else _SPECIAL).search(text):
            self.items: Items = (Text(text),) if text else ()
        else:
            self.items = parse_pattern(text, extglob=extglob)
        self.literal = _literal(self.items) if not nocase else None
        """The only text that matches, if the pattern is plain."""
        fast = None if nocase else _fast_match(self.items)
        self.matches: Callable[[str], bool] = fast or self._match
        """Whether all of a text matches."""

    def _match(self, text: str) -> bool:
        regexes = self._forward(text)
        if regexes is not None:
            return regexes.full(text) is not None
        return bool(ends(self.items, 1, Subject(text, nocase=self._nocase)) >> len(text))

    def matches_name(self, name: str) -> bool:
        """Like `matches`, but a leading dot must be matched by a dot in the pattern."""
        if not name.startswith("."):
            return self.matches(name)
        return bool(ends(self.items, 1, Subject(name, nocase=self._nocase, hidden=True)) >> len(name))

    def prefix(self, text: str, *, longest: bool) -> int | None:
        """The end of the shortest or longest match at the start of `text`."""
        if self.literal is not None:
            return len(self.literal) if text.startswith(self.literal) else None
        regexes = self._forward(text)
        if regexes is not None:
            match = (regexes.longest if longest else regexes.shortest)(text)
            return match.end() if match else None
        return _pick(ends(self.items, 1, Subject(text, nocase=self._nocase)), longest=longest)

    def suffix(self, text: str, *, longest: bool) -> int | None:
        """The start of the shortest or longest match at the end of `text`."""
        if self.literal is not None:
            return len(text) - len(self.literal) if text.endswith(self.literal) else None
        backwards = text[::-1]
        regexes = self._backward(text)
        if regexes is not None:
            match = (regexes.longest if longest else regexes.shortest)(backwards)
            return len(text) - match.end() if match else None
        found = _pick(ends(_reverse(self.items), 1, Subject(backwards, nocase=self._nocase)), longest=longest)
        return None if found is None else len(text) - found

    def spans(self, text: str) -> Iterator[tuple[int, int]]:
        """The matches that `${text//pattern/...}` replaces, leftmost and longest, one after the other.

        After an empty match one character is passed over, and none is looked for at the very end, as in bash; in an
        empty text only what begins with `*` matches (also for `/#`), and an empty pattern never does.
        """
        if not self.items or (not text and not self.text.startswith("*")):
            return
        find = self._finder(text)
        pos = 0
        while pos < len(text) or pos == 0:
            span = find(pos)
            if span is None:
                return
            yield span
            pos = span[1] if span[1] > span[0] else span[1] + 1

    def _finder(self, text: str) -> Callable[[int], tuple[int, int] | None]:
        literal = self.literal
        if literal:
            size = len(literal)

            def find_text(pos: int) -> tuple[int, int] | None:
                at = text.find(literal, pos)
                return (at, at + size) if at >= 0 else None

            return find_text
        regexes = self._forward(text)
        if regexes is not None:
            return regexes.finder(text)
        subject = Subject(text, nocase=self._nocase)
        starts = _mirror(
            ends(_reverse(self.items), subject.full, Subject(text[::-1], nocase=self._nocase)), len(text) + 1
        )

        def find(pos: int) -> tuple[int, int] | None:
            left = starts >> pos
            if not left:
                return None
            start = pos + (left & -left).bit_length() - 1
            end = _pick(ends(self.items, 1 << start, subject), longest=True)
            return None if end is None else (start, end)

        return find

    # What `re` can do: no groups; classes only over ASCII text, and not when case is folded.

    def _forward(self, text: str) -> _Regexes | None:
        if self._regexes is None and self._both_ways:
            self._prepare()
        regexes = self._regexes
        return regexes if regexes is not None and (text.isascii() or not regexes.ascii_only) else None

    def _backward(self, text: str) -> _Regexes | None:
        if self._reversed is None and self._both_ways:
            self._prepare()
        regexes = self._reversed
        return regexes if regexes is not None and (text.isascii() or not regexes.ascii_only) else None

    def _prepare(self) -> None:
        classes = any(isinstance(item, Set) and item.classes for item in self.items)
        if any(isinstance(item, Group) for item in self.items) or (classes and self._nocase):
            self._both_ways = False
            return
        self._regexes = _Regexes(self.items, self._nocase, classes)
        self._reversed = _Regexes(_reverse(self.items), self._nocase, classes)


class _Regexes:
    """The `re` forms of a pattern without groups."""

    __slots__ = ("_head", "_rest", "_starred", "ascii_only", "full", "longest", "shortest")

    def __init__(self, items: Items, nocase: bool, ascii_only: bool) -> None:
        self.ascii_only = ascii_only
        flags = re.DOTALL | (re.IGNORECASE if nocase else 0)
        segments: list[str] = [""]
        for item in items:
            if isinstance(item, AnyMany):
                segments.append("")
            else:
                segments[-1] += _translate(item)
        head, *rest = segments
        self._starred = bool(rest)
        lazy = "".join(f"(?>.*?{segment})" for segment in rest[:-1] if segment)
        last = f".*{rest[-1]}" if rest else ""
        first_last = f"(?>.*?{rest[-1]})" if rest and rest[-1] else ""
        self.full = re.compile(f"{head}{lazy}{last}", flags).fullmatch
        self.longest = re.compile(f"{head}{lazy}{last}", flags).match
        self.shortest = re.compile(f"{head}{lazy}{first_last}", flags).match
        self._head = re.compile(head, flags)
        self._rest = re.compile(lazy + last, flags)

    def finder(self, text: str) -> Callable[[int], tuple[int, int] | None]:
        head, rest = self._head.search, self._rest.match

        def find(pos: int) -> tuple[int, int] | None:
            found = head(text, pos)
            if found is None or not self._starred:
                return found.span() if found else None
            # If what follows the first `*` fits nowhere after this start, it fits after no later one either.
            tail = rest(text, found.end())
            return (found.start(), tail.end()) if tail else None

        return find


def _translate(item: Item) -> str:
    if isinstance(item, Text):
        return re.escape(item.text)
    if isinstance(item, AnyOne):
        return "."
    assert isinstance(item, Set)
    ranges = list(item.ranges)
    for name in item.classes:
        ranges += class_ranges(name, unicode=False)
    if not ranges:
        return "." if item.negated else "(?!)"
    body = "".join(
        re.escape(chr(low)) if low == high else f"{re.escape(chr(low))}-{re.escape(chr(high))}" for low, high in ranges
    )
    return f"[{'^' if item.negated else ''}{body}]"


def _literal(items: Items) -> str | None:
    if not items:
        return ""
    first = items[0]
    return first.text if len(items) == 1 and isinstance(first, Text) else None


def _fast_match(items: Items) -> Callable[[str], bool] | None:
    """A string method for the commonest shapes: text, `text*`, `*text`, `*text*`, `*`, `text*text`."""
    match items:
        case ():
            return "".__eq__
        case (Text(text),):
            return text.__eq__
        case (AnyMany(),):
            return lambda _text: True
        case (Text(text), AnyMany()):
            return lambda subject: subject.startswith(text)
        case (AnyMany(), Text(text)):
            return lambda subject: subject.endswith(text)
        case (AnyMany(), Text(text), AnyMany()):
            return lambda subject: text in subject
        case (Text(head), AnyMany(), Text(tail)):
            size = len(head) + len(tail)
            return lambda subject: len(subject) >= size and subject.startswith(head) and subject.endswith(tail)
    return None


def _reverse(items: Items) -> Items:
    found: list[Item] = []
    for item in reversed(items):
        if isinstance(item, Text):
            found.append(Text(item.text[::-1]))
        elif isinstance(item, Group):
            found.append(Group(item.kind, tuple(_reverse(alternative) for alternative in item.alternatives)))
        else:
            found.append(item)
    return tuple(found)


def _pick(reached: int, *, longest: bool) -> int | None:
    if not reached:
        return None
    return reached.bit_length() - 1 if longest else (reached & -reached).bit_length() - 1


def _mirror(bits: int, size: int) -> int:
    return int(f"{bits:0{size}b}"[::-1], 2)
