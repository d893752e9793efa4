"""Operations as generators, which both fronts run.

There are two kinds. The operations of `operations.py` yield descriptions of requests; `Stepper` runs them one by one.
All others yield what the front's own waits return: a value in the synchronous front, where the wait is over by then,
and an awaitable in the asynchronous one. `finish` and `finish_async` run these.
"""

from __future__ import annotations

from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

S = TypeVar("S")
T = TypeVar("T")
Waits = Generator[Any, Any, T]


def finish(waits: Waits[T]) -> T:
    """Run an operation whose waits block."""
    try:
        value = next(waits)
        while True:
            value = waits.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


async def finish_async(waits: Waits[T]) -> T:
    """Run an operation whose waits are awaitables. What they raise, a cancellation too, is raised in it."""
    try:
        wait = next(waits)
        while True:
            try:
                value = await wait
            except BaseException as error:  # noqa: BLE001
                wait = waits.throw(error)
            else:
                wait = waits.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]


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
