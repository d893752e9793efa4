"""CPython's own tests, run in a sandbox's Python: where they come from, what becomes of each, what is known to differ.

They are the files of Debian's package for exactly the guest's version, fetched when first needed and never kept here.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Iterator
from pathlib import Path

from belljar import Limits, Mount, Sandbox
from tests.debian import Unreachable as Unreachable
from tests.debian import install

PACKAGES = {
    "p/python3.15/libpython3.15-testsuite_3.15.0-1_all.deb": (
        "e1dc133d6250690e405ad72a63b706c896b21e020d19008681357f9904b6aff3"
    ),
    "p/python3.15/libpython3.15-stdlib_3.15.0-1_amd64.deb": (
        "b4c6ba0262dc89dc8de7232ad29d94c3ab22203cf740303b166e1f8afa270ea3"
    ),
}
INSIDE = "./usr/lib/python3.15/test/"
GUEST = Path(__file__).with_name("cpython_guest.py")
DIFFERENCES = Path(__file__).with_name("cpython_differences.txt")
CRASHES_MAX = 20


def fetch() -> Path:
    """The directory that has the package `test`. Raises Unreachable."""
    return install("cpython-3.15.0-1", PACKAGES, _place)


def _place(name: str) -> str | None:
    return "test/" + name.removeprefix(INSIDE) if name.startswith(INSIDE) else None


def sandbox(directory: Path) -> Sandbox:
    """A sandbox whose Python finds the tests."""
    return Sandbox(
        mounts={"/opt/cpython": Mount.host(str(directory), read_only=True)},
        files={"/opt/guest.py": GUEST.read_bytes()},
        env={"PYTHONPATH": "/opt/cpython"},
        limits=Limits(wall_seconds=3600, cpu_seconds=3600, output_bytes=256 << 20, memory_bytes=2 << 30),
    )


def run(where: Sandbox, name: str, *, timeout: float = 1200) -> dict[str, tuple[str, str]]:
    """What became of each test of a module or class: passed, failed, skipped or crashed, and why."""
    outcomes: dict[str, tuple[str, str]] = {}
    for _ in range(CRASHES_MAX):
        result = where.exec(["python3", "/opt/guest.py", name, *outcomes], timeout=timeout)
        current = ""
        for test, outcome, why in _lines(result.stdout):
            if outcome == "done":
                return outcomes
            current = test
            if outcome != "started":
                outcomes[test] = outcome, why
        if current in outcomes or not current:
            raise RuntimeError(f"{name} did not run: {result.stderr[-2000:]}")
        outcomes[current] = "crashed", f"exit code {result.exit_code}, limit {result.limit}: {result.stderr[-500:]}"
    raise RuntimeError(f"{name} crashed too often")


def _lines(text: str) -> Iterator[tuple[str, str, str]]:
    for line in text.splitlines():
        try:
            found = json.loads(line)
            yield found["test"], found["outcome"], found["why"]
        except (ValueError, KeyError, TypeError):
            continue  # a test's own output


def differences() -> dict[str, str]:
    """What is known to differ: patterns of tests, and the reason."""
    known: dict[str, str] = {}
    reason = ""
    for line in DIFFERENCES.read_text().splitlines():
        if line.startswith("# "):
            reason = line[2:]
        elif line:
            known[line] = reason
    return known


def known_difference(test: str, known: dict[str, str]) -> str | None:
    """The pattern that covers a test."""
    return next((pattern for pattern in known if fnmatch.fnmatchcase(test, pattern)), None)
