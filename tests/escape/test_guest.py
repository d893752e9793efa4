"""THREATS.md part 1, from inside: every attack that a guest's command can try, through the public API."""

from __future__ import annotations

import time
from dataclasses import asdict

import pytest

from belljar import ExecResult, Limits, Sandbox, SandboxClosed
from tests.escape import cases_bombs, cases_files, cases_parse
from tests.escape.case import Case
from tests.escape.oracles import Watch, wait_gone

CASES = [*cases_files.CASES, *cases_bombs.CASES, *cases_parse.CASES]
LIMITS = {"wall_seconds": 20.0, "cpu_seconds": 10.0, "output_bytes": 1 << 20, "processes": 64}
"""What a case has where it says nothing else."""
ON_TIME = 10.0
"""Seconds past its wall limit by which a command has ended, on a machine that others use too."""
PATIENCE = 5.0
"""Times slower than alone that a command may be on a machine that others use too."""


def test_the_table_is_sound() -> None:
    ids = [case.id for case in CASES]
    assert len(ids) == len(set(ids)) >= 100
    fields = set(asdict(Limits()))
    for case in CASES:
        assert 1 <= case.number <= 124
        assert set(case.limits) <= fields
        assert case.limit == "maybe" or set(filter(None, case.limit.split("|"))) <= fields
        assert (case.verdict == "L") or case.limit in ("", "maybe")


@pytest.mark.battery(sample=90)
@pytest.mark.parametrize(
    "case", [pytest.param(case, id=case.id, marks=[pytest.mark.slow] if case.slow else []) for case in CASES]
)
def test_attack(case: Case, watch: Watch) -> None:
    asked = {**LIMITS, **case.limits}
    wall = asked["wall_seconds"]
    # What is asked of the sandbox afterwards has time, whatever the attack had.
    limits = Limits(**{**asked, "wall_seconds": max(wall, LIMITS["wall_seconds"])})  # type: ignore[arg-type]
    script = case.script
    command: str | list[str] = watch.fill(script) if isinstance(script, str) else [watch.fill(arg) for arg in script]
    with watch.attack():
        sandbox = Sandbox(limits=limits, files=case.files)
        pid = sandbox._link.pid
        try:
            began = time.monotonic()
            try:
                result = sandbox.exec(command, stdin=case.stdin, timeout=wall)
            except SandboxClosed as closed:
                if not case.dies or "bug" in str(closed):
                    pytest.fail(f"the sandbox died: {closed}")
                return
            finally:
                took = time.monotonic() - began
                assert took < wall + ON_TIME, "it did not end in time"
            watch.check_bytes(result.stdout_bytes + result.stderr_bytes.replace(str(watch.canary).encode(), b""))
            if case.seconds is not None:
                assert took < case.seconds * PATIENCE
            judge(case, result)
            assert sandbox.exec("echo ok").stdout == "ok\n", "the sandbox is no longer usable"
        finally:
            sandbox.close()
            assert not wait_gone([pid]), "the worker outlives its sandbox"


def judge(case: Case, result: ExecResult) -> None:
    """The verdict, and what the case says of the output."""
    said = f"exit {result.exit_code}, limit {result.limit}, {result.stdout[:200]!r}, {result.stderr[-300:]!r}"
    if case.limit != "maybe":
        allowed: set[str | None] = set(case.limit.split("|")) if case.limit else {None}
        assert result.limit in allowed, said
    if case.exit is not None:
        assert result.exit_code == case.exit, said
    elif case.verdict == "S":
        assert result.exit_code == 0, said
    elif case.verdict == "B" and not result.limit:
        assert result.exit_code != 0, said
    if case.out is not None:
        assert result.stdout == case.out, said
    assert case.says in result.stderr, said
