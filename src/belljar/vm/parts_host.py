"""What machines are made of, prepared once into the cache: QEMU and tools unpacked, a kernel, the first root.

`prepare` makes it (`belljar prepare microvm`); starting a machine only looks for it. A QEMU or a kernel of the user's
own is taken where one is named: BELLJAR_QEMU is the path of qemu-system-x86_64, BELLJAR_KERNEL that of an uncompressed
vmlinux, whose modules are in BELLJAR_MODULES (a directory as /lib/modules/VERSION).
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import platform
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from msgspec import Struct

from belljar.abi.cache_host import cache_directory, draft_directory, private_directory
from belljar.abi.errors import ImageError
from belljar.image.debian.assemble import Assembly, read_fields
from belljar.image.debian.control import Package
from belljar.image.debian.fetch_host import PinsGone, fetch_pinned
from belljar.image.tree import FileTree
from belljar.native.agent_build_host import AgentUnavailable, agent_program
from belljar.native.unpack_host import StoredContents, unpack
from belljar.store.memory_host import MemoryStore
from belljar.store.store import Objects
from belljar.vm import cpio, modules
from belljar.vm.pins_host import KERNEL, TOOLS, key_of, pinned
from belljar.vm.tsc_host import tsc_khz

Hear = Callable[[str], object]
_VERSION: Final = 1
"""Of what preparing makes of the packages."""
_LZ4: Final = b"\x02\x21\x4c\x18"
_BOOTS_KEPT: Final = 6
"""Directories of a kernel and a first root in the cache: those used least recently are removed."""
_PARTS_KEPT: Final = 2
"""Directories of unpacked packages in the cache: the current version's and one older."""
_PREPARE: Final = "run `belljar prepare microvm` first; it fetches some 100 MB of Debian's packages"


class PartsUnavailable(RuntimeError):
    """A machine can't be put together; says what to do."""


class Parts(Struct, frozen=True):
    """Where everything is."""

    root: str
    """A directory with /usr and what it needs: QEMU is run in it, and tools with its own libraries."""
    boot: str
    """A directory with `vmlinux` and `initrd`."""
    qemu: str
    """Path of the program: in `root`, or one of this machine's."""
    tsc_khz: int
    """The rate of this machine's time-stamp counter."""
    key: str
    """Differs where any of it does."""


def directory(name: str = "") -> str:
    """A directory of the cache. PartsUnavailable."""
    base = cache_directory()
    found = None if base is None else private_directory(os.path.join(base, "microvm", name))
    if found is None:
        raise PartsUnavailable("there is no cache directory of yours alone: set BELLJAR_CACHE to one")
    return found


_held: dict[str, int] = {}


def held_directory(name: str) -> str:
    """As `directory`; `trim_directory` leaves it alone, in any process, until this process has ended."""
    while True:
        place = directory(name)
        with suppress(FileNotFoundError):  # it was trimmed before it was held
            if place in _held and os.path.samestat(os.fstat(_held[place]), os.stat(place)):
                return place
            fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            fcntl.flock(fd, fcntl.LOCK_SH)
            _held[place] = fd


def trim_directory(place: str, kept: int, spared: Collection[str], prefix: str = "") -> None:
    """Remove directories of a prefix in a directory, but for the `kept` that were used last, those of the `spared`
    names, and those that a process holds."""
    found = [
        entry.path
        for entry in os.scandir(place)
        if entry.is_dir() and entry.name.startswith(prefix) and entry.name not in spared
    ]
    for path in sorted(found, key=os.path.getmtime, reverse=True)[kept:]:
        with suppress(OSError):
            fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                shutil.rmtree(path, ignore_errors=True)
            finally:
                os.close(fd)


def check_machine() -> None:
    """PartsUnavailable where the tier does not exist."""
    if sys.platform != "linux" or platform.machine() != "x86_64":
        raise PartsUnavailable("the microvm tier needs Linux on x86_64")


