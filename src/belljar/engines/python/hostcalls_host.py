"""The host's end of the guest's host calls: forwards system calls, and serves the few that concern the process itself.

A request is a u16 and the arguments as in `calls.protocol`; an answer an i32 (0 or Linux's errno) and the results. The
kernel checks what is asked; here only what this process remembers of its descriptors is kept right.
"""

from __future__ import annotations

import os
import struct
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final, NoReturn

from belljar.engines.calls.client_host import CallError, Client, ConnectionEnded
from belljar.engines.python.interrupt_host import Interrupter
from belljar.engines.wasi.kernel_host import RemoteKernel
from belljar.engines.wasi.memory import Fault
from belljar.engines.wasi.preview1 import Preview1
from belljar.engines.wasi.program import STDOUT, Refused
from belljar.engines.wire.calls import CALLS, decode

PARK, EXIT, MARK, COMPARE, IMMORTAL, LAST, PROCESSOR = 1000, 1001, 1002, 1003, 1004, 1005, 1006
FAULT: Final = 0xFFFFFFFE
"""Return value that the guest's C code treats as a host failure."""
EINTR, EBADF, ENOSYS = 4, 9, 38
IMMORTAL_COUNT: Final = 5 << 28
"""The count of references by which CPython knows an immortal object, where pointers have 32 bits."""
_STATUS: Final = struct.Struct("<i")
_FORWARDED: Final = frozenset(call.number for name, call in CALLS.items() if name not in ("exit", "exceeded", "finish"))
_SPAWN, _DUP, _DUP2 = (CALLS[name].number for name in ("spawn", "dup", "dup2"))


class HostCalls:
    """The host calls of one guest."""

    alloc: Callable[[int], int]
    """The guest's own malloc."""

    def __init__(self, wasi: Preview1, park: Callable[[], bytes]) -> None:
        self._wasi = wasi
        self._park = park
        self._client: Client | None = None
        self.park_again: Callable[[], bytes] | None = None
        """Handles PARK once this process is a program's."""
        self.interrupter: Interrupter | None = None
        self.started_ns = 0
        """Processor time this process had used before it was a program."""
        self.kernel: RemoteKernel | None = None

    def enter(self, client: Client, kernel: RemoteKernel, park_again: Callable[[], bytes] | None = None) -> None:
        """Become a program's process; `park_again` waits to be forked, if it can be."""
        self._client = client
        self.park_again = park_again
        self.kernel = kernel

    def call(self, address: int, length: int, out_address: int, out_length: int) -> int:
        """host.call of the guest's `_host` module."""
        memory = self._wasi.memory
        try:
            memory.check(out_address, 4)
            memory.check(out_length, 4)
            request = memory.read(address, length)
        except Fault:
            return FAULT
        if len(request) < 2:
            return FAULT
        answer = self._answer(int.from_bytes(request[:2], "little"), request[2:])
        place = self.alloc(len(answer))
        if not place:
            return FAULT
        memory.write(place, answer)
        memory.write_u32(out_address, place)
        memory.write_u32(out_length, len(answer))
        return 0

    def _answer(self, number: int, body: bytes) -> bytes:
        if number == PROCESSOR:
            return _STATUS.pack(0) + (time.process_time_ns() - self.started_ns).to_bytes(8, "little")
        if self._client is None:
            return self._template(number, body)
        if number == PARK and self.park_again is not None:
            return self.park_again()
        if number == EXIT and len(body) == 16:
            return _STATUS.pack(self._finish(*struct.unpack("<qq", body)))
        if number == LAST:
            self._wasi.final_output = bytearray()
            return _STATUS.pack(0)
        if number not in _FORWARDED:
            return _STATUS.pack(ENOSYS)
        try:
            self._before(number, body)
            return _STATUS.pack(0) + self._client.request(number, body)
        except CallError as error:
            return _STATUS.pack(error.errno)
        except Refused:
            return _STATUS.pack(EBADF)
        except ConnectionEnded:
            os._exit(0)
        finally:
            if self._client.signals and self.kernel is not None:
                self.kernel.take_signals()

    def _template(self, number: int, body: bytes) -> bytes:
        """Handle a template's requests: park, find signal flags (see `interrupt_host`), make objects immortal (see
        `guest/_belljar/immortal.py`)."""
        if number == PARK:
            return self._park()
        if number == MARK:
            self.interrupter = self.interrupter or Interrupter(self._wasi.memory)
            self.interrupter.begin()
        elif number == COMPARE and self.interrupter is not None and len(body) == 1:
            self.interrupter.end(body[0])
        elif number == LAST:
            self._wasi.final_output = bytearray()
        elif number == IMMORTAL:
            write = self._wasi.memory.write_u32
            for (address,) in struct.iter_unpack("<I", body):
                write(address, IMMORTAL_COUNT)
        else:
            return _STATUS.pack(ENOSYS)
        return _STATUS.pack(0)

    def _before(self, number: int, body: bytes) -> None:
        """Before spawn, dup and dup2: hand the offsets of shared descriptors over to the kernel."""
        if number == _SPAWN:
            for source in {0, 1, 2, *decode(CALLS["spawn"].takes, body)[5]}:
                self._wasi.share(source)
        elif number == _DUP:
            self._wasi.share(decode(CALLS["dup"].takes, body)[0])
        elif number == _DUP2:
            source, target, _ = decode(CALLS["dup2"].takes, body)
            self._wasi.share(source)
            self._wasi.forget(target)

    def leave(self, code: int) -> int:
        """proc_exit."""
        self._end(code, 0)

    def trapped(self, error: Exception) -> None:
        """Handle a WebAssembly trap: mostly too deep a recursion."""
        if self._client is None:
            return
        text = "stack overflow" if "stack" in str(error) else str(error).strip().splitlines()[-1]
        with suppress(CallError):
            self._client.call("write", 2, f"Fatal Python error: {text}\n".encode())
        self._end(0, 6)

    def _finish(self, code: int, signal: int) -> int:
        """The guest's end, and with it what it said last. Comes back with an errno if that could not be written."""
        assert self._client is not None
        words, self._wasi.final_output = self._wasi.final_output, None
        while words:
            ended = code & 0xFF, signal, time.process_time_ns() - self.started_ns
            try:
                (written,) = self._client.call("finish", STDOUT, bytes(words), *ended)
                del words[:written]
            except CallError as error:
                if error.errno != EINTR:
                    return error.errno
            except ConnectionEnded:
                os._exit(0)
        self._end(code, signal)

    def _end(self, code: int, signal: int) -> NoReturn:
        assert self._client is not None
        with suppress(ConnectionEnded):
            self._client.post("exit", code & 0xFF, signal, time.process_time_ns() - self.started_ns)
        os._exit(0)
