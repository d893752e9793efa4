"""A worker that says anything to the broker: frames of every kind, in any order, for streams that are there or not."""

from __future__ import annotations

import random
import socket
import time
from collections.abc import Hashable
from contextlib import ExitStack, suppress
from typing import Any, Self

from belljar.abi.wire import WireError
from belljar.net.broker.broker_host import attach
from belljar.net.network import Network, NetworkLimits
from belljar.net.wire import (
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
from tests.fuzz.driver import Target
from tests.fuzz.targets._frames import split_frames
from tests.net.lying_worker import LyingWorker, fetch
from tests.net.servers import HttpServer, bodies

_NAMES = ["a.test", "b.test", "", ".", "x" * 300, "a b", "127.1", "\0", "*.test", "xn--a", "[::1]", "localhost"]
_KINDS = ["A", "AAAA", "MX", "", "ANY", "a"]
_NUMBERS = [0, 1, -1, 1 << 20, 1 << 31, 1 << 40, 65535]
_SECONDS = [0.0, 0.01, 1.0, -1.0, 1e9]
_WAIT = 0.02
"""Seconds of silence after which a case is over."""


class Broker(Target):
    def __init__(self) -> None:
        self._stack = ExitStack()
        self._port = 9

    def __enter__(self) -> Self:
        routes: dict[str, Any] = {
            "/": b"hello",
            "/echo": bodies.echo,
            "/away": bodies.redirect("/"),
            "/gzip": bodies.gzipped(b"x" * 99),
        }
        self._server = self._stack.enter_context(HttpServer(routes))
        self._other = self._stack.enter_context(HttpServer({"/": b"the neighbour's"}))
        self._port = self._server.port
        limits = NetworkLimits(requests_per_second=1e9, dns_per_second=1e9, connect_seconds=1, idle_seconds=2)
        hosts = {"a.test": "127.0.0.1", "b.test": ["127.0.0.1", "::1"]}
        network = Network.allow(f"127.0.0.1:{self._port}", f"*.test:{self._port}", hosts=hosts, limits=limits)
        self._worker = self._stack.enter_context(LyingWorker(network))
        self._neighbour = self._stack.enter_context(LyingWorker(Network.allow(self._other.authority, limits=limits)))
        self._asked = 0
        return self

    def close(self) -> None:
        self._stack.close()

    def piece(self, rng: random.Random) -> bytes:
        number = rng.choice((1, 1, 1, 2, 3, rng.randrange(1 << 20), -1))
        name, port = rng.choice(_NAMES + ["127.0.0.1"] * 6), rng.choice((self._port, self._port, 9, 0, -1, 70000))
        path = rng.choice(("/", "/", "/echo", "/away", "/gzip", "/?" + "q" * 999, "/../x", "/%", "//"))
        url = rng.choice(
            (f"http://127.0.0.1:{port}{path}", f"http://{name}:{port}{path}", f"https://{name}/", "x:", "")
        )
        fields = rng.choices(
            [(b"a", b"b"), (b"host", b"x"), (b"content-length", b"5"), (b"transfer-encoding", b"chunked"),
             (b"upgrade", b"websocket"), (b"", b""), (b"a\n", b"\r\n"), (b"range", b"bytes=0-"),
             (b"x" * 999, b"y" * 999)],
            k=rng.choice((0, 0, 1, 2, 50)),
        )  # fmt: skip
        seconds = rng.choice(_SECONDS[:3] * 4 + _SECONDS)
        frames: list[GuestFrame] = [
            Resolve(number, name, rng.choice(_KINDS)),
            Dial(number, rng.choice(("tcp", "tcp", "udp", "sctp")), name, port, seconds, rng.random() < 0.5),
            Fetch(number, rng.choice(("GET", "POST", "HEAD", "get", "")), url, fields, rng.random() < 0.4,
                  rng.choice((0, 0, 3, -1)), seconds, seconds, rng.choice(("", "1.1", "2", "3"))),
            Secure(number, name, ["h2", "", "x" * 300][: rng.randrange(4)]),
            Data(number, rng.choice((b"x", b"GET / HTTP/1.1\r\nHost: a.test\r\n\r\n", bytes(5000), b""))),
            Grant(number, rng.choice(_NUMBERS)),
            End(number),
            Drop(number),
        ]  # fmt: skip
        return encode(rng.choice([*frames, frames[1], frames[2], frames[2], frames[4], frames[4]]))

    def split(self, data: bytes) -> list[bytes]:
        return split_frames(data)

    def run(self, data: bytes) -> Hashable:
        line = attach(self._worker.gate)
        line.settimeout(_WAIT)
        heard = broker_frames()
        seen: set[str] = set()
        with line, suppress(ConnectionResetError, BrokenPipeError):
            with suppress(TimeoutError):
                line.sendall(data)
            line.shutdown(socket.SHUT_WR) if len(data) % 2 else None
            while True:
                try:
                    said = line.recv(1 << 16)
                except TimeoutError:
                    break
                if not said:
                    seen.add("cut off")
                    break
                try:
                    for frame in heard.feed(said):
                        seen.add(
                            f"{frame.kind} {frame.text[:12]}" if isinstance(frame, Failed) else type(frame).__name__
                        )
                        assert not isinstance(frame, Data) or b"neighbour" not in frame.data
                except WireError as error:
                    raise AssertionError("the broker broke its own protocol") from error
        return frozenset(seen)

    def check(self) -> None:
        gate = self._worker.gate
        self._asked += 1
        url = f"{self._other.url}/"
        assert isinstance(self._neighbour.answer(fetch(self._asked, url)), Opened)
        data = self._neighbour.next()
        assert isinstance(data, Data)
        assert data.data == b"the neighbour's"
        assert isinstance(self._neighbour.next(), End)
        attach(gate).close()
        deadline = time.monotonic() + 15
        while (gate.memory.used or gate._open) and time.monotonic() < deadline:
            time.sleep(0.01)
        assert (gate.memory.used, gate._open) == (0, 0)
        assert gate.descriptors.held <= 40
        for worker in (self._worker, self._neighbour):
            assert "internal" not in str(worker.events)
            worker.events.clear()
        for server in (self._server, self._other):
            server.requests.clear()


def target() -> Target:
    return Broker()
