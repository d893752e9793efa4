"""Sandboxes where something that most systems have is missing: /proc, or Python's own allocator."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's")

PROGRAM = """
import sys
from belljar import Sandbox
from belljar.api import workers
from belljar.owner.supervisor_host import Supervisor
if sys.argv[1:]:
    workers.shared = Supervisor(sys.argv[1:])
with Sandbox(files={"a": "one\\ntwo\\n"}) as first, Sandbox() as second:
    assert first.exec("sort -r a | tr o 0 > b; cat b").stdout == "tw0\\n0ne\\n"
    assert first.files.read("b") == "tw0\\n0ne\\n"
    assert second.exec("ls").stdout == ""
    result = second.exec("while :; do :; done", timeout=0.2)
    assert result.timed_out, result
    with first.fork() as branch:
        assert branch.exec("echo more >> b; cat b").stdout == "tw0\\n0ne\\nmore\\n"
    assert first.exec("cat b").stdout == "tw0\\n0ne\\n"
print("done")
"""


def run(*command: str, env: dict[str, str] | None = None) -> None:
    inherited = {name: value for name, value in os.environ.items() if name != "BELLJAR_CACHE"}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=False, env={**inherited, **(env or {})}
    )
    assert (done.stdout, done.returncode) == ("done\n", 0), done.stderr


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root may mount")
@pytest.mark.skipif(shutil.which("unshare") is None, reason="there is no unshare(1)")
def test_without_proc() -> None:
    hide = 'mount -t tmpfs none /proc && [ -z "$(ls -A /proc)" ] && exec "$@"'
    run("unshare", "--mount", "sh", "-c", hide, "sh", sys.executable, "-c", PROGRAM)


def test_without_pymalloc() -> None:
    """In the owner, and in the zygote, which ignores the owner's environment."""
    plain = ["env", "PYTHONMALLOC=malloc", sys.executable, "-P", "-s", "-m", "belljar.zygote.zygote_host"]
    run(sys.executable, "-c", PROGRAM, *plain, env={"PYTHONMALLOC": "malloc"})


def test_where_home_is_read_only(tmp_path: Path) -> None:
    """The archive of modules is kept among the temporary files."""
    run(sys.executable, "-c", PROGRAM, env={"HOME": "/proc", "XDG_CACHE_HOME": "/proc/cache", "TMPDIR": str(tmp_path)})
    (cache,) = tmp_path.iterdir()
    assert [path.name.partition("-")[0] for path in cache.iterdir()] == ["modules"]


def test_where_nothing_can_be_written() -> None:
    """Not even that: everything is imported each time."""
    directories = dict.fromkeys(("HOME", "XDG_CACHE_HOME", "BELLJAR_CACHE", "TMPDIR"), "/proc/none")
    run(sys.executable, "-c", PROGRAM, env=directories)
