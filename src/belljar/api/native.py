"""Sandboxes of the native tier: their settings from an image, and how they are started."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final, cast

from msgspec import Struct, structs

from belljar.abi.paths import fsdecode
from belljar.abi.signals import Signal
from belljar.abi.wire import Exited
from belljar.api.dialogue import Engine
from belljar.api.errors import NotOnThisTier, SandboxCreationError
from belljar.api.image import account_of, root_source
from belljar.api.native_mounts import NativeMounts
from belljar.api.request import check_environment
from belljar.api.settings import SandboxOptions, Settings
from belljar.image.record import environment_of
from belljar.lockdown.layers import ON_DEMAND
from belljar.native.roots import RootSource

if TYPE_CHECKING:
    from belljar.api.async_link_host import AsyncLink
    from belljar.api.link_host import Link
    from belljar.native.launch_host import NativeWorker

_LACKS: Final = ("node_modules",)
"""Arguments that only the virtual tier takes."""


_NO_PYTHON: Final = (
    "Take an image that has python3 (3.8 or newer), or use belljar.python(), whose interpreter has files of its own"
)


def native_python() -> Engine:
    """The image's own Python, driven by a program of ours."""
    from belljar.native.python_host import python_program

    program = python_program()
    session, prefix = (("python3", "-c", program, mode) for mode in ("session", "prefix"))
    return Engine("python", session, prefix, "<run {}>", ("python3", "-IS", "-c", program, "run"), _NO_PYTHON)


class NativeStart(Struct, frozen=True):
    """The root that a sandbox begins with, and who its commands run as there: a name, or `uid[:gid]`."""

    source: RootSource
    user: str
    image: str = ""
    """For `info`."""


def native_settings(options: SandboxOptions) -> Settings:
    """As `Settings.check`, with an image; without one the root has this machine's programs. ImageError."""
    if sys.platform != "linux":
        raise SandboxCreationError(
            "tier='native' runs programs on Linux's own kernel, which is not here: use 'virtual'"
        )
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for name in ("image", "tier"):
        given.pop(name, None)
    source = root_source(options.get("image"), options.get("store"))
    record = source.record
    settings = {"cwd": fsdecode(record.cwd), "user": account_of(record), **given}
    settings["env"] = {**environment_of(record), **check_environment(given.get("env"))}
    checked = Settings.check(cast("SandboxOptions", settings))
    for name in _LACKS:
        if given.get(name):
            raise NotOnThisTier(f"{name}=", "native", "virtual")
    start = NativeStart(source, given.get("user") or record.user or "root", source.digest or "image")
    return structs.replace(checked, native=start, image=start.image)


def start_native(settings: Settings, start: NativeStart) -> NativeWorker:
    """Start it, sealed and proved. WorkerUnavailable, CgroupUnavailable, ImageError."""
    from belljar.native.launch_host import Request, launch

    return launch(
        Request(
            source=start.source,
            user=start.user,
            hostname=settings.hostname,
            cwd=settings.cwd,
            limits=settings.limits,
            name=settings.name,
            network=settings.network,
            env=settings.env,
            needs_cgroup=not settings.require.isdisjoint(ON_DEMAND),
        )
    )


def watch_memory(link: Link | AsyncLink, settings: Settings) -> None:
    """Have a command name the limit if it ended because the memory of all was used up, where that can be known."""
    cgroup = link.worker.cgroup
    if cgroup is None:
        return
    seen = 0

    def review(exited: Exited) -> Exited:
        nonlocal seen
        before, seen = seen, cgroup.killed()
        killed = exited.signal == Signal.KILL or exited.code == 128 + Signal.KILL  # a shell says so of what it ran
        if seen == before or not killed or exited.limit is not None:
            return exited
        return structs.replace(exited, limit="memory_bytes", allowed=settings.limits.memory_bytes)

    link.conversation.review = review


def serve_mounts(link: Link | AsyncLink, settings: Settings) -> None:
    """Have mounts of the owner's trees served from here."""
    from belljar.native.launch_host import NativeWorker

    worker, conversation = link.worker, link.conversation
    if isinstance(worker, NativeWorker) and worker.mounts is not None:
        link.offers.native_mounts = NativeMounts(
            worker.mounts, settings.limits, settings.cwd, lambda: conversation.observe, link.clock
        )


def serve_network(link: Link | AsyncLink) -> None:
    """Start the proxy on the sockets that are its sandbox's only way out, if it has any."""
    from belljar.native.launch_host import NativeWorker

    worker, access = link.worker, link.offers.network
    if isinstance(worker, NativeWorker) and access is not None and worker.network is not None and worker.sockets:
        worker.served, worker.sockets = worker.sockets, []
        worker.network.serve(access.gate(link.conversation.observe), worker.served)
