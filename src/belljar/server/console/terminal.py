"""Shells in the browser: a terminal that stays while its clients come and go, and what it showed meanwhile."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import Any, Final
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct
from starlette.websockets import WebSocket, WebSocketDisconnect

from belljar.api.errors import SandboxClosed, SandboxError, printable
from belljar.server.console.access import SessionAccess
from belljar.server.errors import ApiError, RpcError
from belljar.server.guest import HOME, Guest, Job
from belljar.server.keys_host import new_id
from belljar.server.records import Held
from belljar.server.service import Service

KEPT: Final = 512 << 10
"""Bytes of a terminal's output that a client who comes back can still have."""
_WINDOW: Final = 256 << 10
"""Bytes on their way to a client that has not said that it showed them; then the shell waits."""
_PIECE: Final = 64 << 10
_INPUT_MAX: Final = 1 << 20
_SHELLS_MAX: Final = 16
_SIDE_MAX: Final = 1000
_SHELL: Final = ["/bin/sh", "-c", 'command -v bash >/dev/null && export PS1="$PROMPT" && exec bash -l; exec sh -l']
_ENVIRONMENT: Final = {
    "TERM": "xterm-256color",
    "COLORTERM": "truecolor",
    "PROMPT": r"\[\e[32m\]\u@\h\[\e[0m\]:\[\e[34m\]\w\[\e[0m\]\$ ",
}
_GONE: Final = 4404
_ENDED: Final = 4410
_REFUSED: Final = 4429
_RESTART: Final = 1012


class Said(Struct):
    """A text message of a client; bytes are what was typed."""

    shown: int | None = None
    """The offset of the output up to which it has shown all."""
    size: tuple[int, int] | None = None
    """Rows and columns."""


class Screen:
    """A shell on a terminal, and the last of its output."""

    def __init__(self, job: Job, queue: asyncio.Queue[dict[str, Any]]) -> None:
        self.id = new_id()
        self.job = job
        self.end = 0
        """The offset after the last byte of output."""
        self.over = False
        self.viewers: list[Viewer] = []
        self._kept = bytearray()
        self._changed = asyncio.Condition()
        self.task = asyncio.ensure_future(self._pump(queue))

    async def _pump(self, queue: asyncio.Queue[dict[str, Any]]) -> None:
        try:
            while "end" not in (event := await queue.get()):
                data = event["data"]["pty"]
                async with self._changed:
                    await self._changed.wait_for(lambda: all(viewer.keeps_up() for viewer in self.viewers))
                    self._kept += data
                    self.end += len(data)
                    del self._kept[: max(0, len(self._kept) - KEPT)]
                    self._changed.notify_all()
        finally:
            self.over = True
            await self.notify()

    async def notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()

    @property
    def start(self) -> int:
        """The offset of the oldest byte that is kept."""
        return self.end - len(self._kept)

    async def after(self, offset: int) -> bytes:
        """The next output from `offset` on; b"" when the shell has ended and all was given."""
        async with self._changed:
            await self._changed.wait_for(lambda: offset < self.end or self.over)
        at = max(0, offset - self.start)
        return bytes(self._kept[at : at + _PIECE])


