"""The owner's end of a fork server: processes asked for, and spares taken without waiting."""

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

from belljar.engines.owner.template_host import EngineProcess, _made
from belljar.forking.owner.client_host import ForkClient, Refused
from belljar.forking.wire import AHEAD, TAKEN


class Server:
    """The other end, as a test wants it to be."""

    def __init__(self) -> None:
        ours, self.end = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        ours.settimeout(60)
        self.end.settimeout(60)
        self._control = ours
        self.client = ForkClient(ours, _made)
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
    assert server.client.take_spare(b"r") is None
    asked = threading.Thread(target=lambda: server.given.append(server.client.take(b"r")))
    asked.start()
    assert server.end.recv(100) == b"r"
    pid = server.send(b"+")
    asked.join(60)
    assert [given.pid for given in server.given] == [pid]


def test_a_spare_is_there_at_once_and_the_server_is_told(server: Server) -> None:
    first, second = (server.send(AHEAD, b" r") for _ in range(2))
    for pid in (first, second):
        found = server.client.take_spare(b"r")
        assert found is not None
        server.given.append(found)
        assert found.pid == pid
        assert server.heard() == [TAKEN]
    assert server.client.take_spare(b"r") is None


def test_a_spare_of_a_server_that_is_gone_can_be_taken(server: Server) -> None:
    server.send(AHEAD, b" r")
    server.end.close()
    found = server.client.take_spare(b"r")
    assert found is not None
    server.given.append(found)
    with pytest.raises((Refused, OSError)):
        server.client.take(b"r")


def test_one_for_another_request_is_given_up(server: Server) -> None:
    server.send(AHEAD, b" other")
    assert server.client.take_spare(b"r") is None
    assert server.processes[0].wait(60) == -signal.SIGKILL
    assert server.heard() == [TAKEN]


def test_one_that_has_ended_is_not_used(server: Server) -> None:
    server.send(AHEAD, b" r")
    server.processes[0].kill()
    server.processes[0].wait()
    assert server.client.take_spare(b"r") is None


def test_one_made_ahead_may_come_before_the_answer(server: Server) -> None:
    asked = threading.Thread(target=lambda: server.given.append(server.client.take(b"r")))
    asked.start()
    assert server.end.recv(100) == b"r"
    ahead, answer = server.send(AHEAD, b" r"), server.send(b"+")
    asked.join(60)
    # It is as good as the answer, which is then as good as one made ahead.
    found = server.client.take_spare(b"r")
    assert found is not None
    server.given.append(found)
    assert [given.pid for given in server.given] == [ahead, answer]


def test_an_answer_that_nobody_waits_for_is_refused(server: Server) -> None:
    server.send(b"+")
    with pytest.raises(Refused):
        server.client.take_spare(b"r")


def test_a_server_that_does_not_listen_holds_nobody_up(server: Server) -> None:
    server._control.setblocking(False)
    with suppress(BlockingIOError):
        while True:
            server._control.send(b"x")
    server._control.settimeout(60)
    server.send(AHEAD, b" r")
    found = server.client.take_spare(b"r")
    assert found is not None
    server.given.append(found)
    assert TAKEN not in server.heard()
    assert server.client.take_spare(b"r") is None  # now it listens
    assert server.heard() == [TAKEN]


@pytest.mark.parametrize("said", [b"-no room", b"", b"+12", b"*x r", b"?"])
def test_what_is_no_process_is_refused(server: Server, said: bytes) -> None:
    server.end.send(said)
    if not said:
        server.end.close()
    with pytest.raises((Refused, OSError)) as raised:
        server.client.take(b"r")
    assert said != b"-no room" or str(raised.value) == "no room"


def test_whoever_does_not_wait_leaves_the_others_their_turn(server: Server) -> None:
    server.send(AHEAD, b" r")
    with server.client._lock:
        assert server.client.take_spare(b"r") is None
    found = server.client.take_spare(b"r")
    assert found is not None
    server.given.append(found)
