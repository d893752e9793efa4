"""A server inside the test's own process, on a clock that the test moves; its sandboxes are real or pretended."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, cast

import httpx

from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.errors import SandboxError
from belljar.server.app import make_app
from belljar.server.config import Config
from belljar.server.console.access import Sessions
from belljar.server.database_host import Database
from belljar.server.egress import Egress, Wanted
from belljar.server.guest import Guest
from belljar.server.keys_host import create_key, new_id
from belljar.server.metrics import Metrics
from belljar.server.records import Held, Record
from belljar.server.service import Service
from belljar.store.store import Store
from tests.clock import ManualClock

TENANT = "default"


class FakeSandbox:
    """What the server does to a sandbox is counted; nothing runs."""

    def __init__(self) -> None:
        self.closes = 0
        self.snapshots = 0
        self.refuses_snapshots = False
        self.measured: dict[str, float] = {}

    @property
    def closed(self) -> bool:
        return self.closes > 0

    async def snapshot(self, label: str | None = None, store: Store | None = None) -> SimpleNamespace:
        if self.refuses_snapshots:
            raise SandboxError("no room")
        self.snapshots += 1
        return SimpleNamespace(ref=f"snapshot-{self.snapshots}")

    async def stats(self) -> dict[str, float]:
        return dict(self.measured)

    def port(self, number: int) -> Any:
        raise SandboxError(f"nothing listens on port {number}")

    async def close(self) -> None:
        self.closes += 1


@dataclass(frozen=True)
class InProcess:
    clock: ManualClock
    database: Database
    service: Service
    sessions: Sessions
    client: httpx.AsyncClient
    """Sends an operator's key, unless told otherwise."""

    def hold(self, *, timeout: float = 300.0, pause: bool = True) -> tuple[Held, FakeSandbox]:
        """A sandbox that is pretended to run."""
        now, sandbox = self.clock.time(), FakeSandbox()
        record = Record(new_id(), TENANT, "base", now, now + timeout, timeout, pause_on_timeout=pause)
        guest = Guest(cast(AsyncSandbox, sandbox), self.clock)
        held = Held(record, "running", Egress((), Wanted()), guest)
        self.service.held[record.id] = held
        self.service.set_timeout(held, timeout)
        return held, sandbox

    def set_quota(self, quota: str) -> None:
        self.database.add_tenant(TENANT, self.clock.time(), quota)


@asynccontextmanager
async def in_process(config: Config | None = None, *, store: Store | None = None) -> AsyncIterator[InProcess]:
    config = config or Config()
    clock, database = ManualClock(), Database(config.data)
    key = create_key(database, TENANT, "first", "operator", clock=clock)
    service = Service(config, database, store, Metrics(), clock)
    sessions = Sessions(database, clock)
    service.background(service._watch_clock())
    transport = httpx.ASGITransport(app=make_app(service, sessions))
    try:
        async with httpx.AsyncClient(transport=transport, base_url="http://s", headers={"X-API-KEY": key}) as client:
            yield InProcess(clock, database, service, sessions, client)
    finally:
        await service.close()
        database.close()


async def until(holds: Callable[[], Any]) -> None:
    """Wait for what threads and other processes do."""
    end = time.monotonic() + 60
    while not holds():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
