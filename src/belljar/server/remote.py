"""Our own door: clients that have the whole API of a sandbox over a WebSocket (`remote/`).

A session is found again by its token, and by nothing without a key of the tenant. While a client is there, or may come
back, its sandbox does not time out. When it is gone for good the sandbox is paused where there is a store, else ended;
one that was detached goes on until its timeout.
"""

from __future__ import annotations

import asyncio
import logging
from contextlib import suppress
from dataclasses import asdict, replace
from typing import Any, Final

from starlette.responses import Response
from starlette.websockets import WebSocket, WebSocketDisconnect

from belljar.abi.base import AGENT_NAME, WORKSPACE
from belljar.abi.limits import Limits
from belljar.abi.wire import WireError
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.core import Conversation
from belljar.api.errors import (
    EndedError,
    InfrastructureError,
    SandboxClosed,
    SandboxCreationError,
    SandboxError,
    printable,
)
from belljar.api.settings import BASE
from belljar.remote.errors import DETACHED, refusal
from belljar.remote.wire import PATH, Attach, Create, Open, Resume, Welcome, decode_hello, encode
from belljar.server.access import Access, Caller, note, request_number
from belljar.server.errors import ApiError, RpcError, SandboxGone
from belljar.server.guest import Guest
from belljar.server.keys_host import new_id
from belljar.server.records import Held, Record
from belljar.server.relay import Member, Relay
from belljar.server.remote_session import RemoteSession
from belljar.server.service import Service

log = logging.getLogger("belljar.server")

_HELLO_SECONDS: Final = 10.0
_TICK: Final = 1.0
_SESSIONS_MAX: Final = 1000
"""Sessions of one tenant."""


