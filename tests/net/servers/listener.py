"""A TCP port with a thread for each connection: what every server here stands on, and the port nobody may reach."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import suppress
from types import TracebackType
from typing import Self


class Listener:
    """Accepts connections and gives each to `serve`, in a thread of its own. A subclass says what to do with them."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0, context: ssl.SSLContext | None = None) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = socket.create_server((address, port), family=family, backlog=256)
        self.address = address
        self.port = int(self._listening.getsockname()[1])
        self.context = context
        self.connections = 0
        """How many have come, whatever became of them."""
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._closed = False
        self._thread = threading.Thread(target=self._accept, daemon=True)

    @property
    def authority(self) -> str:
        """HOST:PORT as a URL has it."""
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    @property
    def url(self) -> str:
        return f"{'https' if self.context else 'http'}://{self.authority}"

    def serve(self, connection: socket.socket) -> None:
        """Talk until done; what goes wrong with the peer (OSError) ends only this connection."""
        raise NotImplementedError

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listening.accept()
            except OSError:
                return
            with self._lock:
                if self._closed:
                    connection.close()
                    return
                self.connections += 1
                self._open.add(connection)
            threading.Thread(target=self._run, args=(connection,), daemon=True).start()

    def _run(self, connection: socket.socket) -> None:
        talking = connection
        try:
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            if self.context is not None:
                connection.settimeout(30)
                talking = self.context.wrap_socket(connection, server_side=True)
                talking.settimeout(None)
                with self._lock:
                    self._open.add(talking)
            self.serve(talking)
        except (OSError, ValueError):  # the peer went away, or this server was closed under us
            pass
        finally:
            with self._lock:
                self._open -= {connection, talking}
            with suppress(OSError):
                talking.close()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._closed = True
            still = list(self._open)
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        for connection in still:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            with suppress(OSError):
                connection.close()  # its thread may be asleep
        self._thread.join(5)


class Tripwire:
    """A listening port that nobody may reach. The kernel takes a connection before anyone accepts it, so not even a
    SYN goes by unseen, and there is no thread to wait for."""

    def __init__(self, address: str = "127.0.0.1", port: int = 0) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = socket.create_server((address, port), family=family)
        self._listening.setblocking(False)
        self._datagrams = socket.socket(family, socket.SOCK_DGRAM)
        self.address = address
        self.port = int(self._listening.getsockname()[1])
        self._datagrams.bind((address, self.port))
        self._datagrams.setblocking(False)

    @property
    def authority(self) -> str:
        return f"[{self.address}]:{self.port}" if ":" in self.address else f"{self.address}:{self.port}"

    def touched(self) -> bool:
        """Whether anyone connected, or sent a datagram, since it was last asked."""
        touched = False
        with suppress(BlockingIOError):
            connection, _ = self._listening.accept()
            connection.close()
            touched = True
        with suppress(BlockingIOError):
            self._datagrams.recv(1)
            touched = True
        return touched

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._listening.close()
        self._datagrams.close()
