"""`on_event`: the owner is told of what happens."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest

from belljar import Event, Limits, Sandbox
from tests.tiers.conftest import Make, Tier


class Events(list[Event]):
    def wait_for(self, wanted: Callable[[Event], bool]) -> Event:
        ends = time.monotonic() + 120
        while True:
            for event in list(self):
                if wanted(event):
                    return event
            assert time.monotonic() < ends, [(e.kind, e.data) for e in self]
            time.sleep(0.01)


def watched(make: Make) -> tuple[Sandbox, Events]:
    events = Events()
    return make(name="watched", on_event=events.append), events


def test_commands(make: Make) -> None:
    sb, events = watched(make)
    sb.exec(["sh", "-c", "exit 3"], cwd="/tmp")
    start = events.wait_for(lambda e: e.kind == "exec" and e.data["action"] == "start")
    end = events.wait_for(lambda e: e.kind == "exec" and e.data["action"] == "end")
    assert (start.data["argv"], start.data["cwd"], start.sandbox) == (["sh", "-c", "exit 3"], "/tmp", "watched")
    assert (end.data["exit_code"], end.data["id"]) == (3, start.data["id"])
    assert start.time <= end.time <= time.time()


def test_files(make: Make) -> None:
    sb, events = watched(make)
    sb.exec("echo > f; mv f g; rm g")
    events.wait_for(lambda e: e.kind == "file" and (e.data["action"], e.data["path"]) == ("created", "/workspace/f"))
    events.wait_for(lambda e: e.kind == "file" and (e.data["action"], e.data["path"]) == ("deleted", "/workspace/g"))


def test_limits(make: Make) -> None:
    sb, events = watched(make)
    sb.exec("yes", limits=Limits(output_bytes=1000))
    assert events.wait_for(lambda e: e.kind == "limit").data["limit"] == "output_bytes"


def test_network(make: Make, tier: Tier) -> None:
    sb, events = watched(make)
    assert sb.exec("curl -s -m 5 http://example.com/").exit_code in (6, 7)
    if tier.behaviour("refused connections are events", True):
        assert events.wait_for(lambda e: e.kind == "network").data["verdict"] == "denied"


def test_a_listener_that_raises_stops_nothing(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    def refuse(event: Event) -> None:
        raise LookupError("in on_event")

    assert make(on_event=refuse).exec("echo fine").stdout == "fine\n"
    assert "in on_event" in caplog.text


def test_spawned_programs(make: Make) -> None:
    sb, events = watched(make)
    process = sb.spawn("read x")
    process.kill("KILL")
    process.wait()
    assert events.wait_for(lambda e: e.kind == "exec" and e.data["action"] == "end").data["exit_code"] == 137
