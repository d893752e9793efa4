"""What tenants use: measured every few seconds, added up by the hour, and held against their quotas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any, Final

from belljar.abi.clock import Clock
from belljar.api.errors import SandboxError
from belljar.server.config import Quota
from belljar.server.database_host import Database
from belljar.server.guest import Guest
from belljar.server.records import Held

_HOUR: Final = 3600
_FRESH: Final = 4.0
"""Seconds for which a measurement is taken as the present."""
_TOLD: Final = {"cpu": "cpu_seconds", "network_bytes_in": "network_in", "network_bytes_out": "network_out"}


class Meter:
    def __init__(self, quota: Callable[[str], Quota], database: Database, clock: Clock) -> None:
        self._quota = quota
        self._database = database
        self._clock = clock
        self._pending: Counter[tuple[str, int, str]] = Counter()
        self._hour: Counter[tuple[str, str]] = Counter()
        """Amounts of the present hour, by tenant and name."""
        self._now = 0
        self._memory: Counter[str] = Counter()
        self._disk: Counter[str] = Counter()
        self.without_network: frozenset[str] = frozenset()
        """Tenants whose traffic of this hour is used up; read by the networks' threads."""

    def _turn(self) -> int:
        """The present hour; what was counted for the last one is of no more interest."""
        hour = int(self._clock.time()) // _HOUR
        if hour != self._now:
            self._now = hour
            self._hour.clear()
            for tenant, at, name, amount in self._database.usage():
                if at == hour:
                    self._hour[tenant, name] = amount  # type: ignore[assignment]
        return hour

    def count(self, tenant: str, name: str, amount: float) -> None:
        """Add to a tenant's usage of this hour."""
        hour = self._turn()
        self._pending[tenant, hour, name] += amount  # type: ignore[assignment]
        self._hour[tenant, name] += amount  # type: ignore[assignment]

    def count_time(self, all_held: Iterable[Held], seconds: float) -> None:
        counts = Counter(held.record.tenant for held in all_held if held.guest is not None)
        for tenant, number in counts.items():
            self.count(tenant, "sandbox_seconds", number * seconds)
        for tenant, amount in self._memory.items():
            self.count(tenant, "memory_mb_seconds", amount / (1 << 20) * seconds)

    def flush(self) -> None:
        if self._pending:
            self._database.add_usage(dict(self._pending))
            self._pending.clear()

    def refusal(self, tenant: str) -> str | None:
        """Why nothing may be started for a tenant now."""
        quota = self._quota(tenant)
        self._turn()
        if self._memory[tenant] > quota.memory_mb << 20:
            return f"Your sandboxes use more than {quota.memory_mb} MiB of memory"
        if self._hour[tenant, "cpu_seconds"] > quota.cpu_seconds_per_hour:
            return f"Your sandboxes have used their {quota.cpu_seconds_per_hour} s of processor time of this hour"
        if self._disk[tenant] > quota.disk_mb << 20:
            return f"The files of your sandboxes take more than {quota.disk_mb} MiB"
        return None

    async def sample_all(self, all_held: list[Held]) -> None:
        """Measure the sandboxes that were used since they were measured last."""
        for held in all_held:
            guest = held.guest
            if guest is not None and held.state == "running" and (guest.jobs or guest.streams or _is_stale(guest)):
                with suppress(SandboxError):
                    await self.sample(held, guest)
                await self._clock.sleep(0)
        memory: Counter[str] = Counter()
        disk: Counter[str] = Counter()
        for held in all_held:
            if held.guest is not None and held.guest.samples:
                memory[held.record.tenant] += int(held.guest.samples[-1].get("memory", 0))
                held.record.size = int(held.guest.samples[-1].get("bytes", 0))
            disk[held.record.tenant] += held.record.size
        self._memory, self._disk = memory, disk
        self._turn()
        tenants = {held.record.tenant for held in all_held}
        self.without_network = frozenset(
            tenant
            for tenant in tenants
            if self._hour[tenant, "network_in"] + self._hour[tenant, "network_out"]
            > self._quota(tenant).egress_mb_per_hour << 20
        )

    async def sample(self, held: Held, guest: Guest, *, fresh: float = _FRESH) -> None:
        """Measure a sandbox, unless that was done within `fresh` seconds. SandboxError."""
        if guest.samples and self._clock.monotonic() - guest.sampled < fresh:
            return
        guest.sampled = self._clock.monotonic()
        found: dict[str, Any] = {"at": self._clock.time(), **await guest.sandbox.stats()}
        last = guest.samples[-1] if guest.samples else {}  # perhaps of another call, while this one waited
        for name, told in _TOLD.items():
            if (growth := found.get(name, 0) - last.get(name, 0)) > 0:
                self.count(held.record.tenant, told, growth)
        seconds = max(found["at"] - last.get("at", found["at"] - found.get("uptime", 1.0)), 0.001)
        found["cpu_share"] = max(0.0, found.get("cpu", 0.0) - last.get("cpu", 0.0)) / seconds
        guest.samples.append(found)


def _is_stale(guest: Guest) -> bool:
    return not guest.samples or guest.used > guest.sampled
