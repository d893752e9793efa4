"""Versions and ranges as npm reads them (semver 2, and the loose forms that are published all the same)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from typing import Final

from belljar.abi.dataclass import dataclass

_LENGTH_MAX: Final = 256
_RANGE_MAX: Final = 4096
"""Characters of a range: dependencies come from strangers."""
_NUMBER_MAX: Final = 2**53 - 1

_NUM: Final = r"\d{1,32}"
"""Bounded: a patch and a prerelease may follow each other without a mark, and could be cut anywhere."""
_ID: Final = r"(?:\d{1,99}|\d{0,99}[a-zA-Z-][a-zA-Z0-9-]*)"
_PRE: Final = rf"(?:-?({_ID}(?:\.{_ID})*))?"
_BUILD: Final = r"(?:\+([0-9A-Za-z-]+(?:\.[0-9A-Za-z-]+)*))?"
_LEAD: Final = r"[v=\s]{0,16}"
_FULL: Final = rf"{_LEAD}({_NUM})\.({_NUM})\.({_NUM}){_PRE}{_BUILD}"
_X: Final = rf"({_NUM}|[xX*])"
_PLAIN: Final = rf"{_LEAD}{_X}(?:\.{_X}(?:\.{_X}{_PRE}{_BUILD})?)?"
_GROUPLESS: Final = re.sub(r"\((?!\?)", "(?:", _PLAIN)

_VERSION: Final = re.compile(rf"\s*{_FULL}\s*", re.A)
_HYPHEN: Final = re.compile(rf"\s*({_GROUPLESS})\s+-\s+({_GROUPLESS})\s*", re.A)
_TRIM: Final = re.compile(rf"(\s?(?:<|>)?=?)\s?({_GROUPLESS})", re.A)
_MARK_TRIM: Final = re.compile(r"(~>?|\^)\s+", re.A)
_MARKED: Final = re.compile(rf"(~>?|\^){_PLAIN}", re.A)
_X_RANGE: Final = re.compile(rf"((?:<|>)?=?)\s*{_PLAIN}", re.A)

Prerelease = tuple[int | str, ...]


@dataclass(frozen=True, slots=True)
class Version:
    major: int
    minor: int
    patch: int
    prerelease: Prerelease = ()
    build: str = ""

    @property
    def key(self) -> tuple[int, int, int, bool, tuple[tuple[bool, int, str], ...]]:
        """Sort key."""
        parts = tuple((isinstance(p, str), p if isinstance(p, int) else 0, str(p)) for p in self.prerelease)
        return self.major, self.minor, self.patch, not self.prerelease, parts

    @property
    def release(self) -> tuple[int, int, int]:
        return self.major, self.minor, self.patch

    def __lt__(self, other: Version) -> bool:
        return self.key < other.key

    def __str__(self) -> str:
        pre = "-" + ".".join(map(str, self.prerelease)) if self.prerelease else ""
        return f"{self.major}.{self.minor}.{self.patch}{pre}"


@lru_cache(2048)
def parse_version(text: str) -> Version | None:
    """A version, loosely written perhaps (`v1.2.3`, `1.2.3beta`); None if it is none."""
    found = _VERSION.fullmatch(text) if len(text) <= _LENGTH_MAX else None
    if found is None:
        return None
    major, minor, patch = int(found[1]), int(found[2]), int(found[3])
    if max(major, minor, patch) > _NUMBER_MAX:
        return None
    return Version(major, minor, patch, _prerelease(found[4]), found[5] or "")


def _prerelease(text: str | None) -> Prerelease:
    if not text:
        return ()
    return tuple(int(p) if p.isdecimal() and int(p) < _NUMBER_MAX else p for p in text.split("."))


_ZERO: Final = Version(0, 0, 0, (0,))


@dataclass(frozen=True, slots=True)
class Comparator:
    operator: str
    """"", <, <=, > or >=; with no version it lets everything through."""
    version: Version | None

    def __str__(self) -> str:
        return f"{self.operator}{self.version}" if self.version is not None else ""

    def test(self, version: Version) -> bool:
        if self.version is None:
            return True
        mine, other = version.key, self.version.key
        match self.operator:
            case "<":
                return mine < other
            case "<=":
                return mine <= other
            case ">":
                return mine > other
            case ">=":
                return mine >= other
        return mine == other


_ANY: Final = Comparator("", None)
_NOTHING: Final = Comparator("<", _ZERO)


@dataclass(frozen=True, slots=True)
class Range:
    """Alternatives, each a set of comparators that must all agree."""

    sets: tuple[tuple[Comparator, ...], ...]

    def __str__(self) -> str:
        return "||".join(" ".join(map(str, comparators)) for comparators in self.sets) or "*"

    def test(self, version: Version, *, prereleases: bool = False) -> bool:
        """Whether a version is in the range. A prerelease only if the range names one of the same release."""
        return any(_fits(comparators, version, prereleases) for comparators in self.sets)


def _fits(comparators: tuple[Comparator, ...], version: Version, prereleases: bool) -> bool:
    if not all(comparator.test(version) for comparator in comparators):
        return False
    if not version.prerelease or prereleases:
        return True
    return any(
        c.version is not None and c.version.prerelease and c.version.release == version.release for c in comparators
    )


@lru_cache(2048)
def parse_range(text: str) -> Range | None:
    """A range; None if it is none (then it may be a tag)."""
    if len(text) > _RANGE_MAX:
        return None
    text = re.sub(r"\s+", " ", text.strip())
    sets = [found for part in text.split("||") if (found := _parse_set(part.strip())) is not None]
    if not sets:
        return None
    # As npm: an alternative that can't be met is dropped for one that can, and one that is always met says it all.
    if len(sets) > 1:
        sets = [found for found in sets if found[0] != _NOTHING] or sets[:1]
        sets = next(([found] for found in sets if len(sets) > 1 and found == (_ANY,)), sets)
    return Range(tuple(sets))


def _parse_set(text: str) -> tuple[Comparator, ...] | None:
    """One alternative. None if nothing of it can be read."""
    hyphen = _HYPHEN.fullmatch(text)
    if hyphen is not None:
        text = _expand_hyphen(hyphen[1], hyphen[2])
    text = _TRIM.sub(r"\1\2", text)
    text = _MARK_TRIM.sub(r"\1", text)
    parts: list[Comparator] = []
    for word in text.split(" "):
        parts += _expand(word)
    found: list[Comparator] = list(dict.fromkeys(parts))
    if _NOTHING in found:
        return (_NOTHING,)
    if len(found) > 1 and _ANY in found:
        found.remove(_ANY)
    return tuple(found) or None


def _number(text: str | None) -> int | None:
    """A part of a version; None for one that is left open."""
    return int(text) if text and text.isdecimal() else None


def _valid(*numbers: int | None) -> bool:
    return all(number is None or number <= _NUMBER_MAX for number in numbers)


def _ordered(found: re.Match[str]) -> bool:
    """`*.1` leaves open what comes before what it fixes: that means nothing."""
    major, minor, patch = (_number(found[n]) for n in (2, 3, 4))
    return not ((major is None and minor is not None) or (minor is None and found[3] and patch is not None))


def _expand_hyphen(low: str, high: str) -> str:
    pattern = re.compile(_PLAIN, re.A)
    begin, end = pattern.fullmatch(low), pattern.fullmatch(high)
    assert begin is not None
    assert end is not None
    a, b, c = (_number(begin[n]) for n in (1, 2, 3))
    if a is None:
        first = ""
    elif b is None:
        first = f">={a}.0.0"
    elif c is None:
        first = f">={a}.{b}.0"
    else:
        first = f">={a}.{b}.{c}{'-' + begin[4] if begin[4] else ''}"
    a, b, c = (_number(end[n]) for n in (1, 2, 3))
    if a is None:
        last = ""
    elif b is None:
        last = f"<{a + 1}.0.0-0"
    elif c is None:
        last = f"<{a}.{b + 1}.0-0"
    else:
        last = f"<={a}.{b}.{c}{'-' + end[4] if end[4] else ''}"
    return f"{first} {last}".strip()


def _expand(word: str) -> Iterable[Comparator]:
    """The comparators that one word of a range stands for; none for a word that can't be read."""
    marked = _MARKED.fullmatch(word)
    if marked is not None:
        major, minor, patch = _number(marked[2]), _number(marked[3]), _number(marked[4])
        if not _valid(major, minor, patch):
            return ()
        expand = _caret if marked[1] == "^" else _tilde
        return expand(major, minor, patch, _prerelease(marked[5]))
    found = _X_RANGE.fullmatch(word)
    if found is not None:
        major, minor, patch = _number(found[2]), _number(found[3]), _number(found[4])
        if not _valid(major, minor, patch) or not _ordered(found):
            return ()
        return _x_range(found[1], major, minor, patch, _prerelease(found[5]))
    return (_ANY,) if word == "" else ()


