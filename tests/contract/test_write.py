"""Changing: what every writable file server does, written from the rules of POSIX and Linux."""

from errno import EEXIST, EINVAL, EISDIR, ENOENT, ENOTDIR, ENOTEMPTY, EPERM

import pytest

from belljar.abi.flags import (
    O_APPEND,
    O_CREAT,
    O_EXCL,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    S_IFBLK,
    S_IFCHR,
    S_IFIFO,
    S_IFREG,
)
from belljar.abi.records import Owner, SetAttr
from belljar.kernel.vfs.server import FileServer
from belljar.kernel.vfs.view import View
from tests.contract.calls import fails, names, read, write
from tests.contract.servers import START, Case, view_of

pytestmark = pytest.mark.writes


# Creating.


def test_create_then_read(case: Case, view: View) -> None:
    write(view, "/new", b"data", mode=0o640)
    assert read(view, "/new") == b"data"
    assert "new" in names(view, "/")
    if case.has("modes"):
        assert view.stat("/new").mode == S_IFREG | 0o640
    assert view.stat("/new").nlink == 1
    fails(EEXIST, view.open, "/new", O_WRONLY | O_CREAT | O_EXCL)


def test_the_server_itself_refuses_a_taken_name(server: FileServer) -> None:
    owner = Owner(0, 0)
    fails(EEXIST, server.create, server.root, "hello", S_IFREG | 0o644, owner)
    fails(EEXIST, server.mkdir, server.root, "dir", 0o755, owner)
    fails(EEXIST, server.mkdir, server.root, "hello", 0o755, owner)


@pytest.mark.parametrize("kind", [S_IFBLK, S_IFCHR])
def test_no_devices(server: FileServer, kind: int) -> None:
    fails(EPERM, server.create, server.root, "device", kind | 0o666, Owner(0, 0))


@pytest.mark.needs("fifos")
def test_fifo(view: View) -> None:
    view.mknod("/fifo", S_IFIFO | 0o600)
    assert view.stat("/fifo").kind == S_IFIFO
    view.unlink("/fifo")
    fails(ENOENT, view.stat, "/fifo")


def test_mkdir_and_rmdir(view: View) -> None:
    links = view.stat("/").nlink
    view.mkdir("/made")
    assert view.stat("/made").nlink in (1, 2)
    assert view.stat("/").nlink in (1, links + 1)
    write(view, "/made/f", b"x")
    fails(ENOTEMPTY, view.rmdir, "/made")
    view.unlink("/made/f")
    view.rmdir("/made")
    fails(ENOENT, view.stat, "/made")
    assert view.stat("/").nlink == links
    fails(ENOTEMPTY, view.rmdir, "/dir")
    fails(ENOTDIR, view.rmdir, "/hello")
    fails(EISDIR, view.unlink, "/dir")
    fails(ENOENT, view.rmdir, "/no")


@pytest.mark.needs("identity")
def test_a_removed_directory_takes_nothing(view: View) -> None:
    view.chdir("/hollow")
    view.rmdir("/hollow")
    fails(ENOENT, view.open, "x", O_WRONLY | O_CREAT)
    fails(ENOENT, view.mkdir, "x")
    fails(ENOENT, view.getcwd)
    assert view.readdir(".") == []


def test_removed_and_made_again_is_empty(view: View) -> None:
    for path in ("/dir/sub/deep", "/dir/inner"):
        view.unlink(path)
    view.rmdir("/dir/sub")
    if "twin-b" in names(view, "/dir"):
        view.unlink("/dir/twin-b")
    view.rmdir("/dir")
    assert "dir" not in names(view, "/")
    view.mkdir("/dir")
    assert names(view, "/dir") == []
    fails(ENOENT, view.stat, "/dir/inner")
    write(view, "/dir/inner", b"new")
    assert read(view, "/dir/inner") == b"new"


@pytest.mark.needs("symlinks")
def test_symlink(view: View) -> None:
    view.symlink("/dir/inner", "/link")
    assert view.readlink("/link") == "/dir/inner"
    assert read(view, "/link") == b"inner\n"
    fails(EEXIST, view.symlink, "x", "/link")
    fails(EEXIST, view.symlink, "x", "/hello")
    write(view, "/dangling", b"made")
    assert read(view, "/nowhere") == b"made"
    view.unlink("/link")
    assert read(view, "/dir/inner") == b"inner\n"


