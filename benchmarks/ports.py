"""Requests a second to a server inside a sandbox, beside the same server program run natively. `--quick` for a look.

Each row: the client's program, the rate inside, the rate natively on this machine in the same run, and the ratio.
"""

from __future__ import annotations

import http.client
import socket
import subprocess
import sys
import time
from collections.abc import Callable

from belljar import Sandbox

ROUNDS = 300 if "--quick" in sys.argv else 3000
SERVER = "require('http').createServer((q, s) => s.end('hello')).listen(+process.argv[1] || 3000)"


def rate(ask: Callable[[], object]) -> float:
    """Calls a second, after a few that don't count."""
    for _ in range(20):
        ask()
    began = time.perf_counter()
    for _ in range(ROUNDS):
        ask()
    return ROUNDS / (time.perf_counter() - began)


def ask_again(host: str, port: int) -> Callable[[], object]:
    """A request over a connection that is kept."""
    connection = http.client.HTTPConnection(host, port)

    def ask() -> bytes:
        connection.request("GET", "/")
        return connection.getresponse().read()

    return ask


def show(what: str, ours: float, theirs: float) -> None:
    print(f"{what:30}  inside {ours:8.0f}/s   native {theirs:8.0f}/s   {theirs / ours:5.2f}x")


def main() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    from belljar.engines.owner.js_build_host import node

    native = subprocess.Popen([str(node()), "-e", SERVER, str(port)])
    try:
        with Sandbox() as sandbox:
            sandbox.spawn(["node", "-e", SERVER])
            inside = sandbox.port(3000).wait(30)

            def ask_natively() -> bytes:
                connection = http.client.HTTPConnection("127.0.0.1", port)
                connection.request("GET", "/", headers={"Connection": "close"})
                body = connection.getresponse().read()
                connection.close()
                return body

            for _ in range(100):
                try:
                    ask_natively()
                    break
                except OSError:
                    time.sleep(0.05)
            show("one client, a connection each", rate(lambda: inside.get("/")), rate(ask_natively))
            exposed = ask_again(*sandbox.expose(3000))
            show("one client, one connection", rate(exposed), rate(ask_again("127.0.0.1", port)))
    finally:
        native.kill()
        native.wait()


if __name__ == "__main__":
    main()
