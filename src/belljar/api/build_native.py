"""Steps of recipes in sandboxes of the native tier: commands, and the configuration of Debian packages."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import structs

from belljar.abi.errors import ImageError, SandboxError
from belljar.abi.limits import MIB, Limits
from belljar.abi.paths import fsdecode
from belljar.api.build import explain
from belljar.api.native import NativeStart
from belljar.api.sandbox import Sandbox
from belljar.api.settings import SandboxOptions, Settings
from belljar.image.changes import BEGIN, CHANGES, NAMES, apply_changes, end_script
from belljar.image.debian.configure import ENVIRONMENT, PACKAGES, configure_script
from belljar.image.debian.fetch_host import Archive, packages_directory
from belljar.image.debian.system import make_system
from belljar.image.recipe import Debian
from belljar.image.record import ImageRecord, environment_of
from belljar.image.tree import FileTree
from belljar.native.roots import Bind, RootSource
from belljar.store.store import Objects

if TYPE_CHECKING:
    from belljar.net.network import Network

Hear = Callable[[bytes], object]


def install_debian(step: Debian, objects: Objects, limits: Limits, hear: Hear) -> ImageRecord:
    """Make the system that a step asks for. ImageError, StoreError."""
    archive = Archive(step.suite, step.mirror, step.keyring, step.trusted)
    system = make_system(objects, archive, step.architecture, step.packages, hear, configure=step.configure)
    if not step.configure:
        return system.record
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
    """Run a command as root in a sandbox from an image; gives the image of what is there then. ImageError, StoreError.

    The image must have GNU find and tar.
    """
    options: SandboxOptions = {
        "env": {**env, **environment_of(record)}, "cwd": fsdecode(record.cwd), "user": "root", "limits": limits,
    }  # fmt: skip
    if network is not None:
        options["network"] = network
    start = NativeStart(RootSource(objects, record, "", binds), "root")
    covered = [bind.target for bind in binds]
    sandbox = Sandbox.__new__(Sandbox)
    try:
        sandbox._begin(structs.replace(Settings.check(options), native=start), None)
        with sandbox:
            seconds = _must_run(sandbox, ["sh", "-c", BEGIN])
            _must_run(sandbox, command if isinstance(command, str) else list(command), hear)
            _must_run(sandbox, ["sh", "-c", end_script(covered)])
            tree = FileTree.load(objects, record.trees[0])
            names = b"".join(_read(sandbox, NAMES))
            apply_changes(tree, objects, _read(sandbox, CHANGES), names, int(seconds) * 10**9, covered)
    except (SandboxError, ValueError) as error:
        if isinstance(error, ImageError):
            raise
        raise ImageError(f"it can't be run on the native tier: {error}") from error
    stored, directories = tree.save()
    objects.write(directories)
    return structs.replace(record, trees=[stored], size=tree.size)


def _must_run(sandbox: Sandbox, command: str | list[str], hear: Hear | None = None) -> str:
    result = sandbox.exec(command, merge_stderr=True, on_stdout=hear)
    if not result.ok:
        raise ImageError(explain(result.exit_code, result.limit, result.stdout))
    return result.stdout


def _read(sandbox: Sandbox, path: str) -> Iterator[bytes]:
    offset = 0
    while data := sandbox.files.read_range(path, offset, 4 * MIB):
        yield data
        offset += len(data)
