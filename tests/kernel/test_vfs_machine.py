"""Random calls on our file servers and on Linux, side by side: every answer must be the same, errno included."""

import os
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from belljar.abi.flags import (
    O_APPEND,
    O_CREAT,
    O_DIRECTORY,
    O_EXCL,
    O_NOFOLLOW,
    O_PATH,
    O_RDONLY,
    O_RDWR,
    O_TRUNC,
    O_WRONLY,
    RENAME_EXCHANGE,
    RENAME_NOREPLACE,
    S_IFDIR,
    S_IFIFO,
    S_IFLNK,
    S_IFMT,
    S_IFREG,
    S_IFSOCK,
)
from belljar.kernel.fs.hostdir_host import HostDirServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.vfs.server import FileServer
from tests.contract.servers import SettledHostDir, Ticking, cached, memory
from tests.kernel.model_files import Model
from tests.kernel.real_files import Real, can_chroot
from tests.kernel.virtual_files import Virtual

pytestmark = [pytest.mark.slow, pytest.mark.skipif(not can_chroot(), reason="the oracle needs chroot(2)")]

names = st.sampled_from(["a", "b", "c", "d"])
parts = st.one_of(names, names, names, names, st.sampled_from([".", "..", "", "a", "n" * 255, "n" * 256]))


@st.composite
def paths(draw: st.DrawFn) -> str:
    text = "/".join(draw(st.lists(parts, min_size=1, max_size=4)))
    return (
        draw(st.sampled_from(["", "", "/", "/"])) + text + draw(st.sampled_from(["", "", "", "", "", "/", "/.", "/.."]))
    )


flags = st.builds(
    lambda access, more: access | sum(more),
    st.sampled_from([O_RDONLY, O_WRONLY, O_RDWR, O_RDWR]),
    st.sets(st.sampled_from([O_CREAT, O_CREAT, O_EXCL, O_TRUNC, O_APPEND, O_DIRECTORY, O_NOFOLLOW, O_PATH])),
)
modes = st.sampled_from(
    [0o777, 0o2777, 0o6777, 0o755, 0o644, 0o600, 0o000, 0o700, 0o070, 0o007, 0o1777, 0o2775, 0o4755, 0o555]
)
slots = st.integers(0, 3)
data = st.sampled_from([b"", b"x", b"hello\n", b"0123456789" * 50])
sizes = st.sampled_from([0, 1, 3, 7, 500, 70_000, 3 << 20])
ids = st.sampled_from([-1, 0, 1000, 1001])
users = st.sampled_from([0, 1000, 1001])

SETUP = st.lists(
    st.one_of(
        st.tuples(st.just("mkdir"), paths(), modes),
        st.tuples(st.just("mkdir"), paths(), st.just(0o777)),
        st.tuples(st.just("mknod"), paths(), modes.map(lambda mode: S_IFREG | mode)),
        st.tuples(st.just("symlink"), paths(), paths()),
        st.tuples(st.just("link"), paths(), paths(), st.just(False)),
        st.tuples(st.just("chown"), paths(), users, users, st.just(False)),
        st.tuples(st.just("open"), st.just(9), paths(), st.just(O_CREAT | O_RDWR), modes),
    ),
    max_size=16,
)


