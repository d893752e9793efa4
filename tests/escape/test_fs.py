"""THREATS.md, FS 1-24, at the level of the kernel's file calls. Shells and utilities have their own tests on top.

Verdicts: B blocked, L limited, S safe. `CASES` says for each case what is tested here, or which layer tests it.
"""

import itertools
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from errno import (
    EACCES,
    EBADF,
    EBUSY,
    EEXIST,
    EINVAL,
    EISDIR,
    ELOOP,
    ENAMETOOLONG,
    ENFILE,
    ENOENT,
    ENOSPC,
    ENOTDIR,
    ENOTEMPTY,
    ENXIO,
    EPERM,
    EROFS,
    EXDEV,
)
from pathlib import Path

import pytest

from belljar.abi.errors import SysError
from belljar.abi.flags import (
    O_CREAT,
    O_NOFOLLOW,
    O_NONBLOCK,
    O_PATH,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    S_IFBLK,
    S_IFCHR,
    S_IFDIR,
    S_IFIFO,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
)
from belljar.abi.limits import Limits
from belljar.abi.records import Owner
from belljar.kernel.fs.hostdir_host import HostDirServer
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.fs.protection import fold
from belljar.kernel.fs.quota import Quota
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Order
from belljar.kernel.vfs.server import FileServer
from belljar.kernel.vfs.view import View
from tests.contract.calls import fails, names, read, write
from tests.contract.servers import File, Ticking, fill, memory, view_of
from tests.escape.oracles import open_files
from tests.kernel.rig import new_kernel, run

ROOT = Path(__file__).parents[2]

CASES = {
    1: ("`..` above the root", "B", "here"),
    2: ("/proc/self/root", "B", "here for host mounts; tests/kernel/test_proc for proc"),
    3: ("/proc/self/{environ,maps,mem}", "S", "tests/kernel/test_proc"),
    4: ("/dev/fd/N beyond the table", "B", "tests/kernel/test_dev"),
    5: ("symlink to an absolute host path, used in every way", "B", "here"),
    6: ("symlink chains and loops", "B", "here"),
    7: ("creating through a dangling symlink", "B", "here"),
    8: ("symlink-swap race on a host mount", "B", "here"),
    9: ("parent-directory swap race on a host mount", "B", "here"),
    10: ("hard link out of the mount, to a lower layer, to another sandbox", "B", "here"),
    11: ("rename across mounts, into itself, over a full directory", "S", "here"),
    12: ("mounts over the root, unmounting it, loops", "B", "here and tests/kernel/test_namespace"),
    13: ("devices; a FIFO nobody reads", "B/L", "here"),
    14: ("odd and long names, deep trees", "B", "here"),
    15: ("case folding and invisible characters against the deny list", "B", "here"),
    16: ("forged whiteouts", "B", "here"),
    17: ("archives that write outside", "B", "tests/bin/test_archives; tests/kernel/test_archive for mounts"),
    18: ("files of a host mount that the host runs", "B", "here"),
    19: ("quota by every way round", "B", "here"),
    20: ("deleted-but-open files count", "L", "here"),
    21: ("reopening a descriptor with more rights", "B", "here"),
    22: (
        "crafted snapshots",
        "B",
        "nowhere: no snapshot of a tree is read back; what Python saves is tests/api/test_saved",
    ),
    23: ("copying a tree into itself", "L", "here"),
    24: ("set-id bits have no power", "S", "here"),
}


def test_every_case_is_placed() -> None:
    assert sorted(CASES) == list(range(1, 25))
    for number, (_, _, where) in CASES.items():
        if where.startswith("here"):
            assert any(name.startswith(f"test_fs{number:02}_") for name in globals()), number
        for file in re.findall(r"tests/[a-z_/]+", where):
            assert (ROOT / f"{file}.py").is_file(), file


CANARY = b"CANARY: the host's own file"


class Host:
    """A directory shared with the guest, and beside it what the guest must never reach."""

    def __init__(self, tmp: Path) -> None:
        self.outside = tmp / "outside"
        self.outside.mkdir()
        self.canary = self.outside / "canary"
        self.canary.write_bytes(CANARY)
        self.shared = tmp / "shared"
        self.shared.mkdir()
        self._servers: list[HostDirServer] = []

    def view(self, *, read_only: bool = True) -> View:
        """A guest with the directory at /mnt."""
        root = memory()
        fill(root, {"greeting": File(b"guest")})
        view = view_of(root)
        view.mkdir("/mnt")
        self._servers.append(HostDirServer(self.shared, read_only=read_only))
        view.mount(self._servers[-1], "/mnt")
        return view

    def close(self) -> None:
        for server in self._servers:
            server.close()

    def check(self) -> None:
        assert self.canary.read_bytes() == CANARY
        assert sorted(path.name for path in self.outside.iterdir()) == ["canary"]


