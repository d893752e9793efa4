"""Mounts, binds and unions: what appears where, for whom, and how one gets out again."""

from errno import EBUSY, EINVAL, ENOENT, ENOTDIR, EPERM, EROFS, EXDEV

import pytest

from belljar.abi.flags import O_CREAT, O_RDONLY, O_WRONLY, RENAME_EXCHANGE, W_OK
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.vfs.view import View
from tests.contract.calls import fails, names, read, write
from tests.contract.servers import Dir, File, Link, Tree, fill, memory, view_of


@pytest.fixture
def view() -> View:
    root = memory()
    tree: Tree = {
        "bin": Dir(),
        "bin/ls": File(b"root ls"),
        "home": Dir(),
        "home/me": Dir(),
        "home/me/bin": Dir(),
        "home/me/bin/ls": File(b"my ls"),
        "home/me/bin/mine": File(b"mine"),
        "mnt": Dir(),
        "file": File(b"plain"),
        "other": File(b"other"),
        "to-mnt": Link("/mnt"),
    }
    fill(root, tree)
    return view_of(root)


def memory_with(**files: bytes) -> MemoryServer:
    made = memory()
    fill(made, {name: File(data) for name, data in files.items()})
    return made


def test_a_mount_covers_and_uncovers(view: View) -> None:
    write(view, "/mnt/below", b"below")
    view.mount(memory_with(above=b"above"), "/mnt")
    assert names(view, "/mnt") == ["above"]
    assert read(view, "/to-mnt/above") == b"above"
    view.mount(memory_with(top=b"top"), "/mnt")
    assert names(view, "/mnt") == ["top"]
    view.unmount("/mnt")
    assert names(view, "/mnt") == ["above"]
    view.unmount("/mnt")
    assert names(view, "/mnt") == ["below"]
    fails(EINVAL, view.unmount, "/mnt")


def test_what_covers_the_working_directory_is_entered_from_above_and_unmounted_from_within(view: View) -> None:
    write(view, "/mnt/below", b"below")
    view.chdir("/mnt")
    view.mount(memory_with(above=b"above"), ".")
    assert names(view, ".") == ["below"]
    assert names(view, "../mnt") == ["above"]
    view.unmount(".")
    assert names(view, "/mnt") == ["below"]


def test_dotdot_leaves_a_mount(view: View) -> None:
    inner = memory()
    fill(inner, {"a": Dir(), "a/b": Dir()})
    view.mount(inner, "/mnt")
    view.chdir("/mnt/a/b")
    assert view.getcwd() == "/mnt/a/b"
    assert view.resolve("../../..") == view.resolve("/")
    assert view.resolve("../..") == view.resolve("/mnt")
    assert view.resolve("../../../..") == view.resolve("/")
    assert read(view, "../../../file") == b"plain"
    assert view.resolve("/mnt/..") == view.resolve("/")
    assert view.resolve("/mnt/../mnt/a").node is view.resolve("/mnt/a").node


def test_dotdot_leaves_stacked_mounts(view: View) -> None:
    for _ in range(3):
        view.mount(memory_with(x=b"x"), "/mnt")
    view.chdir("/mnt")
    assert view.getcwd() == "/mnt"
    assert view.resolve("..") == view.resolve("/")


def test_dotdot_never_leaves_a_chroot(view: View) -> None:
    view.mount(memory_with(x=b"x"), "/mnt")
    view.chroot("/home/me")
    view.chdir("/")
    assert view.resolve("../../../..") == view.resolve("/")
    assert names(view, "/../..") == ["bin"]
    assert view.getcwd() == "/"
    view.chdir("/bin")
    assert view.getcwd() == "/bin"


def test_union_before(view: View) -> None:
    view.bind("/home/me/bin", "/bin", order="before")
    assert read(view, "/bin/ls") == b"my ls"
    assert names(view, "/bin") == ["ls", "mine"]


def test_union_after(view: View) -> None:
    view.bind("/home/me/bin", "/bin", order="after")
    assert read(view, "/bin/ls") == b"root ls"
    assert read(view, "/bin/mine") == b"mine"
    assert names(view, "/bin") == ["ls", "mine"]


