"""`belljar shell`: a terminal in a fresh sandbox."""

from __future__ import annotations

import os
import select
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from belljar.cli.options import add_sandbox_options, sandbox_arguments
from belljar.cli.start_host import Start

if TYPE_CHECKING:
    import argparse

    from belljar.api.process import Terminal

PROMPT = r"\[\e[1;36m\]\h\[\e[0m\]:\[\e[1;34m\]\w\[\e[0m\]\$ "


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser], start: Start | None) -> None:
    parser = subcommands.add_parser("shell", help="open a terminal", description="Open a bash in a fresh sandbox.")
    add_sandbox_options(parser)
    parser.set_defaults(run=lambda arguments: run(parser, arguments, start))


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace, start: Start | None) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        parser.error("needs a terminal; to run a command without one: belljar run 'COMMAND'")
    from belljar.api.sandbox import Sandbox
    from belljar.worker.supervisor_host import shared

    shared.source = start
    with Sandbox(**sandbox_arguments(parser, arguments)) as sandbox:
        columns, rows = shutil.get_terminal_size()
        env = {"PS1": PROMPT, "TERM": os.environ.get("TERM", "xterm-256color")}
        terminal = sandbox.pty(["bash", "-i"], env=env, rows=rows, cols=columns)
        with raw_mode(), resizing(terminal):
            relay(terminal)
        return terminal.wait() or 0


@contextmanager
def raw_mode() -> Iterator[None]:
    """Every key goes to the sandbox, ^C included; the terminal is put back whatever happens."""
    import termios
    import tty

    before = termios.tcgetattr(0)
    try:
        tty.setraw(0)
        yield
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextmanager
def resizing(terminal: Terminal) -> Iterator[None]:
    def on_resize(_number: int, _frame: object) -> None:
        columns, rows = shutil.get_terminal_size()
        terminal.resize(rows, columns)

    before = signal.signal(signal.SIGWINCH, on_resize)
    try:
        yield
    finally:
        signal.signal(signal.SIGWINCH, before)


def relay(terminal: Terminal) -> None:
    """Keys in, screen out, until the shell ends."""
    while not terminal.exited:
        while shown := terminal.read(timeout=0.005):
            os.write(1, shown)
        if select.select([0], [], [], 0.01)[0]:
            typed = os.read(0, 4096)
            if not typed:
                terminal.kill("HUP")
                return
            terminal.write(typed)
    while shown := terminal.read(timeout=0):
        os.write(1, shown)
