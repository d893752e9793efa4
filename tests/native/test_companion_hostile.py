"""A worker that was taken over, against the companion whose files it serves: the kernel and the owner bear with it.

What it can reach are programs that the sandbox runs anyway. They get errors or wait; everything ends with the sandbox.
"""

from __future__ import annotations

import os
import random
import select
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from struct import pack

import pytest

from belljar import Limits, Sandbox
from belljar.abi.errno import EIO
from belljar.abi.flags import S_IFBLK, S_IFCHR, S_IFREG
from belljar.abi.records import Owner, Stat
from belljar.abi.wire import Exited, Output, Signal, Start, encode, worker_frames
from belljar.fuse import protocol as fuse
from belljar.fuse.protocol import Malformed, Request, parse_request
from belljar.fuse.session import Session
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.quota import Quota
from belljar.native.companion_host import CompanionProcess, Tree, start_companion
from belljar.native.host_image_host import host_source
from belljar.native.launch_host import Request as Wanted
from belljar.native.launch_host import owner_ids
from tests.contract.servers import Ticking
from tests.native.conftest import needs_native
from tests.reliability.amount import WHOLE

pytestmark = [needs_native, pytest.mark.slow]
SECONDS = 60.0 if WHOLE else 4.0
LOOK = "cd /workspace; while :; do ls -lR . ; cat f d/g; stat -f .; echo x > new; mv new d/x; rm -f d/x; done"
Answer = Callable[[Request], bytes | None]


def files() -> MemoryServer:
    server = MemoryServer(Ticking(), Quota(64 << 20, 10_000))
    owner = Owner(1000, 1000)
    for name, where in (("f", server.root), ("g", server.mkdir(server.root, "d", 0o755, owner))):
        server.open(server.create(where, name, S_IFREG | 0o644, owner), os.O_RDWR).write(0, b"contents\n" * 1000)
    return server


class Hostile:
    """The worker's end: a companion's connection and its one device, whose requests `answer` replies to."""

    def __init__(self, companion: CompanionProcess, answer: Answer) -> None:
        self.companion = companion
        self.connection, self.device = companion.hand_over()
        self.answered = 0
        self._frames = worker_frames()
        self._answer = answer
        self._over = False
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        poll = select.poll()
        poll.register(self.device, select.POLLIN)
        while not self._over:
            poll.poll(100)
            with suppress(OSError):
                self._reply(os.read(self.device, fuse.MESSAGE_MAX))

    def _reply(self, message: bytes) -> None:
        with suppress(Malformed):
            request = parse_request(memoryview(message))
            reply = self._answer(request)
            self.answered += 1
            try:
                if reply is not None:
                    os.write(self.device, reply)
            except OSError:  # the kernel does not take it, and waits for another one
                os.write(self.device, fuse.pack_error(request.unique, EIO))

    def start(self, command: str) -> None:
        start = Start(1, [b"sh", b"-c", command.encode()], {b"PATH": b"/usr/bin:/bin"}, b"/", None, True, True, {})
        os.write(self.connection, encode(start))

    def hear(self, seconds: float, until: bytes | None = None) -> tuple[bytes, Exited | None]:
        """What the program writes, until that is `until`, it ends, or that time is over."""
        said, deadline = b"", time.monotonic() + seconds
        while said != until and time.monotonic() < deadline:
            if not select.select([self.connection], [], [], 0.1)[0]:
                continue
            for message in self._frames.feed(os.read(self.connection, 1 << 16)):
                if isinstance(message, Output):
                    said += message.data
                elif isinstance(message, Exited):
                    return said + message.stdout, message
        return said, None

    def end(self) -> None:
        """As when the worker is killed, which every sandbox's end does."""
        self._over = True
        self._thread.join()
        os.close(self.device)
        os.close(self.connection)


