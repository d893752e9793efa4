"""Starts sandboxes in machines: a saved machine is continued, given its plan, and handed to whoever talks with it."""

from __future__ import annotations

import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Final

from msgspec import Struct

from belljar.abi.base import environment
from belljar.abi.errors import SnapshotError
from belljar.abi.limits import MIB, Limits
from belljar.abi.wire import Ready, encode
from belljar.fuse.session import Account as FileAccount
from belljar.native.accounts import choose_account
from belljar.native.launch_host import descendants, host_files
from belljar.native.network import closed
from belljar.native.network_host import NO_RESOLVER, ip_versions, serve_redirected
from belljar.native.trust import BUNDLES, trust
from belljar.net.broker.authority_host import SandboxAuthority
from belljar.net.broker.gate_host import Gate
from belljar.net.network import Network
from belljar.owner.handle_host import SlowWorker, WorkerUnavailable
from belljar.vm import network as vm_network
from belljar.vm.accel_host import choose_accel
from belljar.vm.attach_host import Attached
from belljar.vm.blockstore import Chunk
from belljar.vm.command import DISK_DEVICE, NETWORK_DEVICE, Hardware
from belljar.vm.disks_host import Disk
from belljar.vm.live_host import LiveState, clear_ports, save_state
from belljar.vm.network import Tap
from belljar.vm.parts_host import Parts, PartsUnavailable, find_parts
from belljar.vm.plan import Inside, RootMode, encode_go_on, encode_plan
from belljar.vm.process_host import Process, Start, start_qemu
from belljar.vm.qmp_host import MonitorError
from belljar.vm.relays_host import MachineMounts, PortRelay
from belljar.vm.state_host import saved_machine
from belljar.vm.talk_host import send_plan

SYNC_SECONDS: Final = 30.0
"""How long a machine may take to write what it has not written yet."""
MACHINE: Final = "machine"
"""The layer that the other tiers have not."""
_SEED: Final = 64


class Request(Struct, frozen=True):
    """A sandbox to start."""

    disk: Disk
    attach: Callable[[], Attached]
    """Called once QEMU is about to start."""
    user: str
    hostname: str
    cwd: str
    limits: Limits
    name: str
    network: Network | None
    env: dict[str, str]
    cpus: int
    memory_mib: int
    accel: str
    needs_cgroup: bool = False


class Made(Struct, frozen=True):
    """What a machine was made of: its branches have the same."""

    parts: Parts
    hardware: Hardware
    disk: str
    """The digest of the base image, which a running machine knows by heart."""
    account: FileAccount
    authority: SandboxAuthority | None
    """Which programs inside trust."""
    env: dict[str, str]
    own_files: frozenset[str]


class MachineWorker(SlowWorker):
    """A machine, and the connection to its first program."""

    __slots__ = ("_attached", "_ports", "_saving", "made", "mounts", "process")

    def __init__(self, process: Process, attached: Attached, made: Made) -> None:
        super().__init__(process.pid, os.dup(process.pidfd), process.control)
        self.process = process
        self._attached = attached
        self._saving = threading.Lock()
        """Held while it is stopped."""
        self.made = made
        self.mounts = MachineMounts(process.relays, made.account)
        self._ports = [PortRelay(each) for each in process.relays]
        self.env = made.env
        self.cgroup = process.cgroup
        self.greeting = encode(Ready([*process.layers, MACHINE], process.pid))

    grace = 30.0
    ENDING_SECONDS = 2 * SYNC_SECONDS

    def pids(self) -> list[int]:
        return descendants(self.pid)

    def serve_network(self, gate: Gate) -> None:
        """Start the proxy on the machine's only way out. The sockets are the gate's then."""
        sockets, self.process.listeners = self.process.listeners, []
        if sockets:
            serve_redirected(gate, sockets, self.made.authority)

    @property
    def mode(self) -> RootMode:
        """What becomes of changes to the root."""
        return self._attached.mode

    def copy_blocks(self, bytes_max: int) -> list[Chunk]:
        """All changed blocks of the root, at one moment. SnapshotError if there are more bytes; BlockStoreError."""
        server = self._attached.server
        assert server is not None
        with server.lock:
            size = len(server.disk.changed) * server.disk.block_size
            if size > bytes_max:
                raise SnapshotError(
                    f"{size} bytes of the root were changed: a branch can begin with {bytes_max} at most"
                )
            return list(server.disk.changes())

    @property
    def own_files(self) -> frozenset[str]:
        """Paths of files that this sandbox has of its own."""
        return self.made.own_files

    def save(self, blocks_max: int) -> LiveState:
        """All of the machine at one moment, at which it is stopped; it goes on. SnapshotError if that can't be had,
        MonitorError if the machine can't go on."""
        with self._saving:
            copy = (lambda: self.copy_blocks(blocks_max)) if self.mode is RootMode.DISK else list[Chunk]
            return save_state(self.process.monitor, self.made.hardware.memory_mib, copy)

    @property
    def durable(self) -> bool:
        """Whether changes of the root outlive the machine."""
        return self._attached.durable

    def open_relay(self, number: int) -> socket.socket:
        """The other end of a connection that goes by a port of the machine's. ValueError."""
        if not 0 <= number < len(self._ports):
            raise ValueError("the machine has no such port")
        return self._ports[number].join()

    def clear_away(self, pidfd: int) -> None:
        """Close the connection, at which the machine ends itself; wait until what is to be kept is written."""
        self.mounts.close()
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)
        saved = self._saving.acquire(timeout=SYNC_SECONDS)
        if self._attached.mode is RootMode.DISK:
            self.process.wait(SYNC_SECONDS)
        self.process.end()
        if saved:
            self._saving.release()
        os.close(pidfd)
        self.family.remove(self.pid)
        self._attached.release()

    def release(self) -> None:
        super().release()
        self.process.close()


