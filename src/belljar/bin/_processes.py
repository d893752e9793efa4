"""The processes of a sandbox and its memory, as ps, pgrep, top and free see them: by /proc, as the real ones do."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.kernel.process import Process

TICKS = 100


@dataclass(frozen=True, slots=True)
class Row:
    """One process."""

    pid: int
    ppid: int
    pgid: int
    sid: int
    uid: int
    state: str
    comm: str
    argv: tuple[str, ...]
    tty: str
    foreground: int
    """The group that has its terminal; -1 without one."""
    nice: int
    cpu: float
    """Seconds of processor time."""
    started: float
    """Seconds after boot."""
    size: int
    resident: int

    @property
    def command(self) -> str:
        return " ".join(self.argv) or f"[{self.comm}]"


def processes(process: Process) -> list[Row]:
    """Every process of the caller's pid space, by pid."""
    found = []
    for entry in process.fs.readdir("/proc"):
        if entry.name.isdecimal():
            row = read_row(process, int(entry.name))
            if row is not None:
                found.append(row)
    return sorted(found, key=lambda row: row.pid)


def read_row(process: Process, pid: int) -> Row | None:
    """None if it is gone."""
    try:
        stat = fsdecode(process.read_file(f"/proc/{pid}/stat"))
        argv = process.read_file(f"/proc/{pid}/cmdline")
        uid = process.fs.stat(f"/proc/{pid}").uid
    except SysError:
        return None
    comm = stat[stat.index("(") + 1 : stat.rindex(")")]
    fields = stat[stat.rindex(")") + 2 :].split()
    number = int(fields[4])
    minor = (number & 0xFF) | (number >> 12 & 0xFFF00)
    return Row(
        pid=pid,
        ppid=int(fields[1]),
        pgid=int(fields[2]),
        sid=int(fields[3]),
        uid=uid,
        state=fields[0],
        comm=comm,
        argv=tuple(fsdecode(arg) for arg in argv.split(b"\0")[:-1]),
        tty=f"pts/{minor}" if number else "?",
        foreground=int(fields[5]),
        nice=int(fields[16]),
        cpu=(int(fields[11]) + int(fields[12])) / TICKS,
        started=int(fields[19]) / TICKS,
        size=int(fields[20]),
        resident=int(fields[21]),
    )


def memory(process: Process) -> dict[str, int]:
    """The figures of /proc/meminfo, in bytes."""
    values = {}
    for line in fsdecode(process.read_file("/proc/meminfo")).splitlines():
        name, _, rest = line.partition(":")
        values[name] = int(rest.split()[0]) * 1024 if rest.split() else 0
    return values


def printable(text: str) -> str:
    """A command line on one line: what does not show is a question mark."""
    return "".join(char if char.isprintable() else " " if char == "\n" else "?" for char in text)
