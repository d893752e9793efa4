"""Nothing of a native sandbox outlives `close()`, its launcher or its owner: processes, mounts, cgroups, files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from belljar import Sandbox, SandboxClosed
from belljar.owner.cgroup_host import PREFIX, find_places
from tests.escape.oracles import open_files
from tests.native.conftest import needs_native

pytestmark = needs_native
DAEMONS = """
(setsid sleep {mark} >/dev/null 2>&1 &)
nohup sleep {mark} >/dev/null 2>&1 &
python3 -c "import os,time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0: os.execvp('sleep', ['sleep', '{mark}'])
"
"""
"""Three of them, which may not have come to `sleep` yet when the command has ended."""
OWNER = """
import sys, time
from belljar import Sandbox
sandbox = Sandbox(tier="native")
sandbox.exec(sys.argv[1])
print(sandbox._link.pid, flush=True)
time.sleep(600)
"""


def mark() -> str:
    """An argument of `sleep` by which its processes are found."""
    return f"9{os.getpid()}{time.monotonic_ns() % 10**9}"


def running(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if (entry / "cmdline").read_bytes() == f"sleep\0{mark}\0".encode():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def cgroups(owner: int) -> set[str]:
    places = {place.directory for place in find_places()}
    return {str(each) for place in places for each in Path(place).glob(f"{PREFIX}-{owner}-*")}


def eventually(check: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 60
    while not check():
        if time.monotonic() > deadline:
            return False
        time.sleep(0.02)
    return True


def test_close_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    name, mounts = mark(), Path("/proc/self/mounts").read_text()
    with Sandbox(tier="native") as warm:  # opens what this process keeps
        warm.exec("true")
    groups, descriptors = cgroups(os.getpid()), open_files()
    sandbox = Sandbox(tier="native")
    sandbox.exec(DAEMONS.format(mark=name))
    assert eventually(lambda: len(running(name)) == 3)
    sandbox.close()
    assert running(name) == []
    assert cgroups(os.getpid()) <= groups
    assert Path("/proc/self/mounts").read_text() == mounts
    assert list(tmp_path.iterdir()) == []
    # Threads of earlier tests may close their own meanwhile, or open one for a moment.
    assert eventually(lambda: set(open_files().items()) <= set(descriptors.items()))
    with pytest.raises(SandboxClosed):
        sandbox.exec("true")


def test_a_killed_owner_leaves_nothing() -> None:
    name = mark()
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, DAEMONS.format(mark=name)], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
    )
    assert owner.stdout is not None
    launcher = int(owner.stdout.readline())
    assert eventually(lambda: len(running(name)) == 3)
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert eventually(lambda: not running(name))
    assert eventually(lambda: not os.path.exists(f"/proc/{launcher}"))
    assert eventually(lambda: not cgroups(owner.pid))


def test_a_killed_launcher_ends_the_sandbox() -> None:
    name, groups = mark(), cgroups(os.getpid())
    with Sandbox(tier="native") as sandbox:
        sandbox.exec(DAEMONS.format(mark=name))
        assert eventually(lambda: len(running(name)) == 3)
        os.kill(sandbox._link.pid, signal.SIGKILL)
        assert eventually(lambda: not running(name))
        with pytest.raises(SandboxClosed):
            sandbox.exec("true")
    assert cgroups(os.getpid()) <= groups


def test_a_forked_copy_of_the_owner_holds_nothing_open() -> None:
    name = mark()
    sandbox = Sandbox(tier="native")
    sandbox.exec(DAEMONS.format(mark=name))
    assert eventually(lambda: len(running(name)) == 3)
    child = os.fork()
    if child == 0:
        time.sleep(60)
        os._exit(0)
    try:
        assert sandbox.exec("echo still").stdout == "still\n"
        sandbox.close()
        assert running(name) == []
    finally:
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)


def test_a_program_that_will_not_end_is_no_obstacle() -> None:
    name = mark()
    sandbox = Sandbox(tier="native")
    process = sandbox.spawn(f"trap '' TERM INT HUP; sleep {name}; sleep {name}")
    assert eventually(lambda: len(running(name)) == 1)
    sandbox.close()
    assert running(name) == []
    del process
