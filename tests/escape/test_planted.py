"""Files that a guest plants on the host, to be run there later: by a read-write mount, and by `files.download`."""

# ruff: noqa: E501 - a case is a line

from __future__ import annotations

import asyncio
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import AsyncSandbox, Event, Mount, ProtectedFileError, Sandbox
from belljar.api import local_host
from belljar.kernel.fs.protection import Trust

PLANTED = {
    ".git/hooks/pre-commit": "git",
    "sub/.git/config": "git",
    ".GIT/config": "git",
    ".git./hooks/post-checkout": "git",
    ".g\u200cit/config.worktree": "git",
    "vendor/.git/modules/m/config": "git",
    ".git/worktrees/w/commondir": "git",
    ".git/info/attributes": "git",
    ".hg/hgrc": "repository",
    ".jj/repo/config.toml": "repository",
    "_darcs/prefs/defaults": "repository",
    ".husky/pre-commit": "hooks",
    ".pre-commit-config.yaml": "hooks",
    "lefthook.yml": "hooks",
    ".bashrc": "shell",
    ".zshenv ": "shell",
    ".envrc": "environment",
    "deep/er/.ENVRC": "environment",
    ".mise.local.toml": "environment",
    ".tool-versions": "environment",
    "rust-toolchain.toml": "environment",
    ".vscode/tasks.json": "editor",
    ".idea/workspace.xml": "editor",
    ".nvim.lua": "editor",
    ".zed/tasks.json": "editor",
    ".devcontainer/devcontainer.json": "editor",
    "x.code-workspace": "editor",
    ".Rprofile": "editor",
    ".claude/settings.json": "agent",
    ".mcp.json": "agent",
    ".aider.conf.yml": "agent",
    ".codex/config.toml": "agent",
    ".cargo/config.toml": "build",
    ".npmrc": "build",
    ".pnp.cjs": "build",
    ".yarn/releases/yarn.cjs": "build",
    ".mvn/jvm.config": "build",
    "sitecustomize.py": "python",
    "lib/site-packages/x.pth": "python",
    "pip.conf": "python",
    ".config/autostart/x.desktop": "login",
    ".local/bin/ls": "login",
    ".ssh/authorized_keys": "credentials",
    ".aws/config": "credentials",
    ".kube/config": "credentials",
    ".docker/config.json": "credentials",
    "GIT~1/config": "git",
    "VSCODE~1/TASKS~1.JSO": "editor",
    "envrc~2": "environment",
    ".netrc": "credentials",
}
"""Paths, and the rule that refuses each."""

ORDINARY = [
    "notes~1",
    "a.txt~",
    ".gitignore",
    ".gitattributes",
    "model.pth",
    ".env",
    "Makefile",
    "AGENTS.md",
    "src/config/HEAD",
    "git/hooks/x",
    ".github/workflows/ci.yml",
    "refs/objects",
]

BARE = {
    "the head last": "mkdir -p x/objects x/refs; echo evil > x/config; echo ref: refs/heads/main > x/HEAD",
    "objects last": "mkdir -p x/refs; echo ref: refs/heads/main > x/HEAD; echo evil > x/config; mkdir x/objects",
    "refs by rename": "mkdir -p x/objects y/refs; echo ref: refs/heads/main > x/HEAD; echo evil > x/config; mv y/refs x/refs",
    "refs by symlink": "mkdir -p x/objects y/refs; echo ref: refs/heads/main > x/HEAD; echo evil > x/config; ln -s ../y/refs x/refs",
    "the head by hard link": "mkdir -p x/objects x/refs; echo ref: refs/heads/main > head; echo evil > x/config; ln head x/HEAD",
    "commondir": "mkdir -p x y/objects y/refs; echo ref: refs/heads/main > x/HEAD; echo evil > y/config; echo ../y > x/commondir",
    "the top of the mount": "mkdir -p objects refs; echo evil > config; echo ref: refs/heads/main > HEAD",
    "without read permission": "mkdir -p x/objects; chmod 300 x; mkdir x/refs; echo evil > x/config; echo ref: refs/heads/main > x/HEAD; chmod 700 x",
}  # fmt: skip
"""Ways to a directory that git takes for a repository, so that it obeys its config: core.fsmonitor is a command."""


@pytest.fixture(scope="module")
def guest() -> Iterator[Sandbox]:
    with Sandbox() as sandbox:
        yield sandbox