def test_new_files_go_to_the_first_member_that_creates(view: View) -> None:
    view.bind("/home/me/bin", "/bin", order="before", creates=False)
    write(view, "/bin/new", b"new")
    assert "new" not in names(view, "/home/me/bin")
    assert read(view, "/bin/new") == b"new"
    view.unmount("/bin")
    assert names(view, "/bin") == ["ls", "new"]


def test_new_files_go_to_the_member_bound_before(view: View) -> None:
    view.bind("/home/me/bin", "/bin", order="before")
    write(view, "/bin/new", b"new")
    assert "new" in names(view, "/home/me/bin")
    view.mkdir("/bin/sub")
    view.symlink("ls", "/bin/link")
    assert {"sub", "link"} <= set(names(view, "/home/me/bin"))


def test_writing_an_existing_file_writes_the_member_that_shows(view: View) -> None:
    view.bind("/home/me/bin", "/bin", order="after")
    write(view, "/bin/mine", b"changed")
    assert read(view, "/home/me/bin/mine") == b"changed"
    view.unlink("/bin/ls")
    assert read(view, "/bin/ls") == b"my ls"
    view.unlink("/bin/ls")
    fails(ENOENT, view.stat, "/bin/ls")


def test_three_members_and_taking_one_out(view: View) -> None:
    view.mount(memory_with(ls=b"tool ls", tool=b"tool"), "/mnt")
    view.bind("/home/me/bin", "/bin", order="before")
    view.bind("/mnt", "/bin", order="before")
    assert read(view, "/bin/ls") == b"tool ls"
    assert names(view, "/bin") == ["ls", "mine", "tool"]
    view.unmount("/bin", "/home/me/bin")
    assert names(view, "/bin") == ["ls", "tool"]
    assert read(view, "/bin/ls") == b"tool ls"
    view.unmount("/bin", "/mnt")
    assert names(view, "/bin") == ["ls"]
    assert read(view, "/bin/ls") == b"root ls"
    fails(EINVAL, view.unmount, "/bin", "/mnt")


def test_taking_out_what_was_there_first(view: View) -> None:
    view.bind("/home/me/bin", "/bin", order="after")
    view.unmount("/bin", "/bin")
    assert names(view, "/bin") == ["ls", "mine"]
    assert read(view, "/bin/ls") == b"my ls"
    view.unmount("/bin")
    assert read(view, "/bin/ls") == b"root ls"


def test_dotdot_out_of_a_union(view: View) -> None:
    view.mkdir("/home/me/bin/sub")
    view.bind("/home/me/bin", "/bin", order="before")
    view.chdir("/bin/sub")
    assert view.resolve("../..") == view.resolve("/")
    assert names(view, "..") == ["ls", "mine", "sub"]
    assert view.getcwd() == "/bin/sub"
    assert view.resolve("/bin/..") == view.resolve("/")


def test_rename_inside_a_union(view: View) -> None:
    view.bind("/home/me/bin", "/bin", order="before")
    view.rename("/bin/mine", "/bin/yours")
    assert names(view, "/home/me/bin") == ["ls", "yours"]
    view.rename("/bin/yours", "/bin/ls")
    assert read(view, "/bin/ls") == b"mine"


def test_a_childs_binds_are_its_own(view: View) -> None:
    child = view.fork()
    child.bind("/home/me/bin", "/bin")
    child.mount(memory_with(secret=b"s"), "/mnt")
    assert names(child, "/mnt") == ["secret"]
    assert names(view, "/mnt") == []
    assert read(view, "/bin/ls") == b"root ls"
    view.bind("/home", "/mnt")
    assert names(child, "/mnt") == ["secret"]
    grandchild = child.fork()
    assert names(grandchild, "/mnt") == ["secret"]
    grandchild.unmount("/mnt")
    assert names(child, "/mnt") == ["secret"]


def test_bind_over_a_file(view: View) -> None:
    view.bind("/other", "/file")
    assert read(view, "/file") == b"other"
    write(view, "/file", b"new")
    assert read(view, "/other") == b"new"
    fails(EBUSY, view.unlink, "/file")
    view.unmount("/file")
    assert read(view, "/file") == b"plain"
    fails(ENOTDIR, view.bind, "/mnt", "/file")
    fails(ENOTDIR, view.bind, "/file", "/mnt")
    fails(ENOTDIR, view.bind, "/other", "/file", order="before")


