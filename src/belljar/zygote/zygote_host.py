"""The zygote: a clean, warm process that forks sealed workers. Started as `python -I -m belljar.zygote.zygote_host FD`.

It holds no secret and does no guest work. It imports everything, makes one session, gives up its privileges, and then
only serves forks on its control socket (`forking/server`). With an archive of all modules (`worker/archive_host.py`) it
imports most of them after it has given the first worker, which loads from the archive what it needs meanwhile.

It also judges the forks of its workers: a worker that forks waits in the kernel until the zygote lets it, which it does
once for each permit of the owner. A worker ends with its own connection. When the control socket ends, the owner is
gone: the zygote kills whoever is left, and ends.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Final

from belljar.abi.wire import host_frames
from belljar.engines.prepared_host import prepared_beside
from belljar.engines.worker.programs import find, names, preload
from belljar.forking.server.judge_host import ForkJudge
from belljar.forking.server.server_host import ForkServer, Made
from belljar.forking.wire import HANDS_OVER, REPLAYS, Request
from belljar.kernel.machine import Machine
from belljar.kernel.machine_host import EpollPoller, host_machine, replay_machine
from belljar.lockdown.children_host import Children
from belljar.lockdown.forks_host import fork_alone
from belljar.lockdown.seal_host import enter_namespaces, prepare
from belljar.worker import spawned_host
from belljar.worker.archive_host import Archive, write_archive
from belljar.worker.session import Session
from belljar.worker.worker_host import RECURSION, WARM_UP_COMMAND, Worker

SPARES: Final = 3
QUIET: Final = 0.001
"""Seconds without a request before a spare is made: the worker just handed over needs the processor first."""
WARM_UPS: Final = 4
"""More did not lower the number of pages that a worker copies."""
WARM_UP: Final = (
    WARM_UP_COMMAND,
    "x=$(echo a | tr a b); for i in 1 2; do [[ $x == b* ]] && y=$((i + 1)); done; echo ${x/b/c} {1..2} * > f; cat f",
    "f() { local a=$1; [ -f f ] && read -r b < f; }; f x; case $b in *) ls -la;; esac; cat << E | grep -c x\nx\nE",
    "printf '%s\\n' 1 2 | sort | head -n 1; sed s/a/b/; awk '{ print $1 }' f; cut -c1 f; wc -l f; no-such-command",
)
"""One of each of what commands are made of."""


class Zygote:
    """Everything a worker is made of, but for its connection.

    `archive` is the file to load modules from; "": there is none.
    """

    def __init__(
        self,
        control: socket.socket,
        archive: str,
        *,
        ends_workers: bool = True,
        replays: bool = False,
        tools: Sequence[str] = (),
    ) -> None:
        self._machine = replay_machine() if replays else host_machine()
        self._tools = tools
        sys.setrecursionlimit(RECURSION)
        prepare()
        recorded = Archive.open(archive) if archive else None
        if recorded is None:
            load_everything(self._machine)
            if archive:
                with suppress(OSError):  # there is no room for it: the next zygote is as slow as this one
                    record(archive)
        else:
            recorded.install()
            recorded.load_extensions()
            recorded.use_zones()
            warm_up(self._machine, WARM_UP[:1])
        host_frames()
        self._worker = self._make_worker()
        if recorded is None:
            self._worker.prepare_containers()
        children = Children() if ends_workers else None
        self._layers = enter_namespaces()
        self._judge = ForkJudge()
        self._server = ForkServer(
            control,
            self._fork,
            spares=SPARES,
            quiet=QUIET,
            judge=self._judge,
            children=children,
            later=None if recorded is None else self._load_rest(recorded),
        )
        gc.collect()
        gc.freeze()

    def _make_worker(self) -> Worker:
        poller = self._machine.poller
        assert isinstance(poller, EpollPoller)
        worker = Worker(Session(self._machine, programs=find, names=names(), tools=self._tools), poller)
        worker.warm_up(WARM_UPS)
        return worker

    def run(self) -> None:
        """Serve until the owner goes away."""
        self._server.run()

    def _load_rest(self, archive: Archive) -> Iterator[None]:
        yield from archive.load_rest()
        warm_up(self._machine)
        self._worker = self._make_worker()  # of one that was made before, workers share less
        self._worker.prepare_containers()
        gc.collect()
        gc.freeze()

    def _fork(self, request: Request, ahead: bool) -> Made:
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        # Before the fork: what is written now is shared, and not copied by the worker.
        self._worker.connect(theirs)
        try:
            pid = fork_alone()
            if pid == 0:
                status = 1
                try:
                    status = self._worker.run(
                        request.memory_bytes, self._layers, fork_judge=self._judge.listeners, warm_up=ahead
                    )
                finally:
                    os._exit(status)
        finally:
            self._worker.disconnect()
        self._judge.expect(pid)
        return Made(pid, os.pidfd_open(pid), ours)


def load_everything(machine: Machine) -> None:
    """Import all that a worker could need."""
    preload()
    import belljar.worker.companion_host  # noqa: F401

    warm_up(machine)


def record(archive: str) -> None:
    """Write an archive of everything that was loaded. OSError."""
    write_archive(archive, [spawned_host, *sys.modules.values()])


def warm_up(machine: Machine, commands: Sequence[str] = WARM_UP) -> None:
    """Run ordinary commands in a session that is thrown away, to fill caches that all workers then share."""
    session = Session(machine, programs=find, names=names())
    for command in commands:
        session.exec(command, stdin=b"a b\n", merge_stderr=True)


def main() -> None:
    *options, archive, control = sys.argv[1:]
    os.environ["HOME"] = "/"  # a library that looks for it while it loads would ask the kernel who we are
    connection = socket.socket(fileno=int(control))
    tools = prepared_beside(archive)
    Zygote(connection, archive, ends_workers=HANDS_OVER not in options, replays=REPLAYS in options, tools=tools).run()


if __name__ == "__main__":
    main()
