"""What the two fuzzers of the front share: a client that sends a case, and a server behind the gate."""

from __future__ import annotations

import asyncio
import random
from contextlib import ExitStack
from ipaddress import ip_address
from typing import Any, Self

from belljar.net.addresses import Endpoint
from belljar.net.broker.front_host import Front
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.http_host import Web
from belljar.net.network import Network, NetworkLimits
from belljar.net.policy import Conn
from tests.fuzz.driver import Target
from tests.net.servers import HttpServer, Request, Response


class Client:
    """Sends a case in pieces of odd sizes, then is silent."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._rng = random.Random(len(data))
        self.heard = bytearray()

    async def read(self, *, timeout: float | None = None) -> bytes:
        size = self._rng.choice((1, 7, 100, 5000, 1 << 20))
        piece, self._data = self._data[:size], self._data[size:]
        await asyncio.sleep(0)
        return piece

    async def write(self, data: bytes, timeout: float | None = None) -> None:
        self.heard += data

    def write_eof(self) -> None: ...
    def close(self) -> None: ...


class FrontTarget(Target):
    """A front for `a.test` on a loop of its own, with middleware that sees every request."""

    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._server = self._stack.enter_context(HttpServer({"/": self._answer, "/x": b"y" * 5000}))
        self._loop = asyncio.new_event_loop()
        limits = NetworkLimits(requests_per_second=1e9, idle_seconds=2, connect_seconds=1)

        def policy(conn: Conn) -> Any:
            return http.accept(lambda request: None) if (http := conn.match_http()) else None

        network = Network.policy(policy, limits=limits)
        self.gate = Gate(network)
        self.paths: list[str] = []
        self._loop.run_until_complete(self._start())
        return self

    async def _start(self) -> None:
        self._web = Web(self.gate)

    def _answer(self, request: Request) -> Response:
        return Response(200, b"ok " + request.body[:100])

    def close(self) -> None:
        self._loop.run_until_complete(self._web.close())
        self._loop.run_until_complete(asyncio.sleep(0.05))
        self._loop.close()
        self._stack.close()

    def front(self) -> Front:
        dst = Endpoint(ip_address("127.0.0.1"), self._server.port)
        return Front(self._web, dst, "http", ("a.test",))

    def host(self) -> bytes:
        return b"a.test:%d" % self._server.port

    def serve(self, work: Any) -> None:
        async def bounded() -> None:
            async with asyncio.timeout(15):
                await work

        self._loop.run_until_complete(bounded())

    def check(self) -> None:
        assert (self.gate.memory.used, self.gate._open) == (0, 0)
        for request in self._server.requests:
            host = request.header("host")
            assert host == self.host().decode(), f"a request for {host} arrived"
        self._server.requests.clear()
