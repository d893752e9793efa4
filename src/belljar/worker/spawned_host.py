"""A worker that is a process of its own from the start, for one sandbox in a hurry and where there is no fork(2).

Started as `python -I -c "from belljar.worker.spawned_host import main; main()" CONNECTION ARCHIVE`; `launch_host` does
without Python's `site`, too. Everything it may ever need is either imported before it is sealed, or in the archive (see
`archive_host`). On Windows its standard input has the connection, as the system shares sockets with a process.
"""

from __future__ import annotations

import gc
import os
import socket
import sys
from typing import TYPE_CHECKING, cast

from belljar.worker.archive_host import Archive

if TYPE_CHECKING:
    from belljar.kernel.machine_host import DescriptorPoller


def main() -> None:
    if sys.platform == "win32":
        connection = socket.fromshare(sys.stdin.buffer.read())
    else:
        os.chdir("/")
        connection = socket.socket(fileno=int(sys.argv[1]))
    archive = Archive.open(sys.argv[2])
    if archive is not None:
        archive.install()
    elif sys.flags.no_site:
        import site

        site.main()
    sys.exit(serve(connection, archive, sys.argv[2]))


def serve(connection: socket.socket, archive: Archive | None, path: str = "") -> int:
    """Get ready, then become the worker that the first 8 bytes, its memory limit, ask for."""
    owner = os.getppid()
    gc.disable()  # what is loaded now stays; looking through it would only take time
    from belljar.engines.prepared_host import prepared_beside
    from belljar.engines.worker.programs import find, names, preload
    from belljar.kernel.machine_host import host_machine
    from belljar.lockdown.wall_host import SEALS, die_with_parent, enter_namespaces
    from belljar.worker.session import Session
    from belljar.worker.worker_host import RECURSION, Worker

    sys.setrecursionlimit(RECURSION)
    if archive is not None:
        archive.load_extensions()
        archive.use_zones()
    elif SEALS:
        preload()
        import belljar.worker.companion_host  # noqa: F401
    machine = host_machine()
    session = Session(machine, programs=find, names=names(), tools=prepared_beside(path))
    session.exec("echo")  # the builtins are found by their files, so the shell must have run once
    gc.freeze()
    gc.enable()
    layers = enter_namespaces()
    die_with_parent(owner)  # only now: changing its ids clears it
    memory = connection.recv(8, socket.MSG_WAITALL)
    if len(memory) != 8:
        return 0  # the owner changed its mind
    os.dup2(os.open(os.devnull, os.O_RDWR) if not SEALS else 0, 2)
    worker = Worker(session, cast("DescriptorPoller", machine.poller))
    worker.connect(connection)
    return worker.run(int.from_bytes(memory, "little"), layers)
