"""Who asks: API keys for the control API, tokens and signatures for a sandbox."""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct
from starlette.requests import HTTPConnection, Request

from belljar.net.rate import Rate
from belljar.server.database_host import Key
from belljar.server.errors import ApiError, SandboxGone, unauthorized
from belljar.server.keys_host import READ_ONLY, find_key, same
from belljar.server.records import Held
from belljar.server.service import Service

ENVD_PORT: Final = 49983
CODE_PORT: Final = 49999
_HOST: Final = re.compile(r"(\d{1,5})-([a-z0-9]{1,40})\.")
_ID: Final = re.compile(r"[a-z0-9]{1,40}")
_LOOPBACK: Final = ("127.", "::1")
_FAILURES_PER_SECOND: Final = 1 / 30
_FAILURE_BURST: Final = 900.0
"""Thirty wrong keys or tokens at once, two a minute later."""
_ADDRESSES_MAX: Final = 10_000


class Caller(Struct, frozen=True):
    """The tenant that a request's key is of."""

    tenant: str
    key: str
    may_write: bool = True


class Access:
    """Checks of keys and tokens. An address that shows many wrong ones is told to wait; right ones are always taken,
    so that nobody can lock out whoever has the same address."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._failures: dict[str, Rate] = {}

    def caller(self, request: HTTPConnection) -> Caller:
        """The tenant of the request's API key. ApiError 401, 403, 429."""
        key = self._key(request)
        note(request, tenant=key.tenant)
        if key.scope == READ_ONLY and request.scope.get("method") not in ("GET", "HEAD"):
            raise ApiError(403, "This key may only read")
        return Caller(key.tenant, key.id, key.scope != READ_ONLY)

    def check_operator(self, request: Request) -> None:
        """ApiError unless it comes from this machine itself, or with an operator's key."""
        near = request.client is None or request.client.host.startswith(_LOOPBACK)
        if near and not any(name in request.headers for name in ("forwarded", "x-forwarded-for", "via")):
            return
        if self._key(request).scope != "operator":
            raise ApiError(403, "This needs an operator's key")

    def _key(self, request: HTTPConnection) -> Key:
        text = request.headers.get("x-api-key", "") or _bearer(request)
        if not text:
            raise unauthorized("Missing API key: set the header X-API-KEY")
        key = find_key(self._service.database, text)
        if key is None:
            raise self._failure(request, "Invalid API key")
        return key

    def sandbox(self, request: Request, *, port: int) -> Held:
        """The sandbox that a request is for, by its headers or its host name. ApiError 400, 401, 429, SandboxGone."""
        number = self._number(request)
        tokens = self._service.tokens
        given = request.headers.get("x-access-token", "")
        traffic = request.headers.get("e2b-traffic-access-token", "")
        right = same(given, tokens.envd(number))
        if port == CODE_PORT:
            right = right or same(traffic, tokens.traffic(number))
        if not right:
            raise self._failure(
                request, "unauthorized access, please provide a valid access token or method signing if supported"
            )
        return self._held(request, number)

    def signed(self, request: Request, operation: str) -> Held:
        """The sandbox of a request for a file, which may be signed instead of having a token."""
        query = request.query_params
        signature = query.get("signature")
        if "x-access-token" in request.headers or signature is None:
            return self.sandbox(request, port=ENVD_PORT)
        expiration = query.get("signature_expiration")
        path, user = query.get("path", ""), query.get("username", "")
        number = self._number(request, needed=False)
        found = None
        if not number and not self._rate(request).has(self._service.clock.monotonic()):
            raise self._failure(request, "invalid signature")  # looking at all sandboxes takes a while
        for each in [number] if number else list(self._service.held):
            expected = self._service.tokens.signature(each, path, operation, user, expiration)
            if same(signature, expected):
                found = each
        if found is None:
            raise self._failure(request, "invalid signature")
        if expiration is not None and (not expiration.isascii() or not expiration.isdigit()):
            raise unauthorized("invalid signature")
        if expiration is not None and int(expiration) < self._service.clock.time():
            raise unauthorized("signature is already expired")
        return self._held(request, found)

    def check_link(self, request: Request, given: str, expected: str, until: str) -> None:
        """A signature of ours that holds until then. ApiError 401, 429."""
        if not same(given, expected):
            raise self._failure(request, "invalid signature")
        if not (until.isascii() and until.isdigit()) or int(until[:18]) < self._service.clock.time():
            raise unauthorized("signature is already expired")

    def check_bearer(self, request: Request, expected: str) -> None:
        """A token of ours in the Authorization header. ApiError 401, 429."""
        if not same(_bearer(request), expected):
            raise self._failure(request, "Invalid token")

    def check_preview(self, request: HTTPConnection, number: str, given: str, expected: str, until: str) -> None:
        """The token of a sandbox's ports, its tenant's key, or a signed link. ApiError 403, 429."""
        if same(request.headers.get("e2b-traffic-access-token", ""), self._service.tokens.traffic(number)):
            return
        held = self._service.held.get(number)
        if "x-api-key" in request.headers and held is not None and self._key(request).tenant == held.record.tenant:
            return
        if not same(given, expected):
            raise self._failure(request, "This preview needs a link that its owner signed, or a token", 403)
        if not (until.isascii() and until.isdigit()) or int(until[:18]) < self._service.clock.time():
            raise ApiError(403, "The link to this preview has expired")

    def _held(self, request: Request, number: str) -> Held:
        held = self._service.held.get(number)
        if held is None:
            raise SandboxGone(number)
        note(request, tenant=held.record.tenant, sandbox=number)
        return held

    def _number(self, request: Request, *, needed: bool = True) -> str:
        number = request.headers.get("e2b-sandbox-id", "")
        if not number and (match := _HOST.match(request.headers.get("host", ""))):
            number = match[2]
        if not _ID.fullmatch(number):
            if needed:
                raise ApiError(400, "Invalid sandbox ID")
            return ""
        return number

    def _failure(self, request: HTTPConnection, message: str, status: int = 401) -> ApiError:
        """The answer to a wrong key, token or signature."""
        self._service.metrics.refusals.inc()
        if self._rate(request).take(self._service.clock.monotonic()):
            return ApiError(status, message)
        return ApiError(429, "Too many wrong keys", {"Retry-After": "30", "Should-Retry": "false"})

    def _rate(self, request: HTTPConnection) -> Rate:
        address = request.client.host if request.client is not None else ""
        rate = self._failures.get(address)
        if rate is None:
            rate = self._failures[address] = Rate(_FAILURES_PER_SECOND, self._service.clock.monotonic(), _FAILURE_BURST)
            while len(self._failures) > _ADDRESSES_MAX:
                del self._failures[next(iter(self._failures))]
        return rate


def _bearer(request: HTTPConnection) -> str:
    kind, _, text = request.headers.get("authorization", "").partition(" ")
    return text.strip() if kind.lower() == "bearer" else ""


def note(request: HTTPConnection, **fields: str) -> None:
    """Have the request's log line say this, too."""
    request.scope.setdefault("belljar.log", {}).update(fields)


def request_number(request: HTTPConnection) -> str:
    return str(request.scope.get("belljar.request", ""))
