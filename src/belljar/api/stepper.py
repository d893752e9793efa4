"""Operations as generators, which both fronts run.

They yield what the front's own waits return: a value in the synchronous front, where the wait is over by then, and an
awaitable in the asynchronous one. `finish` and `finish_async` run them. Those of `operations.py` yield descriptions of
requests instead; `driven` makes of them an operation that waits.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

if TYPE_CHECKING:
    from belljar.abi.clock import Clock
    from belljar.api.core import Conversation
    from belljar.owner.handle_host import WorkerHandle

S = TypeVar("S")
T = TypeVar("T")
Waits = Generator[Any, Any, T]


class Link(Protocol):
    """The connection to a worker, of either front. Its waits give their results, or awaitables."""

    conversation: Conversation
    clock: Clock

    @property
    def worker(self) -> WorkerHandle: ...
    @property
    def closed(self) -> bool: ...
    def send(self, frame: bytes, fds: Sequence[int] = ()) -> None: ...
    def patience(self, wall_seconds: float | None = None) -> float: ...

    def deliver(self, frame: bytes, deadline: float) -> Any:
        """Send, and wait until it is sent; a worker that has not taken it by the (monotonic) deadline is ended."""

    def wait_until(self, ready: Callable[[], bool], deadline: float | None = None) -> Any:
        """Wait until a condition holds. Give False if the (monotonic) deadline passed first."""

    def expect(self, ready: Callable[[], bool], deadline: float | None = None) -> Any:
        """Wait until it is so; a worker that lets the deadline pass is ended."""

    def call_blocking(self, work: Callable[[], T], discard: Callable[[T], object]) -> Any:
        """Call a function that blocks. `discard` takes a result that nobody waits for any more."""


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


def driven(
    steps: Generator[S, Any, T], perform: Callable[[S], Generator[Any, Any, Any]], errors: type[Exception]
) -> Generator[Any, Any, T]:
    """Run an operation whose steps are done by `perform`. Its errors of the type `errors` are raised at the step."""
    try:
        step = next(steps)
        while True:
            try:
                value = yield from perform(step)
            except errors as error:
                step = steps.throw(error)
            else:
                step = steps.send(value)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
