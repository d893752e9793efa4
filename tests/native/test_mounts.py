"""The owner's trees in native sandboxes, where the tiers' common battery does not look: slow servers, ends, ids."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from belljar import AsyncSandbox, Mount, Sandbox, SandboxError
from belljar.kernel.vfs.server import Handle, Node
from tests.contract.servers import memory
from tests.fuse.test_mounted import Strange
from tests.native.conftest import needs_native
from tests.native.test_unprivileged import needs_root, place, run_as_nobody

pytestmark = needs_native
__all__ = ["place"]


@pytest.fixture
def strange() -> Any:
    """A server with a file that never opens until it is told to."""
    server = Strange()
    yield server
    server.go_on.set()


def wait_for(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.02)
    assert condition()


def test_a_server_that_hangs_does_not_hold_up_the_end(strange: Strange) -> None:
    """A program that waits for it can't even be killed, as long as the device is open."""
    with Sandbox(tier="native", user="root", mounts={"/s": Mount.server(strange)}) as sandbox:
        sandbox.spawn("cat /s/slow")
        time.sleep(0.5)
        began = time.monotonic()
    assert time.monotonic() - began < 30


def test_other_mounts_do_not_notice(strange: Strange, tmp_path: Path) -> None:
    (tmp_path / "a").write_text("here\n")
    mounts = {"/s": Mount.server(strange), "/h": Mount.host(str(tmp_path)), "/m": Mount.memory({"f": "x\n"})}
    with Sandbox(tier="native", user="root", mounts=mounts) as sandbox:
        sandbox.spawn("cat /s/slow")
        time.sleep(0.3)
        assert sandbox.exec("cat /h/a /m/f", timeout=50).stdout == "here\nx\n"
        assert sandbox.exec("echo more >> /m/f; ls /m", timeout=50).stdout == "f\n"
        strange.go_on.set()
        assert sandbox.exec("cat /s/slow", timeout=50).stdout == "slow"


def test_nothing_is_left_open_by_the_sandbox_that_is_gone() -> None:
    server, before = memory(), threading.active_count()
    with Sandbox(tier="native", user="root", mounts={"/s": Mount.server(server)}) as sandbox:
        sandbox.exec("echo x > /s/f")
        sandbox.spawn("exec 3< /s/f; sleep 60")
        file: Any = server.root.entries["f"]
        wait_for(lambda: file.opens == 1)
    wait_for(lambda: file.opens == 0)
    wait_for(lambda: threading.active_count() <= before)


