"""Runs cases of tests/spec on Pyodide, each in a session of its own; started by specs.mjs."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import ModuleType

import _page

from belljar.browser.inside.greenlet import start as start_first
from belljar.browser.inside.main_host import RECURSION, PageEntropy, PageTime
from belljar.engines.worker.programs import find, names
from belljar.kernel.machine import Machine
from belljar.worker.session import Session

for _name, _what in (("cpu_guard_host", "CpuGuard"), ("machine_host", "host_machine")):
    if f"belljar.kernel.{_name}" not in sys.modules:  # of a host; the adapter imports it for tests of other kinds
        _module = ModuleType(f"belljar.kernel.{_name}")
        setattr(_module, _what, None)
        sys.modules[_module.__name__] = _module

from tests import adapter  # noqa: E402
from tests.spec.cases import Case, read_cases  # noqa: E402

SPECS = Path("/lib/belljar/tests/spec")


def wrong(machine: Machine, case: Case) -> list[str]:
    """What differs from what the real tool said."""
    env = {"LC_ALL": "C.UTF-8", "HOME": "/tmp", "TZ": "UTC", **case.env}
    session = Session(machine, programs=find, names=names(), env=env)
    adapter.put(session, "/tmp/w", ("dir",))
    for name, value in case.files.items():
        content = (value, case.modes[name]) if name in case.modes and isinstance(value, bytes) else value
        adapter.put(session, name if name.startswith("/") else f"/tmp/w/{name}", content)
    result = session.exec(["bash", "-c", case.script], stdin=case.stdin, cwd="/tmp/w")
    compared = (
        ("stdout", case.stdout, result.stdout),
        ("stderr", case.stderr, result.stderr),
        ("status", case.status, result.status),
    )
    return [f"{what}: {got!r}, not {want!r}"[:400] for what, want, got in compared if want is not None and want != got]


def start(part: int, parts: int, first: int) -> None:
    def main() -> None:
        sys.setrecursionlimit(RECURSION)
        time = PageTime()
        machine = Machine(time, time, PageEntropy())
        passed = failed = 0
        files = sorted(SPECS.rglob("*.spec"))[part::parts]
        cases = [(path, case) for path in files for case in read_cases(path)[1]]
        for number, (path, case) in enumerate(cases[first:], first):
            where = f"{path.relative_to(SPECS)}:{case.line}"
            _page.begin(where, number, passed)
            try:
                found = wrong(machine, case)
            except BaseException as error:  # noqa: BLE001 - whatever it is, the other cases are run
                found = [f"{type(error).__name__}: {error}"[:400]]
            passed, failed = passed + (not found), failed + bool(found)
            if found:
                _page.tell(json.dumps({"case": where, "wrong": found}))
        _page.finish(json.dumps({"passed": passed, "failed": failed}))

    start_first(main)
