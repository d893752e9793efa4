"""The packets of a sandbox: whatever bytes come, they are one whole datagram or nothing."""

from __future__ import annotations

import struct
from ipaddress import IPv4Address, IPv6Address

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from belljar.net.addresses import Endpoint
from belljar.net.packets import FRAME_MAX, Datagram, build_frame, build_refusal, parse_frame

LINK = bytes.fromhex("02626a617230")
V4 = (Endpoint(IPv4Address("10.0.2.15"), 40000), Endpoint(IPv4Address("8.8.8.8"), 443))
V6 = (Endpoint(IPv6Address("fd00:6a61:7200::15"), 40000), Endpoint(IPv6Address("2606:4700::1111"), 443))
PORTS = st.integers(1, 65535)
ENDS = st.one_of(
    *(
        st.tuples(st.builds(Endpoint, addresses, PORTS), st.builds(Endpoint, addresses, PORTS))
        for addresses in (st.ip_addresses(v=4), st.ip_addresses(v=6))
    )
)


def frame_of(ends: tuple[Endpoint, Endpoint], payload: bytes) -> bytes:
    frame = build_frame(LINK, *ends, payload)
    assert frame is not None
    return frame


def summed(data: bytes) -> int:
    """The checksum as RFC 1071 has it."""
    words = struct.unpack(f"!{(len(data) + 1) // 2}H", data + bytes(len(data) % 2))
    total: int = sum(words)
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total


def check_sums(frame: bytes, protocol: int) -> None:
    """Every checksum of a packet comes out as its receiver has it."""
    packet = frame[14:]
    if packet[0] >> 4 == 4:
        assert summed(packet[:20]) == 0xFFFF
        body, addresses = packet[20:], packet[12:20]
    else:
        body, addresses = packet[40:], packet[8:40]
    pseudo = b"" if protocol == 1 else addresses + struct.pack("!II", len(body), protocol)
    assert summed(pseudo + body) == 0xFFFF


@given(ENDS, st.binary(max_size=2000))
@example(V4, b"")
@example(V6, b"x" * 65527)
@example(V4, b"x" * 65507)
@example((Endpoint(IPv4Address(0), 0xFFFF), Endpoint(IPv4Address(0), 0xFFDA)), b"")
def test_a_datagram_is_read_as_it_was_written(ends: tuple[Endpoint, Endpoint], payload: bytes) -> None:
    frame = frame_of(ends, payload)
    assert len(frame) <= FRAME_MAX
    assert frame[:6] == LINK
    assert parse_frame(frame) == Datagram(*ends, payload)
    check_sums(frame, 17)


def test_what_is_too_long_is_not_written() -> None:
    assert build_frame(LINK, *V4, bytes(65508)) is None
    assert build_frame(LINK, *V6, bytes(65528)) is None
    assert build_refusal(LINK, *V4, bytes(65508)) is None


@given(ENDS, st.binary(max_size=100))
def test_a_refusal_quotes_what_it_refuses(ends: tuple[Endpoint, Endpoint], payload: bytes) -> None:
    refusal = build_refusal(LINK, *ends, payload)
    assert refusal is not None
    assert parse_frame(refusal) is None
    src, dst = ends
    if src.address.version == 4:
        head, kind, protocol = 20, b"\x03\x0d", 1
        assert refusal[14 + 12 : 14 + 20] == dst.address.packed + src.address.packed
    else:
        head, kind, protocol = 40, b"\x01\x01", 58
        assert refusal[14 + 8 : 14 + 40] == dst.address.packed + src.address.packed
    assert refusal[14 + head :][:2] == kind
    assert refusal[14 + head + 8 :] == frame_of(ends, payload)[14:][: head + 8]
    check_sums(refusal, protocol)


@given(st.binary(max_size=200))
def test_any_bytes(frame: bytes) -> None:
    found = parse_frame(frame)
    assert found is None or found.payload in frame


@given(ENDS, st.binary(max_size=50), st.lists(st.tuples(st.integers(0, 120), st.integers(0, 255)), max_size=4))
def test_changed_bytes(ends: tuple[Endpoint, Endpoint], payload: bytes, changes: list[tuple[int, int]]) -> None:
    frame = bytearray(frame_of(ends, payload))
    for place, value in changes:
        frame[place % len(frame)] = value
    found = parse_frame(bytes(frame))
    assert found is None or (found.payload in bytes(frame) and found.src.port > 0 and found.dst.port > 0)


@given(ENDS, st.binary(max_size=50), st.data())
def test_a_part_is_nothing(ends: tuple[Endpoint, Endpoint], payload: bytes, data: st.DataObject) -> None:
    frame = frame_of(ends, payload)
    assert parse_frame(frame[: data.draw(st.integers(0, len(frame) - 1))]) is None


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (6, b"\x20\x00"),  # more fragments follow
        (6, b"\x00\x01"),  # not the first one
        (9, b"\x06"),  # TCP
        (9, b"\x88"),  # UDP-Lite
        (0, b"\x44"),  # a header of 16 bytes
        (0, b"\x4f"),  # one of 60, more than there are
        (0, b"\x55"),  # no such version
        (2, b"\x00\x10"),  # shorter than its header
        (2, b"\xff\xff"),  # longer than it is
        (20, b"\x00\x00"),  # from no port
        (22, b"\x00\x00"),  # to no port
        (24, b"\x00\x07"),  # shorter than UDP's header
        (24, b"\x00\x0e"),  # longer than the packet
    ],
)
def test_what_is_no_whole_datagram(place: int, value: bytes) -> None:
    frame = bytearray(frame_of(V4, b"hello"))
    frame[14 + place : 14 + place + len(value)] = value
    assert parse_frame(bytes(frame)) is None


@pytest.mark.parametrize(
    ("place", "value"), [(6, b"\x2c"), (6, b"\x00"), (6, b"\x3c"), (4, b"\xff\xff"), (4, b"\x00\x07")]
)
def test_extensions_and_lengths_of_ipv6(place: int, value: bytes) -> None:
    frame = bytearray(frame_of(V6, b"hello"))
    frame[14 + place : 14 + place + len(value)] = value
    assert parse_frame(bytes(frame)) is None


def test_options_of_ipv4_are_skipped_and_padding_is_left_out() -> None:
    frame = frame_of(V4, b"hello")
    head = bytearray(frame[14:34])
    head[0], head[3] = 0x46, head[3] + 4
    assert parse_frame(frame[:14] + bytes(head) + b"\x01" * 4 + frame[34:] + bytes(9)) == Datagram(*V4, b"hello")
