"""An owner's hold on the servers it starts, and on processes that they fork for it."""

from __future__ import annotations

import os
import select
import signal
import socket
import struct
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import subprocess

ANSWER_SECONDS: Final = 60.0
"""How long a server may take to answer."""
_LAST_LINES: Final = 12
_INT: Final = struct.calcsize("i")
if sys.platform != "win32":
    _SOL_SOCKET, _SCM_RIGHTS = int(socket.SOL_SOCKET), int(socket.SCM_RIGHTS)
    _NOTE: Final = socket.CMSG_LEN(0)
else:
    _SOL_SOCKET = _SCM_RIGHTS = -1
    _NOTE: Final = 0


def readable(fd: int, seconds: float | None) -> bool:
    """Whether there is something to read (of a pidfd: the process has ended) within so many seconds; None: for ever."""
    if sys.platform == "win32":
        return bool(select.select([fd], [], [], seconds)[0])
    poll = select.poll()  # select(2) would refuse the high numbers that an owner with many files hands down
    poll.register(fd, select.POLLIN)
    return bool(poll.poll(None if seconds is None else seconds * 1e3))


Look = Callable[[float | None], Sequence[object]]


class Readiness:
    """Whether one of some connections has something to receive, asked again and again by one thread at a time."""

    def __init__(self, *connections: socket.socket) -> None:
        if sys.platform == "win32":
            self.look: Look = lambda milliseconds: select.select(
                connections, [], [], None if milliseconds is None else milliseconds / 1e3
            )[0]
        else:
            poll = select.poll()
            for connection in connections:
                poll.register(connection, select.POLLIN)
            self.look: Look = poll.poll
        """Gives something if there is, within so many milliseconds; None: for ever."""

    def within(self, seconds: float | None) -> bool:
        return bool(self.look(None if seconds is None else seconds * 1e3))


def send_descriptors(connection: socket.socket, data: bytes | memoryview, fds: Sequence[int]) -> int:
    """Send with descriptors; gives how much was sent."""
    if sys.platform == "win32":
        raise NotImplementedError
    return connection.sendmsg([data], [(_SOL_SOCKET, _SCM_RIGHTS, struct.pack(f"{len(fds)}i", *fds))])


def receive_descriptors(connection: socket.socket, size: int, most: int) -> tuple[bytes, list[int]]:
    """A message of at most so many bytes, and the descriptors that came with it."""
    if sys.platform == "win32":
        raise NotImplementedError
    data, notes, _flags, _address = connection.recvmsg(size, most * _INT + _NOTE)
    fds: list[int] = []
    for level, kind, note in notes:
        if level == _SOL_SOCKET and kind == _SCM_RIGHTS:
            fds += struct.unpack(f"{len(note) // _INT}i", note[: len(note) // _INT * _INT])
    return data, fds


def send_elsewhere(pid: int) -> None:
    """If a process is on this thread's processor and may be on another, have it go on there.

    What it may use stays as it was. Nothing happens if that is not ours to say.
    """
    if sys.platform == "linux":
        with suppress(OSError):
            allowed = os.sched_getaffinity(pid)
            if len(allowed) > 1:
                os.sched_setaffinity(pid, allowed - {_processor()})
                os.sched_setaffinity(pid, allowed)


def _processor() -> int:
    """The one that this thread is on."""
    import ctypes

    number: int = ctypes.CDLL(None).sched_getcpu()
    return number


def bound_sending(connection: socket.socket, seconds: int) -> None:
    """Have sending fail if for so long nothing is taken."""
    if sys.platform == "win32":
        longest = struct.pack("@I", min(seconds * 1000, (1 << 32) - 1))
    else:
        longest = struct.pack("@ll", seconds, 0)
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, longest)


def kill_process(pidfd: int) -> None:
    """End a process at once and let go of it."""
    if sys.platform != "linux":
        raise NotImplementedError
    with suppress(ProcessLookupError):
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    os.close(pidfd)


def start_server(command: Sequence[str]) -> tuple[subprocess.Popen[bytes], socket.socket]:
    """A clean process (no environment, no files), told the number of its control socket; and our end of that."""
    if sys.platform != "linux":
        raise NotImplementedError
    import subprocess  # which a command-line run does without

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