class Remote:
    """All sessions."""

    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self.clock = service.clock
        self._access = access
        self._sessions: dict[str, RemoteSession] = {}
        self._branches: dict[str, asyncio.Future[RemoteSession]] = {}
        """Sessions of branches that their clients have not opened yet."""
        self._watching: asyncio.Task[None] | None = None

    async def endpoint(self, websocket: WebSocket) -> None:
        """One connection."""
        websocket.scope["belljar.route"] = PATH
        try:
            if "origin" in websocket.headers:  # a page of some site: no client of ours sends one
                raise ApiError(403, "Browsers can't use this endpoint")
            caller = self._access.caller(websocket)
        except ApiError as error:
            body = error.body.get("message", "")
            await websocket.send_denial_response(Response(str(body), error.status, error.headers))
            return
        await websocket.accept()
        number = request_number(websocket)
        try:
            async with self.clock.timeout(_HELLO_SECONDS):
                hello = decode_hello(await websocket.receive_bytes())
            session, welcome = await self._welcome(caller, hello)
        except (WebSocketDisconnect, TimeoutError):
            await _close(websocket)
            return
        except Exception as error:  # noqa: BLE001 - told to the client, or logged
            await self._refuse(websocket, error, number)
            return
        note(websocket, sandbox=welcome.id, hello=type(hello).__name__.lower())
        with suppress(
            WebSocketDisconnect, RuntimeError, TimeoutError
        ):  # RuntimeError: sent after the client had closed it
            await websocket.send_bytes(encode(welcome))
            await session.serve(websocket.send_bytes, websocket.receive_bytes)
        await _close(websocket)

    async def _refuse(self, websocket: WebSocket, error: Exception, number: str) -> None:
        match error:
            case SandboxGone():
                error = SandboxClosed("there is no such sandbox, or it has ended")
            case ApiError(status=404):
                error = SandboxClosed(str(error.body.get("message")))
            case ApiError(status=503):
                error = InfrastructureError(str(error.body.get("message")))
            case ApiError():
                error = SandboxCreationError(str(error.body.get("message")))
            case RpcError():
                error = SandboxCreationError(error.message)
            case WireError() | KeyError():
                error = InfrastructureError(f"the server does not understand: {error}")
            case SandboxError() | InfrastructureError() | TypeError() | ValueError():
                pass
            case _:
                log.exception("a session could not begin", exc_info=error, extra={"request": number})
        with suppress(WebSocketDisconnect, RuntimeError):
            await websocket.send_bytes(encode(refusal(error)))
        await _close(websocket)

    async def _welcome(self, caller: Caller, hello: Any) -> tuple[RemoteSession, Welcome]:
        if self._watching is None:
            self._watching = asyncio.ensure_future(self._watch())
        match hello:
            case Resume():
                session = self.find(hello.token, caller.tenant)
                session.take_over()
                session.mux.session.resume(hello.received)
            case Create():
                session = await self._create(caller, hello)
            case Attach():
                session = await self._attach(caller, hello.id)
            case Open():
                made = self._branches.pop(hello.token, None)
                if made is None:
                    raise SandboxClosed("there is no such branch")
                session = await made
                if session.held.record.tenant != caller.tenant:
                    raise SandboxClosed("there is no such branch")
        return session, self._describe(session)

    def find(self, token: str, tenant: str) -> RemoteSession:
        """A session of the tenant's. InfrastructureError, the same for one that is another's."""
        session = self._sessions.get(token)
        if session is None or session.over or session.held.record.tenant != tenant:
            raise InfrastructureError(
                "the server has no such session any more: it was restarted, or the client was gone for too long. "
                "RemoteSandbox.attach goes on with the sandbox if it was kept; commands that ran are lost"
            )
        return session

    def _describe(self, session: RemoteSession) -> Welcome:
        record, settings = session.held.record, session.settings
        return Welcome(
            session.token,
            session.mux.session.received,
            session.member.slot,
            record.id,
            settings.tier,
            record.template,
            record.created,
            settings.info([]).js,
            settings.cwd,
            asdict(settings.limits),
            self._service.config.session_seconds,
            session.account(),
        )

    # Beginning.

    async def _create(self, caller: Caller, hello: Create) -> RemoteSession:
        service = self._service
        self._check_room(caller.tenant)
        if not hello.timeout >= 0:
            raise ValueError("the seconds that a sandbox is kept are a number")
        service.check_timeout(hello.timeout)
        limits = _limits(hello.limits).narrowed(service.config.limits)
        now = round(self.clock.time(), 3)
        record = Record(
            new_id(),
            caller.tenant,
            hello.image or BASE,
            now,
            now + hello.timeout,
            hello.timeout,
            metadata={"name": hello.name[:200]} if hello.name else {},
            pause_on_timeout=service.store is not None,
            auto_resume=service.store is not None,
            remote=True,
        )
        usual = {} if service.config.tier == "native" else {"cwd": WORKSPACE, "user": AGENT_NAME}
        told = {name: value for name, value in (("cwd", hello.cwd), ("user", hello.user)) if value}
        given: dict[str, Any] = (
            usual
            | told
            | {
                "hostname": hello.hostname,
                "limits": limits,
                "require": set(hello.require),
            }
        )
        held = await service.create(record, hello.env, given)
        service.database.audit(self.clock.time(), caller.tenant, caller.key, "", "create", record.id)
        assert held.guest is not None
        return self._begin(held, held.guest)

    async def _attach(self, caller: Caller, number: str) -> RemoteSession:
        service = self._service
        self._check_room(caller.tenant)
        held = service.find(caller.tenant, number)
        async with service.use(held, resume=True) as guest:
            return self._begin(held, guest)

    def _begin(self, held: Held, guest: Guest) -> RemoteSession:
        link, relay, settings = guest.sandbox.relayed(lambda: Relay(native=self._service.config.tier == "native"))
        assert isinstance(relay, Relay)
        session = RemoteSession(
            self, held, guest, link, settings, relay, lambda listener: relay.join(listener, settings.limits)
        )
        session.spawn(session.greet())
        self._sessions[session.token] = session
        return session

    def _check_room(self, tenant: str) -> None:
        if sum(session.held.record.tenant == tenant for session in self._sessions.values()) >= _SESSIONS_MAX:
            raise SandboxCreationError(f"more than {_SESSIONS_MAX} sessions at a time: close some")

    def charge(self, held: Held) -> str | None:
        try:
            self._service.charge_exec(held.record.tenant)
        except RpcError as error:
            return error.message
        return None

    # Forks.

    async def fork(self, origin: RemoteSession, number: int, interpreters: list[int]) -> None:
        """Make a branch for a client: it is told at the moment of the split, and then opens its session there."""
        token = new_id()
        made: asyncio.Future[RemoteSession] = asyncio.get_running_loop().create_future()
        limits, slot = origin.settings.limits, origin.member.slot
        joined: list[tuple[Relay, _Early, Member]] = []

        def split(conversation: Conversation) -> None:
            relay = conversation.relay
            assert isinstance(relay, Relay)
            early = _Early()
            joined.append((relay, early, relay.join(early, limits, slot, interpreters)))
            relay.tools.update(dict.fromkeys(origin.member.tools, joined[0][2]))
            self._branches[token] = made
            origin.member.answer(number, token)

        async def make(sandbox: AsyncSandbox) -> AsyncSandbox:
            return await sandbox.fork_once(interpreters, split)

        try:
            (held,) = await self._service.fork(origin.held, 1, origin.held.record.timeout, make)
        except Exception as error:
            if not isinstance(error, SandboxError | ApiError | SandboxGone | RpcError):
                log.exception("a fork failed", extra=origin.held.describe())
            why = _why(error)
            if joined:
                made.set_exception(SandboxError(why))
                made.exception()  # somebody may ask, or nobody
            elif not origin.over:
                origin.member.fail(number, why)
            return
        assert held.guest is not None
        relay, early, member = joined[0]
        link, _, settings = held.guest.sandbox.relayed(Relay)

        def join(session: RemoteSession) -> Member:
            member.listener = session
            return member

        session = RemoteSession(self, held, held.guest, link, settings, relay, join)
        session.spawn(session.greet())
        for frame in early.heard:
            session.hear(frame)
        self._sessions[session.token] = session
        made.set_result(session)

    # The end.

    async def leave(self, session: RemoteSession) -> None:
        """A client closes its sandbox."""
        session.finish("closed", "the sandbox was closed")
        with suppress(ApiError, SandboxError):
            await self._service.kill(session.held)

    def detach(self, session: RemoteSession) -> None:
        self._service.set_timeout(session.held, session.held.record.timeout)
        session.finish("closed", DETACHED.format(session.held.record.id))

    def ended(self, session: RemoteSession, error: EndedError) -> None:
        """The sandbox is over, whoever ended it."""
        held = session.held
        if self._service.draining:
            session.finish("infrastructure", "the server is shutting down: attach to the sandbox when it is back")
        elif held.state in ("pausing", "paused"):
            session.finish("closed", f"the sandbox was paused: RemoteSandbox.attach(url, key, {held.record.id!r})")
        else:
            session.finish("closed", str(error))

    def forget(self, session: RemoteSession) -> None:
        self._sessions.pop(session.token, None)

    async def _watch(self) -> None:
        """Keep the sandboxes of clients that are there, and end the sessions of those that are gone."""
        while True:
            await self.clock.sleep(_TICK)
            now, at = self.clock.monotonic(), self.clock.time()
            for session in list(self._sessions.values()):
                held = session.held
                held.record.end_at = max(held.record.end_at, at + held.record.timeout)
                held.deadline = max(held.deadline, now + held.record.timeout)
                if session.lost is not None and now - session.lost > self._service.config.session_seconds:
                    session.finish("infrastructure", "the client was gone for too long")
                    if not any(each.held is held for each in self._sessions.values()):
                        self._abandon(held)

    def _abandon(self, held: Held) -> None:
        """A sandbox's last client is gone, and has not said that it should go on."""
        log.info("a sandbox's client is gone", extra=held.describe())
        held.record.end_at, held.deadline = self.clock.time(), self.clock.monotonic()  # the clock pauses or ends it


class _Early:
    """Hears a branch until its session is there."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def hear(self, frame: bytes) -> None:
        self.heard.append(frame)

    def fork(self, number: int, interpreters: list[int]) -> None:
        raise WireError("a fork before there is a session")

    def charge(self) -> str | None:
        return None

    def keeps_files(self) -> None:
        return

    def end(self, error: EndedError) -> None:
        return


def _limits(given: dict[str, int | float]) -> Limits:
    try:
        return replace(Limits(), **given)  # type: ignore[arg-type]
    except (TypeError, ValueError) as error:
        raise ValueError(f"limits: {error}") from None


def _why(error: Exception) -> str:
    match error:
        case ApiError():
            return str(error.body.get("message"))
        case RpcError():
            return error.message
        case SandboxGone():
            return "the sandbox has ended"
        case SandboxError():
            return printable(str(error))
    return "the server failed; its log says more"


async def _close(websocket: WebSocket) -> None:
    with suppress(RuntimeError, WebSocketDisconnect):
        await websocket.close()
