"""The report of `make test`: a line when a room is done, each failure at once, and a table at the end."""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import pytest

from tests.rooms import room_of


@dataclass
class Room:
    total: int = 0
    done: int = 0
    failed: int = 0
    seconds: float = 0.0
    skipped: Counter[str] = field(default_factory=Counter)


class RoomReport:
    """A pytest plugin for the process that reports: without pytest-xdist the only one, with it the controller."""

    def __init__(self, config: pytest.Config) -> None:
        self._began = time.monotonic()
        self._rooms: dict[str, Room] = defaultdict(Room)
        self._config = config

    # Which tests will run.

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        self._expect([item.nodeid for item in session.items])

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, node: Any, ids: list[str]) -> None:
        self._expect(ids)

    def _expect(self, names: Iterable[str]) -> None:
        totals = Counter(_room(name) for name in names)
        for room, total in totals.items():
            self._rooms[room].total = total

    # What happens.

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """Keep pytest's counts, and print no letter for each test."""
        if hasattr(report, "wasxfail"):
            return ("xfailed" if report.skipped else "xpassed"), "", ""
        if report.failed:
            return ("failed" if report.when == "call" else "error"), "", ""
        if report.when == "call" or report.skipped:
            return report.outcome, "", ""
        return "", "", ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        name = _room(report.nodeid)
        room = self._rooms[name]
        room.seconds += report.duration
        if report.failed:
            room.failed += 1
            self._write(f"FAILED {report.nodeid}" + ("" if report.when == "call" else f" ({report.when})"))
        if report.skipped and not hasattr(report, "wasxfail"):
            room.skipped[_reason(report)] += 1
        if report.when == "teardown":
            room.done += 1
            if room.done == room.total:
                self._write(f"{name:13}{room.done:6} tests{room.seconds:8.1f} s    at {self._clock()}")

    def _clock(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._began), 60)
        return f"{minutes}:{seconds:02}"

    def _write(self, line: str) -> None:
        reporter = self._config.pluginmanager.get_plugin("terminalreporter")
        assert reporter is not None
        reporter.ensure_newline()
        reporter.write_line(line)

    # At the end.

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section("rooms")
        terminalreporter.write_line("room           tests  failed  seconds  skipped, and why")
        for name, room in sorted(self._rooms.items()):
            why = "; ".join(f"{count} {reason}" for reason, count in room.skipped.items())
            row = f"{name:13}{room.done:7}{room.failed:8}{room.seconds:9.1f}  {why or '-'}"
            terminalreporter.write_line(row)
        done, failed = (
            sum(room.done for room in self._rooms.values()),
            sum(room.failed for room in self._rooms.values()),
        )
        seconds = sum(room.seconds for room in self._rooms.values())
        terminalreporter.write_line(f"{'all':13}{done:7}{failed:8}{seconds:9.1f}  in {self._clock()} minutes")


def _room(name: str) -> str:
    return room_of(name.partition("::")[0]) or "tests"


def _reason(report: pytest.TestReport) -> str:
    found = report.longrepr
    return str(found[2]).removeprefix("Skipped: ") if isinstance(found, tuple) else str(found)
