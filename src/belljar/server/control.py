"""The control API: sandboxes made, found, paused and ended, with an API key."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeVar
from urllib.parse import parse_qsl, unquote

import msgspec
from msgspec import Struct, field
from starlette.requests import Request
from starlette.responses import Response

from belljar.api.errors import SandboxClosed, SandboxError, SnapshotError, printable
from belljar.server.access import Access, Caller, request_number
from belljar.server.connect import decode, read_body
from belljar.server.egress import Wanted
from belljar.server.errors import ApiError, RpcError, SandboxGone
from belljar.server.guest import LogLine
from belljar.server.keys_host import new_id
from belljar.server.records import Held, Record
from belljar.server.service import Service

ENVD_VERSION: Final = "0.6.13"
"""The version of the protocol that we speak: clients ask for less of an older one."""
_CLIENT: Final = "belljar"
_METADATA_MAX: Final = 64 << 10
_PAGE: Final = 100
_LOGS_MAX: Final = 1000
_TOKEN: Final = re.compile(r"[0-9]{1,9}\.[a-z0-9_]{1,64}")
_FORKS_MAX: Final = 100
_NAME_MAX: Final = 128
_LINK_SECONDS_MAX: Final = 7 * 86400
T = TypeVar("T")


class AutoResume(Struct):
    enabled: bool


class VolumeMount(Struct):
    name: str
    path: str


class NewSandbox(Struct, rename="camel"):
    template_id: str = field(name="templateID")
    timeout: float = 300
    auto_pause: bool | None = None
    auto_pause_memory: bool | None = None
    auto_resume: AutoResume | None = None
    allow_internet_access: bool | None = field(default=None, name="allow_internet_access")
    network: Wanted | None = None
    metadata: dict[str, str] | None = None
    env_vars: dict[str, str] | None = None
    mcp: dict[str, Any] | None = None
    volume_mounts: list[VolumeMount] | None = None
    iam: dict[str, Any] | None = None


class Timeout(Struct):
    timeout: float


class Connect(Struct):
    timeout: float = 300


class Resume(Struct, rename="camel"):
    timeout: float = 15
    auto_pause: bool | None = None


class Refresh(Struct):
    duration: float = 15


class Fork(Struct):
    timeout: float = 15
    count: int = 1


class NewLink(Struct):
    seconds: float = 3600


class NewSnapshot(Struct):
    name: str | None = None


class Control:
    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self._access = access

    def endpoint(self, action: str, do: Callable[[Request, Caller], Awaitable[Response]]) -> Any:
        """A handler that knows its caller, writes the audit log (if `action` is not empty) and answers errors."""

        async def answer(request: Request) -> Response:
            caller = self._access.caller(request)
            try:
                response = await do(request, caller)
            except SandboxGone as error:
                raise ApiError(404, f"Sandbox '{error.sandbox}' not found") from None
            except RpcError as error:
                raise ApiError(429, error.message) from None
            except SandboxClosed:
                raise ApiError(404, "The sandbox has ended") from None
            except SandboxError as error:
                raise ApiError(507 if isinstance(error, SnapshotError) else 500, printable(str(error))) from None
            if action:
                subject = request.scope.get("belljar.log", {}).get("sandbox", "")
                number = request_number(request)
                self._service.database.audit(
                    self._service.clock.time(), caller.tenant, caller.key, number, action, subject
                )
            return response

        return answer

    def _find(self, request: Request, caller: Caller) -> Held:
        number = request.path_params["id"]
        if not (number.isascii() and number.isalnum() and number == number.lower()):
            raise ApiError(400, "Invalid sandbox ID")
        held = self._service.find(caller.tenant, number)
        request.scope.setdefault("belljar.log", {})["sandbox"] = number
        return held

    async def body(self, request: Request, shape: type[T]) -> T:
        data = await read_body(request, self._service.config.json_bytes)
        try:
            return decode(data or b"{}", shape)
        except ValueError as error:
            raise ApiError(400, f"Error when parsing request: {error}") from None

    async def create(self, request: Request, caller: Caller) -> Response:
        wish = await self.body(request, NewSandbox)
        service = self._service
        service.check_timeout(wish.timeout)
        if sum(len(k) + len(v) for k, v in (wish.metadata or {}).items()) > _METADATA_MAX:
            raise ApiError(400, "metadata is too large")
        for name in ("mcp", "iam"):
            if getattr(wish, name):
                raise ApiError(400, f"This server has no {name.replace('_', ' ')}")
        wanted = msgspec.structs.replace(wish.network or Wanted(), allow_internet_access=wish.allow_internet_access)
        pause = service.store is not None if wish.auto_pause is None else wish.auto_pause
        if wish.auto_pause_memory is False and not pause:
            raise ApiError(400, "autoPauseMemory=false only applies when autoPause is true.")
        if wish.auto_pause_memory is False and wish.auto_resume is not None and wish.auto_resume.enabled:
            raise ApiError(
                400, "autoPauseMemory=false (filesystem-only auto-pause) cannot be combined with autoResume."
            )
        now = round(self._service.clock.time(), 3)  # as clients are told, and may ask for
        record = Record(
            new_id(),
            caller.tenant,
            wish.template_id,
            now,
            now + wish.timeout,
            wish.timeout,
            metadata=wish.metadata or {},
            pause_on_timeout=pause,
            auto_resume=pause if wish.auto_resume is None else wish.auto_resume.enabled,
            wanted=wanted,
            volumes={mount.path: mount.name for mount in wish.volume_mounts or ()},
        )
        once = request.headers.get("idempotency-key")
        env = wish.env_vars or {}
        held = await service.create_once(caller.tenant, once, lambda: service.create(record, env))
        request.scope.setdefault("belljar.log", {})["sandbox"] = held.record.id
        return reply(self._started(request, held), 201)

    def _started(self, request: Request, held: Held) -> dict[str, Any]:
        number, tokens = held.record.id, self._service.tokens
        return {
            "templateID": held.record.template,
            "sandboxID": number,
            "clientID": _CLIENT,
            "envdVersion": ENVD_VERSION,
            "envdAccessToken": tokens.envd(number),
            "trafficAccessToken": tokens.traffic(number),
            "domain": self.domain(request),
        }

    def _listed(self, held: Held) -> dict[str, Any]:
        record, limits = held.record, self._service.config.limits
        return {
            "templateID": record.template,
            "sandboxID": record.id,
            "clientID": _CLIENT,
            "startedAt": timestamp(record.created),
            "endAt": timestamp(record.end_at),
            "cpuCount": 1,
            "memoryMB": limits.memory_bytes >> 20,
            "diskSizeMB": limits.file_bytes >> 20,
            "metadata": record.metadata,
            "state": held.shown_state,
            "envdVersion": ENVD_VERSION,
        }

    async def show(self, request: Request, caller: Caller) -> Response:
        held = self._find(request, caller)
        record = held.record
        detail = {
            **self._listed(held),
            "envdAccessToken": self._service.tokens.envd(record.id) if caller.may_write else "",
            "domain": self.domain(request),
            "volumeMounts": [{"name": name, "path": path} for path, name in record.volumes.items()],
            "allowInternetAccess": record.wanted.allow_internet_access,
            "network": {"allowOut": record.wanted.allow_out or [], "denyOut": record.wanted.deny_out or []},
            "lifecycle": {
                "autoResume": record.auto_resume,
                "onTimeout": "pause" if record.pause_on_timeout else "kill",
            },
        }
        return reply(detail)

    async def list_running(self, request: Request, caller: Caller) -> Response:
        """The first version of the list: all that run, on one page."""
        running = [held for held in self._matching(request, caller) if held.shown_state == "running"]
        return reply([self._listed(held) for held in running])

    async def list_all(self, request: Request, caller: Caller) -> Response:
        query = request.query_params
        states = {state for text in query.getlist("state") for state in text.split(",") if state}
        if not states <= {"running", "paused"}:
            raise ApiError(400, "Invalid state parameter")
        order = query.get("order", "desc")
        if order not in ("asc", "desc"):
            raise ApiError(400, "Invalid order parameter")
        found = [held for held in self._matching(request, caller) if not states or held.shown_state in states]
        found.sort(key=lambda held: (held.record.created, held.record.id), reverse=order == "desc")
        return page(request, found, lambda held: held.record.id, self._listed)

    def _matching(self, request: Request, caller: Caller) -> list[Held]:
        query = request.query_params
        wanted = {unquote(k): unquote(v) for k, v in parse_qsl(query.get("metadata", ""), max_num_fields=100)}
        template, after = query.get("template"), 0.0
        if "startedAfter" in query:
            try:
                after = datetime.fromisoformat(query["startedAfter"].replace(" ", "+")).timestamp()
            except ValueError:
                raise ApiError(400, "Invalid startedAfter parameter") from None
        return [
            held
            for held in self._service.held.values()
            if held.record.tenant == caller.tenant
            and wanted.items() <= held.record.metadata.items()
            and (template is None or held.record.template == template)
            and held.record.created >= after
        ]

    async def kill(self, request: Request, caller: Caller) -> Response:
        await self._service.kill(self._find(request, caller))
        return Response(status_code=204)

    async def set_timeout(self, request: Request, caller: Caller) -> Response:
        held = self._find(request, caller)
        wish = await self.body(request, Timeout)
        if held.guest is None:
            raise SandboxGone(held.record.id)
        self._service.set_timeout(held, wish.timeout)
        return Response(status_code=204)

    async def refresh(self, request: Request, caller: Caller) -> Response:
        held = self._find(request, caller)
        wish = await self.body(request, Refresh)
        self._service.set_timeout(held, wish.duration, only_longer=True)
        return Response(status_code=204)

    async def pause(self, request: Request, caller: Caller) -> Response:
        await self._service.pause(self._find(request, caller))
        return Response(status_code=204)

    async def connect(self, request: Request, caller: Caller) -> Response:
        """Give a sandbox's tokens, and have it run: 201 if it was paused."""
        held = self._find(request, caller)
        wish = await self.body(request, Connect)
        self._service.check_timeout(wish.timeout)
        paused = held.state != "running"
        if paused:
            await self._service.resume(held, wish.timeout)
        self._service.set_timeout(held, wish.timeout, only_longer=True)
        return reply(self._started(request, held), 201 if paused else 200)

    async def resume(self, request: Request, caller: Caller) -> Response:
        held = self._find(request, caller)
        wish = await self.body(request, Resume)
        self._service.check_timeout(wish.timeout)
        if held.state == "running":
            raise ApiError(409, f"Sandbox {held.record.id} is already running")
        if wish.auto_pause is not None:
            held.record.pause_on_timeout = wish.auto_pause
        await self._service.resume(held, wish.timeout)
        return reply(self._started(request, held), 201)

    async def fork(self, request: Request, caller: Caller) -> Response:
        held = self._find(request, caller)
        wish = await self.body(request, Fork)
        if not 1 <= wish.count <= _FORKS_MAX:
            least = wish.count < 1
            raise ApiError(400, "Count must be at least 1" if least else f"Count cannot be greater than {_FORKS_MAX}")
        if held.state != "running":
            raise ApiError(409, f"Sandbox '{held.record.id}' cannot be forked while in 'paused' state")
        forks = await self._service.fork(held, wish.count, wish.timeout)
        return reply([{"sandbox": self._started(request, fork)} for fork in forks], 201)

    async def snapshot(self, request: Request, caller: Caller) -> Response:
        held = self._find(request, caller)
        wish = await self.body(request, NewSnapshot)
        if wish.name is not None and not _is_name(wish.name):
            raise ApiError(400, "Invalid name: use lower-case letters, digits, - and _")
        row = await self._service.snapshot(held, wish.name)
        return reply({"snapshotID": row.id, "names": [row.name] if row.name else []}, 201)

    async def snapshots(self, request: Request, caller: Caller) -> Response:
        query = request.query_params
        rows = [
            row
            for row in self._service.database.snapshots(caller.tenant)
            if query.get("sandboxID", row.sandbox) == row.sandbox and query.get("name", row.name) == row.name
        ]
        return page(
            request,
            rows,
            lambda row: row.id,
            lambda row: {"snapshotID": row.id, "names": [row.name] if row.name else []},
        )

    async def delete_snapshot(self, request: Request, caller: Caller) -> Response:
        await self._service.delete_snapshot(caller.tenant, request.path_params["name"])
        return Response(status_code=204)

    async def preview(self, request: Request, caller: Caller) -> Response:
        """A signed link to a port of a sandbox, by its host name where there is one, and by its path."""
        held, text = self._find(request, caller), request.path_params["port"]
        wish = await self.body(request, NewLink)
        if not (text.isascii() and text.isdigit() and 0 < int(text[:6]) < 1 << 16):
            raise ApiError(400, "Invalid port")
        if not 0 < wish.seconds <= _LINK_SECONDS_MAX:
            raise ApiError(400, f"A link holds for 1 to {_LINK_SECONDS_MAX} seconds")
        number, port, until = held.record.id, int(text), int(self._service.clock.time() + wish.seconds)
        token = f"{until}.{self._service.tokens.preview(number, port, str(until))}"
        base, domain = request.base_url, self.domain(request)
        path = f"{base}p/{number}/{port}/?belljar={token}"
        host = None if domain is None else f"{base.scheme}://{port}-{number}.{domain}/?belljar={token}"
        return reply({"url": host or path, "pathUrl": path, "expiresAt": timestamp(until)}, 201)

    def domain(self, request: Request) -> str | None:
        """What previews have host names below; None: no such names lead to this server."""
        domain = self._service.config.domain
        port = request.base_url.port
        return domain if domain is None or port is None else f"{domain}:{port}"

    async def set_network(self, request: Request, caller: Caller) -> Response:
        held = self._find(request, caller)
        wanted = await self.body(request, Wanted)
        if not self._service.config.allow_hosts and wanted.allow_out:
            raise ApiError(403, "This server gives sandboxes no network")
        held.egress.change(wanted)
        held.record.wanted = wanted
        return Response(status_code=204)

    async def metrics(self, request: Request, caller: Caller) -> Response:
        held = self._find(request, caller)
        return reply([self._sample(sample) for sample in await self._samples(held, request)])

    async def _samples(self, held: Held, request: Request) -> list[dict[str, Any]]:
        try:
            start = float(request.query_params.get("start", 0))
            end = float(request.query_params.get("end", "inf"))
        except ValueError:
            raise ApiError(400, "Invalid start or end") from None
        if held.guest is None:
            return []
        return [sample for sample in await self._service.sample(held) if start <= sample["at"] <= end]

    def _sample(self, sample: dict[str, Any]) -> dict[str, Any]:
        limits = self._service.config.limits
        return {
            "timestamp": timestamp(sample["at"]),
            "timestampUnix": int(sample["at"]),
            "cpuCount": 1,
            "cpuUsedPct": round(100 * sample["cpu_share"], 2),
            "memUsed": int(sample.get("memory", 0)),
            "memTotal": limits.memory_bytes,
            "memCache": 0,
            "diskUsed": int(sample.get("bytes", 0)),
            "diskTotal": limits.file_bytes,
        }

    async def all_metrics(self, request: Request, caller: Caller) -> Response:
        numbers = request.query_params.get("sandbox_ids", "").split(",")
        if len(numbers) > _PAGE:
            raise ApiError(400, f"Too many sandboxes requested, maximum is {_PAGE}")
        found: dict[str, Any] = {}
        for number in numbers:
            held = self._service.held.get(number)
            if held is not None and held.record.tenant == caller.tenant and held.guest is not None:
                found[number] = self._sample((await self._service.sample(held))[-1])
        return reply({"sandboxes": found})

    async def logs(self, request: Request, caller: Caller) -> Response:
        """What happened to a sandbox: starts, pauses, processes, and connections that were refused."""
        lines = self._logged(self._find(request, caller), request, "start")
        old = [{"timestamp": line["timestamp"], "line": f"{line['message']} {line['fields']}"} for line in lines]
        return reply({"logs": old, "logEntries": lines})

    async def logs_v2(self, request: Request, caller: Caller) -> Response:
        return reply({"logs": self._logged(self._find(request, caller), request, "cursor")})

    def _logged(self, held: Held, request: Request, first: str) -> list[dict[str, Any]]:
        query = request.query_params
        after, limit = query.get(first, ""), query.get("limit", str(_LOGS_MAX))
        if any(text and not (text.isascii() and text.isdigit()) for text in (after, limit)):
            raise ApiError(400, f"Invalid {first} or limit")
        if query.get("direction", "forward") not in ("forward", "backward"):
            raise ApiError(400, "Invalid direction parameter")
        levels = ("debug", "info", "warn", "error")
        if (level := query.get("level", "debug")) not in levels:
            raise ApiError(400, "Invalid level parameter")
        backward, at = query.get("direction") == "backward", int(after[:15] or 0) / 1e3
        refused = [
            LogLine(event["at"], "network refused", {"to": str(event["to"])}, "warn") for event in held.egress.refused()
        ]
        lines = sorted((*held.log, *refused), key=lambda line: line.at, reverse=backward)
        found = [
            line
            for line in lines
            if (not after or (line.at <= at if backward else line.at >= at))
            and query.get("search", "") in line.message
            and levels.index(line.level) >= levels.index(level)
        ]
        return [
            {"timestamp": timestamp(line.at), "level": line.level, "message": line.message, "fields": line.fields}
            for line in found[: min(int(limit[:6] or 0), _LOGS_MAX)]
        ]


