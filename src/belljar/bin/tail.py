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
from belljar.abi.flags import O_RDONLY
from belljar.bin._kit import UsageError, choice, flag, value
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import utility, version
from belljar.bin._kit.sizes import parse_size
from belljar.kernel.process import Process

_BLOCK = 1 << 16


@dataclass(frozen=True, slots=True)
class Options:
    bytes: str | None = value("-c", "--bytes", "output the last NUM bytes; or from byte +NUM", metavar="[+]NUM")
    follow: str | None = choice(
        {"-f": "descriptor", "-F": "name"}, "output appended data as the file grows (-F: by name, retrying)"
    )
    follow_long: str | None = value("--follow", "like -f", metavar="{name|descriptor}", bare="descriptor")
    lines: str | None = value("-n", "--lines", "output the last NUM lines; or from line +NUM", metavar="[+]NUM")
    pid: str | None = value("--pid", "with -f, terminate after process ID, PID dies", metavar="PID")
    headers: str = choice(
        {"-q": "never", "--quiet": "never", "--silent": "never", "-v": "always", "--verbose": "always"},
        "never (-q) or always (-v) output headers giving file names",
        "auto",
    )
    retry: bool = flag("--retry", "keep trying to open a file if it is inaccessible")
    unchanged: str | None = value("--max-unchanged-stats", "(ignored)", metavar="N")
    interval: str = value(
        "-s", "--sleep-interval", "with -f, sleep N seconds between looks", metavar="N", default="1.0"
    )
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")


@utility("tail")
def main(process: Process, args: list[str]) -> int:
    if args and (match := re.fullmatch(r"([-+])(\d+|(?=[bl]))([bcl]?)(f?)", args[0])):
        # The obsolete form: -5, +3, -20c, -3f.
        sign, number, unit, follow = match.groups()
        number = number or "10"
        number = str(int(number) * 512) if unit == "b" else number
        args = ["-c" if unit in ("b", "c") else "-n", (sign if sign == "+" else "") + number, *args[1:]]
        args = ["-f", *args] if follow else args
    parsed = parse(Options, args, digits="lines")
    if parsed.asked:
        process.print(main.help().rstrip() if parsed.asked == "help" else version("tail"))
        return 0
    options, names = Options(**parsed.values), parsed.operands or ["-"]
    return Tail(process, options).run(names)


class Tail:
    def __init__(self, process: Process, options: Options) -> None:
        self._process = process
        self._options = options
        text = (options.bytes if options.bytes is not None else options.lines) or "10"
        self._by_bytes = options.bytes is not None
        self._from_start = text.startswith("+")
        count = parse_size(text.lstrip("+-"))
        if count is None:
            what = "bytes" if self._by_bytes else "lines"
            raise UsageError(f"invalid number of {what}: \u2018{text.removeprefix('-')}\u2019", hint=False)
        self._count = count
        self._newline = b"\0" if options.zero else b"\n"
        self._follow = options.follow or options.follow_long
        if not re.fullmatch(r"\d*\.?\d+|\d+\.|inf(inity)?", options.interval, re.ASCII):
            raise UsageError(f"invalid number of seconds: \u2018{options.interval}\u2019", hint=False)
        if options.retry and self._follow is None:
            process.warn("warning: --retry ignored; --retry is useful only when following")
        self._shown = ""

    def run(self, names: list[str]) -> int:
        options, process = self._options, self._process
        self._headers = options.headers == "always" or (options.headers == "auto" and len(names) > 1)
        status = 0
        followed: list[tuple[str, int | None]] = []
        for name in names:
            try:
                fd = 0 if name == "-" else process.open(name, O_RDONLY)
            except SysError as error:
                process.warn(f"cannot open '{name}' for reading: {error.reason}")
                status = 1
                if options.follow == "name" or options.retry:
                    followed.append((name, None))
                continue
            self._header(name)
            try:
                for piece in self._pieces(fd):
                    process.stdout.write(piece)
            except SysError as error:
                reason = error.reason
                if process.fstat(fd).is_dir:
                    reason = SysError(EISDIR).reason
                process.warn(f"error reading '{name}': {reason}")
                status = 1
                continue
            if self._follow is None and fd:
                process.close(fd)
            followed.append((name, fd))
        if self._follow is not None:
            if not followed:
                process.warn("no files remaining")
                return 1
            self._keep_following(followed)
        return status

    def _header(self, name: str) -> None:
        if self._headers and name != self._shown:
            title = "standard input" if name == "-" else name
            self._process.print(f"{chr(10) if self._shown else ''}==> {title} <==")
            self._shown = name

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

    def _keep_following(self, files: list[tuple[str, int | None]]) -> None:
        process = self._process
        try:
            interval = max(float(self._options.interval), 0.01)
        except ValueError:
            raise UsageError(f"invalid number of seconds: \u2018{self._options.interval}\u2019", hint=False) from None
        inodes = {name: process.fstat(fd).ino for name, fd in files if fd is not None}
        pid = int(self._options.pid) if self._options.pid else None
        while True:
            process.stdout.flush()
            process.sleep(interval)
            for index, (name, fd) in enumerate(files):
                current = self._reopened(name, fd, inodes) if self._follow == "name" or fd is None else fd
                files[index] = (name, current)
                if current is None:
                    continue
                file = process.fds[current]
                if file.handle.seekable and file.handle.size() < file.offset:
                    process.warn(f"{name}: file truncated")
                    process.seek(current, 0)
                while data := process.read(current):
                    self._header(name)
                    process.stdout.write(data)
            if pid is not None and not _alive(process, pid):
                return

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
