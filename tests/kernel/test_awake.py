"""Staying awake: for a moment, and only while nobody else wants the processor."""

import time
from collections.abc import Sequence

import pytest

from belljar.kernel import awake_host
from belljar.kernel.awake_host import Awake


def _nothing(_timeout: float) -> Sequence[int]:
    return ()


def test_finds_what_comes_within_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("belljar.kernel.awake_host.time.monotonic", lambda: 100.0)
    looks: list[float] = []

    def look(timeout: float) -> Sequence[int]:
        looks.append(timeout)
        return [7] if len(looks) == 3 else []

    assert Awake().find(look) == [7]
    assert looks == [0, 0, 0]


def test_gives_up_after_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(awake_host, "_TAKEN", 60.0)
    began = time.monotonic()
    assert not Awake().find(_nothing)
    assert time.monotonic() - began >= awake_host.MOMENT


def test_sleeps_for_a_while_once_somebody_else_took_the_processor(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = [100.0]
    looks: list[float] = []

    def look(_timeout: float) -> Sequence[int]:
        looks.append(clock[0])
        return ()

    def others_run() -> None:
        clock[0] += 0.003

    monkeypatch.setattr("belljar.kernel.awake_host.time.monotonic", lambda: clock[0])
    monkeypatch.setattr("belljar.kernel.awake_host.os.sched_yield", others_run)
    awake = Awake()
    assert not awake.find(look)
    assert not awake.find(look)
    assert looks == [100.0], "it looked again while others were at work"
    clock[0] += 1.0
    assert not awake.find(look)
    assert looks[1:] == [pytest.approx(101.003)]
