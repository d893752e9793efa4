"""The main input: ARGV's files one after the other, assignments among them, BEGINFILE and ENDFILE between."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.abi.errors import SysError
from belljar.bin.awk.errors import AwkFatal, NextFile
from belljar.bin.awk.reader import Reader, Source
from belljar.bin.awk.values import UNINIT, to_number, whole

if TYPE_CHECKING:
    from belljar.bin.awk.runtime import Runtime

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z_0-9]*)=(.*)", re.S)

Hook = Callable[[], None]


class MainInput:
    """Steps through ARGV; `reader` is the file being read."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.reader: Reader | None = None
        self.index = 0
        self.used_file = False
        self.ended = False
        self.begin_file: Hook | None = None
        self.end_file: Hook | None = None
        self.in_hook = False

    def advance(self) -> Reader | None:
        """Open the next file, or None when there is none left. Runs the BEGINFILE actions."""
        runtime = self.runtime
        while not self.ended:
            name = self._next_name()
            if name is None:
                self.ended = True
                break
            runtime.set_file(name, self.index)
            source: Source | None = None
            reason = ""
            try:
                source = runtime.streams.open_input(name)
                if runtime.is_directory(source, name):
                    reason = "Is a directory"
            except SysError as error:
                reason = error.reason
            if self.begin_file is not None:
                if not self._run_begin_file(name, reason):
                    if source is not None:
                        source.close()
                    continue
                if reason:
                    raise AwkFatal(f"cannot open file `{name}' for reading: {reason}")
            elif reason == "Is a directory":
                runtime.warn_plain(f"command line argument `{name}' is a directory: skipped")
                runtime.exit_status = runtime.exit_status or 0
                continue
            elif reason:
                raise AwkFatal(f"cannot open file `{name}' for reading: {reason}")
            assert source is not None
            self.reader = runtime.streams.reader(source)
            return self.reader
        return None

    def _run_begin_file(self, name: str, reason: str) -> bool:
        """False when the actions chose to skip the file."""
        assert self.begin_file is not None
        self.runtime.cell("ERRNO")[0] = reason
        self.in_hook = True
        try:
            self.begin_file()
        except NextFile:
            return False
        finally:
            self.in_hook = False
        return True

    def _next_name(self) -> str | None:
        """The next operand that names a file; assignments on the way are done. Standard input when none does."""
        runtime = self.runtime
        arguments = runtime.array("ARGV")
        text = runtime.conversion.string
        while True:
            self.index += 1
            if self.index >= whole(to_number(runtime.cell("ARGC")[0])):
                if self.used_file:
                    return None
                self.used_file = True
                return "-"
            value = arguments.get(str(self.index), UNINIT)
            operand = text(value)
            if not operand:
                continue
            match = _ASSIGNMENT.fullmatch(operand)
            if match is not None:
                runtime.assign(match.group(1), match.group(2))
                continue
            self.used_file = True
            return operand

    def finish_file(self) -> None:
        """The end of the current file, reached or skipped to."""
        if self.reader is not None:
            self.reader.close()
            self.reader = None
            if self.end_file is not None:
                self.in_hook = True
                try:
                    self.end_file()
                finally:
                    self.in_hook = False

    def next_record(self) -> str | None:
        """The next record of the main input, for getline; None at the very end."""
        while True:
            if self.reader is None and self.advance() is None:
                return None
            assert self.reader is not None
            text = self.reader.next()
            if text is not None:
                return text
            self.finish_file()
