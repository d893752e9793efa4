"""Runs jq filters without a kernel: a runtime that only counts."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Any

from belljar.bin.jq.code import as_many
from belljar.bin.jq.compile import Compiler
from belljar.bin.jq.nodes import Identity
from belljar.bin.jq.parse import parse


class OutOfSteps(BaseException):
    """The steps a test allows are spent."""


class Counter:
    """A `Runtime` with a fixed world and a bound on work."""

    def __init__(self, inputs: Iterable[Any] = (), steps: int = 10_000_000) -> None:
        self.inputs = iter(inputs)
        self.steps = steps
        self.messages: list[Any] = []

    def charge(self, steps: int) -> None:
        self.steps -= steps
        if self.steps < 0:
            raise OutOfSteps

    def charge_size(self, size: int) -> None:
        if size > 1 << 26:
            raise OutOfSteps

    def next_input(self) -> Any:
        return next(self.inputs)

    def environment(self) -> dict[str, str]:
        return {"HOME": "/home/user"}

    def now(self) -> float:
        return 1_700_000_000.5

    def debug(self, value: Any) -> None:
        self.messages.append(value)

    def stderr(self, value: Any) -> None:
        self.messages.append(value)

    def input_filename(self) -> str | None:
        return None

    def input_line_number(self) -> int:
        return 0

    def zone(self) -> str:
        return "EST5"


def outputs(source: str, value: Any = None, runtime: Counter | None = None) -> Iterator[Any]:
    """The outputs of a program for one input."""
    program = parse(source)
    compiler = Compiler(runtime or Counter())
    scope = compiler.root
    for function in program.functions:
        scope = scope.define(function)
    code = compiler.value(program.body if program.body is not None else Identity(), scope)
    return iter(as_many(code)(value, None))


# Plain recursion as deep as a worker allows it.
DEEP = 100_000


def run(source: str, value: Any = None) -> list[Any]:
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(DEEP)
    try:
        return list(outputs(source, value))
    finally:
        sys.setrecursionlimit(limit)
