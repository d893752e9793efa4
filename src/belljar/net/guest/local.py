"""Connections inside the sandbox: servers that its programs run, and their clients. No byte leaves the kernel."""

from __future__ import annotations

from collections import deque
from ipaddress import IPv4Address, IPv6Address
from typing import TYPE_CHECKING, Final, NamedTuple

from belljar.abi.errno import EADDRINUSE, EADDRNOTAVAIL, EAGAIN, ECONNABORTED, ECONNREFUSED, EINVAL, EPIPE, EPROTO
from belljar.abi.errors import SysError
from belljar.abi.flags import POLLERR, POLLHUP, POLLIN, POLLOUT
from belljar.kernel.fiber import Hub, WaitQueue
from belljar.net.guest.uplink import errno_of
from belljar.net.wire import WINDOW, Failed, Opened

if TYPE_CHECKING:
    from collections.abc import Callable

    from belljar.net.addresses import Address
    from belljar.net.wire import Secured

GUEST_ADDRESS: Final = "10.0.2.15"
CONTAINER_PREFIX: Final = "172.17.0."
"""Before the number of a container: the addresses that Docker gives."""
LOOPBACK: Final = "127.0.0.1"
BACKLOG_MAX: Final = 1024
EPHEMERAL: Final = range(32768, 61000)
_ANY: Final = ("0.0.0.0", "::")  # noqa: S104 - a guest's words


class Place(NamedTuple):
    """One end of a connection."""

    address: str
    port: int


class LocalStream:
    """One end of a connection between two programs of the sandbox. It has the calls of an uplink's `Stream`."""

    def __init__(self, hub: Hub, local: Place, remote: Place) -> None:
        self.hub = hub
        self.waiters = WaitQueue(hub)
        self.local = local
        self.opened: Opened | None = Opened(0, {"remote-ip": remote.address, "remote-port": str(remote.port)})
        self.failure: Failed | None = None
        self.secured: Secured | None = None
        self._peer: LocalStream | None = None
        self._chunks: deque[memoryview] = deque()
        self._buffered = 0
        self.ended = False
        """Whether the other end has said that it writes no more."""
        self._end_sent = False
        self._reset = False
        self.dropped = False

    def join(self, peer: LocalStream) -> None:
        self._peer, peer._peer = peer, self

    def wait_open(self) -> None:
        """Return at once: it is open from the start."""

    def check(self) -> None:
        if self.failure is not None:
            raise SysError(errno_of(self.failure))

    def read(self, size: int, *, nonblocking: bool = False, whole: bool = False) -> bytes:
        """Read at most `size` bytes; b"" at the end."""
        while not self._chunks:
            self.check()
            if self.ended or self.dropped or size <= 0:
                return b""
            if nonblocking:
                raise SysError(EAGAIN)
            self.waiters.wait()
        chunk = self._chunks.popleft()
        if len(chunk) > size:
            self._chunks.appendleft(chunk[size:])
            chunk = chunk[:size]
        self._buffered -= len(chunk)
        if self._peer is not None:
            self._peer.waiters.wake_all()
        return bytes(chunk)

    def write(self, data: bytes, *, nonblocking: bool = False, whole: bool = False) -> int:
        """Some of `data`, when there is room. EPIPE after the end, and after a write to one who is gone."""
        if not data:
            return 0
        while True:
            self.check()
            peer = self._peer
            if self._end_sent or peer is None or self._reset:
                raise SysError(EPIPE)
            if peer.dropped:
                # As with TCP: nobody has heard yet that the other side is gone. The next write hears it.
                self._reset = True
                return len(data)
            if peer._buffered < WINDOW:
                break
            if nonblocking:
                raise SysError(EAGAIN)
            self.waiters.wait()
        piece = memoryview(bytes(data[: WINDOW - peer._buffered]))
        peer._chunks.append(piece)
        peer._buffered += len(piece)
        peer.waiters.wake_all()
        return len(piece)

    def end(self) -> None:
        """Shut down writing."""
        if not self._end_sent:
            self._end_sent = True
            if self._peer is not None:
                self._peer.ended = True
                self._peer.waiters.wake_all()

    def drop(self) -> None:
        """Close it."""
        if not self.dropped:
            self.end()
            self.dropped = True
            self._chunks.clear()
            self.waiters.wake_all()
            if self._peer is not None:
                self._peer.waiters.wake_all()

    def take(self, failure: Failed) -> None:
        self.failure = failure
        self.waiters.wake_all()

    def secure(self, name: str, protocols: list[str], announcement: bytes = b"") -> None:
        """Refuse TLS: it is spoken by the sandbox's owner, who is not on the way here."""
        self.take(Failed(0, "tls", "connections inside the sandbox have no TLS: use http"))
        raise SysError(EPROTO)

    def poll(self) -> int:
        if self.failure is not None:
            return POLLIN | POLLOUT | POLLERR
        events = POLLIN if self._chunks or self.ended else 0
        peer = self._peer
        if not self._end_sent and (peer is None or peer.dropped or peer._buffered < WINDOW):
            events |= POLLOUT
        return events | (POLLHUP if self.ended and self._end_sent else 0)


