"""`belljar shell`: a terminal in a fresh sandbox."""

from __future__ import annotations

import os
import select
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from belljar.abi.errors import SandboxError
from belljar.cli.options import add_restore_options, add_sandbox_options, make_sandbox, sandbox_arguments
from belljar.cli.start_host import Start

if TYPE_CHECKING:
    import argparse

    from belljar.api.process import Terminal

ENDED = b"\0"
"""Marks the end in the pipe of signal numbers; no signal is 0."""
PROMPT = r"\[\e[1;36m\]\h\[\e[0m\]:\[\e[1;34m\]\w\[\e[0m\]\$ "


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser], start: Start | None) -> None:
    parser = subcommands.add_parser("shell", help="open a terminal", description="Open a bash in a fresh sandbox.")
    add_sandbox_options(parser)
    add_restore_options(parser)
    parser.set_defaults(run=lambda arguments: run(parser, arguments, start))


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace, start: Start | None) -> int:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        parser.error("needs a terminal; to run a command without one: belljar run 'COMMAND'")
    from belljar.owner.supervisor_host import shared

    shared.source = start
    with make_sandbox(sandbox_arguments(parser, arguments)) as sandbox:
        rows, columns = window_size()
        env = {"PS1": PROMPT, "TERM": os.environ.get("TERM", "xterm-256color")}
        terminal = sandbox.pty(["bash", "-i"], env=env, rows=rows, cols=columns)
        with raw_mode() as set_raw, waking() as wake:
            relay(terminal, wake, set_raw)
        return terminal.wait() or 0


def window_size() -> tuple[int, int]:
    """Return the terminal's rows and columns; those in the environment may be outdated."""
    columns, rows = os.get_terminal_size(0)
    return max(rows, 1), max(columns, 1)


@contextmanager
def raw_mode() -> Iterator[Callable[[], None]]:
    """Every key goes to the sandbox, ^C included; the terminal is put back whatever happens.

    Gives what sets it again. What was typed ahead stays.
    """
    import termios
    import tty

    def set_raw() -> None:
        tty.setraw(0, termios.TCSANOW)

    before = termios.tcgetattr(0)
    try:
        set_raw()
        yield set_raw
    finally:
        termios.tcsetattr(0, termios.TCSADRAIN, before)


@contextmanager
def waking() -> Iterator[tuple[int, int]]:
    """A pipe that is written to when the window has another size, or when we go on after a stop.

    What is to be done then is done by whoever reads it: a handler may have interrupted somebody who holds a lock.
    """
    read, write = os.pipe()
    os.set_blocking(write, False)
    # Written to by the C code: a handler in Python would wait until the main thread has something to do.
    before_wakeup = signal.set_wakeup_fd(write, warn_on_full_buffer=False)
    before = {number: signal.signal(number, lambda *_: None) for number in (signal.SIGWINCH, signal.SIGCONT)}
    try:
        yield read, write
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(before_wakeup)
        os.close(read)
        os.close(write)


def relay(terminal: Terminal, wake: tuple[int, int], set_raw: Callable[[], None]) -> None:
    """Copy keys in and output out until the shell ends."""
    woken, ended = wake
    showing = threading.Thread(target=_show, args=(terminal, ended), daemon=True)
    showing.start()
    while showing.is_alive():
        ready = select.select([0, woken], [], [])[0]
        if woken in ready and ENDED in os.read(woken, 64):
            break
        if woken in ready:
            set_raw()  # whoever had the terminal meanwhile left it as it likes it
            terminal.resize(*window_size())
        if 0 in ready:
            typed = os.read(0, 4096)
            if not typed:
                terminal.kill("HUP")
                break
            terminal.write(typed)
    showing.join(timeout=1)


def _show(terminal: Terminal, ended: int) -> None:
    """Copy the sandbox terminal's output to ours until it ends."""
    try:
        while shown := terminal.read():
            while shown:
                shown = shown[os.write(1, shown) :]
    except (SandboxError, OSError):
        return  # the main thread hears of it too
    finally:
        with suppress(OSError):
            os.write(ended, ENDED)
