"""Variables: forks share them until one side writes, and an ended fork gives them back."""

from belljar.kernel.machine import virtual_machine
from belljar.kernel.process import Process
from belljar.shell.arrays import Array, Assoc, hash_order
from belljar.shell.shell import Shell
from belljar.shell.variables import Var
from tests.adapter import new_session


def in_shell(check: object) -> None:
    """Call `check(shell)` in a process of its own."""
    session = new_session(machine=virtual_machine())
    seen: list[int] = []

    def body(process: Process) -> int:
        shell = Shell(process)
        check(shell)  # type: ignore[operator]
        seen.append(1)
        return 0

    process = session.kernel.start(body, ["test"])
    session.kernel.hub.run(lambda: process.status is not None)
    assert seen


def array_of(shell: Shell, name: str) -> Array:
    entry = shell.table[name]
    assert isinstance(entry, Var)
    assert isinstance(entry.value, Array)
    return entry.value


def test_a_fork_shares_arrays_until_one_side_writes() -> None:
    def check(shell: Shell) -> None:
        shell.vars.set_array("a", ["x"])
        child = shell.fork(shell.process)
        assert array_of(child, "a") is array_of(shell, "a")
        child.vars.set_index("a", 1, "child")
        shell.vars.set_index("a", 2, "parent")
        assert array_of(child, "a").pairs() == [("0", "x"), ("1", "child")]
        assert array_of(shell, "a").pairs() == [("0", "x"), ("2", "parent")]

    in_shell(check)


def test_after_a_fork_ended_its_parent_writes_in_place() -> None:
    def check(shell: Shell) -> None:
        shell.vars.set_array("a", ["x"])
        shell.vars.set_index("a", 1, "own")
        before = array_of(shell, "a")
        child = shell.fork(shell.process)
        grandchild = child.fork(shell.process)
        child.vars.epoch.end()
        shell.vars.set_index("b", 0, "a new epoch, while the grandchild lives")
        grandchild.vars.epoch.end()
        sibling = shell.fork(shell.process)
        sibling.vars.epoch.end()
        shell.vars.set_index("a", 2, "copied once")
        after = array_of(shell, "a")
        shell.vars.set_index("a", 3, "then in place")
        assert array_of(shell, "a") is after
        assert before.pairs() == [("0", "x"), ("1", "own")]

    in_shell(check)


def test_arithmetic_keeps_numbers_that_read_as_text() -> None:
    def check(shell: Shell) -> None:
        shell.vars.set("n", "41")
        assert shell.arith("n += 1") == 42
        assert shell.table["n"] == 42
        assert shell.vars.get("n") == "42"
        shell.vars.set("z", "007")
        assert shell.arith("z + 1") == 8
        assert shell.vars.get("z") == "007"

    in_shell(check)


def test_indexed_arrays_stay_in_index_order() -> None:
    array = Array()
    for index in (5, 2, 9, 0):
        array.set(index, str(index))
    assert array.values() == ["0", "2", "5", "9"]
    assert array.remove(9)
    assert array.last == 5
    array.append("new")
    assert array.indices() == [0, 2, 5, 6]


def test_associative_arrays_come_in_the_order_of_bash() -> None:
    # bash 5.2: for k in foo bar baz qux quux one two three; do a[$k]=; done; echo ${!a[@]}
    assert hash_order("foo bar baz qux quux one two three".split()) == "quux qux foo two bar baz three one".split()
    table = Assoc()
    table.set("b", "1")
    table.set("a", "2")
    assert table.pairs() == [("b", "1"), ("a", "2")]
