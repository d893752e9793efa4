"""The gate: names through hostile resolvers, the policy's many ways to fail, pins, limits and the record."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Coroutine
from ipaddress import ip_address
from typing import Any

import pytest

from belljar.net.attribution import GRACE, KEEP_MAX, NAMES_MAX, Attribution
from belljar.net.broker.gate_host import Gate
from belljar.net.broker.stream_host import Stream
from belljar.net.errors import NetError
from belljar.net.network import Network, NetworkLimits
from belljar.net.policy import Conn, Denied
from belljar.net.rate import Rate
from tests.net.servers import DnsServer, HttpServer, Tripwire
from tests.net.servers.dns import Zone, chain, compression_loop, lying_counts, rebinding

PUBLIC = "93.184.215.14"
QUICK = NetworkLimits(connect_seconds=0.5, policy_seconds=0.5)


def run(work: Coroutine[Any, Any, Any]) -> Any:
    async def main() -> Any:
        async with asyncio.timeout(60):
            return await work

    return asyncio.run(main())


def gated(
    network: Network, work: Callable[[Gate], Coroutine[Any, Any, Any]], **options: Any
) -> tuple[Any, list[dict[str, Any]]]:
    events: list[dict[str, Any]] = []

    async def main() -> Any:
        gate = Gate(network, emit=events.append, **options)
        result = await work(gate)
        await gate.record.written()
        return result

    return run(main()), events


def kind_of(network: Network, work: Callable[[Gate], Coroutine[Any, Any, Any]]) -> NetError:
    with pytest.raises(NetError) as caught:
        gated(network, work)
    return caught.value


# Names.


def resolve(
    zone: Zone | dict[str, list[str]], name: str, kind: str = "A", **options: Any
) -> tuple[list[str], list[str]]:
    with DnsServer(zone, **options) as server:
        network = Network.allow(name, resolvers=[server.authority])
        (lines, addresses), _ = gated(network, lambda gate: gate.resolve(name, kind))
        return lines, [str(address) for address in addresses]


def test_a_name_is_answered_and_remembered() -> None:
    with DnsServer({"a.example": [PUBLIC, "2606:4700::1"]}) as server:
        network = Network.allow("a.example", resolvers=[server.authority])

        async def work(gate: Gate) -> tuple[str, ...]:
            lines, addresses = await gate.resolve("a.example", "A")
            assert lines == [f"a.example 60 A {PUBLIC}"]
            await gate.resolve("a.example", "A")
            return gate.names.names(addresses[0], gate.clock())

        names, events = gated(network, work)
        assert names == ("a.example",)
        assert server.questions == [("a.example", "A")]
        assert [event["verdict"] for event in events] == ["accepted", "accepted"]


def test_a_denied_name_never_reaches_a_resolver() -> None:
    with DnsServer({"evil.example": [PUBLIC]}) as server:
        network = Network.allow("good.example", resolvers=[server.authority])
        for name, kind in (("evil.example", "A"), ("x" * 60 + ".evil.example", "TXT"), ("good.example", "TXT")):
            assert kind_of(network, lambda gate, n=name, k=kind: gate.resolve(n, k)).kind == "denied"  # type: ignore[misc]
        assert server.questions == []


@pytest.mark.parametrize("inner", ["10.0.0.1", "127.0.0.1", "169.254.169.254", "100.100.100.200", "0.0.0.0"])
def test_a_private_answer_is_refused(inner: str) -> None:
    with DnsServer({"a.example": [inner]}) as server:
        network = Network.allow("a.example", resolvers=[server.authority])
        error = kind_of(network, lambda gate: gate.reach("tcp", "a.example", 443))
        missing = kind_of(network, lambda gate: gate.reach("tcp", "a.example", 443))
        assert (error.kind, error.text) == ("dns", "no such name: a.example"), "as a name that is not there"
        assert str(missing) == str(error)


def test_one_private_answer_among_many_is_left_out() -> None:
    assert resolve({"a.example": ["10.0.0.1", PUBLIC, "127.0.0.1"]}, "a.example")[1] == [PUBLIC]


def test_a_cname_to_somewhere_private_is_refused() -> None:
    assert resolve(chain(3, PUBLIC), "a.example")[1] == [PUBLIC]
    with DnsServer(chain(2, "192.168.0.1")) as server:
        network = Network.allow("a.example", resolvers=[server.authority])
        assert kind_of(network, lambda gate: gate.addresses("a.example")).kind == "dns"


def test_rebinding_does_not_move_a_checked_name() -> None:
    with Tripwire() as wire, DnsServer(rebinding(PUBLIC, "127.0.0.1")) as server:
        network = Network.allow(f"a.example:{wire.port}", resolvers=[server.authority])

        async def work(gate: Gate) -> None:
            place = (await gate.reach("tcp", "a.example", wire.port))[0]
            assert str(place.address) == PUBLIC
            with pytest.raises(NetError, match="no such name"):
                await gate.reach("tcp", "a.example", wire.port)

        gated(network, work)
        assert not wire.touched()


@pytest.mark.parametrize("reply", [compression_loop(), lying_counts(), b"\0\0", b""])
def test_broken_answers_are_no_answers(reply: bytes) -> None:
    with DnsServer(lambda name, kind: reply) as server:
        network = Network.allow("x", resolvers=[server.authority], limits=QUICK)
        assert kind_of(network, lambda gate: gate.resolve("x", "A")).kind in ("dns", "timeout")


def test_an_answer_with_the_wrong_id_is_none() -> None:
    with DnsServer({"a.example": [PUBLIC]}, wrong_id=True) as server:
        network = Network.allow("a.example", resolvers=[server.authority], limits=QUICK)
        assert kind_of(network, lambda gate: gate.resolve("a.example", "A")).kind in ("dns", "timeout")


def test_a_name_that_is_not_there() -> None:
    with DnsServer({}) as server:
        network = Network.allow("*", resolvers=[server.authority])
        error = kind_of(network, lambda gate: gate.resolve("no.example", "A"))
        assert (error.kind, error.text) == ("dns", "no such name: no.example")


def test_the_second_resolver_is_asked_when_the_first_is_silent() -> None:
    with DnsServer(lambda name, kind: b"") as silent, DnsServer({"a.example": [PUBLIC]}) as server:
        network = Network.allow("a.example", resolvers=[silent.authority, server.authority])
        (_, addresses), _ = gated(network, lambda gate: gate.resolve("a.example", "A"))
        assert [str(address) for address in addresses] == [PUBLIC]


@pytest.mark.parametrize(("name", "cut"), [("n{}.a.example", True), ("n{}.denied.example", True), ("a.example", False)])
def test_a_flood_of_questions_is_cut(name: str, cut: bool) -> None:
    """What was answered already is no question any more: ten files of one host are not ten of them."""
    with DnsServer(lambda asked, kind: [f"{asked}. 60 A {PUBLIC}"]) as server:
        limits = NetworkLimits(dns_per_second=1)

        async def work(gate: Gate) -> int:
            refused = 0
            for number in range(50):
                try:
                    await gate.resolve(name.format(number), "A")
                except NetError as error:
                    refused += "a second" in error.text
            return refused

        network = Network.allow("a.example", "*.a.example", resolvers=[server.authority], limits=limits)
        refused, _ = gated(network, work, clock=lambda: 1000.0)
        assert refused >= 40 if cut else refused == 0
        assert len(server.questions) <= 10


# Policies.


async def dialled(gate: Gate, port: int) -> None:
    stream, _ = await gate.open("tcp", await gate.reach("tcp", "127.0.0.1", port), 5)
    assert isinstance(stream, Stream)
    stream.close()
    await asyncio.sleep(0)


def raising(conn: Conn) -> None:
    conn.accept()
    raise RuntimeError("boom")


def slow(conn: Conn) -> None:
    time.sleep(5)
    conn.accept()


async def slow_async(conn: Conn) -> None:
    conn.accept()
    await asyncio.sleep(5)


async def raising_async(conn: Conn) -> None:
    conn.accept()
    raise RuntimeError("boom")


def junk(conn: Conn) -> object:
    conn.accept()
    return "sure"


@pytest.mark.parametrize(
    "policy", [raising, slow, slow_async, raising_async, junk, lambda conn: None, lambda conn: 1 / 0]
)
def test_whatever_goes_wrong_is_a_no_and_no_packet_leaves(policy: Any) -> None:
    with Tripwire() as wire:
        error = kind_of(Network.policy(policy, limits=QUICK), lambda gate: dialled(gate, wire.port))
        assert error.kind == "denied"
        assert "boom" not in error.text
        assert not wire.touched()


def test_a_policy_that_raises_is_in_the_record() -> None:
    async def work(gate: Gate) -> None:
        with pytest.raises(NetError):
            await dialled(gate, 9)

    _, events = gated(Network.policy(raising), work)
    assert [event["action"] for event in events] == ["policy-error", "connect"]
    assert events[0]["error"] == "RuntimeError"
    assert "boom" not in str(events), "the text of an exception may have a secret in it"
    assert events[1]["verdict"] == "denied"


@pytest.mark.parametrize("style", ["sync", "async", "returns a coroutine"])
def test_policies_may_be_sync_or_async(style: str) -> None:
    threads: list[str] = []

    def decide(conn: Conn) -> Any:
        threads.append(threading.current_thread().name)
        return conn.accept()

    async def decide_async(conn: Conn) -> Any:
        await asyncio.sleep(0)
        return decide(conn)

    policy: Any = {"sync": decide, "async": decide_async, "returns a coroutine": lambda conn: decide_async(conn)}[style]
    with HttpServer({"/": b""}) as server:
        gated(Network.policy(policy), lambda gate: dialled(gate, server.port))
    assert threads[0].startswith("belljar-")


def test_an_async_policy_runs_on_the_owners_loop() -> None:
    async def main() -> bool:
        loop = asyncio.get_running_loop()
        ran: list[bool] = []

        async def decide(conn: Conn) -> None:
            ran.append(asyncio.get_running_loop() is loop)

        verdicts: list[Any] = []

        def broker() -> None:
            async def judge() -> None:
                gate = Gate(Network.policy(decide), owner=loop)
                verdicts.append(await gate.decide(Conn("tcp", gate._src(), gate._src())))

            asyncio.run(judge())

        await asyncio.to_thread(broker)
        assert isinstance(verdicts[0], Denied)
        return ran == [True]

    assert run(main())


def test_policies_that_never_return_do_not_pile_up() -> None:
    stop = threading.Event()
    started: list[int] = []

    def stuck(conn: Conn) -> None:
        started.append(1)
        stop.wait(30)

    async def work(gate: Gate) -> None:
        results = await asyncio.gather(*(dialled(gate, 9) for _ in range(40)), return_exceptions=True)
        assert all(isinstance(result, NetError) for result in results)

    try:
        gated(Network.policy(stuck, limits=QUICK), work)
        assert len(started) <= 16
    finally:
        stop.set()


def test_only_so_many_connections() -> None:
    async def work(gate: Gate) -> None:
        with gate.attempt("dns", "a"):
            with gate.attempt("dns", "b"), pytest.raises(NetError, match="at once"), gate.attempt("dns", "c"):
                raise AssertionError("entered")
            with gate.attempt("dns", "d"):
                pass

    gated(Network.allow(limits=NetworkLimits(connections=2)), work)


def test_a_connection_by_address_has_the_names_that_led_there() -> None:
    seen: list[tuple[str, ...]] = []

    def policy(conn: Conn) -> Any:
        seen.append(conn.hostnames)
        return conn.accept()

    async def work(gate: Gate) -> None:
        await gate.resolve("a.example", "A")
        await gate.reach("tcp", "10.9.9.9", 80)
        await gate.reach("tcp", "10.9.9.8", 80)

    gated(Network.policy(policy, hosts={"a.example": "10.9.9.9"}), work)
    assert seen == [(), ("a.example",), ()]


# What is remembered.


def test_attribution_is_bounded_in_time_and_number() -> None:
    names, address = Attribution(), ip_address(PUBLIC)
    names.learn("a", "A", [address], 10, now=0)
    fresh = names.fresh("a", "A", 9)
    assert fresh is not None
    assert fresh.addresses == (address,)
    assert names.fresh("a", "A", 11) is None
    assert names.names(address, 10 + GRACE - 1) == ("a",)
    assert names.names(address, 10 + GRACE + 1) == ()
    names.learn("b", "A", [address], 10**9, now=0)
    assert names.names(address, KEEP_MAX + GRACE + 1) == ()
    names.learn("zero", "A", [address], 0, now=0)
    assert names.fresh("zero", "A", 0) is None
    for number in range(NAMES_MAX + 10):
        names.learn(f"n{number}", "A", [address], 10, now=0)
    assert len(names.names(address, 1)) == NAMES_MAX


def test_a_rate_bursts_and_refills() -> None:
    rate = Rate(10, now=0.0, burst=1.0)
    assert sum(rate.take(0.0) for _ in range(20)) == 10
    assert sum(rate.take(0.5) for _ in range(20)) == 5
