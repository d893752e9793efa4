"""Scopes of IP addresses, by our own table: they decide whether an address may be dialled.

`ipaddress.is_global` says yes to NAT64, to IPv4-compatible addresses, to site-local ones and to multicast. Here an
address that carries another one inside is judged by both, and what no registry calls public unicast is not public.
"""

from __future__ import annotations

from enum import Enum
from functools import lru_cache
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network
from typing import Final

from belljar.abi.dataclass import dataclass

Address = IPv4Address | IPv6Address


class Scope(Enum):
    """The scope of an address. Only PUBLIC may be reached because a name led to it."""

    PUBLIC = "public"
    PRIVATE = "private"
    LOOPBACK = "loopback"
    LINK_LOCAL = "link-local"
    MULTICAST = "multicast"
    BROADCAST = "broadcast"
    DOCUMENTATION = "documentation"
    RESERVED = "reserved"


# The IANA special-purpose registries, narrowest first where two rows meet. A range that the registries call globally
# reachable but that no ordinary service lives in (192.0.0.9, 2001:1::1) stays reserved.
_TABLE_V4: Final = tuple(
    (IPv4Network(text), scope)
    for text, scope in (
        ("255.255.255.255/32", Scope.BROADCAST),
        ("168.63.129.16/32", Scope.RESERVED),  # a cloud's metadata service inside public space
        ("0.0.0.0/8", Scope.RESERVED),
        ("10.0.0.0/8", Scope.PRIVATE),
        ("100.64.0.0/10", Scope.PRIVATE),  # carrier-grade NAT; a cloud's metadata service too
        ("127.0.0.0/8", Scope.LOOPBACK),
        ("169.254.0.0/16", Scope.LINK_LOCAL),
        ("172.16.0.0/12", Scope.PRIVATE),
        ("192.0.0.0/24", Scope.RESERVED),
        ("192.0.2.0/24", Scope.DOCUMENTATION),
        ("192.88.99.0/24", Scope.RESERVED),
        ("192.168.0.0/16", Scope.PRIVATE),
        ("198.18.0.0/15", Scope.RESERVED),  # benchmarking
        ("198.51.100.0/24", Scope.DOCUMENTATION),
        ("203.0.113.0/24", Scope.DOCUMENTATION),
        ("224.0.0.0/4", Scope.MULTICAST),
        ("240.0.0.0/4", Scope.RESERVED),
    )
)

_TABLE_V6: Final = tuple(
    (IPv6Network(text), scope)
    for text, scope in (
        ("::1/128", Scope.LOOPBACK),
        ("2001:db8::/32", Scope.DOCUMENTATION),
        ("3fff::/20", Scope.DOCUMENTATION),
        ("2001::/23", Scope.RESERVED),  # protocol assignments: Teredo, ORCHID, benchmarking
        ("2002::/16", Scope.RESERVED),  # 6to4
        ("fc00::/7", Scope.PRIVATE),
        ("fe80::/10", Scope.LINK_LOCAL),
        ("fec0::/10", Scope.PRIVATE),  # site-local, deprecated and still routed by some
        ("ff00::/8", Scope.MULTICAST),
    )
)
_GLOBAL_UNICAST: Final = IPv6Network("2000::/3")
_NAT64: Final = IPv6Network("64:ff9b::/96")
_NAT64_LOCAL: Final = IPv6Network("64:ff9b:1::/48")
_ENDS_IN_V4: Final = (
    IPv6Network("::ffff:0:0/96"),  # mapped
    IPv6Network("::ffff:0:0:0/96"),  # translated
    IPv6Network("::/96"),  # compatible
    _NAT64,
)
_TEREDO: Final = IPv6Network("2001::/32")
_SIX_TO_FOUR: Final = IPv6Network("2002::/16")
_ISATAP: Final = frozenset({0x00005EFE, 0x02005EFE})


