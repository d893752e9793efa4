"""Engine programs of a page: each runs in a worker of its own, which JavaScript starts and terminates."""

from __future__ import annotations

import hashlib
from collections import deque
from collections.abc import Iterable, Mapping

import _page
import msgspec

from belljar.abi.errno import ENOENT, ENOSYS, EPIPE
from belljar.abi.errors import SysError
from belljar.abi.wire import Plain
from belljar.kernel.engines import EngineLink, EngineUnavailable
from belljar.kernel.fiber import Hub, WaitQueue


class PageEngineLink:
    """A byte stream to an engine worker."""

    def __init__(self, number: int, hub: Hub, engines: PageEngines) -> None:
        self.number = number
        self.waits = False
        self._engines = engines
        self._arrived: deque[bytes] = deque()
        self._news = WaitQueue(hub)
        self._ended = False

    def take(self, data: bytes | None) -> None:
        """Take what the engine sent; None: its end."""
        if data is None:
            self._ended = True
        else:
            self._arrived.append(data)
        self._news.wake_all()

    def recv(self, size: int = 1 << 16) -> bytes:
        while not self._arrived:
            if self._ended:
                return b""
            self._news.wait()
        data = self._arrived.popleft()
        if len(data) > size:
            self._arrived.appendleft(data[size:])
        return data[:size]

    def send(self, data: bytes) -> None:
        if self._ended:
            raise SysError(EPIPE)
        _page.send_engine(self.number, data)

    def kill(self) -> None:
        _page.end_engine(self.number)
        self.take(None)

    def close(self) -> None:
        if self.number in self._engines.links:
            del self._engines.links[self.number]
            self.kill()


class PageEngines:
    """Asks JavaScript for engine workers."""

    def __init__(self, hub: Hub) -> None:
        self._hub = hub
        self.links: dict[int, PageEngineLink] = {}

    def receive(self, number: int, data: bytes | None) -> None:
        """Bytes of an engine; None: it has ended. KeyError if nobody waits for it any more."""
        self.links[number].take(data)

    def hold(self) -> tuple[set[int], set[int]]:
        return set(), set()

    def release(self) -> None:
        return

    def open(self, kind: str, options: Mapping[str, Plain]) -> EngineLink:
        if "program" in options and not _page.has_program(options["program"]):
            raise EngineUnavailable(ENOENT, "the program is not known yet")
        number = int(_page.open_engine(kind, msgspec.json.encode(dict(options)).decode()))
        if number <= 0:
            raise EngineUnavailable(ENOSYS, str(_page.engine_refusal(kind)))
        link = self.links[number] = PageEngineLink(number, self._hub, self)
        return link

    def fork(self, link: EngineLink, options: Mapping[str, Plain]) -> EngineLink:
        raise EngineUnavailable(ENOSYS, "a page can't copy an interpreter that runs")

    def compile(self, pieces: Iterable[bytes], options: Mapping[str, Plain]) -> float:
        """Hand a WebAssembly file to JavaScript. Its engine compiles it and counts the time: none has passed here."""
        program = b"".join(pieces)
        _page.keep_program(hashlib.sha256(program).hexdigest(), program)
        return 0.0
