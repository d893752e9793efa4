"""Changes of an overlay: listed, read as a diff, applied to a directory of the host."""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from belljar import AsyncSandbox, Changes, ConflictError, Mount, ProtectedFileError, Sandbox, SandboxError
from belljar.api import review
from belljar.api.offers import Offers
from belljar.api.patch import render_file, show

NUMBERS = "".join(f"{number}\n" for number in range(40))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    """A directory with some files."""
    top = tmp_path / "repo"
    (top / "src/deep").mkdir(parents=True)
    (top / "src/a.py").write_text(NUMBERS)
    (top / "src/deep/b.py").write_text("b\n")
    (top / "run.sh").write_text("#!/bin/sh\n")
    (top / "run.sh").chmod(0o640)
    (top / "data").write_bytes(b"\0\1")
    (top / "link").symlink_to("run.sh")
    (top / "gone").write_text("gone\n")
    return top


@pytest.fixture
def sandbox(repo: Path) -> Iterator[Sandbox]:
    with Sandbox(mounts={"/repo": Mount.overlay(Mount.host(str(repo)))}, cwd="/repo") as made:
        yield made


def changed(sandbox: Sandbox, script: str, path: str = "/repo") -> Changes:
    sandbox.exec(script).check()
    return sandbox.changes(path)


def listed(changes: Changes) -> list[tuple[str, str, str]]:
    return [(change.kind, change.type, change.path) for change in changes]


def tree(top: Path) -> dict[str, object]:
    """All below a directory: contents and whether executable, a target, or None for directories and special files."""

    def look(path: Path) -> object:
        if path.is_symlink():
            return os.readlink(path)
        return (path.read_bytes(), bool(path.stat().st_mode & 0o100)) if path.is_file() else None

    return {str(path.relative_to(top)): look(path) for path in sorted(top.rglob("*"))}


EVERYTHING = (
    "sed -i 's/^7$/seven/; s/^30$/thirty/' src/a.py; rm gone; chmod +x run.sh; ln -sf src/a.py link; echo new > new;"
    "mkdir -p d/empty; mv src/deep moved; printf 'no newline' > tail; echo '#!' > tool; chmod 755 tool"
)


def test_the_list(sandbox: Sandbox) -> None:
    changes = changed(
        sandbox, EVERYTHING + "; printf 'a\\0b' > data; touch -d 2001-01-01 src/a.py; chmod 700 src; mkfifo fifo"
    )
    assert listed(changes) == [
        ("added", "directory", "d"),
        ("added", "directory", "d/empty"),
        ("modified", "file", "data"),
        ("deleted", "file", "gone"),
        ("modified", "symlink", "link"),
        ("added", "directory", "moved"),
        ("added", "file", "moved/b.py"),
        ("added", "file", "new"),
        ("mode", "file", "run.sh"),
        ("modified", "file", "src/a.py"),
        ("deleted", "directory", "src/deep"),
        ("deleted", "file", "src/deep/b.py"),
        ("added", "file", "tail"),
        ("added", "file", "tool"),
    ]  # fmt: skip
    sizes = {change.path: (change.old_size, change.size) for change in changes}
    assert (sizes["data"], sizes["gone"], sizes["new"]) == ((2, 3), (5, 0), (0, 4))
    assert repr(changes) == "<Changes of /repo: 7 added, 3 modified, 3 deleted, 1 mode>"
    assert "X run.sh\n" in changes.summary
    assert (len(changes), changes[0].path, bool(changes)) == (14, "d", True)


@pytest.mark.parametrize(
    "script",
    [
        "cat src/a.py >/dev/null; ls -R",
        "cp src/a.py x; mv x src/a.py",
        "chmod 600 run.sh; touch run.sh; chmod 640 run.sh",
        "mv src s; mv s src",
        "rm gone; echo gone > gone",
        "echo x >> gone; sed -i '$d' gone",
    ],
)
def test_what_is_as_it_was_is_no_change(sandbox: Sandbox, script: str) -> None:
    changes = changed(sandbox, script)
    assert (list(changes), changes.diff(), str(changes), changes.summary) == ([], "", "", "")