def test_an_owner_that_is_killed_leaves_no_mount(tmp_path: Path) -> None:
    """Its device is closed with it, and the namespace with the mount ends."""
    owner = (
        "import sys, time\nfrom belljar import Mount, Sandbox\n"
        "box = Sandbox(tier='native', mounts={'/m': Mount.memory({'f': 'x'})})\n"
        "box.spawn('exec 3< /m/f; sleep 600')\ntime.sleep(.3)\nprint(box._link.pid, flush=True)\ntime.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        launcher = int(process.stdout.readline())
        process.send_signal(signal.SIGKILL)
    wait_for(lambda: not Path(f"/proc/{launcher}").exists())


@pytest.mark.parametrize("user", ["root", "agent", "other"])
def test_the_sandboxs_user_owns_the_files(tmp_path: Path, user: str) -> None:
    (tmp_path / "a").write_text("x")
    mounts = {"/h": Mount.host(str(tmp_path), read_only=False), "/m": Mount.memory()}
    with Sandbox(tier="native", user=user, mounts=mounts) as sandbox:
        sandbox.exec("echo >> /h/a; touch /h/new /m/new; chown $(id -u) /h/new; mkdir /m/d").check()
        owners = sandbox.exec("id -u; id -g; stat -c '%u %g' /h/a /h/new /m/new /m/d").stdout.split()
    assert owners == owners[:2] * 5
    assert (tmp_path / "new").stat().st_uid == os.geteuid()


def test_each_command_sees_what_was_changed_before_it(tmp_path: Path) -> None:
    """Contents of the same length, too, and names that come and go, in directories that were just looked at."""
    (tmp_path / "sub").mkdir()
    mounts = {"/h": Mount.host(str(tmp_path)), "/o": Mount.overlay(Mount.host(str(tmp_path)))}
    with Sandbox(tier="native", mounts=mounts) as sandbox:
        for turn in range(15):
            (tmp_path / "sub/f").write_text(f"turn {turn:03}\n")
            (tmp_path / f"new{turn}").touch()
            out = sandbox.exec(f"cat /h/sub/f /o/sub/f; ls /h/new{turn} /o/new{turn}").stdout
            assert out == f"turn {turn:03}\n" * 2 + f"/h/new{turn}\n/o/new{turn}\n"
            (tmp_path / f"new{turn}").unlink()
            assert sandbox.exec(f"ls /h/new{turn} /o/new{turn}; ls /h").stdout == "sub\n"


def test_programs_run_from_a_mount_and_map_it(tmp_path: Path) -> None:
    source = 'int main(void) { return __builtin_printf("compiled\\n") < 0; }'
    (tmp_path / "main.c").write_text(source)
    with Sandbox(tier="native", mounts={"/w": Mount.overlay(Mount.host(str(tmp_path)))}) as sandbox:
        assert sandbox.exec("cd /w && cc -o main main.c && ./main && ls").stdout == "compiled\nmain\nmain.c\n"
    assert [path.name for path in tmp_path.iterdir()] == ["main.c"]


def test_guests_can_not_use_the_device() -> None:
    with Sandbox(tier="native", user="root", mounts={"/m": Mount.memory()}) as sandbox:
        result = sandbox.exec("ls /dev/fuse; umount /m; mount -t fuse x /mnt; mknod /tmp/f c 10 229; ls /tmp")
        assert result.stdout == ""
        assert sandbox.exec("touch /m/still").ok


class Many(Strange):
    """Counts what is asked at the same time."""

    at_once = most = 0

    def open(self, node: Node, flags: int) -> Handle:
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        time.sleep(0.01)
        self.at_once -= 1
        return super().open(node, flags)


def test_a_server_is_asked_one_thing_at_a_time() -> None:
    server = Many()
    mounts = {"/one": Mount.server(server), "/two": Mount.server(server)}
    with Sandbox(tier="native", user="root", mounts=mounts) as sandbox:
        sandbox.exec("for i in 1 2 3 4 5 6; do cat /one/good & cat /two/good & done; wait").check()
    assert server.most == 1


def test_of_an_event_loop(tmp_path: Path) -> None:
    asyncio.run(use_on_a_loop(tmp_path))


async def use_on_a_loop(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("one\n")
    async with AsyncSandbox(tier="native", mounts={"/h": Mount.host(str(tmp_path))}) as sandbox:
        assert (await sandbox.exec("cat /h/a")).stdout == "one\n"
        await sandbox.mount("/later", Mount.memory({"f": "2\n"}))
        assert (await sandbox.exec("cat /later/f")).stdout == "2\n"
        await sandbox.unmount("/later")
        assert (await sandbox.exec("ls /later")).stdout == ""


@needs_root
def test_an_owner_who_may_not_use_the_device_is_told(place: Path) -> None:
    code = (
        "from belljar import Mount, SandboxError\n"
        "with Sandbox(tier='native') as box:\n"
        "    try:\n        box.mount('/m', Mount.memory({'f': 'x'}))\n"
        "        print(box.exec('cat /m/f; stat -c %u /m/f; id -u').stdout.split())\n"
        "    except SandboxError as error:\n        print(error)\n"
    )
    first = (
        "from belljar import Mount, Sandbox\nwith Sandbox(tier='native', mounts={'/m': Mount.memory()}) as b: pass\n"
    )
    said = run_as_nobody(place, code, first=first)
    usable = os.stat("/dev/fuse").st_mode & 0o006 == 0o006
    assert ("['x" in said) if usable else ("can't use /dev/fuse (Permission denied)" in said), said


def test_a_wrong_place_is_an_error() -> None:
    with Sandbox(tier="native") as sandbox:
        sandbox.files.write("/tmp/file", "x")
        with pytest.raises(SandboxError, match="/tmp/file"):
            sandbox.mount("/tmp/file/m", Mount.memory())
        assert sandbox.exec("cat /tmp/file").stdout == "x"
