"""The files of a Debian system, made of its packages: unpacked, and known to dpkg, which can go on from there.

Nothing of a package is run here: dpkg's state of the packages is "unpacked". `dpkg --configure -a` in a sandbox, or
any `apt-get install`, configures them.
"""

from __future__ import annotations

import hashlib
import io
from collections.abc import Iterator
from typing import IO, Final

from belljar.abi.errors import ImageError
from belljar.abi.paths import fsdecode, fsencode
from belljar.image.debian.archive import split_package
from belljar.image.debian.control import Package, parse_paragraph
from belljar.image.layer import Meter, members
from belljar.image.oci import unpacked
from belljar.image.tree import FileTree, Node, show, split_path
from belljar.kernel.machine import REPLAY_NS
from belljar.libc.tar_header import FIFO, HARD_LINK, SYMLINK, Member
from belljar.store.objects import content_of
from belljar.store.snapshot import Tree
from belljar.store.store import Objects
from belljar.store.tree import Kind

_MERGED: Final = (b"bin", b"sbin", b"lib", b"lib32", b"lib64", b"libx32", b"libo32")
"""Names that are symbolic links to the same in /usr, as debootstrap makes them, if there are such directories."""
_NEW: Final = Node(Kind.DIRECTORY, 0o755, 0, 0, REPLAY_NS)
_DPKG: Final = "var/lib/dpkg"
_CONTROL_MAX: Final = 64 << 20
_PENDING_MAX: Final = 48 << 20
_FIRST: Final = ("base-files", "base-passwd")


class Assembly:
    """A system that packages are unpacked into, one after the other."""

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self._meter = Meter()
        self._status: dict[str, str] = {}
        self._triggers: dict[str, list[str]] = {}
        self._pending: list[bytes] = []
        """Pieces that are not stored yet: a store takes many at once."""
        self._pending_size = 0
        self.tree = FileTree(Node(Kind.DIRECTORY, 0o755, 0, 0, REPLAY_NS))

    def add(self, package: Package, data: bytes) -> None:
        """Unpack a package. ImageError, StoreError."""
        control, files = split_package(data, package.name)
        try:
            scripts = _read_control(self._meter, control)
            names, sums = self._unpack(files)
        except ImageError as error:
            raise ImageError(f"the package {package.name}: {error}") from None
        fields = parse_paragraph(scripts.get("control", b"").decode("utf-8", "replace"))
        if fields.get("package") != package.name or fields.get("version") != package.version:
            raise ImageError(f"the package {package.name} is another one than the archive says")
        same = fields.get("multi-arch") == "same"
        stem = f"{_DPKG}/info/{package.name}" + (f":{fields['architecture']}" if same else "")
        self.write(f"{stem}.list", "".join(f"{name}\n" for name in names).encode("utf-8", "surrogateescape"))
        for name, script in scripts.items():
            if name != "control":
                mode = 0o755 if name in ("preinst", "postinst", "prerm", "postrm", "config") else 0o644
                self.write(f"{stem}.{name}", script, mode)
        self._note_triggers(package.name, scripts.get("triggers", b"").decode("utf-8", "replace"))
        self._status[package.name] = _status(
            scripts["control"].decode("utf-8", "replace"),
            scripts.get("conffiles", b"").decode("utf-8", "replace"),
            sums,
        )

    def must_prepare(self, package: Package, data: bytes) -> bool:
        """Whether a package has a script that must be run before it is unpacked. ImageError."""
        return "preinst" in _read_control(self._meter, split_package(data, package.name)[0])

    def finish(self) -> Tree:
        """Write dpkg's own files, and what the first program needs before any package is configured. The tree is
        stored.
        """
        self._flush()
        self.write(f"{_DPKG}/status", "".join(f"{self._status[name]}\n" for name in sorted(self._status)).encode())
        for name in ("available", "diversions", "statoverride"):
            self.write(f"{_DPKG}/{name}", b"")
        self.write(f"{_DPKG}/info/format", b"1\n")
        for name, lines in self._triggers.items():
            self.write(f"{_DPKG}/triggers/{name}", "".join(f"{line}\n" for line in sorted(lines)).encode())
        for path in ("updates", "parts", "alternatives"):
            self.make_directory(f"{_DPKG}/{path}")
        for name in ("passwd", "group"):
            if (data := self._read(f"usr/share/base-passwd/{name}.master")) is not None:
                self.write(f"etc/{name}", data)
        if self._find("usr/bin/mawk") is not None and self._find("usr/bin/awk") is None:
            self.link("usr/bin/awk", "mawk")  # as debootstrap does: scripts need it before it is configured
        usr = self._find("usr")
        for merged in _MERGED:
            if usr is not None and merged in usr.names and merged not in self.tree.root.names:
                self._merge(merged)
        stored, directories = self.tree.save()
        self._pending += directories
        self._flush()
        return stored

    def _flush(self) -> None:
        self._objects.write(self._pending)
        self._pending, self._pending_size = [], 0

    def write(self, path: str, data: bytes, mode: int = 0o644) -> None:
        node = Node(Kind.FILE, mode)
        self._pending += node.fill([data])
        self._put(path, node)

    def link(self, path: str, target: str) -> None:
        self._put(path, Node(Kind.SYMLINK, 0o777, target=target.encode()))

    def _put(self, path: str, node: Node) -> None:
        self.tree.put(split_path(fsencode(path)), node, _NEW)

    def make_directory(self, path: str) -> None:
        """Make a directory, and those above it, where there is none."""
        self.tree.way(split_path(path.encode()), make=_NEW)

    def _merge(self, name: bytes) -> None:
        """Make a name of the root a link into /usr."""
        self.make_directory(f"usr/{fsdecode(name)}")
        self.link(fsdecode(name), f"usr/{fsdecode(name)}")

    def _find(self, path: str) -> Node | None:
        return self.tree.find(split_path(path.encode()))

    def _read(self, path: str) -> bytes | None:
        node = self._find(path)
        return content_of(self._objects.read(node.parts)) if node is not None and all(node.parts) else None

    def _unpack(self, data: bytes) -> tuple[list[str], dict[str, str]]:
        """Unpack the files; gives their names, and the MD5 sums of those below /etc, which dpkg notes of settings."""
        names: list[str] = []
        sums: dict[str, str] = {}
        for member, chunks, _ in _members(self._meter, data):
            parts = split_path(fsencode(member.name))
            path = "/" + "/".join(fsdecode(part) for part in parts)
            names.append(path if parts else "/.")
            if not parts:
                continue
            if parts[0] in _MERGED and parts[0] not in self.tree.root.names and member.kind != SYMLINK:
                self._merge(parts[0])
            way = self.tree.way(parts[:-1], make=_NEW)
            assert way is not None
            directory = way[-1][1].names
            if member.is_dir and self.tree.way(parts) is not None:  # a directory, or a link to one
                before = directory[parts[-1]]
                if before.is_directory:
                    _set_attributes(before, member)
                continue
            node = self._node(member, chunks, path, sums)
            if node is not None:
                if parts[-1] in directory and directory[parts[-1]].is_directory and not node.is_directory:
                    raise ImageError(f"{show(fsencode(path))} is a directory of another package")
                directory[parts[-1]] = node
        return names, sums

    def _node(self, member: Member, chunks: Iterator[bytes], path: str, sums: dict[str, str]) -> Node | None:
        """The node of a member; None for a device, which no image has."""
        if member.is_dir:
            node = Node(Kind.DIRECTORY)
        elif member.is_regular:
            node = Node(Kind.FILE)
            sum_ = hashlib.md5(usedforsecurity=False) if path.startswith("/etc/") else None
            for piece in node.fill(_summed(chunks, sum_)):
                self._pending.append(piece)
                self._pending_size += len(piece)
                if self._pending_size > _PENDING_MAX:
                    self._flush()
            if sum_ is not None:
                sums[path] = sum_.hexdigest()
        elif member.kind == SYMLINK:
            node = Node(Kind.SYMLINK, target=fsencode(member.link))
        elif member.kind == HARD_LINK:
            found = self.tree.find(split_path(fsencode(member.link)))
            if found is None or found.is_directory:
                raise ImageError(f"{show(fsencode(path))} is a hard link to no file")
            return found
        elif member.kind == FIFO:
            node = Node(Kind.FIFO)
        else:
            return None
        _set_attributes(node, member)
        return node

    def _note_triggers(self, package: str, text: str) -> None:
        """Whom to tell when a file is changed, or a name is called: dpkg keeps that by file, and by name."""
        for line in text.splitlines():
            verb, _, name = line.partition("#")[0].strip().partition(" ")
            if verb in ("interest", "interest-await", "interest-noawait") and name.strip():
                name = name.strip()
                who = package + ("/noawait" if verb.endswith("noawait") else "")
                if name.startswith("/"):
                    self._triggers.setdefault("File", []).append(f"{name} {who}")
                elif "/" not in name:
                    self._triggers.setdefault(name, []).append(who)


