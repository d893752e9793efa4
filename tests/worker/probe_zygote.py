"""A zygote whose workers have a few more commands, which act from inside the worker as no guest could."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from errno import errorcode

from belljar.abi.errors import SysError
from belljar.abi.wire import HELLO, Failure, Reply
from belljar.bin._kit.discovery import find, names
from belljar.kernel.engines import EngineUnavailable
from belljar.kernel.loader import Program
from belljar.kernel.process import Process
from belljar.lockdown.forks_host import fork_alone
from belljar.worker.descriptor_host import Descriptor
from belljar.worker.files import FileCalls
from belljar.worker.serve import Server
from belljar.zygote import zygote_host


def engine(process: Process) -> int:
    """engine KIND WORD...: send each word and show what comes back."""
    try:
        link = process.kernel.engines.open(process.argv[1], {"cpu_seconds": 5})
    except EngineUnavailable as error:
        process.warn(error.reason)
        return 126
    try:
        for word in process.argv[2:]:
            if word == "kill":
                link.kill()
            else:
                link.send(word.encode())
            reply = link.recv()
            process.print(reply.decode() if reply else "gone")
            process.stdout.flush()
    except SysError as error:
        process.warn(error.reason)
        return 1
    finally:
        link.close()
    return 0


def engines(process: Process) -> int:
    """engines COUNT: open as many at once; show how many could be."""
    links = []
    try:
        for _ in range(int(process.argv[1])):
            links.append(process.kernel.engines.open("echo", {}))  # noqa: PERF401 - what was opened is to be closed
    except EngineUnavailable as error:
        process.warn(error.reason)
    process.print(str(len(links)))
    for link in links:
        link.close()
    return 0


def flood(process: Process) -> int:
    """flood: take 8 MB from an engine that is much faster than its reader, and send as many."""
    link = process.kernel.engines.open("echo", {})
    try:
        link.send(b"flood")
        got = 0
        while got < 8 << 20:
            got += len(link.recv(1 << 20))
        link.send(b"x" * 1000)
        process.print(f"{got} {len(link.recv())}")
    finally:
        link.close()
    return 0


def fork(process: Process) -> int:
    """fork: try it, which nobody has permitted."""
    for how in (os.fork, fork_alone):
        try:
            pid = how()
        except OSError as error:
            process.print(errorcode[error.errno or 0])
        else:
            if pid == 0:
                time.sleep(60)
                os._exit(0)
            process.print("forked")
    return 0


def misbehave(process: Process) -> int:
    """misbehave HOW: when the owner next forks this worker, do something else."""
    how = process.argv[1]

    def act(server: Server, number: int, descriptors: Sequence[Descriptor]) -> None:
        fd = descriptors[0].take()
        if how in ("child-silent", "child-silent-reply", "parent-hello"):
            pid = fork_alone()
            if pid == 0:
                while True:
                    time.sleep(60)
        match how:
            case "child-silent":
                server._send(Failure(number, 5, b""))
            case "child-silent-reply":
                os.close(fd)
                server._send(Reply(number, 1))
            case "parent-hello":
                os.write(fd, HELLO)
                server._send(Reply(number, 1))
            case "no-fork":
                os.write(fd, HELLO)
                server._send(Reply(number, 1))
            case "garbage":
                os.write(fd, b"xyz")
                os.close(fd)
                server._send(Reply(number, 1))
            case "twice":
                pid = fork_alone()
                if pid == 0:
                    try:
                        fork_alone()
                    except OSError:
                        os._exit(0)
                    while True:
                        time.sleep(60)
                server._send(Failure(number, 5, b""))
            case "nothing":
                return

    Server._fork = act  # type: ignore[method-assign, assignment]
    return 0


def crash(process: Process) -> int:
    """crash [fiber|call]: raise what nobody expects, here, in a further fiber, or in the owner's next call of files."""
    how = process.argv[1] if len(process.argv) > 1 else ""

    def fail(*_arguments: object) -> int:
        raise KeyError("a detail that is nobody's business")

    if how == "call":
        FileCalls.list = fail  # type: ignore[method-assign, assignment]
        return 0
    if how == "fiber":
        process.add_fiber(fail)
        process.sleep(10)
    return fail()


PROGRAMS: dict[str, Program] = {
    "crash": crash,
    "engine": engine,
    "engines": engines,
    "flood": flood,
    "fork": fork,
    "misbehave": misbehave,
}


def main() -> None:
    module = vars(zygote_host)
    module["find"] = lambda name: PROGRAMS.get(name) or find(name)
    module["names"] = lambda: [*names(), *PROGRAMS]
    zygote_host.main()


if __name__ == "__main__":
    main()
