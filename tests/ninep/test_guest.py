"""Programs of the sandbox that serve files, in Python and JavaScript, by the library: the guide's examples."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from belljar import Sandbox
from belljar.engines.owner.wasm_build_host import build

pytestmark = pytest.mark.slow

GUIDE = Path(__file__).parents[2] / "docs" / "file-servers.md"
WAIT = "for i in $(seq 900); do test -e /mnt/srv/notes && break; sleep 0.1; done; mkdir -p /tmp/m"
USE = (
    f"{WAIT}; mount /mnt/srv/notes /tmp/m && cd /tmp/m && cat hello.txt && cat count && grep -rn needle . | sort;"
    "echo first >journal; echo second >>journal; cat count journal; ls live; cat live/b;"
    "cat broken; touch new; cat nope;"
    "stat -c '%a %s %U' hello.txt journal docs; cp -r docs /tmp/copy; cat /tmp/copy/deep/c"
)
SHOWS = (
    "hello\n0\n./docs/a:1:a needle\n./docs/deep/c:1:another needle\n"
    "13\nfirst\nsecond\na\nb\nB"
    "444 6 agent\n644 13 agent\n555 0 agent\nanother needle\n"
)


def example(language: str) -> str:
    """The guide's program in a language."""
    (found,) = re.findall(rf"```{language} title=\"serve\.\w+\"\n(.*?)```", GUIDE.read_text(), re.S)
    return str(found)


@pytest.mark.parametrize(("language", "name", "command"), [("python", "s.py", "python3"), ("js", "s.mjs", "node")])
def test_a_program_serves_a_tree(language: str, name: str, command: str) -> None:
    with Sandbox(files={f"/workspace/{name}": example(language)}) as sandbox:
        server = sandbox.spawn([command, name])
        done = sandbox.exec(USE, timeout=200)
        assert done.stdout == SHOWS, done.stderr
        for error in ("cat: broken: Input/output error", "touch: cannot touch 'new': Permission denied",
                      "cat: nope: No such file or directory"):  # fmt: skip
            assert error in done.stderr
        read = "import os; print(sorted(os.listdir('/tmp/m/docs')), open('/tmp/m/hello.txt').read(), end='')"
        sandbox.exec("sudo mount --system /mnt/srv/notes /tmp/m", check=True)
        seen = sandbox.exec(["python3", "-c", read], timeout=60)
        assert seen.stdout == "['a', 'deep'] hello\n", seen.stderr
        assert sandbox.exec("cat /tmp/m/hello.txt").stdout == "hello\n", "for every later command"
        server.kill("KILL")
        server.wait()
        dead = sandbox.exec("cat /tmp/m/hello.txt; echo alive")
        assert (dead.stdout, dead.stderr) == ("alive\n", "cat: /tmp/m/hello.txt: Input/output error\n")
        assert b"oops" in server.stderr.read(), "what a function of the program's raised"


def test_a_webassembly_program_serves_a_tree(tmp_path: Path) -> None:
    source = tmp_path / "server"
    source.mkdir()
    (source / "serve.c").write_text(example("c"))
    (built,) = build(source, tmp_path / "out", lambda _name, _seconds: None)
    with Sandbox(files={"/usr/local/bin/serve": (built.path.read_bytes(), 0o755)}) as sandbox:
        sandbox.spawn("serve")
        done = sandbox.exec(
            f"{WAIT}; mount /mnt/srv/notes /tmp/m && cd /tmp/m; ls -R . ; cat note; echo hello >note; cat docs/note;"
            "grep -rl hello . | sort; cat docs/nope; stat -c '%i' note; ls -i note",
            timeout=200,
        )
        lines = done.stdout.splitlines()
        assert lines[:-2] == [
            ".:", "docs", "note", "", "./docs:", "note", "written nothing yet", "hello", "./docs/note", "./note"
        ], done.stderr  # fmt: skip
        assert lines[-1].split() == [lines[-2], "note"]
        assert "cat: docs/nope: No such file or directory" in done.stderr