# Writing.


def test_overwrite_part(view: View) -> None:
    write(view, "/hello", b"HE", O_WRONLY)
    assert read(view, "/hello") == b"HEllo world\n"


def test_truncate_on_open(view: View) -> None:
    write(view, "/big", b"", O_WRONLY | O_TRUNC)
    assert view.stat("/big").size == 0
    assert read(view, "/big") == b""


def test_append(view: View) -> None:
    file = view.open("/hello", O_WRONLY | O_APPEND).retain()
    write(view, "/hello", b"more\n", O_WRONLY | O_APPEND)
    file.seek(0)
    assert file.write(b"last\n") == 5
    assert file.offset == 22
    file.release()
    assert read(view, "/hello") == b"hello world\nmore\nlast\n"


def test_write_past_the_end_leaves_zeros(view: View) -> None:
    file = view.open("/hello", O_RDWR).retain()
    assert file.pwrite(b"end", 20) == 3
    assert file.pread(100, 0) == b"hello world\n" + bytes(8) + b"end"
    file.release()
    assert view.stat("/hello").size == 23


def test_truncate_both_ways(view: View) -> None:
    view.truncate("/hello", 5)
    assert read(view, "/hello") == b"hello"
    view.truncate("/hello", 8)
    assert read(view, "/hello") == b"hello\0\0\0"
    file = view.open("/hello", O_RDWR).retain()
    file.truncate(2)
    assert file.pread(10, 0) == b"he"
    file.release()
    fails(EISDIR, view.truncate, "/dir", 0)
    fails(EINVAL, view.truncate, "/hello", -1)


@pytest.mark.needs("sparse")
def test_holes_cost_nothing(view: View) -> None:
    file = view.open("/sparse", O_RDWR | O_CREAT).retain()
    file.pwrite(b"end", 1 << 40)
    assert file.stat().size == (1 << 40) + 3
    assert file.stat().blocks < 10_000
    assert file.pread(8, (1 << 40) - 5) == bytes(5) + b"end"
    file.truncate(1 << 41)
    assert file.pread(4, (1 << 41) - 2) == bytes(2)
    file.truncate(3)
    assert file.pread(10, 0) == bytes(3)
    file.release()
    view.unlink("/sparse")


def test_changes_are_seen_by_files_already_open(view: View) -> None:
    for path in ("/hello", "/dir/inner"):
        reader = view.open(path, O_RDONLY).retain()
        assert reader.pread(2, 0) == read(view, path)[:2]
        write(view, path, b"XY", O_WRONLY)
        assert reader.pread(2, 0) == b"XY"
        view.truncate(path, 1)
        assert reader.pread(10, 0) == b"X"
        assert reader.stat() == view.stat(path)
        reader.release()


@pytest.mark.needs("identity")
def test_a_deleted_file_lives_while_open(view: View) -> None:
    for path in ("/hello", "/dir/inner"):
        before = read(view, path)
        reader = view.open(path, O_RDONLY).retain()
        writer = view.open(path, O_WRONLY | O_APPEND).retain()
        view.unlink(path)
        fails(ENOENT, view.stat, path)
        writer.write(b"after")
        assert reader.pread(1000, 0) == before + b"after"
        assert reader.stat().nlink == 0
        write(view, path, b"another")
        assert reader.pread(1000, 0) == before + b"after"
        reader.release()
        writer.release()
        assert read(view, path) == b"another"


def test_a_file_replaced_by_rename_lives_while_open(view: View) -> None:
    reader = view.open("/hello", O_RDONLY).retain()
    view.rename("/dir/inner", "/hello")
    assert reader.pread(1000, 0) == b"hello world\n"
    assert read(view, "/hello") == b"inner\n"
    reader.release()


# Links.


