"""Captures in the kernel: one moment's files, only what changed, contents that later writes do not reach."""

from __future__ import annotations

from itertools import count

import pytest

from belljar.abi.capture import PIECE_BYTES, SMALL, Record
from belljar.abi.flags import O_RDWR, S_IFIFO, S_IFMT, S_IFREG, S_IFSOCK
from belljar.abi.limits import MIB
from belljar.abi.records import Owner, SetAttr
from belljar.kernel.fs.capture import Captured
from belljar.kernel.fs.memory import Directory, File, MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.fs.remote import Export, RemoteServer
from belljar.kernel.machine import never_backwards
from belljar.kernel.vfs.server import FileServer, Node

ME = Owner(1, 2)


def memory() -> MemoryServer:
    ticks = count(1)
    return MemoryServer(lambda: next(ticks), Quota(100 * MIB, 100_000))


def overlay() -> tuple[OverlayServer, MemoryServer]:
    """An overlay in memory over the owner's files."""
    lower, ticks = memory(), count(1)
    upper = MemoryServer(lambda: next(ticks), Quota(100 * MIB, 100_000))
    make(lower, "kept", b"lower")
    make(lower, "moved", b"moved")
    under = lower.mkdir(lower.root, "dir", 0o755, ME)
    make(lower, "deep", b"deep", under)
    export = Export(lower)
    return OverlayServer(RemoteServer(export.serve), upper, lambda: next(ticks)), lower


def make(server: FileServer, name: str, data: bytes, directory: Node | None = None) -> Node:
    node = server.create(directory or server.root, name, S_IFREG | 0o640, ME)
    write(server, node, 0, data)
    return node


def write(server: FileServer, node: Node, offset: int, data: bytes) -> None:
    handle = server.open(node, O_RDWR)
    handle.write(offset, data)
    handle.close()


def captured(server: FileServer, since: int = 0) -> tuple[Captured, dict[int, Record], int]:
    found = Captured()
    root = found.add_memory(server, since) if isinstance(server, MemoryServer) else found.add_overlay(server, since)  # type: ignore[arg-type]
    return found, {record.id: record for record in found.records}, root


def child(records: dict[int, Record], directory: int, name: bytes) -> Record:
    return records[dict(zip(records[directory].names, records[directory].children, strict=True))[name]]


def now(server: MemoryServer) -> int:
    return server._now()


def test_every_kind_of_file() -> None:
    server = memory()
    folder = server.mkdir(server.root, "folder", 0o700, ME)
    make(server, "a\udcff", b"contents", folder)
    server.symlink(folder, "link", "a", ME)
    server.create(folder, "fifo", S_IFIFO | 0o600, ME)
    server.create(folder, "socket", S_IFSOCK | 0o600, ME)
    found, records, root = captured(server)
    inside = child(records, root, b"folder")
    assert sorted(inside.names) == [b"a\xff", b"fifo", b"link"]
    file = child(records, inside.id, b"a\xff")
    assert (file.data, file.size, file.mode, file.uid, file.gid) == (b"contents", 8, S_IFREG | 0o640, 1, 2)
    assert child(records, inside.id, b"link").target == b"a"
    assert child(records, inside.id, b"fifo").mode & S_IFMT == S_IFIFO
    assert found.sockets == 1


def test_hard_links_are_one_file() -> None:
    server = memory()
    node = make(server, "a", b"x")
    server.link(node, server.root, "b")
    found, records, root = captured(server)
    assert child(records, root, b"a") is child(records, root, b"b")
    assert len(found.records) == 2


