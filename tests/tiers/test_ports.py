"""Servers inside: reached by programs of the sandbox, and by its owner."""

from __future__ import annotations

import urllib.request

import pytest

from belljar import PortClosed, Sandbox, SandboxClosed
from tests.tiers.conftest import Make

PLAIN = """
import socket, sys
server = socket.create_server(("127.0.0.1", int(sys.argv[1])))
while True:
    client, address = server.accept()
    data = b""
    while not data.endswith(b"\\n") and (piece := client.recv(100000)):
        data += piece
    client.sendall(data.upper())
    client.close()
"""


@pytest.fixture
def web(make: Make) -> Sandbox:
    sb = make(files={"/workspace/site/page": "hi\n"})
    sb.exec("cd site; exec python3 -m http.server 8000 --bind 127.0.0.1", background=True)
    sb.port(8000).wait(240)
    return sb


def test_http(web: Sandbox) -> None:
    response = web.port(8000).get("/page")
    assert (response.status, response.text) == (200, "hi\n")
    assert web.port(8000).get("/none").status == 404


def test_headers_and_methods(web: Sandbox) -> None:
    response = web.port(8000).request("HEAD", "/page", headers={"X-A": "b"})
    assert (response.status, response.body) == (200, b"")
    assert web.port(8000).post("/page", "body").status == 501


def test_programs_of_the_sandbox_reach_it(web: Sandbox) -> None:
    assert web.exec("curl -s http://127.0.0.1:8000/page; curl -s http://localhost:8000/page").stdout == "hi\nhi\n"


def test_other_sandboxes_do_not(web: Sandbox, make: Make) -> None:
    assert make().exec("curl -s -m 5 http://127.0.0.1:8000/page").exit_code == 7


def test_bytes(make: Make) -> None:
    sb = make(files={"/workspace/server.py": PLAIN})
    sb.exec("python3 server.py 5000", background=True)
    sb.port(5000).wait(240)
    assert make.front.connect(sb, 5000, b"hello\n") == b"HELLO\n"
    long = b"x" * 300_000 + b"\n"
    assert make.front.connect(sb, 5000, long) == long.upper()


def test_nothing_listens(sb: Sandbox) -> None:
    with pytest.raises(PortClosed, match="nothing listens on port 81"):
        sb.port(81).get("/")
    with pytest.raises(ConnectionRefusedError):
        sb.port(81).connect()


def test_waiting_in_vain(sb: Sandbox) -> None:
    with pytest.raises(TimeoutError, match=r"within 0\.2 s"):
        sb.port(81).wait(0.2)


@pytest.mark.parametrize(("number", "error"), [(0, ValueError), (65536, ValueError), ("80", TypeError)])
def test_what_is_no_port(sb: Sandbox, number: int, error: type[Exception]) -> None:
    with pytest.raises(error, match="port"):
        sb.port(number)
    with pytest.raises(error, match="port"):
        sb.expose(number)


def test_expose(web: Sandbox) -> None:
    host, port = web.expose(8000)
    assert host == "127.0.0.1"
    with urllib.request.urlopen(f"http://{host}:{port}/page", timeout=120) as response:
        assert response.read() == b"hi\n"


def test_an_exposed_port_is_closed_with_the_sandbox(web: Sandbox) -> None:
    host, port = web.expose(8000)
    web.close()
    with pytest.raises(OSError, match="refused"):
        urllib.request.urlopen(f"http://{host}:{port}/", timeout=120)


def test_a_port_that_is_taken(web: Sandbox) -> None:
    _, port = web.expose(8000)
    with pytest.raises(OSError, match="in use"):
        web.expose(8000, host_port=port)


def test_after_the_end(web: Sandbox) -> None:
    web.close()
    with pytest.raises(SandboxClosed):
        web.port(8000).get("/")