@pytest.mark.needs("hard links")
def test_link(view: View) -> None:
    view.link("/hello", "/dir/again")
    assert view.stat("/hello").nlink == 2
    assert view.stat("/hello") == view.stat("/dir/again")
    write(view, "/dir/again", b"J", O_WRONLY)
    assert read(view, "/hello") == b"Jello world\n"
    view.unlink("/hello")
    assert view.stat("/dir/again").nlink == 1
    assert read(view, "/dir/again") == b"Jello world\n"
    fails(EPERM, view.link, "/dir", "/dir2")
    fails(EEXIST, view.link, "/big", "/dir")
    fails(ENOENT, view.link, "/no", "/x")


@pytest.mark.needs("hard links")
@pytest.mark.parametrize(("one", "two"), [("/twin-a", "/dir/twin-b"), ("/dir/twin-b", "/twin-a")])
def test_twins_stay_together(view: View, one: str, two: str) -> None:
    write(view, one, b"T", O_WRONLY)
    assert read(view, two) == b"Twin\n"
    assert view.stat(one) == view.stat(two)
    view.chmod(two, 0o600)
    assert view.stat(one).mode & 0o777 == 0o600
    view.rename(one, "/moved")
    assert view.stat("/moved") == view.stat(two)
    view.unlink("/moved")
    assert view.stat(two).nlink == 1
    assert read(view, two) == b"Twin\n"
    write(view, two, b"!", O_WRONLY | O_APPEND)
    assert read(view, two) == b"Twin\n!"


@pytest.mark.needs("hard links")
def test_a_twin_outlives_the_other_unchanged(view: View) -> None:
    view.unlink("/twin-a")
    assert view.stat("/dir/twin-b").nlink == 1
    assert read(view, "/dir/twin-b") == b"twin\n"
    view.chmod("/dir/twin-b", 0o611)
    assert view.stat("/dir/twin-b").mode & 0o777 == 0o611
    view.unlink("/dir/twin-b")
    fails(ENOENT, view.stat, "/dir/twin-b")


# Renaming.


def test_rename_file(view: View) -> None:
    node = view.resolve("/hello").node
    ino = view.stat("/hello").ino
    view.rename("/hello", "/dir/moved")
    fails(ENOENT, view.stat, "/hello")
    assert read(view, "/dir/moved") == b"hello world\n"
    assert view.resolve("/dir/moved").node is node
    assert view.stat("/dir/moved").ino == ino
    view.rename("/dir/moved", "/big")
    assert read(view, "/big") == b"hello world\n"
    fails(ENOENT, view.rename, "/no", "/x")
    view.rename("/big", "/big")
    assert read(view, "/big") == b"hello world\n"


@pytest.mark.needs("identity")
def test_rename_directory_with_all_in_it(view: View) -> None:
    view.chdir("/dir/sub")
    write(view, "/dir/fresh", b"fresh")
    view.rename("/dir", "/hollow/dir2")
    assert view.getcwd() == "/hollow/dir2/sub"
    assert "dir" not in names(view, "/")
    assert read(view, "deep") == b"deep\n"
    assert read(view, "/hollow/dir2/inner") == b"inner\n"
    assert read(view, "../fresh") == b"fresh"
    fails(ENOENT, view.stat, "/dir")
    write(view, "/hollow/dir2/inner", b"changed")
    view.unlink("/hollow/dir2/sub/deep")
    view.mkdir("/dir")
    assert names(view, "/dir") == []
    view.rename("/hollow/dir2", "/dir")
    assert read(view, "/dir/inner") == b"changed"
    assert names(view, "/dir/sub") == []


def test_rename_refusals(view: View) -> None:
    fails(EINVAL, view.rename, "/dir", "/dir/sub/x")
    fails(EINVAL, view.rename, "/dir", "/dir/x")
    fails(ENOTEMPTY, view.rename, "/hollow", "/dir")
    fails(ENOTEMPTY, view.rename, "/dir/sub", "/dir")
    fails(EISDIR, view.rename, "/hello", "/hollow")
    fails(ENOTDIR, view.rename, "/dir", "/hello")
    fails(EEXIST, view.rename, "/hello", "/big", RENAME_NOREPLACE)
    fails(ENOENT, view.rename, "/hello", "/no", RENAME_EXCHANGE)
    assert read(view, "/hello") == b"hello world\n"
    view.rename("/dir/sub", "/hollow")
    assert names(view, "/hollow") == ["deep"]


