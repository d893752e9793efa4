"""`-i inplace`: the output of each file's records replaces the file."""

from __future__ import annotations

from belljar.abi.errors import SysError
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.io import Sink
from belljar.bin.awk.runtime import Runtime


class InPlace:
    """Diverts standard output into a replacement of the current file between BEGINFILE and ENDFILE."""

    def __init__(self, runtime: Runtime) -> None:
        self.runtime = runtime
        self.original = runtime.streams.stdout.sink
        self.replacement: Sink | None = None

    def backup(self) -> str:
        """The suffix under which the old file is kept, "" for none."""
        for name in ("inplace::suffix", "INPLACE_SUFFIX"):
            if name in self.runtime.cells:
                return self.runtime.conversion.string(self.runtime.cells[name][0])
        return ""

    def begin(self) -> None:
        name = self.runtime.file_name
        if name in ("", "-", "/dev/stdin"):
            self.runtime.warn_plain(f"inplace::begin: ignoring invalid FILENAME `{name}'")
            return
        stdout = self.runtime.streams.stdout
        stdout.flush()
        try:
            self.replacement = self.runtime.world.replace_file(self.runtime.streams.path(name), self.backup())
        except SysError as error:
            raise AwkFatal(f"inplace::begin: Cannot stat `{name}' ({error.reason})") from error
        stdout.sink = self.replacement

    def end(self) -> None:
        if self.replacement is None:
            return
        stdout = self.runtime.streams.stdout
        stdout.flush()
        self.replacement.close()
        self.replacement = None
        stdout.sink = self.original
        name = self.runtime.streams.path(self.runtime.file_name)
        self.runtime.world.finish_replacement(name, self.backup())


def edit_in_place(runtime: Runtime) -> None:
    """Hook in-place editing before and after the program's own BEGINFILE and ENDFILE actions."""
    edit = InPlace(runtime)
    own_begin, own_end = runtime.input.begin_file, runtime.input.end_file

    def begin() -> None:
        edit.begin()
        if own_begin is not None:
            own_begin()

    def end() -> None:
        if own_end is not None:
            own_end()
        edit.end()

    runtime.input.begin_file = begin
    runtime.input.end_file = end
