"""sqlite3's connections: none is left open, whatever becomes of the command."""

from __future__ import annotations

import sqlite3

import pytest

from tests.adapter import new_session, put, run_command


@pytest.mark.parametrize(
    "script",
    [
        "sqlite3 none/t.db 'select 1'",
        "sqlite3 :memory: 'select nope'",
        "sqlite3 -bail :memory: '.quit' 'select 1'",
        "echo junk >junk.db; sqlite3 junk.db .schema",
    ],
)
def test_every_connection_is_closed(monkeypatch: pytest.MonkeyPatch, script: str) -> None:
    open_connections: set[int] = set()

    class Counted(sqlite3.Connection):
        def __init__(self, *args: object, **options: object) -> None:
            super().__init__(*args, **options)  # type: ignore[arg-type]
            open_connections.add(id(self))

        def close(self) -> None:
            open_connections.discard(id(self))
            super().close()

    real = sqlite3.connect
    monkeypatch.setattr(sqlite3, "connect", lambda *args, **options: real(*args, factory=Counted, **options))
    session = new_session({"LC_ALL": "C.UTF-8", "HOME": "/tmp", "TZ": "UTC"})
    put(session, "/tmp/w", ("dir",))
    run_command(session, ["bash", "-c", script], cwd="/tmp/w")
    assert not open_connections
