"""One end of a session, without I/O: messages that outlive the connection they were sent on."""

from __future__ import annotations

from collections import deque
from typing import Final

from belljar.abi.wire import WireError
from belljar.remote.wire import Acknowledge, Message, decode, encode

_ACKNOWLEDGED_MESSAGES: Final = 64
_ACKNOWLEDGED_BYTES: Final = 1 << 20
"""Received messages, or bytes, after which the other side is told to forget them."""
KEPT_MAX: Final = 256 << 20
"""Bytes that wait to be acknowledged: streams are bounded by what was granted, requests and answers are not."""


class Session:
    """Counts messages, and keeps those that the other side may not have."""

    def __init__(self) -> None:
        self._kept: deque[bytes] = deque()
        self._first = 0
        """The number of the first that is kept."""
        self._sent = 0
        """Messages that were handed to the present connection, those before it included."""
        self.kept_bytes = 0
        self.received = 0
        self._told = 0
        """How many of those the other side knows of."""
        self._untold_bytes = 0
        self._owes = False

    def put(self, message: Message) -> None:
        """Have a message sent. WireError if too much waits."""
        data = encode(message)
        self._kept.append(data)
        self.kept_bytes += len(data)
        if self.kept_bytes > KEPT_MAX:
            raise WireError(f"more than {KEPT_MAX >> 20} MB wait to be received")

    def next(self) -> bytes | None:
        """What is to be sent next on the present connection; None: nothing."""
        if self._owes:
            self._owes = False
            self._told, self._untold_bytes = self.received, 0
            return encode(Acknowledge(self.received))
        place = self._sent - self._first
        if place >= len(self._kept):
            return None
        self._sent += 1
        return self._kept[place]

    def take(self, data: bytes) -> Message | None:
        """The message that was received; None if it was for the session itself. WireError."""
        message = decode(data)
        if isinstance(message, Acknowledge):
            self._forget(message.count)
            return None
        self.received += 1
        self._untold_bytes += len(data)
        if self.received - self._told >= _ACKNOWLEDGED_MESSAGES or self._untold_bytes >= _ACKNOWLEDGED_BYTES:
            self._owes = True
        return message

    def resume(self, received: int) -> None:
        """There is a new connection, and the other side has received so many. WireError if that can't be."""
        self._forget(received)
        self._sent = received
        self._told, self._untold_bytes, self._owes = self.received, 0, False

    def _forget(self, count: int) -> None:
        if not self._first <= count <= self._sent:
            raise WireError(f"{count} messages can't have been received: {self._first} to {self._sent} can")
        while self._first < count:
            self.kept_bytes -= len(self._kept.popleft())
            self._first += 1