class Files(RuleBasedStateMachine):
    """Root's calls. `real` is set by the test around it."""

    real: ClassVar[Real]
    uid = 0

    def __init__(self) -> None:
        super().__init__()
        self.worlds: list[tuple[str, Real | Virtual]] = []
        self.open_slots: set[int] = set()
        self.model = Model()

    @initialize(setup=SETUP)
    def start(self, setup: list[tuple[Any, ...]]) -> None:
        """The same tree everywhere; for the overlays it is the lower layer."""
        servers = self.blank_servers()
        bare = [Virtual(server) for server in servers]
        self.worlds = [("Linux", self.real), *((f"bare {n}", world) for n, world in enumerate(bare))]
        self.real.call("reset", 0o755)
        for operation in setup:
            self.do(*operation)
            if operation[0] == "open" and 9 in self.open_slots:
                self.do("write", 9, b"lower data")
                self.do("close", 9)
        self.do("chdir", "/")
        self.worlds = [("Linux", self.real), *self.worlds_over(servers, bare)]
        self.do("chmod", "/", 0o777)
        self.do("become", self.uid, self.uid)

    def blank_servers(self) -> Sequence[FileServer]:
        return [memory() for _ in range(3)]

    def worlds_over(self, servers: Sequence[FileServer], bare: list[Virtual]) -> list[tuple[str, Virtual]]:
        middle = OverlayServer(servers[2], memory(), Ticking())
        return [
            ("memory", bare[0]),
            ("overlay", Virtual(OverlayServer(servers[1], memory(), Ticking()))),
            ("overlay of overlay", Virtual(OverlayServer(middle, memory(), Ticking()))),
        ]

    def do(self, operation: str, *arguments: Any) -> Any:
        expected, *others = [world.call(operation, *arguments) for _, world in self.worlds]
        for (name, _), answer in zip(self.worlds[1:], others, strict=True):
            assert answer == expected, f"{operation}{arguments}: {name} says {answer!r}, Linux says {expected!r}"
        failed = isinstance(expected, str) and expected.startswith("!")
        if not failed:
            self.model.apply(operation, arguments, expected)
        if operation == "open" and not failed:
            self.open_slots.add(arguments[0])
        elif operation == "close" and not failed:
            self.open_slots.discard(arguments[0])
        return expected

    # Descriptors.

    @rule(slot=slots, path=paths(), flags=flags, mode=modes)
    def open(self, slot: int, path: str, flags: int, mode: int) -> None:
        if slot in self.open_slots:
            self.do("close", slot)
        self.do("open", slot, path, flags, mode)

    @rule(slot=slots, path=paths(), data=data)
    def write_file(self, slot: int, path: str, data: bytes) -> None:
        self.open(slot, path, O_CREAT | O_RDWR, 0o666)
        if slot in self.open_slots:
            self.do("write", slot, data)

    def pick(self, slot: int) -> int:
        return sorted(self.open_slots)[slot % len(self.open_slots)]

    @precondition(lambda self: self.open_slots)
    @rule(slot=slots, size=sizes)
    def read(self, slot: int, size: int) -> None:
        self.do("read", self.pick(slot), size)

    @precondition(lambda self: self.open_slots)
    @rule(slot=slots, data=data)
    def write(self, slot: int, data: bytes) -> None:
        self.do("write", self.pick(slot), data)

    @precondition(lambda self: self.open_slots)
    @rule(slot=slots, size=sizes, offset=sizes)
    def pread(self, slot: int, size: int, offset: int) -> None:
        self.do("pread", self.pick(slot), size, offset)

    @precondition(lambda self: self.open_slots)
    @rule(slot=slots, data=data, offset=sizes)
    def pwrite(self, slot: int, data: bytes, offset: int) -> None:
        self.do("pwrite", self.pick(slot), data, offset)

    @precondition(lambda self: self.open_slots)
    @rule(slot=slots, offset=st.one_of(sizes, st.just(-1)), whence=st.sampled_from([0, 1, 2, 9]))
    def seek(self, slot: int, offset: int, whence: int) -> None:
        self.do("seek", self.pick(slot), offset, whence)

    @precondition(lambda self: self.open_slots)
    @rule(slot=slots, size=st.one_of(sizes, st.just(-1)))
    def ftruncate(self, slot: int, size: int) -> None:
        self.do("ftruncate", self.pick(slot), size)

    @precondition(lambda self: self.open_slots)
    @rule(slot=slots, mode=modes)
    def fchmod(self, slot: int, mode: int) -> None:
        self.do("fchmod", self.pick(slot), mode)

    @precondition(lambda self: self.open_slots)
    @rule(slot=slots)
    def close(self, slot: int) -> None:
        self.do("close", self.pick(slot))

    # Paths.

    @rule(path=paths(), mode=modes)
    def mkdir(self, path: str, mode: int) -> None:
        self.do("mkdir", path, mode)

    @rule(path=paths())
    def mkdir_open(self, path: str) -> None:
        self.do("mkdir", path, 0o777)

    @rule(path=paths(), kind=st.sampled_from([S_IFREG, S_IFIFO, S_IFSOCK, S_IFDIR]), mode=modes)
    def mknod(self, path: str, kind: int, mode: int) -> None:
        self.do("mknod", path, kind | mode)

    @rule(path=paths())
    def rmdir(self, path: str) -> None:
        self.do("rmdir", path)

    @rule(path=paths())
    def unlink(self, path: str) -> None:
        self.do("unlink", path)

    @rule(to=st.one_of(paths(), st.just("")), path=paths())
    def symlink(self, to: str, path: str) -> None:
        self.do("symlink", to, path)

    @rule(path=paths())
    def readlink(self, path: str) -> None:
        self.do("readlink", path)

    @rule(old=paths(), new=paths(), follow=st.booleans())
    def link(self, old: str, new: str, follow: bool) -> None:
        self.do("link", old, new, follow)

    @rule(old=paths(), new=paths(), flags=st.sampled_from([0, 0, RENAME_NOREPLACE, RENAME_EXCHANGE, 3, 8]))
    def rename(self, old: str, new: str, flags: int) -> None:
        self.do("rename", old, new, flags)

    @rule(old=names, new=names, flags=st.sampled_from([0, 0, RENAME_EXCHANGE]))
    def rename_short(self, old: str, new: str, flags: int) -> None:
        self.do("rename", old, new, flags)

    @rule(path=paths(), mode=modes)
    def chmod(self, path: str, mode: int) -> None:
        self.do("chmod", path, mode)

    @rule(
        path=paths(), uid=st.sampled_from([-1, 0, 1000, 1001]), gid=st.sampled_from([-1, 0, 1000]), follow=st.booleans()
    )
    def chown(self, path: str, uid: int, gid: int, follow: bool) -> None:
        self.do("chown", path, uid, gid, follow)

    @rule(path=paths(), size=st.one_of(sizes, st.just(-1)))
    def truncate(self, path: str, size: int) -> None:
        self.do("truncate", path, size)

    @rule(path=paths(), follow=st.booleans())
    def mark(self, path: str, follow: bool) -> None:
        self.do("mark", path, follow)

    @rule(path=paths())
    def touch(self, path: str) -> None:
        self.do("touch", path)

    @rule(path=paths())
    def chdir(self, path: str) -> None:
        self.do("chdir", path)

    @rule(path=paths())
    def stat(self, path: str) -> None:
        self.do("stat", path)
        self.do("lstat", path)

    @rule(path=paths())
    def readdir(self, path: str) -> None:
        self.do("readdir", path)

    @rule(path=paths(), mode=st.integers(0, 7))
    def access(self, path: str, mode: int) -> None:
        self.do("access", path, mode)

    @rule(mask=st.sampled_from([0, 0o022, 0o077, 0o777]))
    def umask(self, mask: int) -> None:
        self.do("umask", mask)

    @invariant()
    def same_everywhere(self) -> None:
        if not self.worlds:
            return
        self.do("getcwd")
        for slot in sorted(self.open_slots):
            self.do("fstat", slot)
        for name in "abcd":
            self.do("lstat", name)

    def teardown(self) -> None:
        if self.worlds:
            self.do("become", 0, 0)
            self.compare_trees()
        for slot in sorted(self.open_slots):
            self.do("close", slot)
        super().teardown()

    def compare_trees(self) -> None:
        """Every directory, file and symlink there is, contents included."""
        todo, seen = [""], []
        contents: dict[str, bytes | str | None] = {}
        self.do("umask", 0)
        while todo:
            directory = todo.pop()
            for name, kind in self.do("readdir", directory or "/"):
                path = f"{directory}/{name}"
                self.do("lstat", path)
                contents[path] = None
                if kind == S_IFDIR:
                    todo.append(path)
                elif kind == S_IFLNK:
                    contents[path] = self.do("readlink", path)
                elif kind == S_IFREG:
                    self.do("open", 8, path, O_RDONLY, 0)
                    contents[path] = self.do("read", 8, 8 << 20)
                    self.do("close", 8)
                seen.append(path)
        assert contents == self.model.tree()
        for one, two in pairwise(seen):
            self.do("same", one, two)


