"""lsof - list open files

Usage: lsof [-i [[PROTOCOL]:PORT]] [-p PID,...] [-c NAME] [-t] [-nP] [FILE]...
"""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFCHR, S_IFDIR, S_IFIFO, S_IFREG
from belljar.bin._kit import flag, many, utility, value
from belljar.bin._kit.users import Accounts
from belljar.bin._processes import Row, processes
from belljar.bin._sockets import Socket, sockets
from belljar.kernel.process import Process

_KINDS = {S_IFREG: "REG", S_IFDIR: "DIR", S_IFCHR: "CHR", S_IFIFO: "FIFO"}
_NAME = re.compile(r"(?:[46])?(tcp|udp)?(?:@[^:]*)?(?::(\d+)(?:-(\d+))?)?", re.I)


@dataclass(frozen=True, slots=True)
class Options:
    internet: str | None = value(
        "-i", "select sockets, or those of a protocol and port", metavar="[PROTOCOL][:PORT]", bare=""
    )
    pids: str | None = value("-p", "select by process ID", metavar="PID,...")
    commands: tuple[str, ...] = many("-c", "select by the beginning of a command's name", metavar="NAME")
    user: str | None = value("-u", "select by user", metavar="USER")
    state: str | None = value("-s", "select TCP sockets by state", metavar="TCP:STATE", bare="")
    terse: bool = flag("-t", "print process IDs only")
    numeric: bool = flag("-n", "no host names (there never are)")
    ports: bool = flag("-P", "no port names (there never are)")
    both: bool = flag("-a", "select what all options ask for (it always is)")


def with_value(args: list[str]) -> list[str]:
    """The value of -i may stand apart: `-i :8000`, `-nPi tcp:80`."""
    done: list[str] = []
    for arg in args:
        if done and re.fullmatch(r"-[a-zA-Z]*i", done[-1]) and _NAME.fullmatch(arg) and arg:
            done[-1] += arg
        else:
            done.append(arg)
    return done


@utility("lsof", Options, rewrite=with_value)
def main(process: Process, options: Options, operands: list[str]) -> int:
    rows = [row for row in processes(process) if _selected(process, options, row)]
    lines = _sockets(process, options, rows)
    if options.internet is None:
        lines += _files(process, rows, operands)
    lines.sort(key=lambda line: line[0])
    if options.terse:
        for pid in sorted({line[0] for line in lines}):
            process.print(str(pid))
    elif lines:
        process.print("COMMAND     PID     USER   FD   TYPE SIZE/OFF NODE NAME")
        for _, text in lines:
            process.print(text)
    return 0 if lines else 1


def _selected(process: Process, options: Options, row: Row) -> bool:
    if options.pids is not None and str(row.pid) not in options.pids.split(","):
        return False
    if options.user is not None and Accounts(process).user(options.user) != row.uid:
        return False
    return not options.commands or row.comm.startswith(options.commands)


def _line(process: Process, row: Row, fd: str, kind: str, size: str, node: str, name: str) -> tuple[int, str]:
    user = Accounts(process).user_name(row.uid) or str(row.uid)
    return row.pid, f"{row.comm[:9]:<9} {row.pid:>5} {user:>8} {fd:>4} {kind:>6} {size:>8} {node:>4} {name}"


def _sockets(process: Process, options: Options, rows: list[Row]) -> list[tuple[int, str]]:
    wanted = _NAME.fullmatch(options.internet or "")
    pids = {row.pid for row in rows}
    found = []
    for socket in sockets(process) if wanted is not None else []:
        if socket.owner is None or socket.owner.pid not in pids or not _fits(socket, wanted):
            continue
        if options.state and options.state.partition(":")[2].upper() not in ("", socket.state):
            continue
        kind = "IPv6" if socket.protocol.endswith("6") else "IPv4"
        name = f"{socket.local[0]}:{socket.local[1]}"
        if socket.state == "ESTAB":
            name += f"->{socket.remote[0]}:{socket.remote[1]} (ESTABLISHED)"
        elif socket.protocol.startswith("tcp"):
            name += f" ({socket.state})"
        node = socket.protocol.rstrip("6").upper()
        found.append(_line(process, socket.owner, f"{socket.descriptor}u", kind, "0t0", node, name))
    return found


def _fits(socket: Socket, wanted: re.Match[str] | None) -> bool:
    if wanted is None:
        return False
    protocol, low, high = wanted.groups()
    if protocol and protocol.lower() != socket.protocol.rstrip("6"):
        return False
    return low is None or any(
        int(low[:6]) <= port <= int((high or low)[:6]) for port in (socket.local[1], socket.remote[1])
    )


def _files(process: Process, rows: list[Row], operands: list[str]) -> list[tuple[int, str]]:
    paths = {process.absolute(path) for path in operands}
    found = []
    for row in rows:
        try:
            entries = sorted(process.fs.readdir(f"/proc/{row.pid}/fd"), key=lambda entry: int(entry.name))
        except SysError:
            continue
        for entry in entries:
            process.budget.charge()
            try:
                target = process.fs.readlink(f"/proc/{row.pid}/fd/{entry.name}")
            except SysError:
                continue
            if (paths and target not in paths) or target.startswith("socket:["):
                continue
            kind, size, node = "unknown", "0t0", ""
            try:
                stat = process.fs.stat(target)
                kind, size, node = _KINDS.get(stat.kind, "REG"), str(stat.size), str(stat.ino)
            except SysError:
                kind = "FIFO" if target.startswith("pipe:") else kind
            found.append(_line(process, row, f"{entry.name}u", kind, size, node, target))
    return found
