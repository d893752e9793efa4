"""Sandboxes on odd machines: they start, and say which layers are missing; or they say clearly what to change.

Each environment is made by the system's own tools around a Python of its own. docs/reliability.md has the table.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from belljar.lockdown.layers import ON_DEMAND
from tests.escape.oracles import needs_own_descriptors
from tests.rooms import ROOT

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="the walls are Linux's"),
    pytest.mark.skipif(shutil.which("setpriv") is None, reason="needs util-linux"),
]

PROGRAM = """
import json, os, sys
import belljar

with belljar.Sandbox() as sandbox:
    status = f"/proc/{sandbox._link.pid}/status"
    with sandbox.fork() as branch:
        forked = branch.exec("echo b").stdout
    report = {
        "out": sandbox.exec("echo a | tr a b").stdout,
        "forked": forked,
        "layers": sorted(sandbox.info.isolation),
        "status": open(status).read() if os.path.exists(status) else "",
    }
with open(sys.argv[1], "w") as file:
    json.dump(report, file)
"""

ALWAYS = {"rlimits", "no_new_privs", "seccomp"}
NAMESPACES = {"network", "ipc", "mount"}
OF_A_NAMESPACES_ROOT = NAMESPACES if os.geteuid() == 0 else NAMESPACES | {"user"}
"""That it is nobody outside is a wall: not if it is the machine's root there."""
NO_CAPABILITIES = re.compile(r"CapInh:\t0+\nCapPrm:\t0+\nCapEff:\t0+\nCapBnd:\t\w+\nCapAmb:\t0+\n")
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="takes away what only root has")

USER = [
    "setpriv", "--reuid=12345", "--regid=12345", "--clear-groups", "--bounding-set=-all,+dac_read_search",
    "--inh-caps=-all,+dac_read_search", "--ambient-caps=-all,+dac_read_search",
]  # fmt: skip
"""An ordinary user, who may read the interpreter of these tests wherever it is."""
# Linux counts processes, and descriptors on their way, by user, and those of tests that run beside this one would
# count, too: also those of this file, which another process of the same run may be at.
A_USER_OF_ITS_OWN, ANOTHER_USER_OF_ITS_OWN = (
    [part.replace("12345", str(first + os.getpid() % 20_000)) for part in USER] if os.geteuid() == 0 else []
    for first in (20_000, 40_000)
)
# The checkout may lie below /tmp. Mounting follows no path to where it was, which would lead into the new /tmp.
AN_EMPTY_DEV = (
    'cd "$1" && mount -t tmpfs tmpfs /tmp && mkdir -p "$1" && mount -c --bind . "$1" && mount -t tmpfs tmpfs /dev && '
    'shift && cd / && exec "$@"'
)
NO_CAPABILITIES_LEFT = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"]
MAY_NOT_CHANGE_IDS = ["setpriv", "--bounding-set=-setuid,-setgid", "--inh-caps=-setuid,-setgid"]
MAY_NOT_CHANGE_UID = ["setpriv", "--bounding-set=-setuid", "--inh-caps=-setuid"]
ROOT_IN_A_NAMESPACE = ["unshare", "-Ur"]
NO_MORE_NAMESPACES = [*ROOT_IN_A_NAMESPACE, "sh", "-c", 'echo 0 >/proc/sys/user/max_user_namespaces; exec "$@"', "sh"]


def start(
    place: Path, prefix: Sequence[str], *, program: str = PROGRAM, **options: Any
) -> subprocess.CompletedProcess[bytes]:
    place.chmod(0o777)
    command = [*prefix, sys.executable, "-c", program, str(place / "report")]
    return subprocess.run(command, capture_output=True, timeout=120, check=False, **options)


def report(place: Path, prefix: Sequence[str], **options: Any) -> dict[str, Any]:
    done = start(place, prefix, **options)
    assert done.returncode == 0, done.stderr.decode()
    found: dict[str, Any] = json.loads((place / "report").read_text())
    assert found["out"] == "b\n"
    assert found["forked"] == "b\n"
    assert set(found["layers"]) >= ALWAYS
    return found


