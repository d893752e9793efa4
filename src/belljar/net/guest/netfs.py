"""/net: connections by files, as in Plan 9.

`tcp/clone` opened is the `ctl` file of a new connection, and reading it gives its number N. `connect host!port` written
to it dials; `tcp/N/data` is the connection itself. `udp` is the same with datagrams. `dns` takes `name type` and gives
records. The connection lives while one of its files is open.

A server writes `bind address!port` and `listen` instead. Then opening `tcp/N/listen` waits for a client, and gives the
`ctl` file of the connection with it; `tcp/N/data` is readable while a client waits.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NoReturn

from belljar.abi.errno import EBUSY, EINVAL, EISCONN, ENOENT, ENOTCONN
from belljar.abi.errors import SysError
from belljar.abi.flags import O_NONBLOCK, POLLERR, POLLOUT
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.fs.proc_net import ESTABLISHED, LISTEN, TcpSocket, any_address
from belljar.kernel.fs.synthetic import Device, Entry, SyntheticServer, folder
from belljar.kernel.vfs.server import Handle
from belljar.net.guest.files import RDEV, ControlHandle, Directory, Numbered, StreamHandle, text
from belljar.net.guest.local import Listener, LocalStream
from belljar.net.guest.uplink import Stream, Uplink, errno_of
from belljar.net.hosts import RECORD_TYPES, BadHost, parse_host, parse_name, parse_port
from belljar.net.wire import Dial, Failed, Resolve

CONNECTIONS_MAX: Final = 1024
_FIRST_PORT: Final = 32768
SOCKET_INODES: Final = 20_000
"""First inode number of sockets, in /proc."""


class Connection(Numbered):
    """One `tcp` or `udp` directory."""

    def __init__(self, uplink: Uplink, protocol: str, number: int) -> None:
        super().__init__(number)
        self._uplink = uplink
        self.protocol = protocol
        self.listener: Listener | None = None
        self._timeout = 0.0
        self._waits = True
        self._web = False
        self._stream: Stream | LocalStream | None = None
        self._error: Failed | None = None

    @property
    def stream(self) -> Stream | LocalStream:
        """ENOTCONN before it is connected, and why it is not."""
        if self._stream is None or self._stream.opened is None:
            if self._stream is not None:
                self._stream.check()
            raise SysError(ENOTCONN)
        return self._stream

    @property
    def begun(self) -> bool:
        """Whether `connect` or `listen` was written, and has not failed while somebody waited."""
        return self._stream is not None or self.listener is not None

    @property
    def waiters(self) -> WaitQueue | None:
        source = self._stream or self.listener
        return source.waiters if source is not None else None

    def poll(self) -> int:
        source = self._stream or self.listener
        return source.poll() if source is not None else POLLERR

    @property
    def error(self) -> Failed | None:
        return self._error or (self._stream.failure if self._stream is not None else None)

    def command(self, word: str, rest: str) -> None:
        match word:
            case "connect":
                self._connect(rest)
            case "bind":
                self._bind(rest)
            case "listen":
                self._listen()
            case "timeout":
                self._timeout = self._checked(lambda: parse_seconds(rest))
            case "nowait":
                self._waits = False
            case "web":
                self._web = True
            case "tls":
                self._secure(rest)
            case "shutdown":
                self.stream.end()
            case "hangup":
                self.close()
            case _:
                self._fail(
                    f"{word!r}: commands are connect, bind, listen, timeout, nowait, web, tls, shutdown and hangup"
                )

    def _checked(self, parse: Callable[[], float]) -> float:
        try:
            return parse()
        except BadHost as error:
            self._fail(str(error))

    def _fail(self, message: str) -> NoReturn:
        self._error = Failed(0, "protocol", message)
        raise SysError(EINVAL)

    def _bind(self, where: str) -> None:
        """`bind ADDRESS!PORT`: port 0 is any that is free. EADDRINUSE, EADDRNOTAVAIL."""
        address, mark, port = where.strip().rpartition("!")
        if self.begun or self.protocol != "tcp":
            raise SysError(EINVAL)
        if not mark or not (port.isascii() and port.isdigit() and len(port) <= 5 and int(port) < 65536):
            self._fail("write `bind address!port`")
        self.listener = self._uplink.local.bind(address, int(port))

    def _listen(self) -> None:
        if self.listener is None:
            self._bind("*!0")
        assert self.listener is not None
        self.listener.listening = True

    def adopt(self, stream: LocalStream) -> None:
        """Be the server's end of a connection."""
        self._stream = stream

    def _connect(self, where: str) -> None:
        if self._stream is not None:
            raise SysError(EISCONN if self._stream.opened is not None else EBUSY)
        host, mark, port = where.strip().rpartition("!")
        try:
            if not mark:
                raise BadHost("write `connect host!port`")
            wanted = parse_host(host)
            number = parse_port(port)
        except BadHost as error:
            self._fail(str(error))
        self._error = None
        local = self._uplink.local
        if self.protocol == "tcp" and (network := local.serves(wanted, number)) is not None:
            self._stream = network.connect(number)
            return
        self._stream = stream = self._uplink.open(
            lambda id: Dial(id, self.protocol, host, number, self._timeout, self._web),
            None if local.find(wanted) is None else number,
        )
        if not self._waits:
            return
        try:
            stream.wait_open()
            if stream.failure is not None:
                self._error = stream.failure
                raise SysError(errno_of(stream.failure))
        except BaseException:
            stream.drop()
            self._stream = None
            raise

    def _secure(self, rest: str) -> None:
        """`tls NAME [PROTOCOL...]`; `-` is the host that was dialled."""
        name, *protocols = rest.split() or ["-"]
        try:
            if name != "-":
                parse_host(name)
            if self.protocol != "tcp" or len(protocols) > 16 or any(len(word) > 255 for word in protocols):
                raise BadHost("write `tls name protocol...`")
        except BadHost as error:
            self._fail(str(error))
        announcement = b"" if self._waits else b"secured %d\n" % self.number
        self.stream.secure("" if name == "-" else name, protocols, announcement)

    def close(self) -> None:
        if self.listener is not None:
            self.listener.close()
        if self._stream is not None:
            self._stream.drop()
            if self._stream.failure is None:
                self._stream.take(Failed(0, "reset", "closed"))

    def status(self) -> bytes:
        stream = self._stream
        if stream is None:
            return b"Listen\n" if self.listener is not None and self.listener.listening else b"Closed\n"
        if stream.failure is not None:
            return b"Hungup\n"
        if stream.opened is None:
            return b"Connecting\n"
        return b"Finished\n" if stream.ended else b"Established\n"

    def local(self) -> bytes:
        if isinstance(self._stream, LocalStream):
            return f"{self._stream.local.address}!{self._stream.local.port}\n".encode()
        if self.listener is not None:
            return f"{self.listener.place.address}!{self.listener.place.port}\n".encode()
        return f"{self._uplink.local.address}!{_FIRST_PORT + self.number % 28000}\n".encode()

    def remote(self) -> bytes:
        opened = self._stream.opened if self._stream is not None else None
        return f"{opened.info['remote-ip']}!{opened.info['remote-port']}\n".encode() if opened else b"::!0\n"

    def socket(self) -> TcpSocket | None:
        """The connection's entry of /proc/net/tcp."""
        inode = SOCKET_INODES + self.number
        stream = self._stream
        if stream is not None and stream.opened is not None and not stream.ended:
            local, remote = (_place(text()) for text in (self.local, self.remote))
            return TcpSocket(local, remote, ESTABLISHED, inode)
        if self.listener is not None and self.listener.listening:
            place = self.listener.place
            return TcpSocket(place, (any_address(place.address), 0), LISTEN, inode)
        return None

    def tls(self) -> bytes:
        secured = self._stream.secured if self._stream is not None else None
        return "".join(f"{key} {value}\n" for key, value in secured.info.items()).encode() if secured else b""

    def error_line(self) -> bytes:
        return f"{self.error.kind}: {self.error.text}\n".encode() if self.error is not None else b""


