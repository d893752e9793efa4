"""Calls host functions, async or not, from a thread or from an event loop."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from typing import Any


def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await awaitable

    return asyncio.run(main())


async def call_async(function: Callable[..., Any], arguments: dict[str, Any]) -> Any:
    if inspect.iscoroutinefunction(function):
        return await function(**arguments)
    result = await asyncio.to_thread(lambda: function(**arguments))
    return await result if inspect.isawaitable(result) else result
