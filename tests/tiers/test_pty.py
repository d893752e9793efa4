"""`pty`: programs on a terminal."""

from __future__ import annotations

import time
from typing import Any

import pytest

from belljar import Sandbox, Terminal
from tests.tiers.conftest import Make

PATIENCE = 120.0


def read_until(terminal: Terminal, text: bytes) -> bytes:
    """All that is shown up to a text that must come."""
    seen = b""
    ends = time.monotonic() + PATIENCE
    while text not in seen:
        assert time.monotonic() < ends, seen
        seen += terminal.read(timeout=1)
        if terminal.exited:
            seen += read_all(terminal)
            assert text in seen
    return seen


def read_all(terminal: Terminal) -> bytes:
    seen = b""
    while data := terminal.read():
        seen += data
    return seen


def test_it_is_a_terminal(sb: Sandbox) -> None:
    terminal = sb.pty("test -t 0 && test -t 1 && test -t 2 && tty")
    assert read_all(terminal).startswith(b"/dev/pts/")
    assert terminal.wait() == 0


def test_lines_end_as_on_a_terminal(sb: Sandbox) -> None:
    assert read_all(sb.pty("echo a; echo b >&2")) == b"a\r\nb\r\n"


SIZES = {"the usual": ({}, b"24 80"), "given": ({"rows": 50, "cols": 132}, b"50 132")}


@pytest.mark.parametrize(("options", "size"), SIZES.values(), ids=SIZES)
def test_size(sb: Sandbox, options: dict[str, Any], size: bytes) -> None:
    assert read_all(sb.pty("stty size", **options)) == size + b"\r\n"


def test_resizing(sb: Sandbox) -> None:
    terminal = sb.pty("trap 'stty size; exit' WINCH; echo up; while :; do sleep 0.05; done")
    read_until(terminal, b"up")
    terminal.resize(40, 100)
    assert b"40 100" in read_until(terminal, b"40 100")
    assert terminal.wait(PATIENCE) == 0


WRONG: dict[str, tuple[Any, Any]] = {"none": (0, 80), "negative": (24, -1), "too many": (24, 100_000)}


@pytest.mark.parametrize(("rows", "cols"), WRONG.values(), ids=WRONG)
def test_what_is_no_size(sb: Sandbox, rows: int, cols: int) -> None:
    with pytest.raises(ValueError, match="rows"):
        sb.pty("true", rows=rows, cols=cols)


def test_what_is_typed_is_shown(sb: Sandbox) -> None:
    terminal = sb.pty(["cat"])
    terminal.write("typed\n")
    assert b"typed\r\ntyped\r\n" in read_until(terminal, b"typed\r\ntyped\r\n")
    terminal.write(b"\x04")
    assert terminal.wait(PATIENCE) == 0


def test_what_is_typed_may_be_hidden(sb: Sandbox) -> None:
    terminal = sb.pty("stty -echo; echo ready; read secret; echo ${#secret}")
    read_until(terminal, b"ready")
    terminal.write("hidden\n")
    seen = read_all(terminal)
    assert b"hidden" not in seen
    assert b"6" in seen


def test_control_c(sb: Sandbox) -> None:
    terminal = sb.pty("echo up; exec sleep 60")
    read_until(terminal, b"up")
    terminal.write(b"\x03")
    assert terminal.wait(PATIENCE) == 130


def test_control_backslash(sb: Sandbox) -> None:
    terminal = sb.pty("trap 'exit 5' QUIT; echo up; while :; do sleep 0.05; done")
    read_until(terminal, b"up")
    terminal.write(b"\x1c")
    assert terminal.wait(PATIENCE) == 5


def test_control_d_ends_the_input(sb: Sandbox) -> None:
    terminal = sb.pty("cat > seen; echo end")
    terminal.write("line\n")
    terminal.write(b"\x04")
    read_until(terminal, b"end")
    assert terminal.wait(PATIENCE) == 0
    assert sb.files.read("seen") == "line\n"


def test_a_line_may_be_edited(sb: Sandbox) -> None:
    terminal = sb.pty("read x; echo [$x]")
    terminal.write(b"abx\x7fc\n")
    assert b"[abc]" in read_until(terminal, b"]")


