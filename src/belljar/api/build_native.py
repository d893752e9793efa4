"""Steps of recipes in sandboxes of the native tier: commands, and the configuration of Debian packages."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from belljar.abi.errors import ImageError, SandboxError
from belljar.abi.limits import Limits
from belljar.abi.paths import fsdecode
from belljar.api.build import explain
from belljar.api.native import NativeStart
from belljar.api.native_state import reader_of
from belljar.api.sandbox import Sandbox
from belljar.api.settings import SandboxOptions, Settings
from belljar.image.changes import keep_changes
from belljar.image.debian.configure import ENVIRONMENT, PACKAGES, configure_script
from belljar.image.debian.control import Package
from belljar.image.debian.fetch_host import Archive, packages_directory
from belljar.image.debian.system import System, make_pinned_system, make_system
from belljar.image.recipe import Debian
from belljar.image.record import ImageRecord, environment_of
from belljar.image.tree import FileTree
from belljar.native.launch_host import NativeWorker
from belljar.native.roots import Bind, RootSource
from belljar.store.store import Objects

if TYPE_CHECKING:
    from belljar.net.network import Network

Hear = Callable[[bytes], object]


def install_debian(step: Debian, objects: Objects, limits: Limits, hear: Hear) -> ImageRecord:
    """Make the system that a step asks for. ImageError, StoreError."""
    archive = Archive(step.suite, step.mirror, step.keyring, step.trusted)
    system = make_system(objects, archive, step.architecture, step.packages, hear, configure=step.configure)
    return _configure(objects, system, limits, hear) if step.configure else system.record


def install_pinned(
    objects: Objects,
    archive: Archive,
    fetched: Iterable[tuple[Package, bytes]],
    needed: set[str],
    limits: Limits,
    hear: Hear,
) -> ImageRecord:
    """Make a system of packages that were chosen and fetched. ImageError, StoreError."""
    return _configure(objects, make_pinned_system(objects, archive, fetched, needed, hear), limits, hear)


def _configure(objects: Objects, system: System, limits: Limits, hear: Hear) -> ImageRecord:
    script = ["sh", "-c", configure_script(system.needed, system.later)]
    with packages_directory(system.later) as packages:
        binds = (Bind(packages, PACKAGES),) if system.later else ()
        return run_native(objects, system.record, script, ENVIRONMENT, limits, hear, binds=binds)


def run_native(
    objects: Objects,
    record: ImageRecord,
    command: str | Sequence[str],
    env: Mapping[str, str],
    limits: Limits,
    hear: Hear,
    *,
    network: Network | None = None,
    binds: tuple[Bind, ...] = (),
) -> ImageRecord:
    """Run a command as root in a sandbox from an image; gives the image of what is there then. ImageError."""
    options: SandboxOptions = {
        "env": {**env, **environment_of(record)}, "cwd": fsdecode(record.cwd), "user": "root", "limits": limits,
    }  # fmt: skip
    if network is not None:
        options["network"] = network
    settings = structs.replace(
        Settings.check(options), native=NativeStart(RootSource(objects, record, "", binds), "root")
    )
    sandbox = Sandbox.__new__(Sandbox)
    started = int((settings.clock.time() - 1) * 1e9)  # times of files are by a clock that is late by some milliseconds
    try:
        sandbox._begin(settings, None)
        with sandbox:
            before = _capture(sandbox, settings, objects)
            result = sandbox.exec(
                command if isinstance(command, str) else list(command), merge_stderr=True, on_stdout=hear
            )
            if not result.ok:
                raise ImageError(explain(result.exit_code, result.limit, result.stdout))
            after = _capture(sandbox, settings, objects)
    except (SandboxError, ValueError) as error:
        if isinstance(error, ImageError):
            raise
        raise ImageError(f"it can't be run on the native tier: {error}") from error
    tree = keep_changes(FileTree.load(objects, record.trees[0]), before, after, started)
    stored, directories = tree.save()
    objects.write(directories)
    return structs.replace(record, trees=[stored], size=tree.size)


def _capture(sandbox: Sandbox, settings: Settings, objects: Objects) -> FileTree:
    """The files of the sandbox as they are now."""
    worker = sandbox._link.worker
    assert isinstance(worker, NativeWorker)
    captured = reader_of(settings, worker, 0)(objects)
    objects.write(captured.new)
    return FileTree.load(objects, captured.trees[0])
