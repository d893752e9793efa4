"""The network that a sandbox of the server has: what the operator grants, less what the client asked to be without."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable
from functools import partial
from ipaddress import ip_address, ip_network
from typing import Any, Final

from msgspec import Struct, field

from belljar.abi.errors import PolicyError
from belljar.net.message import HttpRequest
from belljar.net.network import Network
from belljar.net.patterns import parse_pattern
from belljar.net.policy import Conn
from belljar.server.errors import ApiError

_HEADER: Final = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]{1,200}")
_MASK: Final = re.compile(r"[A-Za-z0-9.:_$\{\}\[\]-]{1,300}")
_PLACEHOLDER: Final = re.compile(r"\$\{e2b\.secrets\.([^{}\x00-\x1f]{1,128})\}")
"""As the SDKs write it where the value of a secret is to be."""
_LOGGED: Final = 500
"""Decisions that are kept of each sandbox."""


class Transform(Struct, frozen=True):
    headers: dict[str, str] = {}


class Rule(Struct, frozen=True):
    transform: Transform = Transform()


class Wanted(Struct, frozen=True, rename="camel"):
    """The network part of a client's request."""

    allow_out: list[str] | None = None
    deny_out: list[str] | None = None
    allow_public_traffic: bool | None = None
    allow_internet_access: bool | None = field(default=None, name="allow_internet_access")
    rules: dict[str, list[Rule]] | None = None
    egress_proxy: dict[str, Any] | None = None
    dns_servers: list[str] | None = None
    mask_request_host: str | None = None

    def check(self) -> None:
        """ApiError for what this server can't do: better than to leave it out in silence."""
        if self.mask_request_host is not None and not _MASK.fullmatch(self.mask_request_host):
            raise ApiError(400, "Invalid network config: maskRequestHost is no host")
        for name in ("egress_proxy", "dns_servers"):
            if getattr(self, name):
                raise ApiError(400, f"Invalid network config: this server has no {name.replace('_', ' ')}")


class Egress:
    """A policy that can be changed while the sandbox runs."""

    def __init__(
        self,
        granted: tuple[str, ...],
        wanted: Wanted,
        secret: Callable[[str], str | None] = lambda name: None,
        within_quota: Callable[[], bool] = lambda: True,
    ) -> None:
        """ApiError for what can't be granted. `secret` gives the value of one of the tenant's, from any thread."""
        self.granted = granted
        self._secret = secret
        self._within_quota = within_quota
        self.log: deque[dict[str, Any]] = deque(maxlen=_LOGGED)
        """What was asked for, and what was decided; written by the network's thread."""
        self.change(wanted)

    def change(self, wanted: Wanted) -> None:
        """ApiError; then nothing is changed."""
        wanted.check()
        allowed = wanted.allow_out
        if allowed and "*" not in self.granted and not set(allowed) <= set(self.granted):
            raise ApiError(403, "This server does not let sandboxes reach all of allowOut")
        try:
            denied = [ip_network(text, strict=False) for text in wanted.deny_out or ()]
            everything = any(network.prefixlen == 0 for network in denied)
            sealed = not allowed and (everything or wanted.allow_internet_access is False)
            reachable = tuple(allowed or self.granted)
            decide = None if sealed else Network.allow(*reachable).decide
            rules = [(host, _headers(found)) for host, found in (wanted.rules or {}).items()]
            for host, _ in rules:
                parse_pattern(host)
        except (ValueError, PolicyError) as error:
            raise ApiError(400, f"Invalid network config: {error}") from None
        self._denied = () if allowed else tuple(denied)
        self._decide = decide
        self._reachable, self._rules = reachable, rules

    def network(self) -> Network:
        if not self.granted:
            return Network.deny(audit=self.log.append)
        return Network.policy(self._ask, audit=self.log.append)

    def refused(self) -> list[dict[str, Any]]:
        """When, and to where, something was not let through."""
        denied = [event for event in list(self.log) if event.get("verdict") == "denied"]
        return [
            {"at": event["time"], "to": event.get("name") or f"{event.get('hostname') or event['ip']}:{event['port']}"}
            for event in denied
        ]

    def _ask(self, conn: Conn) -> Any:
        if self._decide is None:
            return conn.deny("the sandbox has no network")
        if conn.protocol != "dns" and any(ip_address(conn.dst.ip) in network for network in self._denied):
            return conn.deny("denyOut of the sandbox")
        if not self._within_quota():
            return conn.deny("its tenant's traffic of this hour is used up")
        for host, headers in self._rules:
            match = conn.match_http(host)
            if match is not None and any(conn.match_http(pattern) for pattern in self._reachable):
                return match.accept(partial(self._put_headers, headers), redact=True)
        return self._decide(conn)

    def _put_headers(self, headers: dict[str, str], request: HttpRequest) -> None:
        """Give a request its headers, with secrets in the place of their names. What names none is blocked."""

        def value(found: re.Match[str]) -> str:
            secret = self._secret(found[1])
            if secret is None:
                raise PolicyError(f"there is no secret {found[1]!r}")
            return secret

        for name, text in headers.items():
            request.headers[name] = _PLACEHOLDER.sub(value, text)


def _headers(rules: list[Rule]) -> dict[str, str]:
    found = {name: value for rule in rules for name, value in rule.transform.headers.items()}
    for name, value in found.items():
        if not _HEADER.fullmatch(name) or any(sign in value for sign in "\r\n\0"):
            raise ValueError(f"no header: {name[:40]!r}")
    return found
