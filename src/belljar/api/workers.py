"""The process that a new sandbox lives in, whatever its tier."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import structs

from belljar.api.errors import IsolationUnavailable, SandboxCreationError
from belljar.api.settings import SandboxOptions, Settings
from belljar.lockdown.layers import ON_DEMAND
from belljar.owner.handle_host import CgroupUnavailable, WorkerHandle, WorkerUnavailable
from belljar.owner.supervisor_host import replaying, shared

if TYPE_CHECKING:
    from belljar.api.async_link_host import AsyncLink
    from belljar.api.link_host import Link
    from belljar.api.state import Point, State


def find_image(options: SandboxOptions) -> tuple[Settings, State | None]:
    """The settings of a sandbox with an image, and the state that it begins from on the virtual tier. ImageError."""
    if options.get("tier") == "native":
        from belljar.api.native import native_settings

        return native_settings(options), None
    if options.get("tier") == "microvm":
        from belljar.api.microvm import machine_settings

        return machine_settings(options), None
    if options.get("native"):
        from belljar.api.companion import with_companion

        return with_companion(options)
    from belljar.api.image import from_image

    return from_image(options)


def branch_settings(settings: Settings, point: Point) -> Settings:
    """Those of a new sandbox from a snapshot of another one."""
    branch = structs.replace(settings.branch(), files=())  # which it had; it may have changed or removed them
    if settings.machine is not None:
        from belljar.api import machine_state

        return machine_state.branch_from(branch, point)
    if settings.native is None:
        return branch
    from belljar.api.native_state import branch_from

    return branch_from(branch, point.objects, point.digest, point.record)


def serve_programs(link: Link | AsyncLink, settings: Settings) -> None:
    """Serve what real programs get from their owner: a network, and mounted trees."""
    if settings.machine is not None:
        from belljar.api.microvm import serve_machine

        serve_machine(link, settings)
    elif settings.native is not None:
        from belljar.api.native import serve_mounts, serve_network, watch_memory

        serve_network(link)
        serve_mounts(link, settings)
        watch_memory(link, settings)


def take_worker(settings: Settings) -> WorkerHandle:
    """Start what the settings ask for. SandboxCreationError, IsolationUnavailable, ImageError."""
    try:
        worker: WorkerHandle
        if settings.machine is not None:
            from belljar.api.microvm import start_machine

            worker = start_machine(settings, settings.machine)
        elif settings.native is None:
            worker = (replaying if settings.seed else shared).take(settings.limits.memory_bytes)
        else:
            from belljar.api.native import start_native

            worker = start_native(settings, settings.native)
    except WorkerUnavailable as error:
        raise SandboxCreationError(f"could not start a sandbox: {error}. Try `belljar doctor`.") from error
    except CgroupUnavailable as error:
        raise IsolationUnavailable(set(settings.require & ON_DEMAND), []) from error
    settings.confine(worker)
    return worker
