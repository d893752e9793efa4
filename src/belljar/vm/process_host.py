"""QEMU's process: pid 1 of namespaces of its own (the native tier's launcher puts them up), with nothing to open.

Its root holds QEMU's own files and the kernel, read-only. All it talks to are descriptors that it is started with, and
in its network namespace, which is what the guest's packets see, the proxy's listeners.
"""

from __future__ import annotations

import fcntl
import os
import socket
import sys
from contextlib import ExitStack, suppress
from typing import Final

from msgspec import Struct

from belljar.abi.limits import MIB, Limits
from belljar.abi.wire import Ready, WireError, worker_frames
from belljar.lockdown.bpf import MACHINES
from belljar.lockdown.polling_host import readable
from belljar.lockdown.seal_host import landlock_rules
from belljar.lockdown.standard_host import open_standard_descriptors
from belljar.native.accounts import Account
from belljar.native.agent_build_host import agent_program
from belljar.native.launch_host import (
    END_SECONDS,
    end_launcher,
    owner_ids,
    receive_made,
    receive_ready,
    spawn_launcher,
)
from belljar.native.mounts_host import device_for
from belljar.native.plan import AGENT_PROCESSES, Ground, Inside, encode_plan
from belljar.native.roots import Bind
from belljar.owner.cgroup_host import Cgroup
from belljar.owner.handle_host import CgroupUnavailable, WorkerUnavailable
from belljar.vm import command
from belljar.vm.command import Disk, Hardware, qemu_words
from belljar.vm.filters import qemu_filter
from belljar.vm.network import Tap
from belljar.vm.parts_host import Parts
from belljar.vm.qmp_host import Monitor

OVERHEAD: Final = 512 * MIB
"""Memory of QEMU beside the machine's own."""
_STDERR, _LAUNCHER, _DESCRIPTORS = 2, 3, 4
_ABOVE: Final = 64
"""Where our ends are while numbers are given to the launcher."""
_PROCESSES: Final = 256
_ACCOUNT: Final = Account("belljar", 1000, 1000, "/")
_CONSOLE_MAX: Final = 64 << 10


class Start(Struct, frozen=True):
    """A machine to start."""

    parts: Parts
    hardware: Hardware
    disk: Disk
    disk_fd: int
    """-1: there is none."""
    memory_fd: int
    """Of a file as large as the machine's memory."""
    tap: Tap | None = None
    """Steps for the namespace, if the machine has a network."""
    incoming: bool = False
    shared: bool = False
    needs_cgroup: bool = False


class Process:
    """QEMU, running. `end` ends it."""

    def __init__(
        self, pid: int, launcher: socket.socket, descriptors: socket.socket, ends: dict[int, socket.socket]
    ) -> None:
        self.pid = pid
        self.pidfd = os.pidfd_open(pid) if sys.platform == "linux" else -1
        self.launcher = launcher
        self.descriptors = descriptors
        """Where sockets come out that the plan had made."""
        self.console = ends[command.CONSOLE]
        self.monitor = Monitor(ends[command.MONITOR])
        self.control = ends[command.CONTROL]
        self.relays = [ends[command.FIRST_RELAY + number] for number in range(command.RELAYS)]
        self.layers: list[str] = []
        self.listeners: list[socket.socket] = []
        self.cgroup: Cgroup | None = None

    def console_text(self) -> str:
        """The last lines that the machine wrote to its console."""
        self.console.setblocking(False)
        data = b""
        with suppress(OSError):
            while piece := self.console.recv(_CONSOLE_MAX):
                data = (data + piece)[-_CONSOLE_MAX:]
        lines = data.decode("utf-8", "replace").splitlines()[-12:]
        return "\n".join("".join(c for c in line if c.isprintable())[:200] for line in lines if line.strip())

    def wait(self, seconds: float) -> bool:
        """Whether QEMU has ended by itself within these seconds."""
        return self.pidfd < 0 or readable(self.pidfd, seconds)

    def end(self) -> None:
        """Kill it and wait; close everything. Idempotent."""
        pidfd, self.pidfd = self.pidfd, -1
        if pidfd < 0 or sys.platform != "linux":
            return
        end_launcher(pidfd, self.launcher)
        if self.cgroup is not None:
            self.cgroup.remove(END_SECONDS)
        self.close()

    def close(self) -> None:
        """Close our descriptors; the control connection is its user's."""
        for each in (self.launcher, self.descriptors, self.console, *self.relays, *self.listeners):
            each.close()
        self.monitor.close()


