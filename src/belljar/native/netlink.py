"""Netlink messages that set up a sandbox's network namespace, as bytes: links, addresses, routes, nf_tables rules.

The numbers are those of linux/netlink.h, rtnetlink.h, if_addr.h and netfilter/nf_tables.h. A new namespace has one
device, `lo`, with index 1.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_network
from typing import Final, TypeAlias

ROUTE: Final = 0
NETFILTER: Final = 12
"""Protocols of AF_NETLINK sockets."""

Address: TypeAlias = IPv4Address | IPv6Address
Subnet: TypeAlias = IPv4Network | IPv6Network

_LO: Final = 1
_AF: Final = {4: 2, 6: 10}
_REQUEST, _ACK, _CREATE, _APPEND = 0x1, 0x4, 0x400, 0x800
_RTM_NEWLINK, _RTM_NEWADDR, _RTM_NEWROUTE = 16, 20, 24
_IFF_UP: Final = 1
IFF_NOARP: Final = 0x80
_IFA_F_NODAD: Final = 0x02
_IFLA_ADDRESS, _IFLA_IFNAME, _IFLA_MTU, _IFLA_LINKINFO, _IFLA_GSO_MAX_SEGS = 1, 3, 4, 18, 40
_RTNH_F_ONLINK: Final = 4
_RT_TABLE_MAIN, _RT_TABLE_LOCAL, _RTPROT_BOOT, _RT_SCOPE_HOST = 254, 255, 3, 254
_RTN_UNICAST, _RTN_LOCAL = 1, 2

_NESTED: Final = 0x8000
_SUBSYSTEM_NFTABLES: Final = 10
_NEWTABLE, _NEWCHAIN, _NEWRULE = 0, 3, 6
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_NFPROTO_INET: Final = 1
_NFPROTO: Final = {4: 2, 6: 10}
HOOK_PREROUTING, HOOK_INPUT, HOOK_FORWARD, HOOK_OUTPUT = 0, 1, 2, 3
PRIORITY_RAW, PRIORITY_DSTNAT, PRIORITY_FILTER = -300, -100, 0
_DROP, _ACCEPT, _REGISTER_VERDICT, _REGISTER, _REGISTER_2 = 0, 1, 0, 1, 2
_META_IIF, _META_NFPROTO, _META_L4PROTO = 4, 15, 16
_NETWORK_HEADER, _TRANSPORT_HEADER = 1, 2
_DADDR: Final = {4: (16, 4), 6: (24, 16)}
"""Offset and length of the destination in an IP header."""
_NAT_DESTINATION: Final = 1
_REJECT_TCP_RESET, _REJECT_ICMPX, _ADMIN_PROHIBITED = 1, 2, 3
_FIN, _SYN, _RST, _ACK_FLAG = 0x01, 0x02, 0x04, 0x10
_LIMIT_OVER: Final = 1
TCP, UDP, ICMP6 = 6, 17, 58


def _attribute(kind: int, data: bytes) -> bytes:
    size = 4 + len(data)
    return struct.pack("=HH", size, kind) + data + bytes(-size % 4)


def _nested(kind: int, *parts: bytes) -> bytes:
    return _attribute(kind | _NESTED, b"".join(parts))


def _number(kind: int, value: int) -> bytes:
    return _attribute(kind, struct.pack("!i", value))


def _text(kind: int, value: str) -> bytes:
    return _attribute(kind, value.encode() + b"\0")


def _message(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | flags, 1, 0) + body


# Links, addresses and routes.


def link_up(index: int = _LO, address: bytes = b"", *, flags: int = 0) -> bytes:
    """Like `ip link set lo up`: with it come 127.0.0.1/8 and ::1. Of another device than `lo`, by its index; with the
    address that it gets, if any, and further flags."""
    head = struct.pack("=BxHiII", 0, 0, index, _IFF_UP | flags, _IFF_UP | flags)
    return _message(_RTM_NEWLINK, _ACK, head + (_attribute(_IFLA_ADDRESS, address) if address else b""))


def add_pair(first: tuple[int, str], second: tuple[int, str], size: int) -> bytes:
    """Like `ip link add NAME type veth peer name NAME`, with an index for each: what goes into one comes out of the
    other. Packets of this size fit, and go one by one, whatever programs say about segments (UDP_SEGMENT).
    """
    sizes = _attribute(_IFLA_MTU, struct.pack("=I", size)) + _attribute(_IFLA_GSO_MAX_SEGS, struct.pack("=I", 1))
    one, other = (
        struct.pack("=BxHiII", 0, 0, index, 0, 0) + _text(_IFLA_IFNAME, name) + sizes for index, name in (first, second)
    )
    kind = _nested(_IFLA_LINKINFO, _text(1, "veth"), _nested(2, _attribute(1, other)))
    return _message(_RTM_NEWLINK, _CREATE | _ACK, one + kind)


def add_address(address: Address, index: int = _LO, length: int | None = None) -> bytes:
    """Like `ip address add ADDRESS/LENGTH dev DEVICE nodad`; without a length it is the address alone."""
    flags = _IFA_F_NODAD if address.version == 6 else 0
    size = address.max_prefixlen if length is None else length
    head = struct.pack("=BBBBi", _AF[address.version], size, flags, 0, index)
    body = head + _attribute(1, address.packed) + _attribute(2, address.packed)
    return _message(_RTM_NEWADDR, _CREATE | _ACK, body)


def add_default_route(source: Address) -> bytes:
    """Like `ip route add default dev lo src SOURCE`."""
    return _add_route(_RT_TABLE_MAIN, _RTN_UNICAST, source, None)


def add_gateway(gateway: Address, index: int, source: Address | None = None) -> bytes:
    """Like `ip route add default via GATEWAY dev DEVICE`; with a source, and `onlink src SOURCE`."""
    version, flags = _AF[gateway.version], 0 if source is None else _RTNH_F_ONLINK
    head = struct.pack("=BBBBBBBBI", version, 0, 0, 0, _RT_TABLE_MAIN, _RTPROT_BOOT, 0, _RTN_UNICAST, flags)
    body = head + _attribute(4, struct.pack("=i", index)) + _attribute(5, gateway.packed)
    body += b"" if source is None else _attribute(7, source.packed)
    return _message(_RTM_NEWROUTE, _CREATE | _ACK, body)


def add_local_route(address: Address, source: Address) -> bytes:
    """Like `ip route add local ADDRESS dev lo src SOURCE`: an address to listen on that connections don't come from."""
    return _add_route(_RT_TABLE_LOCAL, _RTN_LOCAL, source, address)


