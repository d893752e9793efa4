"""Native code made from WebAssembly, once per machine and user: a cache that loads nothing it did not write itself.

An artefact is native code: whoever can change one runs as us. So each is authenticated with a key that only this user
can read, and is opened once: what was checked is what is loaded. Names say everything that the code depends on. It is
written beside its place, made durable and renamed; a lock keeps two processes from doing the same work.

An interpreter takes minutes to optimise, so there are two artefacts of one program: a quick one for the first use, and
the real one, which a process in the background makes meanwhile.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import mmap
import os
import platform
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import cache
from importlib.metadata import version
from pathlib import Path
from typing import Final, Literal, NamedTuple

from belljar.abi.cache_host import cache_directories, cache_directory, draft_directory
from belljar.engines.compiler_host import ROUND, Progress, run_compiler

Quality = Literal["quick", "optimised"]
_MAC: Final = "sha256"
_KEY_BYTES: Final = 32
_COMPILER: Final = (sys.executable, "-I", "-m", "belljar.engines.compile_host")


class ArtefactError(RuntimeError):
    """There is no artefact and none can be made; says why and what to do."""


class Change(NamedTuple):
    """Bytes of a program to be replaced before it is compiled, by as many others."""

    offset: int
    old: bytes
    new: bytes

    def __str__(self) -> str:
        """The change as one word."""
        return f"{self.offset}:{self.old.hex()}:{self.new.hex()}"

    @classmethod
    def parse(cls, word: str) -> Change:
        offset, old, new = word.split(":")
        return cls(int(offset), bytes.fromhex(old), bytes.fromhex(new))


@dataclass(frozen=True, slots=True)
class Source:
    """A program to compile: its file, the digest it must have, its name for people, and changes to it."""

    path: Path
    digest: str
    title: str
    changes: tuple[Change, ...] = ()


def directory() -> Path:
    """Return the directory of artefacts, in the user's cache, which only this user may write to."""
    found = cache_directory()
    if found is None:
        raise ArtefactError(
            "the cache directory can be written by others, or not by you, and there is no other: "
            "set BELLJAR_CACHE to one of your own"
        )
    return Path(found)


_at_work: Final[list[subprocess.Popen[bytes]]] = []
"""Background compilers, referenced here because an unreferenced Popen causes a ResourceWarning."""


def _key(place: Path) -> bytes:
    """The secret of this cache, made when first needed."""
    path = place / "key"
    if not path.exists():
        # Whole or not at all: another process may be here at the same moment, and its key is then everybody's.
        descriptor, draft = tempfile.mkstemp(dir=draft_directory(place))
        with os.fdopen(descriptor, "wb") as file:
            file.write(os.urandom(_KEY_BYTES))
        with suppress(FileExistsError):
            os.link(draft, path)
        os.unlink(draft)
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    with os.fdopen(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise ArtefactError(f"{path} can be read by others; remove {place} and try again")
        key = file.read(_KEY_BYTES + 1)
    if len(key) != _KEY_BYTES:
        raise ArtefactError(f"{path} is damaged; remove it and try again")
    return key


@cache
def instruction_set() -> str:
    """Return the machine and CPU features that native code depends on."""
    words = [platform.machine()]
    with suppress(OSError), open("/proc/cpuinfo", encoding="ascii", errors="replace") as file:
        words += sorted({line.partition(":")[2].strip() for line in file if line.startswith(("flags", "Features"))})
    return " ".join(words)


def artefact_name(source: Source, quality: Quality) -> str:
    """Changes with anything that the native code depends on."""
    parts = ("4", source.digest, version("wasmtime"), instruction_set(), quality, *map(str, source.changes))
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def find(source: Source) -> tuple[Path, Quality] | None:
    """The best artefact there is: the file's path, to be opened by `open_checked`."""
    qualities: tuple[Quality, Quality] = ("optimised", "quick")
    places = list(map(Path, cache_directories())) or [directory()]
    for quality in qualities:
        for place in places:
            path = place / f"{artefact_name(source, quality)}.cwasm"
            if path.exists():
                return path, quality
    return None


@contextmanager
def open_checked(path: Path) -> Iterator[str]:
    """A name for the artefact's contents, which are what we wrote. Raises ArtefactError, and removes it, if not.

    Needs /proc: the name means the open file, whatever becomes of the path.
    """
    if not os.path.isdir("/proc/self/fd"):
        raise ArtefactError("engines need /proc, by which what was checked is what is loaded; mount it")
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        with suppress(ValueError), mmap.mmap(descriptor, 0, prot=mmap.PROT_READ) as contents:
            expected = _seal(path.parent, path.stem, contents)
            with suppress(OSError):
                if hmac.compare_digest(expected, path.with_suffix(".mac").read_bytes()):
                    yield f"/proc/self/fd/{descriptor}"
                    return
        with suppress(OSError):
            path.unlink(missing_ok=True)
        raise ArtefactError(f"{path} is not what was written there; it is removed, try again")
    finally:
        os.close(descriptor)


def _seal(place: Path, name: str, contents: mmap.mmap | bytes | bytearray) -> bytes:
    code = hmac.new(_key(place), name.encode() + b"\0", _MAC)
    code.update(contents)
    return code.digest()


def store(path: Path, contents: bytes | bytearray) -> None:
    """Write an artefact and its seal, durably, the seal first: a file at its place is complete."""
    for target, data in ((path.with_suffix(".mac"), _seal(path.parent, path.stem, contents)), (path, contents)):
        beside = Path(draft_directory(target.parent), f".{target.name}.{os.getpid()}")
        try:
            with open(beside, "wb", opener=lambda name, flags: os.open(name, flags | os.O_EXCL, 0o600)) as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            beside.replace(target)
        finally:
            beside.unlink(missing_ok=True)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def prepare(source: Source, quality: Quality, progress: Progress | None = None) -> Path:
    """The artefact of that quality, made by a process of its own if it is not there: compiling starts threads."""
    place = directory()
    _key(place)
    path = place / f"{artefact_name(source, quality)}.cwasm"
    start = time.monotonic()
    with open(path.with_suffix(".lock"), "w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except OSError:
                if progress is not None:
                    progress(source.title, time.monotonic() - start)
                time.sleep(ROUND)
        if not path.exists():
            _compile(source, quality, path, progress)
    return path


def _compile(source: Source, quality: Quality, path: Path, progress: Progress | None) -> None:
    words = [*_COMPILER, str(source.path), source.digest, quality, str(path), *map(str, source.changes)]
    done = run_compiler(words, source.title, progress, stdout=subprocess.DEVNULL)
    if done.returncode or not path.exists():
        reason = done.stderr.decode("utf-8", "replace").strip().splitlines()[-1:] or [f"status {done.returncode}"]
        raise ArtefactError(f"{source.title} could not be compiled: {reason[0]}")


def prepare_in_background(source: Source) -> None:
    """Start making the optimised artefact, slowly, in a process that outlives this one; not where it can't be kept."""
    if cache_directory() is None:
        return
    compiler = subprocess.Popen(  # noqa: S603 - our own compiler
        [*_COMPILER, str(source.path), source.digest, "background", str(directory()), *map(str, source.changes)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    _at_work.append(compiler)


def ready(source: Source, progress: Progress | None = None) -> tuple[Path, Quality]:
    """An artefact to run now: the optimised one, or else a quick one while the other is made."""
    path, quality = find(source) or (None, "quick")
    if path is None:
        path = prepare(source, "quick", progress)
    if quality == "quick":
        prepare_in_background(source)
    return path, quality
