"""Each fuzzer for some seconds, from its corpus, always with the same seed: `make fuzz` is what looks for more.

BELLJAR_FUZZ_SECONDS sets how long; by default a minute for all of them together.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fuzz.driver import change, corpus, load, names

SECONDS = float(os.environ.get("BELLJAR_FUZZ_SECONDS", 60 / len(names())))


@pytest.mark.battery(sample=2)
@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_nothing_breaks(name: str) -> None:
    """In a process of its own: its memory is measured."""
    command = [sys.executable, "-m", "tests.fuzz", name, "--seconds", str(SECONDS), "--seed", "1"]
    run = subprocess.run(
        command, cwd=Path(__file__).parents[2], capture_output=True, text=True, timeout=SECONDS + 240, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.parametrize("name", names())
def test_cases_are_split_without_loss(name: str) -> None:
    assert corpus(name), f"tests/fuzz/corpus/{name} has no case to begin with"
    target = load(name)
    rng = random.Random(1)
    for case in corpus(name):
        assert b"".join(target.split(case)) == case
        changed = change(target, case, rng)
        assert b"".join(target.split(changed)) == changed