def find_parts() -> Parts:
    """What is prepared; the first root is made anew if the agent is another one. PartsUnavailable."""
    check_machine()
    place = Path(held_directory(f"parts-{_key()}"))
    if not (place / "done").exists():
        raise PartsUnavailable(f"nothing is prepared for the microvm tier: {_PREPARE}")
    try:
        program = agent_program()
        agent = program.read_bytes()
    except AgentUnavailable as error:
        raise PartsUnavailable(str(error)) from error
    try:
        rate = tsc_khz(program, directory())
    except (OSError, subprocess.SubprocessError, ValueError) as error:
        raise PartsUnavailable(f"the rate of the processor's time-stamp counter is not known: {error}") from error
    kernel = os.environ.get("BELLJAR_KERNEL") or str(place / "vmlinux")
    found = _modules(os.environ.get("BELLJAR_MODULES") or str(place / "modules"))
    first = _first_root(agent, found)
    key = hashlib.sha256(f"{_VERSION} {_key()} {_fingerprint(kernel)}".encode() + first).hexdigest()[:16]
    boot = boot_directory(key, first, kernel)
    qemu = os.environ.get("BELLJAR_QEMU") or str(place / "root/usr/bin/qemu-system-x86_64")
    return Parts(str(place / "root"), str(boot), qemu, rate, f"{key}-{_fingerprint(qemu)}-{rate}")


def boot_directory(key: str, first: bytes, kernel: str) -> Path:
    """The directory of a kernel and a first root, for as long as this process lives: branches are started from it."""
    boot = Path(held_directory(f"boot-{key}"))
    boot.chmod(0o755)  # QEMU is another user; nobody else gets this far
    if not (boot / "initrd").exists():
        trim_directory(directory(), _BOOTS_KEPT - 1, {boot.name}, prefix="boot-")
    _write(boot / "initrd", lambda path: path.write_bytes(first))
    _write(boot / "vmlinux", lambda path: _link(kernel, path))
    os.utime(boot)
    return boot


def prepare(hear: Hear, mirror: str = "") -> Parts:
    """Fetch and unpack what is missing. PartsUnavailable."""
    check_machine()
    place = Path(directory()) / f"parts-{_key()}"
    with _locked(place):
        if not (place / "done").exists():
            try:
                _make(place, hear, mirror)
                trim_directory(directory(), _PARTS_KEPT - 1, {place.name}, prefix="parts-")
            except (ImageError, OSError, subprocess.SubprocessError) as error:
                raise PartsUnavailable(
                    f"{error}\nWhat was fetched is kept: run it again to go on. Without a way to Debian's mirrors, "
                    "copy ~/.cache/belljar of a machine that has one, or give --mirror"
                ) from error
    hear("agent")
    try:
        agent_program()
    except AgentUnavailable as error:
        raise PartsUnavailable(str(error)) from error
    return find_parts()


def run_tool(parts: Parts, words: Sequence[str], **options: object) -> subprocess.CompletedProcess[bytes]:
    """Run a program of the prepared tools, with its own libraries."""
    root = parts.root
    program = next(path for each in ("bin", "sbin") if os.path.exists(path := f"{root}/usr/{each}/{words[0]}"))
    loader = [f"{root}/usr/lib64/ld-linux-x86-64.so.2", "--library-path", f"{root}/usr/lib/x86_64-linux-gnu"]
    if not os.path.exists(loader[0]):
        loader[0] = f"{root}/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2"
    return subprocess.run(  # type: ignore[call-overload,no-any-return]  # noqa: S603 - by its path
        [*loader, program, *words[1:]], stdin=options.pop("stdin", subprocess.DEVNULL), capture_output=True, **options
    )


def _key() -> str:
    return f"{_VERSION}-{key_of((TOOLS, KERNEL))}"


def _make(place: Path, hear: Hear, mirror: str) -> None:
    work = Path(tempfile.mkdtemp(prefix="work-", dir=draft_directory(place.parent)))
    try:
        tools = unpack_packages(TOOLS, hear, mirror)
        (work / "root").mkdir()
        _unpack(tools, work / "root")
        kernel = unpack_packages(KERNEL, hear, mirror)
        (work / "kernel").mkdir()
        _unpack(kernel, work / "kernel")
        hear("kernel")
        _take_kernel(work)
        shutil.rmtree(work / "kernel")
        (work / "done").touch()
        if place.exists():
            shutil.rmtree(place)
        work.rename(place)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def unpack_packages(kind: str, hear: Hear, mirror: str = "") -> tuple[Objects, FileTree]:
    """The files of the packages of a kind. ImageError."""
    objects = Objects(MemoryStore())
    assembly = Assembly(objects)
    for package, data in fetch_kind(kind, hear, mirror):
        assembly.add(package, data)
    assembly.finish()
    return objects, assembly.tree