class Viewer:
    """A client of a screen."""

    def __init__(self, service: Service, socket: WebSocket, screen: Screen, since: int) -> None:
        self._service = service
        self._socket = socket
        self._screen = screen
        self.sent = self.shown = since if screen.start <= since <= screen.end else screen.start

    def keeps_up(self) -> bool:
        return self._screen.end - self.shown < _WINDOW

    async def serve(self) -> None:
        """Until the client goes away or the shell ends."""
        hello = {"type": "attached", "terminal": self._screen.id, "from": self.sent, "end": self._screen.end}
        await self._socket.send_text(msgspec.json.encode(hello).decode())
        tasks = [asyncio.ensure_future(self._send()), asyncio.ensure_future(self._receive())]
        self._screen.viewers.append(self)
        try:
            done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._screen.viewers.remove(self)
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await self._screen.notify()
        for task in done:
            task.result()

    async def _send(self) -> None:
        with suppress(WebSocketDisconnect, RuntimeError):
            while data := await self._screen.after(self.sent):
                await self._socket.send_bytes(data)
                self.sent += len(data)
            leaving = self._service.draining  # then the page comes back by itself
            await self._socket.close(_RESTART if leaving else _ENDED, "the shell has ended")

    async def _receive(self) -> None:
        process = self._screen.job.process
        with suppress(SandboxError, OSError):
            while (message := await self._socket.receive())["type"] == "websocket.receive":
                if data := message.get("bytes"):
                    await process.stdin.send(data[:_INPUT_MAX])
                elif text := message.get("text"):
                    await self._obey(msgspec.json.decode(text, type=Said))

    async def _obey(self, said: Said) -> None:
        if said.shown is not None:
            self.shown = max(self.shown, min(said.shown, self.sent))
            await self._screen.notify()
        if said.size is not None:
            process = self._screen.job.process
            process.command.resize(*(max(1, min(side, _SIDE_MAX)) for side in said.size))


class Terminals:
    def __init__(self, service: Service, access: SessionAccess) -> None:
        self._service = service
        self._access = access
        self._screens: WeakKeyDictionary[Guest, dict[str, Screen]] = WeakKeyDictionary()

    async def endpoint(self, socket: WebSocket) -> None:
        """`?terminal=ID&from=OFFSET` goes on with one; if there is none such, it is a new one."""
        try:
            held = self._access.sandbox(socket)
        except ApiError:
            await socket.close()  # which is a 403: browsers tell pages no more than that it failed
            return
        await socket.accept()
        try:
            async with self._service.use(held, resume=held.record.auto_resume) as guest:
                screen = await self._screen(held, guest, socket)
            with self._service.stream(held, guest):
                await Viewer(self._service, socket, screen, _number(socket, "from", 0)).serve()
            if screen.over and not screen.viewers:
                self._screens[guest].pop(screen.id, None)
        except WebSocketDisconnect:
            return
        except (ApiError, RpcError) as error:
            await _close(socket, _REFUSED if isinstance(error, RpcError) else _GONE, error.message)
        except SandboxClosed:
            await _close(socket, _GONE, "The sandbox has ended")
        except SandboxError as error:
            await _close(socket, _REFUSED, str(error))
        except (msgspec.MsgspecError, ValueError):
            await _close(socket, 1008, "This message makes no sense")

    async def _screen(self, held: Held, guest: Guest, socket: WebSocket) -> Screen:
        """The screen that was asked for, or a new one. RpcError, SandboxError."""
        screens = self._screens.setdefault(guest, {})
        known = screens.get(socket.query_params.get("terminal", ""))
        if known is not None:
            return known
        if len(screens) >= _SHELLS_MAX:
            raise RpcError("resource_exhausted", f"There are {_SHELLS_MAX} shells in this sandbox already: end some")
        self._service.charge_exec(held.record.tenant)
        size = _number(socket, "rows", 24), _number(socket, "cols", 80)
        job, queue = await guest.spawn(
            {"cmd": "bash", "args": ["-l"], "envs": {}, "cwd": HOME},
            _SHELL,
            env=_ENVIRONMENT,
            cwd=HOME,
            stdin=True,
            size=(max(1, min(size[0], _SIDE_MAX)), max(1, min(size[1], _SIDE_MAX))),
            tag=None,
            timeout=None,
        )
        screen = Screen(job, queue)
        screens[screen.id] = screen
        return screen


def _number(socket: WebSocket, name: str, usual: int) -> int:
    text = socket.query_params.get(name, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 16 else usual


async def _close(socket: WebSocket, code: int, reason: str) -> None:
    text = printable(reason).encode()[:120].decode("utf-8", "ignore")  # a frame has room for so much
    with suppress(WebSocketDisconnect, RuntimeError):
        await socket.close(code, text)
