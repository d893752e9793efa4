"""The zygote's answers about forks: when a family is forgotten."""

from __future__ import annotations

import os
import select
import socket
import sys
from unittest.mock import patch

import pytest

from belljar.lockdown.sockets_host import send_descriptors

if sys.platform != "linux":
    pytest.skip("Linux asks about forks", allow_module_level=True)

from belljar.forking.server.judge_host import ForkJudge


def test_a_family_lives_until_its_last_process_is_gone() -> None:
    """A signal while a process is about to fork makes the kernel report EPOLLERR for a listener that is in use."""
    judge = ForkJudge()
    judge.expect(7)
    ours, theirs = socket.socketpair()
    with ours, judge.door, judge._inbox, judge._events:
        with theirs:
            send_descriptors(judge.door, b"7", [theirs.fileno()])
        judge.work()
        (listener,) = judge._waiting
        for events, lives in ((select.EPOLLERR, True), (select.EPOLLHUP, False)):
            with patch.object(judge, "_events", wraps=judge._events) as poller:
                poller.poll.side_effect = lambda _seconds, events=events: [(listener, events)]
                judge.work()
            assert (7 in judge._families) == lives
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(listener)