def fetch_kind(kind: str, hear: Hear, mirror: str = "") -> Iterator[tuple[Package, bytes]]:
    """The packages of a kind, with the fields that they have in them. ImageError."""
    wanted = pinned(kind, mirror)
    try:
        for number, (package, data) in enumerate(fetch_pinned(wanted), 1):
            hear(f"{kind}: {number} of {len(wanted)} packages")
            yield Package({**read_fields(data, package.name), **package.fields}, package.mirror), data
    except PinsGone as error:
        raise ImageError(explain_gone(error)) from error


def explain_gone(error: PinsGone) -> str:
    """What is missing, how to pin anew, and why to look first."""
    return (
        f"Debian's mirror does not have these pinned packages any more ({len(error.gone)}):\n  "
        + str(error).replace("\n", "\n  ")
        + "\nA mirror drops a version when Debian publishes a newer one; snapshot.debian.org keeps all versions, so if "
        "it could not be reached, try again from where it can be. Or pin what Debian has today, in a checkout of "
        "belljar: python tools/pin_microvm.py\n"
        "Look at what that changed before you use it (git diff src/belljar/vm/pins.txt, and Debian's announcements of "
        "these packages): the digests in that file are all that belljar trusts, and QEMU, the kernel and every program "
        "of a machine come from there. Then: make test-microvm"
    )


def _unpack(files: tuple[Objects, FileTree], place: Path) -> None:
    objects, tree = files
    fd = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        unpack(tree, StoredContents(objects), fd, None)
    finally:
        os.close(fd)


def _take_kernel(work: Path) -> None:
    """Uncompress the kernel, and take the modules that machines need."""
    packed = next((work / "kernel/boot").glob("vmlinuz-*")).read_bytes()
    start = packed.find(_LZ4)
    if start < 0:
        raise ImageError("the kernel is not compressed as Debian's are (LZ4)")
    (work / "packed").write_bytes(packed[start:])
    parts = Parts(str(work / "root"), "", "", 0, "")
    # Something follows the compressed kernel, of which lz4 complains.
    run_tool(parts, ["lz4", "-d", "-f", "-q", str(work / "packed"), str(work / "vmlinux")], check=False)
    (work / "packed").unlink()
    with open(work / "vmlinux", "rb") as file:
        if file.read(4) != b"\x7fELF":
            raise ImageError("the kernel can't be uncompressed")
    found = {path.stem.replace("-", "_"): path.read_bytes() for path in (work / "kernel").rglob("*.ko")}
    (work / "modules").mkdir()
    for name in modules.load_order(modules.ALL, found):
        (work / "modules" / f"{name}.ko").write_bytes(found[name])


def _modules(place: str) -> dict[str, bytes]:
    found = {path.stem.replace("-", "_"): path.read_bytes() for path in Path(place).rglob("*.ko")}
    return {name: found[name] for name in modules.load_order(modules.ALL, found)}


def _first_root(agent: bytes, found: dict[str, bytes]) -> bytes:
    def listed(names: Sequence[str]) -> bytes:
        return "".join(f"/modules.d/{name}.ko\n" for name in modules.load_order(names, found)).encode()

    return cpio.pack_cpio(
        [
            *map(cpio.directory, ("dev", "proc", "sys", "mnt", "modules.d")),
            cpio.Member("dev/console", 0o020600, device=(5, 1)),
            cpio.file("init", agent, 0o755),
            cpio.file("modules", listed(modules.FIRST)),
            cpio.file("drivers", listed(modules.DRIVERS)),
            *(cpio.file(f"modules.d/{name}.ko", data) for name, data in sorted(found.items())),
        ]
    )


def _fingerprint(path: str) -> str:
    """Tells a file from another one without reading it."""
    try:
        found = os.stat(path)
    except OSError as error:
        raise PartsUnavailable(f"{path}: {error.strerror}") from None
    return hashlib.sha256(f"{path} {found.st_size} {found.st_mtime_ns}".encode()).hexdigest()[:12]


def _write(path: Path, make: Callable[[Path], object]) -> None:
    """Make a file, all or nothing, if it is not there."""
    if not path.exists():
        with tempfile.TemporaryDirectory(dir=draft_directory(path.parent)) as scratch:
            made = Path(scratch) / path.name
            make(made)
            made.rename(path)


def _link(source: str, path: Path) -> None:
    with suppress(OSError):
        os.link(source, path)
        return
    shutil.copyfile(source, path)


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    with open(place.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield
