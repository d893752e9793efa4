"""Native sandboxes of an owner who is not root, as a process of user nobody makes them."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar.native.agent_build_host import agent_program
from belljar.native.launch_host import explain_refusal
from tests.native.conftest import needs_native
from tests.native.test_isolation import CASES, ENDED, SOURCE, WITH_ONE_ID

NOBODY = 65534
AS_NOBODY = """
import ctypes, faulthandler, os, signal, sys
faulthandler.register(signal.SIGALRM, chain=True)  # a program that hangs says where; without a thread, for unshare
signal.alarm(200)
from pathlib import Path
from belljar import IsolationUnavailable, Limits, Sandbox, SandboxCreationError
import belljar.native.launch_host as launch_host
launch_host.agent_program = lambda: Path(sys.argv[1]) / "belljar-agent"
def become_nobody():
    with Sandbox(tier="native") as sandbox:  # load everything while it can be read
        sandbox.files.write("x", "y")
        sandbox.exec("true")
        sandbox.stats()
        sandbox.info
    try:
        Sandbox(tier="native", require={"nonsense"})
    except IsolationUnavailable:
        pass
    os.environ["BELLJAR_CACHE"] = sys.argv[1]
    os.setgroups([])
    os.setresgid(65534, 65534, 65534)
    os.setresuid(65534, 65534, 65534)
    ctypes.CDLL(None).prctl(4, 1, 0, 0, 0)
become_nobody()
"""
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")


@pytest.fixture
def place() -> Iterator[Path]:
    """A directory of nobody's, with the agent; not pytest's own, whose way to it is closed by every other run."""
    with tempfile.TemporaryDirectory() as made:
        copy = shutil.copy(agent_program(), Path(made) / "belljar-agent")
        Path(copy).chmod(0o755)
        os.chown(made, NOBODY, NOBODY)
        yield Path(made)


def run_as_nobody(place: Path, code: str, *, first: str = "") -> str:
    """What a program says; `first` is done by root, to load what `code` needs."""
    done = subprocess.run(
        [sys.executable, "-c", first + AS_NOBODY + code, str(place)],
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@needs_native
@needs_root
def test_the_same_walls_but_for_those_that_need_root(place: Path) -> None:
    shutil.copy(SOURCE, place / "attacks.c")
    said = run_as_nobody(
        place,
        f"""
sandbox = Sandbox(tier="native")
print(*sandbox.info.missing)
print(sandbox.exec("id -u; echo > ~/file && echo > /workspace/file && echo > /tmp/file && echo written").stdout.split())
print(sandbox.exec("cat /proc/self/uid_map").stdout.split())
sandbox.files.write("attacks.c", Path({str(place / "attacks.c")!r}).read_text())
sandbox.exec("gcc -O1 -o attacks attacks.c", check=True)
for name in {list(CASES)!r}:
    result = sandbox.exec(["./attacks", name])
    print(name, result.stdout.strip() or result.exit_code)
sandbox.close()
""",
    )
    missing, written, mapped, *attacks = said.splitlines()
    assert missing == "ids cgroup cgroup_cpu cgroup_pids"
    assert written == "['1000', 'written']"
    assert mapped == f"['1000', '{NOBODY}', '1']"
    assert len(attacks) == len(CASES)
    for line in attacks:
        name, came = line.split()
        expected = WITH_ONE_ID.get(name, CASES[name])
        assert came in ("159" if expected == ENDED else expected).split("|"), name


@needs_native
@needs_root
def test_root_inside_and_what_is_required(place: Path) -> None:
    said = run_as_nobody(
        place,
        """
with Sandbox(tier="native", user="root") as sandbox:
    print(sandbox.exec("id -un; echo > /etc/new && echo written").stdout.split())
try:
    Sandbox(tier="native", require={"ids"})
except IsolationUnavailable as error:
    print(error)
""",
    )
    first, second = said.splitlines()
    assert first == "['root', 'written']"
    assert "required isolation is not available here: ids" in second


@needs_root
def test_where_user_namespaces_are_switched_off_it_is_said_what_to_do(place: Path) -> None:
    """A user namespace in which no further ones may be made stands for such a machine."""
    said = run_as_nobody(
        place,
        """
libc = ctypes.CDLL(None, use_errno=True)
uid = os.getuid()
assert libc.unshare(0x10000000) == 0
Path("/proc/self/setgroups").write_text("deny")
Path("/proc/self/uid_map").write_text(f"0 {uid} 1")
Path("/proc/sys/user/max_user_namespaces").write_text("0")
try:
    Sandbox(tier="native")
except SandboxCreationError as error:
    print(error)
""",
    )
    assert "user.max_user_namespaces is 0: as root, sysctl -w user.max_user_namespaces=" in said
    assert "belljar doctor" in said


def test_nothing_is_said_of_switches_that_are_on() -> None:
    assert "max_user_namespaces" not in explain_refusal()


NETWORK = """
import asyncio, http.server, socketserver, threading
from belljar import Network, Sandbox
# Not an HTTPServer, which asks this machine's name server for the name of its address.
server = socketserver.ThreadingTCPServer(("127.0.0.7", 0), http.server.SimpleHTTPRequestHandler)
port = server.server_address[1]
threading.Thread(target=server.serve_forever, daemon=True).start()
def policy(conn):
    if question := conn.match_dns("api.test"):
        return question.accept()
    if flow := conn.match_http(f"api.test:{port}"):
        return flow.accept(lambda request: request.respond(200, {}, b"from middleware"))
def show():
    with Sandbox(tier="native", network=Network.policy(policy, hosts={"api.test": "127.0.0.7"})) as sandbox:
        for place in (f"api.test:{port}", "8.8.8.8", "[2606:4700::1111]", "127.0.0.7"):
            result = sandbox.exec(f"curl -sS -m 60 http://{place}/")
            print(result.stdout or result.exit_code in (7, 56))
        serve = sandbox.spawn("python3 -m http.server 8000")
        print(sandbox.port(8000).wait().get("/").status)
        print(sandbox.stats()["network_denied"])
show()
"""


@needs_native
@needs_root
def test_a_network(place: Path) -> None:
    said = run_as_nobody(place, "show()", first=NETWORK).splitlines()
    assert said[:6] == said[6:] == ["from middleware", "True", "True", "True", "200", "2"]
