"""The owner's side of a sandbox's network: hands its worker a way to the broker when it asks for one."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio

    from belljar.net.gate_host import Traffic
    from belljar.net.network import Network

Observe = Callable[[str, dict[str, Any]], None]
"""Takes the kind of an event and its data."""


class NetworkDoor:
    """What one sandbox was granted. Its policy runs on `owner`, the loop of an asynchronous front, if there is one."""

    def __init__(self, network: Network, name: str, owner: asyncio.AbstractEventLoop | None = None) -> None:
        self._network = network
        self._name = name
        self._owner = owner
        self._traffic: list[Traffic] = []

    def open(self, observe: Observe | None) -> int:
        """The descriptor to hand to the worker."""
        from belljar.net.broker_host import shared  # a sandbox without network need not wait for it

        theirs, traffic = shared.attach(self._network, sandbox=self._name, emit=self._emit(observe), owner=self._owner)
        self._traffic.append(traffic)
        return theirs.detach()

    def stats(self) -> dict[str, float]:
        """What passed so far."""
        return {
            f"network_{name}": sum(getattr(traffic, name) for traffic in self._traffic)
            for name in ("bytes_in", "bytes_out", "requests", "connections", "questions", "denied")
        }

    def _emit(self, observe: Observe | None) -> Callable[[dict[str, Any]], None] | None:
        if observe is None:
            return None
        owner = self._owner
        if owner is None:
            return lambda data: observe("network", data)

        def emit(data: dict[str, Any]) -> None:
            if not owner.is_closed():
                owner.call_soon_threadsafe(observe, "network", data)

        return emit
