"""node - guest JavaScript: V8 in a process of its own, whose system calls are made here, by this process"""

from __future__ import annotations

from contextlib import closing

from belljar.abi.paths import fsencode
from belljar.abi.signals import Signal
from belljar.engines.worker.calls.server import CallServer
from belljar.kernel.engines import EngineUnavailable
from belljar.kernel.process import Process


def main(process: Process) -> int:
    if "/" in process.argv[0]:
        process.executable = process.absolute(process.argv[0])
    limits = process.budget.limits
    options = {"memory_bytes": limits.memory_bytes, "cpu_seconds": limits.cpu_seconds}
    try:
        link = process.kernel.engines.open("node", options)
    except EngineUnavailable as error:
        process.warn(error.reason)
        return 127
    with closing(link):
        server = CallServer(process, link)
        process.catch(Signal.PIPE, lambda _: None)
        # A path need not be text, what is told does: the rest is replaced, as Node does.
        server.start({"executable": fsencode(process.executable).decode("utf-8", "replace")})
        server.serve()
