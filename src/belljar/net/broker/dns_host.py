"""Questions to real resolvers, by dnspython; what comes back is checked to answer what was asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_address
from typing import Final

import dns.asyncbackend
import dns.asyncquery
import dns.exception
import dns.flags
import dns.message
import dns.name
import dns.rcode
import dns.rdata
import dns.rdatatype
import dns.resolver
import dns.rrset

from belljar.net.addresses import Address, canonical
from belljar.net.errors import NetError
from belljar.net.records import Line, no_such_name

RECORDS_MAX: Final = 64
_ATTEMPT_SECONDS: Final = 3.0


@dataclass(frozen=True, slots=True)
class Answer:
    """A resolver's answer."""

    records: tuple[Line, ...]
    """CNAMEs on the way included."""
    addresses: tuple[Address, ...]
    ttl: float


def system_resolvers() -> tuple[tuple[str, int], ...]:
    """Return the resolvers of /etc/resolv.conf. NetError if there are none."""
    try:
        found = dns.resolver.Resolver()
    except dns.resolver.NoResolverConfiguration:
        raise NetError("dns", "the sandbox's owner has no DNS resolver; pass resolvers=") from None
    return tuple((str(server), found.port) for server in found.nameservers)


@cache
def load_types() -> None:
    """Load the parser of every type of record, before anybody else's message is parsed.

    dnspython loads them when they are first met, and remembers for the whole process what a message of another class
    made of a type: a record `A` of class `ANY` would spoil every sandbox's addresses.
    """
    dns.rdata.load_all_types(disable_dynamic_load=False)  # type: ignore[no-untyped-call]


async def lookup(name: str, kind: str, resolvers: Sequence[tuple[str, int]], timeout: float) -> Answer:
    """Ask the resolvers in turn. NetError of kind dns or timeout."""
    load_types()
    question = dns.message.make_query(name, kind)
    backend = dns.asyncbackend.get_backend("asyncio")
    why = NetError("timeout", f"no answer for {name} from any resolver")
    for address, port in resolvers:
        try:
            response, _ = await dns.asyncquery.udp_with_fallback(
                question, address, min(timeout, _ATTEMPT_SECONDS), port=port, ignore_unexpected=True,
                ignore_errors=True, backend=backend,
            )  # fmt: skip
        except dns.exception.Timeout:
            continue
        except (dns.exception.DNSException, OSError, EOFError, ValueError):
            why = NetError("dns", f"no usable answer for {name}")
            continue
        if response.rcode() == dns.rcode.NXDOMAIN:
            raise no_such_name(name)
        if response.rcode() != dns.rcode.NOERROR:
            why = NetError("dns", f"the resolver could not answer for {name} ({dns.rcode.to_text(response.rcode())})")
            continue
        try:
            return _read(response, kind)
        except (dns.exception.DNSException, ValueError):
            why = NetError("dns", f"no usable answer for {name}")
    raise why


def _read(response: dns.message.Message, kind: str) -> Answer:
    if not isinstance(response, dns.message.QueryMessage):
        raise ValueError("not an answer")
    chain = response.resolve_chaining()
    sets: list[dns.rrset.RRset] = [*chain.cnames, *([chain.answer] if chain.answer is not None else [])]
    records: list[Line] = []
    addresses: list[Address] = []
    for entry in sets:
        owner = entry.name.to_text(omit_final_dot=True).lower()
        for item in entry:
            if len(records) < RECORDS_MAX:
                label = dns.rdatatype.to_text(item.rdtype)
                records.append((owner, int(entry.ttl), label, item.to_text()))
                if entry is chain.answer and kind in ("A", "AAAA") and label == kind:
                    addresses.append(canonical(ip_address(item.to_text())))
    return Answer(tuple(records), tuple(addresses), float(chain.minimum_ttl))
