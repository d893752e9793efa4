"""A WebAssembly module made to run here: its exports as quick Python functions, its memory, and traps as exceptions.

wasmtime's own way of calling an export looks every type up on every call. What JavaScript asks of its host takes a
dozen such calls, so they are made by wasmtime's unchecked C interface, whose types are read once.
"""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import wasmtime
from wasmtime import _ffi as ffi

from belljar.engines.artefact_host import open_checked
from belljar.engines.wasi.linker_host import Bindings, _address, _library, engine, guest_memory

WASI: Final = "wasi_snapshot_preview1"
EBADF: Final = 8
"""WASI's number for a descriptor that is none."""
_MASK: Final = 0xFFFFFFFFFFFFFFFF
_I32: Final = 0xFFFFFFFF
_STACK_LEAST: Final = 64 << 10

Export = Callable[..., int]


class Trapped(Exception):
    """The module's code was ended by the machine, not by itself."""

    def __init__(self, message: str, *, stack: bool) -> None:
        super().__init__(message)
        self.stack = stack
        """Whether it was its stack that ran out."""


class Machine:
    """One instance. `define` is given the bindings before the module is instantiated."""

    def __init__(self, artefact: Path, define: Callable[[Bindings], None]) -> None:
        native = engine()
        with open_checked(artefact) as name:
            module = wasmtime.Module.deserialize_file(native, name)
        self.store = wasmtime.Store(native)
        self._linker = wasmtime.Linker(native)
        self.bindings = Bindings(self._linker)
        self._define_wasi(self.bindings)
        define(self.bindings)
        self._exports = self._linker.instantiate(self.store, module).exports(self.store)
        self.memory = guest_memory(self.store, self._exports)
        if "_initialize" in self._exports:
            self.export("_initialize")()

    def _define_wasi(self, bindings: Bindings) -> None:
        """Define the WASI imports of our modules: random bytes, an empty environment, and no files."""
        bindings.define(WASI, "random_get", "ii", "i", self._random)
        bindings.define(WASI, "environ_get", "ii", "i", lambda *_: 0)
        bindings.define(WASI, "environ_sizes_get", "ii", "i", self._no_environment)
        bindings.define(WASI, "fd_write", "iiii", "i", lambda *_: EBADF)

    def _random(self, pointer: int, length: int) -> int:
        self.memory.write(pointer, os.urandom(length))
        return 0

    def _no_environment(self, count: int, size: int) -> int:
        self.memory.write_u32(count, 0)
        self.memory.write_u32(size, 0)
        return 0

    def export(self, name: str) -> Export:
        """An exported function of whole numbers, as one of Python."""
        function = self._exports[name]
        assert isinstance(function, wasmtime.Func)
        kind = function.type(self.store)
        slots = max(len(kind.params), len(kind.results), 1)
        gives = bool(kind.results)
        raw_type = ctypes.c_uint64 * (2 * slots)
        pointer, context = ctypes.byref(function._func), _address(self.store._context())
        call = _library().wasmtime_func_call_unchecked
        call.restype = ctypes.c_void_p
        count = ctypes.c_size_t(slots)

        def run(*arguments: int) -> int:
            raw = raw_type()
            for index, argument in enumerate(arguments):
                raw[2 * index] = argument & _MASK
            trap = ctypes.c_void_p()
            error = call(context, pointer, raw, count, ctypes.byref(trap))
            if error or trap.value:
                self._failed(error, trap)
            return raw[0] & _I32 if gives else 0

        return run

    def put_into_table(self, module: str, name: str) -> int:
        """Make a host function one that the module can call by its number."""
        function = self._linker.get(self.store, module, name)
        table = self._exports["table"]
        assert isinstance(table, wasmtime.Table)
        assert isinstance(function, wasmtime.Func)
        return table.grow(self.store, 1, function)

    def _failed(self, error: Any, trap: Any) -> None:
        """Raise what ended a call: what a host function raised, or the machine's own reason."""
        raised, self.bindings.raised = self.bindings.raised, None
        if error:
            pointer = ctypes.cast(error, ctypes.POINTER(ffi.wasmtime_error_t))
            made: wasmtime.WasmtimeError | wasmtime.Trap = wasmtime.WasmtimeError._from_ptr(pointer)
        else:
            made = wasmtime.Trap._from_ptr(ctypes.cast(trap, ctypes.POINTER(ffi.wasm_trap_t)))
        if raised is not None:
            raise raised
        code = made.trap_code if isinstance(made, wasmtime.Trap) else None
        # A module has a second stack at the bottom of its memory: who falls off that reads from nowhere.
        fell = code == wasmtime.TrapCode.MEMORY_OUT_OF_BOUNDS and self._stack_left() < _STACK_LEAST
        stack = fell or code == wasmtime.TrapCode.STACK_OVERFLOW
        raise Trapped(str(made).strip().splitlines()[-1].strip(), stack=stack)

    def _stack_left(self) -> int:
        pointer = self._exports.get("__stack_pointer")
        return int(pointer.value(self.store)) if isinstance(pointer, wasmtime.Global) else _STACK_LEAST
