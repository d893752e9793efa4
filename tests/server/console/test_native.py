"""The console on the native tier: the same calls, answered by real Linux programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.server.console.client import Page
from tests.server.serving import Server
from tests.server.test_control import until


@pytest.mark.slow
def test_every_side_of_a_native_sandbox(tmp_path: Path) -> None:
    server = Server(tmp_path, "--tier", "native")
    try:
        page = Page(server)
        number = page.create()
        path = f"/sandboxes/{number}"
        terminal = page.terminal(number, rows=31, cols=101)
        terminal.type("stty size; sleep 4321 & echo en''d\n")
        assert "31 101" in terminal.until("end")
        page.process(number, "sleep 4321")
        page.write(number, "/home/user/a", b"one")
        assert "a" in [each["name"] for each in page.get(f"{path}/entries", path="/home/user")["entries"]]
        told = page.ask("POST", f"{path}/run", {"code": "6 * 7", "language": "python"})
        assert '"text":"42"' in told.text
        terminal.type("curl -s http://denied.example.com/; echo as''ked\n")
        terminal.until("asked")

        def allowing() -> set[str]:
            return {event["allow"] for event in page.get(f"{path}/network")["events"] if event["allow"]}

        until(allowing)  # a thread writes the log
        assert allowing() == {"denied.example.com"}
        assert page.ask("POST", f"{path}/snapshots", {}).status_code == 201
        page.write(number, "/home/user/a", b"two")
        assert [each["name"] for each in page.get(f"{path}/changes")["changes"]] == ["/home/user/a"]
        assert page.get(f"{path}/samples")[-1]["memory"] > 0
        terminal.close()
    finally:
        server.stop()
