"""Inputs of a kernel: a clock, a poller and randomness; and a replayable version of each."""

from collections.abc import Callable
from random import Random
from typing import Final, Protocol

from msgspec import Struct

from belljar.abi.records import NANO
from belljar.kernel.fiber import Clock, Poller

REPLAY_NS: Final = 1_767_225_600 * NANO
"""The time at which a replay begins: the first second of 2026."""


class Entropy(Protocol):
    """Source of random bytes."""

    def random_bytes(self, count: int) -> bytes: ...


class Machine(Struct, frozen=True):
    """The environment of one kernel: every input that may differ between two runs."""

    clock: Clock
    poller: Poller
    entropy: Entropy
    cores: int = 2
    memory_bytes: int = 2 << 30
    replays: bool = False
    """Whether programs in engine processes are to see its time and entropy, and not the host's."""


def never_backwards(clock: Callable[[], int]) -> Callable[[], int]:
    """A clock that stands still while the given one is behind what it said before: it tells what changed last."""
    latest = 0

    def now() -> int:
        nonlocal latest
        latest = max(latest, clock())
        return latest

    return now


class VirtualTime:
    """Clock and poller in one, for replays and tests: waiting takes no time, it only moves the clock."""

    def __init__(self, start_ns: int = REPLAY_NS) -> None:
        self._start_ns = start_ns
        self._elapsed = 0.0

    def monotonic(self) -> float:
        return self._elapsed

    def time_ns(self) -> int:
        return self._start_ns + int(self._elapsed * NANO)

    def wait(self, timeout: float | None) -> bool:
        if timeout is None:
            return False
        self._elapsed += timeout
        return True

    def advance(self, seconds: float) -> None:
        self._elapsed += seconds


class StoppedClock:
    """Time for a replay that waits for real things: the date stands still, so that no load changes it."""

    def __init__(self, monotonic: Callable[[], float]) -> None:
        self.monotonic = monotonic

    def time_ns(self) -> int:
        return REPLAY_NS


class SeededEntropy:
    """The same bytes for the same seed. For replays only: not for secrets."""

    def __init__(self, seed: int | bytes) -> None:
        self.seed(seed)

    def seed(self, seed: int | bytes) -> None:
        """Begin anew."""
        self._random = Random(seed)

    def random_bytes(self, count: int) -> bytes:
        return self._random.randbytes(count)


def virtual_machine(seed: int = 0) -> Machine:
    """A machine whose every run is the same."""
    time = VirtualTime()
    return Machine(clock=time, poller=time, entropy=SeededEntropy(seed))
