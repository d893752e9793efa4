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
    screen.enter(b"name = input('name? ')", b"name? ")
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
