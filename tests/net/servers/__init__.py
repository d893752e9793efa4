"""Real servers for tests, on loopback addresses: each is a context manager that owns its threads and sockets.

HttpServer  HTTP/1.1, with routes as Python functions; `bodies` and `hostile` have the ones that misbehave
Http2Server HTTP/2 over TLS or with prior knowledge
Authority   a certificate authority, and the certificates (good and bad) that it signs
EchoSocket  WebSocket
DnsServer   names, with answers as Python functions or as raw bytes
GitServer   git's smart HTTP protocol
PackageIndex  Python's simple index (PEP 503, 658, 691)
Registry    npm's registry
Tripwire    a port nobody may reach
UdpEcho     datagrams, sent back

Each counts what reached it, so that a test can prove that nothing did.
"""

from tests.net.servers.authority import Authority
from tests.net.servers.dns import DnsServer
from tests.net.servers.git import GitServer
from tests.net.servers.http1 import HttpServer, Request, Response, Route
from tests.net.servers.http2 import Http2Server
from tests.net.servers.index import PackageIndex
from tests.net.servers.listener import Listener, Tripwire
from tests.net.servers.registry import Registry
from tests.net.servers.udp import UdpEcho
from tests.net.servers.websocket import EchoSocket

__all__ = [
    "Authority",
    "DnsServer",
    "EchoSocket",
    "GitServer",
    "Http2Server",
    "HttpServer",
    "Listener",
    "PackageIndex",
    "Registry",
    "Request",
    "Response",
    "Route",
    "Tripwire",
    "UdpEcho",
]
