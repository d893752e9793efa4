"""Sandboxes of all tenants: made, used, paused, resumed and ended, by their clients or by the clock."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import msgspec

from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.clock_host import monotonic, wall_time
from belljar.api.errors import ImageError, SandboxClosed, SandboxError, SnapshotError
from belljar.api.snapshot import Snapshot
from belljar.net.rate import Rate
from belljar.server.config import Config, Quota
from belljar.server.database_host import Database, SnapshotRow
from belljar.server.egress import Egress, Wanted
from belljar.server.errors import ApiError, RpcError, SandboxGone, not_found
from belljar.server.guest import HOME, USER, Guest
from belljar.server.keys_host import Tokens, new_id
from belljar.server.metrics import Metrics
from belljar.server.records import Held, Record
from belljar.store.errors import StoreError
from belljar.store.snapshot import IMAGE
from belljar.store.store import Store

log = logging.getLogger("belljar.server")

TEMPLATES: Final = frozenset({"base", "code-interpreter-v1", "code-interpreter"})
"""Names of the built-in image: clients of the protocol ask for these unless they are told otherwise."""
_TICK: Final = 0.25
_FLUSH: Final = 10.0
_QUIET: Final = 5.0
"""Seconds that a pause waits for calls under way."""
_RETRY: Final = 30.0
"""Seconds until a pause that failed is tried again."""
_REMEMBERED: Final = 10_000
"""Idempotency keys."""
_SAMPLE_SECONDS: Final = 5.0
_HOUR: Final = 3600
_LABEL: Final = "server/"


class Service:
    def __init__(self, config: Config, database: Database, store: Store | None, metrics: Metrics) -> None:
        self.config = config
        self.database = database
        self.store = store
        self.metrics = metrics
        self.tokens = Tokens(database.secret("tokens"))
        self.held: dict[str, Held] = {}
        self.draining = False
        self.ready = False
        self._starting: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        self._execs: dict[str, Rate] = {}
        self._quotas: dict[str, tuple[float, Quota]] = {}
        self._usage: Counter[tuple[str, int, str]] = Counter()
        self._starts = asyncio.Semaphore(config.starts)
        self._tenant_starts: dict[str, asyncio.Semaphore] = {}
        self._once: dict[tuple[str, str], asyncio.Future[Held]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    # Beginning and end.

    async def start(self) -> None:
        """Take up what an earlier server left, and watch the clock."""
        await asyncio.to_thread(self._recover)
        self._background(self._watch_clock())
        self._background(self._warm_up())

    def _recover(self) -> None:
        """Paused sandboxes stay. Those that ran when the server ended go on from their last pause or checkpoint."""
        for state, text in self.database.sandboxes():
            record = msgspec.json.decode(text, type=Record)
            if state != "paused":
                record.ref = self._last_pause(record.id)
            if record.ref is None:
                log.warning("a sandbox was lost when the server ended", extra={"sandbox": record.id})
                self.database.drop_sandbox(record.id)
                continue
            held = self.held[record.id] = Held(record, "paused", Egress(self.config.allow_hosts, Wanted()))
            with suppress(ApiError):  # the operator grants less now
                held.egress.change(record.wanted)
            self._put(held)
        self._forget_older()

    def _forget_older(self) -> None:
        """Remove the pauses and checkpoints that no sandbox goes on from: the server was killed before it could."""
        needed = {held.record.ref for held in self.held.values()}
        for snapshot in Snapshot.list(self.store) if self.store is not None else ():
            ours = snapshot.label is not None and snapshot.label.startswith(_LABEL)
            if ours and snapshot.ref not in needed and not self.database.refers(snapshot.ref):
                with suppress(SnapshotError, StoreError):
                    snapshot.remove()

    def _last_pause(self, number: str) -> str | None:
        if self.store is None:
            return None
        with suppress(SnapshotError, StoreError):
            return Snapshot.find(_LABEL + number, self.store).ref
        return None

    async def _warm_up(self) -> None:
        """Have the zygote ready for the first client."""
        try:
            async with AsyncSandbox() as sandbox:
                await sandbox.exec("true")
            self.ready = True
        except SandboxError as error:
            log.error("no sandbox can be started: %s", error)

    async def drain(self) -> None:
        """Start nothing more, and pause (or end) what runs, within the configured time."""
        self.draining = True
        running = [held for held in self.held.values() if held.state != "paused"]
        if running:
            log.info("draining", extra={"sandboxes": len(running)})
            await asyncio.wait(
                [asyncio.ensure_future(self._expire(held, leaving=True)) for held in running],
                timeout=self.config.drain_seconds,
            )

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for held in list(self.held.values()):
            if held.guest is not None:
                await held.guest.close()
        self._flush()

    def _background(self, work: Any) -> None:
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # The clock.

    async def _watch_clock(self) -> None:
        flushed = monotonic()
        while True:
            await asyncio.sleep(_TICK)
            now, at = monotonic(), wall_time()
            for held in list(self.held.values()):
                if held.state != "running" or held.lock.locked() or held.guest is None:
                    continue
                if held.guest.sandbox.closed:
                    log.error("a sandbox ended by itself", extra=held.describe())
                    self._background(self.kill(held))
                elif self._is_over(held, held.guest, now, at):
                    self._background(self._expire(held))
                elif self._is_due(held.guest, now):
                    self._background(self._checkpoint(held, held.guest))
            if now - flushed >= _FLUSH:
                self._count_time(now - flushed)
                flushed = now
                try:
                    self._flush()
                except Exception:
                    log.exception("usage was not written")

    def _is_over(self, held: Held, guest: Guest, now: float, at: float) -> bool:
        if at >= held.record.end_at:
            return True
        idle = self.config.idle_seconds
        if idle is None or guest.busy or guest.streams or guest.jobs:
            return False
        return now - guest.used > idle

    def _is_due(self, guest: Guest, now: float) -> bool:
        """Whether a sandbox that was used since its last checkpoint is to have another."""
        seconds = self.config.checkpoint_seconds
        if seconds is None or self.store is None or now - guest.kept < seconds:
            return False
        return bool(guest.jobs or guest.streams) or guest.used > guest.kept

    async def _checkpoint(self, held: Held, guest: Guest) -> None:
        """Keep a sandbox that runs under its label, from where `_recover` takes it up."""
        async with held.lock:
            if held.guest is not guest:
                return
            guest.kept = monotonic()
            try:
                taken = await guest.sandbox.snapshot(_LABEL + held.record.id, self.store)
            except SandboxError as error:
                log.error("a checkpoint failed: %s", error, extra=held.describe())
                return
            before, held.checkpoint = held.checkpoint, taken.ref
        await self._release(before)

    async def _expire(self, held: Held, *, leaving: bool = False) -> None:
        """End or pause a sandbox whose time is over. One that can't be paused runs on, and it is tried again.

        If the tenant may keep no more, it ends, unless it is the server that leaves.
        """
        keep = self.store is not None and (held.record.pause_on_timeout or leaving)
        if keep and not leaving and not self._may_keep(held.record.tenant):
            log.warning("a sandbox ends at its timeout: its tenant may keep no more", extra=held.describe())
            keep = False
        try:
            async with held.lock:
                if held.state != "running":
                    return
                if keep:
                    await self._pause(held)
                    self.metrics.timeouts.labels("pause").inc()
                else:
                    await self._end(held)
                    self.metrics.timeouts.labels("kill").inc()
        except Exception:
            held.record.end_at = wall_time() + _RETRY
            log.exception("a sandbox could not be paused at its timeout", extra=held.describe())

    def _count_time(self, seconds: float) -> None:
        counts = Counter(held.record.tenant for held in self.held.values() if held.guest is not None)
        for tenant, number in counts.items():
            self.count(tenant, "sandbox_seconds", number * seconds)

    def _flush(self) -> None:
        if self._usage:
            self.database.add_usage(dict(self._usage))
            self._usage.clear()

    def count(self, tenant: str, name: str, amount: float) -> None:
        """Add to a tenant's usage of this hour."""
        self._usage[tenant, int(wall_time()) // _HOUR, name] += amount  # type: ignore[assignment]

    # Quotas.

    def quota(self, tenant: str) -> Quota:
        """The tenant's, read from the file again every few seconds."""
        at, quota = self._quotas.get(tenant, (0.0, self.config.quota))
        if not at or monotonic() - at > _FLUSH:
            given = msgspec.json.decode(self.database.quota(tenant), type=dict[str, int])
            usual = {name: getattr(self.config.quota, name) for name in Quota.__dataclass_fields__}
            quota = Quota(**{name: given.get(name, value) for name, value in usual.items()})
            self._quotas[tenant] = monotonic(), quota
        return quota

    def charge_exec(self, tenant: str) -> None:
        """Count a command or a run of code. RpcError when there were too many."""
        quota = self.quota(tenant)
        rate = self._execs.get(tenant)
        if rate is None or rate.per_second != quota.execs_per_minute / 60:
            rate = self._execs[tenant] = Rate(quota.execs_per_minute / 60, monotonic(), burst=60.0)
        if not rate.take(monotonic()):
            raise RpcError("resource_exhausted", f"more than {quota.execs_per_minute} commands a minute")
        self.count(tenant, "execs", 1)
        self.metrics.execs.inc()

    def check_streams(self, held: Held) -> None:
        """RpcError when a tenant has too many streams."""
        if self._streams[held.record.tenant] >= self.quota(held.record.tenant).streams:
            raise RpcError("resource_exhausted", "too many streams at a time")

    @contextmanager
    def stream(self, held: Held, guest: Guest) -> Iterator[None]:
        """Hold a place for an answer that is streamed. RpcError when there are too many."""
        tenant = held.record.tenant
        self.check_streams(held)
        self._streams[tenant] += 1
        guest.streams += 1
        try:
            yield
        finally:
            self._streams[tenant] -= 1
            guest.streams -= 1
            guest.used = monotonic()

    def _check_room(self, tenant: str, count: int = 1) -> None:
        most = self.quota(tenant).sandboxes
        running = sum(held.record.tenant == tenant and held.guest is not None for held in self.held.values())
        if running + self._starting[tenant] + count > most:
            raise ApiError(429, f"You have reached the maximum number of concurrent sandboxes ({most})")

    def _may_keep(self, tenant: str) -> bool:
        kept = sum(held.record.tenant == tenant and held.guest is None for held in self.held.values())
        return kept + len(self.database.snapshots(tenant)) < self.quota(tenant).kept

    def _check_kept(self, tenant: str) -> None:
        if not self._may_keep(tenant):
            most = self.quota(tenant).kept
            raise ApiError(429, f"You have reached the maximum number of paused sandboxes and snapshots ({most})")

    @asynccontextmanager
    async def _room(self, tenant: str, count: int = 1) -> AsyncIterator[None]:
        """Hold places for sandboxes that are being started; tenants wait for each other's starts, in turn."""
        if self.draining:
            raise ApiError(503, "The server is shutting down", {"Retry-After": "5", "Should-Retry": "true"})
        self._check_room(tenant, count)
        mine = self._tenant_starts.setdefault(tenant, asyncio.Semaphore(max(1, self.config.starts // 2)))
        self._starting[tenant] += count
        try:
            async with mine, self._starts:
                yield
        finally:
            self._starting[tenant] -= count

    # What clients ask for.

    def find(self, tenant: str, number: str) -> Held:
        """A sandbox of the tenant's. ApiError 404, the same for one that is another's."""
        held = self.held.get(number)
        if held is None or held.record.tenant != tenant:
            raise not_found(number)
        return held

    async def create_once(self, tenant: str, key: str | None, make: Callable[[], Awaitable[Held]]) -> Held:
        """Make a sandbox, or give the one that was made for the same idempotency key."""
        if key is None:
            return await make()
        known = self._once.get((tenant, key))
        if known is not None:
            held = await asyncio.shield(known)
            if held.state != "killed":
                return held
        making = self._once[tenant, key] = asyncio.ensure_future(make())
        while len(self._once) > _REMEMBERED:
            del self._once[next(iter(self._once))]
        try:
            return await asyncio.shield(making)
        except BaseException:
            if making.done():
                self._once.pop((tenant, key), None)
            raise

    async def create(self, record: Record, env: dict[str, str]) -> Held:
        """Start a sandbox for a record. ApiError."""
        held = Held(record, "running", Egress(self.config.allow_hosts, record.wanted))
        row = self._snapshot_row(record.tenant, record.template)
        async with self._room(record.tenant):
            began = monotonic()
            sandbox = await self._make(held, row, env)
            await self._started(held, sandbox)
            self.metrics.start_seconds.observe(monotonic() - began)
        return held

    async def _make(self, held: Held, row: SnapshotRow | None, env: dict[str, str]) -> AsyncSandbox:
        options = self._options(held)
        try:
            if row is not None:
                held.record.ref = row.ref
                held.record.template = row.id
                return await AsyncSandbox.restore(row.ref, self.store, env=env, **options)
            image = await asyncio.to_thread(self._image, held.record.template)
            options |= {"store": self.store, "user": USER, "hostname": "sandbox"}
            made = AsyncSandbox(image=image, env=env, cwd=HOME, **options)
            return await made.start()
        except (TypeError, ValueError) as error:
            raise ApiError(400, f"Error when parsing request: {error}") from None

    def _options(self, held: Held) -> dict[str, Any]:
        """Options of every sandbox, new or restored."""
        return {"network": held.egress.network(), "limits": self.config.limits, "tier": self.config.tier}

    def _image(self, template: str) -> str | None:
        """The image of a template's name; None: the built-in one. ApiError 404."""
        if template in TEMPLATES:
            return None
        with suppress(StoreError, ImageError):
            if self.store is not None and template.replace("-", "").isalnum() and self.store.get(IMAGE + template):
                return template
        raise ApiError(404, f"template '{template}' not found")

    def _snapshot_row(self, tenant: str, name: str) -> SnapshotRow | None:
        """A snapshot of the tenant's, by its id or name."""
        name = name.removesuffix(":default")
        for row in self.database.snapshots(tenant):
            if name in (row.id, row.name):
                return row
        return None

    async def _started(self, held: Held, sandbox: AsyncSandbox) -> None:
        """It runs: remember that, or end it."""
        before = held.state
        held.state = "running"
        try:
            self._put(held)
        except BaseException:
            held.state = before
            await sandbox.close()
            raise
        held.guest = Guest(sandbox)
        self.held[held.record.id] = held
        self.metrics.starts.inc()

    def _put(self, held: Held, *, durable: bool = False) -> None:
        record = held.record
        text = msgspec.json.encode(record).decode()
        self.database.put_sandbox(record.id, record.tenant, held.state, text, durable=durable)

    def set_timeout(self, held: Held, seconds: float, *, only_longer: bool = False) -> None:
        """Have it end so many seconds from now. ApiError."""
        self.check_timeout(seconds)
        end = wall_time() + seconds
        if not only_longer or end > held.record.end_at:
            held.record.end_at = end
            held.record.timeout = seconds
            self._put(held)

    def check_timeout(self, seconds: float) -> None:
        if seconds < 0:
            raise ApiError(400, "Timeout cannot be negative")
        if seconds > self.config.timeout_max:
            raise ApiError(400, f"Timeout cannot be greater than {self.config.timeout_max / _HOUR:g} hours")

    async def pause(self, held: Held) -> None:
        """Keep it in the store, and end it. ApiError, SandboxError."""
        if self.store is None:
            raise ApiError(400, "This server keeps no sandboxes: start it with --store to pause them")
        async with held.lock:
            if held.state == "killed":
                raise not_found(held.record.id)
            if held.state != "running":
                raise ApiError(409, f"Sandbox '{held.record.id}' cannot be paused while in 'paused' state")
            self._check_kept(held.record.tenant)
            await self._pause(held)

    async def _pause(self, held: Held) -> None:
        """By the holder of the lock. A pause is acknowledged when the store and the server's file are synced."""
        guest, before = held.guest, held.record.ref
        assert guest is not None
        held.state = "pausing"
        self._put(held)
        try:
            await self._quiet(guest)
            snapshot = await guest.sandbox.snapshot(_LABEL + held.record.id, self.store)
            held.record.ref = snapshot.ref
            held.state = "paused"
            self._put(held, durable=True)
        except BaseException as error:
            held.state, held.record.ref = "running", before
            if isinstance(error, SandboxClosed):
                await self._end(held)
            raise
        held.guest = None
        await guest.close()
        self.metrics.pauses.inc()
        await self._release(before)
        await self._release_checkpoint(held)

    async def _quiet(self, guest: Guest) -> None:
        """Wait for calls under way, so that none is acknowledged whose work is not kept."""
        until = monotonic() + _QUIET
        while guest.busy and monotonic() < until:
            await asyncio.sleep(0.01)

    async def resume(self, held: Held, seconds: float | None = None) -> None:
        """Go on with a paused sandbox; nothing if it runs. ApiError, SandboxError."""
        async with held.lock:
            if held.state == "running":
                return
            if held.state == "killed":
                raise not_found(held.record.id)
            assert held.record.ref is not None
            async with self._room(held.record.tenant):
                sandbox = await AsyncSandbox.restore(held.record.ref, self.store, **self._options(held))
                held.record.end_at = wall_time() + (held.record.timeout if seconds is None else seconds)
                await self._started(held, sandbox)
                self.metrics.resumes.inc()

    async def kill(self, held: Held) -> None:
        async with held.lock:
            await self._end(held)

    async def _end(self, held: Held) -> None:
        if held.state == "killed":
            return
        self.database.drop_sandbox(held.record.id)
        held.state = "killed"
        self.held.pop(held.record.id, None)
        if held.guest is not None:
            await held.guest.close()
            held.guest = None
        await self._release(held.record.ref)
        await self._release_checkpoint(held)

    async def _release_checkpoint(self, held: Held) -> None:
        ref, held.checkpoint = held.checkpoint, None
        await self._release(ref)

    async def _release(self, ref: str | None) -> None:
        """Let the store forget a snapshot that nothing needs: no client's, and none that a sandbox still reads from."""
        if ref is None or self.store is None or self.database.refers(ref):
            return
        if any(ref in (held.record.ref, held.checkpoint) for held in self.held.values()):
            return
        with suppress(SnapshotError, StoreError):
            await asyncio.to_thread(lambda: Snapshot.find(ref, self.store).remove())

    async def fork(self, held: Held, count: int, seconds: float) -> list[Held]:
        """Branches of a running sandbox. ApiError, SandboxError."""
        self.check_timeout(seconds)
        async with self._room(held.record.tenant, count), self.use(held) as guest:
            made = await guest.sandbox.fork(count)
            branches = [made] if isinstance(made, AsyncSandbox) else made
            now = round(wall_time(), 3)
            forks: list[Held] = []
            try:
                for branch in branches:
                    record = msgspec.structs.replace(
                        held.record,
                        id=new_id(),
                        created=now,
                        end_at=now + seconds,
                        timeout=seconds,
                        file_metadata=dict(held.record.file_metadata),
                    )
                    forks.append(Held(record, "running", held.egress))
                    await self._started(forks[-1], branch)
            except BaseException:
                for branch in branches:
                    await branch.close()  # the clock finds those that had started
                raise
            return forks

    async def snapshot(self, held: Held, name: str | None) -> SnapshotRow:
        """Keep a running sandbox as it is now; it goes on. ApiError, SandboxError."""
        if self.store is None:
            raise ApiError(400, "This server keeps no snapshots: start it with --store")
        tenant = held.record.tenant
        self._check_kept(tenant)
        if name is not None and (name in TEMPLATES or self._snapshot_row(tenant, name) is not None):
            raise ApiError(409, f"There is a template '{name}' already")
        async with self.use(held) as guest:
            taken = await guest.sandbox.snapshot(store=self.store)
        row = SnapshotRow(new_id(), tenant, held.record.id, name, taken.ref, held.record.template, wall_time())
        self.database.add_snapshot(row)
        return row

    async def delete_snapshot(self, tenant: str, name: str) -> None:
        row = self._snapshot_row(tenant, name)
        if row is None:
            raise ApiError(404, f"the template '{name}' wasn't found")
        self.database.drop_snapshot(row.id)
        await self._release(row.ref)

    @asynccontextmanager
    async def use(self, held: Held, *, resume: bool = False) -> AsyncIterator[Guest]:
        """The running sandbox, for one call; with `resume`, a paused one goes on first. SandboxGone, SandboxError."""
        if held.state != "running" and resume:
            await self.resume(held)
        guest = held.guest
        if held.state != "running" or guest is None:
            raise SandboxGone(held.record.id)
        guest.busy += 1
        guest.used = monotonic()
        try:
            yield guest
        finally:
            guest.busy -= 1
            guest.used = monotonic()

    async def sample(self, held: Held) -> list[dict[str, Any]]:
        """Measurements of the sandbox, the newest last; one is made if the last is old."""
        async with self.use(held) as guest:
            last = guest.samples[-1] if guest.samples else None
            if last is None or wall_time() - last["at"] >= _SAMPLE_SECONDS:
                guest.samples.append({"at": wall_time(), **await guest.sandbox.stats()})
            return list(guest.samples)
