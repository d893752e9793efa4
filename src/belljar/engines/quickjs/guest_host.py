"""QuickJS with our JavaScript in it: its host functions, its limits, and its loop of messages, timers and promises.

What addon/guest.cc and addon/natives.cc are for V8. Everything in here that takes a number or a text takes it from the
guest's memory, which is the guest's.
"""

from __future__ import annotations

import hashlib
import math
import os
import struct
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from belljar.engines.calls.client_host import Client
from belljar.engines.quickjs import text, url_host
from belljar.engines.quickjs.deadline_host import Deadline
from belljar.engines.quickjs.machine_host import EBADF, WASI, Machine, Trapped
from belljar.engines.quickjs.rejections_host import FUNCTION, SIGNATURE, Rejections
from belljar.engines.quickjs.strip_host import Stripper
from belljar.engines.quickjs.values_host import FAILED, OUT_OF_MEMORY, Handle, Pending, Thrown, Values
from belljar.engines.quickjs.wire_host import Wire
from belljar.engines.wasi.linker_host import Bindings
from belljar.engines.wire.js import MESSAGE

ENGINE, CPU, WALL, MEMORY, REASONS = 0, 1, 2, 3, 8
"""Why a run is ended, as addon/guest.h numbers it; our JavaScript has more reasons of its own."""
_STACK: Final = b'{"op":"limit","limit":"stack"}'
_MAX: Final = 0xFFFFFFFF
_ROOM: Final = 16 << 20
"""Linear memory beyond a run's limit, so that the reason for its end can still be sent."""


