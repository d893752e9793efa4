"""A machine's network: a tap in QEMU's network namespace, behind which there is nothing but the proxy's listeners.

The machine has one address, and the namespace is its gateway. The kernel changes the destination of each TCP connection
that comes in by the tap to the proxy's listener, of each DNS question to the name server, and drops the rest. Where the
policy may grant other UDP, that is forwarded to the owner's packet sockets, as in a native sandbox's namespace.
"""

from __future__ import annotations

from collections.abc import Sequence
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from belljar.native import netlink
from belljar.native.netlink import TCP, UDP, Address, by, family, to_port
from belljar.native.network import GUEST, NEAR, Step, closed, datagrams, flood, listeners, packet_steps
from belljar.vm.command import TAP

GATEWAY: Final[dict[int, Address]] = {4: IPv4Address("10.0.2.2"), 6: IPv6Address("fd00:6a61:7200::2")}
_LENGTH: Final = {4: 24, 6: 64}
_TAP_INDEX: Final = 2
"""The first device that is made in a namespace after `lo`."""
_TAP_ADDRESS: Final = bytes.fromhex("52540062656d")
"""A branch of a machine knows its gateway by it."""
_GUEST_INDEX: Final = 2
_TCP_PORT, _DNS_PORT, _DOMAIN = 1, 2, 53
_FORWARDING: Final = {4: "ipv4/ip_forward", 6: "ipv6/conf/all/forwarding"}
_TABLE: Final = "belljar"
"""Of the machine's only device."""


class Tap:
    """The network of a machine that has one. `versions` are the IP versions that the kernel of the host speaks."""

    def __init__(self, versions: Sequence[int], rate: float, *, udp: bool = False) -> None:
        self._versions = tuple(versions)
        self._rate = rate
        self._udp = udp

    def before(self, device: str) -> list[Step]:
        """Steps for QEMU's namespace while the host's /dev is there: the tap, which is QEMU's descriptor then."""
        return [["tap", device, "tap0", TAP]]

    def steps(self) -> list[Step]:
        """Steps for QEMU's namespace: addresses, rules, the listeners in the order of LISTENERS, packet sockets."""
        steps: list[Step] = [["netlink", netlink.ROUTE, netlink.link_up()]]
        if 6 in self._versions:
            steps.append(["set", "/proc/sys/net/ipv6/conf/tap0/disable_ipv6", b"0"])
        steps.append(["netlink", netlink.ROUTE, netlink.link_up(_TAP_INDEX, _TAP_ADDRESS)])
        for version in self._versions:
            address = netlink.add_address(GATEWAY[version], _TAP_INDEX, _LENGTH[version])
            steps.append(["netlink", netlink.ROUTE, address])
        steps.append(["netlink", netlink.NETFILTER, self._rules()])
        if self._udp:
            steps += packet_steps(self._versions, GATEWAY)
            steps += (["set", f"/proc/sys/net/{_FORWARDING[version]}", b"1"] for version in self._versions)
        return [*steps, *listeners(self._versions, GATEWAY)]

    def _rules(self) -> bytes:
        nat: list[bytes] = []
        allowed: list[bytes] = []
        for version in self._versions:
            for protocol in (UDP, TCP):
                led = netlink.lead_to(GATEWAY[version], _DNS_PORT)
                nat.append(family(version) + by(protocol) + to_port(_DOMAIN) + led)
                allowed.append(family(version) + by(protocol) + to_port(_DNS_PORT) + netlink.accept())
            nat.append(family(version) + by(TCP) + netlink.lead_to(GATEWAY[version], _TCP_PORT))
            allowed.append(family(version) + by(TCP) + to_port(_TCP_PORT) + netlink.accept())
        # Neighbours are found by ARP, which is no IP, and by messages of ICMPv6.
        allowed.append(by(netlink.ICMP6) + netlink.accept())
        refused = [by(TCP) + netlink.reset(), netlink.prohibit()]
        first = [rule for version in self._versions for rule in self._direct(version)]
        first += flood(self._rate, udp=self._udp)
        through = refused
        if self._udp:
            answer = netlink.came_by(NEAR[0])
            first.insert(0, answer + netlink.untracked() + netlink.accept())
            through = [answer + netlink.accept(), *datagrams(self._versions), *refused]
        return netlink.table(
            _TABLE,
            netlink.chain(_TABLE, "first", "filter", netlink.PRIORITY_RAW, first, netlink.HOOK_PREROUTING),
            netlink.chain(_TABLE, "redirection", "nat", netlink.PRIORITY_DSTNAT, nat, netlink.HOOK_PREROUTING),
            netlink.chain(
                _TABLE, "way_in", "filter", netlink.PRIORITY_FILTER, [*allowed, *refused], netlink.HOOK_INPUT
            ),
            netlink.chain(_TABLE, "through", "filter", netlink.PRIORITY_FILTER, through, netlink.HOOK_FORWARD),
        )

    def _direct(self, version: int) -> list[bytes]:
        """The listeners are for what is redirected to them, and for nobody who names them."""
        place = netlink.to(GATEWAY[version])
        return [
            place + by(TCP) + to_port(_DOMAIN) + netlink.accept(),
            place + by(UDP) + to_port(_DOMAIN) + netlink.accept(),
            place + by(TCP) + netlink.drop(),
            place + by(UDP) + netlink.drop(),
        ]


def inside(versions: Sequence[int]) -> list[Step]:
    """Steps for the machine itself, if it has a network."""
    steps = [*closed(), ["netlink", netlink.ROUTE, netlink.link_up(_GUEST_INDEX)]]
    for version in versions:
        address = netlink.add_address(GUEST[version], _GUEST_INDEX, _LENGTH[version])
        steps.append(["netlink", netlink.ROUTE, address])
        steps.append(["netlink", netlink.ROUTE, netlink.add_gateway(GATEWAY[version], _GUEST_INDEX)])
    return steps


def resolv_conf() -> bytes:
    return f"nameserver {GATEWAY[4]}\n".encode()
