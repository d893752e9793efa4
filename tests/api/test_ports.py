"""Servers inside a sandbox: reached from every program of it, and by its owner."""

from __future__ import annotations

import asyncio
import socket
import threading
import time
import urllib.request
from collections.abc import Iterator

import pytest

from belljar import AsyncSandbox, Network, PortClosed, Process, Sandbox

pytestmark = pytest.mark.slow

NODE = "require('http').createServer((q, s) => s.end('node ' + q.method + ' ' + q.url)).listen(3000)"
ECHO = """
import asyncio
async def echo(reader, writer):
    while line := await reader.readline():
        writer.write(b"echo " + line)
        await writer.drain()
    writer.close()
async def main():
    server = await asyncio.start_server(echo, "127.0.0.1", 7000)
    async with server:
        await server.serve_forever()
asyncio.run(main())
"""
PLAIN = """
import socket
server = socket.create_server(("localhost", 5000))
while True:
    client, address = server.accept()
    client.sendall(b"from " + client.recv(100).upper())
    client.close()
"""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(files={"/workspace/page.html": "<h1>hi</h1>\n"}) as box:
        servers: list[Process[bytes]] = [
            box.spawn("python3 -m http.server 8000"),
            box.spawn(["node", "-e", NODE]),
            box.spawn(["python3", "-c", ECHO]),
            box.spawn(["python3", "-c", PLAIN]),
        ]
        for port in (8000, 3000, 7000, 5000):
            box.port(port).wait(60)
        yield box
        assert not any(server.exited for server in servers)


CLIENTS = {
    "curl": ("curl -s http://localhost:8000/page.html", "<h1>hi</h1>\n"),
    "curl by address": ("curl -s http://127.0.0.1:8000/page.html", "<h1>hi</h1>\n"),
    "curl by the host's name": ("curl -s http://$(hostname):8000/page.html", "<h1>hi</h1>\n"),
    "curl to node": ("curl -s -X PUT --data x localhost:3000/a?b=c", "node PUT /a?b=c"),
    "curl's codes": ("curl -s -o /dev/null -w '%{http_code}' localhost:8000/missing", "404"),
    "wget": ("wget -qO- http://localhost:3000/w", "node GET /w"),
    "nc": ("echo hello | nc -N localhost 7000", "echo hello\n"),
    "bash": ("exec 3<>/dev/tcp/localhost/5000; echo bash >&3; cat <&3", "from BASH\n"),
    "python's urllib": (
        "python3 -c \"import urllib.request as r; print(r.urlopen('http://localhost:3000/p').read().decode())\"",
        "node GET /p\n",
    ),
    "node's fetch": (
        "node -e \"fetch('http://localhost:8000/page.html').then(r => r.text()).then(console.log)\"",
        "<h1>hi</h1>\n\n",
    ),
    "node's http": (
        "node -e \"require('http').get('http://127.0.0.1:3000/n', r => r.on('data', d => console.log(String(d))))\"",
        "node GET /n\n",
    ),
}  # fmt: skip


@pytest.mark.parametrize(("command", "said"), CLIENTS.values(), ids=CLIENTS.keys())
def test_programs_reach_each_other_without_a_network(sandbox: Sandbox, command: str, said: str) -> None:
    result = sandbox.exec(command, timeout=60)
    assert (result.stdout, result.exit_code) == (said, 0), result.stderr


def test_what_does_not_listen_refuses(sandbox: Sandbox) -> None:
    refused = sandbox.exec("curl -s localhost:9; echo $?; nc -z localhost 9; echo $?")
    assert refused.stdout == "7\n1\n"
    code = "import socket\ntry: socket.create_connection(('::1', 9))\nexcept ConnectionRefusedError: print('refused')"
    assert sandbox.exec(["python3", "-c", code]).stdout == "refused\n"
    with pytest.raises(PortClosed, match="nothing listens on port 9"):
        sandbox.port(9).get()
    with pytest.raises(TimeoutError):
        sandbox.port(9).wait(0.1)


def test_a_port_is_bound_once(sandbox: Sandbox) -> None:
    assert sandbox.exec("nc -l 8000").stderr == "nc: Address already in use\n"
    code = "import socket; s = socket.socket(); s.bind(('', 8000))"
    assert "Address already in use" in sandbox.exec(["python3", "-c", code]).stderr
    twice = "const l = () => require('net').createServer().listen(8000).on('error', e => console.log(e.code)); l()"
    assert sandbox.exec(["node", "-e", twice]).stdout == "EADDRINUSE\n"
    free = "import socket; s = socket.create_server(('', 0)); print(s.getsockname()[1] > 1024)"
    assert sandbox.exec(["python3", "-c", free]).stdout == "True\n"