@pytest.fixture
def host(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    yield made
    made.close()
    made.check()


# 1, 2, 5, 6, 7: names that point outside.


@pytest.mark.parametrize("read_only", [True, False])
def test_fs01_dotdot_stops_at_the_root(host: Host, read_only: bool) -> None:
    view = host.view(read_only=read_only)
    up = "../" * 30
    for start in ("/", "/mnt"):
        view.chdir(start)
        fails(ENOENT, view.open, f"{up}etc/passwd", O_RDONLY)
        fails(ENOENT, view.open, f"{up}{str(host.canary)[1:]}", O_RDONLY)
        assert view.resolve(up) == view.resolve("/")


def test_fs01_a_server_takes_single_names_only(host: Host) -> None:
    """The names may come over a socket from a worker that was taken over."""
    (host.shared / "dir").mkdir()
    (host.shared / "file").write_bytes(b"")
    server = HostDirServer(host.shared, read_only=False)
    root, owner = server.root, Owner(0, 0)
    file = server.walk(root, "file")
    for name in ("", ".", "..", "../outside/canary", "../outside/new", "/etc/passwd", "dir/x", "dir/..", "a\0b", "/"):
        fails(EINVAL, server.walk, root, name)
        fails(EINVAL, server.create, root, name, S_IFREG | 0o644, owner)
        fails(EINVAL, server.mkdir, root, name, 0o755, owner)
        fails(EINVAL, server.symlink, root, name, "x", owner)
        fails(EINVAL, server.link, file, root, name)
        fails(EINVAL, server.unlink, root, name)
        fails(EINVAL, server.rmdir, root, name)
        fails(EINVAL, server.rename, root, name, root, "x", 0)
        fails(EINVAL, server.rename, root, "file", root, name, 0)
    assert sorted(os.listdir(host.shared)) == ["dir", "file"]


def test_fs02_magic_links_of_the_host_lead_nowhere(host: Host) -> None:
    for name, target in (("root", "/proc/self/root"), ("one", "/proc/1/root"), ("cwd", "/proc/self/cwd")):
        (host.shared / name).symlink_to(target)
    view = host.view()
    for name in ("root", "one", "cwd"):
        fails(ENOENT, view.stat, f"/mnt/{name}/etc/passwd")
        assert view.stat(f"/mnt/{name}", follow=False).kind == S_IFLNK


@pytest.mark.parametrize("read_only", [True, False])
def test_fs05_absolute_symlinks_resolve_inside(host: Host, read_only: bool) -> None:
    (host.shared / "link").symlink_to(host.canary)
    (host.shared / "dir").symlink_to(host.outside)
    (host.shared / "inside").symlink_to("/greeting")
    view = host.view(read_only=read_only)
    assert read(view, "/mnt/inside") == b"guest"
    for path in ("/mnt/link", "/mnt/dir/canary"):
        fails(ENOENT, view.stat, path)
        fails(ENOENT, view.open, path, O_RDONLY)
        fails(ENOENT, view.open, path, O_WRONLY | O_TRUNC)
        fails(ENOENT, view.chmod, path, 0o777)
        fails(ENOENT, view.truncate, path, 0)
        fails(ENOENT, view.utimens, path, 0, 0)
        fails(ENOENT, view.chown, path, 1, 1)
        fails(ENOENT, view.readdir, "/mnt/dir")
    fails(ENOENT, view.unlink, "/mnt/dir/canary")


def test_fs06_symlink_loops() -> None:
    view = view_of(memory())
    write(view, "/end", b"end")
    view.symlink("/end", "/l1")
    for number in range(1, 41):
        view.symlink(f"l{number}", f"/l{number + 1}")
    assert read(view, "/l40") == b"end"
    for call in (view.stat, lambda path: view.open(path, O_RDONLY), lambda path: view.open(path, O_WRONLY | O_CREAT)):
        fails(ELOOP, call, "/l41")
    view.symlink("self", "/self")
    view.symlink("b", "/a")
    view.symlink("a", "/b")
    for path in ("/self", "/a", "/b", "/self/x", "/a/b/c"):
        fails(ELOOP, view.stat, path)
        fails(ELOOP, view.open, path, O_WRONLY | O_CREAT)


def test_fs07_create_through_a_dangling_symlink(host: Host) -> None:
    (host.shared / "link").symlink_to(host.outside / "planted")
    view = host.view(read_only=False)
    fails(ENOENT, view.open, "/mnt/link", O_WRONLY | O_CREAT)
    view.symlink(f"../../..{host.outside}/planted", "/mnt/up")
    fails(ENOENT, view.open, "/mnt/up", O_WRONLY | O_CREAT)
    view.symlink("/made", "/mnt/inside")
    write(view, "/mnt/inside", b"in the guest")
    assert read(view, "/made") == b"in the guest"
    assert not (host.shared / "made").exists()


# 8, 9: races on a host mount. The other side is a process that only swaps.


@contextmanager
def swapping(swap: Callable[[], None]) -> Iterator[None]:
    pid = os.fork()
    if pid == 0:
        try:
            while True:
                swap()
        finally:
            os._exit(1)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)


