"""A worker that says whatever a test wants to the broker: the end of a compromised process."""

from __future__ import annotations

from contextlib import suppress
from types import TracebackType
from typing import Any, Self

from belljar.net.broker.broker_host import attach
from belljar.net.broker.gate_host import Gate
from belljar.net.network import Network
from belljar.net.wire import BrokerFrame, Fetch, GuestFrame, broker_frames, encode


class LyingWorker:
    """`events` has the network's record so far, `arrived` every frame that was read."""

    def __init__(self, network: Network, **options: Any) -> None:
        self.events: list[dict[str, Any]] = []
        self.gate = Gate(network, sandbox="lying", emit=self.events.append, **options)
        self.socket = attach(self.gate)
        self.socket.settimeout(30)
        self._frames = broker_frames()
        self._arrived: list[BrokerFrame] = []

    def send(self, *messages: GuestFrame) -> None:
        self.socket.sendall(b"".join(map(encode, messages)))

    def next(self) -> BrokerFrame | None:
        """The next frame; None when it was cut off."""
        while not self._arrived:
            data = b""
            with suppress(ConnectionResetError):
                data = self.socket.recv(1 << 16)
            if not data:
                return None
            self._arrived += self._frames.feed(data)
        return self._arrived.pop(0)

    def answer(self, *messages: GuestFrame) -> BrokerFrame | None:
        """Send these, and take the first frame that comes back."""
        self.send(*messages)
        return self.next()

    def recorded(self, action: str) -> list[dict[str, Any]]:
        """The events of this kind."""
        assert self.gate.record.flush(20)
        return [event for event in self.events if event["action"] == action]

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.socket.close()
        self.gate.close()


def fetch(number: int, url: str, *, body: bool = False, headers: list[tuple[bytes, bytes]] | None = None) -> Fetch:
    return Fetch(number, "POST" if body else "GET", url, headers or [], body, 0, 0.0, 0.0, "")
