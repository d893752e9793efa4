"""Descriptors over a socket."""

import os
import socket
import sys

import pytest

from belljar.lockdown.sockets_host import receive_descriptors, send_descriptors


@pytest.mark.skipif(sys.platform == "win32", reason="Windows passes no descriptors")
def test_descriptors_arrive_with_their_data() -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    reading, writing = os.pipe()
    with ours, theirs, os.fdopen(reading, "rb") as end:
        send_descriptors(ours, b"take this", [writing])
        os.close(writing)
        data, fds = receive_descriptors(theirs, 64, 2)
        assert data == b"take this"
        assert len(fds) == 1
        os.write(fds[0], b"through the pipe")
        os.close(fds[0])
        assert end.read() == b"through the pipe"


def test_data_alone_brings_no_descriptors() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.send(b"plain")
        assert receive_descriptors(theirs, 64, 2) == (b"plain", [])
