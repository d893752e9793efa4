"""The process behind the shared zygote: `python -I -m belljar.cli.zygote_host ADDRESS [ARCHIVE]`.

The first run that misses it starts it and does not wait. It serves runs of this user that have the same identity, one
worker each, and ends when nobody has asked for a while, when its code has changed, or when its socket is gone. It
believes nothing that a client says: the kernel says who it is, and all it can have is a sealed worker.
"""

from __future__ import annotations

import fcntl
import os
import select
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from typing import Final

from belljar.abi.cache_host import PACKAGE
from belljar.cli.shared_host import REQUEST_MAX, identity, peer_uid
from belljar.forking.wire import HANDS_OVER
from belljar.lockdown.sockets_host import send_descriptors
from belljar.owner.handle_host import WorkerUnavailable
from belljar.owner.supervisor_host import USUAL, ZYGOTE, Supervisor
from belljar.worker.archive_host import Archive

IDLE_SECONDS: Final = 120.0
CLIENT_SECONDS: Final = 10.0
"""Time limit of a client's request."""
CLIENTS_MAX: Final = 64
MEMORY: Final = range(1 << 20, 1 << 48)


class SharedZygoteServer:
    def __init__(self, listener: socket.socket, supervisor: Supervisor, who: bytes) -> None:
        self._listener = listener
        self._supervisor = supervisor
        self._who = who
        self._sources = source_stamps()
        self.ended = False
        self._clients: dict[int, tuple[socket.socket, float]] = {}
        self._poll = select.poll()
        self._poll.register(listener, select.POLLIN)

    def run(self, idle_seconds: float = IDLE_SECONDS) -> None:
        """Serve until idle for so long, or until there is a reason to end."""
        idle_since = time.monotonic()
        while (now := time.monotonic()) - idle_since < idle_seconds and not self.ended:
            for fd, _event in self._poll.poll(1000.0):
                if fd == self._listener.fileno():
                    self._accept(now)
                else:
                    self._answer(self._drop(fd))
                idle_since = time.monotonic()
            for fd, (client, since) in list(self._clients.items()):
                if now - since > CLIENT_SECONDS:
                    self._drop(fd)
                    client.close()
        for client, _since in self._clients.values():
            client.close()

    def stop(self) -> None:
        """End within a second."""
        self.ended = True

    def _accept(self, now: float) -> None:
        client, _address = self._listener.accept()
        if peer_uid(client) != os.geteuid() or len(self._clients) >= CLIENTS_MAX:
            client.close()
            return
        client.setblocking(False)
        self._clients[client.fileno()] = (client, now)
        self._poll.register(client, select.POLLIN)
        # Now, while the run gets ready to ask: it waits for nothing then.
        self.ended |= not all(unchanged(path, stamp) for path, stamp in self._sources)

    def _drop(self, fd: int) -> socket.socket:
        self._poll.unregister(fd)
        return self._clients.pop(fd)[0]

    def _answer(self, client: socket.socket) -> None:
        """Send a worker, or close the connection: the client then starts one itself."""
        with client:
            try:
                request = client.recv(REQUEST_MAX)
                memory = int.from_bytes(request[:8], "little")
                if request[8:] != self._who or memory not in MEMORY or self.ended:
                    return
                worker = self._supervisor.take(memory)
            except (OSError, WorkerUnavailable):
                return
            try:
                send_descriptors(client, b"%d" % worker.pid, [worker.connection.fileno(), worker.pidfd])
            except OSError:
                worker.kill()
            else:
                worker.release()


def source_stamps() -> list[tuple[str, int]]:
    """Return the mtimes of our source files and directories: edited code must not be served."""
    found: list[tuple[str, int]] = []
    for directory, names, files in os.walk(PACKAGE):
        if "__pycache__" in names:
            names.remove("__pycache__")
        paths = [directory, *(os.path.join(directory, name) for name in files if name.endswith(".py"))]
        found += [(path, os.stat(path).st_mtime_ns) for path in paths]
    return found


def unchanged(path: str, stamp: int) -> bool:
    try:
        return os.stat(path).st_mtime_ns == stamp
    except OSError:
        return False


def listen(path: str) -> socket.socket:
    """Bind the address, removing a stale socket."""
    if os.path.lexists(path):
        os.unlink(path)
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    before = os.umask(0o177)
    listener.bind(path)
    os.umask(before)
    listener.listen(CLIENTS_MAX)
    return listener


def main() -> None:
    path, archive = sys.argv[1:3]
    if archive:
        os.environ["BELLJAR_CACHE"] = os.path.dirname(archive)  # we have no HOME: use the cache that the run uses
    os.chdir("/")
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with open(f"{path}.lock", "w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return  # another run was first
        supervisor = Supervisor([*ZYGOTE, HANDS_OVER])
        supervisor.take(USUAL).kill()  # it is warm now
        with listen(path) as listener:
            recorder = record(archive)
            try:
                SharedZygoteServer(listener, supervisor, identity()).run()
            finally:
                with suppress(OSError):
                    os.unlink(path)
        supervisor.close()
        if recorder is not None:
            recorder.wait()


def record(archive: str) -> subprocess.Popen[bytes] | None:
    """Make the archive of modules, unless there is a good one: it is what a run without us starts from."""
    if not archive or Archive.open(archive) is not None:
        return None
    command = [sys.executable, "-I", "-m", "belljar.zygote.recorder_host", archive]
    return subprocess.Popen(command, env={}, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL)  # noqa: S603


if __name__ == "__main__":
    main()
