"""One client's session with its sandbox, at the server: its messages, streams, and JavaScript processes."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from belljar.abi.wire import Ready, WireError
from belljar.abi.wire import encode as encode_frame
from belljar.api.async_link_host import AsyncLink
from belljar.api.errors import EndedError, InfrastructureError, SandboxClosed, SandboxError
from belljar.api.js_core import OwnProcesses
from belljar.api.settings import Settings
from belljar.api.usage_host import usage
from belljar.native.launch_host import NativeWorker
from belljar.remote.errors import refusal
from belljar.remote.session import Session
from belljar.remote.tunnel_host import Mux, Tunnel, close_descriptors, open_pair
from belljar.remote.wire import (
    CHUNK,
    CONVERSATION_WINDOW,
    Data,
    Grant,
    Over,
    Request,
    Response,
)
from belljar.server.guest import Guest
from belljar.server.keys_host import new_token
from belljar.server.records import Held
from belljar.server.relay import Member, Relay

if TYPE_CHECKING:
    from belljar.server.remote import Remote

log = logging.getLogger("belljar.server")
_BUFFERED_MAX: Final = 64 << 20
"""Bytes of the conversation that a client was told of and has not granted."""
_LAST_SECONDS: Final = 2.0
"""Seconds that a client has to take the reason of its session's end."""
_REQUESTS_MAX: Final = 256
_PROCESSES_MAX: Final = 256
_DEVICES_MAX: Final = 256
"""Mounts that one session may make on the native tier: each has two threads here."""


class Voice:
    """Stream 0: the conversation between the client and the worker."""

    def __init__(self, session: RemoteSession) -> None:
        self._session = session
        self._credit = self._room = CONVERSATION_WINDOW
        self._unsent = bytearray()
        self._untold = 0
        self._granting = False

    def hear(self, frame: bytes) -> None:
        """A frame for the client."""
        if not self._unsent and len(frame) <= min(CHUNK, self._credit):
            self._credit -= len(frame)
            self._session.mux.put(Data(0, frame))
            return
        self._unsent += frame
        self._flush()
        if len(self._unsent) > _BUFFERED_MAX:
            raise WireError(f"more than {_BUFFERED_MAX >> 20} MB wait for the client")

    def _flush(self) -> None:
        while self._unsent and self._credit:
            piece = bytes(self._unsent[: min(CHUNK, self._credit)])
            del self._unsent[: len(piece)]
            self._credit -= len(piece)
            self._session.mux.put(Data(0, piece))

    def take(self, data: bytes, opens: list[int]) -> None:
        self._room -= len(data)
        if self._room < 0 or not data:
            raise WireError("bytes of a stream that were not granted")
        if self._session.over:
            return
        with suppress(SandboxError):  # the worker has ended, and the session is told
            self._session.member.feed(data, [self._session.open_stream(number) for number in opens])
        self._untold += len(data)
        if self._untold >= CONVERSATION_WINDOW // 4 and not self._granting:
            self._granting = True
            self._session.spawn(self._grant())

    async def _grant(self) -> None:
        """Let more come when the worker has taken what came."""
        with suppress(SandboxError):
            await self._session.link.sent()
        self._granting = False
        self._session.mux.put(Grant(0, self._untold))
        self._room += self._untold
        self._untold = 0

    def granted(self, count: int) -> None:
        self._credit += count
        if self._credit > CONVERSATION_WINDOW:
            raise WireError("more was granted than was sent")
        self._flush()

    def ended(self) -> None:
        """It will say that it leaves."""

    def reset(self) -> None:
        raise WireError("the conversation was reset")

    def close(self) -> None:
        return


