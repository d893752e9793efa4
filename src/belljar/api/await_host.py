"""Runs an async host function from the thread that serves a sandbox."""

import asyncio
from collections.abc import Awaitable
from typing import Any


def run_awaitable(awaitable: Awaitable[Any]) -> Any:
    async def main() -> Any:
        return await awaitable

    return asyncio.run(main())
