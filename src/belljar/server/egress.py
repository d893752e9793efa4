"""The network that a sandbox of the server has: what the operator grants, less what the client asked to be without."""

from __future__ import annotations

from ipaddress import ip_address, ip_network
from typing import Any

from msgspec import Struct, field

from belljar.abi.errors import PolicyError
from belljar.net.network import Network
from belljar.net.policy import Conn
from belljar.server.errors import ApiError


class Wanted(Struct, frozen=True, rename="camel"):
    """The network part of a client's request."""

    allow_out: list[str] | None = None
    deny_out: list[str] | None = None
    allow_internet_access: bool | None = field(default=None, name="allow_internet_access")
    rules: dict[str, Any] | None = None
    egress_proxy: dict[str, Any] | None = None
    dns_servers: list[str] | None = None
    mask_request_host: str | None = None

    def check(self) -> None:
        """ApiError for what this server can't do: better than to leave it out in silence."""
        for name in ("rules", "egress_proxy", "dns_servers", "mask_request_host"):
            if getattr(self, name):
                raise ApiError(400, f"Invalid network config: this server has no {name.replace('_', ' ')}")


class Egress:
    """A policy that can be changed while the sandbox runs."""

    def __init__(self, granted: tuple[str, ...], wanted: Wanted) -> None:
        """ApiError for what can't be granted."""
        self._granted = granted
        self.change(wanted)

    def change(self, wanted: Wanted) -> None:
        """ApiError; then nothing is changed."""
        wanted.check()
        allowed = wanted.allow_out
        if allowed and "*" not in self._granted and not set(allowed) <= set(self._granted):
            raise ApiError(403, "This server does not let sandboxes reach all of allowOut")
        try:
            denied = [ip_network(text, strict=False) for text in wanted.deny_out or ()]
            everything = any(network.prefixlen == 0 for network in denied)
            sealed = not allowed and (everything or wanted.allow_internet_access is False)
            decide = None if sealed else Network.allow(*(allowed or self._granted)).decide
        except (ValueError, PolicyError) as error:
            raise ApiError(400, f"Invalid network config: {error}") from None
        self._denied = () if allowed else tuple(denied)
        self._decide = decide

    def network(self) -> Network | None:
        """None: the operator grants nothing."""
        return Network.policy(self._ask) if self._granted else None

    def _ask(self, conn: Conn) -> Any:
        if self._decide is None:
            return conn.deny("the sandbox has no network")
        if conn.protocol != "dns" and any(ip_address(conn.dst.ip) in network for network in self._denied):
            return conn.deny("denyOut of the sandbox")
        return self._decide(conn)
