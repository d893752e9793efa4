"""A template of Ruby: `python -I -m belljar.engines.wasm.ruby_host KIND ARTEFACT LIBRARY ARCHIVE FD`.

Its WebAssembly is a library with an interpreter that was made to live in a page. The template starts it and loads our
main program (`support/ruby/belljar.rb`); each child is told its arguments, and runs that.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Callable
from typing import Final, NoReturn

import wasmtime

from belljar.engines.calls.client_host import ConnectionEnded
from belljar.engines.wasi.descriptors import Library
from belljar.engines.wasi.kernel_host import HostWorld
from belljar.engines.wasi.program import Kernel
from belljar.engines.wasm.channel import ChannelWasi
from belljar.engines.wasm.tool_host import Template, main, support_files

_INIT: Final = "ruby-init: func(args: list<string>) -> ()"
_EVALUATE: Final = "rb-eval-string-protect: func(str: string) -> tuple<handle<rb-abi-value>, s32>"
_FAILED: Final = 4
"""Where in an evaluation's answer the number is that is not 0 if it failed."""


class RubyTemplate(Template):
    """The interpreter."""

    parks_in = ()

    def make_wasi(self, kernel: Kernel, world: HostWorld, library: Library) -> ChannelWasi:
        wasi = ChannelWasi(kernel, world, library)
        wasi.directory_at = self.tool.directory
        wasi.enter()
        return wasi

    def define_imports(self) -> None:
        """Define what would be the page's: references to values are counted, JavaScript is not there."""
        values: dict[int, int] = {}

        def new_value(pointer: int) -> int:
            values[len(values) + 1] = pointer
            return len(values)

        known: dict[str, Callable[..., int | None]] = {
            "resource_new_rb-abi-value": new_value,
            "resource_get_rb-abi-value": lambda handle: values[handle],
        }
        for imported in self.module.imports:
            if imported.module in ("rb-js-abi-host", "canonical_abi"):
                kind, name = imported.type, imported.name or ""
                assert isinstance(kind, wasmtime.FuncType)
                takes, gives = _letters(kind.params), _letters(kind.results)
                self.bindings.define(imported.module, name, takes, gives, known.get(name, self._no_javascript))

    def _no_javascript(self, *_: int) -> int:
        if self.running is None:
            raise SystemExit("Ruby asked for JavaScript while it started")
        self.running.say("there is no JavaScript beside this Ruby")
        self.running.end(1, 0)

    def run(self) -> NoReturn:
        self.call("_initialize")
        words = [b"ruby\0", b"-EUTF-8\0", b"-e_=0\0"]
        pairs = b"".join(struct.pack("<II", self._place(word), len(word)) for word in words)
        self.call(_INIT, self._place(pairs), len(words))
        if not self._evaluate(self._main_program()):
            raise SystemExit("Ruby could not load belljar.rb")
        program = self.park().program
        (ids,) = self.wasi.call("ids")
        arguments = ", ".join([*map(_list, (program.argv or [b"ruby"], program.env)), str(ids[0])])
        self._evaluate(f"Belljar.start({arguments})".encode())
        self.failed(RuntimeError("Ruby did not end"))

    def _main_program(self) -> bytes:
        file = support_files(self.tool)[f"{self.tool.support_root}/belljar.rb".encode()]
        assert not isinstance(file, list)
        source = file.read(0, file.size)
        place = f"eval([{_text(source)}].first, TOPLEVEL_BINDING, 'belljar:')"
        return f"{place}\n".encode()

    def _evaluate(self, source: bytes) -> bool:
        answer = self.call(_EVALUATE, self._place(source), len(source))
        return self.wasi.memory.read(answer + _FAILED, 4) == bytes(4)

    def _place(self, data: bytes) -> int:
        address = self.call("cabi_realloc", 0, 0, 4, max(1, len(data)))
        self.wasi.memory.write(address, data)
        return address


def _letters(types: list[wasmtime.ValType]) -> str:
    return "".join({"i32": "i", "i64": "I", "f64": "d"}[str(kind)] for kind in types)


def _text(data: bytes) -> str:
    """An expression of Ruby for any bytes."""
    return f"['{data.hex()}'].pack('H*').force_encoding('UTF-8')"


def _list(words: list[bytes]) -> str:
    return f"[{', '.join(map(_text, words))}]"


if __name__ == "__main__":
    try:
        main(sys.argv[1:], RubyTemplate)
    except ConnectionEnded:
        os._exit(0)
