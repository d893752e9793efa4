"""The network namespace of a native sandbox, as steps of its plan: `lo` alone, or `lo` and a way to the proxy.

With a network, every destination leads to `lo`. The kernel changes the destination of each TCP connection to the
proxy's listener, of each DNS question to the name server, and rejects the rest; the sandbox's own addresses are its
own, and the listeners take nothing but what was redirected to them.

Where the policy may grant other UDP, every destination leads to `udp0` instead, one of a pair of devices. What goes
into it, and the rules let nothing but UDP, comes out of `udp1`, where nobody takes it but the owner's packet sockets.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from ipaddress import IPv4Address, IPv6Address, ip_network
from math import ceil
from typing import Any, Final, TypeAlias

from belljar.native import netlink
from belljar.native.netlink import TCP, UDP, Address, Subnet, by, family, lead_to, to, to_port

Step: TypeAlias = list[Any]

GUEST: Final[dict[int, Address]] = {4: IPv4Address("10.0.2.15"), 6: IPv6Address("fd00:6a61:7200::15")}
"""The sandbox's own addresses."""
PROXY: Final[dict[int, Address]] = {4: IPv4Address("192.0.0.8"), 6: IPv6Address("100::8")}
"""Where the listeners are: addresses that no network uses (RFC 7600's dummy address, RFC 6666's discard prefix)."""
RESOLVER: Final = IPv4Address("10.0.2.3")
"""The name server that resolv.conf names. Any other would do: questions are redirected, whomever they are for."""
_TCP_PORT, _DNS_PORT = 1, 2
"""Ports of the listeners, which programs inside can't have on all addresses: two that nobody wants."""
_DOMAIN: Final = 53
_LOOPBACK: Final[dict[int, Subnet]] = {4: ip_network("127.0.0.0/8"), 6: ip_network("::1/128")}
_STREAM, _DATAGRAM = 1, 2
_AF: Final = {4: 2, 6: 10}
_SOL_IP, _IP_FREEBIND = 0, 15
_SLACK: Final = 2
_BURST_SECONDS: Final = 4
"""The kernel refuses what is more than twice the owner's rate; that counts more exactly."""
_TABLE: Final = "belljar"
_DATAGRAMS: Final = 10_000
"""Datagrams a second, beside DNS, that the owner is to see; each takes it some 30 microseconds."""
NEAR, FAR = (8, "udp0"), (9, "udp1")
"""The pair of devices: index and name."""
NEAR_ADDRESS: Final = bytes.fromhex("02626a617230")
"""By which `udp0` knows what is for it. What comes out of `udp1` is not for that, and so the kernel leaves it alone."""
_PACKET_MAX: Final = 0xFFFF
_ACROSS: Final[dict[int, Address]] = {4: IPv4Address("192.0.0.9"), 6: IPv6Address("100::9")}
"""The gateway by which packets go into the pair: one neighbour, however many destinations."""
_MULTICAST: Final[dict[int, list[Subnet]]] = {
    4: [ip_network("224.0.0.0/4"), ip_network("255.255.255.255/32")],
    6: [ip_network("ff00::/8")],
}
_AF_PACKET, _RAW = 17, 3
_ETHER_TYPE: Final = {4: 0x0800, 6: 0x86DD}
LISTENERS: Final = ((_STREAM, _TCP_PORT), (_STREAM, _DNS_PORT), (_DATAGRAM, _DNS_PORT))
"""Type and port of the sockets of each IP version: every connection, DNS over TCP, DNS over UDP."""


def closed() -> list[Step]:
    """Steps for a namespace without a way out: connecting is ENETUNREACH, loopback works, any port may be bound."""
    return [
        ["netlink", netlink.ROUTE, netlink.link_up()],
        ["set", "/proc/sys/net/ipv4/ip_unprivileged_port_start", b"0"],
    ]


def redirected(versions: Sequence[int], rate: float = 500.0, *, udp: bool = False) -> list[Step]:
    """Steps for a namespace whose only way out are the listeners that these steps make, in the order of `LISTENERS`;
    with `udp`, and the packet sockets.

    `versions` are the IP versions that the kernel speaks; `rate` is how many connections and questions a second the
    owner means to serve.
    """
    steps = closed()
    if 6 in versions:  # some machines switch it off for new devices
        steps.append(["set", "/proc/sys/net/ipv6/conf/lo/disable_ipv6", b"0"])
    for version in versions:
        messages = [netlink.add_address(GUEST[version]), netlink.add_local_route(PROXY[version], GUEST[version])]
        if not udp:
            messages.append(netlink.add_default_route(GUEST[version]))
        steps += (["netlink", netlink.ROUTE, message] for message in messages)
    if udp:
        steps += packet_steps(versions, GUEST)
    steps.append(["netlink", netlink.NETFILTER, _rules(versions, rate, udp)])
    return [*steps, *listeners(versions, PROXY)]


