"""The kernel's side of `edit`: a line from the terminal with the shell's own line editor, completed by the program."""

from __future__ import annotations

from typing import Final

from belljar.abi.errno import EINTR, EINVAL, ENOTTY
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.signals import Signal
from belljar.engines.wire.calls import EDIT_COMPLETES, EDIT_HISTORY, EDIT_LISTS_ALL, EDIT_ONE_COLUMN
from belljar.kernel.process import Process
from belljar.shell.control import Discard
from belljar.shell.editor import Editor, Suspended
from belljar.shell.editor.completion import Completion, common_prefix
from belljar.shell.shell import Shell

HISTORY_MAX: Final = 1000
_LINE, _TAB = 0, 1


class LineEditor:
    """The line editor of one program, with its history."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._shell: Shell | None = None
        self._editor: Editor | None = None
        self._completion: Completion | None = None
        """The program's answer to the Tab at which the editor stopped."""

    def edit(self, process: Process, prompt: bytes, bits: int, answer: list[bytes]) -> tuple[int, bytes]:
        """EINTR: it was interrupted. ENOTTY."""
        if not process.isatty(0) or not process.isatty(2):
            raise SysError(ENOTTY)
        shell, editor = self._get(completes=bool(bits & EDIT_COMPLETES))
        editor.asks = not bits & EDIT_LISTS_ALL
        editor.one_column = bool(bits & EDIT_ONE_COLUMN)
        handler = process.handlers.get(Signal.INT)

        def interrupted(number: int) -> None:
            shell.interrupted = True
            if callable(handler):
                handler(number)

        process.catch(Signal.INT, interrupted)
        try:
            if answer:
                self._completion = _completion(editor.buffer.text[: editor.buffer.point], answer)
                line = editor.resume()
            else:
                line = editor.read(fsdecode(prompt))
        except Discard:
            raise SysError(EINTR) from None
        except Suspended:
            return _TAB, fsencode(editor.buffer.text[: editor.buffer.point])
        finally:
            process.catch(Signal.INT, handler)
        if line is None:
            return _LINE, b""
        if bits & EDIT_HISTORY and line.strip():
            shell.history.lines.append(line.rstrip("\n"))
            del shell.history.lines[:-HISTORY_MAX]
        return _LINE, fsencode(line)

    def history(self, process: Process, lines: list[bytes]) -> None:
        self._get(completes=False)[0].history.lines[:] = [fsdecode(line) for line in lines[-HISTORY_MAX:]]

    def _get(self, *, completes: bool) -> tuple[Shell, Editor]:
        if self._shell is None or self._editor is None:
            self._shell = Shell(self._process)
            self._editor = Editor(self._shell, self._complete)
        self._shell.bindings = {} if completes else {"\\t": "tab-insert"}  # the shell's completions are not a program's
        return self._shell, self._editor

    def _complete(self, _shell: Shell, _line: str, _rest: str) -> Completion:
        found, self._completion = self._completion, None
        if found is None:
            raise Suspended
        return found


def _completion(line: str, answer: list[bytes]) -> Completion:
    """EINVAL: it is no answer to what was asked."""
    if not answer[0].isdigit() or not 0 <= (size := int(answer[0][:9])) <= len(line):
        raise SysError(EINVAL)
    names = [fsdecode(name) for name in answer[1:]]
    word = line[len(line) - size :]
    common = common_prefix(names) if names else word
    return Completion(len(line) - size, common if len(common) >= size else word, names)