@pytest.mark.battery(sample=2)
@pytest.mark.parametrize(
    ("prefix", "expected"),
    [
        pytest.param(NO_CAPABILITIES_LEFT, NAMESPACES, id="root without capabilities", marks=as_root),
        pytest.param(MAY_NOT_CHANGE_IDS, NAMESPACES, id="root without CAP_SETUID and CAP_SETGID", marks=as_root),
        pytest.param(MAY_NOT_CHANGE_UID, NAMESPACES, id="root without CAP_SETUID", marks=as_root),
        pytest.param(ROOT_IN_A_NAMESPACE, OF_A_NAMESPACES_ROOT, id="root of a user namespace"),
        pytest.param([*ROOT_IN_A_NAMESPACE, *NO_CAPABILITIES_LEFT], NAMESPACES, id="the same without capabilities"),
        pytest.param(NO_MORE_NAMESPACES, set[str](), id="no user namespaces"),
        pytest.param(USER, NAMESPACES | {"user"}, id="an ordinary user", marks=as_root),
        pytest.param([*USER, "--no-new-privs"], NAMESPACES | {"user"}, id="no_new_privs already", marks=as_root),
    ],
)
def test_privileges_that_cannot_be_dropped(tmp_path: Path, prefix: list[str], expected: set[str]) -> None:
    found = report(tmp_path, prefix)
    assert set(found["layers"]) - ALWAYS - ON_DEMAND - {"landlock"} == expected
    assert NO_CAPABILITIES.search(found["status"]), "a sandbox never has a capability"


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&-", "<&- 2>&-", ">&- 2>&-", "<&- >&- 2>&-"])
def test_closed_standard_descriptors(tmp_path: Path, closed: str) -> None:
    report(tmp_path, ["sh", "-c", f'exec "$@" {closed}', "sh"])


@pytest.mark.parametrize("closed", ["<&-", "2>&-", "<&- 2>&-"])
def test_closed_standard_descriptors_of_a_command_line(tmp_path: Path, closed: str) -> None:
    command = [sys.executable, "-m", "belljar.cli", "run", "--no-daemon", "echo a; cat"]
    done = subprocess.run(["sh", "-c", f'exec "$@" {closed}', "sh", *command], capture_output=True, timeout=120)
    assert done.stdout == b"a\n"
    assert done.returncode == 0


@as_root
def test_proc_hides_other_users(tmp_path: Path) -> None:
    # A mount of its own: remounting would change the machine's.
    mount = ["unshare", "-m", "sh", "-c", 'mount -t proc -o hidepid=2 proc /proc && exec "$@"', "sh"]
    report(tmp_path, [*mount, *USER])


@as_root
@pytest.mark.parametrize("prefix", [[], USER], ids=["root", "an ordinary user"])
def test_there_is_no_proc(tmp_path: Path, prefix: list[str]) -> None:
    found = report(tmp_path, ["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh", *prefix])
    assert "user" not in found["layers"], "its map is written by /proc"
    assert {"network", "ipc"} <= set(found["layers"])


def test_little_address_space(tmp_path: Path) -> None:
    report(tmp_path, ["prlimit", "--as=1500000000"])


def test_engines_say_that_they_need_address_space(tmp_path: Path) -> None:
    pytest.importorskip("wasmtime")
    program = "import belljar, sys; r = belljar.Sandbox().exec('python3 -c 1'); sys.exit(r.exit_code)"
    done = start(tmp_path, ["prlimit", "--as=1500000000"], program=program)
    assert done.returncode == 127
    assert b"RLIMIT_AS is 1500000000, but engines reserve much address space" in done.stderr


@needs_own_descriptors
def test_few_descriptors(tmp_path: Path) -> None:
    report(tmp_path, ["prlimit", "--nofile=64", *A_USER_OF_ITS_OWN])
    report(tmp_path, ["sh", "-c", 'ulimit -Sn 16; exec "$@"', "sh"])


MANY = """
import belljar, sys

sandboxes = []
try:
    while True:
        sandboxes.append(belljar.Sandbox())
except belljar.SandboxError as error:
    print(len(sandboxes), sandboxes[0].exec("echo a").stdout, error)
"""