def test_raw_mode_gives_keys(sb: Sandbox) -> None:
    terminal = sb.pty("stty raw -echo; echo up; head -c 1 | od -An -tx1; stty sane")
    read_until(terminal, b"up")
    terminal.write(b"\x03")
    assert b"03" in read_until(terminal, b"03")


def test_reading_may_be_bounded(sb: Sandbox) -> None:
    terminal = sb.pty("sleep 60")
    assert terminal.read(timeout=0.1) == b""
    assert not terminal.exited
    assert terminal.wait(timeout=0.1) is None
    terminal.kill("KILL")
    assert terminal.wait(PATIENCE) == 137


def test_reading_after_the_end(sb: Sandbox) -> None:
    terminal = sb.pty("echo x")
    assert terminal.wait() == 0
    assert read_all(terminal) == b"x\r\n"
    assert terminal.read() == b""
    assert terminal.exited


def test_hanging_up(sb: Sandbox) -> None:
    terminal = sb.pty("echo up; exec sleep 60")
    read_until(terminal, b"up")
    terminal.kill()
    assert terminal.wait(PATIENCE) == 129


def test_after_the_end_nothing_fails(sb: Sandbox) -> None:
    terminal = sb.pty("true")
    assert terminal.wait() == 0
    terminal.resize(10, 10)
    terminal.write("x")
    terminal.kill()


def test_env_and_cwd(sb: Sandbox) -> None:
    sb.files.mkdir("d")
    said = read_all(sb.pty("echo $TERM $A; pwd", cwd="d", env={"A": "1"}))
    assert said == b"xterm-256color 1\r\n/workspace/d\r\n"
    assert read_all(sb.pty("echo $TERM", env={"TERM": "vt100"})) == b"vt100\r\n"


def test_colours_pass(sb: Sandbox) -> None:
    assert read_all(sb.pty(r"printf '\033[31mred\033[0m'")) == b"\x1b[31mred\x1b[0m"


def interactive(make: Make) -> Terminal:
    terminal = make(env={"PS1": "% "}).pty(["bash", "--norc", "--noprofile", "-i"])
    read_until(terminal, b"% ")
    return terminal


IN_FRONT = "sh -c 'echo $((6 * 7)); exec sleep 600'"
"""A program that says when it has the terminal."""


def test_an_interactive_shell(make: Make) -> None:
    terminal = interactive(make)
    terminal.write("echo $((6 * 7))\n")
    read_until(terminal, b"42\r\n")
    terminal.write("exit 3\n")
    assert terminal.wait(PATIENCE) == 3


def test_the_usual_command_is_a_shell(sb: Sandbox) -> None:
    terminal = sb.pty()
    terminal.write("echo $((6 * 7))$-\nexit\n")
    seen = read_all(terminal)
    assert b"42" in seen
    assert b"i" in seen.split(b"42", 1)[1].split()[0]
    assert terminal.wait(PATIENCE) == 0


def test_control_c_leaves_the_shell(make: Make) -> None:
    terminal = interactive(make)
    terminal.write(f"{IN_FRONT}\n")
    read_until(terminal, b"42\r\n")
    terminal.write(b"\x03")
    terminal.write("echo still $((40 + 2))\n")
    read_until(terminal, b"still 42")


def test_job_control(make: Make) -> None:
    terminal = interactive(make)
    terminal.write(f"{IN_FRONT}\n")
    read_until(terminal, b"42\r\n")
    terminal.write(b"\x1a")
    assert b"Stopped" in read_until(terminal, b"Stopped")
    terminal.write("bg; jobs\n")
    assert b"Running" in read_until(terminal, b"Running")
    terminal.write("kill %1; wait %1; echo code=$?\n")
    assert b"code=143" in read_until(terminal, b"code=143")


def test_much_output(sb: Sandbox) -> None:
    terminal = sb.pty("seq 100000")
    assert read_all(terminal) == b"".join(b"%d\r\n" % n for n in range(1, 100_001))


def test_terminals_are_apart(sb: Sandbox) -> None:
    first, second = sb.pty("read x; echo [$x]"), sb.pty("read x; echo [$x]")
    first.write("1\n")
    second.write("2\n")
    assert b"[1]" in read_until(first, b"]")
    assert b"[2]" in read_until(second, b"]")
