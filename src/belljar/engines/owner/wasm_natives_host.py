"""Native code of WebAssembly programs, kept by the digest of the program: in memory, and in the owner's cache.

Each is what a fresh, sealed process made that was given nothing but the program (`start_host`), and is loaded only by a
sealed process that runs that program. So it depends on the program alone, and whatever a hostile one does to the
compiler, it does to itself. Who asks names a digest; what is kept is kept under the digest of what was compiled.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import threading
from collections import OrderedDict
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.metadata import version
from pathlib import Path
from typing import Final

from belljar.engines.artefact_host import ArtefactError, directory, instruction_set, open_checked, store

MEMORY_MAX: Final = 64 << 20
"""Bytes of native code that an owner keeps in memory."""
DISK_MAX: Final = 512 << 20
"""Bytes of native code in the cache directory; those that were used longest ago make room."""
_CONFIGURATION: Final = "1"
"""Changes with what `template_host.make_engine` tells the compiler."""


class Natives:
    """The native code that this owner has. Safe to use from several threads."""

    def __init__(self, memory_max: int = MEMORY_MAX, disk_max: int = DISK_MAX) -> None:
        self._memory_max = memory_max
        self._disk_max = disk_max
        self._lock = threading.Lock()
        self._loaded: OrderedDict[str, tuple[int, int]] = OrderedDict()
        """A sealed memfd and its size by the program's digest, in LRU order."""

    def find(self, digest: str) -> int | None:
        """A descriptor to read a program's native code from, the caller's to close; None if there is none."""
        with self._lock:
            if digest in self._loaded:
                self._loaded.move_to_end(digest)
                return _open_again(self._loaded[digest][0])
        native = _read(digest)
        return None if native is None else self._load(digest, native)

    def add(self, program: bytes | bytearray, native: bytes | bytearray) -> None:
        """Keep what a program was compiled to."""
        digest = hashlib.sha256(program).hexdigest()
        # Without a directory that is ours alone, or room in it: in memory only.
        with suppress(ArtefactError, OSError), _locked() as place:
            store(place / f"{_name(digest)}.cwasm", native)
            _make_room(place, self._disk_max)
        os.close(self._load(digest, native))

    def _load(self, digest: str, native: bytes | bytearray) -> int:
        fd = os.memfd_create("native", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
        with open(fd, "wb", closefd=False) as file:
            file.write(native)
        fcntl.fcntl(
            fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SEAL | fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW | fcntl.F_SEAL_WRITE
        )
        again = _open_again(fd)
        with self._lock:
            if digest in self._loaded:
                os.close(self._loaded.pop(digest)[0])
            self._loaded[digest] = fd, len(native)
            while sum(size for _, size in self._loaded.values()) > self._memory_max:
                os.close(self._loaded.popitem(last=False)[1][0])
        return again


def _open_again(fd: int) -> int:
    """Reopen a descriptor, with an offset of its own."""
    return os.open(f"/proc/self/fd/{fd}", os.O_RDONLY | os.O_CLOEXEC)


def _name(digest: str) -> str:
    """Changes with anything that the native code depends on."""
    parts = (_CONFIGURATION, digest, version("wasmtime"), instruction_set())
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:32]


def _place() -> Path:
    place = directory() / "wasm"
    place.mkdir(mode=0o700, exist_ok=True)
    return place


def _read(digest: str) -> bytes | None:
    with suppress(ArtefactError, OSError):  # not there, or not what was written: then it is removed
        path = _place() / f"{_name(digest)}.cwasm"
        with open_checked(path) as name:
            native = Path(name).read_bytes()
            os.utime(name)
            return native
    return None


@contextmanager
def _locked() -> Iterator[Path]:
    place = _place()
    with open(place / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield place


def _make_room(place: Path, most: int) -> None:
    entries = sorted((path.stat().st_mtime_ns, path.stat().st_size, path) for path in place.glob("*.cwasm"))
    total = sum(size for _, size, _ in entries)
    for _, size, path in entries:
        if total <= most:
            return
        path.unlink(missing_ok=True)
        path.with_suffix(".mac").unlink(missing_ok=True)
        total -= size
