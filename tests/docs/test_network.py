"""The network's cookbook: each policy is taken from the document and used, with one server in place of the internet."""

from __future__ import annotations

import json
import re
import ssl
import time
from collections.abc import Callable, Iterator
from ipaddress import ip_address
from pathlib import Path
from typing import Any

import pytest

from belljar import Network, Sandbox
from belljar.net.addresses import Address
from belljar.net.broker import dns_host, gate_host, pool_host, stream_host
from tests.net.servers import Authority, HttpServer, Request, Response, bodies

TEXT = (Path(__file__).parents[2] / "docs" / "network.md").read_text()
RECIPES = dict(re.findall(r"### ([^\n]+)\n(?:(?!###).)*?```python\n(.*?)```", TEXT, re.S))
PUBLIC = ip_address("93.184.215.14")
NAMES = ("pypi.org", "api.github.com", "docs.example.com", "api.example.com", "evil.org")


@pytest.fixture
def internet(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[HttpServer]:
    """Every name is at one public address, and that address is our server."""
    authority = Authority(tmp_path)

    async def lookup(name: str, kind: str, resolvers: Any, timeout: float) -> dns_host.Answer:
        return dns_host.Answer(((name, 60, kind, str(PUBLIC)),), (PUBLIC,) if kind == "A" else (), 60.0)

    def echo(request: Request) -> Response:
        return Response(200, json.dumps(request.headers).encode(), {"content-type": "application/json"})

    with HttpServer({"/": b"ok", "/echo": echo, "/post": bodies.echo}, context=authority.context(*NAMES)) as server:

        async def dial(address: Address, port: int, timeout: float) -> stream_host.Stream:
            assert (address, port) == (PUBLIC, 443)
            return await stream_host.dial(ip_address("127.0.0.1"), server.port, timeout)

        def context(bundle: str | None, http2: bool) -> ssl.SSLContext:
            return authority.client_context()

        monkeypatch.setattr(dns_host, "lookup", lookup)
        monkeypatch.setattr(pool_host, "dial", dial)
        monkeypatch.setattr(gate_host, "_tls_context", context)
        yield server


def recipe(title: str, name: str = "network") -> Any:
    names: dict[str, Any] = {}
    exec(RECIPES[title], names)  # noqa: S102 - our own document
    return names[name]


Curl = Callable[[str], str]


@pytest.fixture
def curl() -> Iterator[Callable[[Network], Curl]]:
    opened: list[Sandbox] = []

    def grant(network: Network) -> Curl:
        opened.append(Sandbox(network=network))
        return lambda args: opened[-1].exec(f"curl -sS {args}", merge_stderr=True, timeout=240).stdout

    yield grant
    for sandbox in opened:
        sandbox.close()


def test_allow_a_registry(internet: HttpServer, curl: Callable[[Network], Curl]) -> None:
    ask = curl(recipe("Allow a registry"))
    assert ask("https://pypi.org/") == "ok"
    assert "evil.org" in ask("https://evil.org/")
    assert len(internet.requests) == 1


def test_broker_a_github_token(internet: HttpServer, curl: Callable[[Network], Curl]) -> None:
    ask = curl(recipe("Broker a GitHub token"))
    said = ask("-i https://api.github.com/echo")
    assert internet.requests[0].header("authorization") == "Bearer ghp_from_your_vault"
    assert "authorization" in said
    assert "ghp_from_your_vault" not in said
    assert "only reads" in ask("-X POST -d x https://api.github.com/post")
    ask("https://evil.org/echo")
    assert len(internet.requests) == 1


def test_ask_a_human(internet: HttpServer, curl: Callable[[Network], Curl]) -> None:
    ask = curl(recipe("Ask a human"))
    assert ask("https://docs.example.com/") == "ok"
    assert ask("https://docs.example.com/") == "ok"
    ask("https://evil.org/")
    ask("http://10.0.0.1/")
    assert len(internet.requests) == 2


def test_log_everything(
    internet: HttpServer, curl: Callable[[Network], Curl], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    ask = curl(recipe("Log everything"))
    assert ask("'https://api.example.com/?key=secret'") == "ok"
    ask("https://evil.org/")
    log = tmp_path / "network.jsonl"
    deadline = time.monotonic() + 60
    while log.read_text().count('"outcome"') < 2:  # a thread writes them
        assert time.monotonic() < deadline
        time.sleep(0.01)
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert [line["action"] for line in lines] == [
        *["dns", "connect", "request", "response", "done", "outcome", "dns", "outcome"]
    ]
    assert "secret" not in json.dumps(lines)


def test_read_never_write(internet: HttpServer, curl: Callable[[Network], Curl]) -> None:
    ask = curl(recipe("Read, never write"))
    assert ask("https://docs.example.com/") == "ok"
    assert "only read" in ask("-d x https://docs.example.com/post")
    assert len(internet.requests) == 1


def test_one_database_by_name() -> None:
    network = recipe("One database, by name")
    assert network.hosts == {"db.internal": (ip_address("10.0.0.5"),)}


async def _get(fetch: Any) -> Any:
    return await fetch("https://api.example.com/echo", {"headers": {"x-a": "b"}})


def test_a_fetch_without_a_sandbox(internet: HttpServer) -> None:
    import asyncio

    answer = asyncio.run(_get(recipe("A `fetch` for code without a sandbox around it", "fetch")))
    assert (answer["status"], answer["ok"]) == (200, True)
    assert ["x-a", "b"] in answer["json"]


def test_every_recipe_is_tested() -> None:
    assert len(RECIPES) == 7
