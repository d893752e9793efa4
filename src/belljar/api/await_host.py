"""Calls host functions, async or not, from a thread or from an event loop.

asyncio is loaded when first needed: a program that has no loop should not wait for it.
"""

import contextvars
import inspect
import threading
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any


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


def exclusive() -> AbstractContextManager[object]:
    """Enter it to be the only thread inside."""
    return threading.Lock()


def run_aside(work: Callable[[], None]) -> None:
    """On a thread of its own, with the caller's context variables: the caller can stop waiting for it."""
    context = contextvars.copy_context()
    threading.Thread(target=context.run, args=(work,), daemon=True).start()
