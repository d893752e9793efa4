"""Native programs in a virtual sandbox: real compilers on its files, by its shell. BELLJAR_WHOLE=1 kills 200."""

from __future__ import annotations

import asyncio
import hashlib
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from belljar import AsyncSandbox, Event, Image, Limits, Mount, Network, Sandbox, SandboxError
from belljar.net.policy import Conn
from tests.native.conftest import needs_native
from tests.native.test_mounts import wait_for
from tests.net.servers import Authority, GitServer, HttpServer

pytestmark = needs_native
KILLED = 200 if os.environ.get("BELLJAR_WHOLE") else 30
MAIN = (
    '#include "count.h"\n#include <stdio.h>\n'
    'int main(void) { for (int i = 0; i < 3; i++) printf("line %d\\n", count(i)); return 3; }\n'
)
PROJECT: dict[str, str | tuple[bytes, int]] = {
    "/workspace/main.c": MAIN,
    "/workspace/count.c": "int count(int i) { return 9 - i; }\n",
    "/workspace/count.h": "int count(int);\n",
    "/workspace/Makefile": "prog: main.o count.o\n\tgcc -o $@ $^\n%.o: %.c\n\tgcc -c $<\n",
    "/workspace/configure": (
        b'#!/bin/sh\nfor dir in $(echo $PATH | tr : " "); do test -x $dir/gcc && { echo "CC = $dir/gcc" > config.mk;'
        b" exit 0; }; done; exit 1\n",
        0o755,
    ),
}
WAIT = "perl -e '$|=1; print qq(up\\n); sleep 60'"
UP = "> up & until [ -s up ]; do sleep 0.05; done; cat up; rm up"
"""After a program: run it in the background until it has said something, and show that."""


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(native=["*", "make"], image=Image.host()) as made:
        yield made


def out(sandbox: Sandbox, command: str) -> str:
    result = sandbox.exec(command)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def processes(sandbox: Sandbox) -> int:
    """Processes that a program sees: pid 1, the program itself, the one that waits for it, and those of others."""
    return int(out(sandbox, "perl -e 'opendir D, q(/proc); print scalar grep { /^[0-9]+$/ } readdir D'"))


def children(pid: int) -> set[int]:
    return {int(each) for each in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()}


def test_a_c_project_from_the_virtual_shell() -> None:
    with Sandbox(native=["*", "make"], image=Image.host(), files=PROJECT) as sandbox:
        assert out(sandbox, "./configure && make -j2 && ./prog | sort").endswith("line 7\nline 8\nline 9\n")
        assert out(sandbox, "cat config.mk") == "CC = /usr/bin/gcc\n"
        assert sandbox.exec("./prog").exit_code == 3
        assert out(sandbox, "make") == "make: 'prog' is up to date.\n"
        sandbox.files.write("/workspace/count.c", "int count(int i) { return 5 + i; }\n")
        assert out(sandbox, "make -s prog && ./prog | head -1") == "line 5\n"
        assert out(sandbox, "stat -c '%U %a' prog") == "agent 755\n"


def test_names_and_nothing_else() -> None:
    with Sandbox(native=["gcc"], files=PROJECT) as sandbox:
        assert sandbox.exec("gcc -o prog main.c count.c").exit_code == 0
        refused = sandbox.exec("./prog")
        assert refused.exit_code == 126
        assert "cannot execute binary file" in refused.stderr
        assert 'native="*"' in refused.stderr
        assert sandbox.exec("as --version").exit_code == 127


def test_a_sandbox_without_the_argument_runs_none() -> None:
    with Sandbox() as sandbox:
        assert sandbox.exec("as --version").exit_code == 127


def test_the_argument_is_checked() -> None:
    for wrong in ("gcc", 3, [3], ["a/b"], [""]):
        with pytest.raises((TypeError, ValueError), match="native="):
            Sandbox(native=wrong)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="native="):
        Sandbox(native=["gcc"], tier="native")
    with pytest.raises(SandboxError):
        Sandbox(native=["gcc"], image=Image())


