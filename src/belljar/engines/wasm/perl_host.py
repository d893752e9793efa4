"""A template of Perl: `python -I -m belljar.engines.wasm.perl_host KIND ARTEFACT LIBRARY ARCHIVE FD`.

Its WebAssembly is a library with functions to start an interpreter. Each child starts one: with our module first.
"""

from __future__ import annotations

import os
import struct
import sys
from typing import Final, NoReturn

from belljar.engines.calls.client_host import ConnectionEnded
from belljar.engines.wasi.descriptors import Library
from belljar.engines.wasi.kernel_host import HostWorld
from belljar.engines.wasi.program import Kernel
from belljar.engines.wasm.channel import ChannelWasi
from belljar.engines.wasm.tool_host import Template, main
from belljar.engines.wire.tools import PERL

_OURS: Final = (f"-I{PERL.support_root}".encode(), b"-mBelljar")
_NOT_COMPILED: Final = 255
"""Perl's exit code for a program with errors; the library says 1."""


class PerlTemplate(Template):
    """The interpreter."""

    def make_wasi(self, kernel: Kernel, world: HostWorld, library: Library) -> ChannelWasi:
        wasi = ChannelWasi(kernel, world, library)
        wasi.directory_at = self.tool.directory
        wasi.enter()
        self.perl = wasi
        return wasi

    def define_imports(self) -> None:
        self.bindings.define("env", "call_host_function", "iii", "i", lambda *_: 0)

    def run(self) -> NoReturn:
        self.call("_initialize")
        running = self.running or self.park()  # it may have asked for its environment already
        argv = running.program.argv or [b"perl"]
        words = [argv[0], *_OURS, *argv[1:]]
        pointers = [self._text(word) for word in words]
        table = self.call("malloc", 4 * len(pointers) + 4)
        self.wasi.memory.write(table, struct.pack(f"<{len(pointers) + 1}I", *pointers, 0))
        code = self.call("zeroperl_init_with_args", len(pointers), table)
        if not self.perl.compiled and code == 1:
            code = _NOT_COMPILED if self.perl.left is None else self.perl.left
        self.call("zeroperl_flush")
        self.call("zeroperl_shutdown")
        running.end(code, 0)

    def _text(self, word: bytes) -> int:
        address = self.call("malloc", len(word) + 1)
        self.wasi.memory.write(address, word + b"\0")
        return address


if __name__ == "__main__":
    try:
        main(sys.argv[1:], PerlTemplate)
    except ConnectionEnded:
        os._exit(0)
