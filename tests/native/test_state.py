"""Snapshots and branches of native sandboxes: all files over the image's, as the sandbox saw them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

import pytest

from belljar import AsyncSandbox, Image, Mount, Sandbox, SnapshotError, Store
from tests.agent.test_programs import read_until
from tests.native.conftest import needs_native
from tests.native.test_unprivileged import needs_root, place, run_as_nobody

pytestmark = needs_native
__all__ = ["place"]

MAKE = """
mkdir -p d/e
echo x > d/e/f
ln d/e/f d/g
ln -s /etc/passwd l
mkfifo p
chmod 750 d
head -c 5000000 /dev/urandom > large
truncate -s 1G sparse
python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('s')"
echo home > ~/h
chmod 710 ~ .
"""
SHOW = """
find . ! -name s ! -type d | sort | xargs stat -c '%n %F %a %U %h %s'
find . ~ -type d | sort | xargs stat -c '%n %a %U'
sha256sum large
readlink l
cat d/g ~/h
test d/g -ef d/e/f && echo same
"""


def test_a_branch_has_the_files_and_neither_changes_the_other() -> None:
    with Sandbox(tier="native", files={"first": "1"}, env={"NAME": "value"}) as sandbox:
        sandbox.exec(MAKE + "rm first", check=True)
        before = sandbox.exec(SHOW).stdout
        with sandbox.fork() as branch:
            assert branch.info.tier == "native"
            assert branch.exec(SHOW).stdout == before
            assert branch.exec("echo $NAME; pwd; ls first").stdout == "value\n/workspace\n"
            branch.exec("rm -rf d; echo other > l2")
            assert sandbox.exec(SHOW).stdout == before
            sandbox.exec("echo mine > l3")
            assert not branch.files.exists("l3")
        branches = sandbox.fork(2)
        assert isinstance(branches, list)
        assert [each.exec("cat d/g").stdout for each in branches] == ["x\n", "x\n"]
        for each in branches:
            each.close()


def test_a_snapshot_is_restored_and_kept_again() -> None:
    store = Store.memory()
    with Sandbox(tier="native", store=store, env={"NAME": "value"}) as sandbox:
        sandbox.exec(MAKE, check=True)
        before = sandbox.exec(SHOW).stdout
        snapshot = sandbox.snapshot("one")
        assert any("socket" in text for text in snapshot.lost)
        assert snapshot.files.read("/workspace/d/g") == "x\n"
        sandbox.exec("rm -rf d")
        second = sandbox.snapshot("two")
        assert {change.path for change in snapshot.diff(second)} == {
            "/workspace/d", "/workspace/d/e", "/workspace/d/e/f", "/workspace/d/g",
        }  # fmt: skip
    with Sandbox.restore("one", store) as again:
        assert again.info.tier == "native"
        assert again.exec(SHOW).stdout == before
        assert again.exec("echo $NAME").stdout == "value\n"
        again.exec("echo more > d/more")
        third = again.snapshot("three")
        assert "/workspace/d/more" in {change.path for change in snapshot.diff(third)}


def test_what_was_deleted_or_replaced_in_the_image_stays_so() -> None:
    with Sandbox(tier="native", user="root") as sandbox:
        assert sandbox.exec("ls /etc/services").exit_code == 0
        sandbox.exec("rm /etc/services; mkdir -p /srv/a; rm -rf /etc/alternatives; mkdir /etc/alternatives", check=True)
        sandbox.exec("echo new > /etc/alternatives/new; echo changed > /etc/protocols", check=True)
        with sandbox.fork() as branch:
            assert branch.exec("ls /etc/services").exit_code == 2
            assert branch.exec("ls /etc/alternatives; cat /etc/protocols").stdout == "new\nchanged\n"
            with branch.fork() as leaf:
                assert leaf.exec("ls /etc/services").exit_code == 2
                assert leaf.exec("ls /etc/alternatives; cat /etc/protocols").stdout == "new\nchanged\n"


def test_programs_go_on_after_a_snapshot() -> None:
    with Sandbox(tier="native", store=Store.memory()) as sandbox:
        process = sandbox.spawn("while :; do date +%s%N > now; sleep 0.01; done & sleep 60")
        for _ in range(5):
            sandbox.snapshot()
        stopped = sandbox.exec("cat /proc/[0-9]*/stat | awk '{print $3}' | grep -c T").stdout
        assert stopped == "0\n"
        changed = 'a=$(cat now); until b=$(cat now); [ -n "$b" ] && [ "$a" != "$b" ]; do sleep 0.05; done; echo changed'
        assert sandbox.exec(changed, timeout=30).stdout == "changed\n"
        process.kill()


def test_a_shell_on_a_terminal_never_sees_its_program_stopped() -> None:
    with Sandbox(tier="native", store=Store.memory()) as sandbox:
        terminal = sandbox.pty("bash --norc -i", env={"TERM": "dumb"})
        # Without a trap bash goes on after a ^C by which its `sleep` was not ended.
        terminal.write("bash -c 'trap exit INT; echo be''gun; while :; do sleep 0.01; done'\n")
        shown = read_until(terminal, rb"begun")
        for _ in range(20):
            sandbox.snapshot()
        terminal.write("\x03echo ov''er; exit\n")
        shown += read_until(terminal, rb"over")
        assert b"Stopped" not in shown
        assert b"^C" in shown
        assert terminal.wait() == 0


def test_pause_resume_and_checkpoints() -> None:
    store = Store.memory()
    sandbox = Sandbox(tier="native", store=store)
    sandbox.exec("echo kept > f")
    ref = sandbox.pause()
    with Sandbox.resume(ref, store, tier="native") as again:
        assert again.files.read("f") == "kept\n"
    with Sandbox(tier="native", name="lane", checkpoint="exec", store=store) as lane:
        lane.exec("echo one > f")
    with Sandbox.resume("lane", store, tier="native") as lane:
        assert lane.files.read("f") == "one\n"


CROSS = """
mkdir -p d/e /data/deep; echo x > d/e/f; ln d/e/f d/g; ln -s ../d/e/f d/l; chmod 750 d; echo '#!/bin/sh
echo ran $0' > d/run; chmod +x d/run; echo home > ~/h; echo more > /data/deep/m; head -c 5000000 /dev/zero > large
"""
CROSSED = """
find d /data ~/h large | sort | xargs stat -c '%n %F %a %U'; stat -c '%h %s' d/g large
readlink d/l; cat d/l ~/h /data/deep/m; d/run; pwd
echo $NAME; test d/g -ef d/e/f && echo same
"""


def test_a_snapshot_goes_on_at_the_other_tier_and_back() -> None:
    """Files, environment and directory; programs are those of the tier."""
    store = Store.memory()
    with Sandbox(store=store, env={"NAME": "value"}, cwd="/workspace/d", files={"/workspace/d/x": "1"}) as sandbox:
        sandbox.exec("cd /workspace; rm d/x; mkdir /data")
        sandbox.mount("/data", Mount.memory())
        sandbox.exec(f"cd /workspace; {CROSS}", check=True)
        before = sandbox.exec(f"cd ..; {CROSSED}").stdout
        sandbox.python.run("x = 1")
        sandbox.snapshot("virtual")
    with Sandbox.restore("virtual", store, tier="native") as native:
        assert native.info.tier == "native"
        assert native.exec(f"cd ..; {CROSSED}").stdout == before
        assert native.exec("uname -s; gcc --version | head -1 | cut -c1-3").stdout == "Linux\ngcc\n"
        native.exec("echo native > /workspace/n; rm -r /workspace/d/e; cp /usr/bin/true /workspace/true", check=True)
        second = native.snapshot("native")
        with native.fork() as branch:
            assert branch.exec("cat /workspace/n").stdout == "native\n"
    with Sandbox.restore(second, tier="virtual") as again:
        assert again.info.tier == "virtual"
        assert again.exec("cat /workspace/n /workspace/d/g /data/deep/m ~/h; ls /workspace").stdout == (
            "native\nx\nmore\nhome\nd\nlarge\nn\ntrue\n"
        )
        assert again.exec("echo $NAME; pwd; which ls").stdout == "value\n/workspace/d\n/usr/bin/ls\n"
        again.exec("echo third > /workspace/n")
        third = again.snapshot("third")
    with Sandbox.restore(third, tier="native") as last:
        assert last.exec("cat /workspace/n; /workspace/true && echo ok; wc -c < /workspace/large").stdout == (
            "third\nok\n5000000\n"
        )


def test_what_can_not_go_on_natively_is_said(tmp_path: Path) -> None:
    store = Store.memory()
    mounts = {"/work": Mount.overlay(Mount.host(str(tmp_path)))}
    with Sandbox(store=store, mounts=mounts) as sandbox:
        sandbox.exec("echo x > /work/f")
        sandbox.snapshot("over")
    with pytest.raises(SnapshotError, match="changes that were made over '/work'"):
        Sandbox.restore("over", store, tier="native", mounts=mounts)
    with Sandbox(tier="native", store=store) as native:
        native.snapshot("native")
    with pytest.raises(TypeError, match="image= is for snapshots of other tiers"):
        Sandbox.restore("native", store, image=Image.host())
    with pytest.raises(TypeError, match="image= is for a new sandbox"):
        Sandbox.restore("over", store, image=Image.host(), mounts=mounts)


def test_links_that_a_guest_planted_lead_nowhere(tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("of the host")
    outside.chmod(0o777)
    tmp_path.chmod(0o755)
    store = Store.memory()
    with Sandbox(tier="native", user="root", store=store) as sandbox:
        sandbox.exec(
            f"mv /etc /etc2; ln -s {outside} /etc; rm -rf /home /workspace/* /run; ln -s {outside} /home; "
            f"ln -s {outside}/secret f; ln -s {outside} d; ln -s / run; mkdir x; ln -s ../../../../../.. x/up"
        )
        snapshot = sandbox.snapshot("planted")
        with sandbox.fork() as branch:
            branch.exec("echo written > d/new; echo written > /home/new")
    assert sorted(os.listdir(outside)) == ["secret"]
    with pytest.raises(Exception, match=r".+"):
        snapshot.files.read("/workspace/f")
    with Sandbox.restore("planted", store, tier="native") as again:
        assert again.exec("cat f d/secret").exit_code == 1
    assert sorted(os.listdir(outside)) == ["secret"]
    assert (outside / "secret").read_text() == "of the host"


def test_the_asynchronous_front() -> None:
    async def run() -> None:
        async with AsyncSandbox(tier="native", store=Store.memory()) as sandbox:
            await sandbox.exec("echo x > f")
            branch = await sandbox.fork()
            assert (await branch.exec("cat f")).stdout == "x\n"
            await branch.close()
            snapshot = await sandbox.snapshot("s")
            again = await AsyncSandbox.restore(snapshot, tier="native")
            assert (await again.exec("cat f")).stdout == "x\n"
            await again.close()

    asyncio.run(run())


@needs_root
def test_of_an_owner_who_is_not_root(place: Path) -> None:
    said = run_as_nobody(
        place,
        """
with Sandbox(tier="native", store=store) as sandbox:
    sandbox.exec("mkdir -m 700 d; echo x > d/f; chmod 400 d/f; rm -rf /etc/alternatives")
    with sandbox.fork() as branch:
        print(branch.exec("cat d/f; stat -c '%a %u' d d/f; ls -d /etc/alternatives").stdout.split())
""",
        first="""
from belljar import Sandbox, Store
store = Store.memory()
with Sandbox(tier="native", store=store) as sandbox:
    sandbox.fork().close()
    sandbox.snapshot("x")
Sandbox.restore("x", store, tier="native").close()
""",
    )
    assert said.splitlines() == ["['x', '700', '1000', '400', '1000']"]
