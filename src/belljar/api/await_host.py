"""Threads for the owner's functions, and waits for them from an event loop.

asyncio is loaded when first needed: a program that has no loop should not wait for it.
"""

import contextvars
import inspect
import threading
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, Protocol, TypeVar

T = TypeVar("T")

SMALL: Final = 64 << 10
"""Bytes that are decoded on an event loop: that takes a few milliseconds at most."""
CALLS_AT_ONCE: Final = 32
"""Functions of the owner's that one sandbox has running at a time; further calls wait for their turn."""

IDLE_SECONDS: Final = 1.0
"""Time after which a thread with nothing to do ends."""


def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    import asyncio

    async def main() -> Any:
        return await awaitable

    return asyncio.run(main())


class Threads:
    """Runs functions on at most so many daemon threads, in the order in which they came."""

    def __init__(self, most: int = CALLS_AT_ONCE) -> None:
        self._most = most
        self.forget()

    def forget(self) -> None:
        """Have no threads, as in a forked child."""
        self._lock = threading.Lock()
        self._waiting: deque[Callable[[], None]] = deque()
        self._running = 0

    def start(self, work: Callable[[], None]) -> None:
        with self._lock:
            if self._running >= self._most:
                self._waiting.append(work)
                return
            self._running += 1
        try:
            start_thread(lambda: self._run(work))
        except BaseException:
            with self._lock:
                self._running -= 1
            raise

    def _run(self, work: Callable[[], None] | None) -> None:
        while work is not None:
            try:
                work()
            finally:
                with self._lock:
                    work = self._waiting.popleft() if self._waiting else None
                    if work is None:
                        self._running -= 1


class SerialThread:
    """Runs functions one after the other on a daemon thread, which ends when it had nothing to do for a while."""

    def __init__(self) -> None:
        self._waiting: deque[Callable[[], None]] = deque()
        self._changed = threading.Condition()
        self._running = False

    def start(self, work: Callable[[], None]) -> None:
        with self._changed:
            self._waiting.append(work)
            self._changed.notify()
            if self._running:
                return
            self._running = True
        start_thread(self._run)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._changed.wait_for(lambda: self._waiting, IDLE_SECONDS):
                    self._running = False
                    return
                work = self._waiting.popleft()
            work()


def start_thread(work: Callable[[], None]) -> None:
    threading.Thread(target=work, daemon=True).start()


async def in_thread(
    work: Callable[[], T],
    discard: Callable[[T], object] | None = None,
    start: Callable[[Callable[[], None]], None] = start_thread,
) -> T:
    """`work()` on a thread of its own, with this task's context variables.

    The thread can't be cancelled: a result that comes after the task was is given to `discard`, on whatever thread. But
    work that has not begun when the task is cancelled is never begun.
    """
    import asyncio

    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()
    lock = threading.Lock()
    made: list[T] = []
    wanted = True

    def run() -> None:
        if not wanted:
            return
        try:
            result = context.run(work)
        except BaseException as error:  # noqa: BLE001 - raised where it is awaited
            failure = RuntimeError("StopIteration") if isinstance(error, StopIteration) else error
            tell(lambda: future.set_exception(failure))
            return
        with lock:
            made.append(result)
            late = not wanted
        if late:
            drop()
        else:
            tell(lambda: future.set_result(result))

    def tell(how: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # the loop is closed: nobody waits
            loop.call_soon_threadsafe(lambda: None if future.done() else how())

    def drop() -> None:
        if discard is not None:
            discard(made.pop())

    start(run)
    try:
        return await future
    except BaseException:
        with lock:
            wanted = False
            finished = bool(made)
        if finished:
            drop()
        raise


async def off_loop(work: Callable[[], T], size: int, start: Callable[[Callable[[], None]], None]) -> T:
    """`work()` on so many bytes of a guest's: on a thread if they are many, so that others on the loop go on."""
    return work() if size <= SMALL else await in_thread(work, start=start)


async def call_async(
    function: Callable[..., Any],
    kwargs: dict[str, Any],
    args: Sequence[Any] = (),
    start: Callable[[Callable[[], None]], None] = start_thread,
) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    result = await in_thread(lambda: function(*args, **kwargs), start=start)
    return await result if inspect.isawaitable(result) else result


def is_being_cancelled() -> bool:
    """Whether the task that asks is to end: what it raises is then no answer of the function it awaited."""
    import asyncio

    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def told(error: BaseException) -> str:
    """Text of an exception, whatever its own code does."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - of the owner's own making
        return ""


class Guard(Protocol):
    """Enter it to be the only thread inside."""

    def acquire(self, blocking: bool = True) -> bool:
        """Enter; False if that would mean to wait, and `blocking` is not wanted."""

    def release(self) -> None: ...
    def __enter__(self) -> bool: ...
    def __exit__(self, *_: Any) -> None: ...


class Exclusive(Guard, Protocol):
    def locked(self) -> bool: ...


def exclusive() -> Exclusive:
    return threading.Lock()