def _place(text: bytes) -> tuple[str, int]:
    address, _, port = text.decode().strip().rpartition("!")
    return address, int(port)


class DataHandle(StreamHandle):
    """The connection's bytes, both ways."""

    __slots__ = ("_connection",)

    @property
    def link_name(self) -> str | None:
        return f"socket:[{SOCKET_INODES + self._connection.number}]" if self._connection.protocol == "tcp" else None

    def __init__(self, connection: Connection) -> None:
        if not connection.begun:
            raise SysError(ENOTCONN)
        super().__init__(connection)
        self._connection = connection

    def read(self, offset: int, size: int) -> bytes:
        udp = self._connection.protocol == "udp"
        return self._connection.stream.read(size, nonblocking=self.nonblocking, whole=udp)

    def write(self, offset: int | None, data: bytes) -> int:
        udp = self._connection.protocol == "udp"
        return self._connection.stream.write(data, nonblocking=self.nonblocking, whole=udp)

    def poll(self) -> int:
        return self._connection.poll()

    @property
    def waiters(self) -> WaitQueue | None:
        return self._connection.waiters


class DnsHandle(Handle):
    """Write `name type` (A if it is left out), then read one record a line: `name ttl TYPE data`."""

    __slots__ = ("_answer", "_uplink")

    def __init__(self, uplink: Uplink) -> None:
        self.nonblocking = False
        self._uplink = uplink
        self._answer = b""

    seekable = False

    def write(self, offset: int | None, data: bytes) -> int:
        """EINVAL for a bad question, ENOENT for a name that is not there; then reading gives `! kind: text`."""
        words = data.decode("latin-1").split()
        if not 1 <= len(words) <= 2:
            self._fail(Failed(0, "protocol", "write `name type`"), EINVAL)
        kind = words[1].upper() if len(words) == 2 else "A"
        try:
            name = parse_name(words[0])
            if kind not in RECORD_TYPES:
                raise BadHost(f"{kind[:20]!r}: not a record type")
        except BadHost as error:
            self._fail(Failed(0, "protocol", str(error)), EINVAL)
        stream = self._uplink.open(lambda id: Resolve(id, name, kind))
        try:
            stream.wait_open()
        finally:
            stream.drop()
        if stream.failure is not None:
            missing = stream.failure.kind == "dns" and "no such name" in stream.failure.text
            self._fail(stream.failure, ENOENT if missing else errno_of(stream.failure))
        self._answer = "".join(f"{line}\n" for line in stream.records or ()).encode()
        return len(data)

    def _fail(self, failure: Failed, errno: int) -> NoReturn:
        self._answer = f"! {failure.kind}: {failure.text}\n".encode()
        raise SysError(errno)

    def read(self, offset: int, size: int) -> bytes:
        data, self._answer = self._answer[:size], self._answer[size:]
        return data

    def poll(self) -> int:
        return super().poll() | POLLOUT


