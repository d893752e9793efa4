"""The decision: a connection, a DNS question or a web request in; accepted with what goes along, or denied, out.

Nothing here does I/O. A policy is the owner's function of a `Conn`; what it does not accept is blocked, and whatever
goes wrong while it decides is a block too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from belljar.abi.errors import PolicyError
from belljar.net.addresses import Address, Endpoint, Scope, classify
from belljar.net.hosts import RECORD_TYPES, BadHost, parse_address, split_port
from belljar.net.message import Middleware
from belljar.net.patterns import Pattern, parse_pattern
from belljar.net.redact import SECRET_MAX, SECRET_MIN

BAD_WEB_PORTS: Final = frozenset(
    {1, 7, 9, 11, 13, 15, 17, 19, 20, 21, 22, 23, 25, 37, 42, 43, 53, 69, 77, 79, 87, 95, 101, 102, 103, 104, 109, 110,
     111, 113, 115, 117, 119, 123, 135, 137, 139, 143, 161, 179, 389, 427, 465, 512, 513, 514, 515, 526, 530, 531, 532,
     540, 548, 554, 556, 563, 587, 601, 636, 989, 990, 993, 995, 1719, 1720, 1723, 2049, 3659, 4045, 4190, 5060, 5061,
     6000, 6566, 6665, 6666, 6667, 6668, 6669, 6679, 6697, 10080}
)  # fmt: skip
"""Ports on which something listens that takes lines of a web request for its own commands."""


@dataclass(frozen=True, slots=True)
class AcceptDns:
    resolvers: tuple[tuple[str, int], ...] | None
    """Address and port of each; None: the owner's, else the system's."""
    private: bool | tuple[Pattern, ...] = False
    """Whether (or where) answers may lead to addresses that are not public."""
    types: frozenset[str] = frozenset({"A", "AAAA"})
    """The types of record that may be asked for."""

    def permits(self, address: Address, *, own: bool = False) -> bool:
        """Whether an answer may name this address. `own`: it is one of the owner's machine."""
        if (classify(address) is Scope.PUBLIC and not own) or self.private is True:
            return True
        return bool(self.private) and any(pattern.covers_address(address) for pattern in self.private or ())


@dataclass(frozen=True, slots=True)
class AcceptRaw:
    """Bytes pass as they are."""


@dataclass(frozen=True, slots=True)
class AcceptHttp:
    """Web requests pass, each through the middleware, and nothing else."""

    middleware: Middleware | None = None
    redact: tuple[str, ...] | bool = ()
    websocket: bool = False
    hostname: str | None = None
    """The trusted name it was accepted for; None for a plain address."""


Accepted = AcceptDns | AcceptRaw | AcceptHttp


@dataclass(frozen=True, slots=True)
class Denied:
    reason: str
    """The reason in the owner's log."""
    shown: str = ""
    """The reason shown to the guest."""


Verdict = Accepted | Denied


