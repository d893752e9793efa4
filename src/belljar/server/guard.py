"""Around every request: its id, its bounds, its log line, its metrics; and no detail of a failure of ours."""

from __future__ import annotations

import logging
import re
from typing import Any, Final

import msgspec

from belljar.abi.clock import Clock
from belljar.server.errors import ApiError
from belljar.server.keys_host import request_id
from belljar.server.metrics import Metrics

log = logging.getLogger("belljar.server")

_HEADERS_MAX: Final = 100
_TARGET_MAX: Final = 16 << 10
"""Bytes of a path with its query."""
_GIVEN_ID: Final = re.compile(rb"[A-Za-z0-9_-]{1,64}")


class Guard:
    """ASGI middleware. The app's routes put their pattern into the scope, which is what metrics and logs name."""

    def __init__(self, app: Any, metrics: Metrics, clock: Clock) -> None:
        self._app = app
        self._metrics = metrics
        self._clock = clock

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "websocket":
            await self._socket(scope, receive, send)
            return
        began = self._clock.monotonic()
        number = _request_number(scope["headers"])
        scope["belljar.request"] = number
        status = 0
        head = [(b"x-request-id", number.encode()), (b"x-content-type-options", b"nosniff")]

        async def answer(message: Any) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message = {**message, "headers": [*message["headers"], *head]}
                self._metrics.request_seconds.labels(_route(scope)).observe(self._clock.monotonic() - began)
            await send(message)

        try:
            _check(scope)
            await self._app(scope, receive, answer)
        except ApiError as error:
            await _refuse(answer, error)
        except Exception:
            log.exception("a request failed", extra={"request": number, "route": _route(scope)})
            if not status:
                await _refuse(answer, ApiError(500, f"Internal error (request {number})"))
        finally:
            self._metrics.requests.labels(_route(scope), _method(scope), str(status or "gone")).inc()
            log.info(
                "request",
                extra={
                    "request": number,
                    "method": _method(scope),
                    "route": _route(scope),
                    "status": status,
                    "ms": round((self._clock.monotonic() - began) * 1e3, 2),
                    **scope.get("belljar.log", {}),
                },
            )

    async def _socket(self, scope: Any, receive: Any, send: Any) -> None:
        """A WebSocket: no more can be done about a failure than to close it."""
        began, number = self._clock.monotonic(), _request_number(scope["headers"])
        scope["belljar.request"] = number
        try:
            _check(scope)
            await self._app(scope, receive, send)
        except ApiError as error:
            await send({"type": "websocket.close", "code": 1008, "reason": error.message[:100]})
        except Exception:
            log.exception("a WebSocket failed", extra={"request": number, "route": _route(scope)})
        finally:
            fields = {
                "request": number,
                "route": _route(scope),
                "ms": round((self._clock.monotonic() - began) * 1e3, 2),
            }
            log.info("websocket", extra={**fields, **scope.get("belljar.log", {})})


def _request_number(headers: list[tuple[bytes, bytes]]) -> str:
    for name, value in headers:
        if name == b"x-request-id" and _GIVEN_ID.fullmatch(value):
            return value.decode()
    return request_id()


def _check(scope: Any) -> None:
    names = [name for name, _ in scope["headers"]]
    if b"transfer-encoding" in names and b"content-length" in names:  # whoever is before us may read it the other way
        raise ApiError(400, "Content-Length and Transfer-Encoding exclude each other", {"Connection": "close"})
    if len(names) > _HEADERS_MAX:
        raise ApiError(431, "Too many headers", {"Connection": "close"})
    if len(scope.get("raw_path") or b"") + len(scope["query_string"]) > _TARGET_MAX:
        raise ApiError(414, "The request's target is too long", {"Connection": "close"})


def _route(scope: Any) -> str:
    return str(scope.get("belljar.route", "none"))


def _method(scope: Any) -> str:
    method = scope["method"]
    return method if method in ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD", "OPTIONS") else "other"


async def _refuse(send: Any, error: ApiError) -> None:
    body = msgspec.json.encode(error.body)
    headers = [(b"content-type", b"application/json"), (b"content-length", str(len(body)).encode())]
    headers += [(name.lower().encode(), value.encode()) for name, value in error.headers.items()]
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
