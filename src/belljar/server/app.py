"""The server's routes."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable
from contextlib import ExitStack, asynccontextmanager
from typing import Any, Final

import msgspec
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import BaseRoute, Route, WebSocketRoute

from belljar.api.errors import SandboxError
from belljar.remote.wire import PATH as REMOTE
from belljar.server import connect, filesystem, process
from belljar.server.access import ENVD_PORT, Access
from belljar.server.connect import EventStream, error_response, is_stream, unary
from belljar.server.console.access import Sessions
from belljar.server.console.api import Console
from belljar.server.control import Control, reply
from belljar.server.credentials import Credentials
from belljar.server.errors import ApiError, RpcError, SandboxGone, rpc_error
from belljar.server.files import Files
from belljar.server.guard import Guard
from belljar.server.guest import Guest, Patience
from belljar.server.interpreter import CodeInterpreter
from belljar.server.openapi import document
from belljar.server.previews import Previews
from belljar.server.records import Held
from belljar.server.remote import Remote
from belljar.server.service import Service
from belljar.server.templates import Templates
from belljar.server.volumes import Volumes

Unary = Callable[[Request, Held, Guest], Awaitable[dict[str, Any]]]
Streaming = Callable[[Request, Held, Guest, Patience], Awaitable[process.Stream]]

_STREAMS: Final[dict[str, Streaming]] = {
    "/process.Process/Start": process.start,
    "/process.Process/Connect": process.connect,
    "/filesystem.Filesystem/WatchDir": filesystem.watch_dir,
}
_CHARGED: Final = ("/process.Process/Start",)


def make_app(service: Service, sessions: Sessions) -> Guard:
    """The ASGI application. `service` is started by whoever runs it; `sessions` are those of the console."""
    access = Access(service)
    control, files, code = Control(service, access), Files(service, access), CodeInterpreter(service, access)
    envd, templates = Envd(service, access), Templates(service, access, control)
    volumes = Volumes(service, access, control)
    calls = [
        route(f"/{name}/{method}", "POST", envd.unary(do))
        for name, methods in (("filesystem.Filesystem", filesystem.UNARY), ("process.Process", process.UNARY))
        for method, do in methods.items()
    ]
    calls.append(route("/process.Process/StreamInput", "POST", envd.client_stream(process.stream_input)))
    routes: list[BaseRoute] = [  # those that are called most come first
        *(route(path, "POST", envd.stream(path, do)) for path, do in _STREAMS.items()),
        route("/files", "GET", files.download),
        route("/files", "POST", files.upload),
        *calls,
        WebSocketRoute(REMOTE, Remote(service, access).endpoint),
        route("/healthz", "GET", _alive),
        route("/readyz", "GET", _ready(service)),
        route("/metrics", "GET", _metrics(service, access)),
        route("/openapi.json", "GET", _document(service)),
        route("/health", "GET", envd.health),
        route("/execute", "POST", code.endpoint(code.execute)),
        route("/contexts", "GET", code.endpoint(code.list_contexts)),
        route("/contexts", "POST", code.endpoint(code.create)),
        route("/contexts/{context}", "DELETE", code.endpoint(code.remove)),
        route("/contexts/{context}/restart", "POST", code.endpoint(code.restart)),
        route("/uploads/{name}/{hash}", "PUT", templates.upload),
        *(
            route(path, method, control.endpoint(action, do))
            for path, method, action, do in (
                *_control_routes(control),
                *templates.routes(),
                *volumes.routes(),
                *Credentials(service, control).routes(),
            )
        ),
        *(route(*each) for each in volumes.content_routes()),
    ]
    console = Console(service, sessions)
    routes += [*(route(*each) for each in console.routes()), console.terminal()]
    handlers: dict[Any, Any] = {ApiError: _refuse, HTTPException: _refuse_http}
    app = Starlette(routes=merged(routes), exception_handlers=handlers)
    return Guard(Previews(app, service, access), service.metrics, service.clock)


def _control_routes(control: Control) -> list[tuple[str, str, str, Any]]:
    one = "/sandboxes/{id}"
    return [
        ("/sandboxes", "POST", "create", control.create),
        ("/v2/sandboxes", "POST", "create", control.create),
        ("/sandboxes", "GET", "", control.list_running),
        ("/v2/sandboxes", "GET", "", control.list_all),
        ("/sandboxes/metrics", "GET", "", control.all_metrics),
        (one, "GET", "", control.show),
        (one, "DELETE", "kill", control.kill),
        (f"{one}/timeout", "POST", "timeout", control.set_timeout),
        (f"{one}/refreshes", "POST", "timeout", control.refresh),
        (f"{one}/pause", "POST", "pause", control.pause),
        (f"{one}/resume", "POST", "resume", control.resume),
        (f"{one}/connect", "POST", "connect", control.connect),
        (f"/v2{one}/connect", "POST", "connect", control.connect),
        (f"{one}/fork", "POST", "fork", control.fork),
        (f"{one}/snapshots", "POST", "snapshot", control.snapshot),
        (f"{one}/ports/{{port}}", "POST", "link", control.preview),
        (f"{one}/network", "PUT", "network", control.set_network),
        (f"{one}/metrics", "GET", "", control.metrics),
        (f"{one}/logs", "GET", "", control.logs),
        (f"/v2{one}/logs", "GET", "", control.logs_v2),
        ("/snapshots", "GET", "", control.snapshots),
    ]


def route(path: str, method: str, do: Callable[[Request], Awaitable[Response]]) -> Route:
    """A route whose pattern the guard can name."""

    async def answer(request: Request) -> Response:
        request.scope["belljar.route"] = path
        return await do(request)

    return Route(path, answer, methods=[method])


def merged(routes: list[BaseRoute]) -> list[BaseRoute]:
    """One route for each path, which knows all its methods: a wrong one is told which there are."""
    kept: list[BaseRoute] = []
    by_path: dict[str, dict[str, Any]] = {}
    for each in routes:
        if not isinstance(each, Route):
            kept.append(each)
            continue
        first, handlers = each.path not in by_path, by_path.setdefault(each.path, {})
        handlers |= dict.fromkeys((each.methods or set()) - {"HEAD"}, each.endpoint)
        if first:
            kept.append(each)
    return [
        Route(each.path, _by_method(by_path[each.path]), methods=list(by_path[each.path]))
        if isinstance(each, Route)
        else each
        for each in kept
    ]


def _by_method(handlers: dict[str, Any]) -> Any:
    async def answer(request: Request) -> Response:
        method = "GET" if request.method == "HEAD" else request.method
        response: Response = await handlers[method](request)
        return response

    return answer


class Envd:
    """Calls for one sandbox, with its token."""

    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self._access = access

    async def health(self, request: Request) -> Response:
        """204 while the sandbox runs. It neither resumes one nor counts as its use."""
        held = self._access.sandbox(request, port=ENVD_PORT)
        if held.guest is None or held.guest.sandbox.closed:
            raise SandboxGone(held.record.id)
        return Response(status_code=204)

    @asynccontextmanager
    async def _guest(self, request: Request) -> AsyncIterator[tuple[Held, Guest]]:
        """The sandbox of the request. Errors of a sandbox become Connect's."""
        held = self._access.sandbox(request, port=ENVD_PORT)
        try:
            async with self._service.use(held, resume=held.record.auto_resume) as guest:
                yield held, guest
        except SandboxError as error:
            raise rpc_error(error) from None

    def unary(self, do: Unary) -> Any:
        async def answer(request: Request) -> Response:
            try:
                async with self._guest(request) as (held, guest):
                    return unary(await do(request, held, guest))
            except RpcError as error:
                return error_response(error, stream=is_stream(request))

        return answer

    def client_stream(self, do: Unary) -> Any:
        async def answer(request: Request) -> Response:
            try:
                async with self._guest(request) as (held, guest):
                    guest.busy -= 1  # it may last: a pause does not wait for it
                    try:
                        with self._service.stream(held, guest):
                            return connect.single(await do(request, held, guest))
                    finally:
                        guest.busy += 1
            except RpcError as error:
                return error_response(error, stream=True)

        return answer

    def stream(self, path: str, do: Streaming) -> Any:
        async def answer(request: Request) -> Response:
            try:
                patience = process.patience_of(request, self._service.clock)
                with ExitStack() as place:
                    async with self._guest(request) as (held, guest):
                        place.enter_context(self._service.stream(held, guest))  # what is refused is not started
                        if path in _CHARGED:
                            self._service.charge_exec(held.record.tenant)
                        events, finish = await do(request, held, guest, patience)
                        place.callback(finish)
                    return EventStream(_mapped(events), place.pop_all().close)
            except RpcError as error:
                return error_response(error, stream=True)

        return answer


