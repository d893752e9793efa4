"""One text that stands for many URLs: `{one,two}`, `[1-10]`, `[001-100:5]`, `[a-z]`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from ipaddress import IPv6Address

from belljar.abi.dataclass import dataclass
from belljar.kernel.budget import Budget

_RANGE = re.compile(r"(?:(\d+)-(\d+)|([A-Za-z])-([A-Za-z]))(?::(\d+))?\]")
_SETS_MAX = 100


class GlobError(ValueError):
    """A pattern that can't be read; says where."""

    def __init__(self, pattern: str, reason: str, position: int) -> None:
        super().__init__(f"{reason} in URL position {position}:\n{pattern}\n{' ' * (position - 1)}^")


@dataclass(frozen=True, slots=True)
class Expanded:
    """One of the URLs, and what stood in each of the places: what `#1` in a file name means."""

    url: str
    parts: tuple[str, ...]

    def fill(self, name: str) -> str:
        """A file name with `#1` replaced; a number that is no place stays."""
        if not self.parts:
            return name

        def part(match: re.Match[str]) -> str:
            number = int(match[1])
            return self.parts[number - 1] if 0 < number <= len(self.parts) else match[0]

        return re.sub(r"#(\d{1,3})", part, name)


def expand(pattern: str, budget: Budget) -> Iterator[Expanded]:
    """All URLs of a pattern, the last place changing fastest. Raises GlobError before the first."""
    pieces = _parse(pattern)
    places = [piece for piece in pieces if not isinstance(piece, str)]
    positions = [0] * len(places)
    while True:
        budget.charge(4)
        chosen = tuple(place[position] for place, position in zip(places, positions, strict=True))
        following = iter(chosen)
        yield Expanded("".join(piece if isinstance(piece, str) else next(following) for piece in pieces), chosen)
        for index in reversed(range(len(places))):
            positions[index] += 1
            if positions[index] < len(places[index]):
                break
            positions[index] = 0
        else:
            return


class _Numbers:
    """A range, counted when it is asked for: there may be very many."""

    def __init__(self, first: int, last: int, step: int, width: int) -> None:
        self._range = range(first, last + 1, step)
        self._width = width

    def __len__(self) -> int:
        return len(self._range)

    def __getitem__(self, index: int) -> str:
        return f"{self._range[index]:0{self._width}d}"


_Place = list[str] | _Numbers


def _parse(pattern: str) -> list[str | _Place]:
    pieces: list[str | _Place] = []
    text: list[str] = []
    position, places = 0, 0
    while position < len(pattern):
        char = pattern[position]
        if char == "\\" and pattern[position + 1 : position + 2] in ("{", "}", "[", "]"):
            text.append(pattern[position + 1])
            position += 2
            continue
        if char in "}]":
            raise GlobError(pattern, "unmatched close brace/bracket", position + 1)
        if char == "{":
            place, position = _set(pattern, position)
        elif char == "[":
            address = re.match(r"\[([0-9A-Fa-f:.]+(?:%[A-Za-z0-9.]+)?)\]", pattern[position:])
            if address is not None and _is_address(address[1]):
                text.append(address[0])
                position += address.end()
                continue
            place, position = _range(pattern, position)
        else:
            text.append(char)
            position += 1
            continue
        places += 1
        if places > _SETS_MAX:
            raise GlobError(pattern, "too many {} sets", position)
        pieces += ["".join(text), place]
        text = []
    return [*pieces, "".join(text)]


def _is_address(text: str) -> bool:
    try:
        IPv6Address(text.partition("%")[0])
    except ValueError:
        return False
    return True


def _set(pattern: str, start: int) -> tuple[_Place, int]:
    words: list[str] = []
    word: list[str] = []
    position = start + 1
    while position < len(pattern):
        char = pattern[position]
        if char == "\\" and position + 1 < len(pattern):
            word.append(pattern[position + 1])
            position += 2
            continue
        if char in "{[":
            raise GlobError(pattern, "nested brace", position + 1)
        if char == "]":
            raise GlobError(pattern, "unexpected close bracket", position + 1)
        if char in ",}":
            words.append("".join(word))
            word = []
            if char == "}":
                if words == [""]:
                    raise GlobError(pattern, "empty string within braces", position + 1)
                return words, position + 1
        else:
            word.append(char)
        position += 1
    raise GlobError(pattern, "unmatched brace", start + 1)


def _range(pattern: str, start: int) -> tuple[_Place, int]:
    match = _RANGE.match(pattern, start + 1)
    if match is None:
        number = re.compile(r"\d+(?:-\d*)?").match(pattern, start + 1)
        raise GlobError(pattern, "bad range", number.end() + 1 if number else start + 2)
    step = int(match[5] or 1)
    if match[3]:
        first, last = ord(match[3]), ord(match[4])
        if first > last or not step or match[3].islower() != match[4].islower():
            raise GlobError(pattern, "bad range", match.end() + 1)
        return [chr(code) for code in range(first, last + 1, step)], match.end()
    low, high = int(match[1][:18]), int(match[2][:18])
    if low > high or not step:
        raise GlobError(pattern, "bad range", match.end() + 1)
    width = len(match[1]) if match[1].startswith("0") and len(match[1]) > 1 else 0
    return _Numbers(low, high, step, width), match.end()
