"""Trees by 9P on Unix sockets, read by diod's own clients: of live sandboxes, snapshots and images."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from belljar import AsyncSandbox, FileError, Image, Sandbox, SandboxError, Store
from belljar.kernel.fs import ninep_wire as wire
from belljar.ninep.serve_host import Exported
from tests.contract.servers import Dir, File, Tree, make_memory
from tests.ninep.diod import client

pytestmark = pytest.mark.slow


def test_a_live_sandbox(tmp_path: Path) -> None:
    path = str(tmp_path / "s")
    with Sandbox(files={"/workspace/a.txt": "one\n", "/workspace/big": "x" * 300_000}) as sandbox:
        with sandbox.export(path, "/workspace") as exported:
            assert exported.path == path
            assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
            listed = client("diodls", path, "-l").stdout.decode()
            assert [line.split()[-1] for line in listed.splitlines()] == ["a.txt", "big"]
            assert client("diodcat", path, "big").stdout == b"x" * 300_000
            sandbox.exec("echo two >>a.txt")
            assert client("diodcat", path, "a.txt").stdout == b"one\ntwo\n"
            missing = client("diodcat", path, "nope")
            assert (missing.returncode, missing.stderr) == (1, b"diodcat: open nope: No such file or directory\n")
        assert not os.path.exists(path)
        with pytest.raises(FileError):
            sandbox.export(path, "/nothing")
        (tmp_path / "taken").write_text("mine")
        with pytest.raises(SandboxError, match="no socket can be made there"):
            sandbox.export(str(tmp_path / "taken"))
        kept = sandbox.export(path)
        with pytest.raises(SandboxError, match="Address already in use"):
            sandbox.export(path)
    assert not os.path.exists(path), "the sandbox is closed"
    kept.close()


def test_from_asyncio(tmp_path: Path) -> None:
    path = str(tmp_path / "s")

    async def main() -> None:
        async with AsyncSandbox(files={"/workspace/a.txt": "one\n"}) as sandbox:
            await sandbox.export(path, "/workspace")
            assert (await asyncio.to_thread(client, "diodcat", path, "a.txt")).stdout == b"one\n"

    asyncio.run(main())


def test_the_command(tmp_path: Path) -> None:
    store = tmp_path / "store.db"
    Image().files({"/srv/f": "of the image\n"}).build(Store.sqlite(str(store)), name="app")
    path = str(tmp_path / "s")
    command = [sys.executable, "-m", "belljar.cli", "export", "app", path, "--store", str(store)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        assert "app is served by 9P at" in process.stderr.readline()
        assert client("diodcat", path, "srv/f").stdout == b"of the image\n"
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0
    assert not os.path.exists(path)


def test_clients_that_talk_nonsense_are_hung_up_on(tmp_path: Path) -> None:
    tree: Tree = {"d": Dir(), "d/f": File(b"x")}
    with Exported(make_memory(tree, tmp_path), str(tmp_path / "s"), read_only=True, report=print) as exported:
        for data in (
            b"\xff" * 100,
            b"\0\0\0\0",
            wire.encode("Rversion", 0, 8192, wire.VERSION),
            wire.encode("Tclunk", 1, 1),
        ):
            with socket.socket(socket.AF_UNIX) as ours:
                ours.settimeout(30)
                ours.connect(exported.path)
                ours.sendall(data)
                assert ours.recv(100) == b""
        deadline = time.monotonic() + 30
        while client("diodcat", exported.path, "d/f").stdout != b"x":
            assert time.monotonic() < deadline