def attack(seconds: float, attempt: Callable[[], bytes]) -> dict[str, int]:
    """How often the attempt gave the inside, the outside, or an error.

    It goes on until it gave the inside once, which takes longer on a busy machine, or half a minute.
    """
    counts = {"inside": 0, "outside": 0, "refused": 0}
    end = time.monotonic() + seconds
    while (now := time.monotonic()) < end or (not counts["inside"] and now < end + 30):
        try:
            data = attempt()
        except SysError:
            counts["refused"] += 1
            continue
        counts["outside" if data == CANARY else "inside"] += 1
    return counts


@pytest.mark.battery
@pytest.mark.slow
@pytest.mark.parametrize("what", ["file", "directory"])
def test_fs08_symlink_swap_race(host: Host, what: str) -> None:
    (host.shared / "real").mkdir()
    (host.shared / "real" / "canary").write_bytes(b"inside")
    (host.shared / "name").mkdir()
    inside, outside = (host.shared / "real", host.outside)
    target = host.shared / "name" / "x"
    spare = host.shared / "spare"
    suffix = "canary" if what == "file" else ""

    def swap() -> None:
        for turn in range(2):
            if turn:
                os.symlink(outside / suffix, spare)
            elif what == "file":
                os.link(inside / "canary", spare)
            else:
                os.mkdir(spare)
                os.link(inside / "canary", spare / "canary")
            try:
                os.rename(spare, target)
            except OSError:
                # A directory replaces no symlink: take what is there away first, as an attacker would.
                if target.is_symlink():
                    os.unlink(target)
                else:
                    os.unlink(target / "canary")
                    os.rmdir(target)
                os.rename(spare, target)

    view = host.view(read_only=False)
    path = "/mnt/name/x" if what == "file" else "/mnt/name/x/canary"
    with swapping(swap):
        counts = attack(1.5, lambda: read(view, path))
        write_counts = attack(0.5, lambda: overwrite(view, path))
    assert counts["outside"] == write_counts["outside"] == 0
    assert counts["inside"] > 0, counts
    assert counts["refused"] > 0, counts


def overwrite(view: View, path: str) -> bytes:
    write(view, path, b"inside", O_WRONLY)
    return b"inside"


@pytest.mark.slow
def test_fs09_parent_swap_race(host: Host) -> None:
    """A directory is exchanged for a symlink to the outside while a guest removes and writes in it."""
    (host.shared / "dir").mkdir()
    (host.shared / "link").symlink_to(host.outside)
    directory, link, spare = (str(host.shared / name) for name in ("dir", "link", "spare"))

    def swap() -> None:
        os.rename(directory, spare)
        os.rename(link, directory)
        os.rename(directory, link)
        os.rename(spare, directory)

    view = host.view(read_only=False)
    start = view.resolve("/mnt/dir")
    attempts = itertools.count()

    def destroy() -> bytes:
        made = f"/mnt/dir/made{next(attempts)}"  # one that was left behind does not stop those after it
        found = view.open("/mnt/dir/canary", O_WRONLY | O_CREAT | O_TRUNC).retain()
        found.write(b"guest")
        found.release()
        view.chmod("/mnt/dir/canary", 0o600)
        view.rename("/mnt/dir/canary", "/mnt/dir/moved")
        view.unlink("/mnt/dir/moved")
        view.mkdir(made)
        view.rmdir(made)
        start.mount.server.readdir(start.node)
        return b"inside"

    with swapping(swap):
        counts = attack(1.5, destroy)
    assert counts["inside"] > 0, counts
    host.check()


# 10, 11, 12: links, renames, mounts.


def test_fs10_hard_links_stay_in_their_tree(host: Host) -> None:
    lower = memory()
    fill(lower, {"file": File(b"lower")})
    view = host.view(read_only=False)
    view.mkdir("/over")
    view.mount(OverlayServer(lower, memory(), Ticking()), "/over")
    fails(EXDEV, view.link, "/greeting", "/mnt/greeting")
    fails(EXDEV, view.link, "/over/file", "/stolen")
    view.link("/over/file", "/over/again")
    write(view, "/over/again", b"changed")
    assert read(view, "/over/file") == b"changed"
    assert read(view_of(lower), "/file") == b"lower"
    (host.shared / "link").symlink_to(host.canary)
    view.link("/mnt/link", "/mnt/link2")  # the symlink itself, not what it names
    assert os.readlink(host.shared / "link2") == str(host.canary)