def _members(meter: Meter, data: bytes) -> Iterator[tuple[Member, Iterator[bytes], int]]:
    blob: IO[bytes] = io.BytesIO(data)
    return members(unpacked(blob, meter), meter)


def _read_control(meter: Meter, data: bytes) -> dict[str, bytes]:
    found: dict[str, bytes] = {}
    size = 0
    for member, chunks, _ in _members(meter, data):
        name = "/".join(fsdecode(part) for part in split_path(fsencode(member.name)))
        if member.is_regular and name and "/" not in name:
            size += member.size
            if size > _CONTROL_MAX:
                raise ImageError("its control files are too large")
            found[name] = b"".join(chunks)
    return found


def read_fields(package: bytes, name: str) -> dict[str, str]:
    """What a package says of itself. ImageError."""
    control = _read_control(Meter(), split_package(package, name)[0]).get("control", b"")
    return parse_paragraph(control.decode("utf-8", "replace"))


def unpack_order(packages: list[Package]) -> list[Package]:
    """By name, but what makes the first directories and accounts first, and what replaces files of others last."""
    return sorted(packages, key=lambda each: (each.name not in _FIRST, bool(each.fields.get("replaces")), each.name))


def _status(control: str, conffiles: str, sums: dict[str, str]) -> str:
    """The paragraph of a package in dpkg's list."""
    head, _, rest = control.strip("\n").partition("\n")
    lines = [head, "Status: install ok unpacked", rest]
    settings = [name for name in conffiles.splitlines() if name.startswith("/")]
    if settings:
        lines += ["Conffiles:", *(f" {name} {sums.get(name, 'newconffile')}" for name in settings)]
    return "\n".join(lines) + "\n"


def _summed(chunks: Iterator[bytes], sum_: hashlib._Hash | None) -> Iterator[bytes]:
    for chunk in chunks:
        if sum_ is not None:
            sum_.update(chunk)
        yield chunk


def _set_attributes(node: Node, member: Member) -> None:
    node.mode, node.uid, node.gid, node.mtime_ns = member.mode, member.uid, member.gid, member.mtime
