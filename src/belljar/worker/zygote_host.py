"""The zygote: a clean, warm process that forks sealed workers. Started as `python -I -m belljar.worker.zygote_host FD`.

It holds no secret and does no guest work. It imports everything, makes one session, gives up its privileges, and then
only answers requests on its control socket: each answer is the connection to a worker that is already locked. A few
such workers are kept ready. It also judges forks: a worker that forks waits in the kernel until the zygote lets it,
which it does once for each permit of the owner. When the control socket ends, so does the zygote; a worker ends with
its own connection.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import time
from typing import Final

from belljar.abi.limits import Limits
from belljar.abi.wire import host_frames
from belljar.engines.programs import find, names, preload
from belljar.kernel.machine import Machine
from belljar.kernel.machine_host import EpollPoller, host_machine
from belljar.lockdown.forks_host import fork_alone
from belljar.lockdown.polling_host import Readiness, readable
from belljar.lockdown.seal_host import adopt_orphans, enter_namespaces, prepare
from belljar.lockdown.sockets_host import send_descriptors
from belljar.worker.fork_judge_host import ForkJudge
from belljar.worker.life_host import RECURSION, WARM_UP_COMMAND, Life
from belljar.worker.session import Session

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


class Worker:
    """A forked worker, as the zygote knows it until it hands it over."""

    def __init__(self, pid: int, pidfd: int, connection: socket.socket) -> None:
        self.pid = pid
        self.pidfd = pidfd
        self.connection = connection

    def close(self) -> None:
        self.connection.close()
        os.close(self.pidfd)


class Zygote:
    def __init__(self, control: socket.socket) -> None:
        self._control = control
        self._usual = Limits().memory_bytes
        self._machine = host_machine()
        sys.setrecursionlimit(RECURSION)
        poller = self._machine.poller
        assert isinstance(poller, EpollPoller)
        prepare()
        preload()
        warm_up(self._machine)
        host_frames()
        self._life = Life(Session(self._machine, programs=find, names=names()), poller)
        self._life.warm_up(WARM_UPS)
        self._layers = enter_namespaces()
        self._spares: list[Worker] = []
        self._judge = ForkJudge()
        adopt_orphans()
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        gc.collect()
        gc.freeze()
        signal.signal(signal.SIGCHLD, _reap)

    def run(self) -> None:
        """Answer until the host goes away."""
        control, busy_until = self._control.fileno(), 0.0
        requests = Readiness(self._control)
        events = select.epoll()
        events.register(control, select.EPOLLIN)
        events.register(self._judge.fileno(), select.EPOLLIN)
        while True:
            lacking = len(self._spares) < SPARES
            ready = events.poll(max(0.0, busy_until - time.monotonic()) if lacking else None)
            if not ready:
                self._add_spare()
            for fd, _ in sorted(ready, key=lambda entry: entry[0] != control):
                # What the host said before a worker forked is known here before that worker is answered.
                while requests.within(0):
                    if not self._answer():
                        return
                    busy_until = time.monotonic() + QUIET
                if fd == self._judge.fileno():
                    self._judge.work()

    def _add_spare(self) -> None:
        try:
            self._spares.append(self._fork(self._usual, ahead=True))
        except OSError:
            return  # the next request says so to who asks

    def _answer(self) -> bool:
        """One request: for a worker, answered by its pid and two descriptors; or a permit to fork. False at the end."""
        try:
            request = self._control.recv(64)
        except OSError:
            return False
        match request[:1]:
            case b"w" if len(request) == 9:
                worker = self._take(int.from_bytes(request[1:], "little"))
                if worker is None:
                    self._control.send(b"-fork failed")
                    return True
                try:
                    send_descriptors(self._control, b"+%d" % worker.pid, [worker.connection.fileno(), worker.pidfd])
                except OSError as error:
                    self._control.send(f"-can't hand a worker over: {error}".encode())
                finally:
                    worker.close()
                return True
            case b"f" if len(request) == 9:
                self._judge.permit(int.from_bytes(request[1:5], "little"), int.from_bytes(request[5:], "little"))
                return True
        return False

    def _take(self, memory: int) -> Worker | None:
        while memory == self._usual and self._spares:
            spare = self._spares.pop(0)
            if not readable(spare.pidfd, 0):
                return spare
            spare.close()
        try:
            return self._fork(memory)
        except OSError:
            return None

    def _fork(self, memory: int, *, ahead: bool = False) -> Worker:
        ours, theirs = socket.socketpair()
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        # Here, and not in the worker, which would copy the memory it writes to: it shares what is done before the fork.
        self._life.connect(theirs)
        try:
            pid = fork_alone()
            if pid == 0:
                status = 1
                try:
                    status = self._life.live(memory, self._layers, fork_judge=self._judge.door, warm_up=ahead)
                finally:
                    os._exit(status)
        finally:
            self._life.leave()
        self._judge.expect(pid)
        return Worker(pid, os.pidfd_open(pid), ours)


def warm_up(machine: Machine) -> None:
    """Run ordinary commands in a session that is thrown away, to fill caches that all workers then share."""
    session = Session(machine, programs=find, names=names())
    for command in WARM_UP:
        session.exec(command, stdin=b"a b\n", merge_stderr=True)


def _reap(_number: int, _frame: object) -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    Zygote(control).run()


if __name__ == "__main__":
    main()
