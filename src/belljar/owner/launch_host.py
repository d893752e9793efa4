"""Starts a process of ours with next to nothing loaded: who is in a hurry calls this first, and loads the rest later.

`subprocess` and `socket` take longer to load than a process to start, so what is under them is used here.
"""

from __future__ import annotations

import _socket
import os
import sys
from zlib import crc32

from belljar.abi.cache_host import PACKAGE, cache_directory
from belljar.lockdown.standard_host import open_standard_descriptors

TYPE_CHECKING = False  # what `typing` says, which takes as long to load as everything here together
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

WORKER = "import gc; gc.disable(); from belljar.worker.spawned_host import main; main()"
_INTERRUPT, _KILL = 2, 9
"""SIGINT and SIGKILL, without all of `signal`."""
_USUAL_FILES = 1024
_WITHOUT_SITE = f"import sys; sys.path.append(sys.argv[3]); {WORKER}"
"""The same without `site`: only our own directory is on the path; the archive has the packages."""


class Launched:
    """A child of ours, as `subprocess.Popen` has it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self.returncode: int | None = None

    def poll(self) -> int | None:
        if sys.platform == "win32":
            raise NotImplementedError
        if self.returncode is None:
            try:
                pid, status = os.waitpid(self.pid, os.WNOHANG)
            except ChildProcessError:
                pid, status = self.pid, 0  # somebody else has waited for it
            if pid:
                self.returncode = os.waitstatus_to_exitcode(status)
        return self.returncode

    def kill(self) -> None:
        if sys.platform == "win32":
            raise NotImplementedError
        if self.poll() is None:
            os.kill(self.pid, _KILL)


def archive_path() -> str:
    """The archive of modules of this installation and interpreter; "" where there is no place for one."""
    directory = cache_directory()
    which = crc32(os.fsencode(f"{PACKAGE}\0{sys.executable}\0{sys.version}"))
    return "" if directory is None else f"{directory}/modules-{which:08x}"


def launch_worker(archive: str) -> tuple[Launched, _socket.socket]:
    """A worker started alone, and our end of the connection to it (see `spawned_host`)."""
    if sys.platform == "win32":
        raise NotImplementedError
    open_standard_descriptors()
    ours, theirs = _socket.socketpair()
    try:
        for end in (ours, theirs):
            end.setsockopt(_socket.SOL_SOCKET, _socket.SO_SNDBUF, 1 << 20)
        fd = theirs.fileno()
        # With our stderr, for what goes wrong while it starts; before the first guest byte it lets go of it.
        # Without a HOME, a library that wants to know would ask the kernel who we are.
        arguments = ["-S", "-c", _WITHOUT_SITE, str(fd), archive, os.path.dirname(PACKAGE)]
        return launch(arguments, env={"HOME": "/"}, keep=[2, fd]), ours
    finally:
        theirs.close()


def launch(arguments: Sequence[str], *, env: Mapping[str, str], keep: Sequence[int], session: bool = False) -> Launched:
    """A Python of its own, isolated, with these descriptors of ours and no others; `session`: it outlives our terminal.

    It hears nothing of ^C, which is for us. It begins in our working directory, and leaves that.
    """
    if sys.platform == "win32":
        raise NotImplementedError
    for fd in keep:
        os.set_inheritable(fd, True)
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3) if fd not in keep
    ]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in inheritable_descriptors() if fd > 2 and fd not in keep]
    command = [sys.executable, "-I", *arguments]
    pid = os.posix_spawn(sys.executable, command, env, file_actions=actions, setsid=session, setsigmask=[_INTERRUPT])
    return Launched(pid)


def inheritable_descriptors() -> list[int]:
    """Return the inheritable descriptors that our own caller left open."""
    try:
        numbers = [int(name) for name in os.listdir("/proc/self/fd")]
    except OSError:
        numbers = list(range(_USUAL_FILES))  # there is no /proc
    found: list[int] = []
    for fd in numbers:
        try:
            if os.get_inheritable(fd):
                found.append(fd)
        except OSError:
            continue  # not open, or not any more: the directory itself
    return found