def start_qemu(start: Start) -> Process:
    """Start QEMU, sealed and proved. WorkerUnavailable, CgroupUnavailable."""
    ids = owner_ids()
    with ExitStack() as undo:
        tun = undo.enter_context(device_for(ids.base, "/dev/net/tun")) if start.tap is not None else ""
        user = None if ids.base is None else ids.base + _ACCOUNT.uid
        kvm = undo.enter_context(device_for(user, "/dev/kvm")) if start.hardware.accel == "kvm" else ""
        cgroup = _make_cgroup(start)
        plan = encode_plan(
            Ground(
                machine=MACHINES["x86_64"],
                ids=ids,
                landlock=landlock_rules(),
                lowers=[],
                binds=_binds(start.parts),
                cgroups=[] if cgroup is None else cgroup.directories,
            ),
            Inside(
                account=_ACCOUNT,
                hostname="belljar",
                cwd="/",
                limits=_limits(start.hardware),
                bounded=cgroup is not None,
                files=[],
                before=[] if start.tap is None else start.tap.before(tun),
                network=[] if start.tap is None else start.tap.steps(),
                directories=("/lib64", "/lib", command.BOOT),
                devices=(kvm,) if kvm else (),
                calls=qemu_filter(MACHINES["x86_64"]),
                program=_words(start),
            ),
        )
        process = _start(start, cgroup)
        try:
            process.launcher.sendall(plan)
            process.layers = _layers(receive_ready(process.launcher))
            if start.tap is not None:
                process.listeners = _receive_listeners(process.descriptors)
        except (OSError, WireError) as error:
            process.end()
            raise WorkerUnavailable(f"the launcher ended while it started: {error}") from error
        except BaseException:
            process.end()
            raise
    return process


def _memory(hardware: Hardware) -> int:
    return hardware.memory_mib * MIB + OVERHEAD


def _limits(hardware: Hardware) -> Limits:
    return Limits(memory_bytes=_memory(hardware), processes=_PROCESSES, open_files=512, file_bytes=16 * MIB, files=1024)


def _make_cgroup(start: Start) -> Cgroup | None:
    try:
        return Cgroup(_memory(start.hardware), processes=_PROCESSES + AGENT_PROCESSES)
    except CgroupUnavailable:
        if start.needs_cgroup:
            raise
        return None


def _binds(parts: Parts) -> list[Bind]:
    """QEMU's files: the prepared ones, or those of this machine if it is its QEMU."""
    root = parts.root if parts.qemu.startswith(f"{parts.root}/") else ""
    named = [(f"{root}/usr", "/usr"), (f"{root}/usr/lib", "/lib"), (f"{root}/usr/lib64", "/lib64")]
    return [Bind(source, target) for source, target in (*named, (parts.boot, command.BOOT))]


def _words(start: Start) -> list[str]:
    program = start.parts.qemu.removeprefix(start.parts.root)
    return qemu_words(
        program,
        start.hardware,
        start.disk,
        tsc_khz=start.parts.tsc_khz,
        network=start.tap is not None,
        incoming=start.incoming,
        shared=start.shared,
    )


def _start(start: Start, cgroup: Cgroup | None) -> Process:
    open_standard_descriptors()
    numbers = [_LAUNCHER, command.CONSOLE, command.MONITOR, command.CONTROL]
    numbers += [command.FIRST_RELAY + number for number in range(command.RELAYS)]
    ours: dict[int, socket.socket] = {}
    theirs: dict[int, int] = {}
    received, sent = socket.socketpair()
    try:
        for number in numbers:
            ours[number], end = socket.socketpair()
            with end:
                for side in (ours[number], end):
                    side.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
                theirs[number] = fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, _ABOVE)
        theirs[_STDERR] = fcntl.fcntl(theirs[command.CONSOLE], fcntl.F_DUPFD_CLOEXEC, _ABOVE)  # QEMU's own complaints
        theirs[_DESCRIPTORS] = fcntl.fcntl(sent.fileno(), fcntl.F_DUPFD_CLOEXEC, _ABOVE)
        for number, fd in ((command.MEMORY, start.memory_fd), (command.DISK, start.disk_fd)):
            if fd >= 0:
                theirs[number] = fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, _ABOVE)
        pid = spawn_launcher(str(agent_program()), theirs)
    except OSError as error:
        for each in (*ours.values(), received):
            each.close()
        if cgroup is not None:
            cgroup.remove()
        raise WorkerUnavailable(f"the launcher did not start: {error}") from error
    finally:
        for fd in theirs.values():
            os.close(fd)
        sent.close()
    process = Process(pid, ours.pop(_LAUNCHER), received, ours)
    process.cgroup = cgroup
    return process


def _layers(greeting: bytes) -> list[str]:
    for message in worker_frames().feed(greeting):
        if isinstance(message, Ready):
            return message.layers
    raise WireError("the launcher did not say which walls hold")


def _receive_listeners(descriptors: socket.socket) -> list[socket.socket]:
    """The sockets that the plan had made; its directory of changes is not needed."""
    changes, *found = receive_made(descriptors)
    os.close(changes)
    return [socket.socket(fileno=fd) for fd in found]