@needs_own_descriptors
def test_too_few_descriptors_are_a_clear_error(tmp_path: Path) -> None:
    done = start(tmp_path, ["prlimit", "--nofile=16", *A_USER_OF_ITS_OWN], program=MANY)
    assert re.match(rb"[1-9] a\n", done.stdout), done.stderr.decode()
    assert b"RLIMIT_NOFILE is 16: raise it" in done.stdout
    assert done.returncode == 0


@pytest.mark.parametrize("prefix", [["env", "-u", "HOME"], ["env", "HOME=/nonexistent/home"], ["env", "HOME="]])
def test_home_is_of_no_use(tmp_path: Path, prefix: list[str]) -> None:
    report(tmp_path, [*prefix, *(USER if os.geteuid() == 0 else [])], cwd=tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["report"]


GREENLETS = """
from gevent import monkey; monkey.patch_all()
import gevent, json, sys
import belljar

def work(number):
    with belljar.Sandbox() as sandbox, sandbox.fork() as branch:
        return sandbox.exec(f"sleep 0.05; echo {number}").stdout + branch.exec("echo b").stdout

jobs = [gevent.spawn(work, number) for number in range(4)]
gevent.joinall(jobs, timeout=60)
json.dump([job.get(block=False) for job in jobs], open(sys.argv[1], "w"))
"""


def test_gevent(tmp_path: Path) -> None:
    pytest.importorskip("gevent")
    done = start(tmp_path, [], program=GREENLETS)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads((tmp_path / "report").read_text()) == [f"{number}\nb\n" for number in range(4)]


UVLOOP = """
import asyncio, json, sys
import uvloop
import belljar

async def main():
    async with belljar.AsyncSandbox() as sandbox:
        done = await asyncio.gather(*[sandbox.exec(f"echo {number}") for number in range(5)])
        async with await sandbox.fork() as branch:
            done.append(await branch.exec("echo b"))
    json.dump([each.stdout for each in done], open(sys.argv[1], "w"))

uvloop.run(main())
"""


def test_uvloop(tmp_path: Path) -> None:
    pytest.importorskip("uvloop")
    done = start(tmp_path, [], program=UVLOOP)
    assert done.returncode == 0, done.stderr.decode()
    assert json.loads((tmp_path / "report").read_text()) == [*(f"{number}\n" for number in range(5)), "b\n"]


@pytest.mark.battery(sample=2)
@pytest.mark.parametrize(
    "prefix",
    [
        pytest.param(ROOT_IN_A_NAMESPACE, id="root of a user namespace"),
        pytest.param(NO_MORE_NAMESPACES, id="no user namespaces"),
        pytest.param(["prlimit", "--nofile=16"], id="16 descriptors"),
        pytest.param(["prlimit", "--as=300000000"], id="300 MB of address space"),
        pytest.param(["prlimit", "--nproc=1", *ANOTHER_USER_OF_ITS_OWN], id="no processes", marks=as_root),
        pytest.param(["env", "-i"], id="no environment"),
        pytest.param(["unshare", "-m", "sh", "-c", 'umount -l /proc && exec "$@"', "sh"], id="no proc", marks=as_root),
        pytest.param([*NO_CAPABILITIES_LEFT], id="no capabilities", marks=as_root),
        pytest.param(
            ["unshare", "-m", "sh", "-c", AN_EMPTY_DEV, "sh", str(ROOT)],
            id="an empty /dev",
            marks=as_root,
        ),
    ],
)
def test_doctor_survives(tmp_path: Path, prefix: list[str]) -> None:
    command = [*prefix, sys.executable, "-m", "belljar.cli", "doctor"]
    done = subprocess.run(command, capture_output=True, timeout=300, cwd="/", check=False)
    said = done.stdout.decode() + done.stderr.decode()
    assert "Walls around a sandbox" in said
    assert "Traceback" not in said
    works = "yes  virtual" in said
    assert done.returncode == (0 if works else 1)
    assert works or "Problems" in said