async def _mapped(events: AsyncGenerator[dict[str, Any], None]) -> AsyncGenerator[dict[str, Any], None]:
    """The events. RpcError."""
    try:
        async for event in events:
            yield event
    except SandboxError as error:
        raise rpc_error(error) from None
    finally:
        await events.aclose()


def _document(service: Service) -> Any:
    text = msgspec.json.encode(document(int(service.config.timeout_max)))

    async def answer(request: Request) -> Response:
        return Response(text, media_type="application/json")

    return answer


async def _alive(request: Request) -> Response:
    return reply({"status": "ok"})


def _ready(service: Service) -> Any:
    async def answer(request: Request) -> Response:
        if service.draining or not service.ready:
            return reply({"status": "draining" if service.draining else "starting"}, 503)
        service.database.check()
        return reply({"status": "ok"})

    return answer


def _metrics(service: Service, access: Access) -> Any:
    async def answer(request: Request) -> Response:
        access.check_operator(request)
        return Response(service.metrics.render(service), media_type="text/plain; version=0.0.4; charset=utf-8")

    return answer


async def _refuse(request: Request, error: Exception) -> Response:
    assert isinstance(error, ApiError)
    return reply(error.body, error.status, error.headers)


async def _refuse_http(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})  # of a 405, what is allowed
    return reply({"code": error.status_code, "message": error.detail}, error.status_code, headers)
