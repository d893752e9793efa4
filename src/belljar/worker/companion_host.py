"""The worker's end of its companion, a native sandbox: starts programs there, and answers for the files they see.

The owner starts the companion and hands over its connection, and a FUSE device for each tree of this sandbox. From then
on the two talk without the owner: programs by the frames of `abi/wire.py`, files by the kernel's requests.
"""

from __future__ import annotations

import errno
import os
from collections import deque
from contextlib import suppress
from typing import Final

from belljar.abi.errno import EIO
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFDIR
from belljar.abi.native import SYSTEM
from belljar.abi.paths import fsencode
from belljar.abi.wire import (
    Call,
    Credit,
    Exited,
    Failure,
    HostMessage,
    Input,
    Output,
    Reply,
    Resize,
    Signal,
    Start,
    WorkerMessage,
    encode,
    worker_frames,
)
from belljar.fuse.protocol import MESSAGE_MAX, Malformed, pack_error, parse_request
from belljar.fuse.session import Account
from belljar.fuse.session import Reply as FileReply
from belljar.fuse.session import Session as FileSession
from belljar.kernel.engines import EngineUnavailable
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.machine_host import DescriptorPoller
from belljar.kernel.vfs.namespace import Mount, Place
from belljar.kernel.vfs.resolve import resolve
from belljar.worker.descriptor_host import Descriptor
from belljar.worker.engines_host import HostEngines
from belljar.worker.frames_host import FrameChannel
from belljar.worker.hosted import Hosted
from belljar.worker.session import Session

TREES_MAX: Final = 24
"""Directories of the root that programs in the companion see; descriptors of one message."""
_TURN: Final = 16
"""Requests about files after which other fibers have their turn."""
_PASSING: Final = (errno.EINTR, errno.ENOENT)
"""Errors of a device that concern one request: who made it waits no more."""


