"""A worker before it is sealed."""

from __future__ import annotations

import signal
import socket

from belljar.abi.wire import Exited, Start, encode, worker_frames
from belljar.bin._kit.discovery import find, names
from belljar.kernel.machine_host import EpollPoller, host_machine
from belljar.worker.session import Session
from belljar.worker.worker_host import Worker


def test_an_owner_who_asks_during_a_warm_up_is_answered() -> None:
    """Spares are handed over whether or not they have finished."""
    machine = host_machine()
    assert isinstance(machine.poller, EpollPoller)
    old = signal.getsignal(signal.SIGPROF)
    try:
        session = Session(machine, programs=find, names=names())
        worker = Worker(session, machine.poller)
        worker.warm_up(2)
        ours, theirs = socket.socketpair()
        with ours, theirs:
            worker.connect(theirs)
            ours.send(encode(Start(1, [b"bash", b"-c", b"echo asked"], {}, None, b"", False, False, {})))
            worker.run_warm_up_command()
            ours.setblocking(False)
            got: list[object] = []
            frames = worker_frames()

            def answered() -> bool:
                try:
                    got.extend(frames.feed(ours.recv(4096)))
                except BlockingIOError:
                    return False
                return bool(got)

            session.kernel.hub.run(answered)
            machine.poller.unwatch(theirs.fileno())
        assert got == [Exited(1, 0, 0, None, b"asked\n", b"", False)]
    finally:
        signal.signal(signal.SIGPROF, old)
        machine.poller.close()
