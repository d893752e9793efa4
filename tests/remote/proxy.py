"""A TCP proxy between a client and its server, which a test cuts, freezes or slows."""

from __future__ import annotations

import asyncio
import threading
from contextlib import suppress
from typing import Any


class Proxy:
    """Listens on loopback. Its methods are for any thread."""

    def __init__(self, port: int) -> None:
        self._target = port
        self._loop = asyncio.new_event_loop()
        self._writers: set[asyncio.StreamWriter] = set()
        self._flows = asyncio.Event()
        self._flows.set()
        self._refuses = False
        self.delay = 0.0
        """Seconds before each piece from the server."""
        self.connections = 0
        self.refused = 0
        self.bytes = 0
        """Of the server's, so far."""
        self.cut_after: int | None = None
        """Cut all connections when so many bytes more of the server's have passed."""
        started: threading.Event = threading.Event()

        async def main() -> None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
            self.port: int = self._server.sockets[0].getsockname()[1]
            started.set()

        self._loop.create_task(main())
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()
        assert started.wait(60)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def _call(self, work: Any) -> None:
        done = threading.Event()

        def run() -> None:
            work()
            done.set()

        self._loop.call_soon_threadsafe(run)
        assert done.wait(60)

    def cut(self, *, refuse: bool = False) -> None:
        """Reset every connection; with `refuse`, the next ones as well."""

        def cut() -> None:
            self._refuses = refuse
            self._reset()

        self._call(cut)

    def _reset(self) -> None:
        for writer in list(self._writers):
            writer.transport.abort()

    def accept_again(self) -> None:
        self._call(lambda: setattr(self, "_refuses", False))

    def freeze(self) -> None:
        """Carry nothing, and close nothing: connections are half open."""
        self._call(self._flows.clear)

    def thaw(self) -> None:
        self._call(self._flows.set)

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if self._refuses:
            self.refused += 1
            writer.transport.abort()
            return
        self.connections += 1
        try:
            there, out = await asyncio.open_connection("127.0.0.1", self._target)
        except OSError:
            writer.transport.abort()
            return
        self._writers |= {writer, out}
        try:
            await asyncio.gather(self._carry(reader, out), self._carry(there, writer, slow=True))
        except OSError:
            pass
        finally:
            for each in (writer, out):
                self._writers.discard(each)
                each.transport.abort()

    async def _carry(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, *, slow: bool = False) -> None:
        while data := await reader.read(65536):
            await self._flows.wait()
            if slow:
                if self.delay:
                    await asyncio.sleep(self.delay)
                self.bytes += len(data)
                if self.cut_after is not None:
                    self.cut_after -= len(data)
                    if self.cut_after < 0:
                        self.cut_after = None
                        self._reset()
                        return
            writer.write(data)
            await writer.drain()
        with suppress(OSError):
            writer.write_eof()

    def close(self) -> None:
        async def end() -> None:
            self._server.close()
            self._flows.set()
            self._reset()
            others = asyncio.all_tasks() - {asyncio.current_task()}
            await asyncio.gather(*others, return_exceptions=True)

        asyncio.run_coroutine_threadsafe(end(), self._loop).result(60)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
