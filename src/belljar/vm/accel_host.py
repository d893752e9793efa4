"""Chooses between KVM and emulation: by booting a machine, never by looking for a device.

The verdict is kept per machine, kernel and parts: an internal error of KVM's, or no answer in time, means no.
"""

from __future__ import annotations

import hashlib
import os
import platform
from contextlib import suppress
from typing import Final

from belljar.abi.cache_host import draft_directory
from belljar.abi.limits import MIB
from belljar.owner.handle_host import WorkerUnavailable
from belljar.vm.command import Accel, Disk, Hardware
from belljar.vm.memory_host import make_memory
from belljar.vm.parts_host import Parts, directory
from belljar.vm.tsc_host import boot_id

CHOICES: Final = ("auto", "kvm", "tcg")
PROBE_SECONDS: Final = 20.0
_DEVICE: Final = "/dev/kvm"


def choose_accel(wanted: str, parts: Parts) -> Accel:
    """WorkerUnavailable if it is to be KVM, which does not work here."""
    if wanted == "tcg" or (wanted == "auto" and not os.path.exists(_DEVICE)):
        return "tcg"
    works, why = _verdict(parts)
    if works:
        return "kvm"
    if wanted == "kvm":
        raise WorkerUnavailable(f"accel='kvm': a machine does not boot with KVM here: {why}. Use accel='auto' or 'tcg'")
    return "tcg"


def _verdict(parts: Parts) -> tuple[bool, str]:
    """Whether a machine boots with KVM, and if not, what happened."""
    named = f"{boot_id()} {platform.release()} {parts.key}"
    path = os.path.join(directory(), f"kvm-{hashlib.sha256(named.encode()).hexdigest()[:16]}")
    with suppress(OSError), open(path) as file:
        verdict, _, why = file.read(2000).partition("\n")
        return verdict == "yes", why
    why = probe_kvm(parts)
    with suppress(OSError):
        temporary = os.path.join(draft_directory(directory()), f"kvm.{os.getpid()}")
        with open(temporary, "w") as file:
            file.write("yes\n" if not why else f"no\n{why[:1000]}")
        os.rename(temporary, path)
    return not why, why


def probe_kvm(parts: Parts, seconds: float = PROBE_SECONDS) -> str:
    """Boot a machine with KVM as far as its first program; "" or what went wrong."""
    from belljar.vm.process_host import Start, start_qemu
    from belljar.vm.talk_host import await_hello

    if not os.access(_DEVICE, os.R_OK | os.W_OK):
        return f"{_DEVICE} is not there, or not for this user"
    hardware = Hardware(1, 256, "kvm")
    memory = make_memory(hardware.memory_mib * MIB)
    process = None
    try:
        process = start_qemu(Start(parts, hardware, Disk(), -1, memory))
        await_hello(process, seconds)
    except WorkerUnavailable as error:
        return str(error).replace("\n", " / ")
    finally:
        os.close(memory)
        if process is not None:
            process.end()
            process.control.close()
    return ""
