"""Workers that are started alone, and the first one of a zygote: sealed like all others, with every command there
although hardly any is loaded."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import Sandbox
from belljar.api import workers
from belljar.bin._kit.discovery import names
from belljar.owner.launch_host import archive_path, launch_worker
from belljar.owner.spawn_host import SpawnedWorker, Spawner
from belljar.owner.supervisor_host import Supervisor
from belljar.worker.archive_host import Archive
from tests.escape.oracles import is_alive
from tests.worker.test_load import own_bytes

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="sealed workers are Linux's")


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("archive") / "modules"
    subprocess.run([sys.executable, "-I", "-m", "belljar.zygote.recorder_host", str(path)], check=True, timeout=120)
    return path


def private(path: Path, content: bytes) -> Path:
    """A file that only its owner can write to, whatever the umask."""
    path.write_bytes(content)
    path.chmod(0o600)
    return path


@pytest.fixture
def spawned(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Spawner]:
    """From here on, sandboxes are processes of their own."""
    spawner = Spawner(str(archive))
    monkeypatch.setattr(workers, "shared", spawner)
    yield spawner
    spawner.close()


def test_the_same_walls(spawned: Spawner) -> None:
    with Sandbox() as sandbox:
        assert sandbox.exec("echo hi | tr a-z A-Z").stdout == "HI\n"
        held = sandbox.info.isolation
        assert {"rlimits", "no_new_privs", "seccomp"} <= set(held)
        probe = sandbox.exec("cat /proc/self/status | head -1; ls / | wc -l")
        assert probe.exit_code == 0
    with Sandbox(require={"seccomp"}) as sandbox:
        assert sandbox.info.isolation == held


def test_time_zones_are_there_after_the_lock(spawned: Spawner) -> None:
    with Sandbox() as sandbox:
        assert sandbox.exec("TZ=Europe/Moscow date -d @1325400000 '+%F %T %Z'").stdout == "2012-01-01 10:40:00 MSK\n"


@pytest.fixture
def first(archive: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Supervisor]:
    """A zygote that has loaded hardly anything: the next sandbox is its first."""
    monkeypatch.setenv("BELLJAR_CACHE", str(archive.parent))
    private(Path(archive_path()), archive.read_bytes())
    supervisor = Supervisor()
    monkeypatch.setattr(workers, "shared", supervisor)
    yield supervisor
    supervisor.close()


@pytest.mark.parametrize("source", ["spawned", "first"])
def test_every_command_can_be_loaded_after_the_lock(source: str, request: pytest.FixtureRequest) -> None:
    """Each one is imported from memory when first used: a module that was not recorded would end the sandbox."""
    request.getfixturevalue(source)
    with Sandbox() as sandbox:
        for name in names():
            result = sandbox.exec([name, "--help"], stdin=b"", timeout=20)
            assert "Traceback" not in result.stderr
        works = "git init -q r && sqlite3 :memory: 'select 6*7' && echo '{\"a\":1}' | jq -c . && echo x | sha256sum"
        result = sandbox.exec(f"{works} && echo y | xz | xz -d && tar cf - r | tar tf - | head -1")
        assert result.stderr == ""
        assert result.stdout.splitlines()[:2] == ["42", '{"a":1}']


def test_it_ends_with_its_owner_and_leaves_no_zombie(spawned: Spawner) -> None:
    spawned.begin()
    worker = spawned.take(1 << 30)
    assert worker.connection.recv(1 << 16), "it reports that it is ready"
    worker.connection.close()
    assert isinstance(worker, SpawnedWorker)
    assert isinstance(worker._process, subprocess.Popen)
    assert worker._process.wait(30) == 0
    sandbox = Sandbox()
    pid = sandbox._link.pid
    sandbox.close()
    assert not is_alive(pid)


def test_one_that_was_begun_and_not_wanted(spawned: Spawner) -> None:
    spawned.begin()
    assert spawned._begun is not None
    pid = spawned._begun.pid
    spawned.close()
    assert not is_alive(pid)


def test_one_that_is_launched_hears_nothing_of_the_terminal(archive: Path) -> None:
    """^C while it starts is for its owner; it would say where it was in its own code."""
    process, connection = launch_worker(str(archive))
    for _ in range(20):
        os.kill(process.pid, signal.SIGINT)
        time.sleep(0.01)
    with socket.socket(fileno=connection.detach()) as ours:
        ours.settimeout(60)
        ours.sendall((1 << 30).to_bytes(8, "little"))
        assert ours.recv(1 << 16), "it reports that it is ready"
        process.kill()
        os.waitpid(process.pid, 0)


def test_later_workers_of_a_zygote_share_what_the_first_has_to_load(first: Supervisor) -> None:
    work = "git init -q r; sqlite3 :memory: 'select 1'; echo 1 | jq .; awk 1 /dev/null"
    with Sandbox() as early:
        early.exec(work)
        deadline = time.monotonic() + 60
        while True:
            with Sandbox() as later:
                later.exec(work)
                if own_bytes(later._link.pid) < own_bytes(early._link.pid) / 2:
                    return
            assert time.monotonic() < deadline
            time.sleep(0.1)  # it loads the rest while nobody asks


def test_a_zygote_without_an_archive_records_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("BELLJAR_CACHE", str(tmp_path))
    supervisor = Supervisor()
    monkeypatch.setattr(workers, "shared", supervisor)
    try:
        with Sandbox() as sandbox:
            assert sandbox.exec("echo hi").stdout == "hi\n"
    finally:
        supervisor.close()
    assert Archive.open(archive_path()) is not None


def test_without_an_archive(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(workers, "shared", Spawner(""))
    with Sandbox() as sandbox:
        assert sandbox.exec("echo '[1]' | jq -c .").stdout == "[1]\n"


def test_an_archive_is_only_used_if_it_is_this_installations(archive: Path, tmp_path: Path) -> None:
    assert Archive.open(str(archive)) is not None
    assert Archive.open(str(tmp_path / "none")) is None
    data = archive.read_bytes()
    head, numbers, rest = data.split(b"\n", 2)
    broken = {
        "empty": b"",
        "another version": head.replace(b"modules 3", b"modules 0") + b"\n" + numbers + b"\n" + rest,
        "cut short": data[:-1],
        "no numbers": head + b"\nx y\n" + rest,
        "a changed source": data.replace(b"\nbelljar.shell.nodes\t", b"\nbelljar.shell.nodes\t/no", 1),
    }
    for what, content in broken.items():
        assert Archive.open(str(private(tmp_path / "other", content))) is None, what
    shared = private(tmp_path / "shared", data)
    assert Archive.open(str(shared)) is not None
    shared.chmod(0o666)
    assert Archive.open(str(shared)) is None, "anybody could have written it"


def test_little_is_loaded_before_the_lock() -> None:
    """A run waits for every module that its worker imports: the shell's, and none of a utility's."""
    code = (
        "from belljar.worker.spawned_host import serve; import socket, sys; ours, theirs = socket.socketpair();"
        "ours.close(); done = lambda self: None;"
        "archive = type('Archive', (), {'load_extensions': done, 'use_zones': done})();"
        "serve(theirs, archive); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60)
    loaded = set(done.stdout.split())
    heavy = {"packaging", "email", "logging", "tarfile", "zipfile", "hashlib", "asyncio", "ssl", "dulwich", "lxml"}
    heavy |= {"belljar.bin.pip.run", "belljar.engines.worker.python", "belljar.engines.worker.js"}
    assert "belljar.shell.builtins" in loaded, done.stderr
    assert not loaded & heavy
