"""Mounts of every kind."""

from __future__ import annotations

import io
import tarfile
import zipfile
from collections.abc import Iterator
from errno import ENOENT
from pathlib import Path
from stat import S_IFDIR, S_IFREG
from typing import Any

import fsspec
import pytest

from belljar import ConflictError, FileError, Mount, ProtectedFileError, Sandbox, SandboxCreationError
from tests.contract.servers import memory
from tests.tiers.conftest import Make

pytestmark = pytest.mark.feature("mounts")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    tree = tmp_path / "tree"
    (tree / "sub").mkdir(parents=True)
    (tree / "a").write_text("one\n")
    (tree / "sub/b").write_text("two\n")
    return tree


def test_memory(make: Make) -> None:
    sb = make(mounts={"/m": Mount.memory()})
    assert sb.exec("echo x > /m/f && cat /m/f; ls /m").stdout == "x\nf\n"
    assert sb.files.read("/m/f") == "x\n"


def test_memory_with_files(make: Make) -> None:
    sb = make(mounts={"/m": Mount.memory({"a": "1", "d/run": (b"#!/bin/sh\necho ran\n", 0o755)})})
    assert sb.exec("cat /m/a; /m/d/run").stdout == "1ran\n"


def test_a_host_directory_is_read_only(make: Make, tree: Path) -> None:
    sb = make(mounts={"/data": Mount.host(str(tree))})
    assert sb.exec("cat /data/a /data/sub/b").stdout == "one\ntwo\n"
    for command in ("echo x > /data/a", "touch /data/new", "rm /data/a", "mkdir /data/d", "mv /data/a /data/c"):
        result = sb.exec(command)
        assert result.exit_code != 0, command
        assert "Read-only file system" in result.stderr, command
    with pytest.raises(FileError, match="Read-only"):
        sb.files.write("/data/new", "x")
    assert sorted(p.name for p in tree.iterdir()) == ["a", "sub"]


def test_a_host_directory_for_writing(make: Make, tree: Path) -> None:
    sb = make(mounts={"/data": Mount.host(str(tree), read_only=False)})
    sb.exec("echo new > /data/new; echo more >> /data/a; rm /data/sub/b; mkdir /data/d; mv /data/new /data/d/").check()
    assert (tree / "a").read_text() == "one\nmore\n"
    assert (tree / "d/new").read_text() == "new\n"
    assert not (tree / "sub/b").exists()


def test_modes_of_a_host_directory(make: Make, tree: Path) -> None:
    sb = make(mounts={"/data": Mount.host(str(tree), read_only=False)})
    sb.files.write("/data/run", "#!/bin/sh\necho ran\n", mode=0o755)
    assert sb.exec("/data/run; stat -c %a /data/run").stdout == "ran\n755\n"
    assert (tree / "run").stat().st_mode & 0o777 == 0o755


def test_changes_outside_show_to_the_next_command(make: Make, tree: Path) -> None:
    sb = make(mounts={"/data": Mount.host(str(tree))})
    assert sb.exec("cat /data/a").stdout == "one\n"
    (tree / "a").write_text("changed and longer\n")
    (tree / "new").write_text("new\n")
    assert sb.exec("cat /data/a /data/new").stdout == "changed and longer\nnew\n"
    (tree / "new").unlink()
    assert sb.exec("ls /data").stdout == "a\nsub\n"


def test_nothing_leads_out_of_a_host_directory(make: Make, tree: Path) -> None:
    (tree.parent / "secret").write_text("secret")
    (tree / "out").symlink_to(tree.parent / "secret")
    (tree / "up").symlink_to("../secret")
    sb = make(mounts={"/data": Mount.host(str(tree), read_only=False)})
    assert sb.exec(f"cat /data/out /data/up /data/../secret /data/sub/../../secret {tree.parent}/secret").stdout == ""
    assert sb.exec("ln -s ../../secret /data/sub/l; cat /data/sub/l").stdout == ""
    assert sb.exec("readlink /data/up").stdout == "../secret\n"


def test_files_that_run_later_are_kept(make: Make, tree: Path) -> None:
    sb = make(mounts={"/data": Mount.host(str(tree), read_only=False)})
    assert "Permission denied" in sb.exec("echo x > /data/.envrc").stderr
    assert "Permission denied" in sb.exec("mkdir -p /data/.git/hooks; echo > /data/.git/hooks/pre-commit").stderr
    assert not (tree / ".envrc").exists()
    trusting = make(mounts={"/data": Mount.host(str(tree), read_only=False, trust=["environment"])})
    assert trusting.exec("echo x > /data/.envrc").ok


def test_a_host_directory_that_is_not_there(make: Make, tmp_path: Path) -> None:
    with pytest.raises(SandboxCreationError, match="no-such"):
        make(mounts={"/data": Mount.host(str(tmp_path / "no-such"))})


def test_a_quota(make: Make, tree: Path) -> None:
    sb = make(mounts={"/data": Mount.host(str(tree), read_only=False, max_bytes=100_000)})
    result = sb.exec("head -c 200000 /dev/zero > /data/big")
    assert result.exit_code != 0
    assert "quota" in result.stderr.lower()
    assert sb.exec("echo small > /data/small").ok


