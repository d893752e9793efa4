"""`sandbox.mount_on`: a live sandbox's files as a directory, in a namespace where one may mount."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.fuse.inside import Namespace

HEAD = """
import asyncio, errno, os, subprocess, sys
sys.path.insert(0, {source!r})
from belljar import AsyncSandbox, FileError, Sandbox, SandboxError
place, tier = {place!r}, {tier!r}
def look(command):
    done = subprocess.run(["sh", "-c", command], cwd=place, capture_output=True, text=True)
    return done.stdout + done.stderr
"""
SYNC = """
with Sandbox(tier=tier, files={"d/f": "one\\n", "large": b"x" * 3_000_000}) as sandbox:
    sandbox.exec("ln -s f d/l; mkfifo p; chmod 750 d; chmod 640 d/f")
    shown = sandbox.mount_on(place, ".")
    assert look("cat d/f d/l; stat -c '%F %a' d d/f d/l p; wc -c < large") == (
        "one\\none\\ndirectory 750\\nregular file 640\\nsymbolic link 777\\nfifo 644\\n3000000\\n"), look("ls -lR")
    sandbox.exec("echo two > d/f; rm large; mkdir new; touch new/$(seq -s ' new/' 300)")
    assert look("cat d/l; ls; ls new | wc -l") == "two\\nd\\nnew\\np\\n300\\n"
    assert "Read-only file system" in look("echo x > d/g")
    assert look("cat none") == "cat: none: No such file or directory\\n"
    sandbox.exec("rm -r d; echo file > d")
    assert look("cat d") == "file\\n"
    shown.close()
    shown.close()
    assert os.listdir(place) == []
    for wrong in ("/none", "/workspace/d"):
        try:
            sandbox.mount_on(place, wrong)
        except (FileError, SandboxError, OSError) as error:
            print(type(error).__name__)
    with sandbox.mount_on(place):
        assert look("cat workspace/d") == "file\\n"
    sandbox.mount_on(place)
    assert "workspace" in os.listdir(place)
assert os.listdir(place) == []
"""
ASYNC = """
async def main():
    async with AsyncSandbox(tier=tier, files={"f": "one\\n"}) as sandbox:
        await sandbox.mount_on(place, "/workspace")
        assert not subprocess._USE_VFORK, "a program could not be started in there"
        assert await asyncio.to_thread(look, "cat f") == "one\\n"
        await sandbox.exec("echo two > f")
        assert await asyncio.to_thread(look, "cat f") == "two\\n"
    assert os.listdir(place) == []
asyncio.run(main())
"""


@pytest.mark.parametrize("tier", ["virtual", "native"])
@pytest.mark.parametrize("script", [SYNC, ASYNC], ids=["sync", "async"])
def test_what_is_there_is_shown(namespace: Namespace, tmp_path: Path, script: str, tier: str) -> None:
    place = tmp_path / "shown"
    place.mkdir()
    source = str(Path(__file__).parents[2] / "src")
    program = tmp_path / "program.py"
    program.write_text(HEAD.format(source=source, place=str(place), tier=tier) + script)
    status, out = namespace.call("run", f"{sys.executable} {program}", 120.0)
    assert status == 0, out.decode()
    assert out.split() == ([b"FileError", b"FileError"] if script is SYNC else [])