class Shared:
    """A directory of the host, mounted for writing at /m, and what was refused there."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.events: list[Event] = []

    def exec(self, script: str, trust: Trust = False) -> str:
        """Standard error of a script that runs in the directory."""
        mount = Mount.host(str(self.top), read_only=False, trust=trust)
        with Sandbox(mounts={"/m": mount}, on_event=self.events.append) as sandbox:
            return sandbox.exec(script, cwd="/m", timeout=20).stderr

    def refused(self) -> list[tuple[str, str]]:
        found = [event.data for event in self.events if event.kind == "refused"]
        return [(os.path.relpath(data["path"], self.top), data["rule"]) for data in found]

    def is_repository(self, directory: str) -> bool:
        """Whether git, in that directory, says that it is in a repository."""
        environment = {**os.environ, "GIT_CEILING_DIRECTORIES": str(self.top.parent)}
        command = ["git", "-c", "safe.bareRepository=all", "-c", "safe.directory=*", "rev-parse", "--git-dir"]
        return subprocess.run(command, cwd=self.top / directory, env=environment, capture_output=True).returncode == 0


@pytest.fixture
def shared(tmp_path: Path) -> Shared:
    (tmp_path / "shared").mkdir()
    return Shared(tmp_path / "shared")


def put(path: str) -> str:
    """A command that makes a file with the directories above it."""
    return f"mkdir -p \"$(dirname '{path}')\"; echo evil > '{path}'"


# By a mount.


def test_by_mount_no_planted_file(shared: Shared) -> None:
    said = shared.exec("; ".join(put(path) for path in PLANTED))
    assert [str(p) for p in shared.top.rglob("*") if p.is_file()] == []
    for path, rule in PLANTED.items():
        assert any(rule == found and path.startswith(place) for place, found in shared.refused()), path
    assert "Permission denied (protected on the host: " in said


def test_by_mount_what_is_ordinary_can_be_written(shared: Shared) -> None:
    assert shared.exec("; ".join(put(path) for path in ORDINARY)) == ""
    assert shared.refused() == []
    assert all((shared.top / path).read_text() == "evil\n" for path in ORDINARY)


@pytest.mark.parametrize("way", BARE)
def test_by_mount_no_bare_repository(shared: Shared, way: str) -> None:
    shared.exec(BARE[way])
    assert not shared.is_repository("x" if "x" in BARE[way] else ".")
    assert {rule for _, rule in shared.refused()} == {"bare-repository"}


@pytest.mark.parametrize("way", BARE)
def test_by_mount_a_bare_repository_is_one_if_the_owner_says_so(shared: Shared, way: str) -> None:
    assert shared.exec(BARE[way], trust=["bare-repository"]) == ""
    assert shared.is_repository("x" if "x" in BARE[way] else ".")


def test_by_mount_an_owners_bare_repository_keeps_its_configuration(shared: Shared) -> None:
    subprocess.run(["git", "init", "-q", "--bare", shared.top / "x"], check=True)
    before = (shared.top / "x/config").read_text()
    shared.exec(
        "cd x; echo evil >> config; echo evil > hooks/post-update; mkdir modules; mv hooks h; mv ../x ../y; rm config; echo ref: refs/heads/other > HEAD"
    )
    assert (shared.top / "x/config").read_text() == before
    assert not (shared.top / "x/hooks/post-update").exists()
    assert (shared.top / "x/HEAD").read_text() == "ref: refs/heads/other\n"  # a branch is the guest's to choose


SECOND = {
    "write": "echo evil > name",
    "append": "echo evil >> name",
    "truncate": ": > name; truncate -s 0 name",
    "python": "python3 -c \"open('name', 'r+').write('evil')\"",
    "dd": "echo evil | dd of=name conv=notrunc",
    "mode": "chmod 777 name",
    "through a symlink": "ln -s name l; echo evil > l",
    "by a third name": "ln name third; echo evil > third; chmod 777 third",
    "after a rename": "mv name other; echo evil > other; mv other name",
}


@pytest.mark.parametrize("way", SECOND)
@pytest.mark.parametrize("other", [".git/hooks/pre-commit", "../outside"])
def test_by_mount_no_write_through_a_second_name(shared: Shared, way: str, other: str) -> None:
    real = shared.top / other
    real.parent.mkdir(parents=True, exist_ok=True)
    real.write_text("mine\n")
    real.chmod(0o644)
    os.link(real, shared.top / "name")
    shared.exec(f"cat .git/hooks/* name; {SECOND[way]}")
    assert (real.read_text(), real.stat().st_mode & 0o777) == ("mine\n", 0o644)
    assert {rule for _, rule in shared.refused()} & {"second-name", "git"}  # by whichever of its names is known


def test_by_mount_links_of_the_guests_own_can_be_written(shared: Shared) -> None:
    assert (
        shared.exec(
            "echo 1 > a; ln a b; mkdir d; ln b d/c; echo 2 > a; chmod 600 d/c; rm b; echo 3 >> a; mv a z; echo 4 >> z"
        )
        == ""
    )
    assert (shared.top / "d/c").read_text() == "2\n3\n4\n"
    assert shared.refused() == []


def test_by_mount_no_protected_file_moves_with_its_directory(shared: Shared) -> None:
    (shared.top / "evil/deep/.vscode").mkdir(parents=True)
    (shared.top / "evil/deep/.vscode/tasks.json").write_text("fixture")
    (shared.top / "project").mkdir()
    shared.exec("mv evil/deep project/; mv evil trusted; mv evil/deep/.vscode project/; rmdir project; mv evil project")
    assert [str(p.relative_to(shared.top)) for p in shared.top.rglob("*") if p.is_file()] == [
        "evil/deep/.vscode/tasks.json"
    ]


def test_by_mount_no_directory_becomes_protected_by_its_name(shared: Shared) -> None:
    shared.exec(
        "mkdir -p a/hooks b/gitlike/hooks site/x; echo evil | tee a/hooks/pre-commit b/gitlike/hooks/x site/x/evil.pth; mv a .git; mv b/gitlike b/.GIT; ln -s a .git; mv site/x site/site-packages; echo 'gitdir: a' > .git"
    )
    assert not (shared.top / ".git").exists()
    assert not (shared.top / "b/.GIT").exists()
    assert not (shared.top / "site/site-packages").exists()


@pytest.mark.parametrize(("top", "path", "refused"), [
    (".git", "hooks/x", True), (".git", "config", True), ("x/.yarn", "releases/y.cjs", True), (".claude", "worktrees/a.py", False), (".vscode", "y", False),
])  # fmt: skip
def test_by_mount_the_place_of_the_directory_counts(tmp_path: Path, top: str, path: str, refused: bool) -> None:
    (tmp_path / top).mkdir(parents=True)
    shared = Shared(tmp_path / top)
    shared.exec(put(path))
    assert (shared.top / path).exists() is not refused


def test_by_mount_the_owner_may_trust(shared: Shared) -> None:
    mount = Mount.host(str(shared.top), read_only=False, trust=["editor", "sub/.envrc"])
    with Sandbox(mounts={"/m": mount}) as sandbox:
        sandbox.exec("mkdir sub .vscode; echo 1 > sub/.envrc; echo 1 > .vscode/tasks.json; echo 1 > .envrc", cwd="/m")
    assert sorted(str(p.relative_to(shared.top)) for p in shared.top.rglob("*") if p.is_file()) == [
        ".vscode/tasks.json",
        "sub/.envrc",
    ]
    with pytest.raises(TypeError, match="trust"):
        Mount.host(str(shared.top), trust=1)  # type: ignore[arg-type]


# By a download.


@pytest.mark.parametrize("path", PLANTED)
def test_by_download_no_planted_file(guest: Sandbox, tmp_path: Path, path: str) -> None:
    guest.exec(f"rm -rf /d; mkdir /d; cd /d; echo plain > plain; {put(path)}", cwd="/", env={}).check()
    with pytest.raises(ProtectedFileError) as error:
        guest.files.download("/d", tmp_path / "out")
    assert [(file.path, file.rule) for file in error.value.refused] == [(path, PLANTED[path])]
    assert not (tmp_path / "out").exists()
    assert all(text in str(error.value) for text in ("nothing was written", "trust=", PLANTED[path]))
    guest.files.download("/d", tmp_path / "out", trust=[PLANTED[path]])
    assert (tmp_path / "out" / path).read_text() == "evil\n"


@pytest.mark.parametrize("way", [way for way in BARE if "symlink" not in way])  # no symlink is downloaded
def test_by_download_no_bare_repository(guest: Sandbox, tmp_path: Path, way: str) -> None:
    guest.exec(f"rm -rf /d; mkdir /d; cd /d; {BARE[way]}", cwd="/").check()
    with pytest.raises(ProtectedFileError) as error:
        guest.files.download("/d", tmp_path)
    assert {file.rule for file in error.value.refused} == {"bare-repository"}


def test_by_download_no_bare_repository_in_two_parts(guest: Sandbox, tmp_path: Path) -> None:
    guest.exec(
        "rm -rf /d; mkdir -p /d/1/x/objects /d/2/x/refs; echo ref: refs/heads/main > /d/1/x/HEAD; echo evil > /d/1/x/config",
        cwd="/",
    ).check()
    guest.files.download("/d/1", tmp_path)
    with pytest.raises(ProtectedFileError):
        guest.files.download("/d/2", tmp_path)


def test_by_download_no_file_in_place_of_the_repository(guest: Sandbox, tmp_path: Path) -> None:
    guest.exec("rm -rf /d; mkdir -p /d/a/hooks /d/b; echo 'gitdir: ../a' > /d/b/.git", cwd="/").check()
    with pytest.raises(ProtectedFileError):
        guest.files.download("/d", tmp_path)


def test_by_download_no_write_through_a_second_name(guest: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "hook").write_text("mine")
    (tmp_path / "out").mkdir()
    os.link(tmp_path / "hook", tmp_path / "out/name")
    guest.exec("rm -rf /d; mkdir /d; echo evil > /d/name", cwd="/").check()
    for source, target in (("/d", "out"), ("/d/name", "out/name")):
        with pytest.raises(ProtectedFileError, match="second-name"):
            guest.files.download(source, tmp_path / target)
        guest.files.download(source, tmp_path / target, trust="second-name")
        assert (tmp_path / "out/name").read_text() == "evil\n"
        assert (tmp_path / "hook").read_text() == "mine"
        (tmp_path / "out/name").unlink()
        os.link(tmp_path / "hook", tmp_path / "out/name")


@pytest.mark.parametrize("openat", [True, False])
def test_by_download_nothing_through_a_symlink(
    guest: Sandbox, tmp_path: Path, openat: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(local_host, "_HAS_OPENAT", openat)  # Windows has none
    (tmp_path / "outside").mkdir()
    (tmp_path / "out").mkdir()
    (tmp_path / "out/sub").symlink_to("../outside")
    (tmp_path / "victim").write_text("mine")
    guest.exec("rm -rf /d; mkdir -p /d/sub; echo evil > /d/sub/f; echo evil > /d/g", cwd="/").check()
    with pytest.raises(ValueError, match="symlink"):
        guest.files.download("/d", tmp_path / "out")
    (tmp_path / "out/sub").unlink()
    (tmp_path / "out/g").symlink_to("../victim")
    with pytest.raises(ValueError, match="regular"):
        guest.files.download("/d", tmp_path / "out")
    (tmp_path / "out/g").unlink()
    guest.files.download("/d", tmp_path / "out")
    assert (tmp_path / "out/sub/f").read_text() == "evil\n"
    assert list((tmp_path / "outside").iterdir()) == []
    assert (tmp_path / "victim").read_text() == "mine"


def test_by_download_the_owner_names_a_file(guest: Sandbox, tmp_path: Path) -> None:
    """What is refused is a surprise: a file's own new name is none."""
    guest.exec("rm -rf /d; mkdir /d; echo mine > /d/rc", cwd="/").check()
    guest.files.download("/d/rc", tmp_path / ".bashrc")
    assert (tmp_path / ".bashrc").read_text() == "mine\n"
    guest.exec("mkdir -p /d/hooks; echo evil > /d/hooks/x", cwd="/").check()
    with pytest.raises(ProtectedFileError):
        guest.files.download("/d", tmp_path / ".git")


