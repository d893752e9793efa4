"""Engine processes: opened by a program, forked by the owner, and never left behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from belljar import AsyncSandbox, Limits, Sandbox
from belljar.api.engines_host import ENGINES_MAX
from belljar.engines.errors import EngineUnavailable
from belljar.engines.owner.template_host import EngineLimits, Template, template
from belljar.forking.owner import process_host
from tests.escape.oracles import check_open_files, is_alive, open_files, wait_gone

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's"),
    pytest.mark.usefixtures("probes", "echo_engine"),
]


def engines_of(engine: Template) -> list[int]:
    """The live processes forked from a template."""
    assert engine.process is not None
    children = Path(f"/proc/{engine.process.pid}/task/{engine.process.pid}/children").read_text().split()
    return [int(pid) for pid in children if is_alive(int(pid))]


def wait_for_engine(engine: Template) -> int:
    deadline = time.monotonic() + 20
    while time.monotonic() < deadline:
        if engine.process is not None and (pids := engines_of(engine)):
            return pids[0]
        time.sleep(0.01)
    raise AssertionError("no engine process appeared")


def test_bytes_go_both_ways() -> None:
    with Sandbox() as sandbox:
        assert sandbox.exec("engine echo one two").stdout == "ONE\nTWO\n"
        assert sandbox.exec("engine echo a & engine echo b & wait").stdout.split() in (["A", "B"], ["B", "A"])
        assert sandbox.exec("flood").stdout == f"{8 << 20} 1000\n"


def test_the_asynchronous_front_serves_engines_too() -> None:
    async def main() -> list[str]:
        async with AsyncSandbox() as sandbox:
            results = await asyncio.gather(*(sandbox.exec(f"engine echo w{i}") for i in range(5)))
            return [result.stdout for result in results]

    assert asyncio.run(main()) == [f"W{i}\n" for i in range(5)]


def test_a_program_ends_its_engine(echo_engine: Template) -> None:
    with Sandbox() as sandbox:
        result = sandbox.exec("engine echo x spin kill y")
        assert result.stdout == "X\nspinning\ngone\n"
        assert (result.stderr, result.exit_code) == ("engine: Broken pipe\n", 1)
        assert not wait_gone(engines_of(echo_engine))
        assert sandbox.exec("engine echo exit").stdout == "gone\n"


def test_a_killed_command_takes_its_engine_along(echo_engine: Template) -> None:
    with Sandbox() as sandbox:
        sandbox.exec("engine echo x").check()  # the template's start is not to be what takes the time
        result = sandbox.exec("engine echo x spin y", timeout=2)
        assert result.timed_out
        assert not wait_gone(engines_of(echo_engine))
        process = sandbox.spawn("engine echo spin more")
        pid = wait_for_engine(echo_engine)
        process.kill("KILL")
        assert process.wait(60) == 137
        assert not wait_gone([pid])


@pytest.mark.parametrize("end", ["close", "worker"])
def test_a_sandbox_takes_its_engines_along(end: str, echo_engine: Template) -> None:
    before = open_files()
    with Sandbox() as sandbox, Sandbox() as other:
        sandbox.spawn("engine echo spin more")
        pid = wait_for_engine(echo_engine)
        if end == "close":
            sandbox.close()
        else:
            os.kill(sandbox._link.pid, signal.SIGKILL)
        assert not wait_gone([pid])
        assert other.exec("engine echo ok").stdout == "OK\n"
    check_open_files(before, more=6)  # the control sockets and error pipes of a zygote and a template


def test_a_dead_template_is_replaced(echo_engine: Template) -> None:
    with Sandbox() as sandbox:
        sandbox.exec("engine echo x")
        assert echo_engine.process is not None
        first = echo_engine.process.pid
        running = sandbox.spawn("engine echo spin more")
        assert running.stdout.next_chunk() == b"spinning\n"
        pid = wait_for_engine(echo_engine)
        os.kill(first, signal.SIGKILL)
        assert not wait_gone([pid]), "an engine outlived its template"
        assert running.stdout.read() == b"gone\n"
        assert sandbox.exec("engine echo again").stdout == "AGAIN\n"


KILLED = [sys.executable, "-I", "-c", "import os, signal; os.kill(os.getpid(), signal.SIGKILL)"]


def test_templates_are_replaced_as_often_as_they_are_killed(echo_engine: Template) -> None:
    """A caller does not notice; nor does it where the replacements are killed as well."""
    works, begun = echo_engine._server._command, list[int]()

    def command() -> list[str]:
        begun.append(1)
        return KILLED if len(begun) < 6 else list(works())

    echo_engine._server._command = command
    with Sandbox() as sandbox:
        assert sandbox.exec("engine echo x").stdout == "X\n"
        assert len(begun) == 6
        assert echo_engine.process is not None
        os.kill(echo_engine.process.pid, signal.SIGKILL)
        begun[3:] = []
        assert sandbox.exec("engine echo again").stdout == "AGAIN\n"


def test_templates_that_are_always_killed() -> None:
    """The caller's deadline ends it, with what happened."""
    template = Template(lambda: KILLED)
    with pytest.raises(EngineUnavailable, match=r"no process: it was killed \d+ times within 0.3 s: it ended"):
        template.fork(EngineLimits(1 << 30, 1, wall_seconds=0.3), {})
    assert template.process is None


