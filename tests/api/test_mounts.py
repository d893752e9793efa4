"""Mounts of the owner's, as a command sees them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from errno import ENOENT
from pathlib import Path
from stat import S_IFDIR, S_IFREG
from threading import Event
from typing import Any, cast

import pytest

from belljar import AsyncSandbox, FileError, Mount, Sandbox, SandboxClosed
from belljar.abi.records import Stat
from belljar.kernel.fs import hostdir_host
from belljar.kernel.vfs.server import FileServer

KINDS: dict[str, Callable[[str], Mount]] = {
    "ro": Mount.host,
    "rw": lambda path: Mount.host(path, read_only=False),
    "overlay": lambda path: Mount.overlay(Mount.host(path)),
}


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    (tmp_path / "a/b").mkdir(parents=True)
    (tmp_path / "a/b/file").write_text("one\n")
    return tmp_path


@pytest.mark.parametrize("kind", KINDS)
def test_a_command_starts_in_a_directory_of_the_host(kind: str, shared: Path) -> None:
    with Sandbox(mounts={"/m": KINDS[kind](str(shared))}, cwd="/m/a") as sandbox:
        assert sandbox.exec("pwd; cat b/file").stdout == "/m/a\none\n"
        assert sandbox.exec("pwd; cat file; cd ..; pwd", cwd="/m/a/b").stdout == "/m/a/b\none\n/m/a\n"
        assert sandbox.exec(["cat"], cwd="/m/a/b", stdin="given").stdout == "given"
        process = sandbox.spawn(["cat"], cwd="/m/a/b")
        process.stdin.write(b"piped")
        process.stdin.close()
        assert process.stdout.read() == b"piped"
        with pytest.raises(FileError, match="No such file"):
            sandbox.exec("true", cwd="/m/a/none")


@pytest.mark.parametrize("kind", KINDS)
def test_the_next_command_sees_what_changed_on_the_host(kind: str, shared: Path) -> None:
    with Sandbox(mounts={"/m": KINDS[kind](str(shared))}) as sandbox:
        file = shared / "a/b/file"
        for text in ("two\n", "six\n", "longer\n"):
            for _ in range(3):
                sandbox.exec("cat /m/a/b/file; ls -lR /m; cat /m/a/b/*")
            file.write_text(text)
            assert sandbox.exec("cat /m/a/b/file").stdout == text
            assert sandbox.files.read("/m/a/b/file") == text
        (shared / "a/c").mkdir()
        (shared / "a/c/new").write_text("new\n")
        file.unlink()
        assert sandbox.exec("ls /m/a /m/a/b /m/a/c").stdout.split() == ["/m/a:", "b", "c", "/m/a/b:", "/m/a/c:", "new"]


def test_a_running_command_sees_what_its_tool_changed_on_the_host(shared: Path) -> None:
    def edit() -> str:
        (shared / "a/b/file").write_text("edited\n")
        return ""

    with Sandbox(mounts={"/m": Mount.host(str(shared))}, tools={"edit": edit}) as sandbox:
        result = sandbox.exec("cd /m/a/b; cat file; cat file; ls >/dev/null; edit >/dev/null; cat file")
        assert result.stdout == "one\none\nedited\n"


def test_a_running_command_sees_changes_soon(shared: Path) -> None:
    with Sandbox(mounts={"/m": Mount.host(str(shared))}) as sandbox:
        process = sandbox.spawn("until grep -q done /m/a/b/file; do sleep 0.01; done; cat /m/a/b/file")
        (shared / "a/b/file").write_text("done\n")
        assert process.stdout.read() == b"done\n"


@pytest.mark.parametrize("kind", ["rw", "overlay"])
def test_a_command_sees_its_own_changes_at_once(kind: str, shared: Path) -> None:
    script = """
        cd /m/a/b; cat file file; ls
        echo more >> file; cat file; wc -c < file
        mv file moved; ls; cat moved; exec 3<moved; rm moved; cat <&3; ls
        mkdir sub; echo x > sub/y; cat sub/*; echo z > sub/y; cat sub/y; stat -c %s sub/y
    """
    with Sandbox(mounts={"/m": KINDS[kind](str(shared))}) as sandbox:
        result = sandbox.exec(script)
        assert result.stderr == ""
        assert result.stdout.split() == ("one one file one more 9 moved one more one more x z 2".split())
        assert sandbox.exec("cat /m/a/b/sub/y").stdout == "z\n"
    assert (shared / "a/b/file").exists() == (kind == "overlay")


def test_a_branch_sees_the_others_changes_with_its_next_command(shared: Path) -> None:
    with Sandbox(mounts={"/m": KINDS["rw"](str(shared))}) as sandbox:
        sandbox.exec("ls -R /m; cat /m/a/b/file /m/a/b/file")
        with sandbox.fork() as branch:
            branch.exec("echo branch > /m/a/b/file; echo new > /m/a/new")
            assert sandbox.exec("cat /m/a/b/file /m/a/new").stdout == "branch\nnew\n"
            sandbox.exec("echo origin > /m/a/b/file")
            assert branch.exec("cat /m/a/b/file").stdout == "origin\n"


# Servers of the owner's that are slow, hostile, or say what fits no number.


class Node:
    uid = gid = 1000

    def __init__(self, mode: int) -> None:
        self.mode = mode


class Odd:
    """A server with one file, whose answers are given."""

    def __init__(self, **figures: int) -> None:
        self.root = Node(S_IFDIR | 0o755)
        self.file = Node(S_IFREG | 0o644)
        self.figures = figures
        self.asked = Event()
        self.release = Event()
        self.release.set()

    def walk(self, _directory: Node, name: str) -> Node:
        if name != "f":
            raise OSError(ENOENT, name)
        self.asked.set()
        assert self.release.wait(60)
        return self.file

    def locate(self, _directory: Node) -> None:
        return None

    def readdir(self, _directory: Node) -> list[tuple[str, int, int]]:
        return [("f", self.figures.get("ino", 1), self.file.mode)]

    def stat(self, node: Node) -> Stat:
        return Stat(node.mode, 1, 0, 1, 1000, 1000, 0, 0, 0, 0)._replace(**self.figures)

    def open(self, _node: Node, _flags: int) -> Odd:
        return self

    def read(self, _offset: int, _size: int) -> object:
        return self.figures.get("read", b"")

    def size(self) -> int:
        return 0


def mounted(server: Odd) -> dict[str, Mount]:
    return {"/m": Mount.server(cast("FileServer", server))}


@pytest.mark.parametrize("name", ["ino", "nlink", "size", "atime", "mtime", "ctime", "blocks"])
@pytest.mark.parametrize("value", [1 << 63, 1 << 64, 1 << 90, -(1 << 63), -(1 << 70)])
def test_numbers_of_exotic_file_systems_are_clamped(name: str, value: int, shared_sandbox: Sandbox) -> None:
    shared_sandbox.mount("/m", mounted(Odd(**{name: value}))["/m"])
    try:
        result = shared_sandbox.exec("ls -li /m/f && stat /m/f && find /m -ls && ls -l --time-style=full-iso /m")
        assert (result.exit_code, result.stderr) == (0, "")
        result = shared_sandbox.exec(["python3", "-c", "import os; print(os.stat('/m/f'), os.listdir('/m'))"])
        assert result.exit_code == 0
    finally:
        shared_sandbox.unmount("/m")


@pytest.fixture(scope="module")
def shared_sandbox() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


def test_an_answer_that_is_none_is_an_error_of_that_file(shared_sandbox: Sandbox) -> None:
    shared_sandbox.mount("/m", mounted(Odd(read=1 << 200))["/m"])
    assert "Input/output error" in shared_sandbox.exec("cat /m/f").stderr
    shared_sandbox.unmount("/m")
    assert shared_sandbox.exec("echo on").stdout == "on\n"


@pytest.mark.parametrize("where", ["/tmp", "/m"])
@pytest.mark.parametrize("seconds", [2**31, 2**33, 2**40, 2**63, 10**30, -(2**40), -(10**30)])
def test_times_that_a_guest_sets_are_clamped(seconds: int, where: str, tmp_path: Path) -> None:
    program = f"""if 1:
        import os
        open('{where}/f', 'w')
        for when in ({seconds}, {seconds} * 10**9):
            try:
                os.utime('{where}/f', ns=(when, when))
            except OverflowError:
                assert abs(when) >= 2**63 * 10**9
            os.stat('{where}/f')
    """
    with Sandbox(mounts={"/m": KINDS["rw"](str(tmp_path))}) as sandbox:
        result = sandbox.exec(["python3", "-c", program])
        assert (result.exit_code, result.stderr) == (0, "")
        result = sandbox.exec(
            f"touch -d @{seconds} {where}/g; touch {where}/g; ls -l {where} && stat {where}/f && find {where} -ls"
        )
        assert result.exit_code == 0


async def a_slow_server_holds_up_no_other_sandbox() -> None:
    slow = Odd()
    slow.release.clear()
    async with AsyncSandbox(mounts=mounted(slow)) as held, AsyncSandbox() as other:
        task = asyncio.create_task(held.exec("cat /m/f; echo after"))
        await asyncio.to_thread(slow.asked.wait, 60)
        for number in range(3):
            assert (await other.exec(f"echo {number}")).stdout == f"{number}\n"
        assert not task.done()
        slow.release.set()
        assert (await task).stdout == "after\n"


def test_a_slow_server_holds_up_no_other_sandbox() -> None:
    asyncio.run(a_slow_server_holds_up_no_other_sandbox())


async def a_sandbox_whose_server_is_at_work_can_be_closed() -> None:
    slow = Odd()
    slow.release.clear()
    async with AsyncSandbox() as other:
        held = AsyncSandbox(mounts=mounted(slow))
        await held.start()
        task = asyncio.create_task(held.exec("cat /m/f"))
        await asyncio.to_thread(slow.asked.wait, 60)
        await held.close()
        with pytest.raises(SandboxClosed):
            await task
        assert (await other.exec("echo on")).stdout == "on\n"
        slow.release.set()


def test_a_sandbox_whose_server_is_at_work_can_be_closed() -> None:
    asyncio.run(a_sandbox_whose_server_is_at_work_can_be_closed())


async def files_of_a_mount_are_written_when_the_command_has_ended(tmp_path: Path) -> None:
    async with AsyncSandbox(mounts={"/m": KINDS["rw"](str(tmp_path))}) as sandbox:
        for number in range(10):
            await sandbox.exec(f"seq {number} 1000 > /m/f; cp /m/f /m/g")
            assert (tmp_path / "g").read_text().split()[0] == str(number)


def test_files_of_a_mount_are_written_when_the_command_has_ended(tmp_path: Path) -> None:
    asyncio.run(files_of_a_mount_are_written_when_the_command_has_ended(tmp_path))


def test_a_deep_tree_has_an_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(hostdir_host, "_DEPTH_MOST", 20)
    with Sandbox(mounts={"/m": KINDS["rw"](str(tmp_path))}) as sandbox:
        result = sandbox.exec("cd /m; for i in $(seq 40); do mkdir d && cd d || break; done; echo $i")
        assert "File name too long" in result.stderr
        assert int(result.stdout) == 22
        assert sandbox.exec("find /m | wc -l; rm -rf /m/d; ls /m").stdout == "22\n"


# Quotas.


def test_a_mount_grows_by_so_many_bytes(tmp_path: Path) -> None:
    (tmp_path / "old").write_bytes(b"x" * 1000)
    mount = Mount.host(str(tmp_path), read_only=False, max_bytes=5000)
    with Sandbox(mounts={"/m": mount}, cwd="/m") as sandbox:
        result = sandbox.exec("head -c 3000 /dev/zero > a; head -c 3000 /dev/zero > b")
        assert "Disk quota exceeded" in result.stderr
        assert (tmp_path / "a").stat().st_size == 3000
        assert (tmp_path / "b").stat().st_size <= 2000
        assert sandbox.exec("rm b; truncate -s 4999 a; truncate -s 5001 a").stderr.count("Disk quota exceeded") == 1
        assert sandbox.exec("> a; truncate -s 5000 a; cat old").exit_code == 0
        assert "Disk quota exceeded" in sandbox.exec("echo more >> a").stderr
        assert sandbox.exec("rm old; head -c 900 /dev/zero >> a; mv a c; rm c; head -c 5999 /dev/zero > d").stderr == ""
        assert "Disk quota exceeded" in sandbox.exec("cp d e").stderr
        with sandbox.fork() as branch:
            assert "Disk quota exceeded" in branch.exec("cp d f").stderr
    assert sum(file.stat().st_size for file in tmp_path.rglob("*") if file.is_file()) <= 6000


def test_a_file_that_is_open_counts_until_it_is_closed(tmp_path: Path) -> None:
    mount = Mount.host(str(tmp_path), read_only=False, max_bytes=1000)
    with Sandbox(mounts={"/m": mount}, cwd="/m") as sandbox:
        script = "exec 3>f; head -c 900 /dev/zero >&3; rm f; head -c 900 /dev/zero > g; rm g; exec 3>&-"
        assert "Disk quota exceeded" in sandbox.exec(script).stderr
        assert sandbox.exec("head -c 1000 /dev/zero > h").stderr == ""


def test_a_mount_grows_by_so_many_names(tmp_path: Path) -> None:
    mount = Mount.host(str(tmp_path), read_only=False, max_files=3)
    with Sandbox(mounts={"/m": mount}, cwd="/m") as sandbox:
        assert sandbox.exec("touch a; mkdir b; ln -s a c").stderr == ""
        for command in ("touch d", "mkdir d", "ln -s a d", "ln a d"):
            assert "Disk quota exceeded" in sandbox.exec(command).stderr
        assert sandbox.exec("mv a d; rm c; touch e; mv e d; rmdir b; touch f g").stderr == ""
        assert "Disk quota exceeded" in sandbox.exec("touch h").stderr
        assert sandbox.exec("df -i /m | awk 'END { print $4 }'").stdout == "0\n"
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("limits", [{"max_bytes": -1}, {"max_files": 1.5}, {"max_bytes": "1G"}, {"max_files": True}])
def test_a_quota_is_a_number(limits: dict[str, Any]) -> None:
    with pytest.raises((TypeError, ValueError), match="max_"):
        Mount.host(".", read_only=False, **limits)
    with pytest.raises(ValueError, match="read-only"):
        Mount.host(".", max_bytes=1)
