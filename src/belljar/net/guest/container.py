"""The network of a container: ports and an address of its own, and the sandbox's way out."""

from __future__ import annotations

from collections.abc import Callable

from belljar.kernel.fs.proc_net import TcpSocket
from belljar.kernel.vfs.server import FileServer
from belljar.net.guest.local import Bridge, LocalNetwork
from belljar.net.guest.netfs import NetServer
from belljar.net.guest.uplink import Uplink
from belljar.net.guest.webfs import WebServer


class ContainerNetwork:
    """What the sandbox may reach outside, its containers may. They reach each other by name, and not the sandbox."""

    def __init__(
        self,
        uplink: Uplink,
        bridge: Bridge,
        name: str,
        hostname: Callable[[], str],
        now: Callable[[], int],
        *,
        connected: bool,
    ) -> None:
        """Without being `connected` it has its loopback only. EADDRINUSE when there is no address left."""
        self._outer = uplink.local
        self._bridge = bridge
        self._local = LocalNetwork(uplink.hub, hostname, bridge if connected else None)
        self.address = bridge.join(self._local, name) if connected else ""
        self.uplink = Uplink(uplink.hub, self._local)
        if connected:
            self.uplink.connect = lambda mine: uplink.dial(mine)
        net = NetServer(self.uplink, now)
        self.sockets: Callable[[], list[TcpSocket]] = net.tcp_sockets
        self.servers: list[tuple[FileServer, str]] = [(net, "/net"), (WebServer(self.uplink, now), "/mnt/web")]

    def publish(self, outside: int, inside: int) -> None:
        self._outer.publish(outside, self._local, inside)

    def close(self) -> None:
        self._bridge.leave(self._local)
        self._outer.withdraw(self._local)
        self._local.close()
        self.uplink.hang_up()