def test_fs11_rename_rules() -> None:
    view = view_of(memory())
    for path in ("/a", "/a/b", "/full", "/mnt"):
        view.mkdir(path)
    write(view, "/full/x", b"")
    write(view, "/file", b"")
    view.mount(memory(), "/mnt")
    fails(EXDEV, view.rename, "/file", "/mnt/file")
    fails(EINVAL, view.rename, "/a", "/a/b/c")
    fails(EINVAL, view.rename, "/a", "/a/a")
    fails(ENOTEMPTY, view.rename, "/a", "/full")
    fails(EISDIR, view.rename, "/file", "/a")
    fails(ENOTDIR, view.rename, "/a", "/file")
    fails(EBUSY, view.rename, "/a/.", "/x")
    assert names(view, "/") == ["a", "file", "full", "mnt"]


def test_fs12_the_root_can_not_be_replaced() -> None:
    view = view_of(memory())
    view.mkdir("/a")
    fails(EBUSY, view.mount, memory(), "/")
    fails(EBUSY, view.bind, "/a", "/a/..")
    fails(EBUSY, view.unmount, "/")
    fails(EINVAL, view.unmount, "/a")
    for _ in range(200):
        view.bind("/", "/a")  # each covers the one before: it stays finite
    view.chdir("/a")
    assert len(view.getcwd()) < 1000


@pytest.mark.parametrize("order", ["replace", "before"])
def test_fs12_mounts_can_not_pile_up(order: Order) -> None:
    view = view_of(memory())
    view.mkdir("/d")

    def pile_up() -> None:
        for _ in range(2000):
            view.mount(memory(), "/d", order=order)

    fails(ENOSPC, pile_up)
    view.unmount("/d")
    view.mount(memory(), "/d", order=order)


# 13, 14: odd files and names.


def test_fs13_no_devices_and_no_hanging_fifo(host: Host) -> None:
    os.mkfifo(host.shared / "fifo")
    view = host.view(read_only=False)
    fails(EPERM, view.mknod, "/disk", S_IFBLK | 0o666)
    fails(EPERM, view.mknod, "/mnt/null", S_IFCHR | 0o666)
    fails(EPERM, view.mknod, "/mnt/fifo2", S_IFIFO | 0o666)
    server = view.resolve("/mnt").mount.server
    assert view.stat("/mnt/fifo").kind == S_IFIFO
    for flags in (O_RDONLY, O_WRONLY, O_RDWR):
        fails(EACCES, server.open, view.resolve("/mnt/fifo").node, flags)
    if os.geteuid() == 0:
        os.mknod(host.shared / "null", S_IFCHR | 0o666, os.makedev(1, 3))
        for flags in (O_RDONLY, O_WRONLY):
            fails(EACCES, view.open, "/mnt/null", flags)


def test_fs13_a_fifo_without_reader_blocks_only_its_opener() -> None:
    kernel = new_kernel()
    done: list[str] = []

    def writer(process: Process) -> int:
        process.open("/tmp/fifo", O_WRONLY)
        return 0

    def other(process: Process) -> int:
        process.fs.mknod("/tmp/fifo", S_IFIFO | 0o666)
        process.fork(writer)
        process.sleep(1)
        fails(ENXIO, process.open, "/tmp/fifo", O_WRONLY | O_NONBLOCK)
        process.write_file("/tmp/other", b"still works")
        done.append(process.read_file("/tmp/other").decode())
        process.wait()
        return 0

    status = run(kernel, other, limits=Limits(wall_seconds=5))
    assert status.signal == signal.SIGKILL
    assert done == ["still works"]
    assert run(kernel, lambda _process: 0).code == 0


@pytest.mark.parametrize("kind", ["memory", "overlay", "host"])
def test_fs14_names(host: Host, kind: str) -> None:
    servers: dict[str, FileServer] = {
        "memory": memory(),
        "overlay": OverlayServer(memory(), memory(), Ticking()),
        "host": HostDirServer(host.shared, read_only=False),
    }
    view = view_of(servers[kind])

    def create(path: str) -> None:
        view.open(path, O_CREAT | O_RDWR)

    for call in (
        view.stat,
        view.mkdir,
        view.unlink,
        view.chdir,
        view.readdir,
        lambda p: view.open(p, O_CREAT | O_RDWR),
    ):
        fails(EINVAL, call, "/a\0b")
        fails(EINVAL, call, "\0")
        fails(ENOENT, call, "")
        fails(ENAMETOOLONG, call, "/" + "n" * 256)
        fails(ENAMETOOLONG, call, "/" + "\u00e9" * 128)
        fails(ENAMETOOLONG, call, "/x" * 2048)
        fails(ENAMETOOLONG, call, "/" * 4096)
    fails(ENAMETOOLONG, view.symlink, "x" * 4096, "/link")
    for name in ("new\nline", "\udcff\udcfe", "n" * 255, "\u00e9" * 127, "-rf", "*", "$(id)", "\x1b[31m", "~", "..."):
        write(view, "/" + name, b"x")
        assert read(view, "/" + name) == b"x"
        assert name in names(view, "/")
        view.rename("/" + name, "/moved")
        view.unlink("/moved")
    assert names(view, "/") == []


