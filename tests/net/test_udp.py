"""The relay of datagrams: packets come by a socket pair, as from a namespace, and go to servers on loopback."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
from collections.abc import Callable, Coroutine
from ipaddress import IPv4Address
from typing import Any

import pytest

from belljar.net.addresses import Endpoint
from belljar.net.broker import udp_host
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.udp_host import Packets, UdpRelay
from belljar.net.network import Network, NetworkLimits
from belljar.net.packets import FRAME_MAX, Datagram, build_frame, parse_frame
from belljar.net.policy import Conn
from tests.net.servers import UdpEcho

GUEST = IPv4Address("10.0.2.15")
LINK = bytes(6)
Work = Callable[["Namespace"], Coroutine[Any, Any, None]]


class Namespace:
    """The sandbox's end."""

    def __init__(self, gate: Gate, ours: socket.socket) -> None:
        self.gate = gate
        self._socket = ours
        self.events: list[dict[str, Any]] = []

    def send(self, dst: str, port: int, data: bytes, *, src: IPv4Address = GUEST, src_port: int = 40000) -> None:
        frame = build_frame(LINK, Endpoint(src, src_port), Endpoint(IPv4Address(dst), port), data)
        assert frame is not None
        self.send_frame(frame)

    def send_frame(self, frame: bytes) -> None:
        self._socket.send(frame)

    async def frame(self) -> bytes:
        async with asyncio.timeout(60):
            return await asyncio.get_running_loop().sock_recv(self._socket, FRAME_MAX)

    async def answer(self) -> Datagram:
        found = parse_frame(await self.frame())
        assert found is not None
        return found

    async def silence(self) -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.3):
                await self.frame()


def relayed(network: Network, work: Work, **options: Any) -> Gate:
    async def main() -> Gate:
        events: list[dict[str, Any]] = []
        gate = Gate(network, emit=events.append, **options)
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
        ours.setblocking(False)
        relay = UdpRelay(gate, Packets([theirs], [GUEST], LINK))
        relay.start()
        inside = Namespace(gate, ours)
        inside.events = events
        try:
            await work(inside)
        finally:
            await relay.close()
            ours.close()
        assert gate.descriptors.held == 0
        return gate

    return asyncio.run(main())


def to_ports(*ports: int, **options: Any) -> tuple[Network, list[str]]:
    asked: list[str] = []

    def policy(conn: Conn) -> Any:
        asked.append(repr(conn))
        return conn.accept() if conn.match_udp() and conn.dst.port in ports else None

    return Network.policy(policy, **options), asked


def test_a_flow_is_judged_once_and_carried_both_ways() -> None:
    with UdpEcho() as server:
        network, asked = to_ports(server.port)

        async def work(inside: Namespace) -> None:
            for number in range(20):
                inside.send("240.0.0.1", server.port, f"number {number}".encode())
            for number in range(20):
                answer = await inside.answer()
                assert answer.payload == f"NUMBER {number}".encode()
                assert (str(answer.src), str(answer.dst)) == (f"240.0.0.1:{server.port}", "10.0.2.15:40000")

        gate = relayed(network, work)
        assert asked == [f"<Conn udp 127.0.0.1:{server.port}>"]
        assert gate.traffic.connections == 1
        assert gate.traffic.bytes_out == gate.traffic.bytes_in == sum(len(data) for data in server.received)


def test_each_socket_and_each_place_is_a_flow() -> None:
    with UdpEcho() as first, UdpEcho() as second:
        network, asked = to_ports(first.port, second.port)

        async def work(inside: Namespace) -> None:
            places = [(port, source) for port in (first.port, second.port) for source in (40000, 40001)]
            for port, source in places:
                inside.send("240.0.0.1", port, b"x", src_port=source)
            answers = [await inside.answer() for _ in places]
            assert {(answer.src.port, answer.dst.port) for answer in answers} == set(places)

        relayed(network, work)
        assert len(asked) == 4


def test_what_is_denied_is_refused_and_asked_about_once_a_second() -> None:
    now = [1000.0]
    with UdpEcho() as server:
        network, asked = to_ports()

        async def work(inside: Namespace) -> None:
            for _ in range(5):
                inside.send("240.0.0.1", server.port, b"secret")
                refusal = await inside.frame()
                assert refusal[14 + 9] == 1
                assert refusal[14 + 20 : 14 + 22] == b"\x03\x0d"
            assert len(asked) == 1
            now[0] += 1.1
            inside.send("240.0.0.1", server.port, b"secret")
            await inside.frame()
            assert len(asked) == 2

        gate = relayed(network, work, clock=lambda: now[0])
        assert server.received == []
        assert (gate.traffic.denied, gate.traffic.connections, gate.traffic.bytes_out) == (2, 0, 0)


def test_web_requests_are_no_datagrams() -> None:
    """A policy that can only mean TCP, and one that fails."""

    def policy(conn: Conn) -> Any:
        if conn.dst.port == 80:
            raise ValueError
        http = conn.match_http()
        return http.accept() if http else None

    async def work(inside: Namespace) -> None:
        for port in (443, 80):
            inside.send("93.184.215.14", port, b"x")
            assert (await inside.frame())[14 + 20] == 3

    relayed(Network.policy(policy), work)