def test_limits_and_count() -> None:
    with Sandbox(limits=Limits(memory_bytes=1 << 30)) as sandbox:
        assert sandbox.exec("engine echo limits").stdout == f"{1 << 30} 5\n"
        result = sandbox.exec(f"engines {ENGINES_MAX + 1}; engines 3")
        assert result.stdout == f"{ENGINES_MAX}\n3\n"
        assert "16 engine processes at a time" in result.stderr


def test_an_engine_that_is_not_there() -> None:
    with Sandbox() as sandbox:
        result = sandbox.exec("engine nonesuch x")
        assert result.exit_code == 126
        assert result.stderr.startswith("engine: there is no engine 'nonesuch'; there are: echo")
    broken = Template(lambda: [sys.executable, "-I", "-c", "raise SystemExit('no such thing here')"])
    with pytest.raises(EngineUnavailable, match="no such thing here"):
        broken.fork(EngineLimits(1 << 30, 1), {})


def test_a_template_that_fails_is_replaced_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Although it closes its socket before it ends."""
    monkeypatch.setattr(process_host, "_END_SECONDS", 60.0)  # a busy machine may take longer to end it than we wait
    begun = []
    program = "import os, sys, time; os.close(int(sys.argv[1])); time.sleep(0.2); sys.exit('no such thing here')"

    def command() -> list[str]:
        begun.append(1)
        return [sys.executable, "-I", "-c", program]

    with pytest.raises(EngineUnavailable, match="no such thing here"):
        Template(command).fork(EngineLimits(1 << 30, 1), {})
    assert len(begun) == 2


OWNER = """
import sys, time
from belljar import Sandbox
from belljar.api import workers
from belljar.engines.owner import template_host
from belljar.owner.supervisor_host import Supervisor
template_host.KINDS["echo"] = lambda: [sys.executable, "-I", sys.argv[2]]
workers.shared = Supervisor([sys.executable, "-I", sys.argv[1]])
one = Sandbox()
process = one.spawn("engine echo spin more")
assert process.stdout.next_chunk() == b"spinning\\n"
print(template_host.template("echo").process.pid, one._link.pid, flush=True)
time.sleep(60)
"""


def test_nothing_outlives_the_owner() -> None:
    here = Path(__file__).parent
    scripts = [str(here / "probe_zygote.py"), str(here.parent / "engines" / "echo_template.py")]
    owner = subprocess.Popen([sys.executable, "-c", OWNER, *scripts], stdout=subprocess.PIPE)
    assert owner.stdout is not None
    pids = [int(word) for word in owner.stdout.readline().split()]
    assert len(pids) == 2
    engines = Path(f"/proc/{pids[0]}/task/{pids[0]}/children").read_text().split()
    owner.kill()
    owner.wait()
    owner.stdout.close()
    assert engines
    assert not wait_gone([*pids, *map(int, engines)])


def test_one_template_for_all() -> None:
    assert template("echo") is template("echo")


def test_the_helper_thread_ends_with_its_sandbox() -> None:
    """Whatever it does at that moment: it stands aside after a call, and receives again a while later."""
    before = open_files()
    for turn in range(12):
        with Sandbox() as sandbox:
            assert sandbox.exec("engine echo x").stdout == "X\n"
            helper = sandbox._link._reader
            assert helper is not None
            time.sleep(turn % 4 * 0.003)
        helper.join(20)
        assert not helper.is_alive()
    check_open_files(before, more=6)


def test_what_goes_on_without_a_call_is_served(echo_engine: Template) -> None:
    with Sandbox() as sandbox:
        sandbox.exec("(sleep 0.2; engine echo x > /tmp/out; engine echo y > /tmp/done) &")
        deadline = time.monotonic() + 30
        time.sleep(1)  # nobody calls meanwhile
        while not sandbox.files.exists("/tmp/done") and time.monotonic() < deadline:
            time.sleep(0.05)
        assert sandbox.files.read("/tmp/out") == "X\n"
        assert not wait_gone(engines_of(echo_engine))


def test_a_fork_at_the_end_of_a_program_finds_no_engine(echo_engine: Template) -> None:
    with Sandbox() as sandbox:
        for _ in range(5):
            sandbox.exec("engine echo x").check()
            with sandbox.fork() as branch:
                assert branch.exec("engine echo y").stdout == "Y\n"
        assert sandbox.exec("engine echo z").stdout == "Z\n"
        assert not wait_gone(engines_of(echo_engine))
