"""Random crowds of processes that fork, signal, stop, wait and die: nothing hangs, nothing is left behind."""

from __future__ import annotations

import gc
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.abi.errors import SysError
from belljar.abi.flags import WCONTINUED, WNOHANG, WUNTRACED
from belljar.abi.limits import Limits
from belljar.kernel.container import Container
from belljar.kernel.fiber import Fiber, State
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.process import IGNORE, Process
from tests.kernel.rig import new_kernel, start

SIGNALS = st.sampled_from([1, 2, 9, 10, 13, 15, 17, 18, 19, 20, 21, 23])
Action = tuple[Any, ...]

SIMPLE = st.one_of(
    st.tuples(st.just("sleep"), st.integers(0, 5)),
    st.tuples(st.just("kill"), st.integers(0, 5), SIGNALS),
    st.tuples(st.just("kill group"), st.integers(0, 5), SIGNALS),
    st.tuples(st.just("wait"), st.sampled_from([0, WNOHANG, WUNTRACED, WUNTRACED | WCONTINUED | WNOHANG])),
    st.tuples(st.just("catch"), SIGNALS),
    st.tuples(st.just("ignore"), SIGNALS),
    st.tuples(st.just("block"), SIGNALS),
    st.tuples(st.just("unblock")),
    st.tuples(st.just("group")),
    st.tuples(st.just("session")),
    st.tuples(st.just("work"), st.integers(1, 9000)),
    st.tuples(st.just("write")),
    st.tuples(st.just("read")),
    st.tuples(st.just("fiber")),
    st.tuples(st.just("exit"), st.integers(0, 3)),
)
SCRIPTS = st.recursive(
    st.lists(SIMPLE, max_size=6),
    lambda inner: st.lists(
        SIMPLE | st.tuples(st.just("fork"), inner) | st.tuples(st.just("contain"), inner), max_size=8
    ),
    max_leaves=12,
)


def play(process: Process, script: list[Action]) -> int:
    for action in script:
        try:
            perform(process, action)
        except SysError:
            continue
    return 0


def perform(process: Process, action: Action) -> None:
    kernel = process.kernel
    everyone = sorted(process.space.table)
    match action:
        case ("sleep", seconds):
            process.sleep(seconds)
        case ("kill", which, number):
            process.kill(everyone[which % len(everyone)], number)
        case ("kill group", which, number):
            process.kill(-process.space.table[everyone[which % len(everyone)]].pgid, number)
        case ("wait", options):
            process.wait(-1, options)
        case ("catch", number):
            process.catch(number, lambda _number: None)
        case ("ignore", number):
            process.catch(number, IGNORE)
        case ("block", number):
            process.block(process.blocked | {number})
        case ("unblock",):
            process.block(frozenset())
        case ("group",):
            process.setpgid(0, 0)
        case ("session",):
            process.setsid()
        case ("work", steps):
            process.budget.charge(steps)
        case ("write",):
            process.write(1, b"x" * 30_000)
        case ("read",):
            process.read(0)
        case ("fiber",):
            process.add_fiber(lambda: process.sleep(3))
        case ("exit", code):
            process.exit(code)
        case ("fork", script):
            process.fork(lambda child: play(child, script))
        case ("contain", script):
            Container(process, MemoryServer(kernel.now, kernel.quota), lambda init: play(init, script), ["init"])


@settings(max_examples=150)
@given(script=SCRIPTS)
def test_a_storm_passes(script: list[Action]) -> None:
    kernel = new_kernel()
    reader, writer = kernel.open_pipe(kernel.init)
    process = start(kernel, lambda p: play(p, script), limits=Limits(wall_seconds=100))
    process.fds.put(0, reader)
    process.fds.put(1, writer)
    kernel.hub.run()
    assert process.status is not None
    assert list(kernel.init.space.table) == [1]
    assert kernel.init.children == []
    assert process.budget.processes == 0
    assert (reader.refs, writer.refs) == (0, 0)
    assert kernel.hub.clock.monotonic() <= 100


def _living() -> int:
    """Fibers that are not done. By `type`: isinstance() asks a proxy for its class, and a dead one raises."""
    gc.collect()
    return sum(o.state is not State.DONE for o in gc.get_objects() if type(o) is Fiber)


def test_no_fiber_outlives_its_process() -> None:
    before = _living()
    script: list[Action] = [("fork", [("fiber",), ("sleep", 5)]), ("fiber",), ("kill", 2, 9), ("sleep", 2)]
    test_a_storm_passes.hypothesis.inner_test(script)  # type: ignore[attr-defined]
    assert _living() <= before
