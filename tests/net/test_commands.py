"""curl and wget in a sandbox say what the real ones say to the same server: cases recorded by record_commands.py."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack

import pytest

from belljar import Network, Sandbox
from tests.net.record_commands import CASES, SETUP
from tests.net.servers import HttpServer
from tests.net.site import masked, routes

RECORDED = [json.loads(line) for line in CASES.read_text().splitlines()]


@pytest.fixture(scope="module")
def site() -> Iterator[tuple[HttpServer, Sandbox]]:
    with ExitStack() as others:
        server = others.enter_context(HttpServer(routes()))
        while server.port < 10_000:  # some answers have the address in them, and were recorded with their length
            server = others.enter_context(HttpServer(routes()))
        network = Network.allow(f"127.0.0.1:{server.port}", "127.0.0.1:1")
        with Sandbox(network=network) as sandbox:
            yield server, sandbox


@pytest.mark.parametrize("case", [pytest.param(case, id=case["script"][:60]) for case in RECORDED])
def test_as_the_real_one(case: dict[str, object], site: tuple[HttpServer, Sandbox]) -> None:
    server, sandbox = site
    script = str(case["script"]).replace("{U}", server.url).replace("{H}", server.authority)
    result = sandbox.exec(SETUP + script, timeout=60)
    assert masked(result.stdout, server) == case["stdout"]
    assert masked(result.stderr, server) == case["stderr"]
    assert result.exit_code == case["status"]