class FilesOfAUser(Files):
    """The same without root's powers: every permission bit counts."""

    uid = 1000


Host = TypeVar("Host", bound=HostDirServer)


class FilesOfTheHost(Files):
    """A host directory, as it is and under an overlay. It has no owners, special files and set-id bits."""

    def __init__(self) -> None:
        super().__init__()
        self.places = ExitStack()

    def blank_servers(self) -> Sequence[FileServer]:
        return [self.opened(HostDirServer(self.place(), read_only=False)) for _ in range(2)]

    def place(self) -> Path:
        return Path(self.places.enter_context(tempfile.TemporaryDirectory()))

    def opened(self, server: Host) -> Host:
        """Have it closed in the end."""
        self.places.callback(server.close)
        return server

    def worlds_over(self, servers: Sequence[FileServer], bare: list[Virtual]) -> list[tuple[str, Virtual]]:
        over = OverlayServer(servers[1], memory(), Ticking())
        return [("host directory", bare[0]), ("overlay over it", Virtual(over))]

    def do(self, operation: str, *arguments: Any) -> Any:
        if operation == "chown":
            return None
        if operation == "mknod" and arguments[1] & S_IFMT in (S_IFIFO, S_IFSOCK):
            return None
        if operation in ("open", "mkdir", "mknod", "chmod", "fchmod"):
            arguments = (*arguments[:-1], arguments[-1] & ~0o7000)
        return super().do(operation, *arguments)

    def teardown(self) -> None:
        super().teardown()
        self.places.close()


class FilesOfTheHostFromAfar(FilesOfTheHost):
    """The same through messages, with all answers kept for ever: only what changes from here is asked again."""

    def blank_servers(self) -> Sequence[FileServer]:
        return [cached(self.opened(SettledHostDir(self.place()))) for _ in range(2)]


@pytest.fixture(scope="module")
def oracle() -> Iterator[Real]:
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(dir=place) as directory:
        os.chmod(directory, 0o755)
        real = Real(Path(directory))
        yield real
        real.close()


@pytest.mark.battery(sample=1)
@pytest.mark.parametrize("machine", [Files, FilesOfAUser, FilesOfTheHost, FilesOfTheHostFromAfar])
def test_no_difference_to_linux(machine: type[Files], oracle: Real) -> None:
    machine.real = oracle
    # With --hypothesis-profile=explore it looks further, and makes what it finds smaller, which takes minutes.
    exploring = settings.default is not None and settings.default.max_examples > 100
    phases = tuple(Phase) if exploring else (Phase.generate,)
    run_state_machine_as_test(
        machine,
        settings=settings(stateful_step_count=40, suppress_health_check=list(HealthCheck), phases=phases),
    )
