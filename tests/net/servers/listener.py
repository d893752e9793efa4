"""A TCP port with a thread for each connection: what every server here stands on, and the port nobody may reach."""

from __future__ import annotations

import socket
import ssl
import threading
from contextlib import ExitStack, suppress
from errno import EADDRINUSE
from types import TracebackType
from typing import Self


def listen_for_both(address: str, port: int = 0) -> tuple[socket.socket, socket.socket]:
    """Sockets for connections and for datagrams at the same port.

    A port that the kernel gives for one may be in use for the other, by any client on this machine: then another is
    taken.
    """
    family = socket.AF_INET6 if ":" in address else socket.AF_INET
    with ExitStack() as in_use:
        while True:
            listening = socket.create_server((address, port), family=family, backlog=256)
            datagrams = socket.socket(family, socket.SOCK_DGRAM)
            try:
                datagrams.bind(listening.getsockname())
            except OSError as error:
                in_use.callback(listening.close)  # not before another is found, or it would be given again
                datagrams.close()
                if port or error.errno != EADDRINUSE:
                    raise
            else:
                return listening, datagrams


class Listener:
    """Accepts connections and gives each to `serve`, in a thread of its own. A subclass says what to do with them."""

    def __init__(
        self,
        address: str = "127.0.0.1",
        port: int = 0,
        context: ssl.SSLContext | None = None,
        *,
        listening: socket.socket | None = None,
    ) -> None:
        family = socket.AF_INET6 if ":" in address else socket.AF_INET
        self._listening = listening or socket.create_server((address, port), family=family, backlog=256)
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
        self._listening, self._datagrams = listen_for_both(address, port)
        self._listening.setblocking(False)
        self._datagrams.setblocking(False)
        self.address = address
        self.port = int(self._listening.getsockname()[1])

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