@contextmanager
def hostile(answer: Answer) -> Iterator[Hostile]:
    """A companion whose /workspace is served so. In the end nothing of it is left."""
    request = Wanted(
        source=host_source(), user="1000:1000", hostname="box", cwd="/", limits=Limits(processes=64), name="hostile",
        network=None, env={},
    )  # fmt: skip
    companion = start_companion(request, [Tree("/workspace", 0o40755, False)])
    worker = Hostile(companion, answer)
    try:
        yield worker
    finally:
        worker.end()
        began = time.monotonic()
        companion.kill()
        assert time.monotonic() - began < 40
        assert not Path(f"/proc/{companion.pid}").exists()


def test_replies_that_are_changed_at_random() -> None:
    """Lengths, numbers and contents: what the kernel takes of it, programs get; no more happens."""
    rng = random.Random(1)
    session = Session(files(), Ticking(), private=True)

    def answer(request: Request) -> bytes | None:
        reply = session.handle(request)
        if reply is None:
            return None
        whole = bytearray(reply.header + bytes(reply.body))
        if request.opcode == fuse.INIT or rng.random() < 0.6:
            return bytes(whole)
        match rng.randrange(6):
            case 0:
                for _ in range(rng.randrange(1, 9)):
                    whole[rng.randrange(len(whole))] = rng.randrange(256)
            case 1:
                del whole[rng.randrange(len(whole)) :]
            case 2:
                whole += rng.randbytes(rng.choice((1, 8, 4096, 1 << 20)))
                whole[:4] = len(whole).to_bytes(4, "little")
            case 3:
                whole[4:8] = rng.choice((-1, -4095, -4096, 1, 5, -(1 << 31))).to_bytes(4, "little", signed=True)
            case 4:
                at = rng.randrange(2, max(3, len(whole) // 8)) * 8
                whole[at : at + 8] = rng.choice((0, 1, 1 << 63, (1 << 64) - 1)).to_bytes(8, "little")
            case _:
                return bytes(whole) + bytes(whole)
        return bytes(whole)

    with hostile(answer) as worker:
        worker.start(LOOK)
        worker.hear(SECONDS)
        deadline = time.monotonic() + 60
        while worker.answered <= 20 and time.monotonic() < deadline:
            worker.hear(0.1)
        os.write(worker.connection, encode(Signal(1, 9, all=True)))
        assert worker.answered > 20


def test_notices_of_every_kind() -> None:
    """For files that the kernel does not know, with lengths that are wrong, while programs use the tree."""
    rng = random.Random(2)
    session = Session(files(), Ticking(), private=True)

    def notice() -> bytes:
        node = rng.choice((0, 1, 2, 3, 1 << 40, (1 << 64) - 1))
        body = {
            1: pack("<Q", node), 2: pack("<Qqq", node, rng.choice((0, -1, 1 << 62)), rng.choice((0, -1, 5))),
            3: pack("<QII", node, rng.choice((1, 5, 1 << 31)), 0) + b"f\0", 4: pack("<QQII", node, 0, 5, 0) + b"12345",
            5: pack("<QQQII", 9, node, 0, rng.choice((5, 1 << 30)), 0), 6: pack("<QQII", node, 2, 1, 0) + b"f\0",
        }  # fmt: skip
        code = rng.randrange(10)
        data = body.get(code, rng.randbytes(24))
        return pack("<IiQ", 16 + len(data) + rng.choice((0, 0, 0, 1, -3)), code, 0) + data

    with hostile(lambda request: _whole(session, request)) as worker:
        worker.start(LOOK)
        began = time.monotonic()
        while (took := time.monotonic() - began) < SECONDS or (worker.answered <= 20 and took < 60):
            with suppress(OSError):
                os.write(worker.device, notice())
        os.write(worker.connection, encode(Signal(1, 9, all=True)))
        assert worker.answered > 20


def _whole(session: Session, request: Request) -> bytes | None:
    reply = session.handle(request)
    return None if reply is None else reply.header + bytes(reply.body)


@pytest.mark.parametrize("answers", ["nothing", "INIT", "all but READ"])
def test_a_worker_that_does_not_answer(answers: str) -> None:
    """Programs wait; what ends them is the end of the worker, and no longer than that is anything held up."""
    session = Session(files(), Ticking(), private=True)

    def answer(request: Request) -> bytes | None:
        if answers == "nothing" or (answers == "INIT" and request.opcode != fuse.INIT):
            return None
        return None if request.opcode == fuse.READ else _whole(session, request)

    with hostile(answer) as worker:
        worker.start("echo begun; cat /workspace/f; ls /workspace")
        assert worker.hear(60, until=b"begun\n") == (b"begun\n", None)
        assert worker.hear(1.5) == (b"", None)


def test_devices_and_privileges_are_only_shown() -> None:
    """The worker may say that a file is root's and set-user-id, or a disk: neither is of any use."""
    nodes = {"disk": (S_IFBLK | 0o666, 0x700), "memory": (S_IFCHR | 0o666, 0x101), "tool": (S_IFREG | 0o6755, 0)}
    names = list(nodes)
    program = Path("/usr/bin/id").resolve().read_bytes()

    def stat(number: int) -> Stat:
        mode, device = nodes[names[number - 2]] if number > 1 else (0o40755, 0)
        return Stat(mode, number, 0, 1, 0, 0, len(program), 0, 0, 0, device)

    def answer(request: Request) -> bytes | None:
        match request.opcode:
            case fuse.INIT:
                body = fuse.pack_init(31, 0)
            case fuse.LOOKUP:
                name = bytes(request.body).rstrip(b"\0").decode()
                if name not in names:
                    return fuse.pack_error(request.unique, 2)
                body = fuse.pack_entry(names.index(name) + 2, stat(names.index(name) + 2), 0)
            case fuse.GETATTR:
                body = fuse.pack_attributes(stat(request.node), 0)
            case fuse.OPEN:
                body = pack("<QII", 1, 0, 0)
            case fuse.READ:
                _, offset, size = (
                    int.from_bytes(request.body[at : at + n], "little") for at, n in ((0, 8), (8, 8), (16, 4))
                )
                body = program[offset : offset + size]
            case fuse.FORGET | fuse.BATCH_FORGET | fuse.INTERRUPT:
                return None
            case fuse.RELEASE | fuse.FLUSH:
                body = b""
            case _:
                return fuse.pack_error(request.unique, 38)
        return fuse.pack_reply(request.unique, body) + body

    with hostile(answer) as worker:
        worker.start("cd /workspace; stat -c '%n %A %U' tool; ./tool -u; head -c1 disk; head -c1 memory; echo $?")
        said, ended = worker.hear(60)
        assert ended is not None
        owner = b"nobody" if owner_ids().base is None else b"root"  # an ordinary user's sandbox has no such id
        assert said.startswith(b"tool -rwsr-sr-x " + owner + b"\n1000\n"), "it ran, as the one who started it"
        assert said.count(b"Permission denied") == 2
        assert said.endswith(b"1\n")


def test_a_worker_that_stops_does_not_outlive_its_sandbox() -> None:
    """The sandbox's own worker, stopped while programs wait for its files: closing ends all of it."""
    with Sandbox(tier="native") as neighbour:
        sandbox = Sandbox(native=["cat", "sh"], files={"f": "x" * 100_000})
        running = sandbox.spawn("sh -c 'while :; do cat f; done' > /dev/null")
        deadline = time.monotonic() + 60
        while not (companions := [pid for pid in sandbox._link.engines.pids() if pid]):
            assert time.monotonic() < deadline
            time.sleep(0.05)
        time.sleep(0.5)
        os.kill(sandbox._link.worker.pid, signal.SIGSTOP)
        time.sleep(0.2)
        began = time.monotonic()
        sandbox.close()
        assert time.monotonic() - began < 40
        while any(_runs(pid) for pid in companions):
            assert time.monotonic() - began < 80, "the companion is still there"
            time.sleep(0.1)
        assert running.exited
        assert neighbour.exec("echo here").stdout == "here\n"


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
