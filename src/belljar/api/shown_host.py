"""A live sandbox's files as a directory of this machine: `sandbox.mount_on(directory)`."""

from __future__ import annotations

import logging
import os
import subprocess
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Self

from belljar.abi.paths import join, normalise
from belljar.api.live_tree import LiveTree
from belljar.api.operations import Steps
from belljar.api.request import AnyPath, check_path
from belljar.api.settings import Settings
from belljar.fuse.mount_host import MountError, mount, unmount
from belljar.fuse.serve_host import Served
from belljar.fuse.session import Session


class Shown:
    """What is shown at a directory, until `close`, or until the sandbox is closed."""

    def __init__(self, run: Callable[[Steps[Any]], Any], directory: AnyPath, path: AnyPath, settings: Settings) -> None:
        """`run` performs an operation of the sandbox, on any thread. FileError, MountError."""
        tree = LiveTree(run, normalise(join(settings.cwd, check_path(path))))
        self.directory = os.path.abspath(check_path(directory, "a directory"))
        _forbid_vfork()
        fd = mount(self.directory, f"sandbox-{settings.name}", read_only=True)
        self._served: Served | None = Served(fd, Session(tree, time.time_ns, read_only=True, report=_report))

    def close(self) -> None:
        """Unmount it, even if it is in use. Idempotent."""
        served, self._served = self._served, None
        if served is not None:
            with suppress(MountError):  # somebody else was faster
                unmount(self.directory)
            served.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _forbid_vfork() -> None:
    """Have `subprocess` use fork(2) in this process from now on.

    After vfork or posix_spawn, the thread that starts a program holds the interpreter's lock until the program is
    executed. If that needs the directory shown (`cwd=`), the thread that serves it waits for the lock: a deadlock.
    """
    for name in ("_USE_VFORK", "_USE_POSIX_SPAWN"):  # CPython's documented switches
        setattr(subprocess, name, False)


def _report(error: BaseException) -> None:
    logging.getLogger("belljar").warning("a mount of a sandbox: %r: programs see an input/output error", error)
