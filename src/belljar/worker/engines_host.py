"""The worker's end of engine processes: the owner forks them, their connections are streams on the hub's poller."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Final

from belljar.abi.errno import EIO, EPIPE
from belljar.abi.errors import SysError
from belljar.abi.native import KIND
from belljar.abi.wire import Plain
from belljar.kernel.engines import EngineLink, EngineUnavailable, NotCompilable
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.kernel.machine_host import DescriptorPoller
from belljar.worker.descriptor_host import Descriptor
from belljar.worker.hosted import Hosted

_LATER: Final = 0.001
"""Delay of the owner's notice of processes given up: it handles the program's end first."""


class HostEngines:
    """Asks the owner for engine processes. The numbers are ours, so that one may be given up before it is there."""

    def __init__(self, hosted: Hosted, hub: Hub, poller: DescriptorPoller) -> None:
        self._hosted = hosted
        self._hub = hub
        self._poller = poller
        self._next = 1
        self._links: dict[int, HostEngineLink] = {}
        self._given_up: list[int] = []
        """Processes given up, not yet reported to the owner."""

    def hold(self) -> tuple[set[int], set[int]]:
        self._tell()
        held = {number for number, link in self._links.items() if link.copied and link.hold()}
        return held, {number for number, link in self._links.items() if link.copied} - held

    def release(self) -> None:
        for link in self._links.values():
            link.release()

    def switch_to_copies(self, copies: Mapping[int, Descriptor]) -> None:
        """Switch to the copies of processes, in a branch; report the others, which are the origin's, as ended."""
        self._given_up.clear()
        links, self._links = self._links, {}
        for number, link in links.items():
            if number in copies:
                link.switch(copies[number].take())
                self._links[number] = link
            else:
                link.lose()

    def open(self, kind: str, options: Mapping[str, Plain]) -> HostEngineLink:
        return self._ask("open", [kind, dict(options)], copied=bool(options.get("copied")))

    def fork(self, link: EngineLink, options: Mapping[str, Plain]) -> HostEngineLink:
        if not isinstance(link, HostEngineLink):
            raise EngineUnavailable(EIO, "it is no engine process of the owner's")
        return self._ask("fork", [link.number, dict(options)])

    def compile(self, pieces: Iterable[bytes], options: Mapping[str, Plain]) -> float:
        number, self._next = self._next, self._next + 1
        try:
            for piece in pieces:
                self._hosted.ask(b"engine", "piece", [number, piece])
            answer, _ = self._hosted.question(b"engine", "compile", [number, dict(options)])
        except BaseException:
            self.kill(number)
            raise
        match answer.value:
            case [bool(done), int() | float() as seconds, bool(spent)]:
                reason = answer.message.decode("utf-8", "replace")
                if not done:
                    raise NotCompilable(reason, seconds, spent=spent)
                return float(seconds)
        raise EngineUnavailable(answer.errno or EIO, answer.message.decode("utf-8", "replace"))

    def open_companion(self, options: dict[str, Plain]) -> tuple[int, Plain, Sequence[Descriptor]]:
        """The number of a new companion with `trees`, what the owner says of it, its connection and a device for each
        tree; or further `devices` of one.
        """
        return self._obtain("open", [KIND, options])

    def _ask(self, operation: str, arguments: list[Plain], *, copied: bool = False) -> HostEngineLink:
        number, _, descriptors = self._obtain(operation, arguments)
        link = HostEngineLink(number, descriptors[0].take(), self._hub, self._poller, self)
        link.copied = copied
        self._links[number] = link
        return link

    def _obtain(self, operation: str, arguments: list[Plain]) -> tuple[int, Plain, Sequence[Descriptor]]:
        self._tell()  # first: the owner counts them
        number, self._next = self._next, self._next + 1
        try:
            answer, descriptors = self._hosted.question(b"engine", operation, [number, *arguments])
        except BaseException:
            self.kill(number)
            raise
        if answer.errno or not descriptors:
            raise EngineUnavailable(answer.errno or EIO, answer.message.decode("utf-8", "replace"))
        return number, answer.value, descriptors

    def kill(self, number: int) -> None:
        """Ask the owner to kill a process, now."""
        self._hosted.tell(b"engine", "kill", [number])

    def give_up(self, number: int) -> None:
        """Have the owner end a process whose connection is closed, once it knows of its program's end.

        Such a process has mostly ended by itself, and the owner waits for other news. Whatever comes first tells it:
        the timer, the next question for a process, or a fork; in a branch nothing does, for it is the origin's.
        """
        self._links.pop(number, None)
        self._given_up.append(number)
        self._hub.call_later(_LATER, self._tell)

    def _tell(self) -> None:
        while self._given_up:
            self.kill(self._given_up.pop(0))  # queued, whatever becomes of who says it


class HostEngineLink:
    """One engine process."""

    def __init__(self, number: int, fd: int, hub: Hub, poller: DescriptorPoller, engines: HostEngines) -> None:
        self.number = number
        self._fd = fd
        self._poller = poller
        self._engines = engines
        self._changed = WaitQueue(hub)
        self.waits = False
        self.copied = False
        """Whether a copy can be made of the process where it waits."""
        self._held = False
        self._sending = 0
        """Frames that are half sent."""
        self._crowded = False
        """Whether one of them waits for room in the socket; else POLLOUT is not watched."""
        self._watch()

    def _watch(self) -> None:
        self._poller.watch(self._fd, self._changed.wake_all, writable=self._crowded, edge=True)

    def recv(self, size: int = 1 << 16) -> bytes:
        while self._fd >= 0:
            try:
                return os.read(self._fd, size)
            except BlockingIOError:
                self._changed.wait()
            except OSError:
                break  # reset: it ended with something unread
        return b""

    def send(self, data: bytes) -> None:
        view = memoryview(data)
        while self._held and self._fd >= 0:
            self._changed.wait()
        self._sending += 1
        try:
            while view:
                if self._fd < 0:
                    raise SysError(EPIPE)
                try:
                    view = view[os.write(self._fd, view) :]
                except BlockingIOError:
                    self._crowded = True
                    self._watch()
                    self._changed.wait()
                except OSError:
                    raise SysError(EPIPE) from None
        finally:
            self._sending -= 1
            if self._crowded and not self._sending and self._fd >= 0:
                self._crowded = False
                self._watch()

    def hold(self) -> bool:
        """Hold back answers until `release`, if the process waits for one. Return whether."""
        self._held = self.waits and not self._sending
        return self._held

    def release(self) -> None:
        self._held = False
        self._changed.wake_all()

    def switch(self, fd: int) -> None:
        """Switch to a copy of the process, in a branch."""
        self._poller.unwatch(self._fd)
        os.close(self._fd)
        self._fd = fd
        self._watch()

    def kill(self) -> None:
        if self._fd >= 0:
            self._engines.kill(self.number)

    def close(self) -> None:
        if self._fd >= 0:
            self.lose()
            self._engines.give_up(self.number)

    def lose(self) -> None:
        """Close the connection without having the process killed."""
        if self._fd < 0:
            return
        fd, self._fd = self._fd, -1
        self._poller.unwatch(fd)
        os.close(fd)
        self._changed.wake_all()