def _add_route(table: int, kind: int, source: Address, address: Address | None) -> bytes:
    scope = _RT_SCOPE_HOST if kind == _RTN_LOCAL else 0
    length = 0 if address is None else address.max_prefixlen
    head = struct.pack("=BBBBBBBBI", _AF[source.version], length, 0, 0, table, _RTPROT_BOOT, scope, kind, 0)
    where = b"" if address is None else _attribute(1, address.packed)
    body = head + where + _attribute(4, struct.pack("=i", _LO)) + _attribute(7, source.packed)
    return _message(_RTM_NEWROUTE, _CREATE | _ACK, body)


# nf_tables: expressions, which make rules, which make chains.


def _expression(name: str, *parts: bytes) -> bytes:
    return _nested(1, _text(1, name), _nested(2, *parts))


def _data(value: bytes) -> bytes:
    return _attribute(1, value)


def _equals(value: bytes) -> bytes:
    return _expression("cmp", _number(1, _REGISTER), _number(2, 0), _nested(3, _data(value)))


def _meta_is(key: int, value: int) -> bytes:
    return _expression("meta", _number(1, _REGISTER), _number(2, key)) + _equals(bytes([value]))


def _payload(base: int, offset: int, length: int) -> bytes:
    return _expression("payload", _number(1, _REGISTER), _number(2, base), _number(3, offset), _number(4, length))


def _load(register: int, value: bytes) -> bytes:
    return _expression("immediate", _number(1, register), _nested(2, _data(value)))


def came_by(index: int) -> bytes:
    """Match the device by which a packet came in."""
    return _expression("meta", _number(1, _REGISTER), _number(2, _META_IIF)) + _equals(struct.pack("=i", index))


def by(protocol: int) -> bytes:
    """Match a transport protocol."""
    return _meta_is(_META_L4PROTO, protocol)