class Conn:
    """A connection that a guest wants to open, or a name it wants to resolve, for a policy to decide on.

    `hostname` is the name the guest went by, and is only there if this sandbox resolved it through an accepted answer;
    `hostnames` are all such names of the address. Neither comes from anything the guest claims.
    """

    def __init__(
        self,
        protocol: str,
        src: Endpoint,
        dst: Endpoint,
        *,
        hostnames: Sequence[str] = (),
        question: tuple[str, str] | None = None,
        sandbox: str = "",
    ) -> None:
        self.protocol = protocol
        """"dns", "tcp" or "udp"."""
        self.src = src
        self.dst = dst
        self.hostnames = tuple(hostnames)
        self.sandbox = sandbox
        """The name of the sandbox that asks."""
        self._question = question
        self._accepted: Accepted | None = None
        self._refusal: str | None = None
        self._closed = False

    @property
    def hostname(self) -> str | None:
        return self.hostnames[0] if self.hostnames else None

    def accept(self) -> Accepted:
        """Let it through as it is: a raw connection, or a DNS question to the usual resolvers."""
        return self._accept(AcceptDns(None) if self._question else AcceptRaw())

    def deny(self, reason: str = "refused by the policy") -> None:
        """Block it, and tell the guest why. Wins over an accept."""
        if not self._closed:
            self._refusal = str(reason)

    def match_dns(self, pattern: str | None = None) -> DnsMatch | None:
        """Match a DNS question (for a name that the pattern covers, if there is one)."""
        if self._question is None:
            return None
        if pattern is not None and not parse_pattern(pattern).covers_name(self._question[0]):
            return None
        return DnsMatch(self, *self._question)

    def match_tcp(self, pattern: str | None = None) -> FlowMatch | None:
        """A TCP connection to `ip:port`, `name:port`, `network/bits` or any."""
        return self._match("tcp", pattern)

    def match_udp(self, pattern: str | None = None) -> FlowMatch | None:
        return self._match("udp", pattern)

    def match_http(self, host: str | Callable[[HttpMatch], object] | None = None) -> HttpMatch | None:
        """A connection for web requests to a host: a name, a pattern, or a function that looks at the candidate.

        A name counts only if it led to this address through an accepted DNS answer. A name or pattern without a port
        means ports 80 and 443, as in `Network.allow`.
        """
        if self.protocol != "tcp" or self.dst.port in BAD_WEB_PORTS:
            return None
        if host is None:
            return HttpMatch(self, self.hostname)
        if callable(host):
            candidates = [HttpMatch(self, name) for name in self.hostnames or (None,)]
            return next((candidate for candidate in candidates if host(candidate)), None)
        pattern = parse_pattern(host)
        if not pattern.covers_port(self.dst.port):
            return None
        if pattern.covers_address(self.dst.address):
            return HttpMatch(self, self.hostname)
        name = next((name for name in self.hostnames if pattern.covers_name(name)), None)
        return None if name is None else HttpMatch(self, name)

    def _match(self, protocol: str, text: str | None) -> FlowMatch | None:
        if self.protocol != protocol:
            return None
        if text is not None:
            pattern = parse_pattern(text)
            named = any(pattern.covers_name(name) for name in self.hostnames)
            if not (named or pattern.covers_address(self.dst.address)):
                return None
            if pattern.port is not None and pattern.port != self.dst.port:
                return None
        return FlowMatch(self)

    def _accept(self, verdict: Accepted) -> Accepted:
        if self._closed:
            raise PolicyError("accept() after the policy has returned")
        if self._accepted is not None:
            raise PolicyError("accept() twice for one connection: which is meant?")
        self._accepted = verdict
        return verdict

    def verdict(self, returned: object) -> Verdict:
        """Return the policy's decision. A returned value that is not a decision is a denial."""
        self._closed = True
        if self._refusal is not None:
            return Denied(self._refusal, self._refusal)
        accepted = self._accepted
        if accepted is None:
            return Denied("no policy accepted it")
        if returned is None or returned is True or returned is accepted or isinstance(returned, _MATCHES):
            return accepted
        return Denied(f"the policy returned {type(returned).__name__} instead of a decision")

    def __repr__(self) -> str:
        what = " ".join(self._question) if self._question else str(self.dst)
        return f"<Conn {self.protocol} {what}{f' ({self.hostname})' if self.hostname else ''}>"


class FlowMatch:
    """A raw connection that a policy asked for."""

    def __init__(self, conn: Conn) -> None:
        self.conn = conn
        self.src, self.dst = conn.src, conn.dst
        self.hostname = conn.hostname

    def accept(self) -> Accepted:
        """Let its bytes through as they are."""
        return self.conn._accept(AcceptRaw())


class DnsMatch:
    """A question for a name."""

    def __init__(self, conn: Conn, name: str, type: str) -> None:
        self.conn = conn
        self.name = name
        self.type = type

    def accept(
        self,
        resolvers: Iterable[str] | None = None,
        *,
        private: bool | tuple[Pattern, ...] = False,
        types: Iterable[str] = ("A", "AAAA"),
    ) -> Accepted:
        """Answer it, by these resolvers (`address` or `address:port`), if it is for one of these types of record.

        `private` lets the answer name addresses that are not on the public internet; they are left out otherwise.
        """
        chosen = None if resolvers is None else parse_resolvers(resolvers)
        return self.conn._accept(AcceptDns(chosen, private, parse_types(types)))


