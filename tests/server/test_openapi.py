"""The OpenAPI document: it has every call of the control API, and what the server does is what it says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import httpx
import pytest
from starlette.routing import Route

from belljar.server.app import make_app
from belljar.server.config import Config
from belljar.server.console.access import Sessions
from belljar.server.database_host import Database
from belljar.server.metrics import Metrics
from belljar.server.openapi import OPERATIONS
from belljar.server.service import Service
from tests.clock import ManualClock
from tests.server.serving import WHOLE, Server

OTHERS = re.compile(
    r"/(healthz|readyz|metrics|openapi\.json|health|files|execute|contexts|uploads|volumecontent|process\.Process"
    r"|filesystem\.Filesystem|console|p|v1|remote)(/|$)|/$|/\{"
)
"""What has no place in it: envd's part of the protocol, links, operators' paths, the console and our own protocol."""


def test_it_has_every_call(server: Server) -> None:
    document = httpx.get(f"{server.url}/openapi.json", timeout=30).json()
    told = {(path, method.upper()) for path, each in document["paths"].items() for method in each}
    assert told == {(path, method) for path, method, *_ in OPERATIONS}
    assert {(path, method) for path, method in _routes() if not OTHERS.match(path)} == told


def _routes() -> set[tuple[str, str]]:
    database, clock = Database(None), ManualClock()
    service = Service(Config(), database, None, Metrics(), clock)
    app = make_app(service, Sessions(database, clock))
    found = set()
    for each in app._app._app.routes:
        if isinstance(each, Route):
            path = each.path.replace(":path}", "}").replace(":int}", "}")
            found |= {(path, method) for method in each.methods or () if method != "HEAD"}
    database.close()
    return found


@pytest.mark.battery
@pytest.mark.slow
def test_schemathesis_finds_nothing(tmp_path: Path) -> None:
    server = Server(tmp_path)
    try:
        phases = "examples,coverage,fuzzing" if WHOLE else "fuzzing"
        command = [
            sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/openapi.json",
            "-H", f"X-API-KEY: {server.key}", "--phases", phases, "-n", "20" if WHOLE else "2", "--seed", "1",
        ]  # fmt: skip
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=1500, check=False)
        assert done.returncode == 0, done.stdout[-6000:] + done.stderr[-2000:]
        assert [line for line in server.logged if '"trace"' in line] == []
    finally:
        server.stop()
