"""An owner that says anything to the agent, pid 1 of a native sandbox: it answers or ends, and never crashes.

It is inside all walls of its tier: what a changed frame has it run or remove is the sandbox's. The other side, an agent
that says anything, is what `worker` says. Where there is a gcc the agent is built to abort at any mistake with memory.
"""

from __future__ import annotations

import os
import random
import select
import socket
import tempfile
import time
from collections.abc import Hashable
from contextlib import ExitStack, suppress
from pathlib import Path
from shutil import which
from typing import Any, Self
from unittest.mock import patch

from belljar import Image, Limits
from belljar.abi.wire import (
    Answer,
    Boot,
    Call,
    Credit,
    HostMessage,
    Input,
    Renew,
    Resize,
    Signal,
    Start,
    WorkerMessage,
    encode,
    worker_frames,
)
from belljar.api.native import native_settings, start_native
from belljar.native import launch_host
from belljar.owner.handle_host import WorkerUnavailable
from tests.agent.running import sanitized_agent
from tests.fuzz.driver import Target
from tests.fuzz.targets._frames import split_frames

_PROBE = 1 << 40
_CASES_EACH = 100
"""Cases that one agent is for, if it does not end before."""
_SECONDS = 20.0
_PATHS = [
    b"/workspace/a",
    b"/workspace/a/b",
    b"/workspace",
    b"a",
    b"",
    b"/proc/self/stat",
    b"/dev/full",
    b"/",
    b"x" * 5000,
    b"a\0b",
]
_COMMANDS = [
    "true",
    "cat",
    "echo x; echo y >&2",
    "sleep 0.2",
    "yes | head -c 300000",
    "exit 3",
    "sleep 1 & echo",
    "(setsid sleep 1 &)",
]
_LIMITS: list[dict[str, Any]] = [
    {},
    {"wall_seconds": 0.1},
    {"output_bytes": 10},
    {"processes": 1},
    {"cpu_seconds": -1.0},
    {"x": 1},
]


