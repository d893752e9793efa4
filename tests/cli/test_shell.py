"""`belljar shell` on a terminal, as somebody at the keyboard has it."""

from __future__ import annotations

import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Iterator

import pytest


class Keyboard:
    """A terminal with `belljar shell` on it."""

    def __init__(self, env: dict[str, str]) -> None:
        self.master, slave = pty.openpty()
        self.resize(24, 80)
        self.slave = slave
        self.process = subprocess.Popen(
            [sys.executable, "-m", "belljar.cli", "shell"],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            env={**env, "TERM": "xterm-256color"},
            start_new_session=True,
        )
        self.shown = ""

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self.master, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.master, text.encode())

    def wait_for(self, text: str, seconds: float = 240) -> str:
        """What was shown up to there; the rest is for the next question."""
        deadline = time.monotonic() + seconds
        while text not in self.shown:
            left = deadline - time.monotonic()
            assert left > 0, f"no {text!r} in {self.shown!r}"
            if select.select([self.master], [], [], left)[0]:
                self.shown += os.read(self.master, 4096).decode(errors="replace")
        before, _, self.shown = self.shown.partition(text)
        return before

    def is_raw(self) -> bool:
        return not termios.tcgetattr(self.slave)[3] & termios.ICANON

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()
        os.close(self.master)
        os.close(self.slave)


@pytest.fixture
def keyboard(home: dict[str, str]) -> Iterator[Keyboard]:
    made = Keyboard(home)
    try:
        made.wait_for("$ ")
        yield made
    finally:
        made.close()


def test_a_session(keyboard: Keyboard) -> None:
    assert keyboard.is_raw()
    keyboard.type("echo a$((40 + 2))b\r")
    keyboard.wait_for("a42b")
    keyboard.wait_for("$ ")
    keyboard.type("\x1b[A")  # up
    keyboard.wait_for("echo a$((40 + 2))b")
    keyboard.type("\x03cat /etc/hostn\t\r")
    keyboard.wait_for("belljar\r\n")
    keyboard.type("echo be''gun; sleep 1000\r")
    keyboard.wait_for("begun\r\n")  # the terminal is the command's now: ^C is a signal
    keyboard.type("\x03")
    keyboard.wait_for("$ ")
    keyboard.resize(33, 101)
    os.kill(keyboard.process.pid, signal.SIGWINCH)
    keyboard.type("until [ \"$(stty size)\" = '33 101' ]; do :; done; echo si''zed\r")
    keyboard.wait_for("sized\r\n")
    keyboard.type("exit 3\r")
    assert keyboard.process.wait(timeout=240) == 3
    assert not keyboard.is_raw()


def test_after_a_stop_the_keys_go_to_the_sandbox_again(keyboard: Keyboard) -> None:
    os.kill(keyboard.process.pid, signal.SIGSTOP)
    cooked = termios.tcgetattr(keyboard.slave)
    cooked[3] |= termios.ICANON | termios.ECHO | termios.ISIG
    termios.tcsetattr(keyboard.slave, termios.TCSANOW, cooked)
    assert not keyboard.is_raw()
    os.kill(keyboard.process.pid, signal.SIGCONT)
    deadline = time.monotonic() + 240
    while not keyboard.is_raw() and time.monotonic() < deadline:
        time.sleep(0.01)
    assert keyboard.is_raw()
    keyboard.type("echo o''k\r")
    keyboard.wait_for("ok\r\n")