class RemoteSession:
    """Lives from the client's hello until it leaves, or is gone for too long; connections come and go."""

    def __init__(
        self,
        remote: Remote,
        held: Held,
        guest: Guest,
        link: AsyncLink,
        settings: Settings,
        relay: Relay,
        join: Callable[[RemoteSession], Member],
    ) -> None:
        self.remote = remote
        self._clock = remote.clock
        self.token = new_token()
        self.held = held
        self.guest = guest
        self.link = link
        self.settings = settings
        self._relay = relay
        self.mux = Mux(Session())
        self.voice = Voice(self)
        self.mux.add(0, self.voice)
        self.member = join(self)
        self.lost: float | None = self._clock.monotonic()
        """Since when there is no connection."""
        self.over = False
        self._connection: asyncio.Task[Any] | None = None
        self._processes: dict[int, Any] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._requests = self._devices = 0
        guest.streams += 1

    async def greet(self) -> None:
        """Tell a new client what the worker said, or will say, when it is ready."""
        with suppress(SandboxError):  # it has ended
            await self.link.wait_until(lambda: self.link.conversation.ready is not None)
            self.hear(encode_frame(Ready(self.link.layers, 0)))

    # Connections.

    async def serve(self, send: Callable[[bytes], Awaitable[object]], receive: Callable[[], Awaitable[bytes]]) -> None:
        """Move messages over a connection, the only one from now on, until it ends."""
        me = asyncio.current_task()
        assert me is not None
        self._connection, self.lost = me, None
        try:
            await self.mux.pump(send, receive, self._act)
        except WireError as error:
            log.warning("a client broke the protocol: %s", error, extra=self.held.describe())
            self.finish("infrastructure", f"the client broke the protocol: {error}")
            async with self._clock.timeout(_LAST_SECONDS):
                while (data := self.mux.session.next()) is not None:
                    await send(data)
        finally:
            if self._connection is me:
                self._connection, self.lost = None, self._clock.monotonic()

    def take_over(self) -> None:
        """Another connection of the same client comes: end the one there is, which may be half open."""
        if self._connection is not None:
            self._connection.cancel()
            self._connection = None

    def spawn(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # `Listener`.

    def hear(self, frame: bytes) -> None:
        if self.over:
            return
        try:
            self.voice.hear(frame)
        except WireError as error:
            self.finish("infrastructure", f"the client takes nothing any more: {error}")

    def charge(self) -> str | None:
        return self.remote.charge(self.held)

    def keeps_files(self) -> None:
        self.held.record.pause_on_timeout = False

    def fork(self, number: int, interpreters: list[int]) -> None:
        self.spawn(self.remote.fork(self, number, interpreters))

    def end(self, error: EndedError) -> None:
        self.remote.ended(self, error)

    # Streams and requests.

    def open_stream(self, number: int) -> int:
        """A new stream of the client's; gives the descriptor for the worker."""
        ours, descriptor = open_pair()
        try:
            Tunnel(self.mux, number, ours)
        except BaseException:
            ours.close()
            close_descriptors([descriptor])
            raise
        return descriptor

    def _act(self, message: Request | Response | Over) -> None:
        match message:
            case Request():
                if self._requests >= _REQUESTS_MAX:
                    raise WireError(f"more than {_REQUESTS_MAX} requests at a time")
                self._requests += 1
                self.spawn(self._answer(message))
            case Over():
                self.spawn(self.remote.leave(self))
            case Response():
                raise WireError("an answer to nothing")

    async def _answer(self, request: Request) -> None:
        value, error = None, None
        try:
            value = await self._do(request)
        except (SandboxError, InfrastructureError) as failure:
            error = refusal(failure)
        except WireError as failure:
            self.finish("infrastructure", f"the client broke the protocol: {failure}")
        finally:
            self._requests -= 1
        self.mux.put(Response(request.id, value, error))

    def _charge(self) -> None:
        if why := self.charge():
            raise SandboxError(why)

    async def _do(self, request: Request) -> Any:
        match request.name, request.arguments:
            case "usage", []:
                return usage(self.link.pids())
            case "detach", []:
                asyncio.get_running_loop().call_soon(self.remote.detach, self)
                return None
            case "fuse", [int(number), int(device)]:
                return await self._open_device(number, device)
            case "js.start", [int(number), bool(wasm), bool(sessions)]:
                return await self._start_process(
                    number, lambda: OwnProcesses().start_prefix(wasm=wasm, sessions=sessions)
                )
            case "js.take", [int(number), int(prefix)]:
                self._charge()
                process = self._process(prefix)
                if not hasattr(process, "expect_runs"):
                    raise WireError("not a prefix")
                return await self._start_process(number, lambda: OwnProcesses().take(process))
            case "js.copy", [int(number), str(origin), int(session)]:
                process = self.remote.find(origin, self.held.record.tenant)._process(session)
                if hasattr(process, "expect_runs"):
                    raise WireError("not a session")
                return await self._start_process(number, lambda: OwnProcesses().copy(process))
            case "js.expect", [int(prefix)]:
                process = self._processes.get(prefix)
                if process is not None and hasattr(process, "expect_runs"):
                    await asyncio.to_thread(process.expect_runs)
                return None
            case "js.kill", [int(number)]:
                process = self._processes.pop(number, None)
                if process is not None:
                    await asyncio.to_thread(process.kill)
                return None
        raise WireError(f"no request {request.name[:40]!r} with these arguments")

    async def _open_device(self, number: int, device: int) -> None:
        """Have the client serve a FUSE device, by a stream of this number."""
        worker = self.link.worker
        if not isinstance(worker, NativeWorker) or worker.mounts is None:
            raise WireError("no device of a sandbox without any")
        if self._devices >= _DEVICES_MAX:
            raise SandboxError(f"more than {_DEVICES_MAX} mounts were made: make another sandbox")
        self._devices += 1
        try:
            connection = await asyncio.to_thread(worker.mounts.relay, device)
        except (OSError, ValueError) as error:
            raise SandboxError(f"can't mount: {error}") from None
        try:
            Tunnel(self.mux, number, connection)
        except BaseException:
            connection.close()
            raise

    def account(self) -> list[int]:
        """On the native tier: the user and group that commands run as, and whether there is no other."""
        worker = self.link.worker
        if not isinstance(worker, NativeWorker):
            return []
        return [worker.account.uid, worker.account.gid, int(worker.ids.base is None)]

    def _process(self, number: int) -> Any:
        process = self._processes.get(number)
        if process is None:
            raise SandboxClosed("this JavaScript process has ended")
        return process

    async def _start_process(self, number: int, start: Callable[[], Any]) -> None:
        if len(self._processes) >= _PROCESSES_MAX:
            raise SandboxError(f"more than {_PROCESSES_MAX} JavaScript processes at a time: close some")
        process = await asyncio.to_thread(start)
        connection = process.connection.dup()
        try:
            if self.over or number in self._processes:
                raise WireError(f"process {number} is not new, or wanted no more")
            Tunnel(self.mux, number, connection)
        except BaseException:
            connection.close()
            process.kill()
            raise
        self._processes[number] = process

    # The end.

    def finish(self, kind: str, text: str) -> None:
        """End the session; its sandbox may go on. Idempotent."""
        if self.over:
            return
        self.over = True
        self.guest.streams -= 1
        self.guest.used = self._clock.monotonic()
        self.remote.forget(self)
        self._relay.leave(self.member)
        close_descriptors(self.member.unused())
        self.mux.put(Over(kind, text))
        self.spawn(self._close())

    async def _close(self) -> None:
        """Let the client hear of it, if it is there."""
        processes, self._processes = self._processes, {}
        for process in processes.values():
            await asyncio.to_thread(process.kill)
        until = self._clock.monotonic() + _LAST_SECONDS
        while self._connection is not None and self._clock.monotonic() < until:
            await self._clock.sleep(0.01)
        if self._connection is not None:
            self._connection.cancel()
        self.mux.close()
