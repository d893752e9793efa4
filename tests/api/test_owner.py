"""Whatever talks to a process of ours belongs to one process: a forked child of it gets a clear error."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable

import pytest

from belljar import AsyncSandbox, Sandbox, SandboxClosed, js, python

pytestmark = pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")


def in_child(act: Callable[[], str]) -> str:
    """What a forked child makes of it; it must come to an end."""
    reading, writing = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            said = act()
        except BaseException as error:  # noqa: BLE001
            said = f"{type(error).__name__}: {error}"
        os.write(writing, said.encode()[:4000])
        os._exit(0)
    os.close(writing)
    deadline = time.monotonic() + 120
    while os.waitpid(pid, os.WNOHANG) == (0, 0):
        if time.monotonic() > deadline:
            os.kill(pid, 9)
            os.waitpid(pid, 0)
            os.close(reading)
            return "it hangs"
        time.sleep(0.01)
    with os.fdopen(reading, "rb") as pipe:
        return pipe.read().decode()


def check_refused(said: str) -> None:
    assert said.startswith("SandboxClosed: this "), said
    assert "belongs to the process that this one was forked from" in said


ACTS: dict[str, Callable[[Sandbox], object]] = {
    "exec": lambda sandbox: sandbox.exec("echo x"),
    "files": lambda sandbox: sandbox.files.read("/etc/passwd"),
    "spawn": lambda sandbox: sandbox.spawn("true"),
    "python": lambda sandbox: sandbox.python.run("1"),
    "python precompile": lambda sandbox: sandbox.python.precompile("x = 1"),
    "js": lambda sandbox: sandbox.js.run("1"),
    "js precompile": lambda sandbox: sandbox.js.precompile("1"),
    "js save": lambda sandbox: sandbox.js.save(),
    "fork": lambda sandbox: sandbox.fork(),
    "stats": lambda sandbox: sandbox.stats(),
}


@pytest.mark.parametrize("what", ACTS)
def test_a_child_has_no_part_in_a_sandbox(what: str) -> None:
    with Sandbox() as sandbox:
        sandbox.python.run("x = 1")
        sandbox.js.run("let x = 1")
        check_refused(in_child(lambda: str(ACTS[what](sandbox))))
        assert sandbox.python.run("x").value == 1
        assert sandbox.js.run("x").value == 1
        assert sandbox.exec("echo ours").stdout == "ours\n"


def test_a_child_has_no_part_in_interpreters_of_their_own() -> None:
    with js() as alone, python() as guest:
        alone.run("let n = 0")
        guest.run("n = 0")
        prefix = alone.precompile("var p = 1")
        check_refused(in_child(lambda: str(alone.run("n"))))
        check_refused(in_child(lambda: str(prefix.run("export default p"))))
        check_refused(in_child(lambda: str(guest.run("n"))))
        assert alone.run("n").value == 0
        assert prefix.run("export default p").value == 1
        assert guest.run("n").value == 0


def test_answers_are_never_mixed() -> None:
    """Child and parent run at once: each value is the parent's own."""
    with js() as alone:
        alone.run("let n = 0")
        pid = os.fork()
        if pid == 0:
            for number in range(50):
                with_suppressed(lambda number=number: alone.run(f"'child {number}'"))  # type: ignore[misc]
            os._exit(0)
        values = [alone.run(f"'parent {number}'").value for number in range(50)]
        os.waitpid(pid, 0)
        assert values == [f"parent {number}" for number in range(50)]


def with_suppressed(act: Callable[[], object]) -> None:
    try:
        act()
    except SandboxClosed:
        return


@pytest.mark.parametrize("code", ["python", "js", "exec"])
def test_a_child_does_not_wait_for_what_a_thread_of_its_parent_does(code: str) -> None:
    with Sandbox() as sandbox:
        runs: dict[str, Callable[[], object]] = {
            "python": lambda: sandbox.python.run("import time; time.sleep(2)"),
            "js": lambda: sandbox.js.run("await new Promise(done => setTimeout(done, 2000))"),
            "exec": lambda: sandbox.exec("sleep 2"),
        }
        thread = threading.Thread(target=runs[code])
        thread.start()
        time.sleep(0.7)
        check_refused(in_child(lambda: str(runs[code]())))
        thread.join()


def test_a_child_makes_its_own() -> None:
    def make() -> str:
        with Sandbox() as sandbox:
            return f"{sandbox.exec('echo mine').stdout.strip()} {sandbox.js.run('6 * 7').value}"

    with Sandbox() as sandbox:
        sandbox.js.run("1")
        assert in_child(make) == "mine 42"


def test_a_child_holds_no_descriptor_of_ours() -> None:
    def sockets() -> int:
        return sum(os.readlink(f"/proc/self/fd/{fd}").startswith("socket:") for fd in present())

    def present() -> list[str]:
        return [fd for fd in os.listdir("/proc/self/fd") if os.path.islink(f"/proc/self/fd/{fd}")]

    before = int(in_child(lambda: str(sockets())))
    with Sandbox() as sandbox, js() as alone:
        sandbox.js.run("1")
        sandbox.python.run("1")
        alone.precompile("1")
        # Those of the templates and of the zygote may stay; none leads to a process that works for a sandbox.
        assert int(in_child(lambda: str(sockets()))) <= before + 8


def test_the_asynchronous_front() -> None:
    async def main() -> None:
        async with AsyncSandbox() as sandbox:
            await sandbox.js.run("let x = 1")
            await sandbox.python.run("x = 1")

            def elsewhere(act: Callable[[], object]) -> str:
                async def run() -> str:
                    return str(await act())  # type: ignore[misc]

                return in_child(lambda: asyncio.run(run()))

            check_refused(elsewhere(lambda: sandbox.exec("echo x")))
            check_refused(elsewhere(lambda: sandbox.js.run("x")))
            check_refused(elsewhere(lambda: sandbox.python.run("x")))
            check_refused(elsewhere(lambda: sandbox.files.read("/etc/passwd")))
            assert (await sandbox.exec("echo ours")).stdout == "ours\n"
            assert (await sandbox.js.run("x")).value == 1

    asyncio.run(main())
