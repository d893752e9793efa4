"""`sandbox.fork()`: independent branches of everything, live."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from belljar import AsyncSandbox, Limits, Mount, Sandbox, SandboxClosed, SandboxError
from belljar.api.events import Event
from belljar.forking.owner.process_host import ForkServerProcess
from belljar.owner.supervisor_host import shared
from tests.escape.oracles import check_open_files, open_files, wait_gone

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="workers are Linux's")


def one(sandbox: Sandbox) -> Sandbox:
    branch = sandbox.fork()
    assert isinstance(branch, Sandbox)
    return branch


def test_a_branch_has_everything_and_keeps_its_changes_to_itself() -> None:
    with Sandbox(env={"WHO": "me"}, hostname="h") as origin:
        origin.exec("echo common > a; mkdir d; ln a d/b; chmod 640 a")
        with one(origin) as branch:
            seen = "cat a d/b; stat -c '%a %h' a; hostname; echo $WHO; pwd"
            assert branch.exec(seen).stdout == origin.exec(seen).stdout
            branch.exec("echo branch > a; rm -r d")
            origin.exec("echo origin >> a")
            assert branch.exec("ls; cat a").stdout == "a\nbranch\n"
            assert origin.exec("ls; cat a").stdout == "a\nd\ncommon\norigin\n"
            assert branch.info.isolation == origin.info.isolation
            assert branch.name != origin.name


def test_a_branch_of_a_branch_outlives_both() -> None:
    with Sandbox() as origin:
        origin.exec("echo 1 > f")
        first = one(origin)
        first.exec("echo 2 >> f")
        second = one(first)
    first.close()
    with second, one(second) as third:
        second.exec("echo 3 >> f")
        assert second.exec("cat f").stdout == "1\n2\n3\n"
        assert third.exec("cat f").stdout == "1\n2\n"


def test_a_hundred_branches() -> None:
    before = open_files()
    with Sandbox() as origin:
        origin.exec("echo common > f")
        branches = origin.fork(100)
        assert isinstance(branches, list)
        pids = [branch._link.pid for branch in branches]
        assert len(set(pids)) == 100
        for number, branch in enumerate(branches):
            branch.files.write("mine", str(number))
        for number, branch in enumerate(branches):
            assert branch.exec("cat f mine").stdout == f"common\n{number}"
            branch.close()
        assert not wait_gone(pids)
        assert origin.exec("cat f; ls").stdout == "common\nf\n"
    check_open_files(before, more=4)  # the zygote, if this test is the first


def test_no_two_branches_draw_the_same_numbers() -> None:
    script = "echo $RANDOM $RANDOM $RANDOM; echo $SRANDOM; uuidgen; head -c 9 /dev/urandom | base64; mktemp -u"
    waiting = f"while [ ! -e go ]; do sleep 0.01; done; {{ {script}; shuf -i 1-1000000000000 -n 3; }} > out; touch done"
    with Sandbox() as origin:
        origin.spawn(f"RANDOM_BEFORE=$RANDOM; {waiting}")
        branches = origin.fork(3)
        assert isinstance(branches, list)
        seen: list[set[str]] = []
        for sandbox in (origin, *branches):
            said = sandbox.exec(f"touch go; while [ ! -e done ]; do sleep 0.01; done; cat out; {script}").stdout
            seen.append({line for line in said.splitlines() if len(line) > 3})
            assert len(seen[-1]) >= 10
        for i, mine in enumerate(seen):
            for other in seen[i + 1 :]:
                assert not mine & other
        for branch in branches:
            branch.close()


def test_a_seed_that_was_chosen_stays_chosen() -> None:
    with Sandbox() as origin:
        origin.spawn("RANDOM=42; touch set; while [ ! -e go ]; do sleep 0.01; done; echo $RANDOM > out; touch done")
        origin.exec("while [ ! -e set ]; do sleep 0.01; done", timeout=60)
        with one(origin) as branch:
            wait = "touch go; while [ ! -e done ]; do sleep 0.01; done; cat out"
            assert origin.exec(wait).stdout == branch.exec(wait).stdout


def test_what_runs_goes_on_in_both() -> None:
    """Shell variables, loops, pipes between processes, sleepers: all of it is state, and is there twice."""
    script = (
        "n=0; while [ ! -e stop ]; do n=$((n+1)); echo $n; sleep 0.01; done "
        "| while read -r x; do echo $x > last; done; echo end > end"
    )
    with Sandbox() as origin:
        process = origin.spawn(script)
        origin.exec("while [ ! -e last ]; do sleep 0.01; done")
        with one(origin) as branch:
            last = int(branch.exec("cat last").stdout or 0)
            branch.exec(f"while [ $(cat last) -lt {last + 5} ]; do sleep 0.02; done; touch stop")
            assert branch.exec("while [ ! -e end ]; do sleep 0.01; done; cat end", timeout=60).stdout == "end\n"
            assert origin.exec("ls stop").exit_code != 0
            assert not process.exited
            origin.exec("touch stop")
            assert process.wait(60) == 0
            assert branch.stats()["processes"] == 0


def test_output_that_nobody_reads_does_not_stop_a_branch() -> None:
    with Sandbox(limits=Limits(output_bytes=1 << 40)) as origin:
        flood = origin.spawn("yes; echo over > over")
        assert flood.stdout.next_chunk()
        with one(origin) as branch:
            assert branch.exec("echo ok").stdout == "ok\n"
            branch.exec("pkill yes", timeout=60)
            assert branch.exec("while [ ! -e over ]; do sleep 0.01; done; cat over", timeout=60).stdout == "over\n"
            assert flood.stdout.next_chunk()
        flood.kill("KILL")


def test_the_limits_of_what_runs_hold_in_a_branch_too() -> None:
    with Sandbox(limits=Limits(output_bytes=1 << 20)) as origin:
        process = origin.spawn("sleep 0.3; yes")
        with one(origin) as branch:
            deadline = time.monotonic() + 60
            while branch.stats()["processes"] and time.monotonic() < deadline:
                time.sleep(0.02)
            assert branch.stats()["processes"] == 0
            assert branch.exec("echo ok").stdout == "ok\n"
        process.kill("KILL")


def test_terminals_and_open_input_do_not_trouble_a_branch() -> None:
    with Sandbox() as origin:
        terminal = origin.pty("bash --norc")
        terminal.write("x=41\n")
        cat = origin.spawn("cat > copy")
        cat.stdin.write("before\n")
        with one(origin) as branch:
            terminal.write("echo $((x+1))\n")
            cat.stdin.write("after\n")
            cat.stdin.close()
            assert cat.wait(60) == 0
            assert branch.exec("echo ok; ps aux | grep -q '[b]ash --norc' && echo there").stdout == "ok\nthere\n"
            shown = b""
            while b"42" not in shown and (piece := terminal.read(60)):
                shown += piece
            assert b"42" in shown
            assert origin.exec("cat copy").stdout == "before\nafter\n"


def test_mounts_and_tools_work_in_both(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("host")
    calls: list[str] = []

    def note(text: str) -> str:
        calls.append(text)
        return text.upper()

    mounts = {
        "/host": Mount.host(str(tmp_path), read_only=False),
        "/over": Mount.overlay(Mount.host(str(tmp_path))),
    }
    with Sandbox(mounts=mounts, tools={"note": note}) as origin:
        holder = origin.spawn("exec 3< /host/a 4>> /host/log; read -r go < go; cat <&3; echo done >&4; exec 3<&- 4>&-")
        origin.exec("mkfifo go; echo over > /over/a; ls /host")
        with one(origin) as branch:
            assert branch.exec("cat /host/a /over/a").stdout == "hostover\n"
            branch.exec("echo branch > /host/b; echo branch > /over/a")
            assert origin.exec("cat /host/b /over/a").stdout == "branch\nover\n"
            assert (tmp_path / "b").read_text() == "branch\n"
            assert branch.exec("note in-branch").stdout.strip() == "IN-BRANCH"
            origin.close()
            assert holder.exited
            assert branch.exec("cat /host/b; note still").stdout.split() == ["branch", "STILL"]
            with one(branch) as third:
                branch.close()
                assert third.exec("ls /host; note third").stdout.split() == ["a", "b", "log", "THIRD"]
    assert calls == ["in-branch", "still", "third"]


def test_files_that_were_open_on_a_mount_stay_open_in_each(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("".join(f"line {n}\n" for n in range(1000)))
    with Sandbox(mounts={"/host": Mount.host(str(tmp_path))}) as origin:
        reader = origin.spawn(
            "exec 3< /host/a; read -r x <&3; touch read; "
            "while [ ! -e go ]; do sleep 0.01; done; cat <&3 | wc -l > n; touch done"
        )
        origin.exec("while [ ! -e read ]; do sleep 0.01; done", timeout=60)
        with one(origin) as branch:
            wait = "touch go; while [ ! -e done ]; do sleep 0.01; done; cat n"
            assert origin.exec(wait, timeout=60).stdout == "999\n"
            assert reader.wait(60) == 0
            assert branch.exec(wait, timeout=60).stdout == "999\n"


def test_a_tool_at_work_answers_the_one_that_called_it() -> None:
    called, release = threading.Event(), threading.Event()

    def slow() -> str:
        called.set()
        release.wait(120)
        return "answer"

    with Sandbox(tools={"slow": slow}) as origin:
        process = origin.spawn("slow; echo status $? > status")
        assert called.wait(60)
        with one(origin) as branch:
            said = branch.exec("while [ ! -s status ]; do sleep 0.01; done; cat status", timeout=60).stdout
            assert said == "status 1\n"
            release.set()
            assert process.wait(60) == 0
            assert process.stdout.read() == b"answer\n"
            assert branch.exec("slow").stdout == "answer\n"


def test_events_name_their_branch() -> None:
    events: list[Event] = []
    with Sandbox(on_event=events.append) as origin, one(origin) as branch:
        branch.exec("true")
        origin.exec("false")
        names = [event.sandbox for event in events if event.kind == "exec" and event.data["action"] == "end"]
        assert names == [branch.name, origin.name]


def test_watches_are_the_origins(tmp_path: Path) -> None:
    with Sandbox() as origin, origin.files.watch("/workspace") as watch:
        waiting = threading.Thread(target=lambda: watch.next(timeout=60))
        waiting.start()
        with one(origin) as branch:
            branch.exec("echo x > in-branch")
            origin.exec("echo x > in-origin")
            waiting.join(60)
            assert not waiting.is_alive()
            with branch.files.watch("/workspace") as other:
                branch.exec("echo y > again")
                change = other.next(timeout=60)
                assert change is not None
                assert change.path == "/workspace/again"


def test_the_asynchronous_front() -> None:
    async def main() -> None:
        async with AsyncSandbox(tools={"up": str.upper}) as origin:
            await origin.exec("echo common > f")
            branches = await origin.fork(5)
            assert isinstance(branches, list)
            await asyncio.gather(*(b.exec(f"echo {n} >> f") for n, b in enumerate(branches)))
            said = await asyncio.gather(*(b.exec("cat f") for b in branches))
            assert [result.stdout for result in said] == [f"common\n{n}\n" for n in range(5)]
            single = await origin.fork()
        async with single:
            assert (await single.exec("cat f")).stdout == "common\n"
        for branch in branches:
            await branch.close()

    asyncio.run(main())


def test_cancelling_a_fork_leaves_nothing() -> None:
    async def main() -> None:
        async with AsyncSandbox() as origin:
            await origin.exec("true")
            await (await origin.fork()).close()
            before = open_files()
            for delay in (0, 0.001, 0.003, 0.01):
                task = asyncio.ensure_future(origin.fork())
                await asyncio.sleep(delay)
                task.cancel()
                try:
                    await (await task).close()
                except asyncio.CancelledError:
                    continue
            assert (await origin.exec("echo ok")).stdout == "ok\n"
            await asyncio.to_thread(check_open_files, before)

    asyncio.run(main())


@pytest.mark.parametrize(("count", "error"), [(0, ValueError), (-1, ValueError), ("2", TypeError), (True, TypeError)])
def test_a_bad_count_is_refused(count: object, error: type[Exception]) -> None:
    with Sandbox() as sandbox, pytest.raises(error, match="count must be"):
        sandbox.fork(count)  # type: ignore[call-overload]


def test_a_closed_sandbox_can_not_be_forked() -> None:
    sandbox = Sandbox()
    sandbox.close()
    with pytest.raises(SandboxClosed):
        sandbox.fork()


def test_without_its_zygote_a_sandbox_lives_on_but_does_not_fork() -> None:
    with Sandbox() as origin:
        origin.exec("echo kept > f")
        branch = one(origin)
        assert shared.zygote is not None
        zygote = shared.zygote.process.pid
        os.kill(zygote, signal.SIGKILL)
        assert not wait_gone([zygote])
        with pytest.raises(SandboxError, match="zygote"):
            origin.fork()
        assert origin.exec("cat f").stdout == "kept\n"
        assert branch.exec("cat f").stdout == "kept\n"
        branch.close()
        with Sandbox() as new, one(new) as works:
            assert works.exec("echo new").stdout == "new\n"


def test_branches_that_nobody_closed_end_quietly_with_the_interpreter() -> None:
    code = "from belljar import Sandbox; origin = Sandbox(); branch = origin.fork(); print(branch.exec('pwd').stdout)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert (done.stdout.strip(), done.stderr) == ("/workspace", "")


def test_a_fork_that_is_refused_leaves_no_descriptor_in_the_worker(monkeypatch: pytest.MonkeyPatch) -> None:
    with Sandbox() as sandbox:
        with monkeypatch.context() as patch:
            patch.setattr(ForkServerProcess, "permit", lambda *_: None)
            for _ in range(80):  # more than a worker may have open
                with pytest.raises(SandboxError, match="can't be forked"):
                    sandbox.fork()
        with sandbox.fork() as branch:
            assert branch.exec("echo on").stdout == "on\n"