class Guest:
    """One engine, from its start in a template to the end of a run or a program."""

    def __init__(self, artefact: Path, stripper: Stripper, sources: Mapping[str, str]) -> None:
        self._sources = sources
        self._stripper = stripper
        self._wire: Wire | None = None
        self._last = [b""] * REASONS
        self._stopped = self._told = False
        self._why = ENGINE
        self._memory_max = 1 << 32
        self._rejections = Rejections()
        self._deadline = Deadline(self._stop, self._end)
        self._natives: dict[bytes, tuple[tuple[Callable[[int], Any], ...], Callable[..., Any]]] = {}
        self._machine = Machine(artefact, self._define)
        self._jobs, self._collect = self._machine.export("execute_pending_jobs"), self._machine.export("run_gc")
        self._values = values = Values(self._machine)
        letters: dict[str, Callable[[int], Any]] = {
            "n": values.number,
            "s": values.text,
            "b": values.octets,
            "h": lambda handle: handle,
        }
        for name, (takes, function) in self._table().items():
            self._natives[name.encode()] = tuple(letters[letter] for letter in takes), function
        made = values.call(
            values.evaluate(sources["belljar/prelude"]), values.functions([name.decode() for name in self._natives])
        )
        self._dispatcher = values.get(made, "dispatch")
        values.call(values.evaluate(sources["belljar/boot"]), values.get(made, "native"))
        self._run_jobs()
        self._rejections.install(self._machine, values)

    def warm(self) -> None:
        """Use once what a sealed process could not load any more: codecs, digests, the parser of URLs."""
        for encoding in range(8):
            text.decode(text.encode(b"YQ", encoding), encoding)
        for name in hashlib.algorithms_available:
            _digest(name, b"")
        url_host.update("http://a/", 0, "https")
        self.warm_up()
        self.collect()

    def collect(self) -> None:
        """Collect garbage before the process is forked: less memory forks faster."""
        self._collect()

    # What it runs on.

    def _define(self, bindings: Bindings) -> None:
        bindings.define("env", "host_call", "iiiii", "i", self._host_call)
        bindings.define("env", "host_interrupt", "", "i", self._interrupt)
        bindings.define("env", "host_module_normalize", "iiiii", "i", self._normalize)
        bindings.define("env", "host_module_load", "iii", "i", lambda *_: 0)
        bindings.define(*FUNCTION, SIGNATURE, "", self._rejections.hear)
        bindings.define(WASI, "clock_time_get", "iIi", "i", self._clock)
        bindings.define(WASI, "fd_close", "i", "i", lambda _: EBADF)
        bindings.define(WASI, "fd_fdstat_get", "ii", "i", lambda *_: EBADF)
        bindings.define(WASI, "fd_seek", "iIii", "i", lambda *_: EBADF)
        bindings.define(WASI, "proc_exit", "i", "", _aborted)

    def _clock(self, which: int, _precision: int, pointer: int) -> int:
        now = time.time_ns() if which == 0 else time.monotonic_ns()
        self._machine.memory.write_u64(pointer, now // 1_000_000 * 1_000_000)  # as coarse as the guest's own clock
        return 0

    def _interrupt(self) -> int:
        """Interrupt handler: return whether the engine has to stop; called every few thousand steps."""
        self._check_memory()
        return int(self._stopped)

    def _check_memory(self) -> None:
        if not self._stopped and self._machine.memory.size() > self._memory_max:
            self._stop(MEMORY)

    def _normalize(self, _base: int, _base_length: int, name: int, length: int, length_at: int) -> int:
        """The module of that name: one of those that were evaluated, by the name that was given to it then."""
        wanted = self._values.read(name, length)
        if b"#" not in wanted:
            return 0
        return self._values.place(wanted, length_at)

    def _host_call(self, name: int, name_length: int, _this: int, count: int, arguments: int) -> int:
        values = self._values
        takes, function = self._natives[values.read(name, name_length)]
        handles = struct.unpack(f"<{count}I", values.read(arguments, 4 * count))
        try:
            if count < len(takes):
                raise Thrown("an argument is missing")
            return values.give(function(*[take(handle) for take, handle in zip(takes, handles, strict=False)]))
        except Pending:
            return FAILED
        except Thrown as thrown:
            return values.throw(str(thrown))

    # What our JavaScript may ask for.

    def _table(self) -> dict[str, tuple[str, Callable[..., Any]]]:
        """Host functions by name: their parameters (a number, a text, bytes, a handle) and the function."""
        return {
            "send": ("s", self._send),
            "print": ("ns", lambda stream, said: self._out.print(int(stream), said.encode())),
            "limits": ("nnn", lambda cpu_ms, wall_ms, _memory: self._deadline.allow(cpu_ms, wall_ms)),
            "stop": ("n", self._give_up),
            "setFinalMessage": ("nb", self._set_final_message),
            "sendBytes": ("b", self._send_bytes),
            "receiveBody": ("", lambda: self._out.receive_body()),
            "readable": ("n", lambda milliseconds: self._out.readable(milliseconds)),
            "exit": ("n", self._exit),
            "now": ("", lambda: time.monotonic_ns() / 1e6),
            "cpuTime": ("", time.process_time_ns),
            "random": ("n", lambda count: os.urandom(int(count))),
            "digest": ("sb", _digest),
            "source": ("s", self._sources.get),
            "script": ("s", self._values.run_script),
            "module": ("ss", self._values.start_module),
            "strip": ("s", self._stripper.javascript),
            "encode": ("bn", lambda data, encoding: text.encode(data, int(encoding))),
            "decode": ("sn", lambda said, encoding: text.decode(said, int(encoding))),
            "indexOf": ("bbnnn", _index_of),
            "parseUrl": ("s", url_host.parse),
            "parseUrlWithBase": ("ss", url_host.parse),
            "updateUrl": ("sns", lambda href, action, value: url_host.update(href, int(action), value)),
            "promise": ("h", self._promise_state),
            "promiseResult": ("h", self._promise_result),
        }

    @property
    def _out(self) -> Wire:
        if self._wire is None:
            raise Thrown("there is nobody to talk to")
        return self._wire

    def _send(self, said: str) -> None:
        self._check_memory()
        if self._stopped:
            return  # the final message says it
        if said.startswith('{"op":"done"'):
            self._told = True
        self._out.send(MESSAGE, said.encode())

    def _send_bytes(self, data: bytes) -> None:
        """Send to the kernel. Ends a program that caught its out-of-memory error and went on."""
        self._check_memory()
        if self._stopped:
            self._end(self._why)
        self._out.send_bytes(data)

    def _set_final_message(self, why: float, data: bytes) -> None:
        self._last[int(why) % REASONS] = data

    def _exit(self, code: float) -> None:
        self._out.flush()
        os._exit(int(code))

    def _promise_state(self, handle: int) -> int | None:
        found = self._values.promise(handle)
        if found is None:
            return None
        self._values.free(found[1])
        return found[0]

    def _promise_result(self, handle: int) -> Handle | None:
        found = self._values.promise(handle)
        return None if found is None else Handle(found[1])

    # Limits.

    def _stop(self, why: int) -> None:
        if not self._stopped:
            self._why = why % REASONS
        self._stopped = True

    def _over(self) -> bool:
        return self._stopped

    def _give_up(self, why: float) -> None:
        self._stop(int(why))
        raise Thrown("the run is over")

    def _end(self, why: int) -> None:
        """Exit with the reason; called by the watching thread when the engine does not stop."""
        if self._wire is not None:
            self._wire.send_and_exit(self._last[why])
        os._exit(0)

    def limit_memory(self, memory_bytes: int) -> None:
        """Limit heap and buffers to so many bytes more."""
        size = self._machine.memory.size()
        self._memory_max = size + memory_bytes
        self._machine.store.set_limits(memory_size=min(size + memory_bytes + _ROOM, _MAX))

    # What the process around it asks for.

    def open(self, wire: Wire) -> None:
        self._wire = wire

    def reseed(self) -> None:
        """Reseed random numbers in a new process."""
        self._hook("reseed")

    def redraw(self) -> None:
        """The same in a copy of a session, whose clock goes on."""
        self._hook("redraw")

    def warm_up(self) -> None:
        """Run a pretended run, so that the pages which any run writes to are copied ahead."""
        self._hook("warmUp")
        self._loop(waits=False)

    def handle(self, message: str) -> bool:
        """Hand a message to our JavaScript and run whatever it starts to its end. False: a limit ended it."""
        self._stopped = self._told = False
        self._why = ENGINE
        self._rejections.clear()
        try:
            self._hook("message", message)
            self._loop(waits=True)
        except Trapped as trapped:
            self._deadline.cancel()
            if trapped.stack:
                self._out.send(MESSAGE, _STACK)
            else:
                self._out.send_bytes(self._last[ENGINE])
            os._exit(0)
        self._deadline.cancel()
        if self._told and not self._stopped:
            return True
        self._out.flush()
        self._out.send_bytes(self._last[self._why])
        return False

    def run_program(self) -> None:
        """Run a program of the sandbox, which does all its waiting by itself, to its end."""
        try:
            self._hook("program")
            self._loop(waits=False)
        except Trapped as trapped:
            said = "RangeError: Maximum call stack size exceeded" if trapped.stack else f"the engine gave up: {trapped}"
            client = Client(self._out.connection)
            client.post("write", 2, f"Uncaught {said}\n".encode())
            client.post("exit", 7, 0, time.process_time_ns())
            return
        if self._stopped:
            self._out.send_and_exit(self._last[self._why])

    def _tell_rejections(self) -> None:
        while self._rejections.told and not self._stopped:
            promise, fresh = self._rejections.told.pop(0)
            self._hook("rejection", Handle(promise), fresh=fresh)

    def _hook(self, name: str, value: str | Handle | None = None, *, fresh: bool | None = None) -> float:
        """Call one of our JavaScript's hooks; a handle is freed."""
        values = self._values
        arguments = [values.give(given) for given in (name, value, fresh)]
        try:
            made = values.call(self._dispatcher, *arguments)
        except Thrown as thrown:
            if OUT_OF_MEMORY in str(thrown):
                self._stop(MEMORY)
            return -1.0
        finally:
            for handle in arguments:
                values.free(handle)
        number = values.number(made)
        values.free(made)
        return number

    def _run_jobs(self) -> None:
        while self._jobs() and not self._stopped:
            pass

    def _loop(self, *, waits: bool) -> None:
        """Until our JavaScript says that nothing is left to do.

        `turn` runs what is due and gives the milliseconds until something else is: none at all (negative) when the run
        is over, infinity when only the host can go on.
        """
        while True:
            self._run_jobs()
            self._tell_rejections()
            wait = -1.0 if self._stopped else self._hook("turn")
            if wait < 0 or self._over():
                return
            if wait == 0 or not waits:
                continue
            wait = self._deadline.wait_at_most(wait)
            if not self._out.readable(-1 if math.isinf(wait) else math.ceil(min(wait, 1e9))):
                continue
            kind, body = self._out.receive()
            if kind == MESSAGE:
                self._hook("message", body.decode("utf-8", "replace"))


def _digest(name: str, data: bytes) -> bytes | None:
    try:
        return hashlib.new(name, data, usedforsecurity=False).digest()
    except (ValueError, TypeError):  # no such digest, or one without a fixed length
        return None


def _index_of(data: bytes, needle: bytes, at: float, forward: float, unit: float) -> int:
    return text.find(data, needle, int(at), int(unit), forward=bool(forward))


def _aborted(_code: int) -> None:
    raise Trapped("the engine ended itself", stack=False)
