"""Starts and ends the processes that fork others for their owner (zygotes, engine templates), and kills those."""

from __future__ import annotations

import os
import signal
import socket
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from belljar.lockdown.standard_host import open_standard_descriptors

if TYPE_CHECKING:
    import subprocess

ANSWER_SECONDS: Final = 60.0
"""How long a server may take to answer."""
FILES_NEEDED: Final = 64
"""Descriptors with which one sandbox and its engines work."""
_LAST_LINES: Final = 12


def start_server(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """Start a process with no environment and no files but its control socket, whose number is its last argument.

    Return the process and our end of the control socket.
    """
    if sys.platform != "linux":
        raise NotImplementedError
    import subprocess  # which a command-line run does without

    open_standard_descriptors()
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
    """Kill a server and wait for it; return the end of its stderr, which says why it ended if it did so by itself."""
    process.kill()
    lines = process.communicate()[1].decode("utf-8", "replace").strip().splitlines()
    return "\n" + "\n".join(lines[-_LAST_LINES:]) if lines else ""


def wait_for_server(process: subprocess.Popen[bytes], seconds: float) -> None:
    """Wait until a server has ended by itself. TimeoutError."""
    import subprocess

    try:
        process.wait(seconds)
    except subprocess.TimeoutExpired:
        raise TimeoutError from None


def explain_limits() -> str:
    """Say which resource limit of this process may be why a server did not start; "" if none is likely."""
    if sys.platform != "linux":
        return ""
    from resource import RLIM_INFINITY, RLIMIT_AS, RLIMIT_NOFILE, getrlimit

    said = ""
    if (space := getrlimit(RLIMIT_AS)[1]) != RLIM_INFINITY:
        said += f"\nRLIMIT_AS is {space}, but engines reserve much address space: unset it (ulimit -v unlimited)"
    if (files := getrlimit(RLIMIT_NOFILE)[1]) < FILES_NEEDED:
        said += f"\nRLIMIT_NOFILE is {files}: raise it (ulimit -n {FILES_NEEDED})"
    return said


def kill_process(pidfd: int) -> None:
    """Send SIGKILL to a process and close its pidfd."""
    if sys.platform != "linux":
        raise NotImplementedError
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.close(pidfd)