def test_the_diff(sandbox: Sandbox) -> None:
    changes = changed(
        sandbox, "sed -i 's/^7$/seven/' src/a.py; rm gone; chmod +x run.sh; ln -sf x link; printf 'a\\0' > data"
    )
    assert str(changes) == changes.diff() == (
        "diff --git a/data b/data\n"
        "Binary files a/data and b/data differ\n"
        "diff --git a/gone b/gone\n"
        "deleted file mode 100644\n"
        "--- a/gone\n"
        "+++ /dev/null\n"
        "@@ -1 +0,0 @@\n"
        "-gone\n"
        "diff --git a/link b/link\n"
        "--- a/link\n"
        "+++ b/link\n"
        "@@ -1 +1 @@\n"
        "-run.sh\n"
        "\\ No newline at end of file\n"
        "+x\n"
        "\\ No newline at end of file\n"
        "diff --git a/run.sh b/run.sh\n"
        "old mode 100644\n"
        "new mode 100755\n"
        "diff --git a/src/a.py b/src/a.py\n"
        "--- a/src/a.py\n"
        "+++ b/src/a.py\n"
        "@@ -5,7 +5,7 @@\n"
        " 4\n 5\n 6\n-7\n+seven\n 8\n 9\n 10\n"
    )  # fmt: skip
    assert changes.diff("src").startswith("diff --git a/src/a.py b/src/a.py\n")
    with pytest.raises(ValueError, match="nothing was changed at 'sr'"):
        changes.diff(["sr"])


def test_git_applies_the_diff(sandbox: Sandbox, repo: Path, tmp_path: Path) -> None:
    shutil.copytree(repo, tmp_path / "copy", symlinks=True)
    changes = changed(
        sandbox,
        EVERYTHING + "; rm -r d; echo 'ü' > 'odd \"name\"'; rm link; echo file > link; printf 'x\\r\\n' >> src/a.py",
    )
    subprocess.run(["git", "apply", "-"], input=changes.diff().encode(), cwd=tmp_path / "copy", check=True)
    changes.apply(repo)
    assert tree(repo) == tree(tmp_path / "copy")


def test_nothing_hides_in_a_diff(sandbox: Sandbox) -> None:
    sandbox.files.write("evil", "a\x1b[2Jb\n\u202etxt\u2066\nx\ry\nok\r\n\u200b\ttab \u3000 wide\n\x85\u2028end\n")
    sandbox.files.write("a\nb\x1b[2J", "x")
    text = sandbox.changes("/repo").diff()
    assert "+a\\x1b[2Jb\n+\\u202etxt\\u2066\n+x\\ry\n+ok\r\n+\\u200b\ttab \u3000 wide\n+\\x85\\u2028end\n" in text
    assert 'diff --git "a/a\\012b\\033[2J" "b/a\\012b\\033[2J"\n' in text
    assert "\x1b" not in text


def test_bytes_that_are_no_text_are_shown_escaped() -> None:
    assert [*render_file("f", None, (0o100644, b"caf\xe9\n"))][-1] == "+caf\\xe9"
    assert show("plain ü\t") == "plain ü\t"


def test_a_large_file_is_named(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "SHOWN_MAX", 10)
    changes = changed(sandbox, "echo more >> src/a.py; rm gone")
    assert "Files a/src/a.py and b/src/a.py differ: too large to show\n" in changes.diff()
    assert "-gone\n" in changes.diff()


def test_unlike_files_cost_little() -> None:
    first, second = (b"".join(b"%d\n" % (n * factor % 99991) for n in range(50_000)) for factor in (7919, 104729))
    lines = list(render_file("f", (0o100644, first), (0o100644, second)))
    assert sum(line.startswith("-") for line in lines[3:]) == sum(line.startswith("+") for line in lines[3:])


# Applying.


def test_all_is_applied(sandbox: Sandbox, repo: Path) -> None:
    inside = repo.parent / "inside"
    changes = changed(sandbox, EVERYTHING)
    assert changes.apply(repo) == [change.path for change in changes]
    sandbox.files.download("/repo", inside)
    assert {path: value for path, value in tree(repo).items() if path != "link"} == tree(inside)
    assert os.readlink(repo / "link") == "src/a.py"
    assert (repo / "run.sh").stat().st_mode & 0o777 == 0o750
    assert changes.apply(repo) == []  # it is all there
    assert list(sandbox.changes("/repo")) == []


@pytest.mark.parametrize(
    "script",
    [
        "rm -r src; echo file > src",
        "rm gone; mkdir gone; echo x > gone/x",
        "rm gone; ln -s run.sh gone",
        "rm link; echo file > link",
        "rm -r src; ln -s . src",
        "mv src a; mv run.sh src",
        "rm -r *",
    ],
)
def test_a_file_becomes_something_else(sandbox: Sandbox, repo: Path, script: str) -> None:
    changes = changed(sandbox, script)
    changes.apply(repo)
    assert list(sandbox.changes("/repo")) == []
    names = sandbox.exec("find . -mindepth 1 | sort | cut -c3-").stdout.split()
    assert sorted(tree(repo)) == names


