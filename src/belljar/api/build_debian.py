"""Debian systems for images: unpacked, and configured in a sandbox of the native tier, by their own dpkg."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from msgspec import structs

from belljar.abi.errors import ImageError, SandboxError
from belljar.abi.limits import MIB, Limits
from belljar.api.native import NativeStart
from belljar.api.sandbox import Sandbox
from belljar.api.settings import Settings
from belljar.image.debian.configure import CHANGES, ENVIRONMENT, NAMES, PACKAGES, apply_changes, configure_script
from belljar.image.debian.fetch_host import Archive, packages_directory
from belljar.image.debian.system import System, make_system
from belljar.image.recipe import Debian
from belljar.image.record import ImageRecord
from belljar.image.tree import FileTree
from belljar.native.roots import Bind, RootSource
from belljar.store.store import Objects

_HOST_FILES = (b"etc/hostname", b"etc/hosts", b"etc/resolv.conf")
"""Files of a sandbox's own."""


def install(step: Debian, objects: Objects, limits: Limits, hear: Callable[[bytes], object]) -> ImageRecord:
    """Make the system that a step asks for. ImageError, StoreError."""
    archive = Archive(step.suite, step.mirror, step.keyring, step.trusted)
    system = make_system(objects, archive, step.architecture, step.packages, hear, configure=step.configure)
    if not step.configure:
        return system.record
    try:
        with packages_directory(system.later) as packages:
            return _configure(system, packages, objects, limits, hear)
    except SandboxError as error:
        if isinstance(error, ImageError):
            raise
        raise ImageError(
            f"the packages can't be configured here (configure=False leaves them as they are): {error}"
        ) from error


def _configure(
    system: System, packages: str, objects: Objects, limits: Limits, hear: Callable[[bytes], object]
) -> ImageRecord:
    from belljar.api.build import explain

    record = system.record
    settings = Settings.check({"env": ENVIRONMENT, "cwd": "/", "user": "root", "limits": limits})
    source = RootSource(objects, record, "", (Bind(packages, PACKAGES),) if system.later else ())
    sandbox = Sandbox.__new__(Sandbox)
    sandbox._begin(structs.replace(settings, native=NativeStart(source, "root")), None)
    with sandbox:
        script = configure_script(system.needed, system.later)
        result = sandbox.exec(["sh", "-c", script], merge_stderr=True, on_stdout=hear)
        if not result.ok:
            raise ImageError(
                f"configuring the packages failed: {explain(result.exit_code, result.limit, result.stdout)}"
            )
        started = int(sandbox.exec(["stat", "-c", "%Y", "/run/belljar/start"]).check().stdout) * 10**9
        tree = FileTree.load(objects, record.trees[0])
        apply_changes(tree, objects, _read(sandbox, CHANGES), b"".join(_read(sandbox, NAMES)), started, _HOST_FILES)
    stored, directories = tree.save()
    objects.write(directories)
    return structs.replace(record, trees=[stored], size=tree.size)


def _read(sandbox: Sandbox, path: str) -> Iterator[bytes]:
    offset = 0
    while data := sandbox.files.read_range(path, offset, 4 * MIB):
        yield data
        offset += len(data)
