"""Makes every case of every .spec file a test of its own."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar.kernel.machine import Machine
from belljar.kernel.machine_host import HostEntropy
from tests.adapter import FileValue, new_session, put, run_command
from tests.spec.cases import Case, read_cases


class OwnTime:
    """Clock and poller: what passes is the processor time of this process, and the time that it was asked to wait.

    No wait takes real time: a `sleep 5` costs nothing. While a busy machine runs others instead, the clock stands
    still, so a `timeout 0.5` does not end before its command has begun.
    """

    def __init__(self) -> None:
        self._start_ns = time.time_ns()
        self._waited = 0.0
        self._last_ns = 0

    def monotonic(self) -> float:
        return time.process_time() + self._waited

    def time_ns(self) -> int:
        # Processor time may be counted in ticks; of two files the one written later is newer all the same.
        self._last_ns = max(self._last_ns + 1000, self._start_ns + int(self.monotonic() * 1e9))
        return self._last_ns

    def wait(self, timeout: float | None) -> bool:
        if timeout is None:
            return False
        self._waited += max(0.0, timeout)
        return True


OWN_TIME = OwnTime()
MACHINE = Machine(clock=OWN_TIME, poller=OWN_TIME, entropy=HostEntropy())


def pytest_collect_file(parent: pytest.Collector, file_path: Path) -> pytest.Collector | None:
    return SpecFile.from_parent(parent, path=file_path) if file_path.suffix == ".spec" else None


class SpecFile(pytest.File):
    def collect(self) -> Iterator[pytest.Item]:
        for case in read_cases(self.path)[1]:
            item = SpecItem.from_parent(self, name=f"{case.line}: {case.title}")
            item.case = case
            yield item


class Mismatch(AssertionError):
    """What differed, for the report."""


class SpecItem(pytest.Item):
    case: Case

    def runtest(self) -> None:
        case = self.case
        session = new_session({"LC_ALL": "C.UTF-8", "HOME": "/tmp", "TZ": "UTC", **case.env}, machine=MACHINE)
        put(session, "/tmp/w", ("dir",))
        for name, value in case.files.items():
            content: FileValue = value
            if name in case.modes and isinstance(value, bytes):
                content = (value, case.modes[name])
            put(session, name if name.startswith("/") else f"/tmp/w/{name}", content)
        result = run_command(session, ["bash", "-c", case.script], stdin=case.stdin, cwd="/tmp/w")
        wrong = [
            f"--- {what}: expected\n{_show(want)}\n--- {what}: got\n{_show(got)}"
            for what, want, got in (
                ("stdout", case.stdout, result.stdout),
                ("stderr", case.stderr, result.stderr),
                ("status", case.status, result.status),
            )
            if want is not None and want != got
        ]
        if wrong:
            raise Mismatch("\n".join([case.script, *wrong]))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: object = None) -> str:
        if isinstance(excinfo.value, Mismatch):
            return f"{self.path}:{self.case.line}: {self.case.title}\n{excinfo.value}"
        return str(super().repr_failure(excinfo))

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.line - 1, self.case.title


def _show(value: object) -> str:
    return value.decode("utf-8", "backslashreplace") if isinstance(value, bytes) else str(value)