def test_an_overlay(make: Make, tree: Path) -> None:
    sb = make(mounts={"/work": Mount.overlay(Mount.host(str(tree)))})
    sb.exec(
        "echo more >> /work/a; rm /work/sub/b; echo new > /work/new; mkdir /work/d; mv /work/sub /work/moved"
    ).check()
    assert sb.exec("cat /work/a; ls /work").stdout == "one\nmore\na\nd\nmoved\nnew\n"
    assert (tree / "a").read_text() == "one\n"
    assert (tree / "sub/b").read_text() == "two\n"
    assert not (tree / "new").exists()


def test_changes_of_an_overlay(make: Make, tree: Path) -> None:
    sb = make(mounts={"/work": Mount.overlay(Mount.host(str(tree)))})
    sb.exec("echo more >> /work/a; rm /work/sub/b; echo new > /work/new").check()
    changes = sb.changes("/work")
    assert sorted((change.kind, change.path) for change in changes) == [
        ("added", "new"),
        ("deleted", "sub/b"),
        ("modified", "a"),
    ]
    assert "+more" in changes.diff()
    assert changes.apply(str(tree), ["a"]) == ["a"]
    assert (tree / "a").read_text() == "one\nmore\n"
    assert (tree / "sub/b").exists()


def test_changes_that_conflict(make: Make, tree: Path) -> None:
    sb = make(mounts={"/work": Mount.overlay(Mount.host(str(tree)))})
    sb.exec("echo inside >> /work/a; echo x > /work/.envrc").check()
    changes = sb.changes("/work")
    (tree / "a").write_text("outside\n")
    with pytest.raises(ConflictError, match="a"):
        changes.apply(str(tree), ["a"])
    with pytest.raises(ProtectedFileError, match="envrc"):
        changes.apply(str(tree), [".envrc"])
    assert (tree / "a").read_text() == "outside\n"


def test_an_overlay_over_memory(make: Make) -> None:
    sb = make(mounts={"/work": Mount.overlay(Mount.memory(), Mount.memory({"f": "1"}))})
    assert sb.exec("cat /work/f; echo 2 > /work/f; cat /work/f").stdout == "12\n"


def _tar(path: Path) -> None:
    with tarfile.open(path, "w:gz") as archive:
        for name, data, mode in (("top/a", b"one\n", 0o644), ("top/run", b"#!/bin/sh\necho ran\n", 0o755)):
            info = tarfile.TarInfo(name)
            info.size, info.mode = len(data), mode
            archive.addfile(info, io.BytesIO(data))


def _zip(path: Path) -> None:
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("top/a", "one\n")
        script = zipfile.ZipInfo("top/run")
        script.external_attr = 0o100755 << 16
        archive.writestr(script, "#!/bin/sh\necho ran\n")


@pytest.mark.parametrize("pack", [_tar, _zip], ids=["tar.gz", "zip"])
def test_archives(make: Make, tmp_path: Path, pack: Any) -> None:
    pack(tmp_path / "archive")
    sb = make(mounts={"/ar": Mount.archive(str(tmp_path / "archive"))})
    assert sb.exec("cat /ar/top/a; /ar/top/run; ls /ar /ar/top").stdout == "one\nran\n/ar:\ntop\n\n/ar/top:\na\nrun\n"
    assert "Read-only" in sb.exec("echo > /ar/top/a").stderr


@pytest.fixture
def bucket() -> Iterator[str]:
    """A tree in fsspec's own memory."""
    files = fsspec.filesystem("memory")
    files.pipe({"/tiers/a": b"one\n", "/tiers/sub/b": b"two\n"})
    yield "memory://tiers"
    files.rm("/tiers", recursive=True)


def test_fsspec(make: Make, bucket: str) -> None:
    sb = make(mounts={"/fs": Mount.fsspec(bucket)})
    assert sb.exec("cat /fs/a /fs/sub/b; ls /fs").stdout == "one\ntwo\na\nsub\n"
    assert "Read-only" in sb.exec("echo > /fs/a").stderr


def test_fsspec_for_writing(make: Make, bucket: str) -> None:
    sb = make(mounts={"/fs": Mount.fsspec(bucket, read_only=False)})
    sb.exec("echo new > /fs/new; rm /fs/a").check()
    assert sb.exec("cat /fs/new; ls /fs").stdout == "new\nnew\nsub\n"
    assert fsspec.filesystem("memory").cat("/tiers/new") == b"new\n"


class Node:
    uid = gid = 1000

    def __init__(self, mode: int, text: str = "") -> None:
        self.mode, self.data = mode, text.encode()


class Opened:
    def __init__(self, node: Node) -> None:
        self.node = node

    def read(self, offset: int, size: int) -> bytes:
        return self.node.data[offset : offset + size]

    def size(self) -> int:
        return len(self.node.data)


