"""JavaScript processes on a server, as `api/js_core.py` knows them: their connections are streams of the session."""

from __future__ import annotations

import socket
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from belljar.abi.dataclass import dataclass
from belljar.engines.owner.js_prefix_host import PrefixProcess
from belljar.engines.owner.template_host import EngineProcess
from belljar.remote.client_host import Client


class RemoteProcesses:
    """The JavaScript of one session. What it raises is what the server answered."""

    def __init__(self, client: Callable[[], Client]) -> None:
        self._client = client

    @property
    def engine(self) -> str:
        return self._client().welcome.js.partition(" ")[0]

    def start_prefix(self, *, wasm: bool, sessions: bool) -> PrefixProcess:
        client = self._client()
        return _RemotePrefix(client, *_begin(client, "js.start", wasm, sessions))

    def copy(self, process: EngineProcess) -> EngineProcess:
        assert isinstance(process, _RemoteProcess)
        assert process.client is not None
        client, origin = self._client(), process.client.welcome.token
        return _process(client, *_begin(client, "js.copy", origin, process.number))


def _begin(client: Client, name: str, *arguments: Any) -> tuple[int, socket.socket]:
    """The number of a new process, which is that of its stream, and our end of that."""
    numbers: list[int] = []

    def ask(number: int) -> tuple[str, list[Any]]:
        numbers.append(number)
        return name, [number, *arguments]

    connection = client.stream(ask)
    return numbers[0], connection


@dataclass(slots=True)
class _RemoteProcess(EngineProcess):
    """A run, or a session that takes one run after another."""

    client: Client | None = None
    number: int = 0

    @property
    def alive(self) -> bool:
        return self.connection.fileno() >= 0

    def kill(self) -> None:
        assert self.client is not None
        _kill(self.client, self.number, self.connection)


def _process(client: Client, number: int, connection: socket.socket) -> EngineProcess:
    return _RemoteProcess(0, -1, connection, client=client, number=number)


class _RemotePrefix(PrefixProcess):
    def __init__(self, client: Client, number: int, connection: socket.socket) -> None:
        self._client = client
        self._number = number
        self._connection = connection

    @property
    def connection(self) -> socket.socket:
        return self._connection

    @property
    def alive(self) -> bool:
        return self._connection.fileno() >= 0

    def expect_runs(self) -> None:
        self._client.tell("js.expect", self._number)

    def take(self) -> EngineProcess:
        return _process(self._client, *_begin(self._client, "js.take", self._number))

    def kill(self) -> None:
        _kill(self._client, self._number, self._connection)


def _kill(client: Client, number: int, connection: socket.socket) -> None:
    """Idempotent."""
    if connection.fileno() >= 0:
        with suppress(OSError):
            connection.shutdown(socket.SHUT_RDWR)
        connection.close()
        client.tell("js.kill", number)
