"""What operators get: scoped keys, usage, the unit, the container, the dashboard; and a clock that jumps."""

from __future__ import annotations

import configparser
import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from belljar.server.config import Config
from belljar.server.metrics import Metrics
from tests.server.in_process import in_process
from tests.server.serving import Server

DEPLOY = Path(__file__).parents[2] / "deploy"


def test_a_key_that_only_reads(server: Server) -> None:
    made = server.create()
    key = server.new_key("default", "--read-only", "--name", "monitor")
    path = f"/sandboxes/{made['sandboxID']}"
    shown = server.request("GET", path, key=key)
    assert (shown.status_code, shown.json()["envdAccessToken"]) == (200, "")
    assert made["envdAccessToken"] not in shown.text
    for method, where, body in (
        ("POST", "/v2/sandboxes", {"templateID": "base"}),
        ("DELETE", path, None),
        ("POST", f"{path}/pause", {}),
        ("POST", f"{path}/connect", {}),
        ("POST", f"{path}/ports/8000", {}),
        ("POST", "/secrets", {"name": "a", "value": "b"}),
        ("POST", "/volumes", {"name": "a"}),
    ):
        assert server.request(method, where, key=key, json=body).status_code == 403, where
    assert "read" in server.cli("key", "list").stdout
    server.request("DELETE", path)


@pytest.mark.battery
async def test_usage_by_the_hour(tmp_path: Path) -> None:
    data = tmp_path / "server.db"
    async with in_process(Config(data=str(data))) as server:
        server.hold(timeout=3600)
        await server.client.post("/secrets", json={"name": "a", "value": "b"})
        await server.clock.advance(10)

    def usage(*options: str) -> str:
        command = [sys.executable, "-m", "belljar.cli", "serve", "usage", "--data", str(data), *options]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    assert "sandbox_seconds" in usage()
    rows = json.loads(usage("--json", "--tenant", "default"))
    assert {row["tenant"] for row in rows} == {"default"}
    assert usage("--tenant", "nobody") == ""


@pytest.mark.parametrize("jump", [-86400.0, -1.0, 86400.0, 10 * 365 * 86400.0])
async def test_a_clock_that_jumps_ends_no_sandbox(jump: float) -> None:
    """Timeouts go by a clock that nobody sets."""
    async with in_process() as server:
        held, _ = server.hold(timeout=300)
        server.clock.set_time(server.clock.time() + jump)
        await server.clock.advance(299.5)
        assert held.record.id in server.service.held
        server.service.set_timeout(held, 600)
        await server.clock.advance(599.5)
        assert held.record.id in server.service.held
        await server.clock.advance(0.5)
        assert held.record.id not in server.service.held


def test_the_dashboard_asks_for_metrics_that_there_are() -> None:
    board = json.loads((DEPLOY / "grafana.json").read_text())
    there = {sample.name for family in Metrics().registry.collect() for sample in family.samples}
    families = {family.name for family in Metrics().registry.collect()}
    names = {
        name
        for panel in board["panels"]
        for each in panel["targets"]
        for name in re.findall(r"belljar_\w+", each["expr"])
    }
    assert len(names) > 8
    for name in names:
        base = re.sub(r"_(total|bucket)$", "", name)
        assert name in there or base in families, name
    places = [(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in board["panels"]]
    assert len(set(places)) == len(places)


def test_the_unit_and_the_recipe_of_the_container() -> None:
    unit = configparser.ConfigParser(strict=False, interpolation=None)
    unit.optionxform = str  # type: ignore[assignment,method-assign]
    unit.read(DEPLOY / "belljar.service")
    assert unit["Service"]["DynamicUser"] == "yes"
    assert unit["Service"]["NoNewPrivileges"] == "yes"
    assert int(unit["Service"]["TimeoutStopSec"]) > Config().drain_seconds
    lines = (DEPLOY / "Dockerfile").read_text().splitlines()
    steps = [line for line in lines if re.match(r"[A-Z]+ ", line)]
    assert steps[0].startswith("FROM ")
    assert ":latest" not in steps[0]
    users = [place for place, line in enumerate(steps) if line.startswith("USER ")]
    assert steps[users[-1]] != "USER root"
    assert users[-1] < next(place for place, line in enumerate(steps) if line.startswith("ENTRYPOINT"))
    command = json.loads(next(line for line in steps if line.startswith("CMD")).partition(" ")[2])
    assert command[0] == "serve"
    assert not any(line.startswith("ADD ") for line in steps)
