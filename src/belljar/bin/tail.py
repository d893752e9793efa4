"""tail - output the last part of files

Usage: tail [OPTION]... [FILE]...

Print the last 10 lines of each FILE to standard output. With more than one FILE, precede each with a header giving the
file name. With no FILE, or when FILE is -, read standard input. NUM may have a multiplier suffix; +NUM means starting
with line (byte) NUM.
"""

import re
from collections import deque
from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EISDIR, ESRCH
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY, S_IFIFO
from belljar.bin._kit import UsageError, choice, flag, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.numbers import bounded
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import utility, version
from belljar.bin._kit.quoting import quote_name
from belljar.kernel.process import Process

_BLOCK = 1 << 16
_REACTION = 0.1
"""Seconds between two looks at a followed file without -s: GNU's tail is told of changes, and reacts at once."""


@dataclass(frozen=True, slots=True)
class Options:
    bytes: str | None = value(
        "-c", "--bytes", "output the last NUM bytes; or from byte +NUM", metavar="[+]NUM", resets=("lines",)
    )
    count: str | None = value("--old-count", "(what -NUMBER sets where it is not allowed)", metavar="NUMBER")
    follow: str | None = choice({"-f": "descriptor"}, "output appended data as the file grows")
    follow_name: bool = flag("-F", "same as --follow=name --retry")
    follow_long: str | None = value("--follow", "like -f", metavar="{name|descriptor}", bare="descriptor")
    lines: str | None = value(
        "-n", "--lines", "output the last NUM lines; or from line +NUM", metavar="[+]NUM", resets=("bytes",)
    )
    pid: str | None = value("--pid", "with -f, terminate after process ID, PID dies", metavar="PID")
    headers: str = choice(
        {"-q": "never", "--quiet": "never", "--silent": "never", "-v": "always", "--verbose": "always"},
        "never (-q) or always (-v) output headers giving file names",
        "auto",
    )
    debug: bool = flag("--debug", "indicate which implementation is used (there is one)")
    retry: bool = flag("--retry", "keep trying to open a file if it is inaccessible")
    unchanged: str = value("--max-unchanged-stats", "(has no effect here)", metavar="N", default="5")
    interval: str | None = value(
        "-s",
        "--sleep-interval",
        "with -f, sleep N seconds between looks",
        metavar="N",
    )
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")


@utility("tail")
def main(process: Process, args: list[str]) -> int:
    parsed = parse(Options, spell_out(args), digits="count")
    if parsed.asked:
        process.print(main.help().rstrip() if parsed.asked == "help" else version("tail"))
        return 0
    options, names = Options(**parsed.values), parsed.operands or ["-"]
    if options.count is not None:
        raise UsageError(f"option used in invalid context -- {options.count[0]}", hint=False)
    return Tail(process, options).run(names)


def spell_out(args: list[str]) -> list[str]:
    """The obsolete -5, +3, -20c, -3f: one such option, and at most one file."""
    alone = len(args) == 1 or (len(args) == 2 and not re.match(r"-.", args[1]))
    allowed = alone or (2 <= len(args) <= 3 and args[1] == "--")
    match = re.fullmatch(r"([-+])(\d*)([bcl]?)(f?)", args[0], re.ASCII) if allowed else None
    if match is None or args[0] in ("-", "-c"):
        if args and re.match(r"-\d", args[0], re.ASCII):
            raise UsageError(f"option used in invalid context -- {args[0][1]}", hint=False)
        return args
    sign, number, unit, follow = match.groups()
    if len(number) > 19:
        raise UsageError(f"invalid number: \u2018{args[0]}\u2019: Numerical result out of range", hint=False)
    number = str(int(number or "10") * (512 if unit == "b" else 1))
    args = ["-c" if unit in ("b", "c") else "-n", (sign if sign == "+" else "") + number, *args[1:]]
    return ["-f", *args] if follow else args


