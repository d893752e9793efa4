"""Mounts of the owner's, as a command sees them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from belljar import FileError, Mount, Sandbox

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
