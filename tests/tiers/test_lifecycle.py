"""The end of a sandbox, and everything after it."""

from __future__ import annotations

import copy
import gc
import pickle
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest

from belljar import Mount, Sandbox, SandboxClosed, SandboxError, Store
from tests.tiers.conftest import Make, Tier

AFTERWARDS: dict[str, Callable[[Any], object]] = {
    "exec": lambda sb: sb.exec("true"),
    "exec in the background": lambda sb: sb.exec("true", background=True),
    "spawn": lambda sb: sb.spawn("true"),
    "pty": lambda sb: sb.pty("true"),
    "read": lambda sb: sb.files.read("x"),
    "write": lambda sb: sb.files.write("x", ""),
    "exists": lambda sb: sb.files.exists("x"),
    "glob": lambda sb: sb.files.glob("*"),
    "stats": lambda sb: sb.stats(),
    "python": lambda sb: sb.python.run("1"),
    "port": lambda sb: sb.port(80).get("/"),
}


@pytest.mark.parametrize("use", AFTERWARDS.values(), ids=AFTERWARDS)
def test_after_the_end(sb: Sandbox, use: Callable[[Any], object]) -> None:
    sb.close()
    with pytest.raises(SandboxClosed, match="closed"):
        use(sb)


def test_no_branches_after_the_end(sb: Sandbox) -> None:
    sb.close()
    with pytest.raises(SandboxClosed, match="closed"):
        sb.fork()


def test_a_closed_one_has_no_snapshots(sb: Sandbox) -> None:
    sb.close()
    with pytest.raises(SandboxClosed):
        sb.snapshot(store=Store.memory())


@pytest.mark.feature("mounts")
def test_no_mounts_after_the_end(sb: Sandbox) -> None:
    sb.close()
    with pytest.raises(SandboxClosed, match="closed"):
        sb.mount("/m", Mount.memory())


def test_closing_twice(sb: Sandbox) -> None:
    sb.exec("true")
    sb.close()
    sb.close()
    assert repr(sb).endswith("(closed)>")


def test_with(make: Make) -> None:
    with make() as sb:
        assert sb.exec("echo hi").stdout == "hi\n"
    with pytest.raises(SandboxClosed):
        sb.exec("true")


def test_with_and_an_error(make: Make) -> None:
    with pytest.raises(LookupError), make() as sb:
        raise LookupError
    with pytest.raises(SandboxClosed):
        sb.exec("true")


def test_closing_while_a_command_runs(sb: Sandbox) -> None:
    raised: list[BaseException] = []

    def run() -> None:
        try:
            sb.exec("sleep 60")
        except SandboxError as error:
            raised.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    time.sleep(0.3)
    sb.close()
    thread.join(120)
    assert [type(error) for error in raised] == [SandboxClosed]


def test_closing_ends_what_is_left(make: Make) -> None:
    sb = make()
    sb.exec("sleep 1000 & (trap '' TERM HUP INT; sleep 1000) & echo")
    sb.pty("sleep 1000")
    sb.close()


def test_many_one_after_the_other(make: Make) -> None:
    for n in range(10):
        with make() as sb:
            assert sb.exec(f"echo {n}").stdout == f"{n}\n"


def test_many_at_once(make: Make) -> None:
    boxes = [make() for _ in range(8)]
    for n, sb in enumerate(boxes):
        sb.exec(f"echo {n} > n")
    assert [sb.exec("cat n").stdout for sb in boxes] == [f"{n}\n" for n in range(8)]


@pytest.mark.parametrize("duplicate", [copy.copy, pickle.dumps], ids=["copy", "pickle"])
def test_it_can_not_be_copied(tier: Tier, duplicate: Callable[[Any], object]) -> None:
    with tier.sandbox(**tier.options) as sb, pytest.raises(TypeError, match="fork"):
        duplicate(sb)


def test_one_that_nobody_holds_is_ended(tier: Tier) -> None:
    sb = tier.sandbox(**tier.options)
    process = sb.spawn("sleep 1000")
    del sb
    gc.collect()
    with pytest.raises(SandboxClosed):
        process.wait(120)


def test_threads_share_one(sb: Sandbox) -> None:
    said: list[str] = []

    def work(n: int) -> None:
        for m in range(5):
            sb.files.write(f"{n}-{m}", str(n))
            said.append(sb.exec(f"cat {n}-{m}").stdout)

    threads = [threading.Thread(target=work, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(said) == sorted(str(n) for n in range(4) for _ in range(5))
