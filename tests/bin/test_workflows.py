"""Whole tasks as agents do them: a Makefile project, a git workflow, a data task; and what real git says to ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from belljar.abi.records import Dirent
from tests.adapter import new_session, put, run, run_command

IDENTITY = {
    "GIT_AUTHOR_NAME": "Ann", "GIT_AUTHOR_EMAIL": "ann@x.org", "GIT_COMMITTER_NAME": "Ann",
    "GIT_COMMITTER_EMAIL": "ann@x.org", "GIT_AUTHOR_DATE": "2020-01-02T03:04:05Z",
    "GIT_COMMITTER_DATE": "2020-01-02T03:04:05Z",
}  # fmt: skip


def real_git(directory: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run the git of this machine as nobody has set it up: no settings of its user, nor a hook's GIT_DIR."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    return subprocess.run(["git", *words], cwd=directory, env=environment, capture_output=True, text=True, check=False)


def test_makefile_project() -> None:
    files = {
        "/tmp/w/Makefile": (
            "SRC := $(wildcard src/*.txt)\nOUT := $(patsubst src/%.txt,build/%.out,$(SRC))\n"
            "all: report\nreport: $(OUT)\n\tcat $^ > $@\n\t@wc -l < $@\n"
            "build/%.out: src/%.txt | build\n\ttr a-z A-Z < $< > $@\nbuild:\n\tmkdir -p $@\n"
            "test: report\n\t@grep -q HELLO report && echo PASS\n"
            ".PHONY: all test clean\nclean:\n\trm -rf build report\n"
        ),
        "/tmp/w/src/a.txt": "hello\n",
        "/tmp/w/src/b.txt": "world\n",
    }
    out, err, status = run("make && make && make test && touch src/a.txt && make && make clean && ls", {}, files, b"")
    assert (err, status) == (b"", 0)
    assert out.decode().split("\n") == [
        "mkdir -p build",
        "tr a-z A-Z < src/a.txt > build/a.out",
        "tr a-z A-Z < src/b.txt > build/b.out",
        "cat build/a.out build/b.out > report",
        "2",
        "make: Nothing to be done for 'all'.",
        "PASS",
        "tr a-z A-Z < src/a.txt > build/a.out",
        "cat build/a.out build/b.out > report",
        "2",
        "rm -rf build report",
        "Makefile",
        "src",
        "",
    ]


WORKFLOW = """
set -e
git init -q -b main; mkdir d; printf '1\\n2\\n3\\n' >f; echo x >d/g; ln -s f l; git add .; git commit -qm base
git checkout -q -b side; sed -i s/2/side/ f; git commit -qam side
git checkout -q main; sed -i s/2/main/ f; git commit -qam main
git merge side && exit 1
git status -s; printf '1\\nboth\\n3\\n' >f; git add f; git commit -qm merged
git tag -a v1 -m one; echo 4 >>f; git stash -q; git log --oneline --graph
"""


def test_git_workflow() -> None:
    out, _, status = run(WORKFLOW.replace("set -e", ""), IDENTITY, {"/tmp/w": ("dir",)}, b"")
    assert status == 0
    lines = out.decode().split("\n")
    assert (
        lines[:4]
        == [
            "Auto-merging f",
            "CONFLICT (content): Merge conflict in f",
            "Automatic merge failed; fix conflicts and then commit the result.",
            "UU f",
        ]
        or lines[0] == "Auto-merging f"
    )
    assert [line.split()[0] for line in lines[-7:-1]] == ["*", "|\\", "|", "*", "|/", "*"]


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed here")
def test_real_git_accepts_our_repository(tmp_path: Path) -> None:
    session = new_session(IDENTITY)
    put(session, "/tmp/w", ("dir",))
    script = WORKFLOW.replace("git merge side && exit 1", "git merge side || true")
    result = run_command(session, ["bash", "-c", script], cwd="/tmp/w", env=IDENTITY)
    assert result.status == 0, result.stderr
    process = session.kernel.init

    def export(source: str, target: Path) -> None:
        target.mkdir(exist_ok=True)
        entry: Dirent
        for entry in process.fs.readdir(source):
            path = f"{source}/{entry.name}"
            stat = process.fs.stat(path, follow=False)
            if stat.is_dir:
                export(path, target / entry.name)
            elif stat.is_symlink:
                (target / entry.name).symlink_to(process.fs.readlink(path))
            else:
                (target / entry.name).write_bytes(process.read_file(path))

    export("/tmp/w", tmp_path / "w")

    work = tmp_path / "w"
    checked = real_git(work, "fsck", "--full", "--strict")
    assert checked.returncode == 0, checked.stderr + checked.stdout
    assert real_git(work, "status", "--porcelain").stdout == ""
    assert real_git(work, "log", "--format=%s", "-1").stdout == "merged\n"
    assert "stash@{0}: WIP on main" in real_git(work, "stash", "list").stdout


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed here")
def test_packs_of_real_git_are_read(tmp_path: Path) -> None:
    def git(*args: str) -> None:
        done = real_git(tmp_path, "-c", "user.name=a", "-c", "user.email=a@b", *args)
        assert done.returncode == 0, done.stderr

    git("init", "-q", "-b", "main")
    for number in range(3):
        (tmp_path / "f").write_text("\n".join(str(n) for n in range(200 + number)))
        git("add", "f")
        git("commit", "-qm", f"c{number}")
    git("gc", "-q")
    session = new_session()
    for path in tmp_path.rglob("*"):
        if path.is_file():
            put(session, f"/tmp/w/{path.relative_to(tmp_path)}", path.read_bytes())
    result = run_command(
        session, ["bash", "-c", "git log --format=%s; git show HEAD~2:f | wc -l; git status -s"], cwd="/tmp/w"
    )
    assert result.stdout == b"c2\nc1\nc0\n199\n", result.stderr


def test_data_task() -> None:
    script = """
mkdir in; seq 1 5 | while read i; do echo "$i user$i" >in/u$i.txt; done
printf '1 10\\n2 20\\n3 30\\n5 50\\n' >in/amounts.dat
tar -czf data.tgz in; rm -r in; tar -xzf data.tgz
find in -name 'u*.txt' -exec cat {} + | sort >users
awk '{ s[$1] += $2 } END { for (k in s) print k, s[k] }' in/amounts.dat | sort >sums
join users sums | awk '{ printf "{\\"name\\":\\"%s\\",\\"sum\\":%d}\\n", $2, $3 }' | jq -c 'select(.sum > 15)'
"""
    out, err, status = run(script, {}, {"/tmp/w": ("dir",)}, b"")
    assert (err, status) == (b"", 0)
    assert out == b'{"name":"user2","sum":20}\n{"name":"user3","sum":30}\n{"name":"user5","sum":50}\n'
