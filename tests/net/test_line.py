"""The broker's end of a sandbox's socket, met by a worker that lies."""

from __future__ import annotations

import socket
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

import pytest

from belljar.net.broker.broker_host import attach
from belljar.net.broker.gate_host import Gate
from belljar.net.network import Network, NetworkLimits
from belljar.net.policy import Conn
from belljar.net.wire import (
    WINDOW,
    BrokerFrame,
    Data,
    Dial,
    Drop,
    End,
    Failed,
    Fetch,
    Grant,
    GuestFrame,
    Opened,
    Resolve,
    Secure,
    broker_frames,
    encode,
)
from tests.net.servers import HttpServer, Listener, bodies


class Guest:
    """A worker's end, played by the test."""

    def __init__(self, network: Network) -> None:
        self.events: list[dict[str, Any]] = []
        self.gate = Gate(network, sandbox="test", emit=self.events.append)
        self.socket = attach(self.gate)
        self.socket.settimeout(20)
        self._frames = broker_frames()
        self._arrived: list[BrokerFrame] = []

    def send(self, *messages: GuestFrame) -> None:
        for message in messages:
            self.socket.sendall(encode(message))

    def next(self) -> BrokerFrame | None:
        """The next frame; None when we were cut off."""
        while not self._arrived:
            try:
                data = self.socket.recv(1 << 16)
            except ConnectionResetError:
                return None
            if not data:
                return None
            self._arrived += self._frames.feed(data)
        return self._arrived.pop(0)


@pytest.fixture
def server() -> Iterator[HttpServer]:
    with HttpServer({"/": b"hello", "/endless": bodies.endless, "/echo": bodies.echo}) as server:
        yield server


@pytest.fixture
def guest(server: HttpServer) -> Iterator[Guest]:
    guest = Guest(Network.allow(server.authority))
    yield guest
    guest.socket.close()


def fetch(number: int, server: HttpServer, path: str = "/", *, body: bool = False) -> Fetch:
    return Fetch(number, "POST" if body else "GET", f"http://{server.authority}{path}", [], body, 0, 0.0, 0.0, "")


def test_a_request(guest: Guest, server: HttpServer) -> None:
    guest.send(fetch(1, server))
    opened, data, end = guest.next(), guest.next(), guest.next()
    assert isinstance(opened, Opened)
    assert opened.head.startswith(b"HTTP/1.1 200")
    assert isinstance(data, Data)
    assert data.data == b"hello"
    assert isinstance(end, End)


@pytest.mark.parametrize("name", ["", ".", "a\0b", "x" * 300, "\u0660.1", "*.test", "127.1", "a b", "nobody.test"])
def test_tls_with_whom_it_may_be_fails_in_words(guest: Guest, server: HttpServer, name: str) -> None:
    guest.send(Dial(1, "tcp", "127.0.0.1", server.port, 30.0), Secure(1, name, ["h2", "\0", "x" * 500]))
    assert isinstance(guest.next(), Opened)
    failed = guest.next()
    assert isinstance(failed, Failed)
    assert failed.kind == "tls"


@pytest.mark.parametrize(
    "frame",
    [
        b"\xff\xff\xff\xff",
        b"\x04\x00\x00\x00abcd",
        encode(Dial(1, "tcp", "127.0.0.1", 9, 0.0)) * 2,
        encode(Resolve(1, "x", "A")) + encode(Grant(1, -5)),
        encode(Resolve(1, "x", "A")) + encode(Grant(1, 1 << 40)),
        encode(Resolve(1, "x", "A")) + encode(Data(1, b"")),
        encode(Resolve(1, "x", "A")) + encode(Secure(1, "x", [])),
        encode(Dial(1, "tcp", "127.0.0.1", 9, 0.0)) + encode(Secure(1, "x", [])) * 2,
        encode(Dial(1, "tcp", "127.0.0.1", 9, float("nan"))),
        encode(Dial(1, "tcp", "127.0.0.1", 9, -1.0)),
        encode(Fetch(1, "GET", "http://127.0.0.1/", [], False, 0, float("inf"), 0.0, "")),
        encode(Fetch(1, "GET", "http://127.0.0.1/", [], False, 0, 0.0, float("nan"), "")),
    ],
)
def test_a_worker_that_breaks_the_rules_is_cut_off(guest: Guest, frame: bytes) -> None:
    guest.socket.sendall(frame)
    while guest.next() is not None:
        pass


def test_a_worker_that_asks_and_never_listens_has_to_wait(guest: Guest) -> None:
    """What it is told is not piled up in the owner's memory: it is not heard any more until it reads."""
    guest.socket.settimeout(2)
    sent = number = 0
    with suppress(TimeoutError):
        while sent < 64 << 20:
            questions = b"".join(encode(Resolve(number + more, "x" * 200, "A")) for more in range(2000))
            number += 2000
            guest.socket.sendall(questions)
            sent += len(questions)
    assert sent < 32 << 20
    guest.socket.settimeout(20)
    assert isinstance(guest.next(), Failed)


