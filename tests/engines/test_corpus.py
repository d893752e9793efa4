"""Blocks of commands with python3, node and servers, as agents type them (see `tests.spec.record`)."""

from __future__ import annotations

from pathlib import Path

import pytest

from belljar import Sandbox
from tests.spec.cases import Case, read_cases

pytestmark = pytest.mark.slow
CASES = [case for path in sorted((Path(__file__).parent / "corpus").glob("*.spec")) for case in read_cases(path)[1]]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.title)
def test_says_what_the_real_tools_say(box: Sandbox, case: Case) -> None:
    box.files.mkdir("/tmp/w", parents=True)
    result = box.exec(["bash", "-c", case.script], cwd="/tmp/w", stdin=case.stdin, env={"HOME": "/tmp"}, timeout=120)
    assert result.stdout_bytes == case.stdout
    assert case.stderr is None or result.stderr_bytes == case.stderr
    assert result.exit_code == case.status
