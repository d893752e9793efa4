"""A worker that says anything to its owner: frames of every kind while the owner makes calls, over both links.

An honest sandbox is beside it in the same process. Nothing of that one is ever sent to the hostile worker, and nothing
that the hostile worker says is ever seen by the other.
"""

from __future__ import annotations

import asyncio
import random
import re
import socket
import sys
import tempfile
import threading
import time
import zlib
from collections.abc import Callable, Hashable
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any, Self
from unittest.mock import patch

import msgspec

from belljar import AsyncSandbox, Limits, Mount, Network, Sandbox, SandboxClosed, SandboxError
from belljar.abi.wire import (
    CONTROL_OUT,
    Ask,
    Call,
    Exited,
    Failure,
    Incident,
    Output,
    Ready,
    Reply,
    Start,
    Started,
    WireError,
    WorkerMessage,
    encode,
    host_frames,
    worker_frames,
)
from belljar.api.core import UNFORESEEN
from belljar.owner.supervisor_host import shared
from tests.fuzz.driver import Target
from tests.fuzz.targets._frames import split_frames

_SETUP = 3
"""Calls by which a sandbox is set up here: two mounts and a tool. Their answers come before every case."""
_CURRENT = 4
"""The number that stands for that of the request under way."""
_SECRET = b"the neighbour's own"
_WAIT = 0.05
"""Seconds that a command may take whose worker is silent."""


class FakeWorker:
    """A handle of a process that is not there: a socket to say whatever one likes on."""

    pid, zygote, cgroup, env, greeting, grace, open_relay = 1, None, None, None, b"", 0.0, None

    def __init__(self) -> None:
        self.connection, self.socket = socket.socketpair()

    def end(self) -> None:
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def kill(self) -> None:
        self.end()
        self.connection.close()

    def wait_ended(self) -> None:
        pass

    release = kill


