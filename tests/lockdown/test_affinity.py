"""Moving a process to another processor."""

import os
import subprocess
import sys

import pytest

from belljar.lockdown.affinity_host import move_to_other_cpu


@pytest.mark.skipif(sys.platform != "linux", reason="processors are Linux's")
def test_sends_a_process_elsewhere_and_leaves_it_free(monkeypatch: pytest.MonkeyPatch) -> None:
    was = os.sched_getaffinity(0)
    move_to_other_cpu(os.getpid())
    assert os.sched_getaffinity(0) == was
    told: list[tuple[int, set[int]]] = []
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {0, 1, 1000})
    monkeypatch.setattr(os, "sched_setaffinity", lambda pid, mask: told.append((pid, mask)))
    monkeypatch.setattr("belljar.lockdown.affinity_host._current_cpu", lambda: 1)
    move_to_other_cpu(7)
    assert told == [(7, {0, 1000}), (7, {0, 1, 1000})]
    told.clear()
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: {1})
    move_to_other_cpu(7)
    assert not told, "it has nowhere to go"


@pytest.mark.skipif(sys.platform != "linux", reason="processors are Linux's")
def test_whoever_is_gone_is_not_sent_anywhere() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    move_to_other_cpu(gone.pid)
