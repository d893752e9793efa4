"""Random mounts and calls across them, ours and Linux's side by side: every answer must be the same, errno included."""

import ctypes
import os
import tempfile
from collections.abc import Iterator
from errno import EBUSY, ENOTDIR
from pathlib import Path
from typing import Any

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_DIRECTORY, O_EXCL, O_NOFOLLOW, O_PATH, O_RDONLY, O_RDWR, O_TRUNC, S_IFREG
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.vfs.server import FileServer
from tests.contract.servers import Ticking, memory
from tests.kernel.real_files import Answer, Helper, Real, can_chroot
from tests.kernel.virtual_files import Virtual

CLONE_NEWNS = 0x20000
MS_RDONLY, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = 1, 0x20, 0x1000, 0x4000, 0x40000
MNT_DETACH = 2


def check(status: int) -> None:
    if status:
        raise OSError(ctypes.get_errno(), "mount")


def enter_namespace() -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    check(libc.unshare(CLONE_NEWNS))
    check(libc.mount(None, b"/", None, MS_REC | MS_PRIVATE, None))


def can_mount() -> bool:
    """Whether this machine lets us have a mount table of our own."""
    pid = os.fork()
    if pid == 0:
        try:
            enter_namespace()
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


pytestmark = pytest.mark.slow


class LinuxMounts(Helper):
    """Linux's files with mounts among them; what the two sides can't agree on by their nature is refused by both."""

    def __init__(self, directory: Path) -> None:
        enter_namespace()
        self._top = str(directory)
        self._root = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
        super().__init__(directory)

    def do_reset(self, mode: int) -> None:
        os.seteuid(0)
        for slot in list(self._files):
            self.do_close(slot)
        os.fchdir(self._root)
        os.chroot(".")
        while below := [point for point in mount_points() if point.startswith(f"{self._top}/")]:
            self._libc.umount2(os.fsencode(below[-1]), MNT_DETACH)
        super().do_reset(mode)

    def _check_point(self, path: str) -> None:
        if not os.path.isdir(path):
            os.stat(path)
            raise OSError(ENOTDIR, path)
        if os.path.samefile(path, "/"):
            raise OSError(EBUSY, path)

    def do_bind(self, old: str, path: str) -> None:
        os.stat(old)
        self._check_point(path)
        check(self._libc.mount(os.fsencode(old), os.fsencode(path), None, MS_BIND, None))

    def do_bind_read_only(self, old: str, path: str) -> None:
        self.do_bind(old, path)
        check(self._libc.mount(None, os.fsencode(path), None, MS_REMOUNT | MS_BIND | MS_RDONLY, None))

    def do_tmpfs(self, path: str) -> None:
        self._check_point(path)
        check(self._libc.mount(b"none", os.fsencode(path), b"tmpfs", 0, b"mode=755"))

    def do_unmount(self, path: str) -> None:
        self._check_point(path)
        check(self._libc.umount2(os.fsencode(path), MNT_DETACH))


def mount_points() -> list[str]:
    return [line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines()]


class OurMounts(Virtual):
    def _check_point(self, path: str) -> None:
        found, root = self.view.stat(path), self.view.stat("/")
        if not found.is_dir:
            raise SysError(ENOTDIR, path)
        if (found.dev, found.ino) == (root.dev, root.ino):
            raise SysError(EBUSY, path)

    def do_bind(self, old: str, path: str) -> None:
        self.view.stat(old)
        self._check_point(path)
        self.view.bind(old, path)

    def do_bind_read_only(self, old: str, path: str) -> None:
        self.view.stat(old)
        self._check_point(path)
        self.view.bind(old, path, read_only=True)

    def do_tmpfs(self, path: str) -> None:
        self._check_point(path)
        server = memory()
        self.kernel.register(server)
        self.view.mount(server, path)

    def do_unmount(self, path: str) -> None:
        self._check_point(path)
        self.view.unmount(path)

    def do_readdir(self, path: str) -> Answer:
        entries = self.view.readdir(path)
        return sorted([entry.name, self.view.stat(f"{path}/{entry.name}", follow=False).kind] for entry in entries)


