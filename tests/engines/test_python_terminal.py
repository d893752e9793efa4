"""Interactive `python3`: the prompt, line editing with history, interrupts, the end of input."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from belljar import Sandbox
from belljar.api.process import Terminal

PROMPT = b">>> "


class Screen:
    """What a terminal shows, read until something appears."""

    def __init__(self, terminal: Terminal) -> None:
        self.terminal = terminal

    def until(self, text: bytes) -> bytes:
        seen = b""
        deadline = time.monotonic() + 60
        while text not in seen:
            assert time.monotonic() < deadline, seen
            seen += self.terminal.read(1)
        return seen

    def enter(self, line: bytes, then: bytes = PROMPT) -> bytes:
        self.terminal.write(line + b"\r")
        return self.until(then)


@pytest.fixture
def screen(box: Sandbox) -> Iterator[Screen]:
    found = Screen(box.pty(["python3", "-q"]))
    found.until(PROMPT)
    yield found
    found.terminal.kill("KILL")
    found.terminal.wait(30)


def test_a_conversation(screen: Screen) -> None:
    screen.enter(b"x = 6")
    assert b"42" in screen.enter(b"x * 7")
    screen.enter(b"def f():", b"... ")
    screen.enter(b"    return 'five'", b"... ")
    screen.enter(b"")
    assert b"'five'" in screen.enter(b"f()")
    assert b"ZeroDivisionError: division by zero" in screen.enter(b"1/0")
    screen.terminal.write(b"\x1b[A")
    assert b"ZeroDivisionError" in screen.enter(b""), "the line before, from the history"
    assert b"hi\r\n" in screen.enter(b"import os; _ = os.system('echo hi')")
    screen.enter(b"name = input('name? ')", b"\nname? ")
    screen.enter(b"bob")
    assert b"'bob'" in screen.enter(b"name")
    screen.terminal.write(b"\x04")
    assert screen.terminal.wait(30) == 0


def test_interrupts(screen: Screen) -> None:
    screen.terminal.write(b"half a line\x03")
    assert b"KeyboardInterrupt" in screen.until(b"KeyboardInterrupt\r\n" + PROMPT)
    screen.enter(b"while True: pass", b"... ")
    screen.terminal.write(b"\r")
    time.sleep(0.5)
    screen.terminal.write(b"\x03")
    screen.until(b"KeyboardInterrupt\r\n" + PROMPT)
    screen.terminal.write(b"exit(3)\r")
    assert screen.terminal.wait(30) == 3


def test_names_are_completed(screen: Screen) -> None:
    screen.enter(b"import os; my_long_variable = 6 * 7")
    assert b"42\r\n" in screen.enter(b"my_lo\t")
    screen.terminal.write(b"os.cpu_c\t")
    screen.until(b"os.cpu_count()")
    screen.enter(b"")
    screen.terminal.write(b"os.path.is\t\t")
    assert b"os.path.isdir(" in screen.until(b">>> os.path.is")
    screen.enter(b"dir('x')")
    screen.enter(b"if 1:", b"... ")
    screen.enter(b"\tprint('indented')", b"... ")
    assert b"indented\r\n" in screen.enter(b"")
    screen.terminal.write(b"no_such_name_at_all\tX")
    assert b"no_such_name_at_allX" in screen.enter(b"")


def test_what_is_typed_after_a_tab_is_not_lost(screen: Screen) -> None:
    screen.enter(b"abcdef = 'AB'")
    assert b"'ABABAB'" in screen.enter(b"abcd\t * 3")


def test_input_edits_lines_once_readline_is_imported(screen: Screen) -> None:
    screen.enter(b"import readline; readline.set_completer(lambda text, state: [text + 'XYZ', None][state])")
    screen.enter(b"readline.clear_history(); readline.add_history('from before')")
    screen.enter(b"line = input('? ')", b"? ")
    screen.terminal.write(b"\x1b[A\x1b[A")
    screen.until(b"from before")
    screen.enter(b"")
    assert b"'from before'" in screen.enter(b"line")
    screen.enter(b"line = input('? ')", b"? ")
    screen.enter(b"w\t!")
    assert b"'wXYZ!'" in screen.enter(b"line")


def test_completion_of_an_empty_line_lists_all_without_a_question(screen: Screen) -> None:
    screen.enter(b"import readline; names = [f'name{n:03}' for n in range(300)] + [None]")
    screen.enter(b"readline.set_completer(lambda text, state: names[state])")
    screen.enter(b"for name in ['query-items', 'display-width']: readline.parse_and_bind(f'set completion-{name} 0')\n")
    screen.enter(b"line = input('\\1\\x1b[32m\\2? ')", b"? ")
    screen.terminal.write(b"\t\t\t")
    listed = screen.until(b"name299\r\n")
    assert b"name000\r\nname001\r\n" in listed
    assert b"Display all" not in listed
    assert b"\1" not in listed + screen.enter(b"x")
    assert b"'namex'" in screen.enter(b"line")


def test_the_shells_completion_outlives_a_prompt(box: Sandbox) -> None:
    shell = Screen(box.pty(["bash", "--norc"], env={"PS1": "sh> "}))
    shell.until(b"sh> ")
    shell.enter(b"python3 -q")
    shell.terminal.write(b"exit()\r")
    shell.until(b"sh> ")
    box.files.write("/workspace/a_long_file_name", "its text")
    assert b"its text" in shell.enter(b"cat a_lo\t", b"sh> ")
    shell.terminal.kill("KILL")
    shell.terminal.wait(30)