def test_the_table_of_sockets(sandbox: Sandbox) -> None:
    table = sandbox.exec("cat /proc/net/tcp /proc/net/tcp6").stdout
    assert "00000000:1F40 00000000:0000 0A" in table
    assert "0100007F:1B58 00000000:0000 0A" in table
    assert ":0BB8 " in table


def test_the_owner(sandbox: Sandbox) -> None:
    page = sandbox.port(8000).get("/page.html")
    assert (page.status, page.text, page.headers["Content-type"]) == (200, "<h1>hi</h1>\n", "text/html")
    assert sandbox.port(3000).post("/x", b"body").text == "node POST /x"
    with sandbox.port(7000).connect() as stream:
        stream.sendall(b"one\n")
        assert stream.recv(100) == b"echo one\n"
        stream.sendall(b"two\n")
        stream.shutdown(socket.SHUT_WR)
        assert stream.recv(100) == b"echo two\n"
        assert stream.recv(100) == b""


def test_many_connections_at_once(sandbox: Sandbox) -> None:
    said: list[bytes] = []

    def talk(number: int) -> None:
        with sandbox.port(7000).connect() as stream:
            for turn in range(20):
                stream.sendall(b"%d %d\n" % (number, turn))
                said.append(stream.recv(100))

    threads = [threading.Thread(target=talk, args=(number,)) for number in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == sorted(b"echo %d %d\n" % (n, t) for n in range(10) for t in range(20))


def test_much_goes_through_whole() -> None:
    data = bytes(range(256)) * (5 << 12)
    with Sandbox() as sandbox:
        server = sandbox.spawn("nc -l 4000")
        with _connect(sandbox, 4000) as stream:
            stream.sendall(data)
            stream.shutdown(socket.SHUT_WR)
            assert server.stdout.read() == data
            assert stream.recv(10) == b""
        sandbox.files.write("/tmp/data", data)
        server = sandbox.spawn("nc -N -l 4001 < /tmp/data")
        with _connect(sandbox, 4001) as stream:
            got = b"".join(iter(lambda: stream.recv(1 << 16), b""))
        assert got == data


def _connect(sandbox: Sandbox, port: int) -> socket.socket:
    """A connection to a server that takes only one."""
    while True:
        try:
            return sandbox.port(port).connect()
        except PortClosed:
            sandbox.exec("sleep 0.01")


def test_exposed() -> None:
    before = threading.active_count()
    with Sandbox() as sandbox:
        sandbox.spawn(["node", "-e", NODE])
        sandbox.port(3000).wait(60)
        host, port = sandbox.expose(3000)
        assert host == "127.0.0.1"
        for _ in range(5):
            assert urllib.request.urlopen(f"http://{host}:{port}/e").read() == b"node GET /e"
        with pytest.raises(OSError, match="in use"):
            sandbox.expose(3000, port)
        unused, closed = sandbox.expose(9)
        with socket.create_connection((unused, closed)) as refused:
            assert refused.recv(1) == b""
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((host, port))
    deadline = time.monotonic() + 60
    while threading.active_count() > before + 1:  # those that carried the connections end by themselves
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_async() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.spawn(["node", "-e", NODE])
            port = await sandbox.port(3000).wait(60)
            answers = await asyncio.gather(*(port.get(f"/{n}") for n in range(10)))
            assert [answer.text for answer in answers] == [f"node GET /{n}" for n in range(10)]
            host, number = await sandbox.expose(3000)
            reader, writer = await asyncio.open_connection(host, number)
            writer.write(b"GET /raw HTTP/1.0\r\n\r\n")
            assert (await reader.read()).endswith(b"node GET /raw")
            writer.close()
            with pytest.raises(PortClosed):
                await sandbox.port(9).connect()

    asyncio.run(main())


def test_a_granted_network_does_not_reach_the_sandbox_itself() -> None:
    """A server inside comes before one of the owner's machine on the same port, and is not the network's business."""
    listener = socket.create_server(("127.0.0.1", 0))
    port = listener.getsockname()[1]
    with listener, Sandbox(network=Network.allow(f"127.0.0.1:{port}")) as sandbox:
        sandbox.spawn(["python3", "-c", PLAIN.replace("5000", str(port))])
        sandbox.port(port).wait(60)
        assert sandbox.exec(f"echo inside | nc -N localhost {port}").stdout == "from INSIDE\n"
        listener.setblocking(False)
        with pytest.raises(BlockingIOError):
            listener.accept()


@pytest.mark.parametrize(
    ("port", "error"), [("80", TypeError), (0, ValueError), (65536, ValueError), (True, TypeError)]
)
def test_bad_ports(sandbox: Sandbox, port: object, error: type[Exception]) -> None:
    with pytest.raises(error, match="port"):
        sandbox.port(port)  # type: ignore[arg-type]
