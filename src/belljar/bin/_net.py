"""Names and connections over the files of /net: what dig, host, nslookup, nc and ping share, and requests build on."""

from __future__ import annotations

from contextlib import suppress
from ipaddress import ip_address
from types import TracebackType
from typing import Final, Self

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_RDWR
from belljar.kernel.process import Process

ROOT: Final = "/net"
NOTHING_GRANTED: Final = "this sandbox was granted no network"


class NetFailure(Exception):
    """A name or a place that can't be had. `kind`: denied dns nxdomain connect timeout protocol reset."""

    def __init__(self, kind: str, text: str) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text


@dataclass(frozen=True, slots=True)
class Record:
    name: str
    """With its final dot."""
    ttl: int
    kind: str
    data: str


def lookup(process: Process, name: str, kind: str = "A") -> list[Record]:
    """The records of a name, aliases first. Raises NetFailure."""
    try:
        fd = process.open(f"{ROOT}/dns", O_RDWR | O_CLOEXEC)
    except SysError:
        raise NetFailure("denied", NOTHING_GRANTED) from None
    try:
        try:
            process.write(fd, f"{name} {kind}".encode("utf-8", "surrogateescape"))
        except SysError as error:
            said = _read_all(process, fd).decode("utf-8", "replace").strip().removeprefix("! ")
            problem, colon, text = said.partition(": ")
            if not colon:
                problem, text = "dns", said or error.reason
            raise NetFailure("nxdomain" if "no such name" in text else problem, text) from None
        lines = _read_all(process, fd).decode("utf-8", "replace").splitlines()
    finally:
        process.close(fd)
    return [_record(line) for line in lines if line.count(" ") >= 3]


def _record(line: str) -> Record:
    name, ttl, kind, data = line.split(" ", 3)
    return Record(name if name.endswith(".") else name + ".", int(ttl) if ttl.isdecimal() else 0, kind, data)


def _read_all(process: Process, fd: int) -> bytes:
    parts: list[bytes] = []
    while data := process.read(fd):
        parts.append(data)
    return b"".join(parts)


def reverse_name(address: str) -> str | None:
    """The name under which an address is looked up; None if it is none."""
    try:
        return ip_address(address).reverse_pointer
    except ValueError:
        return None


class NetFiles:
    """Files of the network that belong together; a context manager that closes them all."""

    def __init__(self, process: Process) -> None:
        self._process = process
        self._fds: list[int] = []

    def _open(self, path: str, flags: int = O_RDWR) -> int:
        fd = self._process.open(path, flags | O_CLOEXEC)
        self._fds.append(fd)
        return fd

    def close(self) -> None:
        while self._fds:
            with suppress(SysError):
                self._process.close(self._fds.pop())

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


class Listener(NetFiles):
    """A TCP port that this program has bound, for clients inside the sandbox."""

    def __init__(self, process: Process, port: int, address: str = "*") -> None:
        """SysError: EADDRINUSE, EADDRNOTAVAIL."""
        super().__init__(process)
        control = self._open(f"{ROOT}/tcp/clone")
        self._directory = f"{ROOT}/tcp/{process.read(control, 64).decode('ascii').strip()}"
        try:
            process.write_all(control, f"bind {address}!{port}\nlisten\n".encode())
        except SysError:
            self.close()
            raise
        self.port = int(process.read_file(f"{self._directory}/local").decode("ascii").strip().rpartition("!")[2])

    def accept(self) -> Accepted:
        """Wait for a client."""
        return Accepted(self._process, self._open(f"{self._directory}/listen"))


class ConnectionFiles(NetFiles):
    """The control and the data file of an open connection."""

    _control: int
    data: int

    def _command(self, line: str) -> None:
        self._process.write_all(self._control, f"{line}\n".encode("utf-8", "surrogateescape"))

    def shut_down(self) -> None:
        """No more will be written."""
        with suppress(SysError):
            self._command("shutdown")


class Accepted(ConnectionFiles):
    """The connection with a client."""

    def __init__(self, process: Process, control: int) -> None:
        super().__init__(process)
        self._fds.append(control)
        self._control = control
        directory = f"{ROOT}/tcp/{process.read(control, 64).decode('ascii').strip()}"
        self.data = self._open(f"{directory}/data")
        address, _, port = process.read_file(f"{directory}/remote").decode("ascii").strip().rpartition("!")
        self.address, self.port = address, int(port)


class Connection(ConnectionFiles):
    """A TCP or UDP connection."""

    def __init__(
        self, process: Process, host: str, port: int, *, protocol: str = "tcp", timeout: float | None = None
    ) -> None:
        """Raises NetFailure."""
        super().__init__(process)
        base = f"{ROOT}/{protocol}"
        try:
            self._control = self._open(f"{base}/clone")
        except SysError:
            raise NetFailure("denied", NOTHING_GRANTED) from None
        number = process.read(self._control, 64).decode("ascii").strip()
        try:
            if timeout is not None:
                self._command(f"timeout {timeout:.3f}")
            self._command(f"connect {host}!{port}")
            self.data = self._open(f"{base}/{number}/data")
        except SysError as error:
            said = process.read_file(f"{base}/{number}/error").decode("utf-8", "replace").strip()
            self.close()
            kind, colon, text = said.partition(": ")
            raise NetFailure(kind if colon else "connect", text if colon else said or error.reason) from None
        remote = process.read_file(f"{base}/{number}/remote").decode("ascii", "replace").strip()
        self.address = remote.partition("!")[0]
