"""UDP of a sandbox that runs real programs: packets from its namespace, judged flow by flow, carried by our sockets.

A flow is what one socket inside sends to one place, with the answers from there. It begins with a datagram, waits for
the gate's decision, and ends when nothing has passed for a while or others need its place.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final, TypeAlias

from belljar.net.addresses import Address, Endpoint, canonical, meant
from belljar.net.broker.connect_host import pump_datagrams
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.stream_host import Datagrams, Meter
from belljar.net.errors import NetError
from belljar.net.packets import FRAME_MAX, Datagram, build_frame, build_refusal, parse_frame
from belljar.net.policy import AcceptRaw
from belljar.net.rate import Rate

_IDLE_SECONDS: Final = 60.0
_REFUSED_SECONDS: Final = 1.0
"""How long a flow that was refused stays so, without another decision."""
_REFUSED_MAX: Final = 1024
_WAITING_MAX: Final = 64
_WAITING_BYTES: Final = 128 << 10
"""Datagrams, and their bytes, that wait for a decision or for their turn; what is more is lost."""
_SLACK: Final = 2
"""New flows beyond twice the gate's rate are lost, and it need not hear of them."""
_AT_ONCE: Final = 64
"""Packets that are read before others have their turn."""
_SOL_PACKET, _PACKET_FANOUT = 263, 18
_WHOLE: Final = 0x80000004
"""A group of one socket, with PACKET_FANOUT_FLAG_DEFRAG: the kernel puts fragments of IPv4 together."""

Key: TypeAlias = tuple[Endpoint, Endpoint]


@dataclass(frozen=True, slots=True)
class Packets:
    """Where the packets of a sandbox are had from."""

    sockets: Sequence[socket.socket]
    """Of AF_PACKET and SOCK_RAW: one for each IP version."""
    guests: Sequence[Address]
    """The sandbox's own addresses."""
    link: bytes
    """The link-layer address that takes answers."""


