"""Runs the owner's functions (policies, middleware, hooks) without ever holding up the network's own loop.

A plain function runs on a thread of its own, a coroutine on the owner's event loop if there is one, else on a loop that
is only there for this. Whatever takes too long is given up.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any, Final

_AT_ONCE: Final = 16
"""Calls of one sandbox that may be under way: a function that never returns can't eat all threads."""


calling_loop: ContextVar[asyncio.AbstractEventLoop | None] = ContextVar("calling_loop", default=None)
"""The loop on whose behalf a request is made, where that is another one each time."""


class TooBusy(Exception):
    """Too many of the owner's functions are still thinking."""


class Callbacks:
    """The owner's functions of one sandbox."""

    def __init__(self, owner: asyncio.AbstractEventLoop | None) -> None:
        self._owner = owner
        self._free = asyncio.Semaphore(_AT_ONCE)

    async def call(self, function: Callable[..., Any], argument: object, timeout: float) -> Any:
        """What it returns, awaited if need be. Raises what it raises, TimeoutError, or TooBusy."""
        deadline = asyncio.get_running_loop().time() + timeout
        try:
            async with asyncio.timeout_at(deadline):
                await self._free.acquire()
        except TimeoutError:
            raise TooBusy from None
        async with asyncio.timeout_at(deadline):
            if inspect.iscoroutinefunction(function):
                return await self._await(function(argument))
            result = await self._on_thread(lambda: function(argument))
            return await self._await(result) if inspect.isawaitable(result) else result

    def _done(self) -> None:
        self._free.release()

    async def _await(self, awaitable: Any) -> Any:
        owner = calling_loop.get() or self._owner
        loop = owner if owner is not None and not owner.is_closed() else _spare_loop()

        async def run() -> Any:
            return await awaitable

        future = asyncio.run_coroutine_threadsafe(run(), loop)
        here = asyncio.get_running_loop()
        future.add_done_callback(lambda _: here.call_soon_threadsafe(self._done) if not here.is_closed() else None)
        return await asyncio.wrap_future(future)

    async def _on_thread(self, function: Callable[[], Any]) -> Any:
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()

        def settle(result: Any, error: BaseException | None) -> None:
            waits = inspect.isawaitable(result) and not future.done()
            if not waits:
                self._done()  # else it is still under way, on a loop
            if future.done():
                if inspect.iscoroutine(result):
                    result.close()
            elif error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        def run() -> None:
            result: Any = None
            failure: BaseException | None = None
            try:
                result = function()
            except Exception as error:  # noqa: BLE001 - the owner's code: its error is its answer
                failure = error
            if not loop.is_closed():
                loop.call_soon_threadsafe(settle, result, failure)

        # Not a pool: its threads would be joined at exit, and a policy that asks a person may never return.
        threading.Thread(target=run, name="belljar-policy", daemon=True).start()
        return await future


_lock: Final = threading.Lock()
_spare: list[asyncio.AbstractEventLoop] = []


def _spare_loop() -> asyncio.AbstractEventLoop:
    """The loop for coroutines of owners that have none."""
    with _lock:
        if not _spare:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="belljar-callbacks", daemon=True).start()
            _spare.append(loop)
        return _spare[0]
