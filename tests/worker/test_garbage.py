"""What a command held is freed when it ends: nothing is left for the collector to find."""

import gc
from collections import Counter
from collections.abc import Iterator

import pytest

from belljar.engines.worker.programs import find, names
from belljar.kernel.machine_host import host_machine
from belljar.worker.session import Session
from belljar.worker.task import Task

COMMANDS = [
    "echo hi",
    "x=$(echo a); echo $x",
    "(cd /; pwd)",
    "f() { local a=1; echo $a; }; f",
    "ls / | sort | head -n 1",
    "trap 'echo bye' EXIT; trap : INT",
    "sleep 0 & wait",
    "echo x | while read -r y; do echo $y; done",
    "bash -c 'echo hi; exit 3'",
    "no-such-command",
    "set -e; false",
]


RUNS = 20
"""So many that another thread of this process leaves fewer objects of any one type meanwhile."""


@pytest.fixture(scope="module")
def session() -> Session:
    return Session(host_machine(), programs=find, names=names())


@pytest.fixture
def uncollected() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def run(session: Session, command: str) -> None:
    over: set[int] = set()

    def end(task: Task) -> None:
        over.add(task.process.pid)

    session.start(command, on_output=lambda _stream, _data: None, on_end=end)
    session.kernel.hub.run(lambda: bool(over))


def collected() -> Counter[str]:
    """What the collector finds, by type."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        gc.collect()
        return Counter(type(found).__qualname__ for found in gc.garbage)
    finally:
        gc.set_debug(0)
        gc.garbage.clear()


@pytest.mark.battery(sample=3)
@pytest.mark.usefixtures("uncollected")
@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_leaves_no_cycles(session: Session, command: str) -> None:
    for _ in range(3):
        run(session, command)  # what is made once is there then
    gc.collect()
    for _ in range(RUNS):
        run(session, command)
    left = collected()
    assert not left or max(left.values()) < RUNS, f"of every run something is left: {left.most_common(12)}"
