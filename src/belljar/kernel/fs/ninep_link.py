"""The kernel's end of a 9P connection to a program: tags, time limits, and a fiber that reads answers."""

from __future__ import annotations

from typing import Any, Final

from belljar.abi.errno import EIO
from belljar.abi.errors import SysError
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.fs import ninep_wire as wire
from belljar.kernel.fs.ninep_wire import Frames, Malformed
from belljar.kernel.vfs.openfile import OpenFile

SECONDS: Final = 10.0
"""Time that a server has for an answer, unless the mount says otherwise."""
REQUESTS_MAX: Final = 256
"""Requests under way, those that nobody waits for any more included."""
MESSAGE: Final = 64 << 10
_ERRNO_MAX: Final = 4095


class NinePLink:
    """Sends requests of many fibers over one pair of descriptors.

    A server that lets a request wait too long is asked nothing more until it has answered: further requests fail at
    once.
    """

    def __init__(self, hub: Hub, reader: OpenFile, writer: OpenFile, seconds: float = SECONDS) -> None:
        self._hub = hub
        self._reader = reader.retain()
        self._writer = writer.retain()
        self.seconds = seconds
        self._frames = Frames(MESSAGE)
        self._changed = WaitQueue(hub)
        self._waiting: dict[int, tuple[Any, ...] | None] = {}
        """Requests by tag, and what was answered."""
        self._abandoned: set[int] = set()
        """Tags of requests that nobody waits for."""
        self._late: set[int] = set()
        self._names: dict[int, str] = {}
        self._next = 0
        self._writing = False
        self.dead = ""
        """Why there is no server any more."""
        hub.spawn(self._read_answers)

    def call(self, name: str, *values: Any) -> tuple[Any, ...]:
        """The values of the answer. EIO if the server is gone, late or talks nonsense, or what it says."""
        if self.dead or self._late or len(self._names) >= REQUESTS_MAX:
            raise SysError(EIO, why=self.dead or "its server does not answer")
        tag = wire.NOTAG if name == "Tversion" else self._new_tag()
        self._names[tag], self._waiting[tag] = name, None
        until = self._hub.clock.monotonic() + self.seconds
        timer = self._hub.call_at(until, self._changed.wake_all)
        try:
            self._send(wire.encode(name, tag, *values), until)
            while (answer := self._waiting[tag]) is None:
                if self.dead:
                    raise SysError(EIO, why=self.dead)
                if self._hub.clock.monotonic() >= until:
                    self._late.add(tag)
                    raise SysError(EIO, why="its server does not answer")
                self._changed.wait()
        except BaseException:
            if self._waiting.pop(tag) is None:
                self._abandoned.add(tag)  # the answer may still come
            else:
                del self._names[tag]
            raise
        finally:
            timer.cancel()
        del self._waiting[tag], self._names[tag]
        if answer[0] is _ERROR:
            raise SysError(answer[1])
        return answer

    def _new_tag(self) -> int:
        while self._next in self._names:
            self._next = (self._next + 1) % REQUESTS_MAX
        tag, self._next = self._next, (self._next + 1) % REQUESTS_MAX
        return tag

    def _send(self, frame: bytes, until: float) -> None:
        """Write a request. A server that takes none in time is late, too."""
        while self._writing and not self.dead:
            if self._hub.clock.monotonic() >= until:
                raise SysError(EIO, why="its server does not answer")
            self._changed.wait()
        if self.dead:
            raise SysError(EIO, why=self.dead)
        self._writing = True
        # By a fiber of its own: ours may be killed, and half a request would be the end of the connection.
        self._hub.spawn(lambda: self._write(frame))

    def _write(self, frame: bytes) -> None:
        try:
            while frame:
                frame = frame[self._writer.write(frame) :]
        except SysError:
            self.close("its server is gone")
        finally:
            self._writing = False
            self._changed.wake_all()

    def _read_answers(self) -> None:
        try:
            while not self.dead:
                data = self._reader.read(MESSAGE)
                if not data:
                    return self.close("its server is gone")
                for frame in self._frames.feed(data):
                    self._take(wire.decode(frame))
        except SysError:
            self.close("its server is gone")
        except Malformed as error:
            self.close(f"its server talks nonsense: {error}")

    def _take(self, message: wire.Message) -> None:
        """An answer. Malformed if nothing was asked that it fits."""
        asked = self._names.get(message.tag)
        if asked is None or message.name not in ("Rlerror", "R" + asked[1:]):
            raise Malformed(f"{message.name} to {asked or 'nothing'}")
        values: tuple[Any, ...] = message.values
        if message.name == "Rlerror":
            (number,) = message.values
            values = (_ERROR, number if 0 < number <= _ERRNO_MAX else EIO)
        if message.tag in self._abandoned:
            self._abandoned.remove(message.tag)
            self._late.discard(message.tag)
            del self._names[message.tag]
        elif self._waiting[message.tag] is not None:
            raise Malformed(f"two answers to {asked}")
        else:
            self._waiting[message.tag] = values or (None,)
        self._changed.wake_all()

    def close(self, why: str) -> None:
        """There is no server any more: everything fails from now on."""
        if not self.dead:
            self.dead = why
            self._reader.release()
            self._writer.release()
            self._changed.wake_all()


class _Error:
    """In front of an errno."""


_ERROR: Final = _Error()
