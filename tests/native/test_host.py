"""Nothing of the machine around a native sandbox is to be seen from inside: processes, files, names, sockets."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import Sandbox
from tests.native.boxes import outward_address
from tests.native.conftest import needs_native
from tests.native.test_isolation import SOURCE

pytestmark = needs_native


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(tier="native") as sandbox:
        yield sandbox


def test_what_the_owner_has_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLJAR_CANARY", "secret-of-the-owner")
    reader, writer = os.pipe()
    os.set_inheritable(writer, True)
    try:
        with Sandbox(tier="native") as sandbox:
            inside = sandbox.exec("env; cat /proc/*/environ /proc/*/cmdline 2>/dev/null").stdout
            descriptors = sandbox.exec("ls /proc/self/fd").stdout.split()
    finally:
        os.close(reader)
        os.close(writer)
    assert "CANARY" not in inside
    assert str(Path.home()) + "/." not in inside
    assert set(descriptors) <= {"0", "1", "2", "3"}  # the last is the directory that ls reads


def test_only_its_own_processes(sandbox: Sandbox) -> None:
    assert sandbox.exec("cat /proc/1/comm").stdout.startswith("belljar-agent")
    pids = sandbox.exec("ls /proc | grep -c '^[0-9]'").stdout
    assert int(pids) < 8
    assert sandbox.exec(f"kill -0 {os.getpid()}").exit_code == 1


def test_files_of_the_machine(sandbox: Sandbox, tmp_path: Path) -> None:
    canary = tmp_path / "canary"
    canary.write_text("secret")
    for path in (canary, "/etc/shadow", "/etc/machine-id", "/root/.bashrc", "/home", "/var/lib", "/var/log", "/run"):
        listed = sandbox.exec(f"ls -A {path}")
        assert listed.exit_code or set(listed.stdout.split()) <= {"agent"}, path
    assert sandbox.exec(f"cat /proc/self/root{canary} /../../..{canary}").exit_code == 1
    assert "secret" not in sandbox.exec("cat /proc/*/mountinfo /proc/mounts").stdout


def test_sockets_of_the_machine(sandbox: Sandbox, tmp_path: Path) -> None:
    name = f"belljar-canary-{os.getpid()}"
    sandbox.files.write("attacks.c", SOURCE.read_text())
    sandbox.exec("gcc -O1 -o attacks attacks.c", check=True)
    with socket.socket(socket.AF_UNIX) as abstract, socket.create_server(("127.0.0.1", 0)) as tcp:
        abstract.bind(f"\0{name}")
        abstract.listen()
        tcp.settimeout(0.2)
        assert sandbox.exec(["./attacks", f"abstract:{name}"]).stdout == "ECONNREFUSED\n"
        port = tcp.getsockname()[1]
        for address in ("127.0.0.1", "0.0.0.0", "10.0.2.2", outward_address()):
            reached = sandbox.exec(f"exec 3<>/dev/tcp/{address}/{port}", timeout=10)
            assert reached.exit_code == 1, address
        with pytest.raises(TimeoutError):
            tcp.accept()
    assert sandbox.exec("cat /proc/net/unix").stdout.count(name) == 0


def test_names_are_its_own(sandbox: Sandbox) -> None:
    assert sandbox.exec("hostname; cat /etc/hostname; uname -n").stdout == "belljar\n" * 3
    assert sandbox.exec("id -un; whoami; echo $HOME $USER; pwd").stdout.split() == [
        "agent", "agent", "/home/agent", "agent", "/workspace",
    ]  # fmt: skip
    assert sandbox.exec("getent hosts localhost").exit_code == 0
    assert sandbox.exec("touch ~/x /tmp/y /workspace/z && ls ~ /tmp /workspace").exit_code == 0


def test_neighbours_share_nothing(sandbox: Sandbox) -> None:
    with Sandbox(tier="native", hostname="other") as other:
        sandbox.exec("echo mine > /tmp/file; echo mine > /dev/shm/file; ipcmk -M 4096", check=True)
        assert other.exec("cat /tmp/file /dev/shm/file").exit_code == 1
        assert "0x" not in other.exec("ipcs -m").stdout
        assert other.exec("hostname").stdout == "other\n"
        listen = "import socket; s = socket.socket(socket.AF_UNIX); s.bind('\\0here'); s.listen(); print(1, flush=True)"
        process = sandbox.spawn(["python3", "-c", f"{listen}; s.accept()"], text=True)
        assert next(iter(process.stdout)) == "1\n"
        assert "here" in sandbox.exec("cat /proc/net/unix").stdout
        assert "here" not in other.exec("cat /proc/net/unix").stdout
        process.kill()
