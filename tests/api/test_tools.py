"""Functions of the host as commands: how their arguments are given, and that every end of them is an answer."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from belljar import AsyncSandbox, RunLimits, Sandbox


class _Unspeakable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


def leaves() -> None:
    sys.exit("enough")


def unspeakable() -> None:
    raise _Unspeakable


def surrogate() -> None:
    raise ValueError("a\ud800")


async def cancelled() -> None:
    raise asyncio.CancelledError


def by_place(first: int, second: int = 2, /) -> list[int]:
    return [first, second]


def rest(first: str, *others: int, loud: bool = False, **options: str) -> list[Any]:
    return [first, list(others), loud, options]


def power(base: int, exponent: int) -> int:
    return int(base**exponent)


class Adder:
    def __call__(self, left: int, right: int = 1) -> int:
        """Adds."""
        return left + right


TOOLS: dict[str, Callable[..., Any]] = {
    "leaves": leaves,
    "unspeakable": unspeakable,
    "surrogate": surrogate,
    "cancelled": cancelled,
    "by-place": by_place,
    "rest": rest,
    "square": partial(power, exponent=2),
    "add": Adder(),
    "upper": str.upper,
}
ENDS = {
    "leaves": "leaves: it wanted to exit (enough)\n",
    "unspeakable": "unspeakable: _Unspeakable\n",
    "surrogate": "surrogate: a\\ud800\n",
    "cancelled": "cancelled: CancelledError\n",
}
CALLS = {
    "by-place 1": "[1, 2]\n",
    "by-place 1 --second 5": "[1, 5]\n",
    "by-place '{\"first\": 3}'": "[3, 2]\n",
    "rest a 1 2 --loud --colour=red": '["a", [1, 2], true, {"colour": "red"}]\n',
    "rest -- --loud": '["--loud", [], false, {}]\n',
    'rest \'{"first": "a", "others": [7], "x": "y"}\'': '["a", [7], false, {"x": "y"}]\n',
    "square 5": "25\n",
    "add 41": "42\n",
    "upper abc": "ABC\n",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(tools=TOOLS) as made:
        yield made


@pytest.mark.parametrize("command", CALLS)
def test_a_call(sandbox: Sandbox, command: str) -> None:
    result = sandbox.exec(command)
    assert (result.stdout, result.stderr) == (CALLS[command], "")


@pytest.mark.parametrize("command", ENDS)
def test_every_end_is_an_answer(sandbox: Sandbox, command: str) -> None:
    result = sandbox.exec(command, timeout=30)
    assert (result.stderr, result.exit_code) == (ENDS[command], 1)


def test_every_end_is_an_answer_on_a_loop_too() -> None:
    async def main() -> None:
        async with AsyncSandbox(tools=TOOLS) as sandbox:
            for command, told in ENDS.items():
                result = await sandbox.exec(command, timeout=30)
                assert (result.stderr, result.exit_code) == (told, 1)

    asyncio.run(main())


def test_help_tells_of_everything_that_can_be_given(sandbox: Sandbox) -> None:
    told = sandbox.exec("rest --help; add --help").stdout
    for part in ("--first str (required)", "--loud bool", "OTHERS... (any number)", "--NAME text", "--right int"):
        assert part in told


def test_every_end_of_a_host_function_is_an_answer_in_python(sandbox: Sandbox) -> None:
    limits = RunLimits(wall_ms=30_000)
    for name, kind in {"leaves": "SystemExit", "cancelled": "CancelledError", "unspeakable": "_Unspeakable"}.items():
        error = sandbox.python.run(f"{name}()", limits=limits).error
        assert error is not None
        assert (error.code, error.name) == ("RUNTIME_ERROR", kind)