@pytest.mark.parametrize(
    ("name", "kind"), [("good.test", "AXFR"), ("good.test", "nonsense"), ("a b\n", "A"), ("", "A"), ("x" * 300, "A")]
)
def test_questions_that_are_none_reach_no_policy(name: str, kind: str) -> None:
    asked: list[str] = []

    def policy(conn: Conn) -> None:
        asked.append(repr(conn))
        conn.accept()

    guest = Guest(Network.policy(policy))
    guest.send(Resolve(1, name, kind))
    failed = guest.next()
    assert isinstance(failed, Failed)
    assert failed.kind == "denied"
    assert not asked
    guest.socket.close()


def test_data_beyond_the_window_is_cut_off(guest: Guest, server: HttpServer) -> None:
    class Silent(Listener):
        def serve(self, connection: socket.socket) -> None:
            time.sleep(20)

    with Silent() as silent:
        other = Guest(Network.allow(silent.authority))
        other.send(Dial(1, "tcp", "127.0.0.1", silent.port, 0.0))
        assert isinstance(other.next(), Opened)
        flood = [Data(1, bytes(WINDOW // 4))] * 200
        with pytest.raises(OSError, match=r"."):
            other.send(*flood)
        other.socket.close()


def test_an_endless_body_waits_for_its_reader(guest: Guest, server: HttpServer) -> None:
    guest.send(fetch(1, server, "/endless"))
    assert isinstance(guest.next(), Opened)
    received = 0
    while received < WINDOW:
        data = guest.next()
        assert isinstance(data, Data)
        received += len(data.data)
    assert received == WINDOW
    # It has all it was granted: only another stream is heard now.
    guest.send(fetch(2, server))
    opened = guest.next()
    assert isinstance(opened, Opened)
    assert opened.id == 2
    assert [type(guest.next()) for _ in range(2)] == [Data, End]
    guest.send(Grant(1, 1000))
    more = guest.next()
    assert isinstance(more, Data)
    assert (more.id, len(more.data)) == (1, 1000)
    guest.send(Drop(1), fetch(3, server))
    answer = guest.next()
    assert isinstance(answer, Opened)
    assert answer.id == 3


def test_what_is_not_granted_is_refused(guest: Guest) -> None:
    guest.send(
        Dial(1, "tcp", "127.0.0.1", 9, 0.0), Dial(2, "sctp", "127.0.0.1", 9, 0.0), Dial(3, "tcp", "127.1", 80, 0.0)
    )
    failures = [guest.next() for _ in range(3)]
    assert all(isinstance(failure, Failed) for failure in failures)
    kinds = {failure.id: failure.kind for failure in failures if isinstance(failure, Failed)}
    assert kinds == {1: "denied", 2: "protocol", 3: "denied"}


def test_uploads_are_granted_as_the_server_takes_them(guest: Guest, server: HttpServer) -> None:
    guest.send(fetch(1, server, "/echo", body=True))
    total = 3 * WINDOW
    room, sent = WINDOW, 0
    while sent < total:
        while room <= 0:
            grant = guest.next()
            assert isinstance(grant, Grant)
            room += grant.count
        piece = min(room, 200_000, total - sent)
        guest.send(Data(1, b"x" * piece))
        room, sent = room - piece, sent + piece
    guest.send(End(1))
    while not isinstance(guest.next(), Opened):
        pass
    assert len(server.requests[0].body) == total


def test_the_end_of_the_worker_ends_its_connections() -> None:
    class Held(Listener):
        closed = False

        def serve(self, connection: socket.socket) -> None:
            connection.settimeout(20)
            self.closed = connection.recv(1) == b""

    with Held() as held:
        guest = Guest(Network.allow(held.authority))
        guest.send(Dial(1, "tcp", "127.0.0.1", held.port, 0.0))
        assert isinstance(guest.next(), Opened)
        guest.socket.close()
        deadline = time.monotonic() + 20
        while not held.closed and time.monotonic() < deadline:
            time.sleep(0.01)
        assert held.closed


def test_a_worker_that_asks_again_has_one_line_and_the_same_limits(server: HttpServer) -> None:
    guest = Guest(Network.allow(server.authority, limits=NetworkLimits(bytes_in=120)))
    guest.send(fetch(1, server))
    assert [type(guest.next()) for _ in range(3)] == [Opened, Data, End]
    again = attach(guest.gate)
    assert guest.next() is None
    guest.socket.close()
    guest.socket = again
    again.settimeout(20)
    guest.send(fetch(1, server))
    failed = guest.next()
    assert isinstance(failed, Failed)
    assert failed.kind == "too-large"
    guest.socket.close()
