"""`Network`: what an owner grants a sandbox, as one value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, Self, TypeAlias

from belljar.abi.errors import PolicyError
from belljar.net.addresses import Address
from belljar.net.hosts import BadHost, parse_address, parse_name
from belljar.net.patterns import parse_pattern
from belljar.net.policy import Conn, allow_patterns, parse_resolvers

Policy: TypeAlias = Callable[[Conn], Any]
AuditEvent: TypeAlias = dict[str, Any]
Audit: TypeAlias = Callable[[AuditEvent], object]


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkLimits:
    """Network limits of one sandbox, enforced by the broker in the owner's process."""

    connections: int = 256
    """Open connections and requests under way at one moment."""
    dns_per_second: float = 50.0
    requests_per_second: float = 500.0
    """DNS questions, and connections and requests, on average; a burst of four seconds' worth is fine."""
    bytes_in: int = 64 << 30
    bytes_out: int = 16 << 30
    """Over the sandbox's whole life, headers included."""
    header_bytes: int = 64 << 10
    """All headers of one request or response."""
    connect_seconds: float = 30.0
    idle_seconds: float = 120.0
    """Idle time after which a web request is ended."""
    buffer_bytes: int = 64 << 20
    """Memory of the owner for all buffered streams and bodies together."""
    policy_seconds: float = 30.0
    """Time limit of a policy or middleware; then the answer is a denial."""

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not value > 0:
                raise PolicyError(f"NetworkLimits.{field.name} must be a positive number, not {value!r}")


@dataclass(frozen=True, slots=True)
class Network:
    """The network of a sandbox: `Network.deny()`, `Network.allow(...)` or `Network.policy(fn)`."""

    decide: Policy | None
    """The policy; None denies everything."""
    hosts: Mapping[str, tuple[Address, ...]]
    resolvers: tuple[tuple[str, int], ...] | None
    ca_bundle: str | None
    limits: NetworkLimits
    audit: Audit | None
    audit_required: bool = False
    """Deny everything once an event could not be recorded."""
    inline: bool = False
    """The policy is ours: it neither waits nor fails, and needs no thread."""

    @property
    def asks_owner(self) -> bool:
        """Whether a function of the owner's decides: nothing else has middleware, or grants UDP."""
        return self.decide is not None and not self.inline

    @classmethod
    def deny(cls, *, audit: Audit | None = None) -> Self:
        """No network at all. This is what a sandbox has unless it is given another."""
        return cls(None, {}, None, None, NetworkLimits(), audit)

    @classmethod
    def allow(
        cls,
        *patterns: str,
        hosts: Mapping[str, str | Sequence[str]] | None = None,
        resolvers: Iterable[str] | None = None,
        ca_bundle: str | None = None,
        websocket: bool = False,
        limits: NetworkLimits | None = None,
        audit: Audit | None = None,
        audit_required: bool = False,
    ) -> Self:
        """These destinations and nothing else: `api.example.com`, `*.example.com`, `10.0.0.5:5432`, `10.0.0.0/8`, `*`.

        A pattern without a port opens web requests on ports 80 and 443; with a port, that port for any protocol over
        TCP. A name opens only public addresses, unless `hosts` says where it is or its address is allowed as well.
        """
        parsed = tuple(parse_pattern(pattern) for pattern in patterns)
        known = _hosts(hosts)
        if any(pattern.name == "localhost" for pattern in parsed):
            known.setdefault("localhost", _addresses("localhost", "127.0.0.1"))
        decide = allow_patterns(parsed, known, websocket=websocket)
        return cls(
            decide,
            known,
            _resolvers(resolvers),
            ca_bundle,
            limits or NetworkLimits(),
            audit,
            audit_required,
            inline=True,
        )

    @classmethod
    def policy(
        cls,
        decide: Policy,
        *,
        hosts: Mapping[str, str | Sequence[str]] | None = None,
        resolvers: Iterable[str] | None = None,
        ca_bundle: str | None = None,
        limits: NetworkLimits | None = None,
        audit: Audit | None = None,
        audit_required: bool = False,
    ) -> Self:
        """Ask `decide(conn)`, sync or async, for every name, connection and request. What it accepts passes.

        `hosts` are names that need no resolver; `ca_bundle` a PEM file to trust instead of the public authorities.
        """
        if not callable(decide):
            raise PolicyError("Network.policy(fn) takes a function of a connection")
        return cls(
            decide, _hosts(hosts), _resolvers(resolvers), ca_bundle, limits or NetworkLimits(), audit, audit_required
        )


def _resolvers(resolvers: Iterable[str] | None) -> tuple[tuple[str, int], ...] | None:
    return None if resolvers is None else parse_resolvers(resolvers)


def _hosts(hosts: Mapping[str, str | Sequence[str]] | None) -> dict[str, tuple[Address, ...]]:
    known: dict[str, tuple[Address, ...]] = {}
    for name, addresses in (hosts or {}).items():
        try:
            known[parse_name(name)] = _addresses(name, addresses)
        except BadHost as error:
            raise PolicyError(f"hosts: {error}") from None
    return known


def _addresses(name: str, addresses: str | Sequence[str]) -> tuple[Address, ...]:
    found: list[Address] = []
    for text in [addresses] if isinstance(addresses, str) else addresses:
        address = parse_address(text)
        if address is None:
            raise PolicyError(f"hosts: {name!r} is at {text!r}, which is not an address")
        found.append(address)
    return tuple(found)
