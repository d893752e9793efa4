"""The kernel's side of the calls on terminals: raw mode, and reading a line with the shell's own editor."""

from __future__ import annotations

from typing import Final

from belljar.abi.dataclass import replace
from belljar.abi.errno import EINTR, ENOTTY
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.signals import Signal
from belljar.abi.termios import ECHO, ICANON, ICRNL, IEXTEN, ISIG, IXON, OPOST, VMIN, VTIME, Termios
from belljar.kernel.process import Process
from belljar.shell.control import Discard
from belljar.shell.editor import Editor
from belljar.shell.shell import Shell

HISTORY_MAX: Final = 1000


class Terminal:
    """A process's changes to its terminal, and its line editor."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._before: dict[int, Termios] = {}
        self._shell: Shell | None = None
        self._editor: Editor | None = None

    def raw(self, process: Process, fd: int, on: int) -> None:
        settings = process.ioctl(fd, "termios")
        assert isinstance(settings, Termios)
        before = self._before.setdefault(fd, settings)
        if on:
            cc = list(before.cc)
            cc[VMIN], cc[VTIME] = 1, 0
            before = replace(
                before,
                iflag=before.iflag & ~(ICRNL | IXON),
                oflag=before.oflag & ~OPOST,
                lflag=before.lflag & ~(ISIG | ICANON | ECHO | IEXTEN),
                cc=tuple(cc),
            )
        process.ioctl(fd, "set_termios", before)

    def edit(self, process: Process, prompt: bytes, history: int) -> tuple[bytes]:
        """A line, its newline with it; b"" at the end of input. EINTR: it was interrupted. ENOTTY."""
        if not process.isatty(0) or not process.isatty(2):
            raise SysError(ENOTTY)
        shell, editor = self._get()
        handler = process.handlers.get(Signal.INT)

        def interrupted(number: int) -> None:
            shell.interrupted = True
            if callable(handler):
                handler(number)

        process.catch(Signal.INT, interrupted)
        try:
            line = editor.read(fsdecode(prompt))
        except Discard:
            raise SysError(EINTR) from None
        finally:
            process.catch(Signal.INT, handler)
        if line is None:
            return (b"",)
        if history and line.strip():
            shell.history.lines.append(line.rstrip("\n"))
            del shell.history.lines[:-HISTORY_MAX]
        return (fsencode(line),)

    def _get(self) -> tuple[Shell, Editor]:
        if self._shell is None or self._editor is None:
            self._shell = Shell(self._process)
            self._shell.bindings["\\t"] = "tab-insert"  # the shell's completions are not this program's
            self._editor = Editor(self._shell)
        return self._shell, self._editor
