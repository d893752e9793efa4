"""What is brought together lies together, and does what it did."""

from collections.abc import Callable

import pytest

from belljar.worker.layout_host import fill_holes, gather_code, join_pages, own_memory

PAGE = 4096


def make_functions(count: int) -> list[Callable[[int], int]]:
    """Functions of which each has its own code."""
    functions: list[Callable[[int], int]] = []
    for number in range(count):
        scope: dict[str, Callable[[int], int]] = {}
        source = f"def add(x):\n    inner = lambda y: y + {number}\n    return inner(x) + {number}000"
        exec(compile(source, f"made {number}", "exec"), scope)  # noqa: S102 - nothing else makes code
        functions.append(scope["add"])
    return functions


def pages(functions: list[Callable[[int], int]]) -> int:
    return len({id(function.__code__) // PAGE for function in functions})


def test_code_that_is_called_moves_together() -> None:
    functions = make_functions(2000)
    called, idle = functions[::20], functions[1]
    unmoved, spread = id(idle.__code__), pages(called)
    fillers = fill_holes()
    gather_code(lambda: [function(1) for function in called])
    assert pages(called) < spread / 2
    assert id(idle.__code__) == unmoved
    assert [function(1) for function in called] == [1 + n + n * 1000 for n in range(0, 2000, 20)]
    del fillers


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


@pytest.mark.parametrize("size", [64, 80, 160, 512])
def test_new_objects_lie_side_by_side(size: int) -> None:
    holes = [bytes(size - 33) for _ in range(4000)]
    del holes[::7]
    fillers = fill_holes()
    fresh = [bytes(size - 33) for _ in range(200)]
    needed = 200 * size // PAGE + 2
    assert len({id(each) // PAGE for each in fresh}) <= needed + 200 * size // (1 << 14)
    del holes, fillers


def test_pages_are_joined_and_keep_what_they_hold() -> None:
    texts = [f"{number}" * 50 for number in range(100_000)]
    assert join_pages(own_memory()) >= 0  # none where the kernel can't
    assert texts == [f"{number}" * 50 for number in range(100_000)]
