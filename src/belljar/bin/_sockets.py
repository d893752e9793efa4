"""The sockets of a sandbox as ss, netstat and lsof see them: by /proc, as the real ones do."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._processes import Row, processes
from belljar.kernel.process import Process

STATES = {
    1: "ESTAB", 2: "SYN-SENT", 3: "SYN-RECV", 4: "FIN-WAIT-1", 5: "FIN-WAIT-2", 6: "TIME-WAIT", 7: "UNCONN",
    8: "CLOSE-WAIT", 9: "LAST-ACK", 10: "LISTEN", 11: "CLOSING",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Socket:
    """One line of /proc/net/tcp and its kin."""

    protocol: str
    local: tuple[str, int]
    remote: tuple[str, int]
    state: str
    inode: str
    uid: int
    owner: Row | None
    descriptor: int


def sockets(process: Process) -> list[Socket]:
    """Every socket that /proc/net knows, with the process that holds it."""
    owners = _owners(process)
    found = []
    for protocol in ("tcp", "tcp6", "udp", "udp6"):
        text = fsdecode(process.try_read(f"/proc/net/{protocol}") or b"")
        for line in text.splitlines()[1:]:
            fields = line.split()
            if len(fields) < 10:
                continue
            owner, descriptor = owners.get(fields[9], (None, -1))
            state = STATES.get(int(fields[3], 16), "UNKNOWN")
            found.append(
                Socket(
                    protocol,
                    _endpoint(fields[1]),
                    _endpoint(fields[2]),
                    state,
                    fields[9],
                    int(fields[7]),
                    owner,
                    descriptor,
                )
            )
    return found


def _owners(process: Process) -> dict[str, tuple[Row, int]]:
    """Processes and descriptors by the inode of a socket that they hold."""
    found: dict[str, tuple[Row, int]] = {}
    for row in processes(process):
        try:
            entries = process.fs.readdir(f"/proc/{row.pid}/fd")
        except SysError:
            continue
        for entry in entries:
            try:
                target = process.fs.readlink(f"/proc/{row.pid}/fd/{entry.name}")
            except SysError:
                continue
            if target.startswith("socket:["):
                found.setdefault(target[8:-1], (row, int(entry.name)))
    return found


def _endpoint(text: str) -> tuple[str, int]:
    """An address in the hexadecimal of /proc: words in the machine's order."""
    address, _, port = text.partition(":")
    raw = bytes.fromhex(address)
    raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    if len(raw) == 4:
        shown = ".".join(map(str, raw))
    else:
        shown = "::" if not any(raw) else "::1" if raw == bytes(15) + b"\1" else raw.hex(":", 2)
    return shown, int(port, 16)
