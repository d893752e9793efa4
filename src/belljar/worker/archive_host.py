"""Every module a worker may need, and the time zones, in one mapped file that a sealed worker need not open any more.

A zygote imports everything once, for all its workers. Its first worker can't wait for that, nor can one that is started
alone: they begin with what the shell needs, have this archive mapped when they seal themselves, and load a utility when
a guest first asks for it. The archive is recorded by importing everything, in a zygote that finds none or by
`zygote/recorder_host.py`, and holds the compiled modules as Python itself caches them. It is only ever read as a cache:
one changed source, another interpreter, another owner of the file, and it is not used.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from importlib.machinery import ExtensionFileLoader, ModuleSpec, SourceFileLoader, SourcelessFileLoader
from importlib.util import MAGIC_NUMBER, cache_from_source, spec_from_file_location
from types import ModuleType
from typing import Final

from belljar.abi.cache_host import PACKAGE, draft_directory
from belljar.abi.version import __version__

_MAGIC: Final = f"belljar modules 3 {__version__} {sys.version!r} {PACKAGE}".replace("\n", " ")
_LOADED_BEFORE_SEAL: Final = frozenset({"threading", "sysconfig"})
"""Modules that make system calls while they load: gettid, readlink."""
_MODULE, _PACKAGE, _EXTENSION, _DATA = "module", "package", "extension", "data"
_ZONES: Final = "tzdata/zones"


class _Entry:
    """One module: where it came from, what that file looked like then, and where in the archive its code is."""

    __slots__ = ("_place", "_state", "kind", "name", "origin")

    def __init__(self, line: str) -> None:
        # A thousand of them are read, and a third is used: what is not needed now stays text.
        self.name, self.origin, self._state, self.kind, self._place = line.split("\t")

    def is_current(self) -> bool:
        try:
            return _state(self.origin) == self._state
        except OSError:
            return False

    def place(self) -> slice:
        offset, length = map(int, self._place.split())
        return slice(offset, offset + length)


def _state(path: str) -> str:
    found = os.stat(path)
    return f"{found.st_mtime_ns} {found.st_size}"


class _Loader(SourcelessFileLoader):
    """Loads a module from bytes in memory."""

    def __init__(self, entry: _Entry, memory: memoryview) -> None:
        super().__init__(entry.name, entry.origin)
        self._code = memory

    def get_data(self, path: str) -> bytes:
        if path != self.path:
            raise OSError(f"{path}: only the module itself is in the archive")
        return bytes(self._code)


class Archive:
    """The modules of one file, as a finder for `sys.meta_path`."""

    def __init__(self, entries: Iterable[_Entry], code: memoryview) -> None:
        self._entries = {entry.name: entry for entry in entries}
        self._code = code

    @classmethod
    def open(cls, path: str) -> Archive | None:
        """Open an archive; None if it is missing, or was made by another interpreter or from other sources."""
        try:
            with open(path, "rb") as file:
                found = os.fstat(file.fileno())
                if sys.platform != "win32" and (found.st_uid != os.geteuid() or found.st_mode & 0o022):
                    return None
                memory = memoryview(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ))
        except (OSError, ValueError):
            return None
        head = bytes(memory[:4096]).split(b"\n", 2)
        if len(head) < 3 or head[0] != _MAGIC.encode():
            return None
        lengths = head[1].split()
        if len(lengths) != 2 or not all(number.isdigit() for number in lengths):
            return None
        index, code = map(int, lengths)
        start = len(head[0]) + len(head[1]) + 2
        if len(memory) != start + index + code:
            return None
        entries = [_Entry(line) for line in str(memory[start : start + index], "utf-8").splitlines()]
        if not all(entry.is_current() for entry in entries):
            return None
        return cls(entries, memory[start + index :])

    def install(self) -> None:
        """Install this as the first finder of `sys.meta_path`."""
        sys.meta_path.insert(0, self)

    def find_spec(
        self, name: str, _path: Sequence[str] | None = None, _target: ModuleType | None = None
    ) -> ModuleSpec | None:
        entry = self._entries.get(name)
        if entry is None:
            return None
        if entry.kind == _EXTENSION:
            return spec_from_file_location(name, entry.origin, loader=ExtensionFileLoader(name, entry.origin))
        loader = _Loader(entry, self._code[entry.place()])
        places = [os.path.dirname(entry.origin)] if entry.kind == _PACKAGE else None
        return spec_from_file_location(name, entry.origin, loader=loader, submodule_search_locations=places)

    def load_extensions(self) -> None:
        """Load all machine code there is, and what asks the kernel while it loads: a sealed worker can do neither."""
        for entry in self._entries.values():
            if entry.kind == _EXTENSION or entry.name in _LOADED_BEFORE_SEAL:
                import_module(entry.name)

    def load_rest(self) -> Iterator[None]:
        """Load everything that is not loaded yet, one module at each step."""
        for entry in self._entries.values():
            if entry.kind != _DATA and entry.name not in sys.modules:
                import_module(entry.name)
                yield

    def use_zones(self) -> None:
        """Read time zones from this archive."""
        from belljar.libc import tzdata_host  # here, because it needs a package that may only be in the archive

        tzdata_host.use(self._code[self._entries[_ZONES].place()])


def write_archive(path: str, modules: Iterable[ModuleType]) -> None:
    """Record these modules and the time zones. The file appears whole or not at all."""
    from belljar.libc import tzdata_host

    directory, name = os.path.split(os.path.abspath(path))
    draft = os.path.join(draft_directory(directory), f".{name}.{os.getpid()}")
    lines: list[str] = []
    codes: list[bytes] = []
    offset = 0
    specs = (getattr(module, "__spec__", None) for module in modules)
    for spec in {spec.name: spec for spec in specs if spec is not None}.values():
        if isinstance(spec.loader, ExtensionFileLoader):
            kind, code = _EXTENSION, b""
        elif isinstance(spec.loader, SourceFileLoader):
            kind = _PACKAGE if spec.submodule_search_locations is not None else _MODULE
            code = _compiled(spec.loader.path, f"{draft}.pyc")
        else:
            continue
        origin = spec.loader.path
        lines.append("\t".join((spec.name, origin, _state(origin), kind, f"{offset} {len(code)}")))
        codes.append(code)
        offset += len(code)
    zones = tzdata_host.pack()
    origin = tzdata_host.names_file()
    lines.append("\t".join((_ZONES, origin, _state(origin), _DATA, f"{offset} {len(zones)}")))
    codes.append(zones)
    offset += len(zones)
    index = "\n".join(lines).encode()
    with open(draft, "wb", opener=lambda name, flags: os.open(name, flags | os.O_EXCL, 0o600)) as file:
        file.write(f"{_MAGIC}\n{len(index)} {offset}\n".encode())
        file.write(index)
        file.writelines(codes)
    os.replace(draft, path)


def _compiled(source: str, draft: str) -> bytes:
    """A module's code as Python caches it: the cached file if it is this source's, else one made now."""
    import py_compile  # here, because recording is rare and loading must be quick
    import struct

    found = os.stat(source)
    stamp = struct.pack("<III", 0, int(found.st_mtime) & 0xFFFFFFFF, found.st_size & 0xFFFFFFFF)
    try:
        with open(cache_from_source(source), "rb") as file:
            code = file.read()
    except OSError:
        code = b""
    if code[:4] == MAGIC_NUMBER and code[4:16] == stamp:
        return code
    py_compile.compile(source, cfile=draft, doraise=True)
    with open(draft, "rb") as file:
        code = file.read()
    os.unlink(draft)
    return code