def test_some_paths_are_applied(sandbox: Sandbox, repo: Path) -> None:
    changes = changed(sandbox, EVERYTHING)
    assert changes.apply(repo, ["src/a.py", "d"]) == ["d", "d/empty", "src/a.py"]
    assert changes.apply(repo, "gone") == ["gone"]
    assert (repo / "run.sh").stat().st_mode & 0o777 == 0o640
    with pytest.raises(ValueError, match="nothing was changed"):
        changes.apply(repo, ["src/b"])
    with pytest.raises(TypeError):
        changes.apply(repo, [1])  # type: ignore[list-item]


def test_a_part_of_an_overlay(sandbox: Sandbox, repo: Path) -> None:
    changes = changed(sandbox, "echo x > src/new; echo y > top", "/repo/src")
    assert [change.path for change in changes] == ["new"]
    assert changes.apply(repo / "src") == ["new"]


def test_what_was_read_is_what_is_applied(sandbox: Sandbox, repo: Path) -> None:
    changes = changed(sandbox, "echo harmless > new")
    sandbox.exec("echo evil > new; echo evil > .envrc; ln -sf /etc src/x").check()
    assert changes.apply(repo) == ["new"]
    assert (repo / "new").read_text() == "harmless\n"


def test_the_sandbox_goes_on_after_it(sandbox: Sandbox, repo: Path) -> None:
    changed(sandbox, EVERYTHING).apply(repo)
    assert sandbox.exec("cat moved/b.py; stat -c %a run.sh").stdout == "b\n751\n"
    changes = changed(sandbox, "echo 1 >> src/a.py; echo 2 >> moved/b.py; echo 3 >> run.sh; rm new")
    assert listed(changes) == [
        ("modified", "file", "moved/b.py"),
        ("deleted", "file", "new"),
        ("modified", "file", "run.sh"),
        ("modified", "file", "src/a.py"),
    ]
    assert len(changes.apply(repo)) == 4


def leftovers(repo: Path) -> list[str]:
    return [str(path) for path in repo.rglob(".belljar*")]


def link_instead(path: Path, target: str) -> None:
    path.rename(path.with_name("aside"))
    path.symlink_to(target)


CONFLICTS: dict[str, tuple[str, Callable[[Path], object]]] = {
    "modified": ("echo x >> src/a.py", lambda repo: (repo / "src/a.py").write_text("mine")),
    "modified, and gone": ("echo x >> src/a.py", lambda repo: (repo / "src/a.py").unlink()),
    "deleted": ("rm gone", lambda repo: (repo / "gone").write_text("mine")),
    "added": ("echo x > new", lambda repo: (repo / "new").write_text("mine")),
    "mode": ("chmod +x run.sh", lambda repo: (repo / "run.sh").write_text("mine")),
    "a symlink instead": ("echo x >> gone", lambda repo: link_instead(repo / "gone", "run.sh")),
    "a symlink above": ("echo x >> src/a.py", lambda repo: link_instead(repo / "src", "aside")),
    "a directory that is needed": ("rm -r src; echo x > src", lambda repo: (repo / "src/mine").write_text("mine")),
    "a fifo": ("echo x > new", lambda repo: os.mkfifo(repo / "new")),
}


@pytest.mark.parametrize("what", CONFLICTS)
def test_a_conflict_changes_nothing(sandbox: Sandbox, repo: Path, what: str) -> None:
    script, meanwhile = CONFLICTS[what]
    changes = changed(sandbox, f"{script}; echo other > other")
    meanwhile(repo)
    before = tree(repo)
    with pytest.raises(ConflictError) as error:
        changes.apply(repo)
    assert len(error.value.conflicts) == 1
    assert error.value.conflicts[0] in str(error.value)
    assert not (repo / "other").exists()
    assert leftovers(repo) == []
    assert tree(repo) == before
    assert changes.apply(repo, "other") == ["other"]


