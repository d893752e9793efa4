"""How quick is a web request from inside a sandbox, beside real curl from outside? Run: python -m benchmarks.network

A server of its own process serves bodies from memory. Each figure is the least of several interleaved runs.
"""

from __future__ import annotations

import asyncio
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from belljar import AsyncSandbox, Network, Sandbox, SandboxError
from belljar.net.policy import Conn

SERVER = r"""
import socket, threading
bodies = {b"/1k": b"x" * 1024, b"/1m": b"x" * (1 << 20), b"/big": b"x" * (256 << 20)}
listener = socket.create_server(("127.0.0.1", 0), backlog=512)
print(listener.getsockname()[1], flush=True)
def serve(connection):
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    buffer = b""
    while True:
        while b"\r\n\r\n" not in buffer:
            data = connection.recv(65536)
            if not data:
                return
            buffer += data
        head, _, buffer = buffer.partition(b"\r\n\r\n")
        body = bodies.get(head.split()[1], b"")
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body))
        connection.sendall(body)
while True:
    connection, _ = listener.accept()
    threading.Thread(target=serve, args=(connection,), daemon=True).start()
"""
ROUNDS = 15


def least(rounds: int, *works: Callable[[], object]) -> list[float]:
    """The shortest time of each, run in turns."""
    best = [float("inf")] * len(works)
    for _ in range(rounds):
        for index, work in enumerate(works):
            began = time.perf_counter()
            work()
            best[index] = min(best[index], time.perf_counter() - began)
    return best


def compare(label: str, sandbox: Sandbox, base: str, base_outside: str) -> None:
    """The same requests from inside, and from outside by real curl."""
    curl = shutil.which("curl")
    with sandbox:
        for path, rounds in (("/1k", 40), ("/1m", ROUNDS), ("/big", 3)):
            url = base + path

            def inside(url: str = url) -> None:
                result = sandbox.exec(["curl", "-s", "-o", "/dev/null", url])
                assert result.exit_code == 0, result.stderr

            def outside(url: str = base_outside + path) -> None:
                assert curl is not None
                subprocess.run([curl, "-s", "-o", "/dev/null", url], check=True)

            inside()
            times = least(rounds, inside, *([outside] if curl else []))
            size = {"/1k": 1 << 10, "/1m": 1 << 20, "/big": 256 << 20}[path]
            rate = f"{size / times[0] / 1e6:8.0f} MB/s" if size > 4096 else ""
            other = f"curl {times[1] * 1e3:8.2f} ms  ratio {times[0] / times[1]:.2f}" if curl else "no curl here"
            print(f"{label:8} GET {path:5} inside {times[0] * 1e3:8.2f} ms  {other} {rate}")


def compare_native(port: int) -> None:
    """Real curl inside: connections that pass untouched, and requests that middleware has seen."""
    hosts, base = {"server.test": "127.0.0.1"}, f"http://server.test:{port}"

    def policy(conn: Conn) -> object:
        question, flow = conn.match_dns("server.test"), conn.match_http(f"server.test:{port}")
        return question.accept() if question else flow.accept(lambda request: None) if flow else None

    networks = {
        "native": Network.allow(f"server.test:{port}", hosts=hosts),
        "seen": Network.policy(policy, hosts=hosts),
    }
    for label, network in networks.items():
        try:
            sandbox = Sandbox(tier="native", network=network)
        except SandboxError as error:
            print(f"no native sandboxes here: {error}")
            return
        compare(label, sandbox, base, f"http://127.0.0.1:{port}")


async def many(base: str, network: Network) -> None:
    """200 fetches at once from 50 sandboxes."""
    sandboxes = [AsyncSandbox(network=network) for _ in range(50)]
    await asyncio.gather(*(sandbox.start() for sandbox in sandboxes))
    began = time.perf_counter()
    results = await asyncio.gather(
        *(sandbox.exec(["curl", "-s", "-o", "/dev/null", base + "/1k"]) for sandbox in sandboxes for _ in range(4))
    )
    seconds = time.perf_counter() - began
    assert all(result.exit_code == 0 for result in results), next(r.stderr for r in results if r.exit_code)
    await asyncio.gather(*(sandbox.close() for sandbox in sandboxes))
    print(f"200 fetches from 50 sandboxes: {seconds * 1e3:.0f} ms, {200 / seconds:.0f} a second")


def main() -> None:
    server = subprocess.Popen([sys.executable, "-c", SERVER], stdout=subprocess.PIPE)
    try:
        assert server.stdout is not None
        port = int(server.stdout.readline())
        socket.create_connection(("127.0.0.1", port)).close()
        network = Network.allow(f"127.0.0.1:{port}")
        compare("virtual", Sandbox(network=network), f"http://127.0.0.1:{port}", f"http://127.0.0.1:{port}")
        compare_native(port)
        asyncio.run(many(f"http://127.0.0.1:{port}", network))
    finally:
        server.kill()
        server.wait()


if __name__ == "__main__":
    main()