class Tail:
    def __init__(self, process: Process, options: Options) -> None:
        self._process = process
        self._options = options
        text = (options.bytes if options.bytes is not None else options.lines) or "10"
        self._by_bytes = options.bytes is not None
        self._from_start = text.startswith("+")
        what = "bytes" if self._by_bytes else "lines"
        self._count = bounded(process, text.removeprefix("-"), f"number of {what}", 0, (1 << 64) - 1, suffixes=True)
        self._newline = b"\0" if options.zero else b"\n"
        if options.follow_long is not None:
            self._follow: str | None = pick(process, "--follow", options.follow_long, {"descriptor": (), "name": ()})
        else:
            self._follow = "name" if options.follow_name else options.follow
        self._retry = options.retry or options.follow_name
        bounded(process, options.unchanged, "maximum number of unchanged stats between opens", 0)
        if options.pid is not None:
            bounded(process, options.pid, "PID", 0, 0x7FFFFFFF)
        if options.interval is not None and not re.fullmatch(
            r"\d*\.?\d+|\d+\.|inf(inity)?", options.interval, re.ASCII
        ):
            raise UsageError(f"invalid number of seconds: \u2018{options.interval}\u2019", hint=False)
        if self._retry and self._follow is None:
            process.warn("warning: --retry ignored; --retry is useful only when following")
        elif self._retry and self._follow == "descriptor":
            process.warn("warning: --retry only effective for the initial open")
        if options.pid is not None and self._follow is None:
            process.warn("warning: PID ignored; --pid=PID is useful only when following")
        self._shown: int | None = None

    def run(self, names: list[str]) -> int:
        options, process = self._options, self._process
        self._headers = options.headers == "always" or (options.headers == "auto" and len(names) > 1)
        status = 0
        followed: list[tuple[str, int | None]] = []
        places: list[int] = []
        if self._follow == "name" and "-" in names:
            raise UsageError("cannot follow '-' by name", hint=False)
        for place, name in enumerate(names):
            try:
                fd = 0 if name == "-" else process.open(name, O_RDONLY)
            except SysError as error:
                process.warn(f"cannot open {quote_name(name)} for reading: {error.reason}")
                status = 1
                if self._retry:
                    followed.append((name, None))
                    places.append(place)
                continue
            self._header(name, place)
            try:
                for piece in self._pieces(fd):
                    process.stdout.write(piece)
            except SysError as error:
                reason = error.reason
                if process.fstat(fd).is_dir:
                    reason = SysError(EISDIR).reason
                process.warn(f"error reading {quote_name(name)}: {reason}")
                status = 1
                continue
            if self._follow is None and fd:
                process.close(fd)
            if name != "-" or process.fstat(fd).kind != S_IFIFO:
                followed.append((name, fd))
                places.append(place)
        if self._follow is not None:
            if not followed:
                # POSIX: -f is ignored where standard input is a pipe, which has no more once it ended.
                if names != ["-"]:
                    process.warn("no files remaining")
                return status
            self._keep_following(followed, places)
        return status

    def _header(self, name: str, place: int) -> None:
        """The name of the file that what follows is from, unless it was the last one shown."""
        if self._headers and place != self._shown:
            title = "standard input" if name == "-" else name
            self._process.print(f"{'' if self._shown is None else chr(10)}==> {title} <==")
            self._shown = place

    def _pieces(self, fd: int) -> Iterator[bytes]:
        if self._from_start:
            return self._skip_bytes(fd) if self._by_bytes else self._skip_lines(fd)
        seekable = self._process.fds[fd].handle.seekable
        if self._by_bytes:
            return self._last_bytes(fd)
        return self._last_lines_seeking(fd) if seekable else self._last_lines(fd)

    def _skip_bytes(self, fd: int) -> Iterator[bytes]:
        left = max(0, self._count - 1)
        while data := self._process.read(fd):
            yield data[left:]
            left = max(0, left - len(data))

    def _skip_lines(self, fd: int) -> Iterator[bytes]:
        left = max(0, self._count - 1)
        while data := self._process.read(fd):
            while left and data:
                found = data.count(self._newline)
                if found < left:
                    left -= found
                    data = b""
                else:
                    data = data.split(self._newline, left)[left]
                    left = 0
            yield data

    def _last_bytes(self, fd: int) -> Iterator[bytes]:
        if self._process.fds[fd].handle.seekable:
            end = self._process.fds[fd].handle.size()
            here = self._process.fds[fd].offset
            self._process.seek(fd, max(here, end - self._count))
            while data := self._process.read(fd):
                yield data
            return
        held: deque[bytes] = deque()
        size = 0
        while data := self._process.read(fd):
            held.append(data)
            size += len(data)
            while size - len(held[0]) >= self._count and len(held) > 1:
                size -= len(held.popleft())
            self._process.budget.charge_size(size)
        rest = b"".join(held)
        yield rest[max(0, len(rest) - self._count) :]

    def _last_lines_seeking(self, fd: int) -> Iterator[bytes]:
        """Reads blocks from the end until enough lines are seen."""
        file = self._process.fds[fd]
        here, position = file.offset, file.handle.size()
        if self._count == 0:
            self._process.seek(fd, max(here, position))
            return
        blocks: deque[bytes] = deque()
        seen, held, first = 0, 0, True
        while position > here and seen <= self._count:
            size = min(_BLOCK, position - here)
            position -= size
            data = file.pread(size, position)
            held += size
            self._process.budget.charge()
            self._process.budget.charge_size(held)
            blocks.appendleft(data)
            # The newline that ends the file ends its last line; it does not start another.
            seen += data.count(self._newline) - (1 if first and data.endswith(self._newline) else 0)
            first = False
        self._process.seek(fd, max(here, file.handle.size()))
        yield self._cut(b"".join(blocks))

    def _last_lines(self, fd: int) -> Iterator[bytes]:
        held: deque[bytes] = deque()
        size = lines = 0
        while data := self._process.read(fd):
            held.append(data)
            size += len(data)
            lines += data.count(self._newline)
            while len(held) > 1 and lines - (ahead := held[0].count(self._newline)) > self._count:
                lines -= ahead
                size -= len(held.popleft())
            self._process.budget.charge_size(size)
        yield self._cut(b"".join(held)) if self._count else b""

    def _cut(self, data: bytes) -> bytes:
        """The last lines of data that has at least as many, or is all there is."""
        body = data.removesuffix(self._newline)
        parts = body.rsplit(self._newline, min(self._count, len(body)))
        return data if len(parts) <= self._count else data[len(parts[0]) + 1 :]

    def _keep_following(self, files: list[tuple[str, int | None]], places: list[int]) -> None:
        process = self._process
        try:
            interval = max(float(self._options.interval or _REACTION), 0.01)
        except ValueError:
            raise UsageError(f"invalid number of seconds: \u2018{self._options.interval}\u2019", hint=False) from None
        inodes = {name: process.fstat(fd).ino for name, fd in files if fd is not None}
        pid = int(self._options.pid) if self._options.pid else None
        while True:
            process.stdout.flush()
            process.sleep(interval)
            for index, (name, fd) in enumerate(files):
                if fd is not None:
                    self._copy_new(name, fd, places[index])
                current = self._reopened(name, fd, inodes) if self._follow == "name" or fd is None else fd
                if current is not None and current != fd:
                    self._copy_new(name, current, places[index])
                files[index] = (name, current)
            if pid is not None and not _alive(process, pid):
                return

    def _copy_new(self, name: str, fd: int, place: int) -> None:
        """Copy what a file has got since the last look."""
        process = self._process
        file = process.fds[fd]
        if file.handle.seekable and file.handle.size() < file.offset:
            process.warn(f"{name}: file truncated")
            process.seek(fd, 0)
        while data := process.read(fd):
            self._header(name, place)
            process.stdout.write(data)

    def _reopened(self, name: str, fd: int | None, inodes: dict[str, int]) -> int | None:
        """The descriptor of the file that has the name now."""
        process = self._process
        try:
            ino = process.fs.stat(name).ino
        except SysError as error:
            if fd is not None:
                process.warn(f"'{name}' has become inaccessible: {error.reason}")
                process.close(fd)
            return None
        if fd is not None and inodes.get(name) == ino:
            return fd
        process.warn(f"'{name}' has {'been replaced' if fd is not None else 'appeared'};  following new file")
        if fd is not None:
            process.close(fd)
        inodes[name] = ino
        return process.open(name, O_RDONLY)


def _alive(process: Process, pid: int) -> bool:
    try:
        process.kill(pid, 0)
    except SysError as error:
        return error.errno != ESRCH
    return True
