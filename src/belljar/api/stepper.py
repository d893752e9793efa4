"""Runs an operation that is a generator one step at a time, without saying how to wait for a step."""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")


class Stepper(Generic[S, T]):
    """`step` is what to do now, until `done`; then there is a `result`."""

    def __init__(self, steps: Generator[S, Any, T]) -> None:
        self._steps = steps
        self.done = False
        self.step: S | None = None
        self.result: T | None = None
        self._advance(lambda: next(steps))

    def _advance(self, resume: Callable[[], S]) -> None:
        try:
            self.step = resume()
        except StopIteration as end:
            self.done, self.step, self.result = True, None, end.value

    def answer(self, value: Any) -> None:
        self._advance(lambda: self._steps.send(value))

    def fail(self, error: Exception) -> None:
        """The step could not be done; the operation may have an answer to that."""
        self._advance(lambda: self._steps.throw(error))
