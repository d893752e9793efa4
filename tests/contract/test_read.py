"""Looking: what every file server answers about a tree it was given."""

from errno import EINVAL, EISDIR, ELOOP, ENAMETOOLONG, ENOENT, ENOTDIR, EROFS

import pytest

from belljar.abi.flags import (
    O_CREAT,
    O_DIRECTORY,
    O_NOFOLLOW,
    O_PATH,
    O_RDONLY,
    O_WRONLY,
    S_IFDIR,
    S_IFLNK,
    S_IFREG,
    SEEK_CUR,
    SEEK_DATA,
    SEEK_END,
    SEEK_HOLE,
)
from belljar.abi.records import Owner, SetAttr
from belljar.kernel.vfs.server import FileServer
from belljar.kernel.vfs.view import View
from tests.contract.calls import fails, names, read
from tests.contract.servers import START, Case, Dir, File
from tests.contract.tree import BIG, tree_for


def test_every_file_reads_back(case: Case, view: View) -> None:
    for path, entry in tree_for(case).items():
        if isinstance(entry, File):
            assert read(view, "/" + path) == entry.data


def test_listing_has_each_name_once(case: Case, view: View) -> None:
    tree = tree_for(case)
    for directory in ["", *(path for path, entry in tree.items() if isinstance(entry, Dir))]:
        expected = sorted(p.rpartition("/")[2] for p in tree if p.rpartition("/")[0] == directory)
        assert names(view, "/" + directory) == expected


def test_listing_agrees_with_stat_and_is_stable(view: View) -> None:
    first = view.readdir("/")
    assert list(first) == list(view.readdir("/"))
    for entry in first:
        stat = view.stat("/" + entry.name, follow=False)
        assert (entry.ino, entry.kind) == (stat.ino, stat.kind)


def test_kinds_and_sizes(case: Case, view: View) -> None:
    assert view.stat("/hello").kind == S_IFREG
    assert view.stat("/hello").size == 12
    assert view.stat("/empty").size == 0
    assert view.stat("/big").size == len(BIG)
    assert view.stat("/dir").kind == S_IFDIR
    if case.has("symlinks"):
        assert view.stat("/to-abs", follow=False).kind == S_IFLNK
        assert view.stat("/to-abs", follow=False).size == len("/dir/inner")
        assert view.stat("/to-dir").kind == S_IFDIR


@pytest.mark.needs("modes")
def test_modes(case: Case, view: View) -> None:
    for path, entry in tree_for(case).items():
        if isinstance(entry, File | Dir):
            assert view.stat("/" + path).mode & 0o7777 == entry.mode, path


@pytest.mark.needs("times")
def test_modification_time(view: View) -> None:
    assert view.stat("/hello").mtime == START


@pytest.mark.needs("hard links")
def test_hard_links_are_one_file(view: View) -> None:
    one, two = view.stat("/twin-a"), view.stat("/dir/twin-b")
    assert one == two
    assert one.nlink == 2
    assert view.resolve("/twin-a").node is view.resolve("/dir/twin-b").node


def test_inode_numbers_tell_files_apart(case: Case, view: View) -> None:
    paths = [p for p, entry in tree_for(case).items() if isinstance(entry, File | Dir)]
    stats = [view.stat("/" + path) for path in paths]
    assert len({stat.ino for stat in stats}) == len(paths)
    assert [stat.ino for stat in stats] == [view.stat("/" + path).ino for path in paths]


def test_node_identity_lasts(view: View) -> None:
    for path in ("/hello", "/dir", "/dir/sub", "/dir/sub/deep"):
        held = view.resolve(path).node
        view.readdir("/")
        assert view.resolve(path).node is held


def test_locate_leads_to_the_parent(server: FileServer, view: View) -> None:
    sub = view.resolve("/dir/sub").node
    assert server.locate(sub) == (view.resolve("/dir").node, "sub")
    assert server.locate(server.root) is None
    view.chdir("/dir/sub")
    assert view.getcwd() == "/dir/sub"
    assert view.resolve("..").node is view.resolve("/dir").node
    assert view.resolve("../../..").node is server.root


def test_missing_names(view: View) -> None:
    for path in ("/no", "/dir/no", "/no/such/path", "/hello2"):
        fails(ENOENT, view.stat, path)
    for path in ("/hello/x", "/hello/", "/hello/.", "/hello/.."):
        fails(ENOTDIR, view.stat, path)
    fails(ENOENT, view.open, "/no", O_RDONLY)
    fails(ENOTDIR, view.readdir, "/hello")


