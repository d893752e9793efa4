"""Rules for a network namespace, written to the kernel directly: every TCP connection and DNS question is redirected.

It is what `nft` and `ip` would be told, without these being there:

    ip address add 10.0.2.15/32 dev lo; ip route add default dev lo src 10.0.2.15
    nft add rule inet belljar out udp dport 53 redirect to :DNS
    nft add rule inet belljar out tcp dport 53 redirect to :DNS_TCP
    nft add rule inet belljar out meta l4proto tcp redirect to :TCP
"""

from __future__ import annotations

import os
import socket
import struct

GUEST = "10.0.2.15"
_REQUEST, _ACK, _CREATE, _APPEND = 1, 4, 0x400, 0x800
_NESTED = 0x8000
_NFTABLES = 10
_NEWTABLE, _NEWCHAIN, _NEWRULE = 0, 3, 6
_BATCH_BEGIN, _BATCH_END = 0x10, 0x11
_INET = 1
_RTM_NEWADDR, _RTM_NEWROUTE = 20, 24


def attribute(kind: int, data: bytes) -> bytes:
    size = 4 + len(data)
    return struct.pack("=HH", size, kind) + data + bytes(-size % 4)


def nested(kind: int, *parts: bytes) -> bytes:
    return attribute(kind | _NESTED, b"".join(parts))


def number(kind: int, value: int) -> bytes:
    return attribute(kind, struct.pack("!i", value))


def text(kind: int, value: str) -> bytes:
    return attribute(kind, value.encode() + b"\0")


def message(kind: int, flags: int, body: bytes) -> bytes:
    return struct.pack("=IHHII", 16 + len(body), kind, _REQUEST | flags, 1, 0) + body


def talk(protocol: int, *messages: bytes) -> None:
    """Send them; OSError if the kernel refuses one."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, protocol) as kernel:
        kernel.bind((0, 0))
        kernel.settimeout(10)
        kernel.send(b"".join(messages))
        waiting = sum(struct.unpack_from("=H", part, 6)[0] & _ACK != 0 for part in messages)
        while waiting:
            data = kernel.recv(65536)
            while data:
                size, kind = struct.unpack_from("=IH", data)
                if kind == 2:  # an acknowledgement, or an error
                    error = struct.unpack_from("=i", data, 16)[0]
                    if error:
                        raise OSError(-error, f"the kernel refused: {os.strerror(-error)}")
                    waiting -= 1
                data = data[(size + 3) & ~3 :]


def expression(name: str, *parts: bytes) -> bytes:
    return nested(1, text(1, name), nested(2, *parts))


def equals(value: bytes) -> bytes:
    return expression("cmp", number(1, 1), number(2, 0), nested(3, attribute(1, value)))


def redirected(protocol: int, port: int | None, to: int) -> bytes:
    """A rule: what goes by this protocol (to this port, if there is one) comes to us."""
    parts = [expression("meta", number(1, 1), number(2, 16)), equals(bytes([protocol]))]
    if port is not None:
        parts += [
            expression("payload", number(1, 1), number(2, 2), number(3, 2), number(4, 2)),
            equals(struct.pack("!H", port)),
        ]
    parts += [
        expression("immediate", number(1, 1), nested(2, attribute(1, struct.pack("!H", to)))),
        expression("redir", number(1, 1)),
    ]
    return nft(_NEWRULE, text(1, "belljar"), text(2, "out"), nested(4, *parts), flags=_APPEND)


def nft(kind: int, *parts: bytes, flags: int = 0) -> bytes:
    return message(_NFTABLES << 8 | kind, _CREATE | _ACK | flags, struct.pack("!BBH", _INET, 0, 0) + b"".join(parts))


def batch(kind: int) -> bytes:
    return message(kind, 0, struct.pack("!BBH", 0, 0, _NFTABLES))


def redirect(tcp: int, dns: int, dns_tcp: int) -> None:
    """Set it all up in this namespace. OSError where the kernel has no such thing."""
    address = socket.inet_aton(GUEST)
    index = socket.if_nametoindex("lo")
    talk(
        0,
        message(
            _RTM_NEWADDR,
            _CREATE | _ACK,
            struct.pack("=BBBBI", socket.AF_INET, 32, 0, 0, index) + attribute(1, address) + attribute(2, address),
        ),
        *(
            message(
                _RTM_NEWROUTE,
                _CREATE | _ACK,
                struct.pack("=BBBBBBBBI", family, 0, 0, 0, 254, 3, 0, 1, 0)
                + attribute(4, struct.pack("=I", index))
                + attribute(7, source),
            )
            for family, source in (
                (socket.AF_INET, address),
                (socket.AF_INET6, socket.inet_pton(socket.AF_INET6, "::1")),
            )
        ),
    )
    talk(
        12,
        batch(_BATCH_BEGIN),
        nft(_NEWTABLE, text(1, "belljar")),
        nft(
            _NEWCHAIN,
            text(1, "belljar"),
            text(3, "out"),
            nested(4, number(1, 3), number(2, -100)),
            text(7, "nat"),
        ),
        redirected(socket.IPPROTO_UDP, 53, dns),
        redirected(socket.IPPROTO_TCP, 53, dns_tcp),
        redirected(socket.IPPROTO_TCP, None, tcp),
        batch(_BATCH_END),
    )
