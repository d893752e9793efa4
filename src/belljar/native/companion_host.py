"""The companion of a virtual sandbox: a native sandbox whose own files are that one's, and whose owner is its worker.

It is started here; its connection and the FUSE devices of its trees are then handed to the worker. What is kept is the
right to end it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct, structs

from belljar.abi.limits import Limits
from belljar.abi.paths import fsencode
from belljar.abi.wire import Boot, Call, Failure, Reply, WireError, encode, worker_frames
from belljar.fuse.serve_host import check_device
from belljar.lockdown.sockets_host import receive_descriptors
from belljar.native.launch_host import NativeWorker, Request, launch, owner_ids
from belljar.native.roots import RootSource
from belljar.native.roots_host import prepare_root
from belljar.net.broker.gate_host import Gate
from belljar.owner.handle_host import WorkerUnavailable

_SECONDS: Final = 10.0
_READ: Final = 64 << 10
_UNBOUNDED: Final = {"wall_seconds": 1e9, "cpu_seconds": 1e9, "output_bytes": 1 << 53}
"""Limits that each program is given anew by the worker."""
_PLACES: Final = ("usr/local/bin", "usr/bin", "usr/sbin", "bin", "sbin", "usr/local/sbin")


class Tree(Struct, frozen=True):
    """A directory of the companion that the worker answers for."""

    path: str
    mode: int
    read_only: bool


class CompanionProcess:
    """A companion that runs; `only`: it has one user, and all files are that one's."""

    control = None

    def __init__(self, worker: NativeWorker, devices: list[int], *, only: bool) -> None:
        self._worker = worker
        self._devices = devices
        self._end_proxy: Callable[[], None] | None = None
        self.only = only
        self.pid = worker.pid

    @property
    def alive(self) -> bool:
        return self._worker.pidfd >= 0 and self._worker.alive

    def serve_network(self, gate: Gate) -> None:
        """Start the proxy that is its programs' only way out, if it was started with a network."""
        worker = self._worker
        if worker.network is not None and worker.sockets:
            worker.served, worker.sockets = worker.sockets, []
            self._end_proxy = worker.network.serve(gate, worker.served)

    def hand_over(self) -> list[int]:
        """Its connection and its devices, for the worker; they are the caller's to close."""
        connection = os.dup(self._worker.connection.fileno())
        devices, self._devices = self._devices, []
        for fd in (connection, *devices):
            os.set_blocking(fd, False)
        return [connection, *devices]

    def take_devices(self, count: int) -> list[int]:
        """Devices that pid 1 sent out since, on behalf of the worker. OSError."""
        devices = _receive_devices(self._worker, count)
        for fd in devices:
            os.set_blocking(fd, False)
        return devices

    def kill(self) -> None:
        """End all that runs in it. Idempotent."""
        devices, self._devices = self._devices, []
        for fd in devices:
            os.close(fd)
        if self._end_proxy is not None:
            self._end_proxy()
        self._worker.kill()


def start_companion(request: Request, trees: Sequence[Tree]) -> CompanionProcess:
    """Start one with these trees. WorkerUnavailable, ImageError."""
    own = tuple(tree.path for tree in trees)
    worker = launch(structs.replace(request, directories=own, read_only=True))
    try:
        worker.connection.settimeout(_SECONDS)
        worker.descriptors.settimeout(_SECONDS)
        trust = {fsencode(name): fsencode(value) for name, value in _trust(worker).items()}
        boot = Boot(trust, b"/", fsencode(request.user), fsencode(request.hostname), _boot_limits(request.limits))
        calls = [Call(n, "fuse", [fsencode(tree.path), tree.mode, tree.read_only]) for n, tree in enumerate(trees, 1)]
        worker.connection.sendall(encode(boot) + b"".join(map(encode, calls)))
        _await_replies(worker, len(calls))
        devices = _receive_devices(worker, len(trees))
    except (OSError, WireError) as error:
        worker.kill()
        raise WorkerUnavailable(f"the companion did not get its files: {error}") from error
    return CompanionProcess(worker, devices, only=owner_ids().base is None)


def _trust(worker: NativeWorker) -> dict[str, str]:
    """Variables by which programs find the authority of the sandbox's network, unless the sandbox sets them."""
    return {} if worker.network is None else worker.network.environment


def _receive_devices(worker: NativeWorker, count: int) -> list[int]:
    devices: list[int] = []
    try:
        while len(devices) < count:
            data, fds = receive_descriptors(worker.descriptors, 1, 1)
            devices += fds
            if not data:
                raise OSError("it sent no device")
            check_device(fds[0])
    except (OSError, ValueError, IndexError) as error:
        for fd in devices:
            os.close(fd)
        raise OSError(f"no device came: {error}") from error
    return devices


def _boot_limits(limits: Limits) -> dict[str, int | float]:
    return {**_UNBOUNDED, "processes": limits.processes, "open_files": limits.open_files}


def _await_replies(worker: NativeWorker, count: int) -> None:
    frames = worker_frames()
    while count:
        data = worker.connection.recv(_READ)
        if not data:
            raise OSError("it ended")
        for message in frames.feed(data):
            if isinstance(message, Failure):
                raise OSError(f"{(message.path or b'').decode()}: {message.message.decode()}")
            count -= isinstance(message, Reply)


def list_programs(source: RootSource) -> list[str]:
    """The paths of the programs of an image that commands are looked for in. ImageError."""
    root = prepare_root(source, owner_ids().base)
    found: dict[str, str] = {}
    try:
        for place in _PLACES:
            for directory in [os.path.join(lower, place) for lower in root.lowers] + [
                bind.source + f"/{place}"[len(bind.target) :]
                for bind in root.binds
                if f"/{place}/".startswith(f"{bind.target}/")
            ]:
                for name in _executables(directory):
                    found.setdefault(name, f"/{place}/{name}")
    finally:
        root.release()
    return sorted(found.values())


def _executables(directory: str) -> list[str]:
    try:
        with os.scandir(directory) as entries:
            return [
                each.name for each in entries if not each.is_dir() and (each.is_symlink() or os.access(each, os.X_OK))
            ]
    except OSError:
        return []
