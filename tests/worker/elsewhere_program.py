"""What a program may expect of belljar on a system without Linux's walls: `python elsewhere_program.py PLATFORM`."""
# ruff: noqa: E402 - the system is changed before anything is imported

from __future__ import annotations

import sys
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "src")]

from tests.worker import elsewhere

platform = sys.argv[1]
elsewhere.pretend(platform)

import asyncio
import threading
import time
from collections.abc import Callable

import belljar
from belljar import (
    AsyncSandbox,
    EngineUnavailable,
    IsolationUnavailable,
    Limits,
    Mount,
    Network,
    Sandbox,
    SandboxClosed,
    SandboxCreationError,
    SandboxError,
)
from belljar.owner import launch_host, spawn_host

spawn_host.WORKER = elsewhere.prelude(platform) + launch_host.WORKER  # type: ignore[attr-defined]


def fails(error: type[BaseException], words: str, work: Callable[[], object]) -> None:
    said = None
    try:
        work()
    except error as caught:
        said = str(caught)
    assert said is not None, f"no {error.__name__}"
    assert words in said, said


def commands() -> None:
    with Sandbox(files={"a": "1\n"}, env={"X": "y"}) as sandbox:
        assert sandbox.exec("echo hi").stdout == "hi\n"
        assert sandbox.exec("seq 100000 | sort -rn | head -n 2; cat a; echo $X").stdout == "100000\n99999\n1\ny\n"
        assert sandbox.exec("false").exit_code == 1
        assert len(sandbox.exec("head -c 3000000 /dev/zero").stdout) == 3000000
        assert sandbox.exec(["cat"], stdin=b"x" * 3000000).stdout == "x" * 3000000
        assert sandbox.exec("sleep 10", timeout=0.3).timed_out
        spent = sandbox.exec("while :; do :; done", limits=Limits(cpu_seconds=0.5))
        assert spent.limit in ("cpu_seconds", "steps"), spent
        sandbox.files.write("b", b"\0\xff" * 1000)
        assert sandbox.files.read_bytes("b") == b"\0\xff" * 1000
        process = sandbox.spawn("cat")
        process.stdin.write("line\n")
        assert process.stdout.next_chunk() == b"line\n"
        process.stdin.close()
        assert process.wait(20) == 0
        terminal = sandbox.pty("bash --norc")
        terminal.write("echo $((6*7)); exit\n")
        assert terminal.wait(20) == 0
        sandbox.exec(
            "git init -q r && cd r && echo x > f && git add f && git -c user.name=a -c user.email=b commit -qm m"
        )
        shown = sandbox.exec("git -C r log --format=%s; jq -n 1+1; sqlite3 :memory: 'select 3'", merge_stderr=True)
        assert shown.stdout == "m\n2\n3\n", shown


def tools() -> None:
    def shout(text: str) -> str:
        return text.upper()

    with Sandbox(tools={"shout": shout}, mounts={"/data": Mount.memory()}) as sandbox:
        assert sandbox.exec("shout --text hi; echo x > /data/x; cat /data/x").stdout == "HI\nx\n"


def honesty() -> None:
    with Sandbox() as sandbox:
        info = sandbox.info
        assert info.isolation == (), info
        assert {"user", "network", "mount", "rlimits", "seccomp", "landlock", "cgroup"} <= set(info.missing), info
        fails(SandboxError, "on Linux only", sandbox.fork)
        shown = sandbox.exec("python3 -c 1; node -e 1")
        assert "needs Linux" in shown.stderr, shown
        fails(EngineUnavailable, "needs Linux", lambda: sandbox.python.run("1"))
        fails(EngineUnavailable, "needs Linux", lambda: sandbox.js.run("1"))
    fails(IsolationUnavailable, "seccomp", lambda: Sandbox(require={"seccomp"}))
    fails(IsolationUnavailable, "cgroup", lambda: Sandbox(require={"cgroup"}))
    fails(SandboxCreationError, "on Linux only", lambda: Sandbox(network=Network.allow("example.com")))
    fails(SandboxCreationError, "only Linux has", lambda: Sandbox(mounts={"/host": Mount.host("/tmp")}))


def ends() -> None:
    sandbox = Sandbox()
    worker = sandbox._link.worker
    seen: list[BaseException] = []

    def wait() -> None:
        try:
            sandbox.exec("sleep 100")
        except SandboxClosed as error:
            seen.append(error)

    thread = threading.Thread(target=wait)
    thread.start()
    time.sleep(0.3)
    sandbox.close()
    thread.join(20)
    assert len(seen) == 1
    assert not worker.alive
    other = Sandbox()
    other.exec("echo")
    other._link.worker._process.kill()  # type: ignore[attr-defined]
    fails(SandboxClosed, "ended unexpectedly", lambda: other.exec("echo"))


async def asynchronous() -> None:
    async with AsyncSandbox() as sandbox:
        results = await asyncio.gather(*(sandbox.exec(f"echo {i}") for i in range(10)))
        assert [result.stdout for result in results] == [f"{i}\n" for i in range(10)]
        await sandbox.files.write("big", b"x" * (8 << 20))
        assert (await sandbox.exec("wc -c < big")).stdout.strip() == str(8 << 20)
        assert len((await sandbox.exec("cat big")).stdout) == 8 << 20
        assert (await sandbox.info()).isolation == ()


for part in (commands, tools, honesty, ends):
    part()
asyncio.run(asynchronous())
used = elsewhere.LINUX_ONLY & set(sys.modules)
assert not used, used
sys.stdout.write(f"all of it works on {platform} with belljar {belljar.__version__}\n")