class Worker(Target):
    def __enter__(self) -> Self:
        self._stack = ExitStack()
        directory = Path(self._stack.enter_context(tempfile.TemporaryDirectory()))
        (directory / "ours").mkdir()
        (directory / "ours/file").write_bytes(b"x" * 5000)
        (directory / "theirs").mkdir()
        (directory / "theirs/file").write_bytes(_SECRET)
        self._neighbour = self._stack.enter_context(
            Sandbox(mounts={"/m": Mount.host(str(directory / "theirs"))}, tools={"say": lambda: _SECRET.decode()})
        )
        self._options: dict[str, Any] = {
            "mounts": {
                "/a": Mount.host(str(directory / "ours"), read_only=False),
                "/b": Mount.host(str(directory / "ours")),
            },
            "tools": {"say": lambda text="": text},
            "limits": Limits(output_bytes=1 << 20),
            "network": Network.allow("127.0.0.1:9"),
        }
        for name, module in list(sys.modules.items()):
            if name.startswith("belljar.api.") and hasattr(module, "GRACE"):
                self._stack.enter_context(patch.object(module, "GRACE", 0.1))
        self._stack.enter_context(patch.object(shared, "take", lambda _memory: self._worker))
        self._loop = asyncio.new_event_loop()
        return self

    def close(self) -> None:
        self._loop.close()
        self._stack.close()

    # Cases.

    def piece(self, rng: random.Random) -> bytes:
        number = rng.choice((*[_CURRENT] * 20, 5, 7, 1, 0, -1, 1 << 40))
        data = rng.choice((b"", b"x", b"\xff\n", bytes(5000), b"%d" % rng.randrange(99), b"x" * (200 << 10)))
        stream = rng.choice((1, 1, 2, CONTROL_OUT, CONTROL_OUT, 0, 3, -1))
        messages: list[WorkerMessage] = [
            Ready(["seccomp"], number),
            Output(number, stream, rng.choice((data, _line(rng)))),
            Exited(number, rng.choice((0, 1, -1, 1 << 40)), rng.choice((0, 9, 999)), rng.choice((None, "steps", "")),
                   data, data, rng.random() < 0.5, rng.random() < 0.2),
            Started(number, rng.choice((1, 7, 0, -1))),
            Reply(number, _value(rng)),
            Failure(number, rng.choice((0, 2, 13, -1, 1 << 40)), data[:50], rng.choice((None, data[:50]))),
            Incident(data[:9], b"ls", data, rng.random() < 0.1),
            _ask(rng, rng.choice((1, 2, 3, number))),
        ]  # fmt: skip
        return encode(rng.choice([*messages, messages[1], messages[4], messages[4], messages[7], messages[7]]))

    def split(self, data: bytes) -> list[bytes]:
        return split_frames(data)

    # What the owner does meanwhile.

    def run(self, data: bytes) -> Hashable:
        kind = zlib.crc32(data)
        self._worker: Any = FakeWorker()
        self._heard = bytearray()
        ours = self._worker.socket
        sender = threading.Thread(target=self._say, args=(ours, self.split(data), _is_silent(kind)))
        sender.start()
        try:
            drive = self._drive_async if kind & 64 else self._drive
            outcome = drive(kind)
        finally:
            self._worker.end()
            sender.join(20)
            ours.close()
        assert not sender.is_alive()
        assert _SECRET not in self._heard
        return outcome

    def _say(self, ours: socket.socket, pieces: list[bytes], silent: bool) -> None:
        """Answer the calls that set a sandbox up; then, for each request, say the case's pieces up to one that may
        answer it. At the end of the case hang up, or say nothing any more."""
        ours.settimeout(5)
        frames = host_frames()
        with suppress(OSError):
            while said := ours.recv(1 << 20):
                self._heard += said[: max(0, (1 << 20) - len(self._heard))]
                for message in frames.feed(said):
                    if not isinstance(message, Call | Start):
                        continue
                    if message.id <= _SETUP:
                        ours.sendall(encode(Reply(message.id, None)))
                        continue
                    while pieces:
                        piece, answers = _fit(pieces.pop(0), message.id)
                        ours.sendall(piece)
                        if answers:
                            break
                    if not pieces and not silent:
                        ours.shutdown(socket.SHUT_WR)

    def _drive(self, kind: int) -> Hashable:
        try:
            sandbox = Sandbox(**self._options)
        except SandboxError as error:
            return _typed(error)
        seen: list[str] = []
        with sandbox:
            for act in self._acts(sandbox, kind):
                try:
                    seen.append(type(act()).__name__)
                except SandboxError as error:
                    seen.append(_typed(error))
                    if isinstance(error, SandboxClosed):
                        break
        return "sync", kind % 5, tuple(seen)

    def _drive_async(self, kind: int) -> Hashable:
        seen: list[str] = []

        async def main() -> None:
            sandbox = AsyncSandbox(**self._options)
            try:
                await sandbox.__aenter__()
            except SandboxError as error:
                seen.append(_typed(error))
                return
            async with sandbox:
                for act in self._acts(sandbox, kind):
                    try:
                        seen.append(type(await act()).__name__)
                    except SandboxError as error:
                        seen.append(_typed(error))
                        if isinstance(error, SandboxClosed):
                            break

        async def bounded() -> None:
            async with asyncio.timeout(15):
                await main()

        self._loop.run_until_complete(bounded())
        return "async", kind % 5, tuple(seen)

    def _acts(self, sandbox: Any, kind: int) -> list[Callable[[], Any]]:
        """Calls of every kind of answer. A worker that may be silent is only asked for what has a deadline."""
        run = lambda: sandbox.exec("true", timeout=_WAIT)  # noqa: E731
        if _is_silent(kind):
            return [run] * 3
        acts: list[Callable[[], Any]] = [
            run,
            lambda: sandbox.files.read("/x"),
            lambda: sandbox.python.run("1"),
            lambda: sandbox.files.list("/x"),
            lambda: self._other_act(sandbox, kind >> 8),
        ]
        first = kind % len(acts)
        return acts[first:] + acts[:first]

    def _other_act(self, sandbox: Any, kind: int) -> Any:
        """One of the less usual calls."""
        calls: list[Callable[[], Any]] = [
            lambda: sandbox.files.stat("/x"),
            lambda: sandbox.files.readlink("/x"),
            lambda: sandbox.files.write("/x", b"y"),
            lambda: sandbox.stats(),
            lambda: sandbox.files.glob("/*"),
            lambda: sandbox.spawn("cat"),
            lambda: sandbox.files.grep("x", "/"),
            lambda: self._watch(sandbox),
            lambda: sandbox.port(80).connect(),
        ]
        return calls[kind % len(calls)]()

    def _watch(self, sandbox: Any) -> Any:
        if isinstance(sandbox, Sandbox):
            return sandbox.files.watch("/").next(0.05)

        async def next_change() -> Any:
            async with asyncio.timeout(10):  # it is answered or hung up on
                return await sandbox.files.watch("/").next()

        return next_change()

    def check(self) -> None:
        began = time.monotonic()
        assert self._neighbour.exec("cat /m/file; say").stdout == _SECRET.decode() * 2 + "\n"
        assert time.monotonic() - began < 10
        deadline = time.monotonic() + 10
        while threading.active_count() > 60 and time.monotonic() < deadline:
            time.sleep(0.01)
        assert threading.active_count() <= 60, threading.enumerate()


def _typed(error: SandboxError) -> str:
    """The name of an error that is right; what the owner did not foresee is a bug of ours."""
    assert UNFORESEEN not in str(error), str(error)
    reason = re.sub(r"\d+|'.*'|\"|b'.*", "", str(error).partition("and was ended: ")[2])[:40]
    return type(error).__name__ + reason


