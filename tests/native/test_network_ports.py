"""The owner's connections to servers that run in a native sandbox."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from belljar import AsyncSandbox, Image, PortClosed, Sandbox
from tests.native.boxes import native_sandbox
from tests.native.conftest import needs_native

pytestmark = needs_native

ECHO = """
import socket, sys, threading
family = socket.AF_INET6 if ":" in sys.argv[1] else socket.AF_INET
server = socket.create_server((sys.argv[1], int(sys.argv[2])), family=family, backlog=64)
def serve(connection):
    with connection:
        total = 0
        while data := connection.recv(65536):
            connection.sendall(data)
            total += len(data)
        connection.sendall(b"%d" % total)
while True:
    threading.Thread(target=serve, args=(server.accept()[0],), daemon=True).start()
"""


@pytest.fixture
def sandbox() -> Iterator[Sandbox]:
    with native_sandbox(files={"/workspace/echo.py": ECHO}) as made:
        yield made


def speak(connection: socket.socket, data: bytes) -> bytes:
    """Send it while what comes back is read, to the end."""

    def send() -> None:
        connection.sendall(data)
        connection.shutdown(socket.SHUT_WR)

    sender = threading.Thread(target=send)
    sender.start()
    said = bytearray()
    while piece := connection.recv(1 << 16):
        said += piece
    sender.join()
    return bytes(said)


@pytest.mark.parametrize("address", ["127.0.0.1", "0.0.0.0", "::1", "::"])
def test_bytes_both_ways(sandbox: Sandbox, address: str) -> None:
    with pytest.raises(PortClosed):
        sandbox.port(7000).connect()
    sandbox.spawn(f"python3 echo.py {address} 7000")
    port = sandbox.port(7000).wait()
    data = bytes(range(256)) * 20_000
    with port.connect() as connection:
        assert speak(connection, data) == data + b"%d" % len(data)


def test_web_requests_and_a_listener(sandbox: Sandbox) -> None:
    sandbox.files.write("index.html", "hello from inside")
    server = sandbox.spawn("python3 -m http.server 8000")
    assert sandbox.port(8000).wait().get("/").text == "hello from inside"
    host, port = sandbox.expose(8000)
    for _ in range(3):
        with socket.create_connection((host, port)) as connection:
            connection.sendall(b"GET / HTTP/1.0\r\n\r\n")
            assert speak(connection, b"").endswith(b"hello from inside")
    server.kill()
    server.wait()
    with pytest.raises(PortClosed):
        sandbox.port(8000).get("/")


COUNT = "n=$(ls -d /proc/[0-9]* | wc -l)"


def test_any_port_may_be_bound(sandbox: Sandbox) -> None:
    sandbox.spawn("python3 -m http.server 80")
    assert sandbox.port(80).wait().get("/").status == 200


def test_connections_leave_nothing_behind(sandbox: Sandbox) -> None:
    """Whoever ends first: no process of ours stays for the other."""
    server = sandbox.spawn("exec python3 echo.py 127.0.0.1 7000")
    port = sandbox.port(7000).wait()
    before = int(sandbox.exec(f"{COUNT}; echo $n").stdout)

    def left(limit: int) -> int:
        return int(
            sandbox.exec(
                f"for i in $(seq 200); do {COUNT}; [ $n -le {limit} ] && break; sleep 0.05; done; echo $n"
            ).stdout
        )

    held = [port.connect() for _ in range(30)]
    for number, connection in enumerate(held):
        connection.sendall(b"%d" % number)
    assert [connection.recv(10) for connection in held] == [b"%d" % number for number in range(30)]
    for connection in held:
        connection.close()
    assert left(before) <= before
    # A client that does not read, and a server that dies under it.
    idle = port.connect()
    idle.settimeout(0.5)
    with pytest.raises(TimeoutError):
        idle.sendall(bytes(100_000_000))
    server.kill()
    server.wait()
    assert left(before) <= before
    idle.close()
    assert left(before - 1) <= before - 1


def test_a_server_that_does_not_accept(sandbox: Sandbox) -> None:
    """Its queue is full: it is refused, and the sandbox answers meanwhile."""
    deaf = "import socket, time; s = socket.create_server(('127.0.0.1', 7001), backlog=0); time.sleep(60)"
    sandbox.spawn(["python3", "-c", deaf])
    sandbox.port(7001).wait()
    with ExitStack() as held:

        def connect_often() -> None:
            for _ in range(10):
                held.enter_context(sandbox.port(7001).connect())

        with pytest.raises(PortClosed):
            connect_often()
        assert sandbox.exec("echo here").stdout == "here\n"


def test_asyncio() -> None:
    async def work() -> None:
        async with AsyncSandbox(tier="native", image=Image.host(), files={"/workspace/echo.py": ECHO}) as sandbox:
            await sandbox.spawn("python3 echo.py 127.0.0.1 7000")
            port = await sandbox.port(7000).wait()
            reader, writer = await port.connect()
            writer.write(b"hello")
            writer.write_eof()
            assert await reader.read() == b"hello5"
            writer.close()
            await writer.wait_closed()

    asyncio.run(work())
