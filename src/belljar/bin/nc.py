"""nc - arbitrary TCP and UDP connections

Usage: nc [-46NnUuvz] [-w TIMEOUT] HOST PORT[-PORT]
       nc -l [-knv] [-p] PORT

Connects to programs of the sandbox, and elsewhere as far as its network policy allows it. Listens for programs of the
sandbox and for its owner.
"""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import POLLERR, POLLHUP, POLLIN
from belljar.bin._kit import flag, utility, value
from belljar.bin._net import Connection, ConnectionFiles, Listener, NetFailure
from belljar.kernel.process import Process

_PORTS = {"http": 80, "https": 443, "ssh": 22, "domain": 53, "smtp": 25, "ftp": 21, "postgresql": 5432}
_NAMES = {number: name for name, number in _PORTS.items()}


@dataclass(frozen=True, slots=True)
class Options:
    zero: bool = flag("-z", "zero-I/O mode, used for scanning")
    verbose: bool = flag("-v", "verbose")
    udp: bool = flag("-u", "UDP mode")
    timeout: str | None = value("-w", "timeout for connects and final net reads", metavar="SECONDS")
    shutdown: bool = flag("-N", "shut down the connection after EOF on stdin")
    linger: str | None = value("-q", "quit after EOF on stdin and a delay", metavar="SECONDS")
    listen: bool = flag("-l", "listen for a connection")
    keep: bool = flag("-k", "with -l: stay listening for another one after it")
    numeric: bool = flag("-n", "(names are resolved outside the sandbox)")
    four: bool = flag("-4", "use IPv4")
    six: bool = flag("-6", "use IPv6")
    source: str | None = value("-p", "with -l: the port to listen on", metavar="PORT")
    interval: str | None = value("-i", "delay between ports scanned", metavar="SECONDS")
    unix: bool = flag("-U", "(there are no Unix sockets)")
    proxy: str | None = value("-x", "(there are no proxies)", metavar="ADDRESS")
    no_stdin: bool = flag("-d", "don't read from stdin")
    crlf: bool = flag("-C", "send CRLF as line-ending")


@utility("nc", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.listen:
        return _listen(process, options, operands)
    if options.unix or options.proxy is not None:
        process.error("nc: only TCP and UDP leave this sandbox, and no proxy is used\n")
        return 1
    if len(operands) != 2:
        process.error(
            "usage: nc [-46CdNnuvz] [-i interval] [-p source_port] [-q seconds] [-w timeout] destination port\n"
        )
        return 1
    ports = _ports(operands[1])
    if ports is None:
        process.error(f"nc: port number invalid: {operands[1]}\n")
        return 1
    status = 1
    for port in ports:
        status = min(status, _one(process, options, operands[0], port))
    return status


def _listen(process: Process, options: Options, operands: list[str]) -> int:
    words = [*operands[-1:], *([options.source] if options.source is not None else [])]
    ports = _ports(words[0]) if len(words) == 1 and len(operands) <= 2 else None
    if options.udp or ports is None or len(ports) != 1:
        process.error("nc: only TCP can be listened for\n" if options.udp else "usage: nc -l [-knv] [-p] port\n")
        return 1
    try:
        listener = Listener(process, ports[0], operands[0] if len(operands) == 2 else "*")
    except SysError as error:
        process.error(f"nc: {error.reason}\n")
        return 1
    with listener:
        if options.verbose:
            process.error(f"Listening on 0.0.0.0 {listener.port}\n")
        while True:
            with listener.accept() as client:
                if options.verbose:
                    process.error(f"Connection received on {client.address} {client.port}\n")
                _talk(process, options, client, _seconds(options.timeout))
            if not options.keep:
                return 0


def _ports(text: str) -> range | None:
    if text in _PORTS:
        return range(_PORTS[text], _PORTS[text] + 1)
    match = re.fullmatch(r"(\d{1,5})(?:-(\d{1,5}))?", text)
    if match is None:
        return None
    first, last = sorted((int(match[1]), int(match[2] or match[1])))
    return range(first, last + 1) if first > 0 and last < 65536 else None


def _one(process: Process, options: Options, host: str, port: int) -> int:
    kind = "udp" if options.udp else "tcp"
    wait = _seconds(options.timeout)
    try:
        connection = Connection(process, host, port, protocol=kind, timeout=wait)
    except NetFailure as failure:
        if failure.kind in ("dns", "nxdomain"):
            process.error(f'nc: getaddrinfo for host "{host}" port {port}: Name or service not known\n')
        elif options.verbose or failure.kind == "denied":
            reasons = {"connect": "Connection refused", "timeout": "Operation timed out"}
            reason = reasons.get(failure.kind, failure.text)
            process.error(f"nc: connect to {host} port {port} ({kind}) failed: {reason}\n")
        return 1
    with connection:
        if options.verbose or options.zero:
            shown = host if host == connection.address else f"{host} ({connection.address})"
            process.error(f"Connection to {shown} {port} port [{kind}/{_NAMES.get(port, '*')}] succeeded!\n")
        if not options.zero:
            _talk(process, options, connection, wait)
    return 0


def _seconds(text: str | None) -> float | None:
    return float(text) if text is not None and re.fullmatch(r"\d{1,6}(\.\d+)?", text) and float(text) > 0 else None


def _talk(process: Process, options: Options, connection: ConnectionFiles, wait: float | None) -> None:
    """Both ways at once, until the other side is done."""
    wanted = {connection.data: POLLIN}
    if not options.no_stdin:
        wanted[0] = POLLIN
    linger = _seconds(options.linger) if options.linger not in ("0", "-1") else 0.0 if options.linger == "0" else None
    while connection.data in wanted:
        ended = 0 not in wanted
        ready = process.poll(wanted, linger if ended and linger is not None else wait)
        if not ready:
            return
        try:
            if ready.get(0, 0) & (POLLIN | POLLHUP | POLLERR):
                _send(process, options, connection, wanted)
            if ready.get(connection.data, 0) & (POLLIN | POLLHUP | POLLERR):
                data = process.read(connection.data)
                if not data:
                    del wanted[connection.data]
                process.write_all(1, data)
        except SysError:
            return


def _send(process: Process, options: Options, connection: ConnectionFiles, wanted: dict[int, int]) -> None:
    data = process.read(0)
    if data:
        process.write_all(connection.data, data.replace(b"\n", b"\r\n") if options.crlf else data)
        return
    del wanted[0]
    if options.shutdown or options.udp:
        connection.shut_down()