@pytest.mark.parametrize("source", ["127.0.0.1", "8.8.8.8", "10.0.2.14", "0.0.0.0"])
def test_a_forged_source_is_nobody(source: str) -> None:
    with UdpEcho() as server:
        network, asked = to_ports(server.port)

        async def work(inside: Namespace) -> None:
            inside.send("240.0.0.1", server.port, b"x", src=IPv4Address(source))
            await inside.silence()

        relayed(network, work)
        assert (asked, server.received) == ([], [])


@pytest.mark.parametrize("destination", ["127.0.0.1", "127.1.2.3", "10.0.2.15"])
def test_the_sandbox_s_own_addresses_do_not_lead_to_the_owner(destination: str) -> None:
    with UdpEcho() as server:
        network, asked = to_ports(server.port)

        async def work(inside: Namespace) -> None:
            inside.send(destination, server.port, b"x")
            await inside.silence()

        relayed(network, work)
        assert (asked, server.received) == ([], [])


def test_packets_that_make_no_sense_are_lost() -> None:
    with UdpEcho() as server:
        network, asked = to_ports(server.port)
        place = Endpoint(IPv4Address("240.0.0.1"), server.port)
        whole = build_frame(LINK, Endpoint(GUEST, 40000), place, b"x" * 100)
        assert whole is not None
        fragment = whole[:20] + b"\x20\x00" + whole[22:]

        async def work(inside: Namespace) -> None:
            for frame in (b"", b"x", whole[:50], fragment, whole[:14] + bytes(100), b"\xff" * FRAME_MAX):
                inside.send_frame(frame)
            await inside.silence()
            assert asked == []
            inside.send_frame(whole)
            assert (await inside.answer()).payload == b"X" * 100

        relayed(network, work)
        assert len(server.received) == 1


def test_a_flood_of_flows_is_bounded() -> None:
    """More places than the limits allow: sockets, tasks and decisions stay few, and the next flow is served."""
    with UdpEcho() as server:
        limits = NetworkLimits(connections=20, requests_per_second=100)
        network, asked = to_ports(server.port, limits=limits)
        most = [0, 0]
        began = time.monotonic()

        async def work(inside: Namespace) -> None:
            for number in range(5000):
                inside.send(f"240.1.{number >> 8}.{number & 255}", server.port, b"x")
                if number % 50 == 0:
                    await asyncio.sleep(0)
                    most[0] = max(most[0], inside.gate.descriptors.held)
                    most[1] = max(most[1], len(asyncio.all_tasks()))
            await asyncio.sleep(1.5)
            while True:
                inside.send("240.0.0.1", server.port, b"last")
                try:
                    async with asyncio.timeout(1):
                        while (found := parse_frame(await inside.frame())) is None or found.payload != b"LAST":
                            pass
                    break
                except TimeoutError:
                    continue

        relayed(network, work)
        assert most[0] <= 20
        assert most[1] <= 1000
        assert len(asked) <= 100 * (4 + time.monotonic() - began)  # four seconds' worth at once


def test_the_flow_that_was_used_longest_ago_makes_room() -> None:
    with UdpEcho() as server:
        network, asked = to_ports(server.port, limits=NetworkLimits(connections=4))  # two of them flows

        async def work(inside: Namespace) -> None:
            for source in (40000, 40001, 40000, 40002, 40000):
                inside.send("240.0.0.1", server.port, b"x", src_port=source)
                await inside.answer()
            assert len(asked) == 3

        relayed(network, work)


def test_a_flow_that_is_idle_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(udp_host, "_IDLE_SECONDS", 0.3)
    now = [1000.0]
    with UdpEcho() as server:
        network, asked = to_ports(server.port)

        async def work(inside: Namespace) -> None:
            for _ in range(4):  # longer than that, but never idle
                inside.send("240.0.0.1", server.port, b"x")
                await inside.answer()
                now[0] += 0.15
            assert len(asked) == 1
            now[0] += 0.6
            async with asyncio.timeout(60):
                while inside.gate.descriptors.held:
                    await asyncio.sleep(0.01)
            await inside.gate.record.written()
            assert inside.events[-1] == {
                "action": "outcome",
                "of": "connection",
                "target": f"udp 127.0.0.1:{server.port}",
                "result": "ok",
            }
            assert (inside.events[-2]["sent"], inside.events[-2]["received"]) == (4, 4)
            inside.send("240.0.0.1", server.port, b"x")
            await inside.answer()
            assert len(asked) == 2

        relayed(network, work, clock=lambda: now[0])


def test_a_sandbox_that_has_sent_its_bytes_is_refused() -> None:
    with UdpEcho() as server:
        network, _ = to_ports(server.port, limits=NetworkLimits(bytes_out=250))

        async def work(inside: Namespace) -> None:
            for _ in range(2):
                inside.send("240.0.0.1", server.port, b"x" * 100)
                assert len((await inside.answer()).payload) == 100
            inside.send("240.0.0.1", server.port, b"x" * 100)
            assert (await inside.frame())[14 + 9] == 1

        relayed(network, work)
        assert len(server.received) == 2


def test_datagrams_that_wait_for_a_decision_are_bounded() -> None:
    with UdpEcho() as server:
        decided = threading.Event()

        def policy(conn: Conn) -> Any:
            decided.wait(20)
            return conn.accept()

        async def work(inside: Namespace) -> None:
            for number in range(200):
                inside.send("240.0.0.1", server.port, b"%d" % number)
                await asyncio.sleep(0)
            decided.set()
            await inside.answer()
            await asyncio.sleep(0.5)

        relayed(Network.policy(policy), work)
        assert server.received[0] == b"0"
        assert len(server.received) <= 64
