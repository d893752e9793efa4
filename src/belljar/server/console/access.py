"""Who uses the console: sessions that begin with a key or a one-time link, and requests of the page itself."""

from __future__ import annotations

from http.cookies import CookieError, SimpleCookie
from typing import Final
from urllib.parse import urlsplit

from starlette.requests import HTTPConnection, Request

from belljar.abi.clock import Clock
from belljar.server.access import ENVD_PORT, Access, note
from belljar.server.database_host import Database, Key
from belljar.server.errors import ApiError, unauthorized
from belljar.server.keys_host import READ_ONLY, find_key, hash_of, session_token
from belljar.server.records import Held
from belljar.server.service import Service

HEADER: Final = "x-belljar-console"
"""Sent by the page with each request that changes something: a form of another site can't have it."""
SESSION_SECONDS: Final = 7 * 86400.0
INVITATION_SECONDS: Final = 3600.0
_SAFE: Final = ("GET", "HEAD")


class Sessions:
    """Sessions outlive the server, and end with their key. Only hashes of their tokens are kept."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._invitations: dict[bytes, tuple[str, float]] = {}
        # Cookies are shared by all servers of a machine, whatever their port: each has a name of its own.
        self.cookie: Final = "belljar-" + hash_of(database.secret("console").hex()).hex()[:8]

    def begin(self, key: Key) -> str:
        """Sign in: the new session's token."""
        token, now = session_token(), self._clock.time()
        self._database.add_session(hash_of(token), key.id, now + SESSION_SECONDS, now)
        return token

    def find(self, token: str) -> Key | None:
        return self._database.session(hash_of(token), self._clock.time())

    def end(self, token: str) -> None:
        self._database.drop_session(hash_of(token))

    def invite(self, key: Key) -> str:
        """A token that signs in once, within an hour, as if with the key."""
        token = session_token()
        self._invitations[hash_of(token)] = key.id, self._clock.time() + INVITATION_SECONDS
        return token

    def redeem(self, token: str) -> Key | None:
        """The key of an invitation, which is used up."""
        number, expires = self._invitations.pop(hash_of(token), ("", 0.0))
        key = self._database.key(number)
        return key if key is not None and key.revoked is None and self._clock.time() < expires else None


class SessionAccess(Access):
    """The same checks as for other clients, by a session instead of keys and tokens."""

    def __init__(self, service: Service, sessions: Sessions) -> None:
        super().__init__(service)
        self.sessions = sessions

    def token(self, request: HTTPConnection) -> str:
        """The session that the browser shows; "" if there is none, or if somebody planted a second one."""
        found: list[str] = []
        for header in request.headers.getlist("cookie"):
            for pair in header.split(";"):
                try:
                    found += [each.value for name, each in SimpleCookie(pair).items() if name == self.sessions.cookie]
                except CookieError:
                    continue
        return found[0] if len(found) == 1 else ""

    def key(self, request: HTTPConnection) -> Key:
        """The key that the session began with. ApiError 401, 403."""
        check_same_origin(request)
        key = self.sessions.find(self.token(request))
        if key is None:
            raise unauthorized("Sign in first")
        note(request, tenant=key.tenant)
        return key

    def _key(self, request: HTTPConnection) -> Key:
        return self.key(request)

    def sandbox(self, request: HTTPConnection, *, port: int = ENVD_PORT) -> Held:
        """The sandbox that the path names. ApiError 401, 403, 404."""
        number, key = request.path_params["id"], self.key(request)
        held = self._service.find(key.tenant, number)
        if key.scope == READ_ONLY and request.scope.get("method") not in _SAFE:
            raise ApiError(403, "This key may only read")
        note(request, sandbox=number)
        return held

    def signed(self, request: Request, operation: str) -> Held:
        return self.sandbox(request)

    def sign_in(self, request: Request, key: str, token: str) -> Key:
        """The key that was shown, or that an invitation stands for. ApiError 401, 403, 429."""
        check_same_origin(request)
        found = self.sessions.redeem(token) if token else find_key(self._service.database, key)
        if found is None:
            what = "This link was used before, or is too old" if token else "This is no valid key"
            raise self._failure(request, what)
        note(request, tenant=found.tenant)
        return found


def check_same_origin(request: HTTPConnection) -> None:
    """Refuse what another site's page has the browser send. ApiError 403."""
    headers = request.headers
    refused = ApiError(403, "This request did not come from the console's own page")
    origin = headers.get("origin")
    if origin is not None and urlsplit(origin).netloc != headers.get("host"):
        raise refused
    if headers.get("sec-fetch-site", "same-origin") not in ("same-origin", "none"):
        raise refused
    if request.scope["type"] == "websocket":
        if origin is None:
            raise refused
    elif request.scope["method"] not in _SAFE and HEADER not in headers:
        raise refused
