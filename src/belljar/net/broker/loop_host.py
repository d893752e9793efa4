"""An event loop on a thread of its own. Each sandbox's network has one: what keeps it busy delays no other sandbox."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from contextlib import suppress
from typing import Any, Final, TypeVar

T = TypeVar("T")
_CLOSING_SECONDS: Final = 5.0
_CLOSING_TURNS: Final = 8
"""Turns of the loop in which transports that were aborted close their sockets."""


class LoopThread:
    """Starts when it is first used, ends with `stop`. Any thread may call it."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._pid = 0
        self._stopped = False
        self.closers: set[Callable[[], Coroutine[Any, Any, None]]] = set()
        """Called on the loop when it stops, by whoever has connections open that no task closes. Used on the loop."""

    def submit(self, work: Coroutine[Any, Any, T]) -> Future[T]:
        """Run it on the loop. RuntimeError after `stop`."""
        with self._lock:
            if self._stopped:
                work.close()
                raise RuntimeError("the sandbox is closed")
            if self._loop is None or self._pid != os.getpid():  # threads do not survive a fork of the owner
                self._pid = os.getpid()
                self._loop = asyncio.new_event_loop()
                threading.Thread(target=self._run, args=(self._loop,), name=self._name, daemon=True).start()
            return asyncio.run_coroutine_threadsafe(work, self._loop)

    def stop(self) -> None:
        """Cancel what is under way and end the thread. Does not wait for it. Idempotent."""
        with self._lock:
            self._stopped = True
            loop, self._loop = self._loop, None
            if loop is not None and self._pid == os.getpid():
                with suppress(RuntimeError):  # it is closed already
                    loop.call_soon_threadsafe(loop.stop)

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        try:
            loop.run_forever()
        finally:
            loop.run_until_complete(self._finish())
            loop.close()

    async def _finish(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_CLOSING_SECONDS)
        for close in list(self.closers):
            await close()
        await asyncio.get_running_loop().shutdown_asyncgens()
        for _ in range(_CLOSING_TURNS):
            await asyncio.sleep(0)