def _fit(piece: bytes, current: int) -> tuple[bytes, bool]:
    """A piece with the number of the request under way, if that is what it is for; and whether it may be an answer."""
    try:
        [message] = worker_frames().feed(piece)
    except (ValueError, WireError):
        return piece, False
    if isinstance(message, Output | Exited | Started | Reply | Failure) and message.id == _CURRENT:
        return encode(msgspec.structs.replace(message, id=current)), isinstance(message, Exited | Reply | Failure)
    return piece, False


def _is_silent(kind: int) -> bool:
    """Whether the worker of a case says nothing any more at its end, and does not hang up."""
    return kind % 32 == 0


def _value(rng: random.Random, depth: int = 0) -> Any:
    """An answer: right for some call, or for none."""
    atom = rng.choice((None, True, 0, -1, 7, 1 << 60, 1.5, b"", b"data", b"..", b"a/b", "text", "\0"))
    match rng.randrange(10):
        case 0 | 1:
            return [rng.choice((b"data", b"", bytes(5000), atom)), rng.choice((True, False, True, atom))]
        case 2:
            return [[rng.choice((b"f", b"../f", b"")), *[rng.choice((1, 0o100644, -1, atom))] * 7]] * rng.choice((1, 3))
        case 3:
            return [0o100644, 1, 1, 5, 0, 0, rng.choice((0, 1, atom))][: rng.choice((7, 6, 2))]
        case 4:
            return {rng.choice((b"files", b"\xff", "text", 3)): atom}
        case 5 if depth < 3:
            return [_value(rng, depth + 1) for _ in range(rng.randrange(4))]
        case _:
            return atom


def _line(rng: random.Random) -> bytes:
    """Something that an interpreter says."""
    from tests.fuzz.targets.control import line  # the same lines; see there

    return b'0 {"op":"ready"}\n' + line(rng, rng.choice((1, 1, 1, 0, 2)))


def _ask(rng: random.Random, number: int) -> Ask:
    node, handle = rng.choice((1, 1, 2, 3, 9, -1, b"x")), rng.choice((1, 2, 3, 4, 5, -1, None))
    name = rng.choice((b"file", b"new", b"..", b"a/b", b"", b"x" * 300, 7))
    operations: list[dict[str, Any]] = [
        {"op": "root"},
        {"op": "walk", "node": node, "name": name},
        {"op": "stat", "node": node},
        {"op": "readdir", "node": node, "start": rng.choice((0, 0, 5, -1))},
        {"op": "open", "node": node, "flags": rng.choice((0, 1, 2, 0o101, -1, 1 << 40))},
        {"op": "create", "node": node, "name": name, "mode": 0o644, "uid": 0, "gid": rng.choice((0, -1, 1 << 40))},
        {"op": "symlink", "node": node, "name": name, "target": rng.choice((b"/etc/passwd", b"x")), "uid": 0, "gid": 0},
        {"op": "read", "handle": handle, "offset": rng.choice((0, 1 << 62, -1)), "size": rng.choice((9, 1 << 20, -1))},
        {"op": "write", "handle": handle, "offset": rng.choice((0, None, 1 << 50)), "data": b"y" * 99},
        {"op": "truncate", "handle": handle, "size": rng.choice((0, 9, 1 << 50))},
        {"op": "unlink", "node": node, "name": name},
        {"op": "rename", "node": node, "name": name, "into": node, "new": name, "flags": 0},
        {"op": rng.choice(("nothing", "eval", "locate", "hold")), "close": [handle], "forget": [[node, 1]]},
    ]
    choices: list[tuple[bytes, str, list[Any]]] = [
        (rng.choice((b"0", b"1")), "file", [rng.choice(operations)]),
        (rng.choice((b"2", b"-1", b"", b"9" * 5000)), "file", [{"op": "root"}]),
        (b"say", "tool", [rng.choice(([], [b"a"], [b"-"], [b'{"text": 1}'], [b"{" * 3000], ["a"], 7))]),
        (b"say", "call", [rng.choice((b'{"args": [], "kwargs": {}}', b"{}", b"[" * 5000, b"", b"\xff", 7))]),
        (rng.choice((b"nobody", b"", b"\xff")), rng.choice(("tool", "call", "")), [[]]),
        (b"net", rng.choice(("open", "open", "close")), []),
        (b"engine", "kill", [rng.choice((1, -1, 1 << 62, None))]),
        (b"engine", "piece", [rng.choice((1, 2, 99)), rng.choice((b"", b"\0asm", bytes(9000)))]),
        (b"engine", rng.choice(("open", "fork")), [rng.choice((1, 2)), rng.choice(("no such kind", 7, "")), {}]),
    ]
    return Ask(number, *rng.choice(choices + choices[:1] * 4))


def target() -> Target:
    return Worker()