@pytest.mark.parametrize("kind", ["memory", "overlay"])
def test_fs14_ten_thousand_deep(kind: str) -> None:
    server = memory() if kind == "memory" else OverlayServer(memory(), memory(), Ticking())
    view = view_of(server)
    depth = 10_000
    for _ in range(depth):
        view.mkdir("d")
        view.chdir("d")
    write(view, "bottom", b"deep")
    assert read(view, "bottom") == b"deep"
    fails(ENAMETOOLONG, view.stat, view.getcwd())
    view.unlink("bottom")
    for _ in range(depth):
        view.chdir("..")
        view.rmdir("d")
    assert view.getcwd() == "/"
    assert names(view, "/") == []


def test_fs14_a_host_tree_deeper_than_a_path_is_long(host: Host) -> None:
    view = host.view(read_only=False)
    view.chdir("/mnt")
    name = "d" * 200
    for _ in range(60):
        view.mkdir(name)
        view.chdir(name)
    write(view, "bottom", b"deep")
    assert read(view, "bottom") == b"deep"
    assert names(view, ".") == ["bottom"]
    view.unlink("bottom")
    for _ in range(60):
        view.chdir("..")
        view.rmdir(name)


# 15, 16, 18: names with a meaning.

DANGEROUS = [
    ".git/hooks/pre-commit",
    ".git/config",
    "sub/.git/hooks/x",
    ".git/modules/m/config",
    ".vscode/tasks.json",
    ".mcp.json",
    ".bashrc",
    ".zshrc",
    ".envrc",
    ".claude/settings.json",
    ".ssh/authorized_keys",
]


@pytest.mark.parametrize("path", DANGEROUS)
def test_fs18_what_the_host_would_run_is_protected(host: Host, path: str) -> None:
    real = host.shared / path
    real.parent.mkdir(parents=True, exist_ok=True)
    real.write_bytes(b"original")
    view = host.view(read_only=False)
    target = f"/mnt/{path}"
    directory, _, name = target.rpartition("/")
    assert read(view, target) == b"original"
    fails(EACCES, view.open, target, O_WRONLY)
    fails(EACCES, view.open, target, O_RDONLY | O_TRUNC)
    fails(EACCES, view.truncate, target, 0)
    fails(EACCES, view.chmod, target, 0o777)
    fails(EACCES, view.unlink, target)
    fails(EACCES, view.rename, target, "/mnt/x")
    fails(EACCES, view.link, target, "/mnt/x")
    write(view, "/mnt/evil", b"evil")
    fails(EACCES, view.rename, "/mnt/evil", target)
    view.symlink(target, "/mnt/alias")
    fails(EACCES, view.open, "/mnt/alias", O_WRONLY)
    if directory != "/mnt":
        view.chdir(directory)
        fails(EACCES, view.open, name, O_WRONLY)
    real.unlink()
    fails(EACCES, view.open, target, O_WRONLY | O_CREAT)
    fails(EACCES, view.symlink, "/mnt/evil", target)
    fails(EACCES, view.mkdir, target)
    assert not real.exists()


def test_fs18_no_detour_to_a_protected_place(host: Host) -> None:
    view = host.view(read_only=False)
    view.mkdir("/mnt/evil")
    view.mkdir("/mnt/evil/hooks")
    write(view, "/mnt/evil/hooks/pre-commit", b"evil")
    fails(EACCES, view.rename, "/mnt/evil", "/mnt/.git")
    fails(EACCES, view.symlink, "evil", "/mnt/.git")
    fails(EACCES, view.open, "/mnt/.git", O_WRONLY | O_CREAT)  # a file that says "gitdir: evil"
    view.mkdir("/mnt/.git")
    fails(EACCES, view.rename, "/mnt/evil/hooks", "/mnt/.git/hooks")
    fails(EACCES, view.rename, "/mnt/.git", "/mnt/away")
    fails(EACCES, view.mkdir, "/mnt/.git/hooks")
    write(view, "/mnt/.git/HEAD", b"ref: refs/heads/main\n")  # the rest of a repository is the guest's to change
    write(view, "/mnt/.gitignore", b"*.pyc\n")
    view.mkdir("/mnt/git")


