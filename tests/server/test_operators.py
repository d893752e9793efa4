"""What operators get: scoped keys, usage, the unit, the container, the dashboard; and a clock that jumps."""

from __future__ import annotations

import configparser
import json
import re
from pathlib import Path

import pytest

from belljar.api.clock_host import monotonic, wall_time
from belljar.server import service as service_module
from belljar.server.config import Config
from belljar.server.database_host import Database
from belljar.server.egress import Egress, Wanted
from belljar.server.metrics import Metrics
from belljar.server.records import Held, Record
from belljar.server.service import Service
from tests.server.serving import Server
from tests.server.test_control import until

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


def test_usage_by_the_hour(own: Server) -> None:
    made = own.create()
    own.request("DELETE", f"/sandboxes/{made['sandboxID']}")
    own.request("POST", "/secrets", json={"name": "a", "value": "b"})
    own.create()
    until(lambda: "sandbox_seconds" in own.cli("usage").stdout, 120)
    rows = json.loads(own.cli("usage", "--json", "--tenant", "default").stdout)
    assert {row["tenant"] for row in rows} == {"default"}
    assert own.cli("usage", "--tenant", "nobody").stdout == ""


@pytest.mark.parametrize("jump", [-86400.0, -1.0, 86400.0, 10 * 365 * 86400.0])
def test_a_clock_that_jumps_ends_no_sandbox(monkeypatch: pytest.MonkeyPatch, jump: float) -> None:
    """Timeouts go by a clock that nobody sets."""
    database = Database(None)
    service = Service(Config(), database, None, Metrics())
    now = wall_time()
    record = Record("i1", "t", "base", now, now + 300, 300)
    held = Held(record, "running", Egress((), Wanted()))
    service.set_timeout(held, 300)
    monkeypatch.setattr(service_module, "wall_time", lambda: now + jump)
    guest = type("G", (), {"busy": 0, "streams": 0, "jobs": {}, "used": monotonic()})()
    assert not service._is_over(held, guest, monotonic())
    assert service._is_over(held, guest, monotonic() + 301)
    service.set_timeout(held, 600)
    assert not service._is_over(held, guest, monotonic() + 301)
    assert service._is_over(held, guest, monotonic() + 601)
    database.close()


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
