"""The sandboxes of an MCP server's clients, and their background processes."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, Final

from belljar.abi.clock import Clock
from belljar.api.async_process import AsyncProcess, AsyncStream
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.clock_host import HOST_CLOCK
from belljar.api.errors import SandboxError
from belljar.integrations.extras import needs
from belljar.remote.choice import PlacedOptions, make_async_sandbox

with needs("mcp"):
    from mcp.server.mcpserver import Context
    from mcp.server.mcpserver.exceptions import ToolError

HELD_MAX: Final = 1 << 20
"""Bytes of a background process's stream that are kept for whoever asks."""


class Background:
    """A background process and what it said that nobody has asked for yet; past a bound it waits until someone does."""

    def __init__(self, process: AsyncProcess[bytes]) -> None:
        self.process = process
        self._held = {1: bytearray(), 2: bytearray()}
        self._news = asyncio.Event()
        self._room = asyncio.Event()
        self._readers = [
            asyncio.create_task(self._collect(self._held[1], process.stdout)),
            asyncio.create_task(self._collect(self._held[2], process.stderr)),
        ]

    async def _collect(self, held: bytearray, stream: AsyncStream[bytes]) -> None:
        try:
            async for data in stream:
                held += data
                self._news.set()
                while len(held) > HELD_MAX:
                    self._room.clear()
                    await self._room.wait()
        except SandboxError:
            return  # whoever asks for more hears of it
        finally:
            self._news.set()

    def drop(self) -> None:
        for reader in self._readers:
            reader.cancel()

    async def take(self, wait: float) -> tuple[bytes, bytes, int | None]:
        """Output so far, after at most `wait` seconds for there to be some, and the exit code once all was taken."""
        if not any(self._held.values()) and not self._ended:
            self._news.clear()
            with suppress(TimeoutError):
                await asyncio.wait_for(self._news.wait(), wait)
        stdout, stderr = (bytes(held) for held in self._held.values())
        for held in self._held.values():
            held.clear()
        self._room.set()
        return stdout, stderr, await self.process.wait() if self._ended else None

    @property
    def _ended(self) -> bool:
        return all(reader.done() for reader in self._readers)


@dataclass(slots=True)
class Box:
    """A sandbox, its background processes, and when it was last used."""

    sandbox: AsyncSandbox
    session: str | None
    """The session it belongs to; None if its client keeps none: then any client that knows its name may use it."""
    processes: dict[int, Background] = field(default_factory=dict)
    used: float = 0.0


class Boxes:
    """The sandboxes of one server: by session for those who have one, and by the name of each."""

    def __init__(self, options: PlacedOptions, *, most: int, idle_seconds: float, clock: Clock = HOST_CLOCK) -> None:
        self._clock = clock
        self._options = options
        self._most = most
        self._idle_seconds = idle_seconds
        self._boxes: OrderedDict[str, Box] = OrderedDict()
        self._own: dict[str, str] = {}
        self._lock = asyncio.Lock()

    async def of(self, context: Context[Any, Any], name: str | None) -> Box:
        """The sandbox a call is for, made now if it is the caller's own and first. ToolError."""
        async with self._lock:
            await self._close_idle()
            if name is None:
                name = await self._own_name(context)
            box = self._find(_session(context), name)
            box.used = self._clock.monotonic()
            self._boxes.move_to_end(name)
            return box

    def _find(self, session: str | None, name: str) -> Box:
        box = self._boxes.get(name)
        if box is None or box.session not in (None, session):
            raise ToolError(f"there is no sandbox {name!r} (any more); make one with sandbox_create")
        return box

    async def _own_name(self, context: Context[Any, Any]) -> str:
        session = _session(context)
        if session is None:
            raise ToolError("this connection keeps no session: make a sandbox with sandbox_create and name it")
        if self._own.get(session) not in self._boxes:
            self._own[session] = await self._make(context)
        return self._own[session]

    async def make(self, context: Context[Any, Any]) -> str:
        async with self._lock:
            await self._close_idle()
            return await self._make(context)

    async def _make(self, context: Context[Any, Any]) -> str:
        self._check_room()
        return self._add(await make_async_sandbox(self._options).start(), context)

    async def fork(self, box: Box, context: Context[Any, Any]) -> str:
        async with self._lock:
            self._check_room()
            return self._add(await box.sandbox.fork(), context)

    def _check_room(self) -> None:
        if len(self._boxes) >= self._most:
            raise ToolError(f"there are {self._most} sandboxes already; close one with sandbox_close")

    def _add(self, sandbox: AsyncSandbox, context: Context[Any, Any]) -> str:
        session, name = _session(context), sandbox.name
        self._boxes[name] = Box(sandbox, session, used=self._clock.monotonic())
        # The SDK's place for what ends with a connection; a request that is a connection of its own keeps nothing.
        connection = getattr(context.request_context.session, "_connection", None)
        if connection is not None and connection.session_id is not None:
            connection.exit_stack.push_async_callback(self._end, session, name)
        return name

    async def _end(self, session: str, name: str) -> None:
        """Close the sandbox of a client that has gone."""
        self._own.pop(session, None)
        async with self._lock:
            await self._close(name)

    async def _close_idle(self) -> None:
        while self._boxes:
            name, box = next(iter(self._boxes.items()))
            if self._clock.monotonic() - box.used < self._idle_seconds:
                return
            await self._close(name)

    async def _close(self, name: str) -> None:
        box = self._boxes.pop(name, None)
        if box is not None:
            for process in box.processes.values():
                process.drop()
            await box.sandbox.close()

    async def close(self, context: Context[Any, Any], name: str) -> None:
        """Close a sandbox by name. ToolError if there is none."""
        async with self._lock:
            self._find(_session(context), name)
            await self._close(name)

    async def close_all(self) -> None:
        async with self._lock:
            for name in list(self._boxes):
                await self._close(name)


def _session(context: Context[Any, Any]) -> str | None:
    request = context.request_context.request
    if request is None:
        return "stdio"
    session: str | None = request.headers.get("mcp-session-id")
    return session