@pytest.mark.parametrize(
    "name",
    [
        ".GIT",
        ".gIt",
        ".g\u200cit",
        ".git\u200d",
        "\ufeff.git",
        ".git.",
        ".git ",
        ".git. .",
        "GIT~1",
        ".\uff47\uff49\uff54",
        ".git\ufe0f",
        ".git::$INDEX_ALLOCATION",
        ".\u00adgit",
        ".g\u034fit",
        "\uff0egit",
    ],
)
def test_fs15_other_spellings(host: Host, name: str) -> None:
    view = host.view(read_only=False)
    view.mkdir(f"/mnt/{name}")
    fails(EACCES, view.mkdir, f"/mnt/{name}/Hooks")
    fails(EACCES, view.open, f"/mnt/{name}/CONFIG", O_WRONLY | O_CREAT)


def test_fs15_decomposed_names_fold_together() -> None:
    assert fold("Caf\u00e9") == fold("cafe\u0301") == fold("CAFE\u0301")
    assert fold("gitignore") != fold(".git")
    assert fold("...") == "..."


def test_fs16_whiteouts_can_not_be_forged() -> None:
    lower = memory()
    fill(lower, {"x": File(b"x"), ".wh.y": File(b"a file of the image"), "y": File(b"y")})
    view = view_of(OverlayServer(lower, memory(), Ticking()))
    for name in (".wh.x", ".wh..wh..opq", ".wh..opq", ".belljar-stage-1", ".belljar-stage-2"):
        write(view, "/" + name, b"ordinary")
        assert read(view, "/" + name) == b"ordinary"
    fails(EPERM, view.mknod, "/whiteout", S_IFCHR)
    assert read(view, "/x") == b"x"
    assert read(view, "/y") == b"y"
    assert read(view, "/.wh.y") == b"a file of the image"
    write(view, "/x", b"!", O_WRONLY)
    view.unlink("/y")
    assert read(view, "/.belljar-stage-1") == b"ordinary"
    assert {".wh.x", ".wh.y", "x"} <= set(names(view, "/"))
    assert "y" not in names(view, "/")


# 19, 20: room.


def small(byte_limit: int = 1 << 20, files: int = 100) -> tuple[View, Quota]:
    quota = Quota(byte_limit, files)
    return view_of(MemoryServer(Ticking(), quota)), quota


def test_fs19_bytes(host: Host) -> None:
    view, quota = small()
    write(view, "/half", bytes(1 << 19))
    fails(ENOSPC, write, view, "/rest", bytes((1 << 19) + 1))
    fails(ENOSPC, view.truncate, "/half", (1 << 20) + 1)
    view.truncate("/half", 1 << 50)  # a hole takes no room
    assert quota.bytes_used <= 1 << 20
    file = view.open("/half", O_RDWR).retain()
    for page in range(8):
        file.pwrite(b"x", page << 30)
    fails(ENOSPC, lambda: [file.pwrite(b"x", page << 30) for page in range(8, 17)])
    assert file.pread(1, 1 << 45) == b"\0"
    file.release()
    view.chmod("/half", 0o000)
    view.rename("/half", "/renamed")
    fails(ENOSPC, write, view, "/more", bytes(1 << 19))
    view.unlink("/renamed")
    view.unlink("/rest")
    view.unlink("/more")
    assert quota.bytes_used == 0
    assert quota.files_used == 0


@pytest.mark.parametrize("make", ["symlink", "link", "mkdir", "create", "fifo"])
def test_fs19_names(make: str) -> None:
    view, quota = small(files=50)
    write(view, "/file", b"")
    calls: dict[str, Callable[[str], object]] = {
        "symlink": lambda path: view.symlink("target", path),
        "link": lambda path: view.link("/file", path),
        "mkdir": view.mkdir,
        "create": lambda path: write(view, path, b""),
        "fifo": lambda path: view.mknod(path, S_IFIFO | 0o600),
    }
    for number in range(49):
        calls[make](f"/{number}")
    fails(ENOSPC, calls[make], "/one-more")
    assert quota.files_used == 50
    for number in range(49):
        (view.rmdir if make == "mkdir" else view.unlink)(f"/{number}")
    assert quota.files_used == 1


def test_fs19_symlink_targets_take_room() -> None:
    view, quota = small(byte_limit=10_000, files=10)
    view.symlink("t" * 4000, "/a")
    view.symlink("t" * 4000, "/b")
    fails(ENOSPC, view.symlink, "t" * 4000, "/c")
    assert quota.files_used == 2


def test_fs19_copy_up_is_paid_for_and_leaves_nothing_when_it_fails() -> None:
    lower = memory()
    fill(lower, {"big": File(bytes(range(256)) * 8192), "small": File(b"small")})
    quota = Quota(1 << 20, 100)
    view = view_of(OverlayServer(lower, MemoryServer(Ticking(), quota), Ticking()))
    for call in (
        lambda: view.open("/big", O_RDWR),
        lambda: view.link("/big", "/again"),
        lambda: view.truncate("/big", (1 << 20) + 1),
    ):
        fails(ENOSPC, call)
        assert (quota.bytes_used, quota.files_used) == (0, 0)
        assert names(view, "/") == ["big", "small"]
        assert view.stat("/big").size == 1 << 21
    view.chmod("/big", 0o600)
    view.rename("/big", "/moved")
    assert quota.bytes_used == 0  # neither needs the contents
    write(view, "/moved", b"cut", O_WRONLY | O_TRUNC)
    assert quota.bytes_used == 3


