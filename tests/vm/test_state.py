"""Snapshots and branches of machines; and what a machine may say when it is asked for its files."""

from __future__ import annotations

import socket
import struct
import subprocess
import sys
import textwrap
import threading
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest

from belljar import BlockStore, Image, Rootfs, Sandbox, SandboxCreationError, SnapshotError, Store
from belljar.image.tree import FileTree
from belljar.store.memory_host import MemoryStore
from belljar.store.objects import content_of
from belljar.store.store import Objects
from belljar.store.tree import Kind
from belljar.vm.files_host import receive_tree, send_tree
from tests.agent.test_programs import read_until
from tests.native.test_root_sandboxes import small_archive
from tests.vm.conftest import MACHINE

FILE, DIRECTORY, SYMLINK, WHITEOUT, MERGED, LOST = 1, 2, 3, 5, 6, 7
HOLE = 0xFFFFFFFF


def frame(kind: int, path: bytes, *, link: int = 0, target: bytes = b"", mode: int = 0o644) -> bytes:
    body = msgspec.msgpack.encode([kind, path, mode, 1, 2, 3, link, target])
    return struct.pack("<I", len(body)) + body


def contents(*pieces: bytes) -> bytes:
    return b"".join(struct.pack("<I", len(piece)) + piece for piece in pieces) + bytes(4)


END = struct.pack("<I", 3) + msgspec.msgpack.encode([0, 0])


def receive(said: bytes, bytes_max: int = 1 << 20) -> tuple[Objects, FileTree, list[bytes]]:
    ours, theirs = socket.socketpair()

    def speak() -> None:
        with theirs, suppress(OSError):  # we may have heard enough
            theirs.sendall(said)

    thread = threading.Thread(target=speak, daemon=True)
    thread.start()
    objects = Objects(MemoryStore())
    try:
        tree, lost = receive_tree(ours, objects, bytes_max)
    finally:
        ours.close()
        thread.join()
    return objects, tree, lost


def test_files_as_a_machine_sends_them() -> None:
    said = (
        frame(DIRECTORY, b"w", mode=0o700)
        + frame(FILE, b"w/a", link=7)
        + contents(b"one", b" two")
        + frame(FILE, b"w/hard", link=7)
        + contents(b"one", b" two")
        + frame(FILE, b"w/sparse")
        + struct.pack("<IQ", HOLE, 1 << 20)
        + contents(b"end")
        + frame(SYMLINK, b"w/l", target=b"a")
        + frame(MERGED, b"etc")
        + frame(WHITEOUT, b"etc/gone")
        + frame(LOST, b"w/socket")
        + END
    )
    objects, tree, lost = receive(said)
    names = tree.root.names[b"w"].names
    assert names[b"a"] is names[b"hard"]
    assert content_of(objects.read(names[b"a"].parts)) == b"one two"
    assert names[b"sparse"].size == (1 << 20) + 3
    assert names[b"l"].target == b"a"
    assert tree.root.names[b"etc"].kind is Kind.MERGED
    assert tree.root.names[b"etc"].names[b"gone"].kind is Kind.WHITEOUT
    assert lost == [b"what is no file, or can't be read: /w/socket"]


LIES = {
    "nothing": b"",
    "half a frame": frame(FILE, b"a")[:7],
    "no end": frame(DIRECTORY, b"a"),
    "a frame without bounds": struct.pack("<I", 1 << 30),
    "no msgpack": struct.pack("<I", 3) + b"\xc1\xc1\xc1",
    "no kind": frame(99, b"a") + END,
    "a link of the owner's side": frame(8, b"a", target=b"/etc/passwd") + END,
    "a file in no directory": frame(FILE, b"a/b") + contents() + END,
    "a file below a file": frame(FILE, b"a") + contents() + frame(FILE, b"a/b") + contents() + END,
    "a file below a link": frame(SYMLINK, b"a", target=b"/etc") + frame(FILE, b"a/b") + contents() + END,
    "one name twice": frame(FILE, b"a") + contents() + frame(FILE, b"a") + contents() + END,
    "no name": frame(DIRECTORY, b"") + END,
    "the root above": frame(DIRECTORY, b"..") + END,
    "a way out": frame(DIRECTORY, b"a") + frame(FILE, b"a/..") + contents() + END,
    "an absolute path": frame(FILE, b"/etc/passwd") + contents() + END,
    "a piece that is too long": frame(FILE, b"a") + contents(bytes(1 << 17)) + END,
    "more than it has": frame(FILE, b"a") + contents(*[b"x" * 65536] * 20) + END,
    "zeros without end": frame(FILE, b"a") + struct.pack("<IQ", HOLE, 1 << 62) + contents() + END,
    "a number that is none": struct.pack("<I", 12) + msgspec.msgpack.encode([1, b"a", 1.5, 0])[:12].ljust(12, b"\0"),
}