def _from(major: int, minor: int, patch: int, pre: Prerelease = ()) -> Comparator:
    version = Version(major, minor, patch, pre)
    return Comparator(">=", version) if version != Version(0, 0, 0) else _ANY


def _below(major: int, minor: int, patch: int) -> Comparator:
    return Comparator("<", Version(major, minor, patch, (0,)))


def _tilde(major: int | None, minor: int | None, patch: int | None, pre: Prerelease) -> tuple[Comparator, ...]:
    if major is None:
        return (_ANY,)
    if minor is None:
        return _from(major, 0, 0), _below(major + 1, 0, 0)
    low = _from(major, minor, patch or 0, pre if patch is not None else ())
    return low, _below(major, minor + 1, 0)


def _caret(major: int | None, minor: int | None, patch: int | None, pre: Prerelease) -> tuple[Comparator, ...]:
    if major is None:
        return (_ANY,)
    if minor is None:
        return _from(major, 0, 0), _below(major + 1, 0, 0)
    low = _from(major, minor, patch or 0, pre if patch is not None else ())
    if major:
        high = _below(major + 1, 0, 0)
    elif minor or patch is None:
        high = _below(0, minor + 1, 0)
    else:
        high = _below(0, 0, patch + 1)
    return low, high


def _x_range(
    operator: str, major: int | None, minor: int | None, patch: int | None, pre: Prerelease
) -> tuple[Comparator, ...]:
    if major is not None and minor is not None and patch is not None:
        if operator == ">=":
            return (_from(major, minor, patch, pre),)
        return (Comparator("" if operator == "=" else operator, Version(major, minor, patch, pre)),)
    if major is None:
        return (_NOTHING,) if operator in ("<", ">") else (_ANY,)
    low = (major, minor or 0, 0)
    high = (major + 1, 0, 0) if minor is None else (major, minor + 1, 0)
    match operator:
        case ">":
            return (_from(*high),)
        case ">=":
            return (_from(*low),)
        case "<":
            return (_below(*low),)
        case "<=":
            return (_below(*high),)
    return _from(*low), _below(*high)


def satisfies(version: str, wanted: str) -> bool:
    """Whether a version is in a range; no, if either can't be read."""
    parsed, bounds = parse_version(version), parse_range(wanted)
    return parsed is not None and bounds is not None and bounds.test(parsed)


def sort_key(version: str) -> tuple[object, ...]:
    """Orders versions by age; what is no version comes first."""
    parsed = parse_version(version)
    return (False,) if parsed is None else (True, parsed.key, parsed.build)
