"""What is particular to the overlay: copying up, what the layers hold, and that the lower one is never written."""

from errno import ENOENT, ENOTEMPTY
from pathlib import Path
from shutil import rmtree

import pytest

from belljar.abi.flags import O_APPEND, O_CREAT, O_RDONLY, O_RDWR, O_TRUNC, O_WRONLY, RENAME_EXCHANGE
from belljar.abi.records import Owner, SetAttr
from belljar.kernel.fs.hostdir_host import HostDirServer
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.overlay_node import OverlayNode
from belljar.kernel.vfs.server import FileServer, Handle, Node
from belljar.kernel.vfs.view import View
from tests.contract.calls import fails, names, read, write
from tests.contract.servers import START, Dir, File, Hard, Link, Ticking, Tree, fill, memory, view_of, write_host

TREE: Tree = {
    "dir": Dir(0o750),
    "dir/file": File(b"lower file", 0o640),
    "dir/sub": Dir(),
    "dir/sub/deep": File(b"deep"),
    "other": Dir(),
    "twin-a": File(b"twin"),
    "twin-b": Hard("twin-a"),
    "twin-c": Hard("twin-a"),
    "link": Link("dir/file"),
}


class Frozen(MemoryServer):
    """A lower layer that nobody may change."""

    frozen = False

    def _refuse(self) -> None:
        assert not self.frozen, "the lower layer was written"

    def open(self, node: Node, flags: int) -> Handle:
        if flags != O_RDONLY:
            self._refuse()
        return super().open(node, flags)

    def create(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        self._refuse()
        return super().create(directory, name, mode, owner)

    def mkdir(self, directory: Node, name: str, mode: int, owner: Owner) -> Node:
        self._refuse()
        return super().mkdir(directory, name, mode, owner)

    def symlink(self, directory: Node, name: str, target: str, owner: Owner) -> Node:
        self._refuse()
        return super().symlink(directory, name, target, owner)

    def link(self, node: Node, directory: Node, name: str) -> None:
        self._refuse()
        super().link(node, directory, name)

    def unlink(self, directory: Node, name: str) -> None:
        self._refuse()
        super().unlink(directory, name)

    def rmdir(self, directory: Node, name: str) -> None:
        self._refuse()
        super().rmdir(directory, name)

    def rename(self, source: Node, old: str, target: Node, new: str, flags: int) -> None:
        self._refuse()
        super().rename(source, old, target, new, flags)

    def setattr(self, node: Node, change: SetAttr) -> None:
        self._refuse()
        super().setattr(node, change)


@pytest.fixture
def lower() -> Frozen:
    server = Frozen(Ticking(), memory().quota)
    fill(server, TREE)
    view_of(server).chown("/dir/file", 7, 8)
    server.frozen = True
    return server


@pytest.fixture
def upper() -> MemoryServer:
    return memory()


@pytest.fixture
def view(lower: Frozen, upper: MemoryServer) -> View:
    return view_of(OverlayServer(lower, upper, Ticking()))


def held(server: FileServer) -> list[str]:
    """Every path a server holds."""
    view, found, todo = view_of(server), [], [""]
    while todo:
        directory = todo.pop()
        for entry in view.readdir(directory or "/"):
            found.append(f"{directory}/{entry.name}")
            if entry.is_dir:
                todo.append(found[-1])
    return sorted(found)


def test_reading_copies_nothing(view: View, upper: MemoryServer) -> None:
    assert read(view, "/link") == b"lower file"
    assert read(view, "/dir/sub/deep") == b"deep"
    view.stat("/twin-a")
    assert held(upper) == []


def test_copy_up_keeps_the_metadata(view: View, upper: MemoryServer) -> None:
    before = view.stat("/dir/file")
    directory = view.stat("/dir")
    view.open("/dir/file", O_WRONLY).retain().release()
    after = view.stat("/dir/file")
    assert held(upper) == ["/dir", "/dir/file"]
    assert after[:9] == before[:9]
    assert (after.uid, after.gid, after.mtime) == (7, 8, START)
    assert view.stat("/dir") == directory
    assert view_of(upper).stat("/dir").mode & 0o777 == 0o750


def test_chmod_chown_utimens_and_rename_copy_no_contents(view: View, upper: MemoryServer) -> None:
    view.chmod("/dir/file", 0o600)
    view.chown("/dir/file", 1, 2)
    view.utimens("/dir/file", 3, 4)
    view.rename("/dir/file", "/other/moved")
    view.rename("/dir", "/other/dir")
    view.rename("/other/dir/sub", "/twin-a", RENAME_EXCHANGE)
    assert held(upper) == []
    stat = view.stat("/other/moved")
    assert (stat.mode & 0o777, stat.uid, stat.gid, stat.atime, stat.mtime) == (0o600, 1, 2, 3, 4)
    assert read(view, "/twin-a/deep") == b"deep"
    write(view, "/other/moved", b"!", O_WRONLY | O_APPEND)
    assert held(upper) == ["/other", "/other/moved"]
    assert read(view, "/other/moved") == b"lower file!"
    stat = view.stat("/other/moved")
    assert (stat.mode & 0o777, stat.uid, stat.gid) == (0o600, 1, 2)


def test_changes_stay_when_nobody_holds_the_nodes(view: View) -> None:
    view.chmod("/dir/sub/deep", 0o600)
    view.unlink("/dir/file")
    view.chmod("/twin-b", 0o611)
    view.unlink("/twin-b")
    ino = view.stat("/dir/sub/deep").ino
    for _ in range(3):
        assert view.stat("/dir/sub/deep").mode & 0o777 == 0o600
        fails(ENOENT, view.stat, "/dir/file")
        assert view.stat("/twin-a").mode & 0o777 == 0o611
        assert view.stat("/twin-c").nlink == 2
    assert view.stat("/dir/sub/deep").ino == ino


def test_twins_after_the_copied_name_is_gone(view: View, upper: MemoryServer) -> None:
    write(view, "/twin-a", b"written")
    view.unlink("/twin-a")
    assert read(view, "/twin-b") == b"written"
    write(view, "/twin-c", b"again")
    view.link("/twin-b", "/twin-d")
    assert read(view, "/twin-d") == b"again"
    assert view.stat("/twin-d").nlink == 3
    for name in ("/twin-b", "/twin-c", "/twin-d"):
        view.unlink(name)
    assert held(upper) == []
    assert upper.quota.bytes_used == 0


def test_a_removed_lower_file_opened_again_for_writing(view: View, upper: MemoryServer) -> None:
    """As /proc/self/fd/N does."""
    file = view.open("/dir/file", O_RDONLY).retain()
    view.unlink("/dir/file")
    again = view.open_place(file.place, O_RDWR, "/proc/self/fd/3").retain()
    again.write(b"LOWER")
    assert file.read(100) == b"LOWER file"
    assert held(upper) == []
    file.release()
    again.release()


def test_readers_follow_the_copy(view: View) -> None:
    readers = [view.open("/dir/file", O_RDONLY).retain() for _ in range(3)]
    readers.pop().release()
    assert readers[0].read(5) == b"lower"
    write(view, "/dir/file", b"UPPER", O_WRONLY)
    assert readers[0].read(100) == b" file"
    assert readers[1].read(100) == b"UPPER file"
    write(view, "/dir/file", b"", O_WRONLY | O_TRUNC)
    assert readers[1].pread(100, 0) == b""
    for reader in readers:
        reader.release()


def test_a_removed_and_remade_directory_is_opaque(view: View) -> None:
    fails(ENOTEMPTY, view.rmdir, "/dir")
    view.unlink("/dir/file")
    view.unlink("/dir/sub/deep")
    view.rmdir("/dir/sub")
    view.rmdir("/dir")
    view.mkdir("/dir")
    assert names(view, "/dir") == []
    view.rename("/dir", "/new")
    view.mkdir("/dir")
    assert names(view, "/dir") == names(view, "/new") == []


def test_only_the_part_that_stays_is_copied(upper: MemoryServer) -> None:
    lower = memory()
    fill(lower, {"big": File(bytes(range(1, 256)) * 20_000)})
    view = view_of(OverlayServer(lower, upper, Ticking()))
    view.truncate("/big", 100)
    assert upper.quota.bytes_used == 100
    assert read(view, "/big") == bytes(range(1, 101))
    assert view_of(lower).stat("/big").size == 255 * 20_000


def test_holes_stay_holes(upper: MemoryServer) -> None:
    lower = memory()
    source = view_of(lower)
    file = source.open("/sparse", O_RDWR | O_CREAT).retain()
    file.pwrite(b"end", 64 << 20)
    file.release()
    view = view_of(OverlayServer(lower, upper, Ticking()))
    write(view, "/sparse", b"start", O_WRONLY)
    assert upper.quota.bytes_used < 4 << 20
    copy = view.open("/sparse", O_RDONLY).retain()
    assert copy.pread(5, 0) == b"start"
    assert copy.pread(10, (64 << 20) - 2) == b"\0\0end"
    copy.release()


def test_a_host_directory_below_is_not_touched(tmp_path: Path) -> None:
    top = write_host(TREE, tmp_path)
    before = {path: (path.lstat().st_mtime_ns, path.lstat().st_mode) for path in sorted(top.rglob("*"))}
    view = view_of(OverlayServer(HostDirServer(top), memory(), Ticking()))
    write(view, "/dir/file", b"changed")
    view.unlink("/dir/sub/deep")
    view.rename("/dir", "/moved")
    view.chmod("/twin-a", 0)
    view.unlink("/twin-b")
    write(view, "/.git", b"even this: it stays in the guest")
    assert names(view, "/") == [".git", "link", "moved", "other", "twin-a", "twin-c"]
    assert before == {path: (path.lstat().st_mtime_ns, path.lstat().st_mode) for path in sorted(top.rglob("*"))}
    assert (top / "dir/file").read_bytes() == b"lower file"


def test_what_is_detached_outlives_the_lower_tree(tmp_path: Path) -> None:
    top = write_host(TREE, tmp_path)
    overlay = OverlayServer(HostDirServer(top), memory(), Ticking())
    view = view_of(overlay)
    view.rename("/dir", "/moved")
    view.unlink("/moved/file")
    write(view, "/moved/new", b"new")
    view.rename("/twin-a", "/other/twin")
    paths = ("/moved", "/moved/sub", "/moved/sub/deep", "/other/twin", "/link")

    def look() -> list[tuple[int, ...]]:
        found = [view.stat(path, follow=False) for path in paths]
        return [(stat.mode, stat.ino, stat.nlink, stat.mtime, stat.uid) for stat in found]

    before = look()
    for path in ("/moved", "/other/twin", "/link"):
        node = view.resolve(path, follow=False).node
        assert isinstance(node, OverlayNode)
        overlay.detach(node)
        overlay.detach(node)
    assert before == look()
    rmtree(top / "dir")
    for twin in top.glob("twin*"):
        twin.unlink()
    assert names(view, "/moved") == ["new", "sub"]
    assert read(view, "/moved/sub/deep") == b"deep"
    assert read(view, "/other/twin") == b"twin"
    view.unlink("/moved/sub/deep")
    view.rmdir("/moved/sub")
    fails(ENOENT, view.stat, "/moved/sub")