class Listener:
    """A port that a program has bound; clients can connect once it listens."""

    def __init__(self, network: LocalNetwork, place: Place) -> None:
        self._network = network
        self.place = place
        self.listening = False
        self.closed = False
        self.pending: deque[LocalStream] = deque()
        self.waiters = WaitQueue(network.hub)

    def accept(self, *, nonblocking: bool) -> LocalStream:
        """The next client's connection. EINVAL if it does not listen; ECONNABORTED if it is closed meanwhile."""
        if not self.listening:
            raise SysError(EINVAL)
        while not self.pending:
            if self.closed:
                raise SysError(ECONNABORTED)
            if nonblocking:
                raise SysError(EAGAIN)
            self.waiters.wait()
        return self.pending.popleft()

    def poll(self) -> int:
        return POLLIN if self.pending else 0

    def close(self) -> None:
        """Free the port. Clients that nobody accepted see the end."""
        if not self.closed:
            self.closed = True
            self._network.forget(self)
            while self.pending:
                self.pending.popleft().drop()
            self.waiters.wake_all()


class Bridge:
    """The networks of a sandbox's containers, by address and by name: how they, and the sandbox, reach each other."""

    def __init__(self) -> None:
        self._networks: dict[str, LocalNetwork] = {}

    def join(self, network: LocalNetwork, name: str) -> str:
        """Let a network be reached by its name, and by the address that it is given. EADDRINUSE."""
        for number in range(2, 255):
            address = CONTAINER_PREFIX + str(number)
            if address not in self._networks:
                network.address = address
                self._networks |= {address: network, name.lower(): network}
                return address
        raise SysError(EADDRINUSE)

    def leave(self, network: LocalNetwork) -> None:
        self._networks = {name: other for name, other in self._networks.items() if other is not network}

    def find(self, host: Address | str) -> LocalNetwork | None:
        return self._networks.get(str(host).lower())


class LocalNetwork:
    """The ports of one sandbox, or of one of its containers."""

    def __init__(self, hub: Hub, hostname: Callable[[], str], bridge: Bridge | None = None) -> None:
        self.hub = hub
        self.address = GUEST_ADDRESS
        self._hostname = hostname
        self._bridge = bridge
        self._published: dict[int, tuple[LocalNetwork, int]] = {}
        """Ports that lead to those of containers."""
        self._listeners: dict[int, Listener] = {}
        self._last = EPHEMERAL.start

    def is_local(self, host: Address | str) -> bool:
        """Whether a host is the sandbox itself."""
        if isinstance(host, IPv4Address | IPv6Address):
            return host.is_loopback or host.is_unspecified or str(host) == self.address
        return host == "localhost" or host.endswith(".localhost") or host == self._hostname().lower()

    def bind(self, address: str, port: int) -> Listener:
        """Reserve a port, any free one if it is 0. EADDRINUSE, EADDRNOTAVAIL."""
        if address not in ("*", *_ANY, self.address, "::1") and not address.startswith("127."):
            raise SysError(EADDRNOTAVAIL)
        if port == 0:
            port = self.free_port()
        if port in self._listeners or port in self._published:
            raise SysError(EADDRINUSE)
        listener = Listener(self, Place(_ANY[0] if address == "*" else address, port))
        self._listeners[port] = listener
        return listener

    def free_port(self) -> int:
        """Return an unbound port. EADDRINUSE when there is none."""
        for _ in EPHEMERAL:
            self._last = self._last + 1 if self._last + 1 in EPHEMERAL else EPHEMERAL.start
            if self._last not in self._listeners:
                return self._last
        raise SysError(EADDRINUSE)

    def publish(self, port: int, network: LocalNetwork, inside: int) -> None:
        """Have a port lead to one of a container. EADDRINUSE."""
        if port in self._listeners or port in self._published:
            raise SysError(EADDRINUSE)
        self._published[port] = network, inside

    def withdraw(self, network: LocalNetwork) -> None:
        """Free the ports that lead to a container."""
        self._published = {port: to for port, to in self._published.items() if to[0] is not network}

    def close(self) -> None:
        """Free every port."""
        for listener in list(self._listeners.values()):
            listener.close()

    def find(self, host: Address | str) -> LocalNetwork | None:
        """The network that a host is: this one, or one that is reached from here; None: it is outside."""
        if self.is_local(host):
            return self
        return self._bridge.find(host) if self._bridge is not None else None

    def serves(self, host: Address | str, port: int) -> LocalNetwork | None:
        """The network in which a program listens there, if one does."""
        network = self.find(host)
        if network is not None and port in network._published:
            network, port = network._published[port]
        listener = network._listeners.get(port) if network is not None else None
        return self.find(host) if listener is not None and listener.listening else None

    def connect(self, port: int) -> LocalStream:
        """A connection to a program that listens. ECONNREFUSED if none does, or it accepts too slowly."""
        if port in self._published:
            network, inside = self._published[port]
            return network.connect(inside)
        listener = self._listeners.get(port)
        if listener is None or not listener.listening or len(listener.pending) >= BACKLOG_MAX:
            raise SysError(ECONNREFUSED)
        address = LOOPBACK if listener.place.address in _ANY else listener.place.address
        here, there = Place(address, self.free_port()), Place(address, port)
        client, server = LocalStream(self.hub, here, there), LocalStream(self.hub, there, here)
        client.join(server)
        listener.pending.append(server)
        listener.waiters.wake_all()
        return client

    def forget(self, listener: Listener) -> None:
        if self._listeners.get(listener.place.port) is listener:
            del self._listeners[listener.place.port]