class HostCompanion:
    """The companion of one sandbox, started when the first program is."""

    def __init__(self, session: Session, hosted: Hosted, engines: HostEngines, poller: DescriptorPoller) -> None:
        self._session = session
        self._hosted = hosted
        self._engines = engines
        self._poller = poller
        self._hub = session.kernel.hub
        self._connected = WaitQueue(self._hub)
        self._connecting = False
        self._number = 0
        self._channel: FrameChannel[WorkerMessage] | None = None
        self._devices: list[_Device] = []
        self._shown: dict[str, Place] = {}
        """The trees that it was started with."""
        self._replies: dict[int, Reply | Failure | None] = {}
        self._programs: dict[int, HostProgram] = {}
        self._calls: dict[int, HostProgram] = {}
        """Calls for input that were not answered yet, and whose they are."""
        self._last = 0

    def start(self, start: Start) -> HostProgram:
        """Start a program; its `id` is chosen here. EngineUnavailable if there is no companion to be had."""
        if self._channel is not None and not self._programs and self._trees() != self._shown:
            self._replace()
        while self._channel is None or self._connecting:
            self._connect()
        start.id = self._new_id()
        program = self._programs[start.id] = HostProgram(self, start.id, WaitQueue(self._hub))
        self.send(start)
        return program

    def _new_id(self) -> int:
        self._last += 1
        return self._last

    def send(self, message: HostMessage) -> None:
        """Send without waiting; nothing if it has ended."""
        if self._channel is not None:
            self._channel.send(encode(message), wait=False)

    def call_input(self, program: HostProgram, data: bytes) -> int:
        number = self._new_id()
        self._calls[number] = program
        self.send(Call(number, "input", [program.number, data]))
        return number

    def forget(self, program: HostProgram) -> None:
        self._programs.pop(program.number, None)

    def _connect(self) -> None:
        if self._connecting:
            self._connected.wait()
            return
        self._connecting = True
        try:
            self._shown = self._trees()
            places = {path: place for path, place in self._shown.items() if path.count("/") == 1}
            trees = [[path, place.node.mode, place.mount.read_only] for path, place in places.items()]
            self._number, value, descriptors = self._engines.open_companion({"trees": trees})
            if len(descriptors) != 1 + len(places):
                raise EngineUnavailable(EIO, "the companion has too few trees")
            who = self._session.credentials
            account = Account(who.uid, who.gid, only=True, known=True) if value == 1 else None
            for place, device in zip(places.values(), descriptors[1:], strict=True):
                self._serve(place, device, account)
            fd = descriptors[0].take()
            self._channel = FrameChannel(fd, self._hub, self._poller, worker_frames(), self._receive, self._ended)
            self._mount_inner({path: place for path, place in self._shown.items() if path not in places}, account)
        finally:
            self._connecting = False
            self._connected.wake_all()

    def _mount_inner(self, places: dict[str, Place], account: Account | None) -> None:
        """Have trees mounted inside of others: the way to them leads through what is served here already."""
        mounted = [place for path, place in places.items() if self._mount(path, place)]
        if mounted:
            _, _, devices = self._engines.open_companion({"of": self._number, "devices": len(mounted)})
            for place, device in zip(mounted, devices, strict=True):
                self._serve(place, device, account)

    def _mount(self, path: str, place: Place) -> bool:
        number = self._new_id()
        self._replies[number] = None
        self.send(Call(number, "fuse", [fsencode(path), place.node.mode, place.mount.read_only]))
        while (reply := self._replies[number]) is None:
            if self._channel is None:
                raise EngineUnavailable(EIO, "the companion ended while it started")
            self._connected.wait()
        del self._replies[number]
        return isinstance(reply, Reply)

    def _serve(self, place: Place, device: Descriptor, account: Account | None) -> None:
        session = FileSession(
            place.mount.server,
            self._session.kernel.now,
            root=place.node,
            read_only=place.mount.read_only,
            account=account,
            report=self._report,
        )
        served = _Device(device.take(), place.mount, session, self._hub, self._poller)
        self._devices.append(served)
        self._hub.spawn(served.serve)

    def _replace(self) -> None:
        """Have another one started: the sandbox has other trees than this one shows, and nothing runs in it."""
        self._engines.kill(self._number)
        self.lose()

    def _report(self, error: BaseException) -> None:
        kernel = self._session.kernel
        kernel.report_bug(kernel.init, error)

    def _trees(self) -> dict[str, Place]:
        """The directories of the root that are the sandbox's own, and the owner's mounts in them, by their paths."""
        view = self._session.kernel.init.fs
        mount, root = view.root
        names = [name for name, _, kind in mount.server.readdir(root) if kind == S_IFDIR and name not in SYSTEM]
        paths = [f"/{name}" for name in names[:TREES_MAX]]
        inner = [path for path in self._hosted.mounted if f"/{path.split('/')[1]}" in paths and path not in paths]
        found: dict[str, Place] = {}
        for path in paths + sorted(inner)[:TREES_MAX]:
            with suppress(SysError):  # its mount point was removed
                found[path] = resolve(view, path)
        return {path: place for path, place in found.items() if place.node.is_dir}

    def _receive(self, message: WorkerMessage) -> None:
        match message:
            case Reply(id=number) | Failure(id=number) if number in self._replies:
                self._replies[number] = message
                self._connected.wake_all()
                return
            case Output(id=number) | Exited(id=number):
                program = self._programs.get(number)
            case Reply(id=number):
                program = self._calls.pop(number, None)
            case Failure(id=number):
                program = self._calls.pop(number, None) or self._programs.get(number)
            case _:
                return
        if program is not None:
            program.take(message)

    def _ended(self) -> None:
        """The companion ended by itself: the next program has another one."""
        if self._channel is not None:  # else it was closed here
            self._engines.kill(self._number)
            self.lose()

    def lose(self) -> None:
        """Let go of it. In a branch it is the origin's, and programs in it are seen to have been killed."""
        channel, self._channel = self._channel, None
        if channel is not None:
            channel.close()
        devices, self._devices = self._devices, []
        for device in devices:
            device.close()
        programs, self._programs = self._programs, {}
        self._calls.clear()
        self._connected.wake_all()
        for program in programs.values():
            program.take(None)


