"""Binds host functions to a WebAssembly program by wasmtime's unchecked C interface: a tenth of the cost of its own.

The arguments arrive as raw 16-byte slots; what they mean is the signature's business, checked here once when the
function is defined. Nothing a guest does can raise out of a host function but what is meant to unwind the guest.
"""

from __future__ import annotations

import ctypes
import mmap
import struct
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Final

import wasmtime
from wasmtime import _ffi as ffi

from belljar.engines.wasi.memory import Memory

_CALLBACK: Final = ctypes.CFUNCTYPE(ctypes.c_size_t, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_size_t)
RESERVATION: Final = 1 << 32
"""Bytes of address space behind a memory: wasmtime's own default, so that a memory never moves."""
_GRAIN: Final = 16 << 10
"""Bytes that are given back together."""


@cache
def _library() -> ctypes.CDLL:
    """wasmtime's library, with prototypes of our own."""
    return ctypes.CDLL(ffi.dll._name)


def _address(pointer: Any) -> ctypes.c_void_p:
    return ctypes.cast(pointer, ctypes.c_void_p)


class Unwind(Exception):
    """Raised by a host function to end the guest's call."""


class Bindings:
    """Host functions defined in a linker. Keeps what C holds pointers to; and the exception that unwound the guest."""

    def __init__(self, linker: wasmtime.Linker) -> None:
        self._linker = linker
        self._kept: list[Any] = []
        self.raised: BaseException | None = None

    def define(self, module: str, name: str, takes: str, gives: str, function: Callable[..., int | None]) -> None:
        """`takes` and `gives`: `i` for i32 (unsigned to the function), `I` for i64 (signed), `d` for f64."""
        types = {"i": wasmtime.ValType.i32(), "I": wasmtime.ValType.i64(), "d": wasmtime.ValType.f64()}
        signature = wasmtime.FuncType([types[letter] for letter in takes], [types[letter] for letter in gives])
        callback = self._callback(takes, gives, function)
        define = _library().wasmtime_linker_define_func_unchecked
        define.restype = ctypes.c_void_p
        module_bytes, name_bytes = module.encode(), name.encode()
        error = define(
            _address(self._linker.ptr()),
            module_bytes,
            ctypes.c_size_t(len(module_bytes)),
            name_bytes,
            ctypes.c_size_t(len(name_bytes)),
            _address(signature.ptr()),
            callback,
            None,
            None,
        )
        if error:
            raise wasmtime.WasmtimeError(f"could not define {module}.{name}")
        self._kept += [callback, signature]

    def define_all(
        self, module: str, signatures: Mapping[str, str], functions: Mapping[str, Callable[..., int]]
    ) -> None:
        for name, takes in signatures.items():
            self.define(module, name, takes, "" if name == "proc_exit" else "i", functions[name])

    def _callback(self, takes: str, gives: str, function: Callable[..., int | None]) -> Any:
        slots = struct.Struct("<" + "".join({"i": "I12x", "I": "q8x", "d": "d8x"}[letter] for letter in takes))
        size = 16 * max(len(takes), len(gives), 1)
        at = (ctypes.c_char * size).from_address
        unpack = slots.unpack_from
        result = struct.Struct("<I")

        def call(_environment: int, _caller: int, arguments: int, _count: int) -> int:
            try:
                buffer = at(arguments)
                value = function(*unpack(buffer))
                if gives:
                    result.pack_into(buffer, 0, value)
            except BaseException as error:  # noqa: BLE001 - C is above us: it is raised again where the guest was called
                self.raised = error
                return new_trap()
            return 0

        return _CALLBACK(call)


def direct(store: wasmtime.Store, function: wasmtime.Func) -> Callable[[int], int]:
    """A function of the guest's from i32 to i32, to be called as often as host functions are.

    Raises WasmtimeError if it traps.
    """
    call = _library().wasmtime_func_call_unchecked
    call.restype = ctypes.c_void_p
    slot, trap = ctypes.create_string_buffer(16), ctypes.c_void_p()
    arguments = (_address(store._context()), ctypes.byref(function._func), slot, ctypes.c_size_t(1), ctypes.byref(trap))
    value = struct.Struct("<I")

    def invoke(argument: int) -> int:
        value.pack_into(slot, 0, argument)
        if call(*arguments) or trap.value:
            raise wasmtime.WasmtimeError("a function of the guest's failed")
        return int(value.unpack_from(slot)[0])

    return invoke


def new_trap() -> int:
    message = b"ended by the host"
    make = _library().wasmtime_trap_new
    make.restype = ctypes.c_void_p
    return int(make(message, ctypes.c_size_t(len(message))))


def engine(*, optimised: bool = True) -> wasmtime.Engine:
    """An engine that loads what `artefact_host` compiled. It has one thread, so its process may fork."""
    return wasmtime.Engine(configuration(optimised=optimised))


def configuration(*, optimised: bool, parallel: bool = False) -> wasmtime.Config:
    config = wasmtime.Config()
    config.parallel_compilation = parallel
    config.cranelift_opt_level = "speed" if optimised else "none"
    # The first must be larger than the second, whatever it is for.
    _library().wasmtime_config_async_stack_size_set(_address(config.ptr()), ctypes.c_uint64(2 * WASM_STACK))
    config.max_wasm_stack = WASM_STACK
    if not optimised:
        set_flag = _library().wasmtime_config_cranelift_flag_set
        set_flag(_address(config.ptr()), b"regalloc_algorithm", b"single_pass")
    return config


WASM_STACK: Final = 4 << 20
"""Bytes of stack a guest may use: the operating system gives a process eight million."""


def give_back_zeros(memory: Memory, start: int) -> int:
    """Give back what holds only zeros from `start` on, to where the guest's memory has grown: used again, it is zero.

    Gives the number of bytes. Below `start` a file may be behind the memory, of which it would then be.
    """
    view, size = memory.whole(), memory.size()
    base = ctypes.addressof(ctypes.c_ubyte.from_buffer(view))
    madvise = ctypes.CDLL(None, use_errno=True).madvise
    nothing = bytes(_GRAIN)
    given = 0
    for at in range(-(-start // _GRAIN) * _GRAIN, size - _GRAIN + 1, _GRAIN):
        if view[at : at + _GRAIN] == nothing and not madvise(
            ctypes.c_void_p(base + at), ctypes.c_size_t(_GRAIN), mmap.MADV_DONTNEED
        ):
            given += _GRAIN
    return given


def guest_memory(store: wasmtime.Store, exports: wasmtime._instance.InstanceExports) -> Memory:
    memory = exports.get("memory")
    if not isinstance(memory, wasmtime.Memory):
        raise wasmtime.WasmtimeError("the program exports no memory")
    base = ctypes.addressof(memory.data_ptr(store).contents)
    view = memoryview((ctypes.c_ubyte * RESERVATION).from_address(base)).cast("B")
    return Memory(view, lambda: memory.data_len(store))
