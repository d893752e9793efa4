"""QEMU's command line. Pure: a machine in, words out.

Machines that continue a saved one need the same devices in the same order: all that differs between sandboxes is behind
them. Everything that QEMU uses is a descriptor that it is started with.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

RELAYS: Final = 28
"""Ports for mounted trees and connections (agent/vm.c)."""
CONSOLE, MONITOR, CONTROL, MEMORY, DISK, TAP = 10, 11, 12, 13, 14, 15
FIRST_RELAY: Final = 20
"""Numbers of descriptors."""
DISK_DEVICE, NETWORK_DEVICE = "virtio1", "virtio2"
"""What the kernel calls the devices behind the ports'."""
BOOT: Final = "/boot"
"""Where the kernel and the first root are in QEMU's own root."""
TRANSLATION_MIB: Final = 128
"""Of translated code, without a processor that does it."""

Accel = Literal["kvm", "tcg"]
_KERNEL: Final = (
    "console=ttyS0 quiet loglevel=3 panic=-1 random.trust_cpu=on mitigations=off no_timer_check cryptomgr.notests "
    "audit=0 lsm= init=/init"
)
_EMULATED: Final = "max,-erms"
"""Kernels copy by `rep movsb` where that is said to be fast; emulated, it is a byte at a time."""
_CLOCK: Final = "tsc=reliable tsc_early_khz={}"
"""Emulated processors have the time-stamp counter of this machine's, and no way to tell its rate. Without it the kernel
would count ticks, of which a machine that others keep waiting loses most."""
_FIXED: Final = "norandmaps"
"""QEMU translates a program's code anew for each address that it is found at: with random ones that is most of what
the start of a program takes."""


class Hardware(Struct, frozen=True):
    """What a saved machine depends on, beside the programs."""

    cpus: int = 2
    memory_mib: int = 512
    accel: Accel = "tcg"


class Disk(Struct, frozen=True):
    """How the root's blocks are had: from a file, over NBD, or (while a machine is saved) none."""

    kind: Literal["file", "nbd", "none"] = "none"
    read_only: bool = False


def qemu_words(
    program: str, hardware: Hardware, disk: Disk, *, tsc_khz: int, network: bool, incoming: bool, shared: bool
) -> list[str]:
    """`incoming`: it continues a saved machine, which the monitor will name. `shared`: it will be saved with its memory
    left where it is."""
    words = [program, "-name", "belljar", "-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"]
    words += ["-machine", "microvm,acpi=on,rtc=on,isa-serial=on,pic=on,memory-backend=ram"]
    if hardware.accel == "kvm":
        words += ["-accel", "kvm", "-cpu", "host"]
    else:
        words += ["-accel", f"tcg,thread=multi,tb-size={TRANSLATION_MIB}", "-cpu", _EMULATED]
    words += ["-smp", str(hardware.cpus), "-m", str(hardware.memory_mib)]
    sharing = "on" if shared else "off"
    memory = f"memory-backend-file,id=ram,mem-path=/proc/self/fd/{MEMORY},size={hardware.memory_mib}M,share={sharing}"
    words += ["-object", memory]
    append = _KERNEL if hardware.accel == "kvm" else f"{_KERNEL} {_CLOCK.format(tsc_khz)} {_FIXED}"
    words += ["-kernel", f"{BOOT}/vmlinux", "-initrd", f"{BOOT}/initrd", "-append", append]
    words += ["-sandbox", "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"]
    words += ["-chardev", f"socket,id=console,fd={CONSOLE}", "-serial", "chardev:console"]
    words += ["-chardev", f"socket,id=monitor,fd={MONITOR}", "-mon", "chardev=monitor,mode=control"]
    words += ["-device", "virtio-serial-device,max_ports=31"]
    ports = {"control": CONTROL, **{f"relay{n}": FIRST_RELAY + n for n in range(RELAYS)}}
    for number, (name, fd) in enumerate(ports.items(), 1):
        words += ["-chardev", f"socket,id={name},fd={fd}"]
        words += ["-device", f"virtserialport,chardev={name},name={name},nr={number}"]
    words += [*_disk_words(disk), "-device", "virtio-blk-device,drive=root,werror=report,rerror=report"]
    words += ["-netdev", f"tap,id=net,fd={TAP},vhost=off" if network else "hubport,id=net,hubid=0"]
    words += ["-device", "virtio-net-device,netdev=net,mac=52:54:00:62:65:6c"]
    return [*words, "-incoming", "defer"] if incoming else words


def _disk_words(disk: Disk) -> list[str]:
    if disk.kind == "file":
        place = "file.driver=file,file.filename=/dev/fdset/1,file.locking=off"
        return ["-add-fd", f"fd={DISK},set=1", "-blockdev", f"driver=raw,node-name=root,read-only=on,{place}"]
    if disk.kind == "nbd":
        writing = "on" if disk.read_only else "off"
        place = f"server.type=fd,server.str={DISK},export=root"
        return ["-blockdev", f"driver=nbd,node-name=root,read-only={writing},{place}"]
    return ["-blockdev", "driver=null-co,node-name=root,size=1073741824,read-zeroes=on"]