def test_rename_exchange(view: View) -> None:
    view.rename("/hello", "/dir/sub", RENAME_EXCHANGE)
    assert read(view, "/dir/sub") == b"hello world\n"
    assert names(view, "/hello") == ["deep"]
    assert view.resolve("/hello/..").node is view.resolve("/").node
    view.rename("/dir/sub", "/hello", RENAME_EXCHANGE)
    assert read(view, "/hello") == b"hello world\n"
    write(view, "/new", b"new")
    view.rename("/new", "/dir/inner", RENAME_EXCHANGE)
    assert read(view, "/new") == b"inner\n"
    assert read(view, "/dir/inner") == b"new"
    fails(EINVAL, view.rename, "/dir", "/dir/sub", RENAME_EXCHANGE)


def test_a_name_can_come_back(view: View) -> None:
    for _ in range(3):
        view.unlink("/hello")
        fails(ENOENT, view.stat, "/hello")
        assert "hello" not in names(view, "/")
        write(view, "/hello", b"again")
        assert names(view, "/").count("hello") == 1
    view.unlink("/hello")
    view.mkdir("/hello")
    assert names(view, "/hello") == []


# Attributes.


@pytest.mark.needs("modes")
def test_chmod(view: View) -> None:
    for path in ("/hello", "/dir", "/dir/sub/deep"):
        node = view.resolve(path).node
        view.chmod(path, 0o711)
        assert view.stat(path).mode & 0o7777 == 0o711
        assert node.mode & 0o7777 == 0o711
        assert view.resolve(path).node is node
    assert read(view, "/dir/sub/deep") == b"deep\n"


@pytest.mark.needs("owners")
def test_chown(view: View) -> None:
    for path in ("/hello", "/dir", "/dir/sub/deep"):
        view.chown(path, 7, -1)
        view.chown(path, -1, 8)
        assert (view.stat(path).uid, view.stat(path).gid) == (7, 8)
    assert read(view, "/dir/sub/deep") == b"deep\n"


@pytest.mark.needs("times")
def test_times(view: View) -> None:
    for path in ("/hello", "/dir", "/dir/sub/deep"):
        view.utimens(path, START + 5, START + 7)
        assert (view.stat(path).atime, view.stat(path).mtime) == (START + 5, START + 7)
        view.utimens(path, None, START + 9)
        assert (view.stat(path).atime, view.stat(path).mtime) == (START + 5, START + 9)


@pytest.mark.needs("times")
def test_what_moves_the_times(view: View) -> None:
    old = START - 10**18
    for path in ("/", "/dir", "/hello"):
        view.utimens(path, old, old)
    read(view, "/dir/inner")
    write(view, "/dir/inner", b"x", O_WRONLY)
    view.chmod("/dir/inner", 0o600)
    assert view.stat("/dir").mtime == old
    write(view, "/dir/new", b"")
    assert view.stat("/dir").mtime > old
    view.utimens("/dir", old, old)
    view.unlink("/dir/inner")
    assert view.stat("/dir").mtime > old
    assert view.stat("/").mtime == old
    write(view, "/hello", b"x", O_WRONLY)
    assert view.stat("/hello").mtime > old
    assert view.stat("/").mtime == old
    view.utimens("/dir", old, old)
    view.rename("/hello", "/dir/hello")
    assert view.stat("/").mtime > old
    assert view.stat("/dir").mtime > old


@pytest.mark.needs("modes", "symlinks")
def test_setattr_reaches_through_a_symlink_only_when_followed(view: View) -> None:
    view.chmod("/to-hello", 0o604)
    assert view.stat("/hello").mode & 0o777 == 0o604
    assert view.stat("/to-hello", follow=False).mode & 0o777 == 0o777


def test_setattr_of_size_on_a_directory(server: FileServer) -> None:
    fails(EISDIR, server.setattr, server.root, SetAttr(size=0))


def test_another_view_sees_the_same(server: FileServer, view: View) -> None:
    write(view, "/seen", b"by all")
    assert read(view_of(server), "/seen") == b"by all"