@pytest.mark.parametrize("said", LIES.values(), ids=LIES)
def test_what_a_machine_may_say(said: bytes) -> None:
    with pytest.raises(SnapshotError, match="no snapshot was made"):
        receive(said)


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (b"", "gave no answer"),
        (b"\xc1", "gave no answer"),
        (msgspec.msgpack.encode([28, b"w/big"]), "w/big: No space left on device"),
    ],
)
def test_what_a_machine_may_say_of_files_that_it_gets(answer: bytes, said: str) -> None:
    ours, theirs = socket.socketpair()

    def listen() -> None:
        with theirs:
            while theirs.recv(65536):
                pass
            theirs.sendall(answer)

    thread = threading.Thread(target=listen, daemon=True)
    thread.start()
    with pytest.raises(SnapshotError, match=said):
        send_tree(ours, Objects(MemoryStore()), FileTree(), frozenset())
    thread.join()


WORK = """
echo 1 > /etc/new; rm /etc/issue; rm -r /usr/share/doc; mkdir /usr/share/doc; echo 2 > /usr/share/doc/only
echo other:x:1500:1500::/:/bin/sh >> /etc/passwd
rmdir /srv; echo mine > ~/f; truncate -s 10M sparse; cd /workspace; echo w > w; ln w hard
"""
LOOK = """
cat /etc/new ~/f /workspace/w; ls /etc/issue /srv; ls /usr/share/doc; stat -c %h /workspace/hard; id -un other
"""
SEEN = "1\nmine\nw\nonly\n2\nother\n"
RESUME = """
import sys
from belljar import Sandbox, Store
with Sandbox.resume("lane", Store.sqlite(sys.argv[1]), accel="tcg") as sandbox:
    print(sandbox.info.tier)
    print(sandbox.exec(sys.argv[2]).stdout, end="")
"""


@pytest.mark.slow
def test_a_machine_that_another_process_resumes(tmp_path: Path) -> None:
    store = Store.sqlite(tmp_path / "store")
    with Sandbox(**MACHINE, name="lane", store=store, user="root") as sandbox:
        sandbox.exec(WORK).check()
        assert sandbox.exec(LOOK).stdout == SEEN
        sandbox.snapshot("before")  # which leaves nothing out of the next one
        sandbox.pause()
    words = [sys.executable, "-c", textwrap.dedent(RESUME), str(tmp_path / "store"), LOOK]
    found = subprocess.run(words, capture_output=True, text=True, timeout=600, check=True)
    assert found.stdout == "microvm\n" + SEEN


@pytest.mark.battery
@pytest.mark.slow
def test_a_machine_of_an_image_goes_on_here_and_in_another_process(tmp_path: Path) -> None:
    """A snapshot has all files of the image, with their owners; the image itself is not needed any more."""
    store = Store.sqlite(tmp_path / "store")
    settings: dict[str, object] = {"Env": ["GREETING=/srv/greeting", "PATH=/usr/bin"], "WorkingDir": "/srv"}
    image = Image.oci(small_archive(tmp_path, **settings)).build(Store.memory())
    look = "cat mine n; ls $GREETING; stat -c %u mine; pwd"
    with Sandbox(**MACHINE, image=image, store=store, name="lane", user="root") as sandbox:
        sandbox.exec("rm greeting; echo 1 > n").check()
        snapshot = sandbox.snapshot()
        sandbox.exec("echo 2 > n").check()
        sandbox.pause()
    with Sandbox.restore(snapshot, accel="tcg") as sandbox:
        assert sandbox.info.tier == "microvm"
        assert sandbox.exec(look).stdout == "mine1\n1234\n/srv\n"
    words = [sys.executable, "-c", textwrap.dedent(RESUME), str(tmp_path / "store"), look]
    found = subprocess.run(words, capture_output=True, text=True, timeout=600, check=True)
    assert found.stdout == "microvm\nmine2\n1234\n/srv\n"


@pytest.mark.battery
@pytest.mark.slow
def test_a_root_made_from_an_image(tmp_path: Path) -> None:
    """It is read-only, and has no snapshots; as the base of an ephemeral root it is written to, and branched."""
    image = Image.oci(small_archive(tmp_path, Env=["PATH=/usr/bin"])).build(Store.memory())
    rootfs = Rootfs.from_image(image)
    with Sandbox(**MACHINE, rootfs=rootfs, user="root") as sandbox:
        assert "Read-only file system" in sandbox.exec("cat /srv/greeting; echo > /srv/greeting").stderr
        with pytest.raises(SnapshotError, match="leave rootfs= out"):
            sandbox.snapshot(store=Store.memory())
    with Sandbox(**MACHINE, rootfs=Rootfs.ephemeral(rootfs), user="root") as origin:
        origin.exec("echo mine > /srv/greeting").check()
        with origin.fork() as branch:
            branch.exec("echo of the branch >> /srv/greeting").check()
            assert branch.exec("cat /srv/greeting").stdout == "mine\nof the branch\n"
        assert origin.exec("cat /srv/greeting").stdout == "mine\n"


