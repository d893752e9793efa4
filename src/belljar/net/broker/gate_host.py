"""The gate of one sandbox: every name, connection and request is decided here, then and only then carried out."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import lru_cache
from ipaddress import IPv4Address, ip_address
from typing import TYPE_CHECKING, Any, Final

from belljar.net.addresses import Address, Endpoint, canonical
from belljar.net.attribution import Attribution
from belljar.net.audit import Emit, decision, failure
from belljar.net.broker.callbacks_host import Callbacks, TooBusy
from belljar.net.broker.descriptors_host import Share, of_process
from belljar.net.broker.loop_host import LoopThread
from belljar.net.broker.record_host import Record, Sink
from belljar.net.broker.stream_host import Datagrams, Stream, dial, dial_udp, is_own
from belljar.net.errors import NetError
from belljar.net.hosts import RECORD_TYPES, BadHost, parse_host, parse_name
from belljar.net.memory import Memory
from belljar.net.network import Network
from belljar.net.policy import AcceptDns, Accepted, Conn, Denied, Verdict
from belljar.net.rate import Rate
from belljar.net.records import Line, hints, no_such_name, pointed_at, target_of

if TYPE_CHECKING:
    from belljar.net.broker.dns_host import Answer

GUEST: Final = IPv4Address("10.0.2.15")
RESOLVER: Final = Endpoint(IPv4Address("10.0.2.3"), 53)
"""The resolver's address that the guest sees."""
_NOTHING_SECONDS: Final = 30.0
"""TTL of an answer without records."""
_TRIES: Final = 3
"""Addresses of one name that are tried."""
_DNS_HEADER: Final = 18
"""Bytes of a DNS message besides its names and data."""
_FLUSH_SECONDS: Final = 5.0
"""Time limit, on closing, for the owner's functions to take all events."""


@dataclass(slots=True)
class Reached:
    """A destination that was decided: dial this address, and no other."""

    address: Address
    port: int
    hostname: str | None
    accepted: Accepted
    lookup_seconds: float = 0.0


@dataclass(slots=True)
class Traffic:
    """Counters of a sandbox's traffic, for limits and statistics."""

    bytes_in: int = 0
    bytes_out: int = 0
    requests: int = 0
    connections: int = 0
    questions: int = 0
    denied: int = 0