def test_an_original_that_changed_before_the_diff_is_a_conflict(sandbox: Sandbox, repo: Path) -> None:
    """The sandbox's copy does not have that change: to apply it would take it back."""
    sandbox.exec("echo guest >> src/a.py").check()
    (repo / "src/a.py").write_text("mine\n" + NUMBERS)
    changes = sandbox.changes("/repo")
    assert [(change.path, change.conflict) for change in changes] == [("src/a.py", True)]
    assert "# changed on the host since the sandbox copied it\n" in changes.diff()
    with pytest.raises(ConflictError):
        changes.apply(repo)
    assert changes.apply(repo, trust=["conflict"]) == ["src/a.py"]
    assert list(sandbox.changes("/repo")) == []


def test_a_failure_leaves_all_as_it_was(sandbox: Sandbox, repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes = changed(sandbox, EVERYTHING)
    before = tree(repo)

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("belljar.api.local_host.LocalTree.make_symlink", full)
    with pytest.raises(OSError, match="No space"):
        changes.apply(repo)
    assert tree(repo) == before


PROTECTED = {
    "echo x > .envrc": "environment",
    "mkdir -p .git/hooks; echo x > .git/hooks/pre-commit": "git",
    "mkdir -p x/objects x/refs; echo ref: refs/heads/main > x/HEAD": "bare-repository",
    "echo 'gitdir: x' > .git": "git",
    "ln -s /etc/passwd x": "symlink",
    "ln -s ../../x src/x": "symlink",
    "ln -s src/deep/../../../x x": "symlink",
    "ln -s .git/hooks/pre-commit x": "symlink",
    "mkdir .vscode; ln -s ../run.sh .vscode/tasks.json": "editor",
}


@pytest.mark.parametrize("script", PROTECTED)
def test_what_the_rules_name_is_refused(sandbox: Sandbox, repo: Path, script: str) -> None:
    changes = changed(sandbox, f"{script}; echo other > other")
    before = tree(repo)
    assert {change.rule for change in changes} >= {PROTECTED[script], None}
    assert f"# protected by the rule {PROTECTED[script]!r}" in changes.diff()
    with pytest.raises(ProtectedFileError, match=PROTECTED[script]) as error:
        changes.apply(repo)
    assert tree(repo) == before
    assert {file.rule for file in error.value.refused} == {PROTECTED[script]}
    assert changes.apply(repo, "other") == ["other"]
    assert changes.apply(repo, trust=[PROTECTED[script]])
    assert list(sandbox.changes("/repo")) == []


def test_a_protected_file_is_not_removed(sandbox: Sandbox, repo: Path) -> None:
    (repo / ".envrc").write_text("mine")
    changes = changed(sandbox, "rm .envrc")
    with pytest.raises(ProtectedFileError):
        changes.apply(repo)
    assert changes.apply(repo, trust=[".envrc"]) == [".envrc"]


def test_a_second_name_is_not_changed(sandbox: Sandbox, repo: Path) -> None:
    os.link(repo / "gone", repo.parent / "second")
    changes = changed(sandbox, "echo evil > gone")
    with pytest.raises(ProtectedFileError, match="second-name"):
        changes.apply(repo)
    changes.apply(repo, trust=["second-name"])
    assert (repo.parent / "second").read_text() == "gone\n"


def test_links_within_are_applied(sandbox: Sandbox, repo: Path) -> None:
    changed(sandbox, "ln -s ../run.sh src/up; ln -s src/a.py down; ln -s nowhere dangling").apply(repo)
    assert [os.readlink(repo / name) for name in ("src/up", "down", "dangling")] == ["../run.sh", "src/a.py", "nowhere"]


# Elsewhere.


@pytest.mark.parametrize("path", ["/workspace", "/repo/gone", "/proc"])
def test_only_overlays_have_changes(sandbox: Sandbox, path: str) -> None:
    with pytest.raises(SandboxError, match=r"not a directory of an overlay: mount yours by Mount\.overlay"):
        sandbox.changes(path)
    with pytest.raises(SandboxError, match="No such file"):
        sandbox.changes("/none")


def test_other_overlays_have_changes(tmp_path: Path) -> None:
    (tmp_path / "up").mkdir()
    (tmp_path / "low").mkdir()
    (tmp_path / "low/f").write_text("1\n")
    mounts = {
        "/m": Mount.overlay(Mount.memory()),
        "/h": Mount.overlay(Mount.host(str(tmp_path / "low")), Mount.host(str(tmp_path / "up"), read_only=False)),
    }
    with Sandbox(mounts=mounts) as sandbox:
        assert listed(changed(sandbox, "echo x > /m/f", "/m")) == [("added", "file", "f")]
        assert listed(changed(sandbox, "echo 2 >> /h/f", "/h")) == [("modified", "file", "f")]
        branch = sandbox.fork()
        assert listed(changed(branch, "echo x > /m/g", "/m")) == [("added", "file", "f"), ("added", "file", "g")]
        assert len(sandbox.changes("/m")) == 1
        branch.close()


def test_asynchronously(repo: Path) -> None:
    async def main() -> Changes:
        async with AsyncSandbox(mounts={"/repo": Mount.overlay(Mount.host(str(repo)))}) as sandbox:
            await sandbox.exec("echo x > new; rm gone", cwd="/repo")
            return await sandbox.changes("/repo")

    changes = asyncio.run(main())
    assert changes.diff().count("diff --git") == 2
    assert changes.apply(repo) == ["gone", "new"]
    assert (repo / "new").read_text() == "x\n"


def test_many_changes_come_in_pages(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    assert len(changed(sandbox, "mkdir many; cd many; touch $(seq 10100)")) == 10101
    monkeypatch.setattr(review, "CHANGES_MAX", 9000)
    with pytest.raises(SandboxError, match="ask for a part"):
        sandbox.changes("/repo")


def test_too_much_is_refused(sandbox: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "BYTES_MAX", 1000)
    monkeypatch.setattr(review, "PIECE", 100)
    assert changed(sandbox, "head -c 900 /dev/zero > big; rm src/a.py").diff().count("\n-") == 41
    with pytest.raises(SandboxError, match="too large"):
        changed(sandbox, "head -c 900 /dev/zero > more")


def test_nobody_waits_for_the_writer_of_a_fifo(sandbox: Sandbox) -> None:
    sandbox.exec("mkfifo fifo").check()
    assert sandbox.files.read_bytes("fifo") == b""


# What a lost worker may say.


def answers(*given: object) -> Changes:
    """The changes that these answers make."""
    steps = review.changes("/repo", set(), Offers(threading.RLock()))
    next(steps)
    try:
        for answer in given:
            steps.send(answer)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    raise AssertionError("it asks for more")


@pytest.mark.parametrize(
    "rows",
    [
        None,
        7,
        [7],
        [[b"a", 0o100644, 0]],
        [["a", 0o100644, 0, False]],
        [[b"a", -1, 0, False]],
        [[b"a", 1 << 70, 0, False]],
        [[b"a", 0, 0o200000, False]],
        [[b"../a", 0o40755, 0, False]],
        [[b"/etc/passwd", 0o40755, 0, False]],
        [[b"a//b", 0o40755, 0, False]],
        [[b"", 0o40755, 0, False]],
        [[b"a/./b", 0o40755, 0, False]],
        [[b"a\0", 0o40755, 0, False]],
        [[b"a", 0o40755, 0, 1]],
        [[b"a" * (65 << 20), 0o40755, 0, False]],
    ],
)
def test_a_list_of_another_form_is_an_error(rows: object) -> None:
    with pytest.raises(SandboxError):
        answers(rows)


def test_pages_that_do_not_go_on_are_an_error() -> None:
    page = [[b"%05d" % number, 0o40755, 0, False] for number in range(10_000)]
    with pytest.raises(SandboxError):
        answers(page, page)


@pytest.mark.parametrize("piece", [None, [b"x"], ["x", True], [b"x", 1], [b"x" * 2000, False]])
def test_contents_of_another_form_or_without_end_are_an_error(piece: object, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(review, "BYTES_MAX", 10_000)
    monkeypatch.setattr(review, "READ_MAX", 10_000)
    for modes in ((0o100644, 0), (0, 0o100644)):
        with pytest.raises(SandboxError):
            answers([[b"a", *modes, False]], *[piece] * 6)


def test_a_lie_about_the_original_is_a_conflict(repo: Path) -> None:
    row = [b"gone", 0o100644, 0o100644, False]
    changes = answers([row], [b"harmless\n+evil\n", True], [b"harmless\n", True])
    assert "-gone" not in changes.diff()
    with pytest.raises(ConflictError):
        changes.apply(repo)


def test_a_lie_about_the_mode_is_a_conflict(repo: Path) -> None:
    for row in ([b"gone", 0o40755, 0, False], [b"gone", 0, 0o40755, False]):
        with pytest.raises(ConflictError):
            answers([row]).apply(repo)
    assert (repo / "gone").read_text() == "gone\n"
