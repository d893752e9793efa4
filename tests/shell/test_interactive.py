"""An interactive shell on a terminal: prompts, ^C, ^Z, jobs, the end of input."""

from __future__ import annotations

import re
from errno import EAGAIN

from belljar.abi.errors import SysError
from belljar.abi.flags import O_NOCTTY, O_NONBLOCK, O_RDWR
from belljar.kernel.machine import virtual_machine
from belljar.kernel.process import Process
from belljar.shell.main import main
from tests.adapter import new_session


class Terminal:
    """Somebody typing at bash."""

    def __init__(self) -> None:
        session = new_session({"PS1": "$ ", "PS2": "> "}, machine=virtual_machine())
        kernel = session.kernel
        self.hub = kernel.hub
        fs = kernel.init.fs
        self.master = fs.open("/dev/ptmx", O_RDWR | O_NOCTTY | O_NONBLOCK).retain()
        path = f"/dev/pts/{self.master.handle.ioctl('pty_number')}"

        def body(process: Process) -> int:
            for fd in range(3):
                process.fds.put(fd, process.fs.open(path, O_RDWR))
            process.argv = ["bash", "--norc", "-i"]
            return main(process)

        self.process = kernel.start(body, ["bash"], env=session.env)
        self.screen = ""
        self.settle()

    def settle(self) -> None:
        """Let everything run until it waits for keys (or a long sleep)."""
        until = self.hub.clock.monotonic() + 0.5
        turns = iter(range(300))  # a busy loop lets no virtual time pass
        self.hub.call_at(until, lambda: None)
        self.hub.run(
            lambda: self.process.status is not None or self.hub.clock.monotonic() >= until or next(turns, None) is None
        )
        try:
            while data := self.master.read(65536):
                self.screen += data.decode()
        except SysError as error:
            if error.errno != EAGAIN and self.process.status is None:
                raise

    def type(self, keys: str) -> str:
        """What appears after typing."""
        self.screen = ""
        self.master.write(keys.encode())
        self.settle()
        return re.sub(r"\r", "", self.screen)


def test_commands_are_read_and_run_with_prompts() -> None:
    terminal = Terminal()
    assert terminal.screen == "$ "
    assert terminal.type("echo hi\n") == "echo hi\nhi\n$ "
    assert terminal.type("if true\n") == "if true\n> "
    assert terminal.type("then echo yes; fi\n") == "then echo yes; fi\nyes\n$ "
    assert terminal.type(")\n") == ")\nbash: syntax error near unexpected token `)'\n$ "
    assert terminal.type("exit 3\n").endswith("exit\n")
    assert terminal.process.status is not None
    assert terminal.process.status.code == 3


def test_the_end_of_input_ends_the_shell() -> None:
    terminal = Terminal()
    terminal.type("false\n")
    assert terminal.type("\x04").endswith("exit\n")
    assert terminal.process.status is not None
    assert terminal.process.status.code == 1


def test_control_c_abandons_the_command_not_the_shell() -> None:
    terminal = Terminal()
    assert terminal.type("abc\x03").endswith("\n$ ")
    assert terminal.type("echo $?\n").endswith("\n130\n$ ")
    terminal.type("sleep 100\n")
    assert terminal.type("\x03").endswith("$ ")
    assert terminal.type("echo $?\n").endswith("\n130\n$ ")
    terminal.type("while :; do :; done\n")
    assert terminal.type("\x03").endswith("$ ")
    terminal.type("if true\n")
    assert terminal.type("\x03").endswith("\n$ ")
    assert terminal.type("echo alive\n").endswith("\nalive\n$ ")


def test_control_z_stops_a_job_that_fg_continues() -> None:
    terminal = Terminal()
    terminal.type("sleep 100\n")
    assert "[1]+  Stopped                 sleep 100" in terminal.type("\x1a")
    assert "[1]+  Stopped                 sleep 100" in terminal.type("jobs\n")
    assert "[1]+ sleep 100 &" in terminal.type("bg\n")
    assert "[1]+  Running                 sleep 100 &" in terminal.type("jobs\n")
    assert terminal.type("fg\n").endswith("sleep 100\n")
    assert terminal.type("\x03").endswith("$ ")
    assert terminal.type("jobs\n") == "jobs\n$ "


def test_the_end_of_a_background_job_is_told_before_the_next_prompt() -> None:
    terminal = Terminal()
    assert re.match(r"sleep 0\.1 &\n\[1\] \d+\n\$ $", terminal.type("sleep 0.1 &\n"))
    assert "[1]+  Done                    sleep 0.1" in terminal.type("\n")


def test_children_have_default_signals_and_the_terminal() -> None:
    terminal = Terminal()
    assert terminal.type("cat\n") == "cat\n"
    assert terminal.type("line\n") == "line\nline\n"
    assert terminal.type("\x04").endswith("$ ")
    assert terminal.type("(trap; cat | cat) < /dev/null; echo done\n").endswith("done\n$ ")
