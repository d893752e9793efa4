"""Machines saved just after they were booted: kept in the cache by all they depend on, and continued as many.

Nothing of a sandbox is in one: its first program waits for a plan. Its memory is one sealed file that all machines of
this process map privately, so that they share what none of them has written to.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import threading
from typing import Final

from msgspec import Struct

from belljar.abi.cache_host import draft_directory
from belljar.abi.limits import MIB
from belljar.owner.handle_host import WorkerUnavailable
from belljar.vm.command import Disk, Hardware, qemu_words
from belljar.vm.memory_host import copy_memory, keep, make_memory, seal
from belljar.vm.parts_host import Parts, directory, trim_directory
from belljar.vm.process_host import Process, Start, start_qemu
from belljar.vm.qmp_host import MonitorError
from belljar.vm.talk_host import await_hello

_VERSION: Final = 2
_KEPT: Final = 6
"""Saved machines in the cache: those used least recently are removed."""


class Saved(Struct):
    """A booted machine: descriptors of its memory and of its devices' state."""

    memory: int
    devices: int


_lock = threading.Lock()
_known: dict[tuple[str, Hardware], Saved] = {}


def saved_machine(parts: Parts, hardware: Hardware) -> Saved:
    """The saved machine; it is booted and saved first if there is none. WorkerUnavailable."""
    with _lock:
        found = _known.get((parts.key, hardware))
        if found is None:
            found = _known[parts.key, hardware] = _find(parts, hardware)
        return found


def _find(parts: Parts, hardware: Hardware) -> Saved:
    words = qemu_words("", hardware, Disk(), tsc_khz=parts.tsc_khz, network=False, incoming=True, shared=False)
    named = f"{_VERSION} {parts.key} {hardware} {words}"
    place = os.path.join(directory("states"), hashlib.sha256(named.encode()).hexdigest()[:24])
    with open(f"{place}.lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.isdir(place):
            _save(parts, hardware, place)
            trim_directory(os.path.dirname(place), _KEPT - 1, {os.path.basename(place)})
        os.utime(place)
        memory = make_memory(hardware.memory_mib * MIB)
        with open(os.path.join(place, "memory"), "rb") as file:
            copy_memory(file.fileno(), memory)
        seal(memory)
        return Saved(memory, os.open(os.path.join(place, "devices"), os.O_RDONLY | os.O_CLOEXEC))


def _save(parts: Parts, hardware: Hardware, place: str) -> None:
    memory = make_memory(hardware.memory_mib * MIB)
    work = tempfile.mkdtemp(dir=draft_directory(os.path.dirname(place)))
    process = None
    try:
        process = start_qemu(Start(parts, hardware, Disk(), -1, memory, shared=True))
        await_hello(process)
        process.monitor.call("stop")
        with open(os.path.join(work, "devices"), "wb") as devices:
            process.monitor.save(devices.fileno(), without_memory=True)
        process.end()
        keep(memory, os.path.join(work, "memory"))
        os.rename(work, place)
    except MonitorError as error:
        raise WorkerUnavailable(f"the booted machine could not be saved: {error}{_console(process)}") from error
    finally:
        if process is not None:
            process.end()
            process.control.close()
        os.close(memory)
        shutil.rmtree(work, ignore_errors=True)


def _console(process: Process | None) -> str:
    said = "" if process is None else process.console_text()
    return f"\nthe machine's last lines:\n{said}" if said else ""


def _forget() -> None:
    """In a forked child: descriptors are shared files, whose positions are the parent's; open them anew."""
    global _lock
    _lock = threading.Lock()
    _known.clear()


os.register_at_fork(after_in_child=_forget)