def test_what_is_mounted_on_stays(view: View) -> None:
    view.mount(memory_with(x=b"x"), "/mnt")
    fails(EBUSY, view.rmdir, "/mnt")
    fails(EBUSY, view.rename, "/mnt", "/away")
    fails(EBUSY, view.rename, "/home", "/mnt", RENAME_EXCHANGE)
    view.rename("/home", "/house")
    assert read(view, "/mnt/x") == b"x"


def test_the_root_is_neither_covered_nor_unmounted(view: View) -> None:
    fails(EBUSY, view.mount, memory_with(x=b"x"), "/")
    fails(EBUSY, view.bind, "/mnt", "/")
    fails(EBUSY, view.bind, "/mnt", "/home/../..", order="before")
    fails(EBUSY, view.unmount, "/")
    assert read(view, "/file") == b"plain"


def test_crossing_mounts_is_exdev(view: View) -> None:
    view.mount(memory_with(x=b"x"), "/mnt")
    fails(EXDEV, view.rename, "/file", "/mnt/file")
    fails(EXDEV, view.rename, "/mnt/x", "/x")
    fails(EXDEV, view.link, "/file", "/mnt/file")
    fails(EXDEV, view.link, "/mnt/x", "/x")
    view.bind("/home", "/bin")
    fails(EXDEV, view.link, "/file", "/bin/file")  # the same server through two mounts


def test_a_bind_can_be_read_only(view: View) -> None:
    view.bind("/home/me/bin", "/bin", read_only=True)
    assert read(view, "/bin/mine") == b"mine"
    for call, arguments in (
        (view.open, ("/bin/mine", O_WRONLY)),
        (view.open, ("/bin/new", O_WRONLY | O_CREAT)),
        (view.unlink, ("/bin/mine",)),
        (view.mkdir, ("/bin/d",)),
        (view.rename, ("/bin/mine", "/bin/x")),
        (view.chmod, ("/bin/mine", 0o777)),
        (view.truncate, ("/bin/mine", 0)),
        (view.symlink, ("x", "/bin/l")),
        (view.link, ("/bin/mine", "/bin/l")),
        (view.link, ("/file", "/bin/l")),
        (view.access, ("/bin/mine", W_OK)),
        (view.utimens, ("/bin/mine", 1, 1)),
        (view.chown, ("/bin/mine", 1, 1)),
    ):
        fails(EROFS, call, *arguments)
    write(view, "/home/me/bin/mine", b"by the other way")
    assert read(view, "/bin/mine") == b"by the other way"
    view.bind("/bin", "/mnt")
    fails(EROFS, view.open, "/mnt/mine", O_WRONLY)


def test_a_bind_of_a_subtree_does_not_lead_above_it(view: View) -> None:
    view.bind("/home/me", "/mnt")
    view.chdir("/mnt/bin")
    assert view.getcwd() == "/mnt/bin"
    assert view.resolve("../..") == view.resolve("/")
    assert names(view, "../..") == names(view, "/")


def test_a_loop_of_binds_ends(view: View) -> None:
    view.bind("/home", "/home/me")
    assert names(view, "/home/me") == ["me"]
    assert names(view, "/home/me/me") == ["bin"]
    view.chdir("/home/me/me/bin")
    assert view.getcwd() == "/home/me/me/bin"
    for _ in range(4):
        view.chdir("..")
    assert view.getcwd() == "/"


def test_open_files_outlive_their_mount(view: View) -> None:
    view.mount(memory_with(x=b"x"), "/mnt")
    file = view.open("/mnt/x", O_RDONLY).retain()
    view.chdir("/mnt")
    view.unmount("/mnt")
    assert file.read(10) == b"x"
    file.release()
    assert read(view, "x") == b"x"
    fails(ENOENT, view.stat, "/mnt/x")


def test_mounts_are_listed(view: View) -> None:
    view.mount(memory_with(x=b"x"), "/mnt", source="disk")
    view.bind("/home/me/bin", "/bin", order="before")
    assert [mount.source for mount in view.namespace.mounts()] == ["none", "disk", "/home/me/bin"]


def test_only_root_may_chroot(view: View) -> None:
    user = view_of(view.root.mount.server, uid=1000)
    fails(EPERM, user.chroot, "/home")
