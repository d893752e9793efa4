"""The bar that is shown while something is prepared."""

from __future__ import annotations

import io
import sys

import pytest

from belljar.engines.owner.progress_host import progress


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_the_bar_moves_however_long_it_takes(monkeypatch: pytest.MonkeyPatch) -> None:
    screen = Terminal()
    monkeypatch.setattr(sys, "stderr", screen)
    with progress(30.0) as show:
        for seconds in (0.5, 5, 30, 60, 90):
            show("Python", seconds)
    shown = screen.getvalue().split("\r\x1b[K")
    bars = [line.count("#") for line in shown if "[" in line]
    assert len(bars) == 4  # the first half second is not worth a word
    assert bars == sorted(set(bars))
    assert all(0 < bar < 24 for bar in bars)
    assert shown[-1] == ""


def test_nothing_is_shown_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stream)
    with progress() as show:
        show("Python", 50)
    assert stream.getvalue() == ""