def test_it_sees_the_image_and_this_sandbox_and_nothing_of_the_host(sandbox: Sandbox, tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("host")
    out(sandbox, "echo mine > /tmp/mine; echo home > ~/own")
    assert out(sandbox, "perl -e 'open F, q(/tmp/mine); print <F>'") == "mine\n"
    assert out(sandbox, "perl -e 'print join q( ), sort glob q(/home/agent/*)'") == "/home/agent/own"
    assert sandbox.exec(f"perl -e 'open F, q({tmp_path}/secret) or die; print <F>'").exit_code != 0
    wait_for(lambda: processes(sandbox) <= 5)  # what an earlier test killed may take a moment to end
    assert sandbox.exec("perl -e 'open F, q(>/usr/x) or exit 9'").exit_code == 9
    assert sandbox.exec("perl -e 'open F, q(>/x) or exit 9'").exit_code == 9
    network = "perl -MIO::Socket::INET -e 'IO::Socket::INET->new(q(1.1.1.1:80)) or exit 9'"
    assert sandbox.exec(network).exit_code == 9


@pytest.mark.parametrize("size", [0, 1, 70_000, 20 << 20])
def test_pipes_in_both_directions(sandbox: Sandbox, size: int) -> None:
    data = random.Random(size).randbytes(size)
    sandbox.files.write("/workspace/data", data)
    digest = hashlib.sha256(data).hexdigest()
    copy = "perl -e 'binmode STDIN; print while read STDIN, $_, 65536'"
    assert out(sandbox, f"cat data | {copy} | {copy} | sha256sum").split()[0] == digest
    assert out(sandbox, f"{copy} < data > copy; sha256sum copy").split()[0] == digest
    assert sandbox.exec(copy, stdin=data).stdout_bytes == data


def test_input_that_it_does_not_read_is_left_to_others(sandbox: Sandbox) -> None:
    loop = "while read x; do perl -e 'print q(p)'; echo $x; done"
    assert out(sandbox, f"seq 5 | {loop}") == "p1\np2\np3\np4\np5\n"
    assert out(sandbox, f"seq 5 > five; {loop} < five") == "p1\np2\np3\np4\np5\n"
    assert out(sandbox, "seq 5 | { perl -e 'sysread STDIN, $x, 2'; cat; }") == "2\n3\n4\n5\n"
    assert out(sandbox, "head -c 3000000 /dev/zero | { perl -e 'sysread STDIN, $x, 9'; wc -c; }") == "2999991\n"


def test_exit_codes_and_signals(sandbox: Sandbox) -> None:
    assert sandbox.exec("perl -e 'exit 7'").exit_code == 7
    assert sandbox.exec("perl -e 'kill 15, $$'").exit_code == 143
    assert out(sandbox, f"{WAIT} {UP}; kill %1; wait %1; echo $?") == "up\n143\n"
    assert out(sandbox, f"{WAIT} {UP}; kill -9 %1; wait %1; echo $?") == "up\n137\n"
    caught = "perl -e '$SIG{USR1} = sub { print STDERR qq(caught\\n); exit 5 }; $|=1; print qq(up\\n); sleep 60'"
    assert out(sandbox, f"{caught} 2>&1 {UP}; kill -USR1 %1; wait %1; echo $?") == "up\ncaught\n5\n"
    assert out(sandbox, "perl -e 'print qq(y\\n) while 1' | head -2; echo ${PIPESTATUS[@]}") == "y\ny\n141 0\n"
    assert (
        out(sandbox, "set -m; perl -e 'sleep 60' & sleep 0.2; kill -STOP %1; sleep 0.1; kill -9 %1; wait; echo ok")
        == "ok\n"
    )
    assert sandbox.exec("perl -e 'print STDERR 1; print 2' 2>/dev/null").stdout == "2"


def test_environment_and_directory(sandbox: Sandbox) -> None:
    assert (
        out(sandbox, "mkdir -p 'a b'; cd 'a b'; X='1 2' perl -MCwd -e 'print getcwd, $ENV{X}'") == "/workspace/a b1 2"
    )
    assert out(sandbox, "cd /usr/lib; perl -MCwd -e 'print getcwd'") == "/usr/lib"
    assert out(sandbox, "mkdir -p /later; cd /later; perl -MCwd -e 'print getcwd'") == "/later"
    running = sandbox.exec(f"{WAIT} {UP}; mkdir -p /latest; cd /latest; perl -e 1; code=$?; kill -9 %1; exit $code")
    assert running.exit_code == 126
    assert "/latest" in running.stderr


def test_a_terminal(sandbox: Sandbox) -> None:
    terminal = sandbox.pty("bash --norc", rows=30, cols=100)
    seen = b""

    def expect(text: bytes) -> None:
        nonlocal seen
        until = time.monotonic() + 60
        while text not in seen:
            assert time.monotonic() < until, seen
            try:
                seen += terminal.read(timeout=1)
            except TimeoutError:
                continue
        seen = seen.partition(text)[2]

    terminal.write("perl -e 'print -t STDIN && -t STDOUT ? qq(t) . qq(ty\\n) : qq(no\\n); system q(stty size)'\n")
    expect(b"tty\r\n")
    expect(b"30 100\r\n")
    expect(b"$ ")  # what is typed ahead is the program's
    terminal.write("perl -e '$|=1; print q(rea), qq(dy\\n); $x = <STDIN>; print qq(<$x>)'\n")
    expect(b"ready\r\n")
    terminal.write("typed\n")
    expect(b"<typed")
    expect(b"$ ")
    terminal.write("perl -e '$|=1; print q(slee), qq(ps\\n); sleep 60'\n")
    expect(b"sleeps\r\n")
    terminal.write("\x03")
    expect(b"$ ")
    terminal.write("echo status=$?\n")
    expect(b"status=130\r\n")
    expect(b"$ ")
    goes_on = "$SIG{CONT} = sub { print q(goes), qq( on\\n) }"
    terminal.write(f"perl -e '$|=1; {goes_on}; print q(slee), qq(ps\\n); sleep 60 while 1'\n")
    expect(b"sleeps\r\n")
    terminal.write("\x1a")
    expect(b"Stopped")
    expect(b"$ ")
    terminal.write("fg\n")
    expect(b"goes on\r\n")
    terminal.write("\x03")
    expect(b"$ ")
    terminal.write("echo over=$?\n")
    expect(b"over=130\r\n")
    terminal.kill("KILL")


def test_limits_are_those_of_the_exec(sandbox: Sandbox) -> None:
    began = time.monotonic()
    assert sandbox.exec("perl -e 'sleep 60'; echo no", timeout=1).limit == "wall_seconds"
    assert time.monotonic() - began < 40
    spin = "perl -e '1 while times < 0.3'"
    spun = sandbox.exec(f"for i in $(seq 60); do {spin}; done; echo no", limits=Limits(cpu_seconds=1.0))
    assert spun.limit == "cpu_seconds"
    assert "no" not in spun.stdout
    assert sandbox.exec("perl -e '1 while 1'", limits=Limits(cpu_seconds=0.5)).limit == "cpu_seconds"
    assert sandbox.exec("perl -e 'print 1 x 5000000'", limits=Limits(output_bytes=1_000_000)).limit == "output_bytes"
    forks = "perl -e 'fork && next for 1 .. 60; sleep 60'"
    assert sandbox.exec(forks, limits=Limits(processes=20), timeout=30).exit_code == 137
    assert out(sandbox, "perl -e 'print q(well)'") == "well"


def test_programs_started_and_killed_at_random(sandbox: Sandbox) -> None:
    pick = random.Random(7)
    programs = ["perl -e 'sleep 60'", "perl -e '1 while 1'", "perl -e 'print qq(y\\n) while 1' > /dev/null",
                "perl -e 'fork; fork; sleep 60'", "perl -e 'open F, q(>), qq(f$$) for 1 .. 9; exit 0'",
                "gcc -x c -c -o /dev/null - < main.c"]  # fmt: skip
    sandbox.files.write("/workspace/main.c", MAIN.replace('"count.h"', "<stdlib.h>"))
    for _ in range(0, KILLED, 10):
        lines = [f'{pick.choice(programs)} & pids="$pids $!"; sleep 0.0{pick.randrange(10)}' for _ in range(10)]
        signal = pick.choice(["KILL", "TERM", "INT"])
        ends = f"for p in $pids; do kill -{signal} $p 2>/dev/null; kill -9 $p; done; wait; echo over"
        assert sandbox.exec("\n".join([*lines, ends]), timeout=120).stdout.endswith("over\n")
    wait_for(lambda: processes(sandbox) <= 3)


def test_fork_while_one_runs() -> None:
    with Sandbox(native="*", image=Image.host()) as sandbox:
        running = sandbox.spawn(f"{WAIT}; echo ended $? >> /workspace/log")
        assert running.stdout.next_chunk(60) == b"up\n"
        with sandbox.fork() as branch:
            until = time.monotonic() + 60
            while branch.exec("cat log").stdout != "ended 137\n":
                assert time.monotonic() < until
            assert out(branch, "perl -e 'print 42'; echo branch > file") == "42"
            assert sandbox.exec("cat log file").stdout == ""
            assert out(sandbox, "perl -e 'print 43'; pgrep -c perl") == "431\n"
        assert out(sandbox, "perl -e 'print 44'") == "44"
        running.kill("KILL")


def test_closing_leaves_nothing() -> None:
    before = children(os.getpid())
    for _ in range(3):
        with Sandbox(native="*", image=Image.host()) as sandbox:
            sandbox.spawn(WAIT)
            assert out(sandbox, "perl -e 'print 1'") == "1"
            assert len(children(os.getpid()) - before) >= 1
    deadline = time.monotonic() + 60
    while any("belljar-agent" in _name(pid) for pid in children(os.getpid()) - before):
        assert time.monotonic() < deadline
    assert "belljar" not in "".join(
        line for line in Path("/proc/self/mounts").read_text().splitlines() if "fuse" in line
    )


def _name(pid: int) -> str:
    try:
        return Path(f"/proc/{pid}/cmdline").read_text()
    except OSError:
        return ""


def test_a_companion_that_dies_is_replaced(sandbox: Sandbox) -> None:
    assert out(sandbox, "perl -e 'print 1'") == "1"
    for pid in sandbox._link.engines.pids():
        if "belljar-agent" in _name(pid):
            os.kill(pid, 9)
    # Until the worker has heard of it, a program is started where none can run.
    sandbox.exec("until perl -e 1; do sleep 0.05; done", timeout=60).check()
    assert out(sandbox, "perl -e 'print 2'") == "2"


def test_a_mount_of_the_owner(tmp_path: Path) -> None:
    (tmp_path / "main.c").write_text("int main(void) { return 4; }\n")
    with Sandbox(
        native="*", image=Image.host(), mounts={"/workspace": Mount.overlay(Mount.host(str(tmp_path)))}
    ) as sandbox:
        assert sandbox.exec("gcc main.c && ./a.out").exit_code == 4
        assert not (tmp_path / "a.out").exists()
        sandbox.mount("/home/agent/in/side", Mount.host(str(tmp_path)))
        assert out(sandbox, "perl -e 'open F, q(/home/agent/in/side/main.c); print <F>'").startswith("int main")
        assert sandbox.exec("perl -e 'open F, q(>/home/agent/in/side/new) or exit 9'").exit_code == 9


def test_changes_by_native_programs_are_watched(sandbox: Sandbox) -> None:
    with sandbox.files.watch("/workspace") as changes:
        out(sandbox, "perl -e 'open F, q(>watched); print F 1'")
        assert any(change.path == "/workspace/watched" for change in [next(iter(changes))])


def test_asynchronously() -> None:
    async def run() -> None:
        async with AsyncSandbox(native="*", image=Image.host()) as sandbox:
            results = await asyncio.gather(*(sandbox.exec(f"perl -e 'print {n}'") for n in range(8)))
            assert [result.stdout for result in results] == [str(n) for n in range(8)]
            async with await sandbox.fork() as branch:
                assert (await branch.exec("perl -e 'print 9'")).stdout == "9"

    asyncio.run(run())


def test_as_root() -> None:
    with Sandbox(native="*", user="root", image=Image.host()) as sandbox:
        assert out(sandbox, "perl -e 'print $<; open F, q(>made)'; stat -c %u made") == "00\n"


def test_programs_use_the_sandboxs_network(tmp_path: Path) -> None:
    """Real curl and git: the same policy, credential and counters as the virtual side's own curl."""
    upstream = Authority(tmp_path)

    def policy(conn: Conn) -> object:
        if question := conn.match_dns("git.test"):
            return question.accept()
        if flow := conn.match_http(f"git.test:{conn.dst.port}"):
            return flow.accept(lambda request: request.headers.set("authorization", "Bearer canary"), redact=True)
        return None

    with GitServer(address="127.0.0.7", context=upstream.context("git.test")) as server:
        server.commit({"a.txt": b"one\n"}, "first")
        network = Network.policy(policy, hosts={"git.test": "127.0.0.7"}, ca_bundle=str(upstream.path))
        events: list[Event] = []
        url = f"https://git.test:{server.port}/repo.git"
        with Sandbox(native=["curl", "git"], network=network, on_event=events.append) as sandbox:
            assert out(sandbox, f"git clone -q {url} r && cat r/a.txt") == "one\n"
            assert out(sandbox, f"curl -fsS {url}/info/refs?service=git-upload-pack | head -c 4") == "001e"
            assert sandbox.exec("curl -sS https://other.test/").exit_code == 6
            assert all(request.header("authorization") == "Bearer canary" for request in server.requests)
            assert sandbox.stats()["network_requests"] >= 3
            with sandbox.fork() as branch:
                assert out(branch, f"git clone -q {url} again && cat again/a.txt") == "one\n"
            assert (
                out(sandbox, f"curl -fsSo /dev/null -w '%{{http_code}}' '{url}/info/refs?service=git-upload-pack'")
                == "200"
            )
        assert any(event.kind == "network" for event in events)
        with Sandbox(native=["curl"]) as sandbox:
            assert sandbox.exec(f"curl -sS {url}").exit_code == 6, "a sandbox without a network has none there either"


def test_the_network_of_programs_ends_with_their_companion() -> None:
    with HttpServer({"/": b"here"}, address="127.0.0.7") as server:
        network = Network.allow(f"web.test:{server.port}", hosts={"web.test": "127.0.0.7"})
        with Sandbox(native=["curl"], network=network) as sandbox:
            open_files: list[int] = []
            for number in range(4):  # each with a companion of its own: the sandbox's trees are others
                assert out(sandbox, f"curl -fsS http://web.test:{server.port}/") == "here"
                open_files.append(len(os.listdir("/proc/self/fd")))
                sandbox.mount(f"/new{number}", Mount.memory({"f": "x"}))
            wait_for(lambda: len(os.listdir("/proc/self/fd")) <= open_files[0] + 3)