def listeners(versions: Sequence[int], places: Mapping[int, Address]) -> list[Step]:
    """Steps that make the sockets of LISTENERS at these addresses, for each IP version."""
    return [_listen(places[version], kind, port) for version in versions for kind, port in LISTENERS]


def packet_steps(versions: Sequence[int], sources: Mapping[int, Address]) -> list[Step]:
    """Steps that make the pair of devices, lead every destination into it, and make a packet socket for each IP version
    at its other end. `sources` are the addresses that packets of the namespace itself come from."""
    steps: list[Step] = [["netlink", netlink.ROUTE, netlink.add_pair(NEAR, FAR, _PACKET_MAX)]]
    if 6 in versions:  # neither has an address of its own
        settings = (("udp0/disable_ipv6", b"0"), ("udp0/addr_gen_mode", b"1"), ("udp1/disable_ipv6", b"1"))
        steps += (["set", f"/proc/sys/net/ipv6/conf/{name}", value] for name, value in settings)
    for index, address in ((NEAR[0], NEAR_ADDRESS), (FAR[0], b"")):
        steps.append(["netlink", netlink.ROUTE, netlink.link_up(index, address, flags=netlink.IFF_NOARP)])
    for version in versions:
        route = netlink.add_gateway(_ACROSS[version], NEAR[0], sources[version])
        name = struct.pack("=H", _AF_PACKET) + struct.pack("!H", _ETHER_TYPE[version]) + struct.pack("=i12x", FAR[0])
        steps += (["netlink", netlink.ROUTE, route], ["listen", _AF_PACKET, _RAW, name, []])
    return steps


def flood(rate: float, *, udp: bool = False) -> list[bytes]:
    """Rules that refuse what is far more than a rate: each connection that is taken costs the owner time. With `udp`,
    datagrams other than DNS have a rate of their own, and are not tracked."""
    more = netlink.more_than(max(1, ceil(rate * _SLACK)), max(1, ceil(rate * _SLACK * _BURST_SECONDS)))
    opening = by(TCP) + netlink.opening() + more + netlink.reset()
    if not udp:
        return [opening, by(UDP) + more + netlink.prohibit()]
    return [
        opening,
        by(UDP) + to_port(_DOMAIN) + more + netlink.prohibit(),
        by(UDP) + to_port(_DOMAIN) + netlink.accept(),
        by(UDP) + netlink.more_than(_DATAGRAMS, _DATAGRAMS) + netlink.drop(),
        by(UDP) + netlink.untracked(),
    ]


def datagrams(versions: Sequence[int]) -> list[bytes]:
    """Rules that let UDP into the pair, once DNS has been dealt with; multicast is for nobody."""
    many = [to(place) + netlink.prohibit() for version in versions for place in _MULTICAST[version]]
    return [*many, by(UDP) + netlink.accept()]


def _rules(versions: Sequence[int], rate: float, udp: bool) -> bytes:
    own = [to(place) for version in versions for place in (_LOOPBACK[version], GUEST[version])]
    nat: list[bytes] = [rule + netlink.accept() for rule in own]
    allowed: list[bytes] = [rule + netlink.accept() for rule in own]
    for version in versions:
        proxy = PROXY[version]
        for protocol in (UDP, TCP):
            nat.append(family(version) + by(protocol) + to_port(_DOMAIN) + lead_to(proxy, _DNS_PORT))
            allowed.append(to(proxy) + by(protocol) + to_port(_DNS_PORT) + netlink.accept())
        nat.append(family(version) + by(TCP) + lead_to(proxy, _TCP_PORT))
        allowed.append(to(proxy) + by(TCP) + to_port(_TCP_PORT) + netlink.accept())
    if udp:
        allowed += datagrams(versions)
    refused = [by(TCP) + netlink.reset(), netlink.prohibit()]
    # Before any redirection. Connections inside need no tracking, and so can't fill its table; the listeners are for
    # what is redirected to them. A flood is the kernel's to refuse.
    first = [to(_LOOPBACK[version]) + netlink.untracked() + netlink.accept() for version in versions]
    first += [to(GUEST[version]) + netlink.accept() for version in versions]
    first += [to(PROXY[version]) + rule for version in versions for rule in refused]
    first += flood(rate, udp=udp)
    return netlink.table(
        _TABLE,
        netlink.chain(_TABLE, "first", "filter", netlink.PRIORITY_RAW, first),
        netlink.chain(_TABLE, "redirection", "nat", netlink.PRIORITY_DSTNAT, nat),
        netlink.chain(_TABLE, "way_out", "filter", netlink.PRIORITY_FILTER, [*allowed, *refused]),
    )


def _listen(address: Address, kind: int, port: int) -> Step:
    packed, version = address.packed, address.version
    place = packed + bytes(8) if version == 4 else bytes(4) + packed + bytes(4)
    name = struct.pack("=H", _AF[version]) + struct.pack("!H", port) + place
    return ["listen", _AF[version], kind, name, [[_SOL_IP, _IP_FREEBIND, 1]]]