class HostProgram:
    """A program in the companion."""

    def __init__(self, companion: HostCompanion, number: int, news: WaitQueue) -> None:
        self._companion = companion
        self.number = number
        self._news = news
        self._messages: deque[Output | Exited | Failure] = deque()
        self._given: dict[int, bool] = {}
        """Answers about input that nobody has taken yet."""
        self._lost = False
        self._done = False

    def take(self, message: WorkerMessage | None) -> None:
        match message:
            case None:
                self._lost = True
            case Output() | Exited():
                self._messages.append(message)
            case Reply(id=number, value=value):
                self._given[number] = value is True
            case Failure(id=number) if number == self.number:
                self._messages.append(message)
            case Failure(id=number):
                self._given[number] = False
        self._news.wake_all()

    def wait(self) -> Output | Exited | Failure | None:
        """The next message; None: it was killed, and its companion with it."""
        while not self._messages and not self._lost:
            self._news.wait()
        if not self._messages:
            return None
        message = self._messages.popleft()
        self._done = not isinstance(message, Output)
        return message

    def give(self, data: bytes) -> bool:
        """Give it input, and wait until that is taken. False: nobody will."""
        number = self._companion.call_input(self, data)
        while number not in self._given and not self._lost:
            self._news.wait()
        return self._given.pop(number, False)

    def end_input(self) -> None:
        self._companion.send(Input(self.number, b""))

    def credit(self, stream: int, count: int) -> None:
        """Let it write as much more."""
        self._companion.send(Credit(self.number, stream, count))

    def signal(self, number: int) -> None:
        self._companion.send(Signal(self.number, number))

    def resize(self, rows: int, columns: int) -> None:
        self._companion.send(Resize(self.number, rows, columns))

    def close(self) -> None:
        """Let go of it; what still runs of it is killed. Idempotent."""
        if not self._done:
            self._done = True
            self._companion.send(Signal(self.number, 9, all=True))
        self._companion.forget(self)
        self._news.wake_all()


class _Device:
    """A FUSE device, served by a fiber: one request after the other."""

    def __init__(self, fd: int, mount: Mount, session: FileSession, hub: Hub, poller: DescriptorPoller) -> None:
        self._hub = hub
        self._fd = fd
        self._mount = mount
        self._session = session
        self._ready = WaitQueue(hub)
        self._poller = poller
        self._buffer = bytearray(MESSAGE_MAX)
        poller.watch(fd, self._ready.wake_all, edge=True)

    def serve(self) -> None:
        turns = 0
        while self._fd >= 0:
            try:
                count = os.readv(self._fd, (self._buffer,))
            except BlockingIOError:
                turns = 0
                self._ready.wait()
                continue
            except OSError as error:
                if error.errno in _PASSING:
                    continue
                break
            self._answer(memoryview(self._buffer)[:count])
            turns += 1
            if turns % _TURN == 0:
                self._hub.pause()
        self.close()

    def _answer(self, message: memoryview) -> None:
        try:
            request = parse_request(message)
        except Malformed:
            return
        self._session.use(self._mount.server)  # a watched one may have taken its place
        reply = self._session.handle(request)
        if reply is not None and not self._write(reply) and reply.undo is not None:
            reply.undo()

    def _write(self, reply: FileReply) -> bool:
        """Whether the kernel took it."""
        if self._fd < 0:
            return False
        try:
            os.writev(self._fd, (reply.header, reply.body))
        except OSError as error:
            if error.errno == errno.EINVAL:
                self._session.report(error)
                os.write(self._fd, pack_error(int.from_bytes(reply.header[8:16], "little"), EIO))
            return False
        return True

    def close(self) -> None:
        """Stop serving; whoever waits for a file there gets ECONNABORTED. Idempotent."""
        if self._fd >= 0:
            fd, self._fd = self._fd, -1
            self._poller.unwatch(fd)
            os.close(fd)
            self._hub.spawn(self._session.close)  # not now: a branch must first have a connection of its own
            self._ready.wake_all()
