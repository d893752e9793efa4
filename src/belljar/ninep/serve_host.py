"""Serves a tree by 9P2000.L on a Unix socket, to any number of clients, each in a thread of its own."""

from __future__ import annotations

import os
import socket
import stat
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from belljar.abi.errors import SandboxError
from belljar.abi.records import Owner
from belljar.kernel.fs.ninep_wire import Malformed
from belljar.kernel.vfs.server import FileServer
from belljar.ninep.session import Session

CLIENTS_MAX: Final = 64
_READ: Final = 256 << 10


class ExportError(SandboxError):
    """A tree can't be exported at a path; the message says why."""


class Exported:
    """A tree that is served, until `close`. Only this user can connect: the socket's mode is 0600."""

    def __init__(
        self, server: FileServer, path: str, *, read_only: bool, report: Callable[[BaseException], object]
    ) -> None:
        """ExportError if there can't be a socket at `path`; one that nobody listens on is replaced."""
        self.path = os.path.abspath(path)
        self._server = server
        self._read_only = read_only
        self._report = report
        self._guard = threading.Lock()
        self._clients: set[socket.socket] = set()
        self._closed = threading.Event()
        self._listener = socket.socket(socket.AF_UNIX)
        try:
            _remove_stale(self.path)
            old = os.umask(0o177)
            try:
                self._listener.bind(self.path)
            finally:
                os.umask(old)
            self._listener.listen()
        except OSError as error:
            self._listener.close()
            raise ExportError(f"{path}: no socket can be made there: {error.strerror or error}") from None
        threading.Thread(target=self._accept, name="belljar-export", daemon=True).start()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return  # closed
            with self._guard:
                crowded = len(self._clients) >= CLIENTS_MAX or self._closed.is_set()
                if not crowded:
                    self._clients.add(client)
            if crowded:
                client.close()
            else:
                threading.Thread(target=self._serve, args=(client,), name="belljar-export-client", daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        owner = Owner(os.getuid(), os.getgid())
        session = Session(self._server, read_only=self._read_only, owner=owner, report=self._report)
        try:
            while data := client.recv(_READ):
                answers = session.receive(data)
                while True:
                    with self._guard:  # file servers have one caller at a time
                        answer = next(answers, None)
                    if answer is None:
                        break
                    client.sendall(answer)
        except (OSError, Malformed):
            return
        finally:
            with self._guard:
                session.close()
                self._clients.discard(client)
            client.close()

    def wait(self) -> None:
        """Wait until it is closed."""
        while not self._closed.wait(1):
            pass

    def close(self) -> None:
        """End every connection and remove the socket. Idempotent."""
        if self._closed.is_set():
            return
        self._closed.set()
        with suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        with suppress(OSError):
            os.unlink(self.path)
        with self._guard:
            for client in self._clients:
                with suppress(OSError):
                    client.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Exported:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _remove_stale(path: str) -> None:
    """Remove a socket that nobody listens on; anything else stays, and is an error."""
    with suppress(FileNotFoundError):
        if stat.S_ISSOCK(os.lstat(path).st_mode):
            with socket.socket(socket.AF_UNIX) as probe:
                try:
                    probe.connect(path)
                except ConnectionRefusedError:
                    os.unlink(path)
