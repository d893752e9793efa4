"""Makes the guest interpreter notice a signal: sets, in its memory, what its own C code sets when one arrives.

The addresses are not exported: they are found once, in a template. The guest raises a signal between two host
calls, with no bytecode in between, and whatever differs in memory after that, each time and only then, is it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from itertools import chain
from typing import Final

from belljar.engines.wasi.memory import Memory

SIGINT, SIGTERM = 2, 15
_PAGE: Final = 4096
_WORD: Final = struct.Struct("<I")
_CHANGES_MAX: Final = 8
_APART_MAX: Final = 64

Change = tuple[int, int]
"""The address of a word, and the bits that were set in it."""


class Interrupter:
    """Learns from the rounds of a guest's calibration, then raises signals in it."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._pages: Iterable[int] = range(0, memory.size(), _PAGE)
        """Where to look: everywhere, until each signal was raised once; then where that changed something."""
        self._before: dict[int, bytes] = {}
        self._rounds: dict[int, list[set[Change]]] = {}
        self._common: set[Change] = set()
        """Changes that every signal makes."""
        self._first = self._stride = 0
        """Address of signal 0's flag, and the distance between two signals' flags."""

    # Learning.

    def begin(self) -> None:
        self._before = self._read()

    def end(self, number: int) -> None:
        """Record the changes of a round in which signal `number` was raised; 0: none was."""
        self._rounds.setdefault(number, []).append(self._changes())
        self._before = {}
        if self._rounds.keys() == {SIGINT, SIGTERM}:
            rounds = chain.from_iterable(self._rounds.values())
            self._pages = sorted({at // _PAGE * _PAGE for changes in rounds for at, _ in changes})

    def _read(self) -> dict[int, bytes]:
        return {page: self._memory.read(page, _PAGE) for page in self._pages}

    def _changes(self) -> set[Change]:
        """The words in which bits were set and none cleared."""
        found: set[Change] = set()
        for page, after in self._read().items():
            before = self._before[page]
            if before == after:
                continue
            for at in range(0, _PAGE, 4):
                (old,), (new,) = _WORD.unpack_from(before, at), _WORD.unpack_from(after, at)
                if old != new and not old & ~new:
                    found.add((page + at, new & ~old))
        return found

    def locate_flags(self) -> None:
        """Find, from the rounds, the words that signals set.

        What does not fit is not used: then a program is only interrupted in its calls.
        """
        noise = {at for changes in self._rounds.get(0, []) for at, _ in changes}
        sure = {
            number: {change for change in set.intersection(*rounds) if change[0] not in noise}
            for number, rounds in self._rounds.items()
            if number
        }
        self._rounds.clear()
        if set(sure) != {SIGINT, SIGTERM}:
            return
        common = sure[SIGINT] & sure[SIGTERM]
        apart = SIGTERM - SIGINT
        pairs = [
            (low, (high - low) // apart)
            for low, low_bits in sure[SIGINT] - common
            for high, high_bits in sure[SIGTERM] - common
            if low_bits == high_bits == 1 and (high - low) % apart == 0 and 4 <= (high - low) // apart <= _APART_MAX
        ]
        if len(pairs) != 1 or not 0 < len(common) <= _CHANGES_MAX:
            return
        ((low, self._stride),) = pairs
        self._common = common
        self._first = low - self._stride * SIGINT

    # Raising.

    def interrupt(self, number: int) -> None:
        """Have the guest call its handler of a signal, at its next step."""
        if not self._common or not 0 < number < 65:
            return
        # The guest runs meanwhile: it may see the call to look before there is anything to see. So call twice; a call
        # too many finds nothing and is forgotten.
        for at, bits in ((self._first + number * self._stride, 1), *self._common, *self._common):
            (value,) = _WORD.unpack(self._memory.read(at, 4))
            self._memory.write_u32(at, value | bits)
