"""Gets the worker of a command-line run: from the shared zygote if there is one, else a process of its own.

`begin` is called before anything else is loaded, so that the worker gets ready while we do: every run waits for what
this module imports.
"""

from __future__ import annotations

import gc
import os
import sys

from belljar.owner.launch_host import archive_path, launch, launch_worker

TYPE_CHECKING = False  # as in `typing`, without loading that
if TYPE_CHECKING:
    from collections.abc import Sequence

    from belljar.owner.handle_host import WorkerHandle
    from belljar.owner.spawn_host import Spawner


class Start:
    """A worker being started."""

    def __init__(self, *, shared: bool) -> None:
        """`shared`: whether to use, and leave behind, a zygote that other runs may use."""
        self._archive = archive_path()
        self._lacks_archive = False
        self._address: str | None = None
        self._zygote = None
        if shared:
            from belljar.cli.shared_host import SharedZygote, address, identity

            try:
                who = identity()
                self._address = address(who)
                if self._address is not None:
                    self._zygote = SharedZygote.find(self._address, who)
            except OSError:
                self._address = None  # no /proc, nothing to share
        self._alone = self._zygote is None
        self._launched = launch_worker(self._archive) if self._alone and sys.platform == "linux" else None
        self._spawner: Spawner | None = None
        if self._alone and self._launched is None:
            self._get_spawner().begin()

    def take(self, memory_bytes: int) -> WorkerHandle:
        from belljar.owner.handle_host import WorkerUnavailable

        gc.freeze()  # all that was loaded stays: the first collection need not look through it
        gc.enable()
        if self._zygote is not None:
            try:
                zygote, self._zygote = self._zygote, None
                return zygote.take(memory_bytes)
            except WorkerUnavailable:
                self._alone = True
        worker = self._get_spawner().take(memory_bytes)
        if self._address is None and self._archive:  # nobody else will look after it
            from belljar.worker.archive_host import Archive

            self._lacks_archive = Archive.open(self._archive) is None  # now, while the worker gets ready
        return worker

    def _get_spawner(self) -> Spawner:
        from socket import socket

        from belljar.owner.spawn_host import Spawner

        if self._spawner is None:
            self._spawner = Spawner(self._archive)
        if self._launched is not None:
            process, connection = self._launched
            self._launched = None
            self._spawner.adopt(process, socket(fileno=connection.detach()))
        return self._spawner

    def close(self) -> None:
        """End the worker if nobody took it."""
        gc.enable()
        if self._zygote is not None:
            self._zygote.close()
        if self._spawner is not None or self._launched is not None:
            self._get_spawner().close()

    def finish(self) -> None:
        """Start, at the end of a run, what it missed: the shared zygote or the archive."""
        self.close()
        if not self._alone:
            return
        if self._address is not None:
            _leave_behind("belljar.cli.zygote_host", self._address, self._archive)
        elif self._lacks_archive:
            _leave_behind("belljar.zygote.recorder_host", self._archive)


_OTHERS = frozenset({"native", "microvm", "--tier=native", "--tier=microvm"})
"""Words of command lines that need no worker: their sandboxes are of another tier."""


def begin(arguments: Sequence[str]) -> Start | None:
    """Start getting a worker if the command line needs one; else return None."""
    if arguments[:1] not in (["run"], ["shell"]) or not _OTHERS.isdisjoint(arguments):
        return None
    gc.disable()  # nothing of what is loaded from here on is garbage; `Start.take` or `close` turns it on again
    return Start(shared=may_share() and "--no-daemon" not in arguments)


def may_share() -> bool:
    """Whether runs may use, and leave behind, a zygote for others."""
    return sys.platform == "linux" and os.environ.get("BELLJAR_NO_DAEMON", "0") in ("", "0")


def _leave_behind(module: str, *arguments: str) -> None:
    """Start a process that outlives us, with none of our descriptors."""
    if sys.platform == "linux":
        launch(["-m", module, *arguments], env={}, keep=[], session=True)
    else:
        import subprocess

        subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-I", "-m", module, *arguments],
            env={},
            cwd="/",
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