def test_fs19_making_and_removing_names_does_not_pile_up_records() -> None:
    lower = memory()
    fill(lower, {"kept": File(b"")})
    server = OverlayServer(lower, memory(), Ticking())
    view = view_of(server)
    for number in range(500):
        write(view, f"/{number}", b"")
        view.rename(f"/{number}", f"/r{number}")
        view.unlink(f"/r{number}")
    view.unlink("/kept")
    assert server.root.names == {"kept": None}


@pytest.mark.parametrize("over", [False, True])
def test_fs20_deleted_files_count_until_closed(over: bool) -> None:
    quota = Quota(1 << 20, 100)
    upper = MemoryServer(Ticking(), quota)
    view = view_of(OverlayServer(memory(), upper, Ticking()) if over else upper)
    file = view.open("/gone", O_RDWR | O_CREAT).retain()
    view.unlink("/gone")
    file.write(bytes(1 << 20))
    fails(ENOSPC, file.write, b"x")
    fails(ENOSPC, write, view, "/other", b"x")
    looking = view.open("/other", O_PATH).retain()
    file.release()
    write(view, "/other", bytes(1 << 20))
    view.unlink("/other")
    fails(ENOSPC, write, view, "/third", b"x")
    looking.release()
    write(view, "/third", bytes(1 << 20))


# 21, 23, 24.


def test_fs21_no_more_rights_by_opening_again() -> None:
    server = memory()
    root, user = view_of(server), view_of(server, uid=1000, gid=1000)
    write(root, "/secret", b"secret", mode=0o600)
    write(root, "/public", b"public", mode=0o644)
    looking = user.open("/secret", O_PATH).retain()
    fails(EBADF, looking.read, 1)
    fails(EBADF, looking.write, b"x")
    fails(EBADF, looking.truncate, 0)
    fails(EBADF, looking.seek, 0)
    fails(EACCES, user.open_place, looking.place, O_RDONLY, "/proc/self/fd/3")
    reading = user.open("/public", O_RDONLY).retain()
    fails(EBADF, reading.write, b"x")
    fails(EBADF, reading.pwrite, b"x", 0)
    fails(EINVAL, reading.truncate, 0)
    for flags in (O_WRONLY, O_RDWR, O_RDONLY | O_TRUNC):
        fails(EACCES, user.open_place, reading.place, flags, "/proc/self/fd/4")
    reading.set_flags(O_RDWR)
    fails(EBADF, reading.write, b"x")
    mounted = view_of(memory())
    mounted.mkdir("/ro")
    mounted.mount(server, "/ro", read_only=True)
    file = mounted.open("/ro/public", O_RDONLY).retain()
    fails(EROFS, mounted.open_place, file.place, O_RDWR, "/proc/self/fd/5")
    assert read(root, "/public") == b"public"


def test_fs21_opening_again_through_proc() -> None:
    kernel = new_kernel()

    def body(process: Process) -> int:
        fd = process.open("/tmp/public", O_RDONLY)
        fails(EACCES, process.open, f"/proc/self/fd/{fd}", O_RDWR)
        fails(EACCES, process.open, f"/dev/fd/{fd}", O_WRONLY | O_TRUNC)
        assert process.read(process.open(f"/proc/self/fd/{fd}", O_RDONLY)) == b"public"
        return 0

    kernel.init.write_file("/tmp/public", b"public", 0o644)
    assert run(kernel, body, uid=1000).code == 0


def copy_tree(view: View, source: str, target: str) -> None:
    """What a careless `cp -r` does."""
    view.mkdir(target)
    for entry in view.readdir(source):
        if entry.is_dir:
            copy_tree(view, f"{source}/{entry.name}", f"{target}/{entry.name}")
        else:
            write(view, f"{target}/{entry.name}", read(view, f"{source}/{entry.name}"))


def test_fs23_a_tree_copied_into_itself_ends() -> None:
    view, quota = small(files=60)
    view.mkdir("/a")
    write(view, "/a/f", b"x")
    with pytest.raises(SysError) as ended:
        copy_tree(view, "/a", "/a/b")
    assert ended.value.errno in (ENOSPC, ENAMETOOLONG)
    assert quota.files_used <= 60
    fails(EINVAL, view.rename, "/a", "/a/b/c")
    fails(EEXIST, view.mkdir, "/a")


