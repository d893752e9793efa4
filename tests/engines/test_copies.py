"""Copies of a live engine process: made when the owner asks, and only then."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from errno import EPERM
from pathlib import Path

import pytest

from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.template_host import EngineLimits, EngineProcess, Template
from belljar.forking.owner import copies_host
from belljar.lockdown.polling_host import readable
from tests.escape.oracles import is_alive, wait_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="engine processes are Linux's")


@pytest.fixture
def process() -> Iterator[EngineProcess]:
    script = Path(__file__).parent / "copy_template.py"
    template = Template(lambda: [sys.executable, "-I", str(script)])
    try:
        made = template.fork(EngineLimits(1 << 30, 60.0), {"copied": True})
        try:
            ask(made, "ready")
            yield made
        finally:
            made.kill()
    finally:
        template.close()


def ask(process: EngineProcess, words: str) -> str:
    process.connection.settimeout(20)
    process.connection.sendall(words.encode())
    return process.connection.recv(1 << 16).decode()


def test_copies_are_processes_of_their_own(process: EngineProcess) -> None:
    copies = [process.copy() for _ in range(5)]
    copies.append(copies[0].copy())
    everyone = [process, *copies]
    assert [ask(one, "hi") for one in everyone] == [f"{one.pid} hi" for one in everyone]
    assert len({one.pid for one in everyone}) == 7
    process.kill()
    copies[0].kill()
    assert not wait_gone([process.pid, copies[0].pid])
    assert ask(copies[-1], "there") == f"{copies[-1].pid} there"
    for one in copies:
        one.kill()
    assert not wait_gone([one.pid for one in copies])


def test_a_fork_that_nobody_asked_for_waits_and_is_refused(process: EngineProcess) -> None:
    process.connection.sendall(b"unasked")
    family = process.related()
    assert process.control is not None
    assert family.take_listener(process.control)
    assert family.listener is not None
    assert readable(family.listener.fd, 60), "it waits"
    time.sleep(0.2)
    process.connection.setblocking(False)
    with pytest.raises(BlockingIOError):
        process.connection.recv(100)
    copy = process.copy()  # the owner answers for the one it asked for; the other is not let through
    process.connection.settimeout(20)
    assert process.connection.recv(100).decode() == f"refused {EPERM}"
    assert ask(copy, "hi") == f"{copy.pid} hi"
    assert copy.alive
    copy.kill()
    assert not copy.alive  # as a thread finds it that counts processes meanwhile


def test_one_that_does_not_answer_is_ended(process: EngineProcess, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(copies_host, "COPY_SECONDS", 0.3)
    process.connection.sendall(b"deaf")
    with pytest.raises(EngineUnavailable, match="did not answer"):
        process.copy()
    assert not wait_gone([process.pid])
    with pytest.raises(EngineUnavailable, match="can't be copied"):
        process.copy()


def test_one_that_has_ended_gives_none(process: EngineProcess) -> None:
    os.kill(process.pid, 9)
    wait_gone([process.pid])
    with pytest.raises(EngineUnavailable, match="no copy of itself"):
        process.copy()
    assert not is_alive(process.pid)


def test_a_forked_child_of_the_owner_ends_nobody(process: EngineProcess) -> None:
    pid = os.fork()
    if pid == 0:
        process.kill()
        os._exit(0)
    os.waitpid(pid, 0)
    assert ask(process, "still") == f"{process.pid} still"
