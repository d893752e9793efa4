"""An engine process that says anything to its worker: system calls of every kind, as one process of a kernel.

Two sessions, as two workers would have them: nothing of the other one is in what is answered. One kernel serves all
cases, each as a process of its own; what they leave behind is bounded by its limits, and ordinary commands still run.
"""

from __future__ import annotations

import random
import traceback
from collections.abc import Hashable
from contextlib import suppress
from typing import Any, Self

from belljar.abi.errno import EPIPE
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_RDWR
from belljar.abi.limits import Limits
from belljar.bin._kit.discovery import find, names
from belljar.engines.wire.calls import ANSWER, AT_FDCWD, BACKGROUND, CALLS, NO_ANSWER, REQUEST, encode
from belljar.engines.worker.calls.server import CallServer
from belljar.engines.worker.wasi_root import reserve_root
from belljar.kernel.machine import virtual_machine
from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus
from belljar.worker.session import Session
from tests.fuzz.driver import Target
from tests.fuzz.targets._frames import split_frames

_SECRET = b"the neighbour's own"
_PATHS = (
    b"/tmp/a", b"/tmp/b", b"/tmp", b"/", b"", b"a", b"..", b"/dev/null", b"/dev/zero", b"/dev/fd/0", b"/proc/self/fd",
    b"/proc/self/environ", b"/tmp/\xff", b"x" * 300, b"/tmp/\0", b"/usr/bin/true", b"/etc/passwd", b"/dev/tty",
)  # fmt: skip
_NUMBERS = (
    0, 1, 2, 3, 4, 5, -1, AT_FDCWD, 9, 64, 0o100, 0o101, 0o644, 0o2000, 1 << 16, 1 << 31, 1 << 40, -(1 << 63),
    (1 << 63) - 1,
)  # fmt: skip
_DATA = (b"", b"x", b"data\n", bytes(5000), bytes(200 << 10))


class _Link:
    """Says a case in pieces, then ends; what is sent to it is kept, up to a point."""

    waits = False

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._rng = random.Random(len(data))
        self.heard = bytearray()
        self.closed = False

    def recv(self, size: int = 1 << 16) -> bytes:
        size = min(size, self._rng.choice((1, 7, 100, 1 << 20)))
        piece, self._data = self._data[:size], self._data[size:]
        return piece

    def send(self, data: bytes) -> None:
        if self.closed:
            raise SysError(EPIPE)
        self.heard += data[: max(0, (4 << 20) - len(self.heard))]

    def close(self) -> None:
        self.closed = True


class Calls(Target):
    def __enter__(self) -> Self:
        self._bugs: list[str] = []
        self._neighbour = self._new_session()
        file = self._neighbour.kernel.init.fs.open("/tmp/a", O_RDWR | O_CREAT, 0o644)
        file.write(_SECRET)
        self._session = self._new_session()
        return self

    def _new_session(self) -> Session:
        limits = Limits(file_bytes=4 << 20, files=5000, wall_seconds=30)
        session = Session(virtual_machine(), limits=limits, programs=find, names=names())
        session.kernel.report_bug = self._report_bug
        return session

    def _report_bug(self, _process: Process, error: BaseException) -> str:
        self._bugs.append("".join(traceback.format_exception(error)))
        return "i-1"

    def close(self) -> None:
        """Sessions are only objects."""

    def piece(self, rng: random.Random) -> bytes:
        name = rng.choice([*CALLS])
        call = CALLS[name]
        signature = call.takes if rng.random() < 0.95 else rng.choice(("", "q", "s", "qqq", "l"))
        body = encode(signature, [_argument(letter, rng) for letter in signature])
        number = call.number if rng.random() < 0.98 else rng.randrange(1 << 16)
        flags = rng.choice((0, 0, 0, 0, BACKGROUND, NO_ANSWER, BACKGROUND | NO_ANSWER, 0xFFFF))
        return REQUEST.pack(REQUEST.size - 4 + len(body), rng.choice((1, 2, 7, 1 << 31, 0)), number, flags) + body

    def split(self, data: bytes) -> list[bytes]:
        return split_frames(data)

    def run(self, data: bytes) -> Hashable:
        link = _Link(data)
        status = self._serve(link)
        assert not self._bugs, self._bugs[0]
        assert link.closed
        assert _SECRET not in link.heard
        return status.code, status.signal, _errors(bytes(link.heard))

    def _serve(self, link: _Link) -> ExitStatus:
        kernel = self._session.kernel
        ended: list[ExitStatus] = []

        def body(process: Process) -> int:
            reserve_root(process)
            server = CallServer(process, link)
            server.start({})
            server.serve()

        def over(process: Process) -> None:
            assert process.status is not None
            ended.append(process.status)

        process = kernel.start(
            body, ["prog"], env={"PATH": "/usr/bin"}, credentials=self._session.credentials, on_exit=over
        )
        null = process.fs.open("/dev/null", O_RDWR)
        for fd in (0, 1, 2):
            process.fds.put(fd, null)
        kernel.hub.run(lambda: bool(ended))
        return ended[0]

    def check(self) -> None:
        for session in (self._session, self._neighbour):
            result = session.exec("echo ok")
            assert result.stdout == b"ok\n", result
        assert self._neighbour.exec("cat /tmp/a").stdout == _SECRET


def _argument(letter: str, rng: random.Random) -> Any:
    match letter:
        case "q":
            return rng.choice(_NUMBERS)
        case "s":
            return rng.choice(_PATHS if rng.random() < 0.7 else _DATA)
        case "l":
            return [rng.choice((*_PATHS, b"A=1", b"=")) for _ in range(rng.choice((0, 1, 3, 50)))]
        case _:
            return [rng.choice(_NUMBERS) for _ in range(rng.choice((0, 1, 2, 12)))]


def _errors(heard: bytes) -> Hashable:
    """The error numbers among the answers."""
    found = set()
    for piece in split_frames(heard):
        with suppress(Exception):
            _length, number, errno = ANSWER.unpack_from(piece)
            found.add(errno if number else 0)
    return frozenset(found)


def target() -> Target:
    return Calls()
