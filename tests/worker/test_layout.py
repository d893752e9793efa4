"""What is brought together lies together, and does what it did."""

import json
import subprocess
import sys
from collections.abc import Callable

import pytest

from belljar.worker.layout_host import gather_code


def test_what_is_used_lies_together() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.worker.layout"], capture_output=True, text=True, check=True, timeout=60
    )
    found = json.loads(done.stdout)
    assert found["gathered"] < found["spread"] / 2
    assert found["idle"], "what is not called stays where it is"
    assert found["values"], "code that was moved does what it did"
    for size, pages in found["fresh"].items():
        least = 200 * int(size) // 4096
        assert pages <= 1.5 * least + 3, f"new objects of {size} bytes lie apart"


def test_code_within_code_moves_too() -> None:
    def outer(value: int) -> Callable[[], int]:
        def inner() -> int:
            return value

        return inner

    before = outer(1)
    code = before.__code__
    gather_code(lambda: outer(2)())
    assert before.__code__ is not code
    assert outer(3).__code__ is before.__code__
    assert (before(), outer(3)()) == (1, 3)


def test_a_failing_run_leaves_everything_as_it_was() -> None:
    def fails() -> None:
        raise ValueError("no")

    code = fails.__code__
    with pytest.raises(ValueError, match="no"):
        gather_code(fails)
    assert fails.__code__ is code
