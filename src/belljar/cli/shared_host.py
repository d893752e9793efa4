"""The zygote that command-line runs of one user share: what they must have in common, and how a run asks it.

It is only ever a short cut. A run that finds none, or an unfit or a slow one, starts a worker of its own. The worker
belongs to the run that asked: it holds the only connection, and the worker ends with it. A run asks before it has
loaded anything else, so little is imported here.
"""

from __future__ import annotations

import _socket
import os
import sys
from zlib import crc32

from belljar.abi.cache_host import PACKAGE, cache_directory, private_directory
from belljar.abi.version import __version__
from belljar.engines.prepared_host import prepared
from belljar.lockdown.sockets_host import receive_descriptors

TYPE_CHECKING = False  # as in `typing`, without loading that
if TYPE_CHECKING:
    from belljar.owner.handle_host import WorkerHandle

ANSWER_SECONDS = 0.5
"""Seconds a run waits for the shared zygote before it starts a worker itself."""
REQUEST_MAX = 64 << 10
_PATH_MAX = 100
"""The address of a socket is a path of at most 107 bytes."""


def identity() -> bytes:
    """All that two runs must have in common to share a zygote: the code, the interpreter, and where they run.

    A worker is charged to the control group and bound by the limits of whoever started the zygote: only runs that are
    charged and bound in the same way may use it.
    """
    parts = [__version__, sys.version, sys.executable, PACKAGE, f"{os.getuid()} {os.geteuid()} {os.getegid()}"]
    parts += [os.readlink(f"/proc/self/ns/{name}") for name in ("user", "mnt", "pid")]
    for name in ("cgroup", "limits"):
        with open(f"/proc/self/{name}") as file:
            parts.append(file.read())
    parts.append(str(prepared()))
    return "\0".join(parts).encode("utf-8", "surrogateescape")


def address(who: bytes) -> str | None:
    """The socket's path, in a directory that only this user can enter; None where there can be none."""
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    directory = private_directory(os.path.join(runtime, "belljar")) if os.path.isabs(runtime) else cache_directory()
    path = f"{directory}/zygote-{crc32(who):08x}"
    return path if directory is not None and len(os.fsencode(path)) <= _PATH_MAX else None


def peer_uid(connection: _socket.socket) -> int:
    """Return the peer's uid (SO_PEERCRED)."""
    pid_uid_gid = connection.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    return int.from_bytes(pid_uid_gid[4:8], sys.byteorder)


class SharedZygote:
    """A connection to the zygote, opened ahead."""

    def __init__(self, connection: _socket.socket, who: bytes) -> None:
        self._connection = connection
        self._who = who

    @classmethod
    def find(cls, path: str, who: bytes) -> SharedZygote | None:
        """Connect to the zygote; None if there is none."""
        connection = _socket.socket(_socket.AF_UNIX, _socket.SOCK_SEQPACKET)
        try:
            connection.setblocking(False)
            connection.connect(path)
            if peer_uid(connection) != os.geteuid():
                raise OSError("it is somebody else's")
        except OSError:
            connection.close()
            return None
        return cls(connection, who)

    def close(self) -> None:
        self._connection.close()

    def take(self, memory_bytes: int) -> WorkerHandle:
        """Take the one worker of this run. On WorkerUnavailable the run starts one itself."""
        import socket

        from belljar.owner.handle_host import WorkerHandle, WorkerUnavailable

        fds: list[int] = []
        try:
            with socket.socket(fileno=self._connection.detach()) as connection:
                connection.settimeout(ANSWER_SECONDS)
                connection.send(memory_bytes.to_bytes(8, "little") + self._who)
                answer, fds = receive_descriptors(connection, 64, 2)
        except OSError as error:
            raise WorkerUnavailable(str(error)) from error
        if len(fds) != 2 or not answer.isdigit():
            for fd in fds:
                os.close(fd)
            raise WorkerUnavailable("the shared zygote gave no worker")
        return WorkerHandle(int(answer), fds[1], socket.socket(fileno=fds[0]))
