"""Processes of a fork server: asked for, or made ahead and taken without waiting."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import suppress

import pytest

from belljar.engines.supply_host import AHEAD, TAKEN, Refused, Supply
from belljar.engines.template_host import EngineProcess, _made


class Server:
    """The other end, as a test wants it to be."""

    def __init__(self) -> None:
        ours, self.end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(60)
        self.end.settimeout(60)
        self._control = ours
        self.supply = Supply(ours, _made)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.given: list[EngineProcess] = []

    def send(self, head: bytes, tail: bytes = b"") -> int:
        """A process goes to the owner; gives its pid."""
        process = subprocess.Popen([sys.executable, "-I", "-c", "import time; time.sleep(600)"])
        self.processes.append(process)
        ours, theirs = socket.socketpair()
        pidfd = os.pidfd_open(process.pid)
        socket.send_fds(self.end, [head + b"%d" % process.pid + tail], [ours.fileno(), pidfd])
        for one in (ours, theirs):
            one.close()
        os.close(pidfd)
        return process.pid

    def heard(self) -> list[bytes]:
        """What the owner said so far."""
        self.end.setblocking(False)
        said = []
        try:
            while True:
                said.append(self.end.recv(4096))
        except BlockingIOError:
            self.end.settimeout(60)
            return said

    def close(self) -> None:
        self._control.close()
        self.end.close()
        for given in self.given:
            given.kill()
        for process in self.processes:
            process.kill()
            process.wait()


@pytest.fixture
def server() -> Iterator[Server]:
    made = Server()
    yield made
    made.close()


def test_waits_for_what_it_asks_for(server: Server) -> None:
    assert server.supply.at_hand(b"r") is None
    asked = threading.Thread(target=lambda: server.given.append(server.supply.ask(b"r")))
    asked.start()
    assert server.end.recv(100) == b"r"
    pid = server.send(b"+")
    asked.join(60)
    assert [given.pid for given in server.given] == [pid]


def test_one_made_ahead_is_there_at_once(server: Server) -> None:
    first, second = (server.send(AHEAD, b" r") for _ in range(2))
    for pid in (first, second):
        found = server.supply.at_hand(b"r")
        assert found is not None
        server.given.append(found)
        assert found.pid == pid
    assert server.heard() == []  # that can wait until it is on its way
    server.given[1].settle()
    assert server.heard() == [TAKEN, TAKEN]
    assert server.supply.at_hand(b"r") is None


@pytest.mark.parametrize("end", ["_control", "end"])
def test_nobody_is_told_where_the_server_is_gone(server: Server, end: str) -> None:
    server.send(AHEAD, b" r")
    found = server.supply.at_hand(b"r")
    assert found is not None
    server.given.append(found)
    getattr(server, end).close()
    found.settle()


def test_whoever_asks_next_tells_what_was_taken(server: Server) -> None:
    server.send(AHEAD, b" r")
    found = server.supply.at_hand(b"r")
    assert found is not None
    server.given.append(found)
    asked = threading.Thread(target=lambda: server.given.append(server.supply.ask(b"r")))
    asked.start()
    assert [server.end.recv(100), server.end.recv(100)] == [TAKEN, b"r"]
    server.send(b"+")
    asked.join(60)
    assert len(server.given) == 2


def test_one_for_another_request_is_given_up(server: Server) -> None:
    server.send(AHEAD, b" other")
    assert server.supply.at_hand(b"r") is None
    assert server.processes[0].wait(60) == -signal.SIGKILL
    assert server.heard() == [TAKEN]


def test_one_that_has_ended_is_not_used(server: Server) -> None:
    server.send(AHEAD, b" r")
    server.processes[0].kill()
    server.processes[0].wait()
    assert server.supply.at_hand(b"r") is None


def test_one_made_ahead_may_come_before_the_answer(server: Server) -> None:
    asked = threading.Thread(target=lambda: server.given.append(server.supply.ask(b"r")))
    asked.start()
    assert server.end.recv(100) == b"r"
    ahead, answer = server.send(AHEAD, b" r"), server.send(b"+")
    asked.join(60)
    # It is as good as the answer, which is then as good as one made ahead.
    found = server.supply.at_hand(b"r")
    assert found is not None
    server.given.append(found)
    assert [given.pid for given in server.given] == [ahead, answer]


def test_an_answer_that_nobody_waits_for_is_refused(server: Server) -> None:
    server.send(b"+")
    with pytest.raises(Refused):
        server.supply.at_hand(b"r")


def test_a_server_that_does_not_listen_holds_nobody_up(server: Server) -> None:
    server._control.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            server._control.send(TAKEN)
    server._control.settimeout(60)
    server.send(AHEAD, b" r")
    found = server.supply.at_hand(b"r")
    assert found is not None
    server.given.append(found)
    found.settle()
    assert server.heard().count(TAKEN) > 1
    server.supply.settle()  # now it listens
    assert server.heard() == [TAKEN]


@pytest.mark.parametrize("said", [b"-no room", b"", b"+12", b"*x r", b"?"])
def test_what_is_no_process_is_refused(server: Server, said: bytes) -> None:
    server.end.send(said)
    if not said:
        server.end.close()
    with pytest.raises((Refused, OSError)) as raised:
        server.supply.ask(b"r")
    assert said != b"-no room" or str(raised.value) == "no room"


def test_whoever_does_not_wait_leaves_the_others_their_turn(server: Server) -> None:
    server.send(AHEAD, b" r")
    with server.supply._lock:
        assert server.supply.at_hand(b"r") is None
    found = server.supply.at_hand(b"r")
    assert found is not None
    server.given.append(found)