def test_by_download_trust(guest: Sandbox, tmp_path: Path) -> None:
    guest.exec(
        "rm -rf /d; mkdir -p /d/.vscode /d/sub; echo x | tee /d/.envrc /d/.vscode/tasks.json /d/sub/.envrc", cwd="/"
    ).check()
    with pytest.raises(ProtectedFileError) as error:
        guest.files.download("/d", tmp_path, trust=["editor", "sub"])
    assert [file.path for file in error.value.refused] == [".envrc"]
    assert list(tmp_path.iterdir()) == []
    guest.files.download("/d", tmp_path, trust=True)
    assert (tmp_path / "sub/.envrc").read_text() == "x\n"
    for wrong in (1, None, [1], b"git"):
        with pytest.raises(TypeError, match="trust"):
            guest.files.download("/d", tmp_path, trust=wrong)  # type: ignore[arg-type]


def test_by_download_asynchronously(tmp_path: Path) -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.files.write("d/.envrc", "evil")
            with pytest.raises(ProtectedFileError, match="environment"):
                await sandbox.files.download("d", tmp_path)
            await sandbox.files.download("d", tmp_path, trust=["environment"])

    asyncio.run(main())
    assert (tmp_path / ".envrc").read_text() == "evil"


def test_a_download_that_fails_leaves_no_half_file(guest: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "f").write_text("before")
    with pytest.raises(Exception, match="too large"):
        guest.files.download("/dev/zero", tmp_path / "f")
    assert [(p.name, p.read_text()) for p in tmp_path.iterdir()] == [("f", "before")]
