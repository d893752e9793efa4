"""A JavaScript process that says anything to its owner: frames of every kind during a run, over both links.

Another process, of another sandbox, is asked after each case; each of the two has its own host function.
"""

from __future__ import annotations

import asyncio
import json
import random
import socket
import threading
import zlib
from collections.abc import Hashable
from contextlib import ExitStack, suppress
from typing import Any, Self
from unittest.mock import patch

from belljar.abi.limits import RunLimits
from belljar.api.await_host import Threads
from belljar.api.dialogue import Run
from belljar.api.js_link_host import JsLink
from belljar.engines.wire.js import MESSAGE, OUTPUT, frame
from tests.fuzz.driver import Target
from tests.fuzz.targets._frames import split_frames
from tests.fuzz.targets.control import line

_SECRET = "the neighbour's own"
_SECONDS = 0.05


class FakeProcess:
    """A process that is not there: a socket to say whatever one likes on."""

    def __init__(self) -> None:
        self.connection, self.socket = socket.socketpair()

    def kill(self) -> None:
        self.connection.close()


class Engine(Target):
    def __enter__(self) -> Self:
        self._stack = ExitStack()
        self._stack.enter_context(patch("belljar.api.js_link_host.GRACE", 0.05))
        self._loop = asyncio.new_event_loop()
        self._threads = Threads()
        return self

    def close(self) -> None:
        self._loop.close()
        self._stack.close()

    def piece(self, rng: random.Random) -> bytes:
        match rng.randrange(8):
            case 0 | 1:
                data = rng.choice((b"out", b"", bytes(5000), b"\xff"))
                return frame(OUTPUT, rng.choice((b"\1", b"\2", b"\3", b"")) + data)
            case 2:
                layers = rng.choice(("seccomp", "x" * 9000, 7))
                return _message(rng.choice(({"op": "ready", "layers": layers}, {"op": "ready"})))
            case 3:
                limit = rng.choice(("cpu_ms", "memory_mb", "stack", "no such", 7, None))
                return _message({"op": "limit", "limit": limit})
            case 4:
                return frame(rng.randrange(256), rng.choice((b"", b"x", b"[" * 9000)))
            case _:
                number, _, text = line(rng, rng.choice((1, 1, 1, 1, 0, 2))).partition(b" ")
                with suppress(ValueError, RecursionError):
                    message = json.loads(text)
                    if isinstance(message, dict):
                        return _message({**message, "run": int(number)})
                return frame(MESSAGE, text)

    def split(self, data: bytes) -> list[bytes]:
        return split_frames(data, 5)

    def run(self, data: bytes) -> Hashable:
        kind = zlib.crc32(data)
        process = FakeProcess()
        heard = bytearray()

        def say() -> None:
            process.socket.settimeout(0.5)
            with suppress(OSError):
                process.socket.sendall(data)
                if kind % 32:
                    process.socket.shutdown(socket.SHUT_WR)
                while said := process.socket.recv(1 << 20):
                    heard.extend(said)

        sender = threading.Thread(target=say)
        sender.start()
        try:
            run, dropped = self._drive(process, "ours", is_async=bool(kind & 64))
        finally:
            sender.join(20)
            process.socket.close()
        assert not sender.is_alive()
        assert run.done
        assert _SECRET.encode() not in heard
        result = run.result(0)
        if result.error is not None:
            str(result.error)
            return result.error.code, result.error.name[:20], min(dropped, 2)
        return type(result.value).__name__, result.bridge_calls, min(dropped, 2)

    def _drive(self, process: Any, says: str, *, is_async: bool) -> tuple[Run, int]:
        link = JsLink(process, 1 << 20, self._threads)
        limits = RunLimits(wall_ms=int(_SECONDS * 1e3), max_bridge_calls=100)
        run, sent = link.dialogue.begin("1", "repl", "run.js", {"f": lambda *_: says}, {}, limits)
        try:
            if is_async:
                self._loop.run_until_complete(link.drive_async(run, sent, _SECONDS))
            else:
                link.drive(run, sent, _SECONDS)
        finally:
            link.kill()
        return run, link.dialogue.dropped

    def check(self) -> None:
        process = FakeProcess()
        call = {"op": "call", "run": 1, "id": 1, "name": "f", "args": [], "kwargs": {}}
        done = {"op": "done", "run": 1, "ok": True, "exports": {"default": 7}, "unsent": {}}
        heard = bytearray()

        def be_honest() -> None:
            process.socket.sendall(_message(call))
            while _SECRET.encode() not in heard:
                said = process.socket.recv(1 << 16)
                if not said:
                    return
                heard.extend(said)
            process.socket.sendall(_message(done))

        sender = threading.Thread(target=be_honest)
        sender.start()
        run, _ = self._drive_neighbour(process)
        sender.join(20)
        process.socket.close()
        assert run.result(0).value == 7
        assert threading.active_count() <= 60, threading.enumerate()

    def _drive_neighbour(self, process: Any) -> tuple[Run, int]:
        link = JsLink(process, 1 << 20, self._threads)
        run, sent = link.dialogue.begin("1", "repl", "run.js", {"f": lambda: _SECRET}, {}, RunLimits())
        link.drive(run, sent, 20)
        link.kill()
        return run, 0


def _message(message: object) -> bytes:
    return frame(MESSAGE, json.dumps(message).encode())


def target() -> Target:
    return Engine()