def to_port(port: int) -> bytes:
    """Match a destination port; after `by`."""
    return _payload(_TRANSPORT_HEADER, 2, 2) + _equals(struct.pack("!H", port))


def family(version: int) -> bytes:
    """Match IPv4 or IPv6."""
    return _meta_is(_META_NFPROTO, _NFPROTO[version])


def to(where: Address | Subnet) -> bytes:
    """Match a destination address."""
    network = ip_network(where)
    address = _payload(_NETWORK_HEADER, *_DADDR[network.version]) + _masked(network.netmask.packed)
    return family(network.version) + address + _equals(network.network_address.packed)


def _masked(mask: bytes) -> bytes:
    return _expression(
        "bitwise",
        _number(1, _REGISTER),
        _number(2, _REGISTER),
        _number(3, len(mask)),
        _nested(4, _data(mask)),
        _nested(5, _data(bytes(len(mask)))),
    )


def opening() -> bytes:
    """Match the first segment of a connection; after `by(TCP)`."""
    return (
        _payload(_TRANSPORT_HEADER, 13, 1) + _masked(bytes([_FIN | _SYN | _RST | _ACK_FLAG])) + _equals(bytes([_SYN]))
    )


def more_than(per_second: int, burst: int) -> bytes:
    """Match what exceeds a rate."""
    rate = _attribute(1, struct.pack("!Q", per_second)) + _attribute(2, struct.pack("!Q", 1))
    return _expression("limit", rate, _number(3, burst), _number(4, 0), _number(5, _LIMIT_OVER))


def accept() -> bytes:
    verdict = _nested(2, _number(1, _ACCEPT))
    return _expression("immediate", _number(1, _REGISTER_VERDICT), _nested(2, verdict))


def drop() -> bytes:
    verdict = _nested(2, _number(1, _DROP))
    return _expression("immediate", _number(1, _REGISTER_VERDICT), _nested(2, verdict))


def untracked() -> bytes:
    """Leave connection tracking out."""
    return _expression("notrack")


def lead_to(address: Address, port: int) -> bytes:
    """Change the destination (DNAT); after `family`. The old one is the connection's SO_ORIGINAL_DST."""
    nat = _expression(
        "nat",
        _number(1, _NAT_DESTINATION),
        _number(2, _NFPROTO[address.version]),
        _number(3, _REGISTER),
        _number(5, _REGISTER_2),
    )
    return _load(_REGISTER, address.packed) + _load(_REGISTER_2, struct.pack("!H", port)) + nat


def reset() -> bytes:
    """Reject with a TCP reset; after `by(TCP)`."""
    return _expression("reject", _number(1, _REJECT_TCP_RESET))


def prohibit() -> bytes:
    """Reject with "administratively prohibited": sending fails with EPERM."""
    return _expression("reject", _number(1, _REJECT_ICMPX), _attribute(2, bytes([_ADMIN_PROHIBITED])))


def chain(
    table: str, name: str, kind: str, priority: int, rules: Sequence[bytes], hook: int = HOOK_OUTPUT
) -> list[bytes]:
    """Messages for a chain of a hook: without one, of what the namespace's own programs send."""
    where = _nested(4, _number(1, hook), _number(2, priority))
    head = _nft(_NEWCHAIN, 0, _text(1, table), _text(3, name), where, _text(7, kind))
    return [head, *(_nft(_NEWRULE, _APPEND, _text(1, table), _text(2, name), _nested(4, rule)) for rule in rules)]


def table(name: str, *chains: list[bytes]) -> bytes:
    """One batch that makes a table: all of it or nothing."""
    messages = [_nft(_NEWTABLE, 0, _text(1, name)), *(message for chain in chains for message in chain)]
    return b"".join([_batch(_BATCH_BEGIN), *messages, _batch(_BATCH_END)])


def _nft(kind: int, flags: int, *parts: bytes) -> bytes:
    body = struct.pack("!BBH", _NFPROTO_INET, 0, 0) + b"".join(parts)
    return _message(_SUBSYSTEM_NFTABLES << 8 | kind, _CREATE | _ACK | flags, body)


def _batch(kind: int) -> bytes:
    return _message(kind, 0, struct.pack("!BBH", 0, 0, _SUBSYSTEM_NFTABLES))
