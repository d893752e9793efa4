"""QuickJS's values, by the handles its WebAssembly module gives for them (the interface is quickjs-rs's `_guest.wasm`).

A handle is a number that keeps a value alive until it is freed. What JavaScript passes to a host function is freed by
the module itself; what a host function gives back is the module's from then on.
"""

from __future__ import annotations

import struct
from typing import Any, Final

from belljar.engines.quickjs.machine_host import Machine

OK, JS_ERROR = 0, 1
FAILED: Final = 0xFFFFFFFF
"""Return value of a host function that throws."""
TEXT_MAX: Final = 64 << 20
"""Most bytes of one string."""
OUT_OF_MEMORY: Final = "out of memory"
"""The engine's own words for it."""
_DOUBLE: Final = struct.Struct("<d")
_BITS: Final = struct.Struct("<Q")


class Thrown(Exception):
    """An exception thrown by JavaScript, or to be thrown there."""


class Values:
    """The values of one instance."""

    def __init__(self, machine: Machine) -> None:
        self._memory = machine.memory
        export = machine.export
        self._alloc, self._release = export("qjs_alloc"), export("qjs_free")
        self._last_pointer, self._last_length = export("qjs_last_ptr"), export("qjs_last_len")
        self._forget_last = export("qjs_result_free")
        self._new_string, self._new_bytes = export("new_string"), export("new_uint8array")
        self._new_number, self._new_bool = export("new_number"), export("new_bool")
        self._new_undefined, self._new_error = export("new_undefined"), export("new_error")
        self._new_function, self._new_object = export("new_function"), export("new_object")
        self._get_string, self._get_number = export("get_string"), export("get_number")
        self._get_bytes, self._set_prop = export("get_typed_array_buffer"), export("set_prop")
        self._get_prop = export("get_prop")
        self._call, self._eval, self._throw = export("call_function"), export("eval_code"), export("throw")
        self._eval_module, self._take_exception = export("eval_module_async"), export("last_exception")
        self._state, self._result = export("promise_state"), export("promise_result")
        self.free, self.dup = export("free_value"), export("dup_handle")
        self._out = self._alloc(32)
        """Address of the module's out parameter. Read at once: nothing runs in between."""
        self._empty_text = self.evaluate("''")
        self._empty_bytes = self.evaluate("new Uint8Array(0)")

    # Memory.

    def _put(self, data: bytes) -> int:
        if len(data) > TEXT_MAX:
            raise Thrown(f"{len(data)} bytes are too many to hand over at once")
        pointer = self._alloc(len(data))
        if pointer == 0:
            raise Thrown(OUT_OF_MEMORY)
        self._memory.write(pointer, data)
        return pointer

    def _given(self) -> int:
        """The handle that a call wrote."""
        return int.from_bytes(self._memory.read(self._out, 4), "little")

    def _last(self) -> bytes:
        data = self._memory.read(self._last_pointer(), self._last_length())
        self._forget_last()
        return data

    def read(self, pointer: int, length: int) -> bytes:
        return self._memory.read(pointer, length)

    def place(self, data: bytes, length_at: int) -> int:
        """Give text to the module, which frees it; its length is written where the module wants it."""
        pointer = self._put(data)
        self._memory.write_u32(length_at, len(data))
        return pointer

    # From JavaScript.

    def text(self, handle: int) -> str:
        if self._get_string(handle) != OK:
            raise Thrown("a text was expected")
        return self._last().decode("utf-8", "replace")

    def number(self, handle: int) -> float:
        if self._get_number(handle, self._out) != OK:
            raise Thrown("a number was expected")
        (value,) = _DOUBLE.unpack(self._memory.read(self._out, 8))
        return float(value)

    def octets(self, handle: int) -> bytes:
        if self._get_bytes(handle, self._out, self._out + 4, self._out + 8) != OK:
            raise Thrown("a Uint8Array was expected")
        return self._last()

    # To JavaScript.

    def give(self, value: Any) -> int:
        """A handle for None (undefined), a truth, a number, a text or bytes."""
        match value:
            case None:
                return self._new_undefined()
            case bool():
                return self._new_bool(value)
            case int() | float():
                return self._new_number(_BITS.unpack(_DOUBLE.pack(value))[0])
            case str():
                return self._give(value.encode("utf-8", "replace"), self._empty_text, text=True)
            case bytes() | bytearray():
                return self._give(bytes(value), self._empty_bytes, text=False)
            case Handle():
                return value.number
        raise TypeError(f"no JavaScript for {type(value).__name__}")

    def _give(self, data: bytes, empty: int, *, text: bool) -> int:
        if not data:  # the module takes nothing for a mistake
            return self.dup(empty)
        pointer = self._put(data)
        try:
            if text:
                made = self._new_string(pointer, len(data))
            else:
                made = self._given() if self._new_bytes(pointer, len(data), self._out) == OK else 0
        finally:
            self._release(pointer, len(data))
        if made == 0:
            raise Thrown(OUT_OF_MEMORY)
        return made

    def throw(self, message: str) -> int:
        """Have the host function that is under way throw; gives what it has to return."""
        data = message.encode("utf-8", "replace") or b"?"
        pointer = self._alloc(len(data))
        if pointer:
            self._memory.write(pointer, data)
            if self._new_error(pointer, len(data), self._out) == OK:
                made = self._given()
                self._throw(made)
                self.free(made)
            self._release(pointer, len(data))
        return FAILED

    # Code.

    def functions(self, names: list[str]) -> int:
        """An object of host functions."""
        made = self._new_object()
        for name in names:
            pointer = self._put(name.encode())
            function = self._new_function(pointer, len(name))
            self._set_prop(made, pointer, len(name), function)
            self.free(function)
            self._release(pointer, len(name))
        return made

    def get(self, object: int, name: str) -> int:
        pointer = self._put(name.encode())
        self._check(self._get_prop(object, pointer, len(name), self._out))
        made = self._given()
        self._release(pointer, len(name))
        return made

    def evaluate(self, code: str) -> int:
        """Run a script; gives its value. Raises Thrown."""
        data = code.encode()
        pointer = self._put(data)
        try:
            self._check(self._eval(pointer, len(data), self._out))
            return self._given()
        finally:
            self._release(pointer, len(data))

    def run_script(self, code: str) -> Handle:
        """The same for a host function; if it throws, that is pending: return FAILED."""
        data = code.encode("utf-8", "replace")
        pointer = self._put(data)
        try:
            if self._eval(pointer, len(data), self._out) != OK:
                raise Pending
            return Handle(self._given())
        finally:
            self._release(pointer, len(data))

    def start_module(self, code: str, name: str) -> None:
        """Compile and start a module. If it does not compile, what it threw is pending: return FAILED."""
        source, title = code.encode("utf-8", "replace") or b"\n", name.encode()
        pointer, named = self._put(source), self._put(title)
        try:
            if self._eval_module(pointer, len(source), named, len(title), self._out) != OK:
                raise Pending
            self.free(self._given())
        finally:
            self._release(pointer, len(source))
            self._release(named, len(title))

    def call(self, function: int, *arguments: int) -> int:
        """Call a function with handles, which stay the caller's. Raises Thrown."""
        this = self._new_undefined()
        pointer = self._put(struct.pack(f"<{len(arguments)}I", *arguments))
        try:
            self._check(self._call(function, this, pointer, len(arguments), self._out))
            return self._given()
        finally:
            self._release(pointer, 4 * len(arguments))
            self.free(this)

    def adopt(self, value: int) -> int:
        """A handle of an object that the engine itself spoke of, not by a handle but as it is."""
        made = self._new_undefined()  # the first of a handle is the value itself
        pointer = value & 0xFFFFFFFF
        count = int.from_bytes(self._memory.read(pointer, 4), "little")
        self._memory.write_u32(pointer, count + 1)
        self._memory.write_u64(made, value)
        return made

    def promise(self, handle: int) -> tuple[int, int] | None:
        """Its state (0 pending, 1 fulfilled, 2 rejected) and a handle of its value; None if it is no promise."""
        if self._state(handle, self._out) != OK:
            return None
        state = self._given()
        if state == 0:
            return 0, self._new_undefined()
        self._result(handle, self._out)
        return state, self._given()

    def _check(self, status: int) -> None:
        if status == OK:
            return
        if status != JS_ERROR:
            raise Thrown(f"the engine answers with status {status}")
        if self._take_exception(self._out) != OK:
            raise Thrown("interrupted")
        handle = self._given()
        try:
            words = [self._word(handle, name) for name in ("name", "message", "stack")]
        finally:
            self.free(handle)
        raise Thrown(f"{words[0]}: {words[1]}\n{words[2]}")

    def _word(self, handle: int, name: str) -> str:
        pointer = self._put(name.encode())
        status = self._get_prop(handle, pointer, len(name), self._out)
        made = self._given()
        self._release(pointer, len(name))
        if status != OK:
            return "?"
        try:
            return self.text(made)
        except Thrown:
            return "?"
        finally:
            self.free(made)


class Pending(Exception):
    """JavaScript threw; the exception is still pending in the module."""


class Handle:
    """A handle to give back as it is."""

    __slots__ = ("number",)

    def __init__(self, number: int) -> None:
        self.number = number
