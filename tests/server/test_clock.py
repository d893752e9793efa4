"""What the server does by the clock, on one that the test moves: nothing here waits for time to pass.

Each guarantee is checked just before its moment and at it. `test_control.py` has a timeout for real.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from belljar.api.async_sandbox import AsyncSandbox
from belljar.server.config import Config
from belljar.server.console.access import INVITATION_SECONDS, SESSION_SECONDS, Sessions
from belljar.server.database_host import Database
from belljar.server.errors import RpcError
from belljar.server.guest import Guest, Patience
from belljar.server.keys_host import create_key, find_key, new_id
from belljar.server.records import Held
from belljar.server.remote import Remote
from belljar.server.uploads_host import Uploads
from belljar.server.volumes import Keeper, Volumes
from belljar.store.store import Store
from tests.clock import ManualClock, let_run
from tests.server.in_process import TENANT, FakeSandbox, in_process, until


def state(held: Held) -> str:
    return held.state


# Timeouts.


async def test_a_timeout_pauses() -> None:
    async with in_process(store=Store.memory()) as server:
        held, sandbox = server.hold(timeout=300)
        await server.clock.advance(299.5)
        assert state(held) == "running"
        await server.clock.advance(0.5)
        assert (state(held), held.guest, sandbox.closed, sandbox.snapshots) == ("paused", None, True, 1)
        assert server.database.sandboxes()[0][0] == "paused"


@pytest.mark.parametrize("store", [True, False])
async def test_a_timeout_ends_what_is_not_to_be_kept(store: bool) -> None:
    async with in_process(store=Store.memory() if store else None) as server:
        held, sandbox = server.hold(timeout=300, pause=not store)
        await server.clock.advance(299.5)
        assert state(held) == "running"
        await server.clock.advance(0.5)
        assert (state(held), sandbox.closed, sandbox.snapshots) == ("killed", True, 0)
        assert held.record.id not in server.service.held
        assert server.database.sandboxes() == []


async def test_a_longer_timeout_counts_from_now() -> None:
    async with in_process(store=Store.memory()) as server:
        held, _ = server.hold(timeout=300)
        await server.clock.advance(200)
        path = f"/sandboxes/{held.record.id}/timeout"
        assert (await server.client.post(path, json={"timeout": 300})).status_code == 204
        await server.clock.advance(299.5)
        assert state(held) == "running"
        await server.clock.advance(0.5)
        assert state(held) == "paused"


async def test_a_refresh_never_shortens() -> None:
    async with in_process(store=Store.memory()) as server:
        held, _ = server.hold(timeout=300)
        path = f"/sandboxes/{held.record.id}/refreshes"
        assert (await server.client.post(path, json={"duration": 10})).status_code == 204
        await server.clock.advance(299.5)
        assert state(held) == "running"


async def test_a_pause_that_fails_is_tried_again() -> None:
    async with in_process(store=Store.memory()) as server:
        held, sandbox = server.hold(timeout=10)
        sandbox.refuses_snapshots = True
        await server.clock.advance(10.5)
        assert state(held) == "running"
        sandbox.refuses_snapshots = False
        await server.clock.advance(29)
        assert state(held) == "running"
        await server.clock.advance(1)
        assert state(held) == "paused"


async def test_a_pause_waits_for_calls_under_way_but_not_for_ever() -> None:
    async with in_process(store=Store.memory()) as server:
        held, sandbox = server.hold()
        assert held.guest is not None
        held.guest.busy = 1
        pausing = asyncio.create_task(server.service.pause(held))
        await server.clock.advance(4.9)
        assert (state(held), sandbox.snapshots) == ("pausing", 0)
        await server.clock.advance(0.2)
        await pausing
        assert (state(held), sandbox.snapshots) == ("paused", 1)


async def test_what_nobody_uses_is_paused() -> None:
    async with in_process(Config(idle_seconds=60), store=Store.memory()) as server:
        idle, _ = server.hold(timeout=3600)
        used, _ = server.hold(timeout=3600)
        await server.clock.advance(59)
        async with server.service.use(used):
            await server.clock.advance(120)
            assert (state(idle), state(used)) == ("paused", "running")
        await server.clock.advance(60)
        assert state(used) == "running"
        await server.clock.advance(0.5)
        assert state(used) == "paused"


async def test_what_was_used_gets_a_checkpoint() -> None:
    async with in_process(Config(checkpoint_seconds=60), store=Store.memory()) as server:
        held, sandbox = server.hold(timeout=3600)
        await server.clock.advance(100)
        assert sandbox.snapshots == 0
        async with server.service.use(held):
            pass
        await server.clock.advance(0.25)
        assert (sandbox.snapshots, held.checkpoint) == (1, "snapshot-1")
        await server.clock.advance(600)
        assert sandbox.snapshots == 1


async def test_a_server_that_leaves_waits_for_pauses_but_not_for_ever() -> None:
    async with in_process(Config(drain_seconds=30), store=Store.memory()) as server:
        quick, _ = server.hold()
        slow, _ = server.hold()
        async with slow.lock:
            leaving = asyncio.create_task(server.service.drain())
            await server.clock.advance(29.9)
            assert (state(quick), state(slow), leaving.done()) == ("paused", "running", False)
            await server.clock.advance(0.2)
            await leaving
            assert state(slow) == "running"


# Quotas and usage.


async def test_commands_a_minute() -> None:
    async with in_process() as server:
        server.set_quota('{"execs_per_minute": 2}')

        def taken() -> bool:
            try:
                server.service.charge_exec(TENANT)
            except RpcError as error:
                if error.code != "resource_exhausted":
                    raise
                return False
            return True

        assert [taken() for _ in range(4)] == [True, True, False, False]
        await server.clock.advance(29)
        assert not taken()
        await server.clock.advance(1)
        assert [taken(), taken()] == [True, False]


async def test_a_quota_is_read_again() -> None:
    async with in_process() as server:
        assert server.service.quota(TENANT).sandboxes == 100
        server.set_quota('{"sandboxes": 7}')
        await server.clock.advance(2)
        assert server.service.quota(TENANT).sandboxes == 100
        await server.clock.advance(0.1)
        assert server.service.quota(TENANT).sandboxes == 7


async def test_usage_is_written_every_few_seconds() -> None:
    async with in_process() as server:
        server.hold(timeout=3600)
        server.hold(timeout=3600)
        await server.clock.advance(9.5)
        assert server.database.usage() == []
        await server.clock.advance(0.5)
        hour = int(server.clock.time()) // 3600
        assert (TENANT, hour, "sandbox_seconds", 20.0) in server.database.usage()


async def test_processor_time_is_counted_by_the_hour() -> None:
    async with in_process() as server:
        _, sandbox = server.hold(timeout=7200)
        server.set_quota('{"cpu_seconds_per_hour": 10}')
        sandbox.measured = {"cpu": 11.0, "memory": 1.0, "bytes": 1.0}
        await server.clock.advance(5)
        assert "processor time" in str(server.service.meter.refusal(TENANT))
        await server.clock.advance(3600 - server.clock.time() % 3600 - 1)
        assert "processor time" in str(server.service.meter.refusal(TENANT))
        await server.clock.advance(1)
        assert server.service.meter.refusal(TENANT) is None


async def test_what_the_console_measures_is_counted() -> None:
    async with in_process() as server:
        held, sandbox = server.hold(timeout=7200)
        key = find_key(server.database, server.client.headers["X-API-KEY"])
        assert key is not None
        cookie = {"Cookie": f"{server.sessions.cookie}={server.sessions.begin(key)}"}
        sandbox.measured = {"cpu": 2.0}
        for path in ("/sandboxes", f"/sandboxes/{held.record.id}/samples"):
            assert (await server.client.get(f"/console/api{path}", headers=cookie)).status_code == 200
        (told,) = (await server.client.get(f"/sandboxes/{held.record.id}/metrics")).json()
        assert told["cpuUsedPct"] > 0
        sandbox.measured = {"cpu": 3.0}
        await server.clock.advance(1)
        async with server.service.use(held):
            pass
        await server.clock.advance(4)
        server.service.meter.flush()
        assert [amount for *_, name, amount in server.database.usage() if name == "cpu_seconds"] == [3.0]


async def test_the_network_is_off_until_the_hour_is_over() -> None:
    async with in_process() as server:
        held, sandbox = server.hold(timeout=7200)
        server.set_quota('{"egress_mb_per_hour": 1}')
        sandbox.measured = {"network_bytes_in": 2 << 20}
        await server.clock.advance(5)
        assert server.service.meter.without_network == {TENANT}
        assert held.guest is not None
        await server.clock.advance(3600 - server.clock.time() % 3600 + 5)
        assert server.service.meter.without_network == frozenset()


async def test_quotas_of_what_a_real_sandbox_uses() -> None:
    async with in_process() as server:
        made = (await server.client.post("/v2/sandboxes", json={"templateID": "base", "timeout": 7200})).json()
        headers = {"E2b-Sandbox-Id": made["sandboxID"], "X-Access-Token": made["envdAccessToken"]}

        async def run(code: str) -> tuple[int, str]:
            body = {"code": code, "language": "bash"}
            answer = await server.client.post("/execute", json=body, headers=headers, timeout=60)
            return answer.status_code, answer.text

        assert (await run("head -c 20000000 /dev/urandom > big"))[0] == 200
        await server.clock.advance(5)
        (held,) = server.service.held.values()
        await until(lambda: held.record.size >= 20_000_000)
        for quota, word in (
            ('{"memory_mb": 1}', "memory"),
            ('{"disk_mb": 10}', "files"),
            ('{"cpu_seconds_per_hour": 0}', "processor"),
        ):
            server.set_quota(quota)
            await server.clock.advance(3)
            status, text = await run(":")
            assert (status, word in text) == (429, True), text
            again = await server.client.post("/v2/sandboxes", json={"templateID": "base"})
            assert again.status_code == 429
        server.set_quota("{}")
        await server.clock.advance(3)
        assert (await run(":"))[0] == 200
        server.service.meter.flush()
        usage = {name: amount for _, _, name, amount in server.database.usage(TENANT)}
        assert usage["cpu_seconds"] > 0
        assert usage["memory_mb_seconds"] > 0
        assert usage["sandbox_seconds"] > 0


# Keys, links and sessions.


async def test_wrong_keys_are_answered_again_after_a_while() -> None:
    async with in_process() as server:

        async def guess() -> int:
            return (await server.client.get("/v2/sandboxes", headers={"X-API-KEY": "bj_" + "0" * 42})).status_code

        assert [await guess() for _ in range(32)] == [401] * 30 + [429] * 2
        await server.clock.advance(29)
        assert await guess() == 429
        await server.clock.advance(1)
        assert [await guess(), await guess()] == [401, 429]
        assert (await server.client.get("/v2/sandboxes")).status_code == 200


async def test_a_link_to_a_port_expires() -> None:
    async with in_process() as server:
        held, _ = server.hold()
        made = (await server.client.post(f"/sandboxes/{held.record.id}/ports/8000", json={"seconds": 60})).json()
        token = made["pathUrl"].partition("belljar=")[2]

        async def look() -> int:
            request = server.client.build_request("GET", f"/p/{held.record.id}/8000~{token}/")
            del request.headers["X-API-KEY"]
            return (await server.client.send(request)).status_code

        await server.clock.advance(60)
        assert await look() == 502  # it is let in, and nothing listens
        await server.clock.advance(1)
        assert await look() == 403


async def test_a_signed_url_of_a_file_expires() -> None:
    async with in_process() as server:
        held, _ = server.hold(timeout=3600)
        until = int(server.clock.time()) + 60
        signature = server.service.tokens.signature(held.record.id, "a", "read", "", str(until))
        query: dict[str, Any] = {"path": "a", "signature": signature, "signature_expiration": until}
        await server.clock.advance(61)
        answer = await server.client.get("/files", params=query)
        assert (answer.status_code, answer.json()["message"]) == (401, "signature is already expired")


async def test_where_to_put_a_templates_files_expires() -> None:
    async with in_process(store=Store.memory()) as server:
        made = (await server.client.post("/v3/templates", json={"name": "mine"})).json()
        given = await server.client.get(f"/templates/{made['templateID']}/files/{'0' * 64}")
        url = given.json()["url"]
        assert (await server.client.put(url, content=b"x")).status_code == 200
        await server.clock.advance(3600)
        assert (await server.client.put(url, content=b"x")).status_code == 200
        await server.clock.advance(1)
        assert (await server.client.put(url, content=b"x")).status_code == 401


async def test_sessions_and_invitations_of_the_console_expire() -> None:
    clock, database = ManualClock(), Database(None)
    sessions = Sessions(database, clock)
    key = find_key(database, create_key(database, TENANT, "k", clock=clock))
    assert key is not None
    session, used, late = sessions.begin(key), sessions.invite(key), sessions.invite(key)
    await clock.advance(INVITATION_SECONDS - 1)
    assert sessions.redeem(used) == key
    assert sessions.redeem(used) is None
    await clock.advance(1)
    assert sessions.redeem(late) is None
    await clock.advance(SESSION_SECONDS - INVITATION_SECONDS - 1)
    assert sessions.find(session) == key
    await clock.advance(1)
    assert sessions.find(session) is None
    database.close()


def test_ids_and_keys_come_from_the_random_source_that_is_given() -> None:
    database = Database(None)
    keys = [create_key(database, TENANT, "k", randbelow=random.Random(seed).randrange) for seed in (1, 2)]
    assert len(set(keys)) == 2
    assert new_id(random.Random(1).randrange) == new_id(random.Random(1).randrange)
    database.close()


# Streams and processes.


async def test_a_stream_has_signs_of_life_until_its_clients_time_is_over() -> None:
    clock = ManualClock()
    patience = Patience(clock, 10.0, clock.monotonic() + 25.0)
    queue: asyncio.Queue[str] = asyncio.Queue()
    for _ in range(2):
        waiting = asyncio.create_task(patience.next(queue))
        await clock.advance(9.9)
        assert not waiting.done()
        await clock.advance(0.1)
        assert await waiting == {"keepalive": {}}
    waiting = asyncio.create_task(patience.next(queue))
    await clock.advance(4.9)
    assert not waiting.done()
    await clock.advance(0.1)
    with pytest.raises(RpcError) as refused:
        await waiting
    assert refused.value.code == "deadline_exceeded"
    await queue.put("event")
    assert await patience.next(queue) == "event"


class EndlessProcess:
    """Says nothing, and ends when it is killed."""

    pid = 7

    def __init__(self) -> None:
        self.killed = asyncio.Event()
        self.stdout, self.stderr = self._output(), self._output()
        self.command = SimpleNamespace(
            kill_all=self.killed.set, state=SimpleNamespace(exited=SimpleNamespace(signal=9, code=-1))
        )

    async def _output(self) -> AsyncIterator[bytes]:
        await self.killed.wait()
        for piece in list[bytes]():
            yield piece

    async def wait(self) -> None:
        await self.killed.wait()


async def test_a_process_is_killed_at_its_timeout_and_its_end_is_known_for_a_while() -> None:
    clock, process, sandbox = ManualClock(), EndlessProcess(), FakeSandbox()

    async def spawn(argv: list[str], **options: Any) -> Any:
        return process

    sandbox.spawn = spawn  # type: ignore[attr-defined]
    guest = Guest(cast(AsyncSandbox, sandbox), clock)
    config = {"cmd": "sleep", "args": ["1000"]}
    job, _ = await guest.spawn(config, ["sleep"], env={}, cwd="/", stdin=False, size=None, tag="t", timeout=60)
    await clock.advance(59.9)
    assert (guest.find(7, None), job.end) == (job, None)
    await clock.advance(0.1)
    assert job.end is not None
    assert job.end["status"] == "signal: killed"
    with pytest.raises(RpcError):
        guest.find(7, None)
    await clock.advance(30)
    assert guest.find(7, None, ended=True) is guest.find(None, "t", ended=True) is job
    await clock.advance(1)
    with pytest.raises(RpcError):
        guest.find(7, None, ended=True)
    await guest.close()


# What is kept.


async def _bytes(data: bytes) -> AsyncIterator[bytes]:
    yield data


async def test_uploads_are_kept_for_a_day_after_their_last_use(tmp_path: Path) -> None:
    clock = ManualClock()
    uploads, one, two, three = Uploads(str(tmp_path), clock), "1" * 64, "2" * 64, "3" * 64
    for number in (one, two):
        await uploads.write(TENANT, number, _bytes(b"x"))
    await clock.advance(86400)
    assert uploads.find(TENANT, one) is not None
    await clock.advance(1)
    await uploads.write(TENANT, three, _bytes(b"x"))
    assert uploads.find(TENANT, one) is not None
    assert uploads.find(TENANT, two) is None


async def test_the_sandbox_of_a_volumes_files_is_closed_when_nobody_asks() -> None:
    async with in_process() as server:
        volumes, sandbox = Volumes(server.service, cast(Any, None), cast(Any, None)), FakeSandbox()
        keeper = Keeper(cast(AsyncSandbox, sandbox), server.clock.monotonic())
        volumes._keepers["v"] = keeper
        server.service.background(volumes._close_idle("v", keeper))
        keeper.busy = 1
        await server.clock.advance(100)
        assert sandbox.closes == 0
        keeper.busy, keeper.used = 0, server.clock.monotonic()
        await server.clock.advance(19.9)
        assert sandbox.closes == 0
        await server.clock.advance(2.1)
        assert sandbox.closes == 1
        assert volumes._keepers == {}


# Clients of our own protocol.


async def test_a_client_that_is_gone_for_too_long_is_given_up() -> None:
    async with in_process(Config(session_seconds=60), store=Store.memory()) as server:
        held, _ = server.hold(timeout=20)
        remote = Remote(server.service, cast(Any, None))
        said: list[str] = []

        def finish(kind: str, text: str) -> None:
            said.append(text)
            remote.forget(cast(Any, session))

        session = SimpleNamespace(held=held, token="t", lost=None, finish=finish)
        remote._sessions["t"] = cast(Any, session)
        server.service.background(remote._watch())
        await server.clock.advance(300)
        assert state(held) == "running"  # while its client is there, its timeout does not come
        session.lost = server.clock.monotonic()
        await server.clock.advance(60)
        assert (said, state(held)) == ([], "running")
        await server.clock.advance(1.5)
        assert said == ["the client was gone for too long"]
        assert state(held) == "paused"


# The clock itself.


async def test_the_clock_of_tests() -> None:
    clock, order = ManualClock(), []

    async def wait(name: str, seconds: float) -> None:
        await clock.sleep(seconds)
        order.append((name, clock.monotonic() - 1000))

    async def bounded() -> None:
        try:
            async with clock.timeout(3):
                await clock.sleep(100)
        except TimeoutError:
            order.append(("bounded", clock.monotonic() - 1000))
        async with clock.timeout(3):
            await clock.sleep(1)
        async with clock.timeout(None):
            await clock.sleep(1)
        order.append(("after", clock.monotonic() - 1000))

    tasks = [asyncio.create_task(each) for each in (wait("b", 2), wait("a", 1), bounded())]
    await clock.advance(0.5)
    assert order == []
    await clock.advance(10)
    assert order == [("a", 1.0), ("b", 2.0), ("bounded", 3.0), ("after", 5.0)]
    await asyncio.gather(*tasks)
    with pytest.raises(TimeoutError):
        async with clock.timeout(0):
            await let_run()
