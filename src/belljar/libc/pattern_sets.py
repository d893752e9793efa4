"""Matches any pattern in polynomial time: all match positions at once, as the bits of one integer.

Bit p of a set says that the text before position p has been matched. Each item maps a set of starts to the set of ends,
so alternatives, repetition and even `!(...)`, which is a true complement here, cost a few whole-integer operations.
"""

from __future__ import annotations

from belljar.libc.pattern_parse import AnyMany, AnyOne, Group, Items, Set, Text, fold, set_predicate


class Subject:
    """A text, and for each character or set of the pattern the mask of the positions that hold it."""

    __slots__ = ("_ascii", "_folded", "_masks", "_nocase", "full", "hidden", "size", "text")

    def __init__(self, text: str, *, nocase: bool = False, hidden: bool = False) -> None:
        """`hidden`: a leading dot of the text must be matched by a dot in the pattern, as for file names."""
        self.text = text
        self.size = len(text)
        self.full = (1 << (self.size + 1)) - 1
        self.hidden = hidden and text.startswith(".")
        self._nocase = nocase
        self._folded = "".join(map(fold, text)) if nocase else text
        self._ascii = text.encode() if text.isascii() and not nocase else None
        self._masks: dict[str | Set, int] = {}

    def char(self, char: str) -> int:
        mask = self._masks.get(char)
        if mask is None:
            wanted = fold(char) if self._nocase else char
            if self._ascii is not None:
                mask = self._bits(self._ascii, wanted.encode()) if wanted.isascii() else 0
            else:
                mask = int("0" + "".join(["1" if c == wanted else "0" for c in reversed(self._folded)]), 2)
            self._masks[char] = mask
        return mask

    def set(self, item: Set) -> int:
        mask = self._masks.get(item)
        if mask is None:
            belongs = set_predicate(item, nocase=self._nocase)
            if self._ascii is not None:
                mask = self._bits(self._ascii, bytes(c for c in range(128) if belongs(chr(c))))
            else:
                known = {c: "1" if belongs(c) else "0" for c in set(self.text)}
                mask = int("0" + "".join([known[c] for c in reversed(self.text)]), 2)
            self._masks[item] = mask
        return mask

    @staticmethod
    def _bits(data: bytes, wanted: bytes) -> int:
        table = bytearray(b"0" * 256)
        for code in wanted:
            table[code] = 49
        return int(b"0" + data[::-1].translate(table), 2)


def ends(items: Items, starts: int, subject: Subject) -> int:
    """Every position where a match of `items` that begins at one of `starts` can end."""
    reached = starts
    for item in items:
        if not reached:
            return 0
        if isinstance(item, Text):
            for char in item.text:
                reached = (reached & subject.char(char)) << 1
                if not reached:
                    return 0
            continue
        if isinstance(item, Group) and item.kind != "!":
            reached = _group(item, reached, subject)
            continue
        if subject.hidden:
            reached &= ~1
        if isinstance(item, AnyOne):
            reached = reached << 1 & subject.full
        elif isinstance(item, AnyMany):
            reached = subject.full & -(reached & -reached)
        elif isinstance(item, Set):
            reached = (reached & subject.set(item)) << 1
        else:
            reached = _complement(item, reached, subject)
    return reached


def _group(item: Group, starts: int, subject: Subject) -> int:
    if item.kind == "@":
        return _either(item, starts, subject)
    if item.kind == "?":
        return starts | _either(item, starts, subject)
    mask = _single(item, subject)
    if mask is not None:
        reached = _spread(starts & mask, mask) << 1
        return reached if item.kind == "+" else reached | starts
    reached = fresh = _either(item, starts, subject)
    while fresh:
        fresh = _either(item, fresh, subject) & ~reached
        reached |= fresh
    return reached if item.kind == "+" else reached | starts


def _spread(seeds: int, mask: int) -> int:
    """The ones of `mask` in the same row as a seed and not before it.

    Adding a seed to its row carries through to the row's end, so one addition finds the end of every repetition.
    """
    return mask & ~(mask + seeds) | seeds


def _single(item: Group, subject: Subject) -> int | None:
    """If every alternative is one character: the positions that hold one of them."""
    mask = 0
    if subject.hidden:
        return None
    for items in item.alternatives:
        if len(items) != 1:
            return None
        one = items[0]
        if isinstance(one, Text) and len(one.text) == 1:
            mask |= subject.char(one.text)
        elif isinstance(one, Set):
            mask |= subject.set(one)
        elif isinstance(one, AnyOne):
            mask |= subject.full >> 1
        else:
            return None
    return mask


def _either(item: Group, starts: int, subject: Subject) -> int:
    reached = 0
    for alternative in item.alternatives:
        reached |= ends(alternative, starts, subject)
    return reached


def _complement(item: Group, starts: int, subject: Subject) -> int:
    """`!(...)`: from each start every end that no alternative reaches from there."""
    reached = 0
    lowest = starts & -starts
    everything = subject.full & -lowest
    while starts and reached != everything:
        start = starts & -starts
        starts ^= start
        reached |= subject.full & -start & ~_either(item, start, subject)
    return reached
