"""Live branches of machines, for both fronts: the machine holds still while it is saved, and is continued as many."""

from __future__ import annotations

from collections.abc import Generator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from msgspec import structs

from belljar.abi.errno import strerror
from belljar.abi.paths import fsencode
from belljar.abi.wire import Failure
from belljar.api import operations
from belljar.api.errors import ENDED, FileError, SandboxClosed, SandboxError, SnapshotError
from belljar.api.microvm import machine_request
from belljar.api.operations import Steps, ask
from belljar.api.rootfs import Writable
from belljar.api.stepper import Waits
from belljar.owner.handle_host import CgroupUnavailable, WorkerUnavailable
from belljar.vm.live_host import LiveState
from belljar.vm.machine_host import MachineWorker, launch_branch
from belljar.vm.plan import encode_go_on
from belljar.vm.qmp_host import MonitorError

if TYPE_CHECKING:
    from belljar.api.mounts import Mount
    from belljar.api.offers import Offers
    from belljar.api.settings import Settings

HOLD_SECONDS: Final = 30.0
"""How long a machine may take to hold still."""
_BLOCKS_MAX: Final = 1 << 30
"""Bytes of changed blocks that a branch's disk may begin with: they are in this process's memory."""
_FAILED: Final = "could not fork the sandbox"


def save_machine(link: Any) -> Waits[LiveState]:
    """All of a machine at one moment. Nothing is said to it meanwhile, and whatever comes of it, it goes on. Raises
    SandboxError, SandboxClosed if it could not go on and was ended."""
    worker: MachineWorker = link.worker
    pending, frame = link.conversation.call("hold_still")
    link.hold_back(frame)
    try:
        if not (yield link.wait_until(lambda: pending.done, link.clock.monotonic() + HOLD_SECONDS)):
            raise SandboxError(f"{_FAILED}: its machine did not hold still within {HOLD_SECONDS:g} s")
        if isinstance(pending.error, Failure):
            raise SandboxError(f"{_FAILED}: its machine does not hold still: {strerror(pending.error.errno)}")
        if pending.error is not None:
            raise pending.error
        saved: LiveState = yield link.call_blocking(lambda: worker.save(_BLOCKS_MAX), LiveState.close)
        return saved
    except SnapshotError as error:
        raise SandboxError(f"{_FAILED}: {error}") from error
    except MonitorError as error:
        ended = SandboxClosed(f"the sandbox's machine could not go on after it was saved, and was ended: {error}")
        link.fail(ended)
        raise ended from error
    finally:
        with suppress(*ENDED):  # it is over
            link.release(encode_go_on(int(link.clock.time() * 1e9)))


def branch_settings(settings: Settings, state: LiveState) -> Settings:
    """Those of a branch, whose disk is a copy where it can be written to."""
    branch = structs.replace(settings.branch(), files=())  # which it had; it may have changed or removed them
    start = settings.machine
    assert start is not None
    if not isinstance(start.rootfs, Writable):
        return branch
    return structs.replace(branch, machine=structs.replace(start, rootfs=start.rootfs.copy(state.chunks)))


def branch_link(link: Any, settings: Settings, state: LiveState, kept: Sequence[int]) -> Waits[Any]:
    """A link to a new branch, which goes on with the jobs of these numbers; its programs still wait. Raises
    SandboxError."""
    worker: MachineWorker = link.worker
    start = settings.machine
    assert start is not None

    def launch() -> MachineWorker:
        return launch_branch(machine_request(settings, start), worker.made, state, kept)

    try:
        branch: MachineWorker = yield link.call_blocking(launch, MachineWorker.kill)
    except (WorkerUnavailable, CgroupUnavailable) as error:
        raise SandboxError(f"{_FAILED}: {error}") from error
    return link.twin(branch, link.conversation.branch())


def mounted_trees(link: Any) -> list[tuple[str, Mount]]:
    """What is mounted in a machine now."""
    return list(link.offers.native_mounts.trees)


def set_up_branch(settings: Settings, trees: Sequence[tuple[str, Mount]], offers: Offers) -> Steps[None]:
    """Serve a branch what its origin had mounted, and have its programs continue. Raises SandboxError."""
    for tool in settings.tools:
        offers.offer(tool)
    for path, _ in reversed(trees):
        yield from _unmount(path)
    for path, tree in trees:
        yield from operations.mount(path, tree, offers)
    yield from ask("", "continue")


def _unmount(path: str) -> Generator[Any, Any, None]:
    """Whoever served it is the origin's, and what was mounted below may have gone with it."""
    with suppress(FileError):
        yield from ask(path, "unmount", fsencode(path))
