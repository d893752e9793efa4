"""UDP as a packet socket sees it: IP packets of a sandbox in, datagrams out, and the packets that answer them.

A frame is what such a socket reads and writes: an Ethernet header and an IP packet. All of it may be a guest's: what is
not plainly one whole datagram is nothing.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.net.addresses import Address, Endpoint

FRAME_MAX: Final = 14 + 40 + 0xFFFF
_ETHERNET: Final = 14
_ETHER_TYPE: Final = {4: b"\x08\x00", 6: b"\x86\xdd"}
_V4: Final = struct.Struct("!BBHHHBBH4s4s")
_V6: Final = struct.Struct("!IHBB16s16s")
_UDP_HEADER: Final = struct.Struct("!HHHH")
_ICMP, _UDP, _ICMP6 = 1, 17, 58
_TTL: Final = 64
_FRAGMENT: Final = 0x3FFF
"""The bit for more fragments, and the offset."""
_SIZE_MAX: Final = 0xFFFF
_QUOTED: Final = {4: 28, 6: 48}
"""Bytes of a packet that an ICMP message quotes: the headers, by which its sender finds the socket."""
_PROHIBITED: Final = {4: b"\x03\x0d", 6: b"\x01\x01"}
"""ICMP's type and code of "communication administratively prohibited"."""


@dataclass(frozen=True, slots=True)
class Datagram:
    src: Endpoint
    dst: Endpoint
    payload: bytes


def parse_frame(frame: bytes) -> Datagram | None:
    """The datagram of a frame; None if it is anything else. Checksums are not looked at: between two devices of one
    kernel nobody computes them.
    """
    packet = frame[_ETHERNET:]
    if not packet:
        return None
    found = _parse_v4(packet) if packet[0] >> 4 == 4 else _parse_v6(packet) if packet[0] >> 4 == 6 else None
    if found is None or len(found[2]) < _UDP_HEADER.size:
        return None
    src, dst, body = found
    src_port, dst_port, size, _ = _UDP_HEADER.unpack_from(body)
    if not _UDP_HEADER.size <= size <= len(body) or src_port == 0 or dst_port == 0:
        return None
    return Datagram(Endpoint(src, src_port), Endpoint(dst, dst_port), body[_UDP_HEADER.size : size])


def _parse_v4(packet: bytes) -> tuple[Address, Address, bytes] | None:
    if len(packet) < _V4.size:
        return None
    first, _, size, _, fragment, _, protocol, _, src, dst = _V4.unpack_from(packet)
    head = (first & 15) * 4
    if protocol != _UDP or fragment & _FRAGMENT or not _V4.size <= head <= size <= len(packet):
        return None
    return IPv4Address(src), IPv4Address(dst), packet[head:size]


def _parse_v6(packet: bytes) -> tuple[Address, Address, bytes] | None:
    if len(packet) < _V6.size:
        return None
    _, size, protocol, _, src, dst = _V6.unpack_from(packet)
    if protocol != _UDP or size > len(packet) - _V6.size:
        return None
    return IPv6Address(src), IPv6Address(dst), packet[_V6.size : _V6.size + size]


def build_frame(link: bytes, src: Endpoint, dst: Endpoint, payload: bytes) -> bytes | None:
    """The frame of a datagram, for a device of this link-layer address; None if it is too long for one."""
    size = _UDP_HEADER.size + len(payload)
    if size + (_V4.size if src.address.version == 4 else 0) > _SIZE_MAX:
        return None
    head = _UDP_HEADER.pack(src.port, dst.port, size, 0)
    summed = _checksum(_pseudo(src.address, dst.address, _UDP, size) + head + payload)
    return _wrap(link, src.address, dst.address, _UDP, head[:6] + summed + payload)


def build_refusal(link: bytes, src: Endpoint, dst: Endpoint, payload: bytes) -> bytes | None:
    """The frame that tells a datagram's sender that it was refused, as from where it was sent to."""
    sent = build_frame(link, src, dst, payload)
    if sent is None:
        return None
    version = src.address.version
    quoted = sent[_ETHERNET:][: _QUOTED[version]]
    protocol, kind = (_ICMP if version == 4 else _ICMP6), _PROHIBITED[version]
    body = bytes(4) + quoted
    pseudo = b"" if version == 4 else _pseudo(dst.address, src.address, protocol, len(kind) + 2 + len(body))
    return _wrap(link, dst.address, src.address, protocol, kind + _checksum(pseudo + kind + bytes(2) + body) + body)


def _wrap(link: bytes, src: Address, dst: Address, protocol: int, body: bytes) -> bytes:
    link += bytes(6) + _ETHER_TYPE[src.version]
    if src.version == 6:
        return link + _V6.pack(6 << 28, len(body), protocol, _TTL, src.packed, dst.packed) + body
    head = _V4.pack(0x45, 0, _V4.size + len(body), 0, 0, _TTL, protocol, 0, src.packed, dst.packed)
    return link + head[:10] + _checksum(head) + head[12:] + body


def _pseudo(src: Address, dst: Address, protocol: int, size: int) -> bytes:
    return src.packed + dst.packed + struct.pack("!II", size, protocol)


def _checksum(data: bytes) -> bytes:
    """The Internet's checksum, whose sum of 16-bit words with carries is a remainder by 0xFFFF. Never zero, which says
    that there is none."""
    return (0xFFFF - int.from_bytes(data + bytes(len(data) % 2)) % 0xFFFF).to_bytes(2)