@pytest.mark.slow
def test_a_shell_on_a_terminal_never_sees_its_program_stopped() -> None:
    with Sandbox(**MACHINE, store=Store.memory()) as sandbox:
        terminal = sandbox.pty("bash --norc -i", env={"TERM": "dumb"})
        # Without a trap bash goes on after a ^C by which its `sleep` was not ended.
        terminal.write("bash -c 'trap exit INT; echo be''gun; while :; do sleep 0.01; done'\n")
        shown = read_until(terminal, rb"begun")
        for _ in range(10):
            sandbox.snapshot()
        sandbox.fork().close()
        terminal.write("\x03echo ov''er; exit\n")
        shown += read_until(terminal, rb"over")
        assert b"Stopped" not in shown
        assert terminal.wait() == 0


@pytest.mark.slow
def test_branches_share_nothing() -> None:
    look = "head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/boot_id; cat n"
    with Sandbox(**MACHINE, files={"/workspace/n": "0"}) as origin:
        branches = origin.fork(2)
        assert isinstance(branches, list)
        try:
            for number, branch in enumerate(branches, 1):
                branch.files.write("n", str(number))
            seen = [each.exec(look).stdout.splitlines() for each in (origin, *branches)]
        finally:
            for branch in branches:
                branch.close()
    assert [each[2] for each in seen] == ["0", "1", "2"]
    assert len({each[0] for each in seen}) == 3
    assert len({each[1] for each in seen}) == 3


@pytest.mark.slow
def test_a_root_that_is_a_disk_is_branched_and_its_store_has_one_writer(debian: Rootfs, tmp_path: Path) -> None:
    def store() -> BlockStore:
        return BlockStore.directory(tmp_path)

    with Sandbox(**MACHINE, user="root", rootfs=Rootfs.cow(debian, store())) as origin:
        with pytest.raises(SnapshotError, match="leave rootfs= out"):
            origin.snapshot(store=Store.memory())
        origin.exec("echo common > /var/f; echo common > /var/g").check()
        branches = origin.fork(2)
        assert isinstance(branches, list)
        try:
            for number, branch in enumerate(branches):
                branch.exec(f"echo {number} > /var/f; sync").check()
            origin.exec("echo origin > /var/f").check()
            with pytest.raises(SandboxCreationError, match="in use"):
                Sandbox(**MACHINE, rootfs=Rootfs.cow(debian, store()))
            seen = [each.exec("cat /var/f /var/g").stdout for each in (origin, *branches)]
        finally:
            for branch in branches:
                branch.close()
    assert seen == ["origin\ncommon\n", "0\ncommon\n", "1\ncommon\n"]
    with Sandbox(**MACHINE, rootfs=Rootfs.cow(debian, store())) as again:
        assert again.exec("cat /var/f").stdout == "origin\n"


@pytest.mark.slow
def test_snapshots_go_from_tier_to_tier() -> None:
    store = Store.memory()
    with Sandbox(files={"/workspace/f": "of the virtual one"}) as sandbox:
        first = sandbox.snapshot(store=store)
    with Sandbox.restore(first, tier="microvm", accel="tcg") as machine:
        assert machine.exec("cat f; uname -r | grep -c cloud").stdout == "of the virtual one1\n"
        machine.files.write("f", "of the machine")
        second = machine.snapshot(store=store)
    for tier in ("virtual", "native"):
        with Sandbox.restore(second, tier=tier) as sandbox:
            assert sandbox.exec("cat f").stdout == "of the machine"


@pytest.mark.battery
@pytest.mark.slow
def test_files_of_another_tier_are_laid_out_in_a_root_that_is_a_disk(debian: Rootfs, tmp_path: Path) -> None:
    with Sandbox(files={"/workspace/f": "1", "/srv/d/g": "2", "/home/agent/h": "3"}) as sandbox:
        kept = sandbox.snapshot(store=Store.memory())
    blocks = Rootfs.cow(debian, BlockStore.directory(tmp_path))
    look = "cat f /srv/d/g ~/h; touch new ~/new; echo; ls"
    for rootfs in (Rootfs.ephemeral(debian), blocks):
        with Sandbox.restore(kept, tier="microvm", accel="tcg", rootfs=rootfs) as machine:
            assert machine.exec(look).check().stdout == "123\nf\nnew\n"
            with machine.fork() as branch:  # it goes on with its own
                assert branch.exec("rm f; ls").stdout == "new\n"
    with Sandbox(**MACHINE, rootfs=blocks) as again:
        assert again.exec(look).check().stdout == "123\nf\nnew\n"
    with pytest.raises(SnapshotError, match=r"read-only: leave rootfs= out, or give Rootfs.ephemeral"):
        Sandbox.restore(kept, tier="microvm", accel="tcg", rootfs=debian)
