"""How scripts are read: command by command, kept by text, and no further than they need."""

import pytest

from belljar.kernel.machine import virtual_machine
from belljar.shell import programs
from belljar.shell.parse import ParseOptions, Parser
from tests.adapter import new_session


def run(script: str, stdin: bytes = b"", *argv: str) -> bytes:
    session = new_session(machine=virtual_machine())
    result = session.exec(["bash", *argv, *(["-c", script] if script else [])], stdin=stdin)
    return result.stdout


def test_a_loop_over_eval_parses_its_text_once(monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[object] = []

    class Counting(Parser):
        def __init__(self, source: str, options: ParseOptions, line: int) -> None:
            parsed.append(source)
            super().__init__(source, options, line)

    monkeypatch.setattr(programs, "Parser", Counting)
    assert run("for i in 1 2 3 4; do eval 'x=$((x+i)) unique_text=1'; done; echo $x") == b"10\n"
    assert parsed.count("x=$((x+i)) unique_text=1") == 1


def test_what_one_line_defines_holds_for_the_next() -> None:
    script = "shopt -s expand_aliases extglob\nalias hi='echo hello'\nhi\ncase ab in +(a|b)) echo ext;; esac"
    assert run(script) == b"hello\next\n"
    assert run(script) == b"hello\next\n"


def test_a_kept_text_is_read_again_under_other_options() -> None:
    script = 'f=\'case ab in a*) echo one;; esac\'; eval "$f"; shopt -s extglob; eval "$f"'
    assert run(script) == b"one\none\n"


def test_commands_on_stdin_leave_the_rest_to_be_read() -> None:
    assert run("", b"read x\nfirst line\necho got $x; cat\nrest\nof it\n") == b"got first line\nrest\nof it\n"


def test_a_syntax_error_ends_what_comes_after_not_before() -> None:
    session = new_session(machine=virtual_machine())
    result = session.exec(["bash", "-c", "echo before\necho )\necho after"])
    assert (result.stdout, result.status) == (b"before\n", 2)