def launch(request: Request) -> MachineWorker:
    """Start a sandbox. WorkerUnavailable, CgroupUnavailable."""
    try:
        parts = find_parts()
    except PartsUnavailable as error:
        raise WorkerUnavailable(str(error)) from error
    hardware = Hardware(request.cpus, request.memory_mib, choose_accel(request.accel, parts))
    saved = saved_machine(parts, hardware)

    def begin(process: Process, attached: Attached) -> Made:
        _continue(process, saved.devices, without_memory=True)
        inside, made = _inside(request, parts, hardware, attached.mode)
        send_plan(process, encode_plan(inside))
        return made

    return _start(request, parts, hardware, begin)


def launch_branch(request: Request, origin: Made, state: LiveState, kept: Sequence[int]) -> MachineWorker:
    """Start a branch of a machine; its programs wait until they are told to continue. `kept` are the numbers of the
    jobs that its owner goes on with. WorkerUnavailable, CgroupUnavailable."""
    if request.disk.digest != origin.disk:
        raise WorkerUnavailable("the disk of its root was made anew meanwhile, and is another")

    def begin(process: Process, _: Attached) -> Made:
        _continue(process, state.fd, without_memory=False)
        send_plan(process, encode_go_on(time.time_ns(), seed=secrets.token_bytes(_SEED), kept=kept))
        clear_ports(process.relays)
        return origin

    return _start(request, origin.parts, origin.hardware, begin)


def _start(
    request: Request, parts: Parts, hardware: Hardware, begin: Callable[[Process, Attached], Made]
) -> MachineWorker:
    memory = saved_machine(parts, hardware).memory
    attached = request.attach()
    process = None
    try:
        tap = None
        if request.network is not None:
            rate = request.network.limits.requests_per_second
            tap = Tap(ip_versions(), rate, udp=request.network.asks_owner)
        start = Start(
            parts=parts,
            hardware=hardware,
            disk=attached.words,
            disk_fd=attached.fd,
            memory_fd=memory,
            tap=tap,
            incoming=True,
            needs_cgroup=request.needs_cgroup,
        )
        process = start_qemu(start)
        return MachineWorker(process, attached, begin(process, attached))
    except BaseException:
        if process is not None:
            process.end()
            process.control.close()
        attached.release()
        raise


def _continue(process: Process, state: int, *, without_memory: bool) -> None:
    own = os.open(f"/proc/self/fd/{state}", os.O_RDONLY | os.O_CLOEXEC)  # with a position of its own
    try:
        process.monitor.load(own, without_memory=without_memory)
        process.monitor.call("cont")
    except MonitorError as error:
        said = process.console_text()
        raise WorkerUnavailable(f"the saved machine could not be continued: {error}\n{said}".rstrip()) from error
    finally:
        os.close(own)


def _inside(request: Request, parts: Parts, hardware: Hardware, mode: RootMode) -> tuple[Inside, Made]:
    disk = request.disk
    passwd, group = (disk.files.get(f"/etc/{name}", ("", b""))[1].decode("utf-8", "replace") for name in _ACCOUNTS)
    account, new_passwd, new_group = choose_account(request.user, passwd, group)
    if (new_passwd, new_group) != (passwd, group) and mode is not RootMode.MEMORY:
        raise WorkerUnavailable(
            f"the root filesystem has no user {request.user!r}, and is not to be changed: use 'agent'"
        )
    files = {**host_files(request.hostname), "/etc/resolv.conf": NO_RESOLVER}
    if mode is RootMode.MEMORY:
        files |= {"/etc/passwd": new_passwd.encode(), "/etc/group": new_group.encode()}
    authority, variables = None, dict[str, str]()
    steps, devices = closed(), [DISK_DEVICE]
    if request.network is not None:
        files["/etc/resolv.conf"] = vm_network.resolv_conf()
        steps = vm_network.inside(ip_versions())
        devices.append(NETWORK_DEVICE)
        if request.network.asks_owner:
            authority = SandboxAuthority(request.name)
            trusted, variables = _trust(disk, authority, mode)
            files |= trusted
    inside = Inside(
        account=account,
        hostname=request.hostname,
        cwd=request.cwd,
        limits=request.limits,
        mode=mode,
        files=list(files.items()),
        network=steps,
        seed=secrets.token_bytes(_SEED),
        time_ns=time.time_ns(),
        memory_bytes=request.memory_mib * MIB,
        devices=devices,
    )
    own = {"HOME": account.home, "USER": account.name, "LOGNAME": account.name}
    env = {**environment(request.hostname), **own, **variables, **request.env}
    names = frozenset(path for path, _ in inside.files)
    file_account = FileAccount(account.uid, account.gid)
    return inside, Made(parts, hardware, disk.digest, file_account, authority, env, names)


def _trust(disk: Disk, authority: SandboxAuthority, mode: RootMode) -> tuple[dict[str, bytes], dict[str, str]]:
    """Files and variables that have programs trust the sandbox's own authority. A root that is read-only stays as it
    is: they are below /run then."""
    if not any(path in disk.files for path in BUNDLES):
        raise WorkerUnavailable(
            "the root filesystem has no store of trusted authorities, which network=Network.policy(...) needs: install "
            "the package ca-certificates in its image"
        )
    files, variables = trust(authority.certificate, authority.common_name, disk.files.get, lambda: b"")
    if mode is not RootMode.READ_ONLY:
        return files, variables
    places = {path: f"/run/belljar-ca/{path.rpartition('/')[2]}" for path in files}
    return (
        {places[path]: data for path, data in files.items()},
        {name: places.get(path, path) for name, path in variables.items()},
    )


_ACCOUNTS: Final = ("passwd", "group")