class UdpRelay:
    """All flows of one sandbox. Used on the broker's loop only."""

    def __init__(self, gate: Gate, packets: Packets) -> None:
        self._gate = gate
        self._packets = packets
        self._guests = frozenset(packets.guests)
        self._flows: OrderedDict[Key, _Flow] = OrderedDict()
        self._flows_max = max(1, gate.limits.connections // 2)  # the rest is for TCP
        self._refused: OrderedDict[Key, float] = OrderedDict()
        self._tasks: set[asyncio.Task[None]] = set()
        self._rate = Rate(gate.limits.requests_per_second * _SLACK, gate.clock())
        self._buffer = bytearray(FRAME_MAX)

    def start(self) -> None:
        """Take every packet, from now on."""
        for packets in self._packets.sockets:
            packets.setblocking(False)
            with suppress(OSError):  # this can't be had for IPv6: its fragments are lost
                packets.setsockopt(_SOL_PACKET, _PACKET_FANOUT, struct.pack("=I", _WHOLE))
            asyncio.get_running_loop().add_reader(packets, self._read, packets)

    async def close(self) -> None:
        """Idempotent."""
        for packets in self._packets.sockets:
            if packets.fileno() >= 0:
                asyncio.get_running_loop().remove_reader(packets)
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for packets in self._packets.sockets:
            packets.close()

    def _read(self, packets: socket.socket) -> None:
        for _ in range(_AT_ONCE):
            try:
                size = packets.recv_into(self._buffer)
            except OSError:
                return  # no more, or the device is gone, and with it the sandbox
            datagram = parse_frame(bytes(memoryview(self._buffer)[:size]))
            if datagram is not None and datagram.src.address in self._guests and not self._is_own(datagram.dst.address):
                self._take(packets, datagram)

    def _is_own(self, address: Address) -> bool:
        """Whether an address is the sandbox's own: a program can send to it by a device of its choice."""
        return address in self._guests or address.is_loopback

    def _take(self, packets: socket.socket, datagram: Datagram) -> None:
        key = (datagram.src, datagram.dst)
        flow = self._flows.get(key)
        if flow is None:
            now = self._gate.clock()
            if now < self._refused.get(key, 0.0):
                self._refuse(packets, datagram)
                return
            if not self._rate.take(now):
                return
            while len(self._flows) >= self._flows_max:
                _, oldest = self._flows.popitem(last=False)
                oldest.end()
            flow = self._flows[key] = _Flow(self._gate, packets, self._packets.link, key)
            task = asyncio.get_running_loop().create_task(self._carry(flow, datagram))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        else:
            self._flows.move_to_end(key)
        flow.put(datagram.payload)

    async def _carry(self, flow: _Flow, first: Datagram) -> None:
        try:
            await flow.carry()
        except NetError:
            self._refused[flow.key] = self._gate.clock() + _REFUSED_SECONDS
            if len(self._refused) > _REFUSED_MAX:
                self._refused.popitem(last=False)
            self._refuse(flow.packets, first)
        finally:
            if self._flows.get(flow.key) is flow:
                del self._flows[flow.key]

    def _refuse(self, packets: socket.socket, datagram: Datagram) -> None:
        """Tell the sender that it is prohibited."""
        _send(packets, build_refusal(self._packets.link, datagram.src, datagram.dst, datagram.payload))


class _Flow:
    """One flow, from the decision to its end."""

    def __init__(self, gate: Gate, packets: socket.socket, link: bytes, key: Key) -> None:
        self.key = key
        self.packets = packets
        self._link = link
        self._gate = gate
        self._src, self._dst = key
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._news = asyncio.Event()
        self._used = gate.clock()
        self._ended = False

    def put(self, payload: bytes) -> None:
        """Have a datagram sent, if there is room."""
        self._used = self._gate.clock()
        if len(self._waiting) < _WAITING_MAX and self._size + len(payload) <= _WAITING_BYTES:
            self._waiting.append(payload)
            self._size += len(payload)
            self._news.set()

    def end(self) -> None:
        """End it as if it were idle."""
        self._ended = True
        self._news.set()

    async def carry(self) -> None:
        """Run it until it is idle. NetError."""
        place = Endpoint(meant(canonical(self._dst.address)), self._dst.port)
        with self._gate.attempt("connection", f"udp {place}"):
            try:
                await self._carry(place)
            except NetError:
                if not self._ended:
                    raise

    async def _carry(self, dst: Endpoint) -> None:
        gate = self._gate
        reached = await gate.reach("udp", dst.ip, dst.port)
        if not isinstance(reached[0].accepted, AcceptRaw):
            raise NetError("denied", f"{dst} is not open to datagrams")
        datagrams, _ = await gate.open("udp", reached, gate.limits.connect_seconds)
        assert isinstance(datagrams, Datagrams)
        meter = Meter()
        try:
            await pump_datagrams(gate, self, datagrams, meter)
        finally:
            datagrams.close()
            event = {"action": "closed", "ip": dst.ip, "port": dst.port}
            gate.tell(event | {"sent": meter.sent, "received": meter.received})

    async def pieces(self) -> AsyncIterator[bytes]:
        """Yield the guest's datagrams. NetError when the flow is idle."""
        while True:
            while self._waiting:
                piece = self._waiting.popleft()
                self._size -= len(piece)
                yield piece
            left = self._used + _IDLE_SECONDS - self._gate.clock()
            if self._ended or left <= 0:
                self._ended = True
                raise NetError("timeout", "nothing was sent or received")
            self._news.clear()
            with suppress(TimeoutError):
                async with asyncio.timeout(left):
                    await self._news.wait()

    def write_datagram(self, data: bytes) -> None:
        """Send an answer to the guest, or lose it."""
        self._used = self._gate.clock()
        _send(self.packets, build_frame(self._link, self._dst, self._src, data))


def _send(packets: socket.socket, frame: bytes | None) -> None:
    if frame is not None:
        with suppress(OSError):  # too much at once: lost, as networks do
            packets.send(frame)
