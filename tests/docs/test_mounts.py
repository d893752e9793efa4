"""The server of docs/mounts.md runs as pasted, and prints what it says; so do the commands."""

import re
import subprocess
import sys
from pathlib import Path

from belljar.kernel.vfs.credentials import Credentials
from tests.adapter import new_session, put, run_command

GUIDE = Path(__file__).parents[2] / "docs" / "mounts.md"


def test_the_server_runs_as_pasted() -> None:
    snippet = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.S)[-1]
    printed = re.findall(r"prints\n\n```\n(.*?)```", GUIDE.read_text(), re.S)[0]
    done = subprocess.run([sys.executable, "-c", snippet], capture_output=True, text=True, timeout=240)
    assert done.stdout.rstrip() == printed.rstrip(), done.stderr


def test_the_commands_run_as_pasted() -> None:
    commands = re.findall(r"```\n(mount .*?)```", GUIDE.read_text(), re.S)[0]
    session = new_session()
    session.credentials = Credentials()
    for path in ("/data/f", "/opt/more/g", "/mnt/data/h", "/x/i", "/tmp/s/j"):
        put(session, path, b"")
    result = run_command(session, ["bash", "-c", commands + "ls /tmp/s /mnt/data /usr/local/bin /x"], cwd="/")
    assert (result.stdout.decode(), result.stderr.decode()) == (
        "/mnt/data:\nf\n\n/tmp/s:\n\n/usr/local/bin:\n\n/x:\nf\n",
        "",
    )