def test_fs24_set_id_bits_give_no_power(host: Host) -> None:
    seen: list[tuple[int, int]] = []

    def program(process: Process) -> int:
        seen.append((process.fs.credentials.uid, process.fs.credentials.gid))
        return 0

    kernel = new_kernel(programs={"tool": program})
    kernel.init.fs.chmod("/bin/tool", 0o6755)
    assert run(kernel, lambda process: process.run(["/bin/tool"]).code, uid=1000).code == 0
    assert seen == [(1000, seen[0][1])]
    view = host.view(read_only=False)
    write(view, "/mnt/tool", b"", mode=0o6755)
    view.chmod("/mnt/tool", 0o6755)
    view.mkdir("/mnt/dir", 0o7777)
    assert (host.shared / "tool").stat().st_mode & 0o7000 == 0
    assert (host.shared / "dir").stat().st_mode & 0o6000 == 0


def test_fs24_umask_and_modes_reach_the_host(host: Host) -> None:
    view = host.view(read_only=False)
    view.umask = 0o027
    write(view, "/mnt/file", b"", mode=0o666)
    view.mkdir("/mnt/dir", 0o777)
    assert (host.shared / "file").stat().st_mode & 0o7777 == 0o640
    assert (host.shared / "dir").stat().st_mode & 0o7777 == 0o750


# What a host mount tells.


def test_a_host_mount_shows_mapped_owners_and_no_host_path(host: Host) -> None:
    (host.shared / "file").write_bytes(b"x")
    view = view_of(HostDirServer(host.shared, owner=Owner(1000, 1001)))
    stat = view.stat("/file")
    assert (stat.uid, stat.gid) == (1000, 1001)
    fails(EPERM, view_of(HostDirServer(host.shared, read_only=False)).chown, "/file", 5, 5)
    with pytest.raises(SysError) as missing:
        view.open("/nothing", O_RDONLY)
    assert str(host.shared) not in repr(missing.value)
    assert missing.value.__suppress_context__


def test_a_host_mount_does_not_enter_other_file_systems() -> None:
    if not os.path.ismount("/dev/shm"):
        pytest.skip("no /dev/shm mounted")
    view = view_of(HostDirServer("/dev"))
    fails(EACCES, view.stat, "/shm")
    across = view_of(HostDirServer("/dev", cross_mounts=True))
    assert across.stat("/shm").kind == S_IFDIR


def test_a_host_mount_needs_openat2(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_arguments: object) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr("belljar.kernel.fs.hostdir_host.openat2", refuse)
    with pytest.raises(OSError, match=r"host mounts need openat2"):
        HostDirServer(host.shared)


def test_a_full_host_disk_is_enospc(host: Host, monkeypatch: pytest.MonkeyPatch) -> None:
    view = host.view(read_only=False)
    write(view, "/mnt/file", b"x")
    for code in (ENOSPC, 5, 122):

        def fail(*_arguments: object, code: int = code) -> int:
            raise OSError(code, "the host's message", str(host.shared))

        monkeypatch.setattr(os, "pwrite", fail)
        file = view.open("/mnt/file", O_WRONLY).retain()
        fails(code, file.write, b"y")
        file.release()


def test_the_hosts_descriptors_can_not_be_used_up(host: Host) -> None:
    (host.shared / "file").write_bytes(b"x")
    view = view_of(HostDirServer(host.shared, open_files=3))
    held = [view.open("/file", O_RDONLY).retain() for _ in range(3)]
    fails(ENFILE, view.open, "/file", O_RDONLY)
    held.pop().release()
    held.append(view.open("/file", O_RDONLY).retain())
    for file in held:
        file.release()


def test_no_descriptor_is_left(host: Host) -> None:
    view = host.view(read_only=False)

    def held() -> list[str]:
        """What is open of the directory: other descriptors of this process come and go."""
        return [path for path in open_files().values() if path.startswith(str(host.shared))]

    assert len(held()) == 1  # that of the mount itself
    write(view, "/mnt/file", b"x")
    view.symlink("file", "/mnt/link")
    view.mkdir("/mnt/dir")
    read(view, "/mnt/link")
    view.link("/mnt/file", "/mnt/dir/again")
    view.rename("/mnt/dir", "/mnt/moved")
    view.readdir("/mnt")
    view.truncate("/mnt/file", 0)
    for path in ("/mnt/no", "/mnt/file/x", "/mnt/moved/no"):
        with pytest.raises(SysError):
            view.open(path, O_RDWR)
    with pytest.raises(SysError):
        view.rmdir("/mnt/moved")
    with pytest.raises(SysError):
        view.rename("/mnt/file", "/mnt/moved")
    with pytest.raises(SysError):
        view.open("/mnt/link", O_RDONLY | O_NOFOLLOW)
    assert view.stat("/mnt/file").mode & S_IFMT == S_IFREG
    host.close()
    assert held() == []