names = st.sampled_from("abc")
parts = st.one_of(names, names, names, names, st.sampled_from([".", ".."]))
paths = st.builds(
    lambda start, middle, end: start + "/".join(middle) + end,
    st.sampled_from(["", "/"]),
    st.lists(parts, min_size=1, max_size=2),
    st.sampled_from(["", "", "", "", "/", "/..", "/."]),
)
short = names.map(lambda name: f"/{name}")
accesses = [O_RDONLY, O_RDWR, O_RDONLY | O_DIRECTORY, O_RDWR | O_TRUNC, O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_EXCL]
opens = st.sampled_from([*accesses, O_PATH | O_NOFOLLOW])

SETUP = [
    *(("mkdir", path, 0o755) for path in ("/a", "/b", "/c", "/a/a", "/b/a")),
    *(("mknod", path, S_IFREG | 0o644) for path in ("/a/b", "/b/b", "/c/b")),
]

CALLS = st.lists(
    st.one_of(
        st.tuples(st.just("mkdir"), paths, st.just(0o755)),
        st.tuples(st.just("mkdir"), short, st.just(0o755)),
        st.tuples(st.just("mknod"), paths, st.just(S_IFREG | 0o644)),
        st.tuples(st.just("open"), paths, opens, st.just(0o644)),
        st.tuples(st.sampled_from(["bind", "rename"]), paths, paths),
        st.tuples(st.sampled_from(["bind", "bind_read_only"]), paths, short),
        st.tuples(st.sampled_from(["tmpfs", "unmount"]), paths),
        st.tuples(st.sampled_from(["symlink", "rename"]), paths, paths),
        st.tuples(st.sampled_from(["link", "rename"]), paths, paths),
        st.tuples(st.sampled_from(["link", "rename"]), paths, paths),
        st.tuples(st.sampled_from(["unlink", "rmdir", "chdir", "stat", "readdir"]), paths),
        st.tuples(st.just("chmod"), paths, st.just(0o700)),
        st.tuples(st.just("truncate"), paths, st.just(3)),
    ),
    min_size=30,
    max_size=50,
)


@pytest.fixture(scope="module")
def linux() -> Iterator[Real]:
    if not can_chroot() or not can_mount():
        pytest.skip("the oracle needs chroot(2) and mount(2)")
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as directory:
        os.chmod(directory, 0o755)
        real = Real(Path(directory), LinuxMounts)
        yield real
        real.close()


@pytest.mark.parametrize("layered", [False, True], ids=["memory", "overlay"])
def test_no_difference_to_linux(linux: Real, layered: bool) -> None:
    @given(calls=CALLS)
    @settings(max_examples=80, phases=[Phase.generate])
    def compare(calls: list[tuple[Any, ...]]) -> None:
        assert linux.call("reset", 0o755) is None
        server: FileServer = OverlayServer(memory(), memory(), Ticking()) if layered else memory()
        ours = OurMounts(server)
        ours.call("chmod", "/", 0o755)

        def do(*call: Any) -> Answer:
            expected = linux.call(*call)
            assert ours.call(*call) == expected, call
            return expected

        for operation, *arguments in [*SETUP, *calls]:
            match operation:
                case "open":
                    if do("open", 0, *arguments) is None:
                        do("fstat", 0)
                        do("close", 0)
                case "rename":
                    do("rename", *arguments, 0)
                case "link":
                    do("link", *arguments, False)
                case "unmount":
                    do("chdir", "/")  # where `..` of what is no longer mounted leads is Linux's own business
                    do("unmount", *arguments)
                case _:
                    do(operation, *arguments)
            do("getcwd")

    compare()
