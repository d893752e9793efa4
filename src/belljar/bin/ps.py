"""ps - report a snapshot of the current processes

Usage: ps [OPTION]...

Selects this terminal's processes by default; -e, -A or `ax` all of them. Options may be given in Unix (-ef), BSD (aux)
and GNU (--pid) style.
"""

import re
from collections.abc import Callable

from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.users import Accounts
from belljar.bin._processes import Row, printable, processes
from belljar.kernel.process import Process


@utility("ps")
def main(process: Process, args: list[str]) -> int:
    return Listing(process).run(args)


class Listing:
    def __init__(self, process: Process) -> None:
        self._process = process
        self._accounts = Accounts(process)
        self._columns: list[tuple[str, str]] = []
        self._filters: list[Callable[[Row], bool]] = []
        self._headers = True
        self._sort: list[str] = []
        self._forest = False
        self._everything = False
        self._wide = False

    def run(self, args: list[str]) -> int:
        self._parse(args)
        rows = processes(self._process)
        me = next(row for row in rows if row.pid == self._process.pid)
        if self._filters:
            rows = [row for row in rows if any(accept(row) for accept in self._filters)]
        elif not self._everything:
            rows = [row for row in rows if row.uid == me.uid and row.tty == me.tty]
        for key in reversed(self._sort):
            getter = self._value(key.lstrip("+-"))
            rows.sort(key=getter, reverse=key.startswith("-"))
        if not self._columns:
            self._columns = [("pid", "PID"), ("tty", "TTY"), ("time", "TIME"), ("comm", "CMD")]
        self._print(rows)
        return 0 if rows else 1

    def _parse(self, args: list[str]) -> None:
        queue = list(args)
        while queue:
            arg = queue.pop(0)
            if arg.startswith("--"):
                self._long(arg, queue)
            elif arg.startswith("-") and len(arg) > 1:
                self._unix(arg[1:], queue)
            elif arg.isdecimal() or re.fullmatch(r"[\d,]+", arg):
                self._select_pids(arg)
            else:
                self._bsd(arg, queue)

    def _unix(self, letters: str, queue: list[str]) -> None:
        while letters:
            letter, letters = letters[0], letters[1:]
            if letter in "opuUCgGtst" and letter not in "s":
                value = letters or (queue.pop(0) if queue else "")
                letters = ""
                self._valued(letter, value)
            elif letter in "eA":
                self._everything = True
            elif letter == "f":
                self._use("user:UID pid:PID ppid:PPID c:C stime:STIME tty:TTY time:TIME args:CMD")
            elif letter == "F":
                self._use(
                    "user:UID pid:PID ppid:PPID c:C size:SZ rss:RSS psr:PSR stime:STIME tty:TTY time:TIME args:CMD"
                )
            elif letter == "l":
                self._use(
                    "f:F s:S uid:UID pid:PID ppid:PPID c:C pri:PRI ni:NI addr:ADDR"
                    " size:SZ wchan:WCHAN tty:TTY time:TIME comm:CMD"
                )
            elif letter == "j":
                self._use("pid:PID pgid:PGID sid:SID tty:TTY time:TIME comm:CMD")
            elif letter == "a":
                self._filters.append(lambda row: row.tty != "?" and row.sid != row.pid)
            elif letter == "H":
                self._forest = True
            elif letter in "wNdxT":
                self._wide = True
            else:
                raise UsageError(f"unsupported option (BSD syntax)\nerror: unknown option -- '{letter}'")

    def _valued(self, letter: str, value: str) -> None:
        if letter == "o":
            self._output(value)
        elif letter == "p":
            self._select_pids(value)
        elif letter in "uU":
            users = {self._accounts.user(name) for name in re.split(r"[ ,]+", value)}
            self._filters.append(lambda row: row.uid in users)
        elif letter == "C":
            names = set(re.split(r"[ ,]+", value))
            self._filters.append(lambda row: row.comm in names)
        elif letter in "gG":
            groups = {int(g[:18]) for g in re.split(r"[ ,]+", value) if g.isdecimal()}
            self._filters.append(lambda row: row.sid in groups)
        else:
            terminals = {name.removeprefix("/dev/") for name in re.split(r"[ ,]+", value)}
            self._filters.append(lambda row: row.tty in terminals)

    def _long(self, arg: str, queue: list[str]) -> None:
        name, equals, value = arg[2:].partition("=")
        if name in ("pid", "ppid", "format", "sort", "user", "sid", "tty", "columns", "cols") and not equals:
            value = queue.pop(0) if queue else ""
        match name:
            case "pid":
                self._select_pids(value)
            case "ppid":
                parents = {int(p[:18]) for p in re.split(r"[ ,]+", value) if p.isdecimal()}
                self._filters.append(lambda row: row.ppid in parents)
            case "format":
                self._output(value)
            case "sort":
                self._sort = value.split(",")
                if any(key.lstrip("+-") not in TITLES for key in self._sort):
                    raise UsageError("unknown sort specifier", hint=False)
            case "user" | "User":
                self._valued("u", value)
            case "no-headers" | "no-heading" | "noheader" | "no-heading" | "noheaders" | "no-header":
                self._headers = False
            case "headers" | "cols" | "columns" | "width":
                pass
            case "forest":
                self._forest = True
            case "help" | "version":
                self._process.print(main.help().rstrip())
                self._process.exit(0)
            case _:
                raise UsageError(f"unknown gnu long option --{name}")

    def _bsd(self, letters: str, queue: list[str]) -> None:
        if not re.fullmatch(r"[aAxuefljwhTckSr]*o?", letters):
            raise UsageError("garbage option")
        if "a" in letters or "x" in letters or "A" in letters:
            self._everything = True
        if "u" in letters:
            self._use(
                "user:USER pid:PID pcpu:%CPU pmem:%MEM vsz:VSZ rss:RSS tty:TTY"
                " stat:STAT start:START bsdtime:TIME args:COMMAND"
            )
        elif "l" in letters:
            self._use(
                "f:F uid:UID pid:PID ppid:PPID pri:PRI ni:NI vsz:VSZ rss:RSS"
                " wchan:WCHAN stat:STAT tty:TTY bsdtime:TIME args:COMMAND"
            )
        elif "j" in letters:
            self._use(
                "ppid:PPID pid:PID pgid:PGID sid:SID tty:TTY tpgid:TPGID stat:STAT uid:UID bsdtime:TIME args:COMMAND"
            )
        elif not self._columns and letters:
            self._use("pid:PID tty:TTY stat:STAT bsdtime:TIME args:COMMAND")
        if "h" in letters:
            self._headers = False
        if "f" in letters:
            self._forest = True
        if letters.endswith("o"):
            self._columns = []
            self._output(queue.pop(0) if queue else "")

    def _use(self, text: str) -> None:
        self._columns = [(key, title) for key, _, title in (item.partition(":") for item in text.split())]

    def _output(self, value: str) -> None:
        """-o: names separated by commas or blanks, each with a title of its own if one follows after `=`."""
        for name in re.split(r"[ ,]+", value):
            key, equals, title = name.partition("=")
            if not key:
                continue
            if key not in TITLES:
                raise UsageError(f'unknown user-defined format specifier "{key}"')
            self._columns.append((key, title if equals else TITLES[key]))
        if all(not shown for _, shown in self._columns):
            self._headers = False

    def _select_pids(self, value: str) -> None:
        pids = {int(text[:18]) for text in re.split(r"[ ,]+", value) if text.isdecimal()}
        if not pids:
            raise UsageError("process ID list syntax error")
        self._filters.append(lambda row: row.pid in pids)

    def _value(self, key: str) -> Callable[[Row], float | str]:
        if key in (
            "pid",
            "ppid",
            "uid",
            "pgid",
            "sid",
            "nice",
            "ni",
            "rss",
            "vsz",
            "size",
            "time",
            "pcpu",
            "%cpu",
            "start_time",
            "pmem",
            "%mem",
        ):
            attributes = {
                "ni": "nice",
                "rss": "resident",
                "vsz": "size",
                "time": "cpu",
                "pcpu": "cpu",
                "%cpu": "cpu",
                "start_time": "started",
                "pmem": "resident",
                "%mem": "resident",
            }
            return lambda row: float(getattr(row, attributes.get(key, key)))
        return lambda row: self._cell(key, row)

    def _cell(self, key: str, row: Row) -> str:
        name = self._accounts.user_name(row.uid) or str(row.uid)
        seconds = int(row.cpu)
        uptime = self._process.kernel.hub.clock.monotonic() - self._process.kernel.boot_monotonic
        age = max(uptime - row.started, 0.01)
        started = self._process.kernel.boot_ns + int(row.started * 1e9)
        zone = zone_of(self._process.env)
        minutes = int(age) // 60
        cells: dict[str, Callable[[], str]] = {
            "pid": lambda: str(row.pid),
            "ppid": lambda: str(row.ppid),
            "pgid": lambda: str(row.pgid),
            "sid": lambda: str(row.sid),
            "uid": lambda: str(row.uid),
            "user": lambda: name,
            "tty": lambda: row.tty,
            "comm": lambda: row.comm,
            "args": lambda: printable(row.command),
            "s": lambda: row.state,
            "ni": lambda: str(row.nice),
            "time": lambda: f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}",
            "bsdtime": lambda: f"{seconds // 60}:{seconds % 60:02d}",
            "c": lambda: str(int(row.cpu / age * 100)),
            "pcpu": lambda: f"{min(row.cpu / age * 100, 99.9):.1f}",
            "pmem": lambda: "0.0",
            "vsz": lambda: str(row.size // 1024),
            "rss": lambda: str(row.resident * 4),
            "size": lambda: str(row.size // 4096),
            "psr": lambda: "0",
            "stat": lambda: (
                row.state
                + ("<" if row.nice < 0 else "N" if row.nice else "")
                + ("s" if row.sid == row.pid else "")
                + ("+" if row.pgid == row.foreground else "")
            ),
            "pri": lambda: str(80 + row.nice),
            "f": lambda: "0",
            "addr": lambda: "-",
            "wchan": lambda: "-",
            "tpgid": lambda: str(row.foreground),
            "start": lambda: format_time("%H:%M", started, zone),
            "stime": lambda: format_time("%H:%M", started, zone),
            "lstart": lambda: format_time("%a %b %e %H:%M:%S %Y", started, zone),
            "etime": lambda: (
                (f"{minutes // 60:02d}:" if minutes >= 60 else "") + f"{minutes % 60:02d}:{int(age) % 60:02d}"
            ),
            "etimes": lambda: str(int(age)),
            "nlwp": lambda: "1",
        }
        return cells[ALIASES.get(key, key)]()

    def _print(self, rows: list[Row]) -> None:
        table = [[self._cell(key, row) for key, _ in self._columns] for row in rows]
        titles = [title for _, title in self._columns]
        shown = [titles, *table] if self._headers else table
        widths = [
            max([len(line[i]) for line in shown] + [WIDTHS.get(ALIASES.get(key, key), 0)] if shown else [0])
            for i, (key, _) in enumerate(self._columns)
        ]
        for line in shown:
            cells = []
            for index, (text, (key, _)) in enumerate(zip(line, self._columns, strict=True)):
                left = ALIASES.get(key, key) in LEFT
                if left and index == len(line) - 1:
                    cells.append(text)
                else:
                    cells.append(text.ljust(widths[index]) if left else text.rjust(widths[index]))
            self._process.print(" ".join(cells).rstrip() if not cells[-1].strip() else " ".join(cells))


LEFT = {"user", "tty", "comm", "args", "stat", "s", "start", "wchan", "lstart", "stime"}
WIDTHS = {
    "pid": 7,
    "ppid": 7,
    "tty": 8,
    "time": 8,
    "pgid": 7,
    "sid": 7,
    "user": 8,
    "uid": 5,
    "bsdtime": 6,
    "stat": 4,
    "c": 2,
    "etime": 11,
}
ALIASES = {
    "%cpu": "pcpu",
    "%mem": "pmem",
    "command": "args",
    "cmd": "args",
    "ucmd": "comm",
    "state": "s",
    "nice": "ni",
    "pgrp": "pgid",
    "sess": "sid",
    "session": "sid",
    "tt": "tty",
    "tname": "tty",
    "euser": "user",
    "ruser": "user",
    "uname": "user",
    "euid": "uid",
    "ruid": "uid",
    "cputime": "time",
    "vsize": "vsz",
    "rssize": "rss",
    "start_time": "stime",
    "sz": "size",
    "fname": "comm",
    "thcount": "nlwp",
}
_BASE = {
    "pid": "PID",
    "ppid": "PPID",
    "pgid": "PGID",
    "sid": "SID",
    "uid": "UID",
    "user": "USER",
    "tty": "TT",
    "comm": "COMMAND",
    "args": "COMMAND",
    "s": "S",
    "ni": "NI",
    "time": "TIME",
    "bsdtime": "TIME",
    "c": "C",
    "pcpu": "%CPU",
    "pmem": "%MEM",
    "vsz": "VSZ",
    "rss": "RSS",
    "size": "SZ",
    "psr": "PSR",
    "stat": "STAT",
    "pri": "PRI",
    "f": "F",
    "addr": "ADDR",
    "wchan": "WCHAN",
    "tpgid": "TPGID",
    "start": "STARTED",
    "stime": "STIME",
    "lstart": "STARTED",
    "etime": "ELAPSED",
    "etimes": "ELAPSED",
    "nlwp": "NLWP",
}
TITLES = {**_BASE, **{alias: _BASE[key] for alias, key in ALIASES.items()}, "cmd": "CMD", "user": "USER", "tty": "TT"}
