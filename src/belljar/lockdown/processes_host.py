"""An owner's hold on the servers it starts, and on processes that they fork for it."""

from __future__ import annotations

import os
import select
import signal
import socket
import subprocess
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

ANSWER_SECONDS: Final = 60.0
"""How long a server may take to answer."""
_LAST_LINES: Final = 12


def readable(fd: int, seconds: float | None) -> bool:
    """Whether there is something to read (of a pidfd: the process has ended) within so many seconds; None: for ever."""
    poll = select.poll()  # select(2) would refuse the high numbers that an owner with many files hands down
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1e3))


def kill_process(pidfd: int) -> None:
    """End a process at once and let go of it."""
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.close(pidfd)


def start_server(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A clean process (no environment, no files), told the number of its control socket; and our end of that."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        process = subprocess.Popen(  # noqa: S603 - our own program
            [*command, str(theirs.fileno())],
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            pass_fds=[theirs.fileno()],
            start_new_session=True,
        )
    ours.settimeout(ANSWER_SECONDS)
    return process, ours


def end_server(process: subprocess.Popen[bytes]) -> str:
    """End it; gives the last it said, which is why it ended if it did so by itself."""
    process.kill()
    lines = process.communicate()[1].decode("utf-8", "replace").strip().splitlines()
    return "\n" + "\n".join(lines[-_LAST_LINES:]) if lines else ""
