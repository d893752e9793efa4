"""Runs a command that makes files for long, so that a signal ends it at any moment and nothing half-made stays.

The command runs in a process of its own. This one only waits: for its end, or for SIGINT, SIGTERM or SIGHUP, which
stay blocked otherwise, so no moment exists at which one comes unawares. After a signal the command may clean up for
some seconds. Then each process that it started is killed, and what it had not finished is removed: all of that is in
directories made here (see `draft_directory`).
"""

from __future__ import annotations

import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from belljar.abi.cache_host import DRAFTS
from belljar.cli.screen_host import complain
from belljar.lockdown.wall_host import die_with_parent

GRACE_SECONDS: Final = 5.0
"""For the command to end by itself after a signal, as sandboxes that it runs should be closed."""
_ROUND: Final = 1.0
_ENDING: Final = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def run_guarded(command: Callable[[], int], places: Sequence[str]) -> int:
    """Run it and return its exit status; 128 and the signal's number if a signal ended it.

    `places`: directories in which it will make files. Drafts are kept in one directory for each file system of them.
    """
    if sys.platform != "linux":  # elsewhere orphans can't be adopted
        return command()
    from belljar.lockdown.seal_host import adopt_orphans

    # One that is ignored (nohup, a shell's background job) stays so.
    ending = {each for each in _ENDING if signal.getsignal(each) is not signal.SIG_IGN}
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {*ending, signal.SIGCHLD})
    drafts = _make_directories(places)
    try:
        adopt_orphans()
        sys.stdout.flush()
        sys.stderr.flush()
        parent = os.getpid()
        worker = os.fork()
        if worker == 0:
            _work(command, drafts, before, parent)
        return _await(worker, ending)
    finally:
        for path in drafts:
            shutil.rmtree(path, ignore_errors=True)


def _make_directories(places: Sequence[str]) -> list[str]:
    """The directory for temporary files, and one for drafts on each file system."""
    made = [tempfile.mkdtemp(prefix="belljar-")]
    devices = set()
    for place in places:
        os.makedirs(place, exist_ok=True)
        device = os.stat(place).st_dev
        if device not in devices:
            devices.add(device)
            made.append(tempfile.mkdtemp(prefix=".belljar-drafts-", dir=os.path.abspath(place)))
    return made


def _work(command: Callable[[], int], drafts: Sequence[str], mask: set[int | signal.Signals], parent: int) -> None:
    """The forked process: never returns."""
    status = 1
    try:
        # In a group of its own: what a terminal sends is for the parent, who passes it on once.
        os.setpgid(0, 0)
        signal.signal(signal.SIGTTOU, signal.SIG_IGN)  # or `stty tostop` would stop it when it shows progress
        signal.signal(signal.SIGINT, signal.default_int_handler)
        die_with_parent(parent)
        tempfile.tempdir, *beside = drafts
        os.environ[DRAFTS] = os.pathsep.join(beside)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        status = command()
    except KeyboardInterrupt:
        status = 128 + signal.SIGINT
    except SystemExit as error:
        status = error.code if isinstance(error.code, int) else 1
    except BaseException:  # noqa: BLE001 - the process ends here
        import traceback

        traceback.print_exc()
    finally:
        _end(status)


def _end(status: int) -> None:
    import atexit

    try:
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        os._exit(status)


def _await(worker: int, ending: set[signal.Signals]) -> int:
    """Wait for the worker, or for a signal that ends it."""
    came: int | None = None
    deadline = 0.0
    while True:
        status = _reap(worker)
        if status is not None:
            break
        if came is not None and time.monotonic() > deadline:
            _kill_descendants()
            status = 128 + came
            break
        found = signal.sigtimedwait({*ending, signal.SIGCHLD}, _ROUND)
        if found is not None and found.si_signo in ending:
            if came is None:
                came = found.si_signo
                deadline = time.monotonic() + GRACE_SECONDS
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGINT)
            else:
                deadline = 0.0  # a second one: who sent it does not want to wait
    if came is None:
        if status > 128:
            complain(f"belljar: ended by signal {status - 128}")
        return status
    _kill_descendants()
    return 128 + came


def _reap(worker: int) -> int | None:
    """Collect children that ended; the worker's exit status if it is among them."""
    status = None
    with suppress(ChildProcessError):
        while True:
            pid, ended = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                break
            if pid == worker:
                code = os.waitstatus_to_exitcode(ended)
                status = code if code >= 0 else 128 - code
    return status


def _kill_descendants() -> None:
    """Kill children until there are none: those of a killed one become ours."""
    while children := _children():
        for pid in children:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        for pid in children:
            with suppress(ChildProcessError):
                os.waitpid(pid, 0)


def _children() -> list[int]:
    with open(f"/proc/self/task/{os.getpid()}/children") as file:
        return [int(word) for word in file.read().split()]
