"""Sandboxes of the microvm tier: their settings, how they are started, and `Machine`, a definition to boot from."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, Unpack, cast

from msgspec import Struct, structs

from belljar.api.errors import NotOnThisTier, SandboxCreationError
from belljar.api.native_mounts import NativeMounts
from belljar.api.request import check_environment
from belljar.api.rootfs import Rootfs
from belljar.api.settings import MACHINE_OPTIONS, MachineOptions, RestoreOptions, SandboxOptions, Settings
from belljar.lockdown.layers import ON_DEMAND
from belljar.vm.accel_host import CHOICES

if TYPE_CHECKING:
    from belljar.api.async_link_host import AsyncLink
    from belljar.api.async_sandbox import AsyncSandbox
    from belljar.api.link_host import Link
    from belljar.api.sandbox import Sandbox
    from belljar.net.network import Network
    from belljar.vm.machine_host import MachineWorker, Request

_LACKS: Final = ("node_modules",)
_CPUS_MAX: Final = 64
_MEMORY_LEAST, _MEMORY_MOST = 128, 1 << 20


class MachineStart(Struct, frozen=True):
    """The machine that a sandbox begins with."""

    rootfs: Rootfs
    user: str
    cpus: int
    memory_mib: int
    accel: str
    files: dict[str, tuple[str, bytes]] = {}
    """Of the disk's own files those that a snapshot has others of, as `Disk.files`."""


def machine_settings(options: SandboxOptions) -> Settings:
    """As `Settings.check`, with a machine. TypeError, ValueError, SandboxCreationError, ImageError."""
    if sys.platform != "linux":
        raise SandboxCreationError("tier='microvm' needs Linux: use 'virtual'")
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for name in _LACKS:
        if given.get(name):
            raise NotOnThisTier(f"{name}=", "microvm", "virtual")
    image = given.pop("image", None)
    if image is not None and "rootfs" in given:
        raise TypeError("image= and rootfs= are two root filesystems: give rootfs=Rootfs.from_image(image) alone")
    rootfs = given.get("rootfs") or Rootfs.default(image, given.get("store"))
    if not isinstance(rootfs, Rootfs):
        raise TypeError(f"rootfs= takes Rootfs.builtin(...), .ephemeral, .cow or .from_image, not {rootfs!r}")
    disk = rootfs.disk()
    machine = MachineStart(
        rootfs,
        given.get("user") or disk.user or "agent",
        _number(given.get("cpus", 2), "cpus", 1, _CPUS_MAX),
        _number(given.get("memory_mib", 512), "memory_mib", _MEMORY_LEAST, _MEMORY_MOST),
        _accel(given.get("accel", "auto")),
    )
    rest = {name: value for name, value in given.items() if name not in (*MACHINE_OPTIONS, "tier")}
    settings = {"cwd": disk.cwd or "/", **rest}
    settings["env"] = {**disk.env, **check_environment(given.get("env"))}
    checked = Settings.check(cast("SandboxOptions", settings))
    return structs.replace(checked, machine=machine, image=rootfs.name)


def _number(value: object, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}= takes an int, not {value!r}")
    if not least <= value <= most:
        raise ValueError(f"{name}={value}: choose from {least} to {most}")
    return value


def _accel(value: object) -> str:
    if value not in CHOICES:
        raise ValueError(f"accel={value!r}: choose from {', '.join(CHOICES)}")
    return str(value)


def start_machine(settings: Settings, start: MachineStart) -> MachineWorker:
    """Start it. WorkerUnavailable, CgroupUnavailable, ImageError."""
    from belljar.vm.machine_host import launch

    return launch(machine_request(settings, start))


def machine_request(settings: Settings, start: MachineStart) -> Request:
    """The machine that the settings ask for. ImageError."""
    from belljar.vm.machine_host import Request

    rootfs = start.rootfs
    disk = rootfs.disk()
    return Request(
        disk=structs.replace(disk, files={**disk.files, **start.files}),
        attach=lambda: rootfs.attach(settings.report),
        user=start.user,
        hostname=settings.hostname,
        cwd=settings.cwd,
        limits=settings.limits,
        name=settings.name,
        network=settings.network,
        env=settings.env,
        cpus=start.cpus,
        memory_mib=start.memory_mib,
        accel=start.accel,
        needs_cgroup=not settings.require.isdisjoint(ON_DEMAND),
    )


def serve_machine(link: Link | AsyncLink, settings: Settings) -> None:
    """Serve what the machine asks its owner for: its network, and mounted trees."""
    from belljar.vm.machine_host import MachineWorker

    worker, access, conversation = link.worker, link.offers.network, link.conversation
    assert isinstance(worker, MachineWorker)
    if access is not None:
        worker.serve_network(access.gate(conversation.observe))
    link.offers.native_mounts = NativeMounts(
        worker.mounts, settings.limits, settings.cwd, lambda: conversation.observe, link.clock, durable=worker.durable
    )


class Machine:
    """A reusable definition of a machine: `boot` starts a sandbox in one, with what is its own.

    >>> machine = Machine(rootfs=Rootfs.ephemeral(Rootfs.builtin("debian:12")), cpus=2, memory_mib=512)
    >>> with machine.boot(mounts={"/workspace": Mount.memory({"a": "b"})}, hostname="agent-42") as sandbox:
    ...     sandbox.exec("cat a")
    """

    def __init__(self, *, network: Network | None = None, **options: Unpack[MachineOptions]) -> None:
        unknown = set(options) - set(MACHINE_OPTIONS)
        if unknown:
            raise TypeError(
                f"Machine() takes {', '.join(MACHINE_OPTIONS)} and network, not {', '.join(sorted(unknown))}"
            )
        self._options: dict[str, Any] = {**options, "network": network, "tier": "microvm"}

    def boot(self, **options: Unpack[RestoreOptions]) -> Sandbox:
        """Start a sandbox; `options` are those of `Sandbox`."""
        from belljar.api.sandbox import Sandbox

        return Sandbox(**{**self._options, **options})

    def boot_async(self, **options: Unpack[RestoreOptions]) -> AsyncSandbox:
        """As `boot`, for asyncio: use it by `async with`."""
        from belljar.api.async_sandbox import AsyncSandbox

        return AsyncSandbox(**{**self._options, **options})