def reply(value: Any, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(msgspec.json.encode(value), status, headers, media_type="application/json")


def page(request: Request, items: list[T], number: Callable[[T], str], show: Callable[[T], Any]) -> Response:
    """One page of a list; the header X-Next-Token, if there is one, says what the next page begins after: a place and
    an id. If that item has gone meanwhile, it begins at the place.
    """
    query = request.query_params
    limit = query.get("limit", str(_PAGE))
    if not (limit.isascii() and limit.isdigit() and 0 < int(limit[:6]) <= _PAGE):
        raise ApiError(400, f"Invalid limit: 1 to {_PAGE}")
    size, start = int(limit), 0
    if (token := query.get("nextToken")) is not None:
        if not _TOKEN.fullmatch(token):
            raise ApiError(400, "Invalid next token")
        place, _, last = token.partition(".")
        start = next((at + 1 for at, item in enumerate(items) if number(item) == last), int(place))
    shown = items[start : start + size]
    more = start + size < len(items)
    following = {"X-Next-Token": f"{start + size}.{number(shown[-1])}"} if more else None
    return reply([show(item) for item in shown], headers=following)


def timestamp(at: float) -> str:
    return datetime.fromtimestamp(at, UTC).isoformat().replace("+00:00", "Z")


def _is_name(name: str) -> bool:
    plain = name.replace("-", "").replace("_", "")
    return 0 < len(name) <= _NAME_MAX and plain.isascii() and plain.isalnum() and name == name.lower()
