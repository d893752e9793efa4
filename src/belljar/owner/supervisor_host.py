"""Starts the zygote of this process and gets workers from it; replaces it when it is gone, old, or lacks a tool."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Sequence
from typing import Final

from belljar.abi.limits import Limits
from belljar.engines.prepared_host import prepared_beside
from belljar.forking.owner.client_host import Refused
from belljar.forking.owner.process_host import ForkServerProcess, RestartedServer
from belljar.forking.owner.socket_host import HandleSocket
from belljar.forking.wire import REPLAYS, encode_request
from belljar.owner.handle_host import WorkerHandle, Workers, WorkerUnavailable
from belljar.owner.launch_host import archive_path

RECYCLE_AFTER: Final = 10_000
"""Workers from one zygote: all of them share its memory layout and hash seed, so it does not live forever."""
USUAL: Final = Limits().memory_bytes
"""The memory of most workers."""
ZYGOTE: Final = (sys.executable, "-I", "-m", "belljar.zygote.zygote_host")


def _worker(pid: int, fds: list[int]) -> WorkerHandle:
    return WorkerHandle(pid, fds[1], HandleSocket(fileno=fds[0]))


class Supervisor:
    """The zygote that new workers come from, started when first needed; `command` starts it."""

    def __init__(self, command: Sequence[str] = ZYGOTE) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._server = RestartedServer(self._words, _worker)
        self._archive = ""
        self._tools: tuple[str, ...] = ()
        """Those that were prepared when the zygote was started: it looks for them once."""
        self.source: Workers | None = None
        """A source of workers to be asked before our own zygote."""

    @property
    def zygote(self) -> ForkServerProcess[WorkerHandle] | None:
        """The zygote that the next worker comes from, if it was started."""
        return self._server.process

    def take(self, memory_bytes: int) -> WorkerHandle:
        """A worker with this much memory. Raises WorkerUnavailable.

        A zygote that was killed is replaced, one that does not answer is so once.
        """
        with self._lock:
            if sys.platform != "linux":
                from belljar.owner.spawn_host import Spawner  # what a worker is elsewhere: a process of its own

                return Spawner().take(memory_bytes)
            if self.source is not None:
                try:
                    return self.source.take(memory_bytes)
                except WorkerUnavailable:
                    self.source = None
            zygote = self.zygote
            if zygote is not None and (zygote.taken >= RECYCLE_AFTER or prepared_beside(self._archive) != self._tools):
                self._server.retire()  # its workers may still fork: it ends with the last of them
            try:
                worker, zygote = self._server.take(encode_request(memory_bytes, 0.0, {}))
            except Refused as error:
                raise WorkerUnavailable(f"the zygote gives no worker: {error}") from error
            worker.zygote = zygote
            return worker

    def _words(self) -> Sequence[str]:
        self._archive = archive_path()
        self._tools = prepared_beside(self._archive)
        return (*self._command, self._archive)

    def close(self) -> None:
        """End the zygote; workers that were taken live on."""
        with self._lock:
            self._server.close(ends_children=False)

    def forget(self) -> None:
        """Drop the zygote, in a forked child of the owner: it is the parent's."""
        self.__init__(self._command)  # type: ignore[misc]


shared: Final = Supervisor()
"""The zygote that every sandbox of this process comes from."""
replaying: Final = Supervisor((*ZYGOTE, REPLAYS))
"""The zygote of sandboxes that build images: the same commands have the same effects, whenever and wherever."""
if sys.platform != "win32":
    os.register_at_fork(after_in_child=shared.forget)
    os.register_at_fork(after_in_child=replaying.forget)
