"""V8's template and the processes made from it: a prefix is a fork of the template, a run is a fork of a prefix."""

from __future__ import annotations

import json
import platform
import socket
from typing import Final, Literal

from belljar.abi.system import MACHINE, OSRELEASE, OSTYPE, VERSION
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.runs_host import Runs
from belljar.engines.owner.template_host import EngineLimits, EngineProcess, template
from belljar.engines.wire.calls import CALLS
from belljar.lockdown.bpf import MACHINES, fork_filter, worker_filter

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


def command(guests: Guests) -> list[str]:
    """Return the command of a template, of runs (`sandbox.js`) or programs (`node`). Raises EngineUnavailable."""
    # Here: only those who run JavaScript pay for what it needs.
    from belljar.engines.owner.js_build_host import HERE, addon, addon_digest, node
    from belljar.lockdown.seal_host import landlock_rules

    machine = MACHINES.get(platform.machine())
    if machine is None:
        raise EngineUnavailable(f"JavaScript does not run on {platform.machine()}; it does on {', '.join(MACHINES)}")
    filters = [
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
    """A process that has evaluated a prefix, and is copied for each run. One run is kept ready.

    `sessions`: what is made of it runs one thing after another, and can be copied between them.
    """

    def __init__(self, *, sessions: bool = False) -> None:
        self._process = template("js").fork(EngineLimits(0, 0.0), {"role": "prefix", "copied": True})
        kind = b" session" if sessions else b" run"
        self._runs = Runs(self._process, (kind, kind), copied=sessions)
        self.connection.setblocking(True)

    @property
    def connection(self) -> socket.socket:
        return self._process.connection

    @property
    def alive(self) -> bool:
        return self._process.alive

    def expect_runs(self) -> None:
        """Make the first run ready, once the prefix's code is evaluated."""
        self._runs.make_spare()

    def take(self) -> EngineProcess:
        """A sealed process in the prefix's exact state. Raises EngineUnavailable if the prefix is gone."""
        try:
            process = self._runs.take()
        except EngineUnavailable as error:
            raise EngineUnavailable(f"the prefix gives no run: {error}; precompile it again") from error
        process.connection.setblocking(True)
        return process

    def kill(self) -> None:
        """End it, and with it every run. Idempotent. In a forked child of its owner, only close."""
        self._runs.close()
        self._process.kill()
