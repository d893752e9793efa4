"""Changes of a sandbox's files as they happen: `sandbox.files.watch`, in both fronts.

The owner asks for the next changes when it has dealt with the last: a sandbox that changes much can't flood it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Any, Self

from belljar.abi.paths import fsencode
from belljar.abi.wire import Plain, WireError
from belljar.api.changes import Change, changes_from
from belljar.api.core import Pending
from belljar.api.errors import SandboxError
from belljar.api.owner_host import refuse_copy
from belljar.api.request import raise_failure
from belljar.api.stepper import Link, Waits, finish, finish_async


class WatchCore:
    """A watch as both fronts know it; its methods are generators (`stepper.py`)."""

    def __init__(self, link: Link, path: str, recursive: bool) -> None:
        self._link = link
        self._path = path
        self._recursive = recursive
        self._number = 0
        self._waiting: deque[Change] = deque()
        self._asked: Pending | None = None
        self._closed = False

    def _call(self, name: str, path: str, *arguments: Plain) -> Waits[Any]:
        pending, frame = self._link.conversation.call(name, *arguments)
        self._link.send(frame)
        yield self._link.expect(lambda: pending.done)
        raise_failure(pending, path)
        return pending.value

    def start(self) -> Waits[None]:
        if not self._number:
            self._number = yield from self._call("watch", self._path, fsencode(self._path), self._recursive)

    def next(self, timeout: float | None) -> Waits[Change | None]:
        yield from self.start()
        if not self._waiting and not self._closed:
            if self._asked is None:
                self._asked, frame = self._link.conversation.call("changes", self._number)
                self._link.send(frame)
            asked = self._asked
            deadline = None if timeout is None else self._link.clock.monotonic() + timeout
            if not (yield self._link.wait_until(lambda: asked.done, deadline)):
                return None
            self._asked = None
            raise_failure(asked)
            try:
                self._waiting += changes_from(asked.value)
            except WireError as error:
                raise SandboxError(f"the sandbox does not say what changed: {error}") from None
        return self._waiting.popleft() if self._waiting else None

    def close(self) -> Waits[None]:
        if not self._closed:
            self._closed = True
            if self._number and not self._link.closed:
                yield from self._call("unwatch", "", self._number)


class Watch:
    """Iterate over it, or ask with `next(timeout)`; close it, or use it in `with`.

    >>> with sandbox.files.watch("/workspace") as watch:
    ...     sandbox.exec("echo hi > note.txt")
    ...     watch.next(timeout=1)
    Change(kind='created', path='/workspace/note.txt', to=None)
    """

    __reduce__ = refuse_copy

    def __init__(self, link: Link, path: str, recursive: bool) -> None:
        self._core = WatchCore(link, path, recursive)
        finish(self._core.start())

    def next(self, timeout: float | None = None) -> Change | None:
        """The next change; None if `timeout` seconds brought none, or the watch is closed."""
        return finish(self._core.next(timeout))

    def __iter__(self) -> Iterator[Change]:
        while (change := self.next()) is not None:
            yield change

    def close(self) -> None:
        """Idempotent; a sandbox that has ended has no watches left to close."""
        finish(self._core.close())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class AsyncWatch:
    """The same, awaited: `async with sandbox.files.watch(path) as watch: async for change in watch`."""

    __reduce__ = refuse_copy

    def __init__(self, link: Link, path: str, recursive: bool) -> None:
        self._core = WatchCore(link, path, recursive)

    async def start(self) -> Self:
        await finish_async(self._core.start())
        return self

    async def next(self, timeout: float | None = None) -> Change | None:
        """The next change; None if `timeout` seconds brought none, or the watch is closed."""
        return await finish_async(self._core.next(timeout))

    async def __aiter__(self) -> AsyncIterator[Change]:
        while (change := await self.next()) is not None:
            yield change

    async def close(self) -> None:
        await finish_async(self._core.close())

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()
