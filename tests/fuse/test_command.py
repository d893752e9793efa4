"""`belljar mount` and `belljar unmount`, in a namespace where they may mount."""

import os
import sys
import time
from pathlib import Path

import pytest

from belljar.store.store import Store
from tests.contract.calls import write
from tests.contract.servers import memory, view_of
from tests.fuse.inside import Namespace
from tests.state.test_snapshot import take

COMMAND = f"cd {Path(__file__).parents[2]} && exec {sys.executable} -m belljar.cli"

HELPER = """#!{python}
import array, os, socket, sys
sys.path.insert(0, {source!r})
from belljar.fuse import mount_host
import ctypes
if sys.argv[1] == "-u":
    sys.exit(ctypes.CDLL(None).umount2(sys.argv[-1].encode(), 2) and 1)
directory, options = sys.argv[-1], sys.argv[2]
if directory.endswith("refused"):
    sys.exit("fusermount3: mount failed: Operation not permitted")
fd = os.open("/dev/fuse", os.O_RDWR)
mount_host.mount_device(fd, directory, "helper", read_only="ro" in options.split(","))
with socket.socket(fileno=int(os.environ["_FUSE_COMMFD"])) as connection:
    connection.sendmsg([b"x"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))])
"""


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A snapshot with a file in the root, and one in a second tree at /data."""
    path = tmp_path / "store.db"
    root, data = memory(), memory()
    write(view_of(root), "/a", b"hello\n")
    view_of(root).mkdir("/data")
    write(view_of(data), "/b", b"of the second tree\n")
    made = Store.sqlite(path)
    take(made, (b"/", root), (b"/data", data), label="one")
    made.close()
    return path


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    made = tmp_path / "shown"
    made.mkdir()
    return made


def wait_until_mounted(namespace: Namespace, directory: Path) -> None:
    deadline = time.monotonic() + 60
    while namespace.call("stat", f"{directory}/a") == "!ENOENT" and time.monotonic() < deadline:
        time.sleep(0.05)


def test_in_the_background(namespace: Namespace, store: Path, directory: Path) -> None:
    namespace.run(f"{COMMAND} mount one {directory} --store {store} --background")
    out = namespace.run(f"cd {directory} && cat a data/b && find . | sort && touch a; echo $?")
    assert out.splitlines()[:7] == [
        "hello",
        "of the second tree",
        ".",
        "./a",
        "./data",
        "./data/b",
        out.splitlines()[6],
    ]
    assert "Read-only file system" in out
    namespace.run(f"{COMMAND} unmount {directory}")
    assert namespace.run(f"ls {directory}") == ""
    status, out = namespace.call("run", f"{COMMAND} unmount {directory}", 60.0)
    assert (status, b"no mount of belljar" in out) == (125, True)


@pytest.mark.parametrize("number", ["INT", "TERM"])
def test_in_the_foreground(namespace: Namespace, store: Path, directory: Path, number: str) -> None:
    """With --write: changes show, and are gone with the mount. A signal ends it."""
    pid = namespace.call("spawn", f"{COMMAND} mount one {directory} --store {store} --write")
    wait_until_mounted(namespace, directory)
    out = namespace.run(f"cd {directory} && echo more >> a && cat a && rm data/b && mkdir data/c && ls data")
    assert out.split() == ["hello", "more", "c"]
    namespace.run(f"kill -{number} {pid}")
    status, out = namespace.call("wait", pid, 60.0)
    assert status == 0, out
    assert b"one is at" in out
    assert namespace.run(f"ls {directory}") == ""


def test_a_signal_that_comes_while_it_is_stopped(namespace: Namespace, store: Path, directory: Path) -> None:
    """Whichever of its threads runs first then takes it."""
    pid = namespace.call("spawn", f"{COMMAND} mount one {directory} --store {store}")
    wait_until_mounted(namespace, directory)
    namespace.run(f"kill -STOP {pid}; until grep -q 'State:.T' /proc/{pid}/status; do sleep 0.01; done")
    namespace.run(f"kill -INT {pid}; kill -CONT {pid}")
    status, out = namespace.call("wait", pid, 60.0)
    assert status == 0, out
    assert namespace.run(f"ls {directory}") == ""


def test_a_killed_server_leaves_what_can_be_unmounted(namespace: Namespace, store: Path, directory: Path) -> None:
    pid = namespace.call("spawn", f"{COMMAND} mount one {directory} --store {store}")
    wait_until_mounted(namespace, directory)
    namespace.run(f"kill -KILL {pid}")
    namespace.call("wait", pid, 60.0)
    assert b"not connected" in namespace.call("run", f"ls {directory}", 60.0)[1]
    namespace.run(f"{COMMAND} unmount {directory}")
    assert namespace.run(f"ls {directory}") == ""


@pytest.mark.parametrize("how", ["", "--background"])
def test_what_is_not_there(namespace: Namespace, store: Path, directory: Path, how: str) -> None:
    for wanted, place, why in (
        ("two", directory, b"A sandbox that runs can't be mounted by its name"),
        ("one", directory / "no", b"it is no directory"),
    ):
        status, out = namespace.call("run", f"{COMMAND} mount {wanted} {place} --store {store} {how}", 60.0)
        assert (status, why in out) == (125, True), out


def test_by_the_helper(namespace: Namespace, store: Path, directory: Path, tmp_path: Path) -> None:
    """As an ordinary user does it; what fusermount3 does is done by a program of ours here."""
    helper = tmp_path / "bin" / "fusermount3"
    helper.parent.mkdir()
    source = str(Path(__file__).parents[2] / "src")
    helper.write_text(HELPER.format(python=sys.executable, source=source))
    helper.chmod(0o755)
    script = (
        "import os,sys\nos.geteuid=lambda: 1000\nfrom belljar.cli.__main__ import main\n"
        f"sys.exit(main(['mount','one','{directory}','--store','{store}','--background']))"
    )
    path = f"PATH={helper.parent}:$PATH"
    namespace.run(f'{path} {sys.executable} -c "{script}"')
    assert namespace.run(f"cat {directory}/a") == "hello\n"
    namespace.run(
        f"""{path} {sys.executable} -c "{script.replace("'mount','one'", "'unmount'").split(",'--store'")[0]}]))" """
    )
    assert namespace.run(f"ls {directory}") == ""
    refused = tmp_path / "refused"
    refused.mkdir()
    status, out = namespace.call(
        "run", f'{path} {sys.executable} -c "{script}"'.replace(str(directory), str(refused)), 60.0
    )
    assert (status, b"mount failed: Operation not permitted" in out) == (125, True), out
    status, out = namespace.call("run", f'PATH={os.devnull} {sys.executable} -c "{script}"', 60.0)
    assert (status, b"install the package fuse3" in out) == (125, True), out
