"""What the console's page asks for: the control API's own calls by a session, and those that only it needs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final

from msgspec import Struct
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import WebSocketRoute

from belljar.abi.errors import PolicyError
from belljar.abi.version import __version__
from belljar.api.errors import ImageError, SandboxError, printable
from belljar.api.image import describe, list_images
from belljar.net.patterns import parse_pattern
from belljar.server.access import Caller
from belljar.server.console.access import SESSION_SECONDS, SessionAccess, Sessions, check_same_origin
from belljar.server.console.files import ConsoleFiles, told
from belljar.server.console.pages_host import SEALED, asset, index
from belljar.server.console.processes import list_processes
from belljar.server.console.terminal import Terminals
from belljar.server.control import Control, reply
from belljar.server.database_host import Key
from belljar.server.errors import ApiError, SandboxGone
from belljar.server.guest import HOME
from belljar.server.interpreter import CodeInterpreter
from belljar.server.keys_host import create_key
from belljar.server.records import Held
from belljar.server.service import Service

API: Final = "/console/api"
_SAMPLE_SECONDS: Final = 1.0
_USAGE_HOURS: Final = 24 * 7
_AUDIT_MAX: Final = 200
_NAME_MAX: Final = 100
_KEYS_MAX: Final = 1000
_SIGNALS: Final = ("TERM", "KILL", "INT", "HUP")
_WEB: Final = (80, 443)
_BASE: Final[dict[str, Any]] = {
    "digest": "", "size": 0, "user": "user", "cwd": HOME, "env": {}, "command": [], "history": [], "state": "ready",
}  # fmt: skip
Handler = Callable[[Request], Awaitable[Response]]


class SignIn(Struct):
    key: str = ""
    token: str = ""


class NewKey(Struct):
    name: str = ""


class Signal(Struct):
    signal: str = "TERM"


class Console:
    def __init__(self, service: Service, sessions: Sessions) -> None:
        self._service = service
        self._access = access = SessionAccess(service, sessions)
        self._control = Control(service, access)
        self._code = CodeInterpreter(service, access)
        self._files = ConsoleFiles(service, self._control, access)
        self._terminals = Terminals(service, access)

    def routes(self) -> list[tuple[str, str, Handler]]:
        """Path, method and handler of each."""
        control, files, code = self._control, self._files, self._code
        one = "/sandboxes/{id}"
        table: list[tuple[str, str, str, Any]] = [
            ("/sandboxes", "GET", "", self.sandboxes),
            ("/sandboxes", "POST", "create", control.create),
            (one, "GET", "", self.sandbox),
            (one, "DELETE", "kill", control.kill),
            (f"{one}/pause", "POST", "pause", control.pause),
            (f"{one}/resume", "POST", "resume", control.resume),
            (f"{one}/timeout", "POST", "timeout", control.set_timeout),
            (f"{one}/fork", "POST", "fork", control.fork),
            (f"{one}/snapshots", "POST", "snapshot", control.snapshot),
            (f"{one}/ports/{{port}}", "POST", "link", control.preview),
            (f"{one}/network", "PUT", "network", control.set_network),
            (f"{one}/network", "GET", "", self.network),
            (f"{one}/samples", "GET", "", self.samples),
            (f"{one}/processes", "GET", "", self.processes),
            (f"{one}/processes/{{pid:int}}/signal", "POST", "signal", self.signal),
            (f"{one}/entries", "GET", "", files.entries),
            (f"{one}/file", "GET", "", files.download),
            (f"{one}/file", "POST", "write", files.upload),
            (f"{one}/file", "DELETE", "remove", files.remove),
            (f"{one}/directory", "POST", "mkdir", files.make_directory),
            (f"{one}/rename", "POST", "rename", files.rename),
            (f"{one}/changes", "GET", "", files.changes),
            (f"{one}/before", "GET", "", files.before),
            ("/snapshots", "GET", "", self.snapshots),
            ("/snapshots/{name}", "DELETE", "delete", control.delete_snapshot),
            ("/images", "GET", "", self.images),
            ("/keys", "GET", "", self.keys),
            ("/keys", "POST", "create key", self.add_key),
            ("/keys/{key}", "DELETE", "revoke key", self.revoke_key),
            ("/usage", "GET", "", self.usage),
            ("/audit", "GET", "", self.audit),
        ]
        plain: list[tuple[str, str, Handler]] = [
            ("/session", "GET", self.session),
            ("/session", "POST", self.sign_in),
            ("/session", "DELETE", self.sign_out),
            (f"{one}/run", "POST", code.endpoint(code.execute)),
            (f"{one}/contexts/{{context}}/restart", "POST", code.endpoint(code.restart)),
        ]
        plain += [(path, method, control.endpoint(action, do)) for path, method, action, do in table]
        return [
            ("/", "GET", index),
            ("/console/assets/{name}", "GET", asset),
            *((API + path, method, _sealed(do)) for path, method, do in plain),
        ]

    def terminal(self) -> WebSocketRoute:
        return WebSocketRoute(f"{API}/sandboxes/{{id}}/terminal", self._terminals.endpoint)

    # Sessions.

    async def sign_in(self, request: Request) -> Response:
        check_same_origin(request)
        wish = await self._control.body(request, SignIn)
        key = self._access.sign_in(request, wish.key.strip(), wish.token)
        sessions = self._access.sessions
        sessions.end(self._access.token(request))  # whatever the browser had before is not what it has from now on
        response = reply(self._tell(key), 201)
        response.set_cookie(
            sessions.cookie,
            sessions.begin(key),
            max_age=int(SESSION_SECONDS),
            path="/console",
            secure=request.url.scheme == "https",
            httponly=True,
            samesite="strict",
        )
        self._service.database.audit(self._service.clock.time(), key.tenant, key.id, "", "sign in", "")
        return response

    async def sign_out(self, request: Request) -> Response:
        check_same_origin(request)
        self._access.sessions.end(self._access.token(request))
        response = Response(status_code=204)
        response.delete_cookie(self._access.sessions.cookie, path="/console")
        return response

    async def session(self, request: Request) -> Response:
        """Who is signed in; null: nobody."""
        check_same_origin(request)
        key = self._access.sessions.find(self._access.token(request))
        return reply(None if key is None else self._tell(key))

    def _tell(self, key: Key) -> dict[str, Any]:
        config, quota = self._service.config, self._service.quota(key.tenant)
        return {
            "tenant": key.tenant,
            "key": {"id": key.id, "name": key.name, "scope": key.scope},
            "version": __version__,
            "tier": config.tier,
            "stored": self._service.store is not None,
            "granted": list(config.allow_hosts),
            "timeoutMax": config.timeout_max,
            "limits": {"memory": config.limits.memory_bytes, "disk": config.limits.file_bytes},
            "quota": {"sandboxes": quota.sandboxes, "kept": quota.kept, "execsPerMinute": quota.execs_per_minute},
        }

    # Sandboxes.

    async def sandboxes(self, request: Request, caller: Caller) -> Response:
        mine = [held for held in self._service.held.values() if held.record.tenant == caller.tenant]
        mine.sort(key=lambda held: held.record.created, reverse=True)
        await asyncio.gather(*(self._sample(held) for held in mine))
        return reply({"sandboxes": [self._show(held) for held in mine]})

    async def sandbox(self, request: Request, caller: Caller) -> Response:
        return reply(self._show(self._access.sandbox(request)))

    def _show(self, held: Held) -> dict[str, Any]:
        record, guest = held.record, held.guest
        return {
            "id": record.id,
            "name": record.metadata.get("name", ""),
            "metadata": record.metadata,
            "template": record.template,
            "from": self._service.database.snapshot_name(record.tenant, record.template) or record.template,
            "state": held.state,
            "created": record.created,
            "endAt": record.end_at,
            "onTimeout": "pause" if record.pause_on_timeout else "kill",
            "sample": guest.samples[-1] if guest is not None and guest.samples else None,
        }

    async def samples(self, request: Request, caller: Caller) -> Response:
        held = self._access.sandbox(request)
        await self._sample(held)
        return reply(list(held.guest.samples) if held.guest is not None else [])

    async def _sample(self, held: Held) -> None:
        """Measure a sandbox, if that was not done a moment ago. It does not count as its use."""
        if held.guest is not None:
            with suppress(SandboxError):  # it has just ended
                await self._service.meter.sample(held, held.guest, fresh=_SAMPLE_SECONDS)

    async def processes(self, request: Request, caller: Caller) -> Response:
        held = self._access.sandbox(request)
        if held.guest is None:
            raise SandboxGone(held.record.id)
        with told():
            return reply(await list_processes(held.guest.sandbox))

    async def signal(self, request: Request, caller: Caller) -> Response:
        held = self._access.sandbox(request)
        wish, pid = await self._control.body(request, Signal), request.path_params["pid"]
        if wish.signal not in _SIGNALS:
            raise ApiError(400, f"A signal is one of {', '.join(_SIGNALS)}")
        self._service.charge_exec(caller.tenant)
        async with self._service.use(held) as guest:
            done = await guest.sandbox.exec(["/bin/sh", "-c", f"kill -{wish.signal} {pid}"], timeout=10)
        if done.exit_code:
            raise ApiError(409, printable(done.stderr.strip()) or f"There is no process {pid}")
        return Response(status_code=204)

    async def network(self, request: Request, caller: Caller) -> Response:
        held = self._access.sandbox(request)
        wanted = held.record.wanted
        return reply(
            {
                "events": [{**event, "allow": allow_pattern(event)} for event in list(held.egress.log)],
                "granted": list(held.egress.granted),
                "allowOut": wanted.allow_out,
                "denyOut": wanted.deny_out,
                "internet": wanted.allow_internet_access,
            }
        )

    # What is kept.

    async def snapshots(self, request: Request, caller: Caller) -> Response:
        """Snapshots and sandboxes with what each came of: the id of a snapshot, or the name of an image."""
        rows = self._service.database.snapshots(caller.tenant)
        ids = {row.id for row in rows}
        shown: list[dict[str, Any]] = []
        last: dict[str, str] = {}
        for row in reversed(rows):  # the oldest first
            parent = last.get(row.sandbox, row.template)
            kept = {"id": row.id, "name": row.name, "sandbox": row.sandbox, "created": row.created, "parent": parent}
            shown.append({**kept, "image": parent not in ids})
            last[row.sandbox] = row.id
        mine = [held for held in self._service.held.values() if held.record.tenant == caller.tenant]
        branches = [
            {
                **self._show(held),
                "parent": (parent := last.get(held.record.id, held.record.template)),
                "image": parent not in ids,
            }
            for held in mine
        ]
        return reply({"snapshots": shown, "sandboxes": branches, "stored": self._service.store is not None})

    async def images(self, request: Request, caller: Caller) -> Response:
        """The built-in image, those that the operator gave the store a name for, and the tenant's own templates."""
        shown = [{**_BASE, "name": "base", "kind": "built in"}]
        try:
            built = [] if self._service.store is None else await asyncio.to_thread(list_images, self._service.store)
        except ImageError as error:
            raise ApiError(500, printable(str(error))) from None
        # Those without a name are templates, of any tenant.
        shown += [{**describe(image.built), "kind": "image"} for image in built if image.built.name]
        assets = self._service.assets
        for template in assets.templates(caller.tenant):
            last = next(iter(assets.builds(template.id)), None)
            state = "not built" if last is None else last.status
            shown.append({**_BASE, "name": template.name, "kind": "template", "state": state})
        return reply(shown)

    async def keys(self, request: Request, caller: Caller) -> Response:
        mine = [key for key in self._service.database.list_keys() if key.tenant == caller.tenant]
        shown = ("id", "name", "scope", "created", "revoked")
        return reply([{name: getattr(key, name) for name in shown} | {"own": key.id == caller.key} for key in mine])

    async def add_key(self, request: Request, caller: Caller) -> Response:
        wish = await self._control.body(request, NewKey)
        if len(wish.name) > _NAME_MAX or not wish.name.isprintable():
            raise ApiError(400, f"A key's name has at most {_NAME_MAX} printable characters")
        if sum(key.tenant == caller.tenant for key in self._service.database.list_keys()) >= _KEYS_MAX:
            raise ApiError(429, f"There are {_KEYS_MAX} keys already")
        made = create_key(self._service.database, caller.tenant, wish.name, clock=self._service.clock)
        return reply({"key": made}, 201)

    async def revoke_key(self, request: Request, caller: Caller) -> Response:
        number = request.path_params["key"]
        if number == caller.key:
            raise ApiError(409, "You are signed in with this key: use another one to revoke it")
        database, now = self._service.database, self._service.clock.time()
        key = database.key(number)
        if key is None or key.tenant != caller.tenant or not database.revoke(number, now):
            raise ApiError(404, "There is no such key that is valid")
        return Response(status_code=204)

    async def usage(self, request: Request, caller: Caller) -> Response:
        """By the hour, as far as it was written to the server's file."""
        since = int(self._service.clock.time()) // 3600 - _USAGE_HOURS
        rows = self._service.database.usage(caller.tenant)
        return reply([{"hour": hour, "name": name, "amount": much} for _, hour, name, much in rows if hour > since])

    async def audit(self, request: Request, caller: Caller) -> Response:
        names = ("at", "tenant", "key", "request", "action", "subject")
        rows = self._service.database.audited(caller.tenant, _AUDIT_MAX)
        return reply([{k: v for k, v in zip(names, row, strict=True) if k != "tenant"} for row in rows])


def allow_pattern(event: dict[str, Any]) -> str | None:
    """What `--allow-host`, `Network.allow` and `allowOut` would have to say for a denied event to pass."""
    if event.get("verdict") != "denied":
        return None
    host, port = event.get("name") or event.get("hostname") or event.get("ip"), event.get("port")
    if not host:
        return None
    host = f"[{host}]" if ":" in host and port is not None else host
    text = host if port is None or port in _WEB else f"{host}:{port}"
    try:
        parse_pattern(text)
    except PolicyError:
        return None
    return str(text)


def _sealed(do: Handler) -> Handler:
    """An answer for the page alone, that is kept nowhere."""

    async def answer(request: Request) -> Response:
        response = await do(request)
        names = {name for name, _ in response.raw_headers}
        more = {**SEALED, "Cache-Control": "no-store"}
        response.raw_headers += [
            (name.lower().encode(), value.encode())
            for name, value in more.items()
            if name.lower().encode() not in names
        ]
        return response

    return answer
