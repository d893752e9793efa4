"""What a remote server keeps: few questions, no stale answers."""

import os
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from errno import ENOENT
from pathlib import Path

import pytest

from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_RDONLY, O_TRUNC, O_WRONLY
from belljar.abi.limits import MIB
from belljar.kernel.fs import hostdir_host, remote_cache
from belljar.kernel.fs.hostdir_host import HostDirServer
from belljar.kernel.fs.remote import Export, RemoteServer
from belljar.kernel.fs.remote_cache import Cache
from belljar.kernel.fs.remote_message import BATCH, CHUNK, SCAN_MAX, SCANS, SMALL, Message
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.view import View
from tests.contract.servers import view_of


class Rig:
    """A host directory, mounted through messages that are counted."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.time = 0.0
        self.asked: Counter[str] = Counter()
        self.meanwhile: Callable[[], None] | None = None
        """Done once, after a listing or contents were answered and before the answer arrives."""
        self.host = HostDirServer(top, read_only=False)
        self.far = Export(self.host)
        self.cache = Cache(lambda: self.time, 8 * MIB, 1000)
        self.server = RemoteServer(self._call, cache=self.cache)
        self.view: View = view_of(self.server)

    def _call(self, message: Message) -> Message:
        self.asked[str(message["op"])] += 1
        reply = self.far.serve(message)
        if message["op"] in ("scan", "contents") and self.meanwhile is not None:
            meanwhile, self.meanwhile = self.meanwhile, None
            meanwhile()
        return reply

    def read(self, path: str) -> bytes:
        file = self.open(path)
        try:
            parts = []
            while data := file.read(CHUNK):
                parts.append(data)
            return b"".join(parts)
        finally:
            file.release()

    def open(self, path: str, flags: int = O_RDONLY) -> OpenFile:
        return self.view.open(path, flags, 0o644).retain()

    def write(self, path: str, data: bytes, flags: int = O_WRONLY | O_CREAT | O_TRUNC) -> None:
        file = self.open(path, flags)
        file.write(data)
        file.release()

    def walk(self, path: str = "/") -> dict[str, tuple[int, bytes | str | None]]:
        """Every file with its size and contents."""
        found: dict[str, tuple[int, bytes | str | None]] = {}
        for entry in self.view.readdir(path):
            name = f"{path.rstrip('/')}/{entry.name}"
            stat = self.view.stat(name, follow=False)
            if stat.is_dir:
                found[name] = 0, None
                found |= self.walk(name)
            elif stat.is_symlink:
                found[name] = stat.size, self.view.readlink(name)
            else:
                found[name] = stat.size, self.read(name)
        return found

    def questions(self) -> int:
        total = sum(self.asked.values())
        self.asked.clear()
        return total


@pytest.fixture
def top(tmp_path: Path) -> Path:
    top = tmp_path / "top"
    for number in range(60):
        directory = top / f"d{number % 6}" / f"e{number % 3}"
        directory.mkdir(parents=True, exist_ok=True)
        (directory / f"f{number}").write_bytes(b"%d\n" % number * (number + 1))
    (top / "link").symlink_to("d0/e0/f0")
    return top


@pytest.fixture
def rig(top: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Rig]:
    monkeypatch.setattr(time, "time_ns", lambda: 1 << 62)  # all that is there is old
    made = Rig(top)
    yield made
    made.host.close()


def host_tree(top: Path) -> dict[str, tuple[int, bytes | str | None]]:
    found: dict[str, tuple[int, bytes | str | None]] = {}
    for path in top.rglob("*"):
        name = "/" + str(path.relative_to(top))
        if path.is_symlink():
            found[name] = len(os.readlink(path)), os.readlink(path)
        elif path.is_dir():
            found[name] = 0, None
        else:
            found[name] = path.stat().st_size, path.read_bytes()
    return found


def test_many_answers_come_with_one_question(rig: Rig) -> None:
    assert rig.walk() == host_tree(rig.top)
    assert rig.questions() < 30  # of 60 files in 18 directories


def test_within_a_period_nothing_is_asked_twice(rig: Rig) -> None:
    rig.walk()
    rig.questions()
    assert rig.walk() == host_tree(rig.top)
    assert rig.questions() == 0


def test_in_a_new_period_directories_are_asked_for_together_and_nothing_is_read_again(rig: Rig) -> None:
    rig.walk()
    rig.asked.clear()
    rig.cache.renew()
    assert rig.walk() == host_tree(rig.top)
    assert rig.asked["contents"] == rig.asked["read"] == 0
    assert rig.questions() < 12


def test_a_period_ends_by_itself(rig: Rig) -> None:
    rig.read("/d0/e0/f0")
    rig.read("/d0/e0/f0")
    (rig.top / "d0/e0/f0").write_bytes(b"other")
    rig.time += remote_cache.PERIOD
    assert rig.read("/d0/e0/f0") == b"other"


@pytest.mark.parametrize(
    "change",
    [
        lambda top: (top / "d0/e0/f0").write_bytes(b"9\n"),  # as long as before
        lambda top: (top / "d0/e0/f0").write_bytes(b"longer than before"),
        lambda top: (top / "d0/e0/f0").unlink(),
        lambda top: (top / "d0/e0/new").write_bytes(b"new"),
        lambda top: (top / "d0/e0/f0").rename(top / "d0/e0/g"),
        lambda top: (top / "d0/e0/f6").rename(top / "d0/e0/f0"),
        lambda top: (top / "d0").rename(top / "d9"),
        lambda top: ((top / "link").unlink(), (top / "link").symlink_to("d1/e1/f1")),
        lambda top: ((top / "d0/e0/f0").unlink(), (top / "d0/e0/f0").mkdir()),
        lambda top: (top / "new").mkdir(),
        lambda top: (top / "d0/e0/f0").chmod(0o600),
    ],
)
@pytest.mark.parametrize("keep_times", [False, True])
def test_a_change_on_the_host_is_seen_in_the_next_period(
    change: Callable[[Path], object], keep_times: bool, rig: Rig
) -> None:
    rig.walk()
    rig.cache.renew()
    rig.walk()
    path = rig.top / "d0/e0/f0"
    before = path.stat()
    change(rig.top)
    if keep_times and path.is_file():
        os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    rig.cache.renew()
    assert rig.walk() == host_tree(rig.top)
    if path.is_file():
        assert rig.view.stat("/d0/e0/f0").mode == path.stat().st_mode


def test_a_file_that_was_just_changed_is_not_kept(top: Path) -> None:
    rig = Rig(top)  # with the real clock
    path = rig.top / "d0/e0/f0"
    for text in (b"1\n", b"2\n", b"3\n"):
        path.write_bytes(text)
        rig.cache.renew()
        assert rig.read("/d0/e0/f0") == text


@pytest.mark.parametrize("size", [10, SMALL, SMALL + 1, 3 * CHUNK + 5])
def test_own_writes_are_seen_at_once(size: int, rig: Rig) -> None:
    (rig.top / "file").write_bytes(b"a" * size)
    reader = rig.open("/file")
    assert rig.read("/file") == b"a" * size
    assert reader.pread(3, 0) == b"aaa"
    rig.write("/file", b"b", O_WRONLY | O_APPEND)
    assert rig.read("/file") == b"a" * size + b"b"
    assert rig.view.stat("/file").size == reader.stat().size == size + 1
    assert reader.pread(10, size) == b"b"
    rig.view.truncate("/file", 3)
    assert rig.read("/file") == b"aaa"
    assert reader.pread(10, 0) == b"aaa"
    rig.write("/file", b"c")
    assert reader.pread(10, 0) == rig.read("/file") == b"c"


def test_own_changes_of_names_are_seen_at_once(rig: Rig) -> None:
    rig.walk()
    rig.write("/d0/e0/new", b"new")
    rig.view.rename("/d0/e0/f0", "/d1/moved")
    rig.view.unlink("/d0/e0/f6")
    rig.view.mkdir("/d0/e0/dir")
    rig.view.link("/d0/e0/new", "/d2/twin")
    rig.view.symlink("new", "/d0/e0/sym")
    assert rig.walk() == host_tree(rig.top)
    assert rig.view.stat("/d2/twin").nlink == 2


def test_what_is_open_can_be_read_when_it_is_gone(rig: Rig) -> None:
    files = {name: rig.open(name) for name in ("/d0/e0/f0", "/d0/e0/f6", "/d0/e0/f12")}
    expected = {name: (rig.top / name[1:]).read_bytes() for name in files}
    rig.view.unlink("/d0/e0/f0")
    rig.view.rename("/d0/e0/f18", "/d0/e0/f6")
    (rig.top / "d0/e0/f12").unlink()
    rig.cache.renew()
    assert {name: file.read(1000) for name, file in files.items()} == expected
    with pytest.raises(SysError) as caught:
        rig.read("/d0/e0/f12")
    assert caught.value.errno == ENOENT


def test_a_follower_sees_what_is_added(rig: Rig) -> None:
    reader = rig.open("/d0/e0/f0")
    assert reader.read(100) == b"0\n"
    assert reader.read(100) == b""
    with (rig.top / "d0/e0/f0").open("ab") as file:
        file.write(b"more")
    rig.cache.renew()
    assert reader.read(100) == b"more"


def test_an_answer_from_before_a_change_is_not_kept(rig: Rig) -> None:
    """As when another process writes while the first waits for its answer."""

    def make() -> None:
        rig.view.mkdir("/d0/e0/made")

    def write() -> None:
        rig.write("/d0/e0/f0", b"written")

    rig.meanwhile = make
    rig.view.readdir("/d0/e0")
    assert "made" in {entry.name for entry in rig.view.readdir("/d0/e0")}
    rig.meanwhile = write
    rig.read("/d0/e0/f0")
    assert rig.read("/d0/e0/f0") == b"written"
    assert rig.view.stat("/d0/e0/f0").size == len(b"written")


def test_what_is_kept_is_bounded(top: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(time, "time_ns", lambda: 1 << 62)
    rig = Rig(top)
    rig.server.cache = rig.cache = Cache(lambda: 0.0, 5000, 25)
    (top / "large").write_bytes(b"x" * 100_000)
    for _ in range(3):
        assert rig.walk() == host_tree(top)
        assert rig.cache.bytes <= 5000
        assert rig.cache.entries <= 25
        rig.cache.renew()
    rig.view.statfs("/")
    assert len(rig.far._nodes) < 40  # those that are not kept are let go


def test_a_large_directory_is_asked_for_by_name(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostdir_host, "_SCAN_MOST", 5)
    assert rig.walk() == host_tree(rig.top)
    assert rig.read("/d0/e0/f6") == (rig.top / "d0/e0/f6").read_bytes()


def test_one_lookup_in_a_directory_does_not_list_it(rig: Rig) -> None:
    assert rig.read("/d0/e0/f0") == b"0\n"
    assert rig.asked["scan"] == 0


def test_making_many_files_does_not_list_the_directory_each_time(rig: Rig) -> None:
    for number in range(100):
        rig.write(f"/d0/made{number}", b"x")
    assert rig.asked["scan"] <= 2


def test_an_unreadable_file_is_refused_when_it_is_opened(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    real = HostDirServer.open

    def refuse(self: HostDirServer, node: hostdir_host.HostNode, flags: int) -> object:
        if "f6" in {name for _, name in node.places}:
            raise SysError(13)
        return real(self, node, flags)

    monkeypatch.setattr(HostDirServer, "open", refuse)
    rig.view.readdir("/d0/e0")
    assert rig.read("/d0/e0/f0") == b"0\n"
    assert rig.read("/d0/e0/f12") == (rig.top / "d0/e0/f12").read_bytes()
    with pytest.raises(SysError) as caught:
        rig.read("/d0/e0/f6")
    assert caught.value.errno == 13


def test_a_directory_that_folds_case_is_asked_for_other_names(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostdir_host, "_folds_case", lambda _fd, _names: True)
    rig.view.readdir("/d0/e0")
    rig.asked.clear()
    with pytest.raises(SysError):
        rig.view.stat("/d0/e0/F0")
    assert rig.asked["walk"] >= 1


def test_files_without_times_are_not_kept() -> None:
    rig = Rig(Path("/proc/self/net"))
    rig.server = RemoteServer(rig._call, cache=rig.cache)
    rig.view = view_of(rig.server)
    for _ in range(3):
        rig.read("/dev")
    assert rig.cache.bytes == 0


@pytest.mark.parametrize(
    "answer",
    [
        7,
        b"x",
        [7],
        [[1, True]],
        [[1, True, [[b"f"]]]],
        [[1, True, [[b"a/b", 2, True, *[0] * 12]]]],
        [[-1, True, []]],
        {},
    ],
)
def test_a_malformed_listing_is_no_listing(answer: object, rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    real = rig.far.serve
    monkeypatch.setattr(rig.far, "serve", lambda m: {"ok": answer} if m["op"] in ("scan", "contents") else real(m))
    with suppress(SysError):
        assert rig.walk() == host_tree(rig.top)


def test_one_question_has_a_bounded_answer(rig: Rig) -> None:
    """However often and whatever a peer asks for at once."""
    (rig.top / "big").mkdir()
    for number in range(BATCH):
        (rig.top / f"big/{number}").write_bytes(b"x" * SMALL)
    root = rig.far.serve({"op": "root"})["ok"][0]  # type: ignore[index]
    big = rig.far.serve({"op": "walk", "node": root, "name": b"big"})["ok"][0]  # type: ignore[index]
    rows = rig.far.serve({"op": "scan", "nodes": [[big, 0]]})["ok"][0][2]  # type: ignore[index]
    files = rig.far.serve({"op": "contents", "nodes": [row[1] for row in rows]})["ok"]
    assert isinstance(files, list)
    assert sum(len(file[1]) for file in files) <= CHUNK + SMALL
    again = rig.far.serve({"op": "scan", "nodes": [[big, 0]] * SCANS})["ok"]
    assert isinstance(again, list)
    assert sum(len(each[2]) for each in again) <= SCAN_MAX + len(rows)
