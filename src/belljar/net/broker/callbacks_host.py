"""Runs the owner's functions (policies, middleware, hooks) without ever holding up the network's own loop.

A plain function runs on a thread of its own, a coroutine on the owner's event loop if there is one, else on a loop that
is only there for this. Whatever takes too long is given up.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from collections.abc import Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress
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
        """Call a function and return its result, awaited if need be. Raises what it raises, TimeoutError, TooBusy."""
        here = asyncio.get_running_loop()
        deadline = here.time() + timeout
        try:
            async with asyncio.timeout_at(deadline):
                await self._free.acquire()
        except TimeoutError:
            raise TooBusy from None

        def ended() -> None:
            with suppress(RuntimeError):  # the loop is closed, and nobody waits for a slot any more
                here.call_soon_threadsafe(self._free.release)

        try:
            under_way = self._start(function, argument, ended)
        except BaseException:
            self._free.release()
            raise
        async with asyncio.timeout_at(deadline):
            return await asyncio.wrap_future(under_way)

    def _start(self, function: Callable[..., Any], argument: object, ended: Callable[[], None]) -> Future[Any]:
        """`ended` is called, on any thread, when the function has come to its end, however late."""
        owner = calling_loop.get() or self._owner
        if inspect.iscoroutinefunction(function):
            future = asyncio.run_coroutine_threadsafe(_awaited(lambda: function(argument)), _open_loop(owner))
            future.add_done_callback(lambda _: ended())
            return future
        under_way: Future[Any] = Future()

        def run() -> None:
            try:
                result = function(argument)
                if inspect.isawaitable(result):
                    result = self._wait(result, owner, under_way)
            except BaseException as error:  # noqa: BLE001 - the owner's code: its error is its answer
                with suppress(InvalidStateError):  # whoever waited gave it up
                    under_way.set_exception(error)
            else:
                with suppress(InvalidStateError):
                    under_way.set_result(result)
            finally:
                ended()

        # Not a pool: its threads would be joined at exit, and a policy that asks a person may never return.
        threading.Thread(target=run, name="belljar-policy", daemon=True).start()
        return under_way

    def _wait(self, awaitable: Any, owner: asyncio.AbstractEventLoop | None, under_way: Future[Any]) -> Any:
        """Wait, on a plain function's thread, for the awaitable it returned; cancelled with the call."""
        inner = asyncio.run_coroutine_threadsafe(_awaited(lambda: awaitable), _open_loop(owner))
        under_way.add_done_callback(lambda _: inner.cancel())
        return inner.result()


async def _awaited(make: Callable[[], Any]) -> Any:
    return await make()


_lock: Final = threading.Lock()
_spare: list[asyncio.AbstractEventLoop] = []


def _open_loop(owner: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
    return owner if owner is not None and not owner.is_closed() else _spare_loop()


def _spare_loop() -> asyncio.AbstractEventLoop:
    """The loop for coroutines of owners that have none."""
    with _lock:
        if not _spare:
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="belljar-callbacks", daemon=True).start()
            _spare.append(loop)
        return _spare[0]
