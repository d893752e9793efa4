"""Calls host functions, async or not, from a thread or from an event loop.

asyncio is loaded when first needed: a program that has no loop should not wait for it.
"""

import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, Protocol


def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    import asyncio

    async def main() -> Any:
        return await awaitable

    return asyncio.run(main())


async def call_async(function: Callable[..., Any], kwargs: dict[str, Any], args: Sequence[Any] = ()) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(*args, **kwargs)
    import asyncio

    result = await asyncio.to_thread(lambda: function(*args, **kwargs))
    return await result if inspect.isawaitable(result) else result


def is_being_cancelled() -> bool:
    """Whether the task that asks is to end: what it raises is then no answer of the function it awaited."""
    import asyncio

    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def told(error: BaseException) -> str:
    """What an exception says, whatever its own code does."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - of the owner's own making
        return ""


class Exclusive(Protocol):
    """Enter it to be the only thread inside."""

    def acquire(self, blocking: bool = True) -> bool:
        """Enter; False if that would mean to wait, and `blocking` is not wanted."""

    def release(self) -> None: ...
    def __enter__(self) -> bool: ...
    def __exit__(self, *_: Any) -> None: ...


def exclusive() -> Exclusive:
    return threading.Lock()


def run_aside(work: Callable[[], None], context: contextvars.Context) -> None:
    """On a thread of its own, with a copy of these context variables: the caller can stop waiting for it."""
    context = context.copy()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()
