"""A shell's state: what one shell takes from another."""

import pytest

from belljar.kernel.machine import virtual_machine
from belljar.shell.shell import Shell
from belljar.shell.state import SAME, State
from tests.adapter import new_session

SCRIPT = """
trap 'echo bye' EXIT
f() { local a=$1; getopts x o -x; return 3; }
f 1 || (set -e; echo $RANDOM $SECONDS | cat)
x=$(echo $$) y=${x:+{1..3}}
shopt -s extglob; alias a=b
echo <(:) &
wait
"""


def test_a_copy_has_all_of_it() -> None:
    other, copy = State(), State()
    for name in SAME:
        setattr(other, name, f"another's {name}")
    copy.copy(other)
    assert vars(copy) == vars(other)


def test_a_shell_has_nothing_that_a_subshell_would_lose(monkeypatch: pytest.MonkeyPatch) -> None:
    undeclared: set[str] = set()
    end = Shell.end

    def look(shell: Shell) -> None:
        undeclared.update(vars(shell))
        end(shell)

    monkeypatch.setattr(Shell, "end", look)
    session = new_session(machine=virtual_machine())
    result = session.exec(["bash", "-c", SCRIPT])
    assert result.stdout.endswith(b"bye\n")
    assert not undeclared