def test_long_names(view: View) -> None:
    fails(ENAMETOOLONG, view.stat, "/" + "n" * 256)
    fails(ENOENT, view.stat, "/" + "n" * 255)
    fails(ENAMETOOLONG, view.stat, "/" + "\u00e9" * 128)


@pytest.mark.needs("symlinks")
def test_symlinks(view: View) -> None:
    assert view.readlink("/to-abs") == "/dir/inner"
    assert view.readlink("/up") == "../../../hello"
    assert read(view, "/to-abs") == b"inner\n"
    assert read(view, "/up") == b"hello world\n"
    assert read(view, "/to-dir/sub/deep") == b"deep\n"
    fails(ENOENT, view.stat, "/dangling")
    fails(ELOOP, view.stat, "/loop")
    fails(ELOOP, view.open, "/to-hello", O_RDONLY | O_NOFOLLOW)
    fails(EINVAL, view.readlink, "/hello")
    fails(EINVAL, view.readlink, "/dir")


def test_readlink_of_what_is_no_symlink(server: FileServer, view: View) -> None:
    fails(EINVAL, server.readlink, view.resolve("/hello").node)
    fails(EINVAL, server.readlink, server.root)


def test_open_kinds(view: View) -> None:
    fails(EISDIR, view.open, "/dir", O_WRONLY)
    fails(ENOTDIR, view.open, "/hello", O_RDONLY | O_DIRECTORY)
    directory = view.open("/dir", O_RDONLY | O_DIRECTORY).retain()
    fails(EISDIR, directory.read, 1)
    directory.release()
    path = view.open("/hello", O_PATH).retain()
    assert path.stat() == view.stat("/hello")
    path.release()


def test_reading_by_offset(view: View) -> None:
    file = view.open("/big", O_RDONLY).retain()
    assert file.pread(10, 256) == BIG[256:266]
    assert file.pread(1 << 20, len(BIG) - 5) == BIG[-5:]
    assert file.pread(10, len(BIG)) == b""
    assert file.pread(10, len(BIG) + 1000) == b""
    assert file.pread(0, 0) == b""
    assert file.read(3) == BIG[:3]
    assert file.seek(5, SEEK_CUR) == 8
    assert file.read(2) == BIG[8:10]
    assert file.seek(-1, SEEK_END) == len(BIG) - 1
    assert file.read(100) == BIG[-1:]
    assert file.read(100) == b""
    fails(EINVAL, file.seek, -1)
    file.seek(len(BIG) + 7)
    assert file.read(1) == b""
    assert 0 <= file.seek(0, SEEK_DATA) < len(BIG)
    assert file.seek(0, SEEK_HOLE) <= len(BIG)
    file.release()


def test_two_opens_have_their_own_offsets(view: View) -> None:
    one, two = view.open("/hello", O_RDONLY).retain(), view.open("/hello", O_RDONLY).retain()
    assert one.read(5) == b"hello"
    assert two.read(12) == b"hello world\n"
    one.release()
    assert two.pread(5, 0) == b"hello"
    two.release()


def test_statfs_names_a_kind(server: FileServer) -> None:
    found = server.statfs()
    assert found.kind
    assert found.name_max <= 255
    assert found.blocks_free <= found.blocks


@pytest.mark.read_only
def test_a_read_only_server_refuses_every_change(server: FileServer, view: View) -> None:
    hello, root = view.resolve("/hello").node, server.root
    directory = view.resolve("/dir").node
    owner = Owner(0, 0)
    fails(EROFS, server.create, root, "new", S_IFREG | 0o644, owner)
    fails(EROFS, server.mkdir, root, "new", 0o755, owner)
    fails(EROFS, server.symlink, root, "new", "x", owner)
    fails(EROFS, server.link, hello, root, "new")
    fails(EROFS, server.unlink, root, "hello")
    fails(EROFS, server.rmdir, root, "hollow")
    fails(EROFS, server.rename, root, "hello", directory, "x", 0)
    fails(EROFS, server.setattr, hello, SetAttr(mode=0o600))
    fails(EROFS, view.open, "/new", O_WRONLY | O_CREAT)
    fails(EROFS, lambda: server.open(hello, O_WRONLY).write(0, b"x"))
    assert read(view, "/hello") == b"hello world\n"
