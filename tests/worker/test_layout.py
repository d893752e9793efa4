"""What is brought together lies together, and does what it did."""

import json
import subprocess
import sys
from collections.abc import Callable
from inspect import signature
from types import ModuleType
from weakref import ref

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


def test_functions_move_where_nothing_else_refers_to_them() -> None:
    def make(name: str) -> None:
        def plain(x: int, *, y: int = 2) -> int:
            """Documented."""
            return x + y

        plain.__dict__["marked"] = name
        setattr(home, name, plain)
        setattr(Kind, name, staticmethod(plain) if name == "listed" else plain)

    home = ModuleType("home")
    Kind = type("Kind", (), {})
    make("alone")
    make("listed")
    table = [home.listed]
    gone = ref(home.alone)
    gather_code(lambda: (home.alone(1), home.listed(1)))
    assert gone() is None, "it was not replaced"
    assert home.alone is vars(Kind)["alone"]
    assert home.listed is table[0]
    assert (home.alone(1), home.alone(1, y=5), home.alone.marked) == (3, 6, "alone")
    assert signature(home.alone) == signature(home.listed)
    assert (home.alone.__doc__, home.alone.__qualname__) == (home.listed.__doc__, home.listed.__qualname__)
    assert Kind().alone.__func__ is home.alone


def test_a_failing_run_leaves_everything_as_it_was() -> None:
    def fails() -> None:
        raise ValueError("no")

    code = fails.__code__
    with pytest.raises(ValueError, match="no"):
        gather_code(fails)
    assert fails.__code__ is code
