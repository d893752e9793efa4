"""V8's template and the processes made from it: a prefix is a fork of the template, a run is a fork of a prefix."""

from __future__ import annotations

import json
import os
import platform
import socket
import sys
import threading
from contextlib import suppress
from typing import Final, Literal

from belljar.abi.system import MACHINE, OSRELEASE, OSTYPE, VERSION
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.template_host import EngineLimits, EngineProcess, template
from belljar.engines.wire.calls import CALLS
from belljar.engines.wire.js import FORK, frame
from belljar.lockdown.bpf import MACHINES, fork_filter, worker_filter
from belljar.lockdown.sockets_host import receive_descriptors

Guests = Literal["run", "program"]

NODE_FLAGS: Final = (
    "--single-threaded",  # a fork has one thread: whatever V8 left to others would never be done
    "--no-maglev-osr",  # and on one thread a loop in Maglev's code would never get into TurboFan's
    "--v8-pool-size=0",
    "--no-deprecation",
    "--no-warnings",
    "--disable-sigusr1",
    "--expose-internals",  # to our own code in Node's realm, which guests are not in
    "--no-experimental-global-navigator",
)
_ANSWER_SECONDS: Final = 30.0
_SOCKET_BUFFER: Final = 1 << 20


def command(guests: Guests) -> list[str]:
    """What starts a template, of runs (`sandbox.js`) or of programs (`node`). Raises EngineUnavailable."""
    # Here: only those who run JavaScript pay for what it needs.
    from belljar.engines.owner.js_build_host import HERE, addon, addon_digest, node
    from belljar.lockdown.seal_host import landlock_rules

    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise EngineUnavailable(f"JavaScript does not run on {platform.machine()}; it does on {', '.join(MACHINES)}")
    filters = [
        worker_filter(machine, compiles=True, forks=True),
        worker_filter(machine, compiles=True),
        worker_filter(machine, compiles=True, judged=True),
        fork_filter(machine),
    ]
    script = str(HERE / "runtime" / "template.cjs")
    calls = json.dumps({name: list(call) for name, call in CALLS.items()})
    system = json.dumps([OSTYPE, VERSION, OSRELEASE, MACHINE])
    sealing = (landlock_rules(), *filters)
    library = addon()
    loaded = [str(library), addon_digest(library)]
    return [str(node()), *NODE_FLAGS, script, guests, *loaded, *(part.hex() for part in sealing), calls, system]


class PrefixProcess:
    """A process that has evaluated a prefix, and forks itself for each run. One run is kept ready.

    `sessions`: what it makes runs one thing after another, and can be copied between them.
    """

    def __init__(self, *, sessions: bool = False) -> None:
        self._wanted = frame(FORK, b"session" if sessions else b"")
        self._process = template("js").fork(EngineLimits(0, 0.0), {"role": "prefix"})
        self._lock = threading.Lock()
        self._asked = 0
        self.connection.setblocking(True)

    @property
    def connection(self) -> socket.socket:
        return self._process.connection

    @property
    def alive(self) -> bool:
        return self._process.pidfd >= 0 and self._process.alive

    def expect_runs(self) -> None:
        """Once its code is evaluated: from now on the connection is only for asking for runs."""
        self.connection.settimeout(_ANSWER_SECONDS)
        with self._lock:
            self._ask()

    def take(self) -> EngineProcess:
        """A sealed process in the prefix's exact state. Raises EngineUnavailable if the prefix is gone."""
        if sys.platform != "linux":
            raise NotImplementedError
        with self._lock:
            try:
                if self._asked == 0:
                    self._ask()
                answer, fds = receive_descriptors(self.connection, 4096, 3)
                self._asked -= 1
                if answer.startswith(b"+"):
                    self._ask()
            except OSError as error:
                raise EngineUnavailable(f"the prefix gives no run: {error}; precompile it again") from error
        if not answer.startswith(b"+") or len(fds) not in (2, 3):
            for fd in fds:
                os.close(fd)
            said = answer[1:].decode("utf-8", "replace") or "its process ended"
            raise EngineUnavailable(f"the prefix gives no run: {said}; precompile it again")
        connection = socket.socket(fileno=fds[0])
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SOCKET_BUFFER)
        control = socket.socket(fileno=fds[2]) if len(fds) == 3 else None
        process = EngineProcess(int(answer[1:]), fds[1], connection, control)
        if control is not None:
            process.related()
        return process

    def _ask(self) -> None:
        self.connection.sendall(self._wanted)
        self._asked += 1

    def kill(self) -> None:
        """End it, and with it every run. Idempotent. In a forked child of its owner it is only let go of."""
        if os.getpid() == self._process.owner:
            with suppress(OSError):
                self.connection.shutdown(socket.SHUT_RDWR)  # a thread that waits for a run hears of the end
            with self._lock:  # and waits no more when the connection is closed, whose number may then be another's
                self._process.kill()
        else:
            self._process.kill()