class Gate:
    """One sandbox's way out. Used on one event loop only: that of `thread`, unless a test brings its own."""

    def __init__(
        self,
        network: Network,
        *,
        sandbox: str = "",
        emit: Emit | None = None,
        owner: asyncio.AbstractEventLoop | None = None,
        clock: Callable[[], float] = time.monotonic,
        own: Callable[[Address], bool] = is_own,
    ) -> None:
        self.network = network
        self.limits = network.limits
        self.sandbox = sandbox
        self.clock = clock
        self._own = own
        self.callbacks = Callbacks(owner)
        self.names = Attribution()
        self.traffic = Traffic()
        self.thread = LoopThread("belljar-network")
        self.memory = Memory(self.limits.buffer_bytes)
        self.descriptors = Share(of_process())
        self.record = Record(_sinks(network, sandbox, emit), sandbox)
        self._dns_rate = Rate(self.limits.dns_per_second, clock())
        self._rate = Rate(self.limits.requests_per_second, clock())
        self._open = 0
        self.hang_up: Callable[[], None] | None = None
        """Ends the line that leads here; a sandbox has one."""
        self._next_port = 32768

    # The record.

    def tell(self, event: dict[str, Any]) -> None:
        """Add to the record."""
        self.record.put({"time": time.time(), **event})

    def close(self, *, wait: bool = True) -> None:
        """End everything under way, and wait until what was recorded is handed over. Idempotent, on any thread."""
        self.thread.stop()
        if wait:
            self.record.flush(_FLUSH_SECONDS)

    def count_in(self, size: int) -> None:
        """Charge received bytes. NetError when the sandbox has had its share."""
        self.traffic.bytes_in += size
        if self.traffic.bytes_in > self.limits.bytes_in:
            raise NetError("too-large", f"this sandbox has received its {self.limits.bytes_in} bytes")

    def count_out(self, size: int) -> None:
        self.traffic.bytes_out += size
        if self.traffic.bytes_out > self.limits.bytes_out:
            raise NetError("too-large", f"this sandbox has sent its {self.limits.bytes_out} bytes")

    @contextmanager
    def attempt(self, kind: str, target: str) -> Iterator[None]:
        """Count one lookup ("dns"), connection or request, and record how it ended.

        NetError when there are too many at once, or too many a second.
        """
        outcome: dict[str, str] = {"result": "ok"}
        try:
            self._enter()
            try:
                yield
            finally:
                self._open -= 1
                self.descriptors.give()
        except NetError as error:
            outcome = {"result": error.kind, "reason": error.recorded}
            raise
        except asyncio.CancelledError:
            outcome = {"result": "dropped"}
            raise
        except BaseException as error:
            outcome = {"result": "failed", "reason": type(error).__name__}
            raise
        finally:
            self.tell({"action": "outcome", "of": kind, "target": target, **outcome})

    def _enter(self) -> None:
        if self._open >= self.limits.connections:
            raise NetError("denied", f"more than {self.limits.connections} connections at once", temporary=True)
        if not self._rate.take(self.clock()):
            raise NetError(
                "denied", f"more than {self.limits.requests_per_second:g} connections a second", temporary=True
            )
        if not self.descriptors.take():
            raise NetError("denied", "the sandbox's owner has too many connections open", temporary=True)
        self._open += 1

    # Decisions.

    async def decide(self, conn: Conn) -> Verdict:
        """Ask the policy. Anything but an explicit accept, in time and without an error, is a denial."""
        decide = self.network.decide
        verdict: Verdict
        await self.record.room()
        if self.network.audit_required and self.record.failed:
            verdict = Denied("what it does could not be recorded")
        elif decide is None:
            verdict = Denied("this sandbox was granted no network")
        else:
            try:
                if self.network.inline:
                    verdict = conn.verdict(decide(conn))
                else:
                    verdict = conn.verdict(await self.callbacks.call(decide, conn, self.limits.policy_seconds))
            except TooBusy:
                verdict = Denied("too many decisions are still open")
            except TimeoutError:
                conn.verdict(None)
                verdict = Denied(f"the policy did not decide within {self.limits.policy_seconds:g} s")
                self.tell({"action": "policy-error", "error": "TimeoutError", "conn": repr(conn)})
            except Exception as error:  # noqa: BLE001 - the owner's code: whatever it raises is a no
                conn.verdict(None)
                verdict = Denied("the policy failed")
                self.tell({"action": "policy-error", **failure(error), "conn": repr(conn)})
        self.tell(decision(conn, verdict))
        if self.network.audit_required and not isinstance(verdict, Denied):
            await self.record.written()
            if self.record.failed:
                verdict = Denied("what it does could not be recorded")
        if isinstance(verdict, Denied):
            self.traffic.denied += 1
        return verdict

    def _src(self) -> Endpoint:
        self._next_port = 32768 + (self._next_port - 32767) % 28000
        return Endpoint(GUEST, self._next_port)

    # Names.

    async def resolve(self, name: str, kind: str) -> tuple[list[str], tuple[Address, ...]]:
        """Records as lines, and the addresses among them that may be dialled. NetError."""
        try:
            name = parse_name(name)
        except BadHost as error:
            raise NetError("denied", str(error)) from None
        if kind not in RECORD_TYPES:
            raise NetError("denied", f"{kind[:20]!a} is not a kind of record that can be asked for")
        self.traffic.questions += 1
        fresh = self.names.fresh(name, kind, self.clock())
        if fresh is None and name not in self.network.hosts:
            self._count_question()
        conn = Conn("dns", self._src(), RESOLVER, question=(name, kind), sandbox=self.sandbox)
        verdict = await self.decide(conn)
        if isinstance(verdict, Denied):
            raise NetError("denied", verdict.shown or f"{name} is not a name this sandbox may look up")
        if not isinstance(verdict, AcceptDns) or kind not in verdict.types:
            raise NetError("denied", f"{name}: this sandbox may not look up records of type {kind}")
        if (known := self.network.hosts.get(name)) is not None:
            version = {"A": 4, "AAAA": 6}.get(kind)
            addresses = tuple(address for address in known if address.version == version)
            self.names.learn(name, kind, addresses, 0, self.clock())
            return [f"{name} 0 {kind} {address}" for address in addresses], addresses
        if fresh is not None:
            if all(self._permits(verdict, address) for address in fresh.addresses):
                return list(fresh.records), fresh.addresses
            self._count_question()
        return await self._ask(name, kind, verdict)

    def _permits(self, verdict: AcceptDns, address: Address) -> bool:
        return verdict.permits(address, own=self._own(address))

    def _count_question(self) -> None:
        """NetError when there are too many. What is known already, as for the tenth file of one host, is free."""
        if not self._dns_rate.take(self.clock()):
            raise NetError("denied", f"more than {self.limits.dns_per_second:g} DNS questions a second", temporary=True)

    async def _ask(self, name: str, kind: str, verdict: AcceptDns) -> tuple[list[str], tuple[Address, ...]]:
        answer = await self._lookup(name, kind, verdict)
        permitted = tuple(address for address in answer.addresses if self._permits(verdict, address))
        shown = [record for record in answer.records if await self._shows(name, record, kind, permitted, verdict)]
        if left_out := [record[3] for record in answer.records if record not in shown]:
            self.tell({"action": "dns-filtered", "name": name, "type": kind, "records": left_out})
            if not any(record[2] == kind for record in shown):
                # Where it leads is the owner's business: a guest must not map the network inside by names.
                raise no_such_name(name)
        lines = [f"{owner} {ttl} {type} {data}" for owner, ttl, type, data in shown]
        ttl = answer.ttl if lines else min(answer.ttl, _NOTHING_SECONDS)
        self.names.learn(name, kind, permitted, ttl, self.clock(), lines)
        return lines, permitted

    async def _lookup(self, name: str, kind: str, verdict: AcceptDns) -> Answer:
        """Ask a resolver. The question and the answer are traffic like any other. NetError."""
        from belljar.net.broker.dns_host import lookup, system_resolvers

        self.count_out(_DNS_HEADER + len(name))
        resolvers = verdict.resolvers or self.network.resolvers or system_resolvers()
        answer = await lookup(name, kind, resolvers, self.limits.connect_seconds)
        self.count_in(_DNS_HEADER + sum(len(owner) + len(data) for owner, _, _, data in answer.records))
        return answer

    async def _shows(
        self, name: str, record: Line, kind: str, permitted: tuple[Address, ...], verdict: AcceptDns
    ) -> bool:
        """Whether a guest may see a record: none with an address or a host that is not public."""
        _, _, type, data = record
        if verdict.private is True:
            return True
        if type in ("A", "AAAA"):
            return canonical(ip_address(data)) in permitted
        if kind in ("A", "AAAA"):
            return bool(permitted)  # the names on the way to an address
        asked = pointed_at(name)
        addresses = [*hints(type, data), *([] if asked is None else [asked])]
        if not all(self._permits(verdict, address) for address in addresses):
            return False
        target = target_of(type, data)
        return target is None or await self._leads_outside(target, verdict)

    async def _leads_outside(self, name: str, verdict: AcceptDns) -> bool:
        """Whether a host that a record names has only addresses that may be named."""
        found: list[Address] = []
        for kind in ("A", "AAAA"):
            try:
                found += (await self._lookup(parse_name(name), kind, verdict)).addresses
            except BadHost:
                return False
            except NetError as error:
                if str(error) != str(no_such_name(name)):
                    return False
        return all(self._permits(verdict, address) for address in found)

    async def addresses(self, name: str) -> tuple[Address, ...]:
        """Resolve a name to its addresses. NetError."""
        _, found = await self.resolve(name, "A")
        if not found:
            _, found = await self.resolve(name, "AAAA")
        if not found:
            raise NetError("dns", f"{name} has no address")
        return found

    # Flows.

    async def reach(self, protocol: str, host: str, port: int, *, web: bool = False) -> list[Reached]:
        """The destinations that were accepted for a host, best first. NetError when there are none.

        A connection by address may be for any of the names that led there. A web request says whom it is for: one
        for a bare address is for nobody else.
        """
        try:
            parsed = parse_host(host)
        except BadHost as error:
            raise NetError("denied", str(error)) from None
        began = self.clock()
        if isinstance(parsed, str):
            candidates = (await self.addresses(parsed))[:_TRIES]
            hostnames: tuple[str, ...] = (parsed,)
        else:
            candidates = (parsed,)
            hostnames = () if web else self.names.names(parsed, began)
        seconds = self.clock() - began
        reached: list[Reached] = []
        why = ""
        for address in candidates:
            verdict = await self.judge(protocol, Endpoint(address, port), hostnames)
            if isinstance(verdict, Denied):
                why = why or verdict.shown
            else:
                reached.append(Reached(address, port, hostnames[0] if hostnames else None, verdict, seconds))
        if not reached:
            raise NetError("denied", why or f"{host}:{port} is not open to this sandbox")
        return reached

    async def judge(self, protocol: str, dst: Endpoint, hostnames: tuple[str, ...]) -> Verdict:
        """The verdict on one flow."""
        dst = Endpoint(dst.address, dst.port, own=self._own(dst.address))
        conn = Conn(protocol, self._src(), dst, hostnames=hostnames, sandbox=self.sandbox)
        return await self.decide(conn)

    async def open(self, protocol: str, places: list[Reached], seconds: float) -> tuple[Stream | Datagrams, Reached]:
        """A connection to the first of these places that answers. NetError."""
        failure: NetError | None = None
        for place in places:
            try:
                self.traffic.connections += 1
                if protocol == "udp":
                    return await dial_udp(place.address, place.port), place
                stream = await dial(place.address, place.port, seconds)
                stream.memory = self.memory
                return stream, place
            except NetError as error:
                failure = error
        assert failure is not None
        raise failure

    def tls(self, protocols: tuple[str, ...]) -> ssl.SSLContext:
        """Return a context that verifies servers, by the owner's bundle or the system's; `protocols` go into ALPN."""
        return _tls_context(self.network.ca_bundle, protocols)


def _sinks(network: Network, sandbox: str, emit: Emit | None) -> list[Sink]:
    """The owner's functions that take events."""
    sinks: list[Sink] = [] if emit is None else [lambda event: emit({k: v for k, v in event.items() if k != "time"})]
    if network.audit is not None:
        audit = network.audit
        sinks.append(lambda event: audit({"sandbox": sandbox, "kind": "network", **event}))
    return sinks


@lru_cache(maxsize=16)
def _tls_context(ca_bundle: str | None, protocols: tuple[str, ...]) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cafile=ca_bundle)
    except OSError as error:
        raise NetError("tls", f"the sandbox's owner gave a CA bundle that can't be read ({error.strerror})") from None
    context.hostname_checks_common_name = False  # a certificate says whose it is in its SAN, or not at all
    if protocols:
        context.set_alpn_protocols(protocols)
    return context