class Agent(Target):
    def __enter__(self) -> Self:
        self._stack = ExitStack()
        place = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        if which("gcc"):
            made = sanitized_agent(place)
            self._stack.enter_context(patch.object(launch_host, "agent_program", lambda: made))
        limits = Limits(wall_seconds=5, processes=100, file_bytes=16 << 20, memory_bytes=512 << 20)
        self._settings = native_settings({"image": Image.host(), "limits": limits, "tier": "native"})
        self._worker: launch_host.NativeWorker | None = None
        self._cases = 0
        self._works = False
        return self

    def close(self) -> None:
        self._end()
        self._stack.close()

    def _end(self) -> None:
        """End it, or find how it ended: then it was not by a signal, by want of memory or by a sanitizer."""
        worker, self._worker = self._worker, None
        if worker is None:
            return
        alive = worker.alive
        with suppress(OSError):
            worker.connection.shutdown(socket.SHUT_RDWR)
        ended = os.waitid(os.P_PIDFD, worker.pidfd, os.WEXITED | os.WNOWAIT)
        worker.kill()
        assert ended is not None
        assert (ended.si_code, ended.si_status) in ((os.CLD_EXITED, 0), (os.CLD_EXITED, int(alive))), "it crashed"

    def piece(self, rng: random.Random) -> bytes:
        number, stream = rng.choice((1, 2, 3, 3, 9, 0, -1, 1 << 50)), rng.choice((0, 1, 2, 3, 4, 5, -1))
        data = rng.choice((b"", b"x", b"\n\x03", bytes(5000), bytes(300 << 10)))
        start = Start(
            rng.randrange(1, 30), [b"bash", b"-c", rng.choice(_COMMANDS).encode()], {b"A": data[:9]},
            rng.choice((None, *_PATHS)), rng.choice((None, data)), rng.random() < 0.3,
            rng.random() < 0.5, rng.choice(_LIMITS),
            rng.choice((None, None, (24, 80), (-1, 1 << 40))), rng.random() < 0.2, 0, rng.random() < 0.4,
        )  # fmt: skip
        messages: list[HostMessage] = [
            start,
            Input(number, data, stream),
            Credit(number, stream, rng.choice((1, 4 << 20, 0, -1, 1 << 50))),
            Signal(number, rng.choice((0, 2, 9, 15, 64, 99, -1)), rng.random() < 0.3),
            Resize(number, rng.choice((1, -1, 1 << 40)), 80),
            Renew(number, rng.choice(_LIMITS)),
            Answer(number, rng.choice((None, [data, data, 3], [b"", 1], {})), rng.choice((0, 5, -1)), data[:9]),
            Boot({b"X": data[:9]}, rng.choice(_PATHS), b"agent", b"box", rng.choice(_LIMITS)),
            _call(rng, data),
        ]
        return encode(rng.choice([*messages, start, start, _call(rng, data), _call(rng, data)]))

    def split(self, data: bytes) -> list[bytes]:
        return split_frames(data)

    def run(self, data: bytes) -> Hashable:
        if self._cases >= _CASES_EACH:
            self._end()
        if self._worker is None:
            assert self._settings.native is not None
            try:
                self._worker = start_native(self._settings, self._settings.native)
            except WorkerUnavailable:
                assert not self._works
                return "no native sandboxes on this machine"
            self._works = True
            self._cases = 0
        self._cases += 1
        heard = self._talk(self._worker.connection, data + encode(Call(_PROBE, "stat", [b"/", True])))
        if heard is None:
            self._end()
            return "ended"
        return tuple(sorted({type(message).__name__ for message in heard}))

    def _talk(self, connection: socket.socket, unsent: bytes) -> list[WorkerMessage] | None:
        """What the agent says until it answers the probe; None if it ends, or waits for the rest of a frame."""
        connection.setblocking(False)
        frames, heard, deadline = worker_frames(), list[WorkerMessage](), time.monotonic() + _SECONDS
        patience = time.monotonic() + 0.3
        while time.monotonic() < deadline:
            writers = [connection] if unsent else []
            readable, writable, _ = select.select([connection], writers, [], 0.05)
            try:
                if writable:
                    unsent = unsent[connection.send(unsent) :]
                said = connection.recv(1 << 20) if readable else None
            except (BrokenPipeError, ConnectionResetError):
                return None
            if said == b"":
                return None
            heard += frames.feed(said or b"")
            if any(getattr(message, "id", 0) == _PROBE for message in heard):
                return heard
            if not unsent and time.monotonic() > patience:
                return None  # a length that takes the probe in: it waits for the rest
        raise AssertionError("the agent neither answers nor ends")

    def check(self) -> None:
        return


def _call(rng: random.Random, data: bytes) -> Call:
    path, flag = rng.choice(_PATHS), rng.random() < 0.5
    number = rng.choice((1, 0, -1, 5000, 1 << 50))
    calls: list[tuple[str, list[Any]]] = [
        ("read", [path, number, rng.choice((0, 9, 1 << 40, -1))]),
        ("write", [path, data, rng.choice((None, 0o644, 1 << 40)), flag, True]),
        ("list", [path, rng.choice((b"", b"a"))]),
        ("stat", [path, flag]),
        ("mkdir", [path, flag]),
        ("symlink", [path, rng.choice(_PATHS)]),
        ("readlink", [path]),
        ("remove", [path, flag]),
        ("rename", [path, rng.choice(_PATHS)]),
        ("chmod", [path, rng.choice((0o755, -1))]),
        ("stats", []),
        ("watch", [path, flag]),
        ("changes", [number]),
        ("unwatch", [number]),
        ("tool", [rng.choice((b"say", b"../x", b"", b"x" * 300))]),
        ("input", [number, data]),
        ("port", [number]),
        ("capture", [0, []]),
        (rng.choice(("mount", "fork", "nothing", "")), [path, data, None]),
    ]
    name, arguments = rng.choice(calls)
    return Call(rng.randrange(1, 99), rng.choice(("", "", "user:")) + name, arguments[: rng.choice((9, 9, 9, 1, 0))])


def target() -> Target:
    return Agent()