class Tickets:
    """The smallest file server: what it does not have is refused as on a read-only disk."""

    def __init__(self, tickets: dict[str, str]) -> None:
        self.root = Node(S_IFDIR | 0o755)
        self.nodes = {name: Node(S_IFREG | 0o644, text) for name, text in tickets.items()}

    def walk(self, directory: Node, name: str) -> Node:
        if name not in self.nodes:
            raise OSError(ENOENT, name)
        return self.nodes[name]

    def locate(self, directory: Node) -> None:
        return None

    def readdir(self, directory: Node) -> list[tuple[str, int, int]]:
        return [(name, id(node), node.mode) for name, node in self.nodes.items()]

    def stat(self, node: Node) -> tuple[int, ...]:
        return (node.mode, id(node), 0, 1, node.uid, node.gid, len(node.data), 0, 0, 0)

    def open(self, node: Node, flags: int) -> Opened:
        if node.data == b"broken":
            raise ZeroDivisionError
        return Opened(node)


def test_a_server_of_yours(make: Make) -> None:
    tickets: Any = Tickets({"17": "it is slow\n", "18": "it is wrong\n"})
    sb = make(mounts={"/tickets": Mount.server(tickets)})
    assert sb.exec("cd /tickets; ls; grep -l wrong *").stdout == "17\n18\n18\n"
    assert "Read-only file system" in sb.exec("rm /tickets/17").stderr
    assert "No such file" in sb.exec("cat /tickets/19").stderr


def test_a_server_that_fails(make: Make, caplog: pytest.LogCaptureFixture) -> None:
    tickets: Any = Tickets({"1": "broken", "2": "fine\n"})
    sb = make(mounts={"/tickets": Mount.server(tickets)})
    result = sb.exec("cat /tickets/1 /tickets/2")
    assert (result.stdout, "Input/output error" in result.stderr) == ("fine\n", True)
    assert "ZeroDivisionError" in caplog.text


def test_a_server_for_writing(make: Make) -> None:
    sb = make(user="root", mounts={"/s": Mount.server(memory())})
    sb.exec("mkdir /s/d; echo x > /s/d/f; ln -s d/f /s/l; chmod 700 /s/d").check()
    assert sb.exec("cat /s/l; ls /s; stat -c %a /s/d").stdout == "x\nd\nl\n700\n"
    assert sb.files.read("/s/d/f") == "x\n"


def test_two_sandboxes_share_a_server(make: Make) -> None:
    server = memory()
    first, second = (make(user="root", mounts={"/s": Mount.server(server)}) for _ in range(2))
    first.exec("echo shared > /s/f").check()
    assert second.exec("cat /s/f").stdout == "shared\n"


def test_mounting_while_it_runs(sb: Sandbox, tree: Path) -> None:
    sb.mount("/later/data", Mount.host(str(tree)))
    assert sb.exec("cat /later/data/a").stdout == "one\n"
    sb.unmount("/later/data")
    assert sb.exec("ls /later/data").stdout == ""


def test_a_mount_hides_what_is_below_it(sb: Sandbox, tree: Path) -> None:
    sb.files.write("/workspace/d/own", "x")
    sb.mount("/workspace/d", Mount.host(str(tree)))
    assert sb.exec("ls d").stdout == "a\nsub\n"
    sb.unmount("/workspace/d")
    assert sb.exec("ls d").stdout == "own\n"


def test_mounts_within_mounts(make: Make, tree: Path) -> None:
    sb = make(mounts={"/m": Mount.memory(), "/m/data": Mount.host(str(tree))})
    assert sb.exec("echo x > /m/f; ls /m; cat /m/data/a").stdout == "data\nf\none\n"


def test_unmounting_what_is_not_mounted(sb: Sandbox) -> None:
    with pytest.raises(FileError) as raised:
        sb.unmount("/workspace")
    assert raised.value.errno == 22


WRONG: dict[str, tuple[str, Any, type[Exception], str]] = {
    "a path instead of a mount": ("/m", "/tmp", TypeError, r"Mount\.host\('/tmp'\)"),
    "the root": ("/", Mount.memory(), ValueError, "absolute path other than /"),
    "a relative path": ("m", Mount.memory(), ValueError, "absolute path"),
}


@pytest.mark.parametrize(("path", "mount", "error", "text"), WRONG.values(), ids=WRONG)
def test_what_can_not_be_mounted(sb: Sandbox, path: str, mount: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        sb.mount(path, mount)


def test_programs_of_all_mounts_together(make: Make, tree: Path) -> None:
    sb = make(mounts={"/data": Mount.host(str(tree)), "/m": Mount.memory(), "/o": Mount.overlay(Mount.host(str(tree)))})
    sb.exec("cp -r /data/. /m/; cp -r /m/. /o/copy; tar cf - -C /o . | tar xf - -C /m").check()
    assert sb.exec("cat /m/copy/sub/b; diff -r /data /o/copy && echo same").stdout == "two\nsame\n"


def test_a_file_of_a_mount_may_be_large(make: Make, tree: Path) -> None:
    data = bytes(range(256)) * 20_000
    (tree / "large").write_bytes(data)
    sb = make(mounts={"/data": Mount.host(str(tree), read_only=False)})
    assert sb.files.read_bytes("/data/large") == data
    sb.exec("cat /data/large /data/large > /data/twice").check()
    assert (tree / "twice").read_bytes() == data * 2
