"""Sandboxes of all tenants: made, used, paused, resumed and ended, by their clients or by the clock."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any, Final

import msgspec

from belljar.abi.clock import Clock
from belljar.api.async_sandbox import AsyncSandbox
from belljar.api.errors import ImageError, SandboxClosed, SandboxError, SnapshotError
from belljar.api.mounts import Mount
from belljar.api.snapshot import Snapshot
from belljar.net.rate import Rate
from belljar.server.assets_host import DEFAULT_TAG, Assets, Build, Credential, Volume
from belljar.server.config import Config, Quota
from belljar.server.database_host import Database, SnapshotRow
from belljar.server.egress import Egress, Wanted
from belljar.server.errors import ApiError, RpcError, SandboxGone, not_found
from belljar.server.guest import HOME, USER, Guest, LogLine
from belljar.server.keys_host import Tokens, new_id
from belljar.server.metrics import Metrics
from belljar.server.records import Held, Record
from belljar.server.uploads_host import Uploads
from belljar.server.usage import Meter
from belljar.server.volumes_host import VolumeDirectories
from belljar.store.errors import StoreError
from belljar.store.snapshot import IMAGE
from belljar.store.store import Store

log = logging.getLogger("belljar.server")

TEMPLATES: Final = frozenset({"base", "code-interpreter-v1", "code-interpreter"})
"""Names of the built-in image: clients of the protocol ask for these unless they are told otherwise."""
_TICK: Final = 0.25
_FLUSH: Final = 10.0
_QUOTA_SECONDS: Final = 2.0
"""How long a quota that was read is taken as the present."""
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
    def __init__(self, config: Config, database: Database, store: Store | None, metrics: Metrics, clock: Clock) -> None:
        self.config = config
        self.database = database
        self.store = store
        self.metrics = metrics
        self.clock = clock
        self.assets = Assets(database)
        self.volumes = VolumeDirectories(None if config.data is None else f"{config.data}.volumes")
        self.at_close: list[Callable[[], Awaitable[None]]] = []
        self._secrets = self.assets.secret_values()
        self.uploads = Uploads(None if config.data is None else f"{config.data}.uploads", clock)
        self.tokens = Tokens(database.secret("tokens"))
        self.held: dict[str, Held] = {}
        self.draining = False
        self.ready = False
        self._starting: Counter[str] = Counter()
        self._streams: Counter[str] = Counter()
        self._execs: dict[str, Rate] = {}
        self._quotas: dict[str, tuple[float, Quota]] = {}
        self.meter = Meter(self.quota, database, clock)
        self._starts = asyncio.Semaphore(config.starts)
        self._tenant_starts: dict[str, asyncio.Semaphore] = {}
        self._once: dict[tuple[str, str], asyncio.Future[Held]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()

    # Beginning and end.

    async def start(self) -> None:
        """Take up what an earlier server left, and watch the clock."""
        await asyncio.to_thread(self._recover)
        self.background(self._watch_clock())
        self.background(self._warm_up())

    def _recover(self) -> None:
        """Paused sandboxes stay. Those that ran when the server ended go on from their last pause or checkpoint."""
        self.assets.stop_builds(self.clock.time(), "the server ended during the build")
        for state, text in self.database.sandboxes():
            record = msgspec.json.decode(text, type=Record)
            if state != "paused":
                record.ref = self._last_pause(record.id)
            if record.ref is None:
                log.warning("a sandbox was lost when the server ended", extra={"sandbox": record.id})
                self.database.drop_sandbox(record.id)
                continue
            held = self.held[record.id] = Held(record, "paused", self._egress(record.tenant, Wanted()))
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
            leaving = [asyncio.ensure_future(self._expire(held, leaving=True)) for held in running]
            with suppress(TimeoutError):
                async with self.clock.timeout(self.config.drain_seconds):
                    await asyncio.wait(leaving)

    async def close(self) -> None:
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for held in list(self.held.values()):
            if held.guest is not None:
                await held.guest.close()
        for close in self.at_close:
            await close()
        self.meter.flush()
        self.uploads.close()
        self.volumes.close()

    def background(self, work: Any) -> None:
        """Do something until the server ends."""
        task = asyncio.ensure_future(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    # The clock.

    async def _watch_clock(self) -> None:
        flushed = sampled = self.clock.monotonic()
        while True:
            await self.clock.sleep(_TICK)
            now = self.clock.monotonic()
            for held in list(self.held.values()):
                if held.state != "running" or held.lock.locked() or held.guest is None:
                    continue
                if held.guest.sandbox.closed:
                    log.error("a sandbox ended by itself", extra=held.describe())
                    self.background(self.kill(held))
                elif self._is_over(held, held.guest, now):
                    self.background(self._expire(held))
                elif self._is_due(held.guest, now):
                    self.background(self._checkpoint(held, held.guest))
            if now - flushed >= _FLUSH:
                self.meter.count_time(self.held.values(), now - flushed)
                flushed = now
                try:
                    self.meter.flush()
                except Exception:
                    log.exception("usage was not written")
            if now - sampled >= _SAMPLE_SECONDS:
                sampled = now
                self.background(self.meter.sample_all(list(self.held.values())))

    def _is_over(self, held: Held, guest: Guest, now: float) -> bool:
        if now >= held.deadline:
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
            guest.kept = self.clock.monotonic()
            try:
                taken = await guest.sandbox.snapshot(_LABEL + held.record.id, self.store)
            except SandboxError as error:
                log.error("a checkpoint failed: %s", error, extra=held.describe())
                return
            before, held.checkpoint = held.checkpoint, taken.ref
        await self.release(before)

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
            held.record.end_at, held.deadline = self.clock.time() + _RETRY, self.clock.monotonic() + _RETRY
            log.exception("a sandbox could not be paused at its timeout", extra=held.describe())

    def count(self, tenant: str, name: str, amount: float) -> None:
        """Add to a tenant's usage of this hour."""
        self.meter.count(tenant, name, amount)

    # Quotas.

    def quota(self, tenant: str) -> Quota:
        """The tenant's, read from the file again every few seconds."""
        at, quota = self._quotas.get(tenant, (0.0, self.config.quota))
        if not at or self.clock.monotonic() - at > _QUOTA_SECONDS:
            given = msgspec.json.decode(self.database.quota(tenant), type=dict[str, int])
            usual = {name: getattr(self.config.quota, name) for name in Quota.__dataclass_fields__}
            quota = Quota(**{name: given.get(name, value) for name, value in usual.items()})
            self._quotas[tenant] = self.clock.monotonic(), quota
        return quota

    def charge_exec(self, tenant: str) -> None:
        """Count a command or a run of code. RpcError when there were too many."""
        quota = self.quota(tenant)
        rate = self._execs.get(tenant)
        if rate is None or rate.per_second != quota.execs_per_minute / 60:
            rate = self._execs[tenant] = Rate(quota.execs_per_minute / 60, self.clock.monotonic(), burst=60.0)
        if not rate.take(self.clock.monotonic()):
            raise RpcError("resource_exhausted", f"more than {quota.execs_per_minute} commands a minute")
        if (why := self.meter.refusal(tenant)) is not None:
            raise RpcError("resource_exhausted", why)
        self.meter.count(tenant, "execs", 1)
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
            guest.used = self.clock.monotonic()

    def _check_room(self, tenant: str, count: int = 1) -> None:
        if (why := self.meter.refusal(tenant)) is not None:
            raise ApiError(429, why)
        most = self.quota(tenant).sandboxes
        running = sum(held.record.tenant == tenant and held.guest is not None for held in self.held.values())
        if running + self._starting[tenant] + count > most:
            raise ApiError(429, f"You have reached the maximum number of concurrent sandboxes ({most})")

    def _may_keep(self, tenant: str) -> bool:
        kept = sum(held.record.tenant == tenant and held.guest is None for held in self.held.values())
        return kept + len(self.database.snapshots(tenant)) < self.quota(tenant).kept

    def check_kept(self, tenant: str) -> None:
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

    async def create(self, record: Record, env: dict[str, str], given: dict[str, Any] | None = None) -> Held:
        """Start a sandbox for a record, with options of its client's own if they are given. ApiError."""
        held = Held(record, "running", self._egress(record.tenant, record.wanted))
        row = self._snapshot_row(record.tenant, record.template)
        async with self._room(record.tenant):
            began = self.clock.monotonic()
            sandbox = await self._make(held, row, env, given or {})
            await self._started(held, sandbox)
            self.metrics.start_seconds.observe(self.clock.monotonic() - began)
        return held

    async def _make(
        self, held: Held, row: SnapshotRow | None, env: dict[str, str], given: dict[str, Any]
    ) -> AsyncSandbox:
        options = await self._options(held) | given
        try:
            if row is not None:
                held.record.ref = row.ref
                held.record.template = row.id
                return await AsyncSandbox.restore(row.ref, self.store, env=env, **options)
            build = self.find_build(held.record.tenant, held.record.template)
            if build is not None:
                image: str | None = build.image
                record = held.record
                record.template, record.start, record.ready = build.template, build.start, build.ready
                record.user, record.cwd = build.user or USER, build.cwd
                self.assets.count_spawn(build.template, self.clock.time())
            else:
                image = await asyncio.to_thread(self._image, held.record.template)
            if not held.record.remote:
                options = {"user": USER, "hostname": "sandbox", "cwd": HOME, **options}
            options["store"] = self.store
            made = AsyncSandbox(image=image, env=env, **options)
            return await made.start()
        except (TypeError, ValueError) as error:
            raise ApiError(400, f"Error when parsing request: {error}") from None

    async def _options(self, held: Held) -> dict[str, Any]:
        """Options of every sandbox, new or restored. ApiError."""
        if held.record.remote:  # limits are its client's, or its snapshot's; so is the network
            return {"tier": self.config.tier}
        options = {"network": held.egress.network(), "limits": self.config.limits, "tier": self.config.tier}
        if held.record.volumes:
            known = {volume.name: volume for volume in self.assets.volumes(held.record.tenant)}
            for name in held.record.volumes.values():
                if name not in known:
                    raise ApiError(404, f"Volume '{name[:128]}' not found")
            options["mounts"] = {
                path: await self.mount_volume(known[name]) for path, name in held.record.volumes.items()
            }
        return options

    async def mount_volume(self, volume: Volume) -> Mount:
        return await asyncio.to_thread(self.volumes.mount, volume.id, self.quota(volume.tenant).volume_mb << 20)

    def _egress(self, tenant: str, wanted: Wanted) -> Egress:
        """The network of a tenant's sandbox. ApiError."""

        def secret(name: str) -> str | None:
            return self._secrets.get((tenant, name.lower()))

        return Egress(self.config.allow_hosts, wanted, secret, lambda: tenant not in self.meter.without_network)

    def put_secret(self, tenant: str, credential: Credential, value: str) -> None:
        self.assets.put_credential(tenant, credential, value)
        self._secrets[tenant, credential.name] = value

    def drop_secret(self, tenant: str, credential: Credential) -> None:
        self.assets.drop_credential(credential.id)
        self._secrets.pop((tenant, credential.name), None)

    def _image(self, template: str) -> str | None:
        """The image of a template's name; None: the built-in one. ApiError 404."""
        if template in TEMPLATES:
            return None
        if self.names_image(template):
            return template
        raise ApiError(404, f"template '{template}' not found")

    def find_build(self, tenant: str, name: str) -> Build | None:
        """The build that a template's name or id means, with or without a tag. ApiError 404, 409 if it has none."""
        name, _, tag = name.removeprefix(f"{tenant}/").partition(":")
        template = self.assets.template(tenant, name)
        if template is None:
            return None
        build = self.assets.tagged(template.id, tag or DEFAULT_TAG)
        if build is None:
            raise ApiError(404, f"tag '{tag or DEFAULT_TAG}' does not exist for template '{name}'")
        if build.image is None:
            raise ApiError(409, f"template '{name}' is not built: {build.reason or build.status}")
        return build

    def names_image(self, name: str) -> bool:
        """Whether the operator gave the server's store an image of this name."""
        if self.store is None or not name.isascii() or not name.replace("-", "").replace("_", "").isalnum():
            return False
        with suppress(StoreError, ImageError):
            return self.store.get(IMAGE + name) is not None
        return False

    def names_snapshot(self, tenant: str, name: str) -> bool:
        return self._snapshot_row(tenant, name) is not None

    def _snapshot_row(self, tenant: str, name: str) -> SnapshotRow | None:
        """A snapshot of the tenant's, by its id or name."""
        name = name.removesuffix(":default")
        for row in self.database.snapshots(tenant):
            if name in (row.id, row.name):
                return row
        return None

    async def _started(self, held: Held, sandbox: AsyncSandbox) -> None:
        """It runs: remember that, or end it."""
        before, record = held.state, held.record
        held.state = "running"
        try:
            self._put(held)
        except BaseException:
            held.state = before
            await sandbox.close()
            raise
        held.guest = Guest(sandbox, self.clock, held.log)
        held.deadline = self.clock.monotonic() + record.end_at - self.clock.time()
        held.log.append(LogLine(self.clock.time(), "sandbox resumed" if before == "paused" else "sandbox started"))
        self.held[record.id] = held
        self.metrics.starts.inc()
        if record.start:
            try:
                await held.guest.launch(record.start, record.ready, record.user, record.cwd)
            except SandboxError:
                await self._end(held)
                raise

    def _put(self, held: Held, *, durable: bool = False) -> None:
        record = held.record
        text = msgspec.json.encode(record).decode()
        self.database.put_sandbox(record.id, record.tenant, held.state, text, durable=durable)

    def set_timeout(self, held: Held, seconds: float, *, only_longer: bool = False) -> None:
        """Have it end so many seconds from now. ApiError."""
        self.check_timeout(seconds)
        end = self.clock.monotonic() + seconds
        if not only_longer or end > held.deadline or held.guest is None:
            held.record.end_at, held.deadline = self.clock.time() + seconds, end
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
            self.check_kept(held.record.tenant)
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
        held.log.append(LogLine(self.clock.time(), "sandbox paused"))
        await self.release(before)
        await self._release_checkpoint(held)

    async def _quiet(self, guest: Guest) -> None:
        """Wait for calls under way, so that none is acknowledged whose work is not kept."""
        until = self.clock.monotonic() + _QUIET
        while guest.busy and self.clock.monotonic() < until:
            await self.clock.sleep(0.01)

    async def resume(self, held: Held, seconds: float | None = None) -> None:
        """Go on with a paused sandbox; nothing if it runs. ApiError, SandboxError."""
        async with held.lock:
            if held.state == "running":
                return
            if held.state == "killed":
                raise not_found(held.record.id)
            assert held.record.ref is not None
            async with self._room(held.record.tenant):
                sandbox = await AsyncSandbox.restore(held.record.ref, self.store, **await self._options(held))
                held.record.end_at = self.clock.time() + (held.record.timeout if seconds is None else seconds)
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
        await self.release(held.record.ref)
        await self._release_checkpoint(held)

    async def _release_checkpoint(self, held: Held) -> None:
        ref, held.checkpoint = held.checkpoint, None
        await self.release(ref)

    async def release(self, ref: str | None) -> None:
        """Let the store forget a snapshot that nothing needs: no client's, and none that a sandbox still reads from."""
        if ref is None or self.store is None or self.database.refers(ref):
            return
        if any(ref in (held.record.ref, held.checkpoint) for held in self.held.values()):
            return
        with suppress(SnapshotError, StoreError):
            await asyncio.to_thread(lambda: Snapshot.find(ref, self.store).remove())

    async def fork(
        self,
        held: Held,
        count: int,
        seconds: float,
        make: Callable[[AsyncSandbox], Awaitable[AsyncSandbox]] | None = None,
    ) -> list[Held]:
        """Branches of a running sandbox, or the one that `make` gives. ApiError, SandboxError."""
        self.check_timeout(seconds)
        async with self._room(held.record.tenant, count), self.use(held) as guest:
            made = await (guest.sandbox.fork(count) if make is None else make(guest.sandbox))
            branches = [made] if isinstance(made, AsyncSandbox) else made
            now = round(self.clock.time(), 3)
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
        self.check_kept(tenant)
        if name is not None and (
            name in TEMPLATES or self.names_snapshot(tenant, name) or self.assets.template(tenant, name)
        ):
            raise ApiError(409, f"There is a template '{name}' already")
        async with self.use(held) as guest:
            taken = await guest.sandbox.snapshot(store=self.store)
        row = SnapshotRow(new_id(), tenant, held.record.id, name, taken.ref, held.record.template, self.clock.time())
        self.database.add_snapshot(row)
        return row

    async def delete_snapshot(self, tenant: str, name: str) -> None:
        row = self._snapshot_row(tenant, name)
        if row is None:
            raise ApiError(404, f"the template '{name}' wasn't found")
        self.database.drop_snapshot(row.id)
        await self.release(row.ref)

    @asynccontextmanager
    async def use(self, held: Held, *, resume: bool = False) -> AsyncIterator[Guest]:
        """The running sandbox, for one call; with `resume`, a paused one goes on first. SandboxGone, SandboxError."""
        if held.state != "running" and resume:
            await self.resume(held)
        guest = held.guest
        if held.state != "running" or guest is None:
            raise SandboxGone(held.record.id)
        guest.busy += 1
        guest.used = self.clock.monotonic()
        try:
            yield guest
        finally:
            guest.busy -= 1
            guest.used = self.clock.monotonic()

    async def sample(self, held: Held) -> list[dict[str, Any]]:
        """Measurements of the sandbox, the newest last; one is made if the last is old."""
        async with self.use(held) as guest:
            await self.meter.sample(held, guest)
            return list(guest.samples)
