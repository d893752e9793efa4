"""A new process reports: who it is, the kernel tells."""

from __future__ import annotations

import os
import socket
import sys
from collections.abc import Callable

import pytest

if sys.platform != "linux":
    pytest.skip("forks are Linux's", allow_module_level=True)

from belljar.abi.wire import HELLO
from belljar.forking.owner.hello_host import NoHello, accept_hello, expect_hello
from belljar.lockdown.family_host import Family


def from_child(kind: socket.SocketKind, act: Callable[[socket.socket], object]) -> tuple[socket.socket, int]:
    """Have a new process in a session of its own act on its end of a pair; return our end and its pid."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, kind)
    expect_hello(ours)
    ready, begin = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.setsid()
        ours.close()
        act(theirs)
        os.write(begin, b"x")
        os.close(begin)
        theirs.recv(1)
        os._exit(0)
    os.close(begin)
    theirs.close()
    os.read(ready, 1)
    os.close(ready)
    ours.settimeout(30)
    return ours, pid


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_SEQPACKET])
def test_a_member_is_known_by_its_credentials(kind: socket.SocketKind) -> None:
    ours, pid = from_child(kind, lambda end: (end.send(HELLO), end.send(b"more")))
    with ours:
        found, pidfd = accept_hello(ours, Family(pid))
        os.close(pidfd)
        assert found == pid
        assert ours.recv(10) == b"more", "what follows is left for the next reader"
    os.waitpid(pid, 0)


def test_a_stranger_is_refused() -> None:
    ours, pid = from_child(socket.SOCK_STREAM, lambda end: end.send(HELLO))
    with ours, pytest.raises(NoHello, match=str(pid)):
        accept_hello(ours, Family(os.getpid()))  # whose session is another: the child has one of its own
    os.waitpid(pid, 0)


@pytest.mark.parametrize("said", [b"x", b"", HELLO + b"x"])
def test_anything_else_is_no_hello(said: bytes) -> None:
    ours, pid = from_child(socket.SOCK_SEQPACKET, lambda end: end.send(said) if said else end.shutdown(socket.SHUT_WR))
    with ours, pytest.raises(NoHello):
        accept_hello(ours, Family(pid))
    os.waitpid(pid, 0)