def embedded(address: IPv6Address) -> tuple[IPv4Address, ...]:
    """Every IPv4 address that a translator or tunnel may make of this one."""
    bits = int(address)
    found: list[int] = []
    if any(address in network for network in _ENDS_IN_V4) and bits > 1:
        found.append(bits & 0xFFFFFFFF)
    elif address in _NAT64_LOCAL:
        # RFC 6052: any length from /48 up may be in use; the octet at bits 64-71 is skipped.
        after48 = (bits >> 64 & 0xFFFF) << 16 | bits >> 40 & 0xFFFF
        after56 = (bits >> 64 & 0xFF) << 24 | bits >> 32 & 0xFFFFFF
        after64 = bits >> 24 & 0xFFFFFFFF
        found += [after48, after56, after64, bits & 0xFFFFFFFF]
    elif address in _SIX_TO_FOUR:
        found.append(bits >> 80 & 0xFFFFFFFF)
    elif address in _TEREDO:
        found += [bits >> 64 & 0xFFFFFFFF, ~bits & 0xFFFFFFFF]
    if (bits >> 32) & 0xFFFFFFFF in _ISATAP:
        found.append(bits & 0xFFFFFFFF)
    return tuple(IPv4Address(number) for number in found)


def canonical(address: Address) -> Address:
    """A mapped address is the IPv4 address it maps; every other one is itself."""
    if isinstance(address, IPv6Address) and address.ipv4_mapped is not None:
        return address.ipv4_mapped
    return address


# Programs in a network namespace have a loopback of their own. The owner's is shown to them as addresses that no
# network uses: 240.0.0.0/8 for 127.0.0.0/8, and one of the discard prefix (RFC 6666) for ::1.
_LOOPBACK_V4, _SHOWN_V4 = 127 << 24, 240 << 24
_LOOPBACK_V6, _SHOWN_V6 = IPv6Address("::1"), IPv6Address("100::1")


def shown(address: Address) -> Address:
    """The address by which programs in a namespace reach one of the owner's."""
    if isinstance(address, IPv4Address):
        return IPv4Address(int(address) ^ _LOOPBACK_V4 ^ _SHOWN_V4) if int(address) >> 24 == 127 else address
    return _SHOWN_V6 if address == _LOOPBACK_V6 else address


def meant(address: Address) -> Address:
    """The address of the owner's that a program in a namespace means. The inverse of `shown`."""
    if isinstance(address, IPv4Address):
        return IPv4Address(int(address) ^ _LOOPBACK_V4 ^ _SHOWN_V4) if int(address) >> 24 == 240 else address
    return _LOOPBACK_V6 if address == _SHOWN_V6 else address


@lru_cache(maxsize=4096)
def classify(address: Address) -> Scope:
    """The scope of an address; of one that carries another, the less public of the two."""
    if isinstance(address, IPv4Address):
        return next((scope for network, scope in _TABLE_V4 if address in network), Scope.PUBLIC)
    if address.scope_id is not None:
        return Scope.LINK_LOCAL
    for inner in embedded(address):
        scope = classify(inner)
        if scope is not Scope.PUBLIC:
            return scope
    if address in _NAT64 or address.ipv4_mapped is not None:
        return Scope.PUBLIC
    for network, scope in _TABLE_V6:
        if address in network:
            return scope
    return Scope.PUBLIC if address in _GLOBAL_UNICAST else Scope.RESERVED


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One end of a flow."""

    address: Address
    port: int
    own: bool = False
    """An address of the owner's own machine, whatever its range: what listens there is not on the public internet."""

    @property
    def ip(self) -> str:
        return str(self.address)

    @property
    def scope(self) -> Scope:
        scope = classify(self.address)
        return Scope.LOOPBACK if self.own and scope is Scope.PUBLIC else scope

    def is_private(self) -> bool:
        return self.scope is Scope.PRIVATE

    def is_loopback(self) -> bool:
        return self.scope is Scope.LOOPBACK

    def is_link_local(self) -> bool:
        return self.scope is Scope.LINK_LOCAL

    def is_multicast(self) -> bool:
        return self.scope is Scope.MULTICAST

    def is_broadcast(self) -> bool:
        return self.scope is Scope.BROADCAST

    def is_documentation(self) -> bool:
        return self.scope is Scope.DOCUMENTATION

    def is_reserved(self) -> bool:
        return self.scope is Scope.RESERVED

    def is_public_internet(self) -> bool:
        return self.scope is Scope.PUBLIC

    def __str__(self) -> str:
        return f"[{self.ip}]:{self.port}" if self.address.version == 6 else f"{self.ip}:{self.port}"
