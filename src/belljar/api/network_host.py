"""The owner's side of a sandbox's network: hands its worker a way to the broker when it asks for one."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

    from belljar.net.broker.gate_host import Gate
    from belljar.net.network import Network

_EVENTS_MAX: Final = 1024
"""Events that wait for the owner's event loop."""
_BEHIND_SECONDS: Final = 5.0
Observe = Callable[[str, dict[str, Any]], None]
"""Takes the kind of an event and its data."""


class NetworkAccess:
    """Network grant of one sandbox. Its policy runs on `owner`, the loop of an asynchronous front, if there is one."""

    def __init__(self, network: Network, name: str, owner: asyncio.AbstractEventLoop | None = None) -> None:
        self._network = network
        self._name = name
        self._owner = owner
        self._gate: Gate | None = None
        self._lock = threading.Lock()

    def open(self, observe: Observe | None) -> int:
        """The descriptor to hand to the worker."""
        # A sandbox without network need not wait for these.
        from belljar.net.broker.broker_host import attach

        return attach(self.gate(observe)).detach()

    def close(self) -> None:
        """The sandbox is gone: end what it has under way. Idempotent."""
        with self._lock:
            if self._gate is not None:
                self._gate.close(wait=self._owner is None)  # an event loop must not wait for the owner's audit

    def gate(self, observe: Observe | None) -> Gate:
        """The sandbox's one way out, whoever asks for it and how often: limits count everything."""
        from belljar.net.broker.gate_host import Gate

        with self._lock:
            if self._gate is None:
                self._gate = Gate(self._network, sandbox=self._name, emit=self._emit(observe), owner=self._owner)
            return self._gate

    def stats(self) -> dict[str, float]:
        """Counters so far."""
        return {
            f"network_{name}": 0 if self._gate is None else getattr(self._gate.traffic, name)
            for name in ("bytes_in", "bytes_out", "requests", "connections", "questions", "denied")
        }

    def _emit(self, observe: Observe | None) -> Callable[[dict[str, Any]], None] | None:
        if observe is None:
            return None
        owner = self._owner
        if owner is None:
            return lambda data: observe("network", data)

        room = threading.Semaphore(_EVENTS_MAX)

        def take(data: dict[str, Any]) -> None:
            room.release()
            observe("network", data)

        def emit(data: dict[str, Any]) -> None:
            """Called on the record's thread, which waits for a loop that is behind."""
            if not room.acquire(timeout=_BEHIND_SECONDS):
                raise TimeoutError("the event loop takes no events")
            if not owner.is_closed():
                owner.call_soon_threadsafe(take, data)

        return emit