def parse_seconds(text: str) -> float:
    """Parse seconds, up to a day. BadHost."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 86400:
        raise BadHost(f"{text[:20]!r} is not a number of seconds")
    return value


class NetServer(SyntheticServer):
    """The tree."""

    kind = "net"

    def __init__(self, uplink: Uplink, now: Callable[[], int]) -> None:
        self._directories = {name: self._protocol(uplink, name) for name in ("tcp", "udp")}
        tree: dict[str, Entry] = {name: directory.entry() for name, directory in self._directories.items()}
        tree["dns"] = Device(lambda _flags: DnsHandle(uplink), RDEV)
        super().__init__(folder(tree), now)

    @staticmethod
    def _protocol(uplink: Uplink, name: str) -> Directory[Connection]:
        def files(connection: Connection) -> dict[str, Entry]:
            return _files(connection, lambda flags: _accept(directory, connection, flags))

        directory = Directory(lambda number: Connection(uplink, name, number), files, CONNECTIONS_MAX)
        return directory

    def tcp_sockets(self) -> list[TcpSocket]:
        """The listeners and connections that there are."""
        found = (connection.socket() for connection in self._directories["tcp"].items())
        return [each for each in found if each is not None]


def _accept(directory: Directory[Connection], connection: Connection, flags: int) -> Handle:
    """Open `listen`: wait for a client. EINVAL if the connection does not listen."""
    if connection.listener is None:
        raise SysError(EINVAL)
    stream = connection.listener.accept(nonblocking=bool(flags & O_NONBLOCK))
    try:
        return directory.open_new(lambda accepted: accepted.adopt(stream))
    except BaseException:
        stream.drop()
        raise


def _files(connection: Connection, accept: Callable[[int], Handle]) -> dict[str, Entry]:
    return {
        "listen": Device(accept, RDEV),
        "ctl": Device(lambda _flags: ControlHandle(connection, connection.command), RDEV),
        "data": Device(lambda _flags: DataHandle(connection), RDEV),
        "local": text(connection, connection.local),
        "remote": text(connection, connection.remote),
        "status": text(connection, connection.status),
        "tls": text(connection, connection.tls),
        "error": text(connection, connection.error_line),
    }
