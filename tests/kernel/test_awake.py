"""Staying awake: for a moment, only while nobody else wants the processor, and apart from who is waited for."""

import time
from collections.abc import Callable, Sequence

import pytest

from belljar.kernel import awake_host
from belljar.kernel.awake_host import Awake


class Clock:
    """Time, and how often the waiter lost its processor; `turn` is what the others take when they are let."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        self.turn = 0.0
        self.switches = 0
        monkeypatch.setattr("belljar.kernel.awake_host.time.monotonic", lambda: self.now)
        monkeypatch.setattr("belljar.kernel.awake_host.os.sched_yield", self._others_run)
        monkeypatch.setattr("belljar.kernel.awake_host._switches", lambda: self.switches)

    def _others_run(self) -> None:
        self.now += self.turn
        self.switches += self.turn > 0


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    return Clock(monkeypatch)


def _nothing(_timeout: float) -> Sequence[int]:
    return ()


def _at_the(count: int) -> Callable[[float], Sequence[int]]:
    """Something is there at so many looks."""
    looks: list[float] = []

    def look(timeout: float) -> Sequence[int]:
        looks.append(timeout)
        return [len(looks)] if len(looks) >= count else ()

    return look


def test_finds_what_comes_within_a_moment(clock: Clock) -> None:
    assert clock.turn == 0
    assert Awake().find(_at_the(3)) == [3]


def test_gives_up_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake_host, "_TAKEN", 60.0)
    began = time.monotonic()
    assert not Awake().find(_nothing)
    assert time.monotonic() - began >= awake_host.MOMENT


def test_sleeps_for_a_while_once_somebody_else_took_the_processor(clock: Clock) -> None:
    clock.turn = 0.003
    awake = Awake()
    assert not awake.find(_nothing)
    after = clock.now
    assert not awake.find(_at_the(1)), "it looked while others were at work"
    clock.now += 1.0
    clock.turn = 0.0
    assert awake.find(_at_the(1)) == [1]
    assert after == pytest.approx(100.003)


def test_sleeps_longer_each_time_that_others_take_the_processor_again(clock: Clock) -> None:
    clock.turn = 0.003
    awake = Awake()
    asleep: list[float] = []
    for _ in range(9):
        assert not awake.find(_nothing)
        began = clock.now
        while not awake.find(_at_the(1)):
            clock.now += 0.001
        asleep.append(clock.now - began)
    assert asleep[:3] == [
        pytest.approx(0.005, abs=0.002),
        pytest.approx(0.01, abs=0.002),
        pytest.approx(0.02, abs=0.002),
    ]
    assert asleep[-1] == pytest.approx(awake_host._LONGEST, abs=0.002)
    clock.now += 60
    assert not awake.find(_nothing)
    clock.now += awake_host._SHORTEST
    assert awake.find(_at_the(1)), "that was long ago"


def test_parts_from_who_is_waited_for_if_they_share_a_processor_again_and_again(clock: Clock) -> None:
    parted: list[float] = []
    awake = Awake(lambda: parted.append(clock.now))
    clock.turn = 50e-6
    for _ in range(awake_host._OFTEN - 1):
        assert awake.find(_at_the(2))
    clock.turn = 0.0
    assert awake.find(_at_the(2))
    assert not parted
    clock.turn = 50e-6
    for _ in range(awake_host._OFTEN):
        assert not parted
        assert awake.find(_at_the(2))
    assert len(parted) == 1


def test_an_interrupt_is_nobody_elses_turn(clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belljar.kernel.awake_host._switches", lambda: 0)
    parted: list[float] = []
    awake = Awake(lambda: parted.append(clock.now))
    clock.turn = 50e-6
    for _ in range(3 * awake_host._OFTEN):
        assert awake.find(_at_the(2))
    assert not parted


def test_sleeps_if_it_was_no_good_to_part(clock: Clock) -> None:
    awake = Awake(lambda: None)
    clock.turn = 50e-6
    for _ in range(awake_host._OFTEN):
        assert awake.find(_at_the(2))
    assert not awake.find(_nothing), "where it was sent, others are at work"
    assert not awake.find(_at_the(1))
    clock.now += awake_host._SHORTEST
    assert awake.find(_at_the(1))
