"""THREATS.md FS 5-18 on directories of the host, through the public API."""

# ruff: noqa: E501 - a case is a line

from __future__ import annotations

import os
from pathlib import Path

import pytest

from belljar import Mount, Sandbox
from tests.escape.oracles import Watch

READS = {
    "5 an absolute symlink of the host's": "cat /m/absolute",
    "5 a relative symlink of the host's": "cat /m/relative",
    "5 a directory symlink of the host's": "cat /m/up/canary; ls /m/up",
    "5 stat through it": "stat -L /m/absolute",
    "1 dots": "cat /m/../../../../../../..{canary}; cat /m/sub/../../../canary",
    "2 the process's own directories": "cat /m/proc/canary",
    "10 a hard link out of the mount": "ln /m/absolute /tmp/x; cat /tmp/x",
    "17 an archive of it": "tar chf /tmp/t -C /m absolute; tar xOf /tmp/t",
    "a copy that follows": "cp -rL /m /tmp/copy; cat /tmp/copy/absolute",
    "13 a device of the host's": "head -c 1 /m/null || head -c 1 /m/fifo",
    "a search": "grep -r CANARY /m; find -L /m -name canary; rg CANARY /m",
}

WRITES = {
    "5 through the host's symlink": "echo x > /m/absolute; echo x >> /m/relative; echo x > /m/up/new",
    "5 truncate and chmod through it": "truncate -s 0 /m/absolute; chmod 777 /m/up/canary",
    "7 through a symlink of ours": "ln -s {canary} /m/l; echo x > /m/l",
    "7 through a dangling symlink of ours": "ln -s {canary}.new /m/l; echo x > /m/l; touch /m/l",
    "7 through a relative symlink of ours": "ln -s ../host/canary /m/l; echo x > /m/l",
    "9 removing what is behind a symlink": "rm -rf /m/up/ /m/up/canary /m/absolute/",
    "11 renaming out of the mount": "mv /m/absolute /m/../canary; mv /m/sub /m/up/sub",
    "13 a device": "mknod /m/d c 1 5; mknod /m/b b 8 0",
    "18 a git hook": "mkdir -p /m/.git/hooks; echo evil > /m/.git/hooks/pre-commit",
    "15 a git hook by another name": "mkdir -p /m/.GIT/hooks; echo evil > /m/.GIT/hooks/pre-commit; echo evil > /m/.git/HOOKS/x",
    "18 a git hook by rename": "mkdir -p /m/x/hooks; echo evil > /m/x/hooks/pre-commit; mv /m/x /m/.git",
    "18 settings of editors and agents": "echo x > /m/.bashrc; mkdir -p /m/.vscode; echo x > /m/.vscode/tasks.json; echo x > /m/.mcp.json",
}  # fmt: skip


@pytest.fixture
def shared(tmp_path: Path, watch: Watch) -> Path:
    directory = tmp_path / "shared"
    (directory / "sub").mkdir(parents=True)
    (directory / "plain").write_text("plain\n")
    (directory / "absolute").symlink_to(watch.canary)
    (directory / "relative").symlink_to(os.path.relpath(watch.canary, directory))
    (directory / "up").symlink_to(watch.canary.parent)
    (directory / "proc").symlink_to(f"/proc/self/root{watch.canary.parent}")
    (directory / "null").symlink_to("/dev/zero")
    os.mkfifo(directory / "fifo")
    return directory


@pytest.mark.parametrize("what", READS)
@pytest.mark.parametrize("kind", ["host", "overlay", "writable"])
def test_reading(what: str, kind: str, shared: Path, watch: Watch) -> None:
    mount = Mount.host(str(shared), read_only=kind != "writable")
    with watch.attack(), Sandbox(mounts={"/m": Mount.overlay(mount) if kind == "overlay" else mount}) as sandbox:
        assert sandbox.exec("cat /m/plain").stdout == "plain\n"
        result = sandbox.exec(watch.fill(READS[what]), timeout=15)
        assert watch.secret not in result.stdout
        assert not result.timed_out


@pytest.mark.parametrize("what", WRITES)
def test_writing(what: str, shared: Path, watch: Watch) -> None:
    with watch.attack(), Sandbox(mounts={"/m": Mount.host(str(shared), read_only=False)}) as sandbox:
        sandbox.exec(watch.fill(WRITES[what]), timeout=15)
        sandbox.exec("echo fine > /m/made").check()
    assert (shared / "made").read_text() == "fine\n"
    assert "evil" not in "".join(p.read_text() for p in shared.rglob("*hooks*/*") if ".git" in str(p).lower())
    for name in (".bashrc", ".mcp.json", ".vscode/tasks.json"):
        assert not (shared / name).exists(), name


def test_a_read_only_mount_stays_as_it_is(shared: Path, watch: Watch) -> None:
    before = sorted((p.name, p.lstat().st_mtime_ns) for p in shared.rglob("*"))
    with watch.attack(), Sandbox(mounts={"/m": Mount.host(str(shared))}) as sandbox:
        script = (
            "echo x > /m/plain; rm -rf /m/*; touch /m/new; mv /m/plain /m/q; chmod 0 /m/plain; ln -s x /m/s; mkdir /m/d"
        )
        assert sandbox.exec(script).exit_code == 1
    assert sorted((p.name, p.lstat().st_mtime_ns) for p in shared.rglob("*")) == before
