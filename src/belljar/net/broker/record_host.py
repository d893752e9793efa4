"""The record of a sandbox's network: events are handed to the owner's functions on a thread of its own, in order.

The queue is bounded. A flow that asks for a decision waits while it is half full, so that a slow function delays its
own sandbox only; what is too much all the same is counted, and the count is recorded.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections import deque
from collections.abc import Callable
from typing import Any, Final

Event = dict[str, Any]
Sink = Callable[[Event], object]

QUEUE_MAX: Final = 4096
_IDLE_SECONDS: Final = 1.0
"""A thread with nothing to do for so long ends; the next event starts another."""
_log: Final = logging.getLogger("belljar")


class Record:
    """Takes events from the network's thread. If a function raises, `failed` is set, and the log says why, once."""

    def __init__(self, sinks: list[Sink], sandbox: str) -> None:
        self._sinks = sinks
        self._sandbox = sandbox
        self._queue: deque[Event] = deque()
        self._changed = threading.Condition()
        self._running = False
        self._put = 0
        self._done = 0
        self._lost = 0
        self._waiting: list[tuple[int, asyncio.AbstractEventLoop, asyncio.Future[None]]] = []
        self.failed = False
        """An event could not be recorded."""

    def put(self, event: Event) -> None:
        """Add an event. Never waits."""
        if not self._sinks:
            return
        with self._changed:
            if len(self._queue) >= QUEUE_MAX:
                self._lost += 1
                self.failed = True
                return
            self._queue.append(event)
            self._put += 1
            self._changed.notify_all()
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="belljar-record", daemon=True).start()

    async def written(self) -> None:
        """Wait until every event so far was handed over."""
        await self._reached(self._put)

    async def room(self) -> None:
        """Wait until at most half of the queue is full."""
        if len(self._queue) > QUEUE_MAX // 2:
            await self._reached(self._put - QUEUE_MAX // 2)

    async def _reached(self, count: int) -> None:
        loop = asyncio.get_running_loop()
        with self._changed:
            if self._done >= count:
                return
            future: asyncio.Future[None] = loop.create_future()
            self._waiting.append((count, loop, future))
        await future

    def flush(self, seconds: float) -> bool:
        """Wait, on any thread, until every event so far was handed over; whether that happened in time."""
        with self._changed:
            count = self._put
            return self._changed.wait_for(lambda: self._done >= count, seconds)

    def _run(self) -> None:
        while True:
            with self._changed:
                if not self._queue and not self._changed.wait_for(lambda: bool(self._queue), _IDLE_SECONDS):
                    self._running = False
                    return
                event = self._queue.popleft()
                lost, self._lost = self._lost, 0
            if lost:
                self._hand_over({**event, "action": "events-lost", "count": lost})
            self._hand_over(event)
            with self._changed:
                self._done += 1
                self._changed.notify_all()
                reached = [entry for entry in self._waiting if entry[0] <= self._done]
                self._waiting = [entry for entry in self._waiting if entry[0] > self._done]
            for _, loop, future in reached:
                if not loop.is_closed():
                    loop.call_soon_threadsafe(_finish, future)

    def _hand_over(self, event: Event) -> None:
        for sink in self._sinks:
            try:
                sink(event)
            except Exception:  # noqa: BLE001 - the owner's code: its bug must not become the sandbox's
                if not self.failed:
                    _log.exception("the network of sandbox %s could not be recorded", self._sandbox)
                self.failed = True


def _finish(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