def test_later_writes_do_not_reach_the_contents() -> None:
    server = memory()
    large = make(server, "large", b"a" * (SMALL + 1))
    write(server, large, SMALL + 1, b"b")
    sparse = make(server, "sparse", b"begin")
    write(server, sparse, 3 * PIECE_BYTES + 5, b"end")
    found, records, root = captured(server)
    wanted = child(records, root, b"sparse")
    assert wanted.pieces == [0, 1, 3, 1]
    write(server, large, 0, b"zzz")
    write(server, sparse, 0, b"zzz")
    write(server, sparse, 3 * PIECE_BYTES, b"zzzzzzzzzz")
    server.setattr(sparse, SetAttr(size=1))
    assert found.read(server.dev, child(records, root, b"large").id, 0) == b"a" * (SMALL + 1) + b"b"
    assert found.read(server.dev, wanted.id, 0) == b"begin"
    assert found.read(server.dev, wanted.id, 3) == bytes(5) + b"end"
    with pytest.raises(KeyError):
        found.read(server.dev, 99, 0)


@pytest.mark.parametrize("change", ["write", "chmod", "unlink", "rename", "create", "nothing"])
def test_only_what_changed(change: str) -> None:
    server = memory()
    folders = [server.mkdir(server.root, f"d{number}", 0o755, ME) for number in range(3)]
    nodes = [make(server, "f", b"x", folder) for folder in folders]
    mark = now(server)
    match change:
        case "write":
            write(server, nodes[0], 0, b"y")
        case "chmod":
            server.setattr(nodes[0], SetAttr(mode=0o600))
        case "unlink":
            server.unlink(folders[0], "f")
        case "rename":
            server.rename(folders[0], "f", folders[1], "g", 0)
        case "create":
            make(server, "new", b"", folders[0])
    _, records, _ = captured(server, mark)
    ids = [node.ino for node in (*folders, *nodes) if isinstance(node, Directory | File)]
    told = {ids.index(number) if number in ids else -1 for number in records}
    assert told == {
        "write": {3}, "chmod": {3}, "unlink": {0}, "rename": {0, 1, 3}, "create": {0, -1}, "nothing": set(),
    }[change]  # fmt: skip


def test_large_directories_come_in_parts() -> None:
    server = memory()
    for number in range(12_000):
        server.create(server.root, str(number), S_IFREG | 0o600, ME)
    found, _, root = captured(server)
    parts = [record for record in found.records if record.id == root]
    assert [part.goes_on for part in parts] == [False, True, True]
    assert len({name for part in parts for name in part.names}) == 12_000


def test_an_overlay_tells_what_differs() -> None:
    server, _ = overlay()
    write(server, server.walk(server.root, "kept"), 0, b"upper")
    folder = server.walk(server.root, "dir")
    server.rename(server.root, "moved", folder, "here", 0)
    make(server, "new", b"new", folder)
    _, records, root = captured(server)
    top = records[root]
    assert top.lower
    assert dict(zip(top.names, top.children, strict=True))[b"moved"] == 0
    kept = child(records, root, b"kept")
    assert kept.data == b"upper"
    assert kept.lower
    below = child(records, root, b"dir")
    assert sorted(below.names) == [b"here", b"new"]  # not what shows through
    here = child(records, below.id, b"here")
    assert (here.contents, here.data) == (False, None)
    assert here.lower


def test_a_directory_that_holds_the_first_change_below_it_is_told() -> None:
    server, _ = overlay()
    make(server, "first", b"")
    mark = server._now()
    deep = server.walk(server.walk(server.root, "dir"), "deep")
    write(server, deep, 0, b"x")
    _, records, root = captured(server, mark)
    folder = child(records, root, b"dir")
    assert child(records, folder.id, b"deep").data == b"xeep"
    assert folder.as_lower or folder.mtime
    mark = server._now()
    write(server, deep, 0, b"y")
    _, records, _ = captured(server, mark)
    assert [record.data for record in records.values()] == [b"yeep"]


def test_the_clock_of_files_stands_still_rather_than_go_back() -> None:
    times = iter([5, 9, 3, 7, 10])
    clock = never_backwards(lambda: next(times))
    assert [clock() for _ in range(5)] == [5, 9, 9, 9, 10]