class HttpMatch:
    """Web requests to one host: `hostname` is trusted, or None for a plain address."""

    def __init__(self, conn: Conn, hostname: str | None) -> None:
        self.conn = conn
        self.hostname = hostname
        self.src, self.dst = conn.src, conn.dst
        self.ip, self.port = conn.dst.ip, conn.dst.port

    @property
    def host(self) -> str:
        return self.hostname or self.ip

    def accept(
        self, middleware: Middleware | None = None, *, redact: Iterable[str] | bool = False, websocket: bool = False
    ) -> Accepted:
        """Let web requests through, each given to `middleware(request)` first (sync or async).

        `redact` hides these texts wherever a response has them, plain or encoded; True: every header value and part of
        a URL that the middleware added. `websocket` lets a request turn into a WebSocket.
        """
        if middleware is not None and not callable(middleware):
            raise PolicyError("middleware is a function of a request")
        secrets = redact if isinstance(redact, bool) else parse_secrets(redact)
        return self.conn._accept(AcceptHttp(middleware, secrets, websocket, self.hostname))


def parse_secrets(redact: Iterable[str]) -> tuple[str, ...]:
    """PolicyError for anything but texts that can be hidden."""
    if isinstance(redact, str | bytes):
        raise PolicyError("redact is True or a list of texts, not one text: write redact=[...]")
    try:
        secrets = tuple(redact)
    except TypeError:
        raise PolicyError(f"redact is True or a list of texts, not {type(redact).__name__}") from None
    for secret in secrets:
        if type(secret) is not str or not SECRET_MIN <= len(secret) <= SECRET_MAX:
            raise PolicyError(f"redact: each text is a str of {SECRET_MIN} to {SECRET_MAX} characters")
    return secrets


_MATCHES: Final = (FlowMatch, DnsMatch, HttpMatch)


def parse_types(types: Iterable[str]) -> frozenset[str]:
    """PolicyError for anything but types of record."""
    found = frozenset([types] if isinstance(types, str) else types)
    if unknown := [type for type in found if type not in RECORD_TYPES]:
        raise PolicyError(f"types: {unknown[0]!r} is none of {', '.join(sorted(RECORD_TYPES))}")
    return found


def parse_resolvers(resolvers: Iterable[str]) -> tuple[tuple[str, int], ...]:
    """PolicyError for anything but addresses."""
    if isinstance(resolvers, str):
        raise PolicyError("resolvers is a list of addresses")
    found: list[tuple[str, int]] = []
    for text in resolvers:
        try:
            host, port = split_port(text)
        except (BadHost, AttributeError) as error:
            raise PolicyError(f"bad resolver: {error}") from None
        address = parse_address(host.strip("[]"))
        if address is None:
            raise PolicyError(f"bad resolver: {text!r} is not an address; write '1.1.1.1' or '10.0.0.2:5353'")
        found.append((str(address), port or 53))
    if not found:
        raise PolicyError("resolvers is empty")
    return tuple(found)


def allow_patterns(
    patterns: Sequence[Pattern], hosts: Mapping[str, Sequence[Address]], *, websocket: bool
) -> Callable[[Conn], Any]:
    """The policy of `Network.allow`: these destinations, names only where they are public or the owner said where.

    A pattern with a port opens that port for any protocol; one without opens the web's ports for web requests.
    """
    addresses = tuple(pattern for pattern in patterns if pattern.network is not None)

    def covers(pattern: Pattern, conn: Conn) -> bool:
        if not pattern.covers_port(conn.dst.port):
            return False
        if pattern.covers_address(conn.dst.address):
            return True
        return any(
            pattern.covers_name(name) and (conn.dst.is_public_internet() or conn.dst.address in hosts.get(name, ()))
            for name in conn.hostnames
        )

    def decide(conn: Conn) -> Any:
        if dns := conn.match_dns():
            wanted = dns.type in ("A", "AAAA") and any(pattern.covers_name(dns.name) for pattern in patterns)
            return dns.accept(private=addresses) if wanted else None
        matching = [pattern for pattern in patterns if covers(pattern, conn)] if conn.protocol == "tcp" else []
        if any(pattern.port is not None for pattern in matching):
            return conn.accept()
        http = conn.match_http() if matching else None
        return http.accept(websocket=websocket) if http else None

    return decide
