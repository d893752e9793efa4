"""head - output the first part of files

Usage: head [OPTION]... [FILE]...

Print the first 10 lines of each FILE to standard output. With more than one FILE, precede each with a header giving
the file name. With no FILE, or when FILE is -, read standard input. NUM may have a multiplier suffix.
"""

import re
from collections import deque
from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY, SEEK_CUR
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin._kit.numbers import bounded
from belljar.bin._kit.quoting import quote_name
from belljar.kernel.process import Process

_CHUNK = 1 << 16
_OBSOLETE = re.compile(r"-(\d+)(\D.*|)", re.ASCII | re.DOTALL)


@dataclass(frozen=True, slots=True)
class Options:
    bytes: str | None = value(
        "-c", "--bytes", "print the first NUM bytes; with -NUM all but the last", metavar="[-]NUM", resets=("lines",)
    )
    lines: str | None = value(
        "-n", "--lines", "print the first NUM lines; with -NUM all but the last", metavar="[-]NUM", resets=("bytes",)
    )
    headers: str = choice(
        {"-q": "never", "--quiet": "never", "--silent": "never", "-v": "always", "--verbose": "always"},
        "never (-q) or always (-v) print headers giving file names",
        "auto",
    )
    count: str | None = value("--old-count", "(what -NUMBER sets where it is not first)", metavar="NUMBER")
    presume_pipe: bool = flag("---presume-input-pipe", "read the input as if it were a pipe (for tests)")
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")


def spell_out(args: list[str]) -> list[str]:
    """The obsolete -2, -2b, -1k, -5qv as the first argument: a count with its multiplier, then flags."""
    match = _OBSOLETE.fullmatch(args[0]) if args else None
    if match is None:
        return args
    count, letters = match.groups()
    if odd := re.search(r"[^bcklmqvz]", letters):
        raise UsageError(f"invalid trailing option -- {odd[0]}")
    unit = next((letter for letter in letters if letter in "bkm"), "")
    by_bytes = "c" in letters or (unit and "l" not in letters)
    flags = [f"-{letter}" for letter in letters if letter in "qvz"]
    return ["-c" if by_bytes else "-n", count + {"m": "M", "k": "K"}.get(unit, unit), *flags, *args[1:]]


@utility("head", Options, digits="count", rewrite=spell_out)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.count is not None:
        raise UsageError(f"invalid trailing option -- {options.count[0]}")
    what = "bytes" if options.bytes is not None else "lines"
    text = (options.bytes if options.bytes is not None else options.lines) or "10"
    count = bounded(process, text.removeprefix("-"), f"number of {what}", 0, (1 << 64) - 1, suffixes=True)
    delimiter = b"\0" if options.zero else b"\n"
    names = operands or ["-"]
    headers = options.headers == "always" or (options.headers == "auto" and len(names) > 1)
    status, first = 0, True
    for name in names:
        try:
            fd = 0 if name == "-" else process.open(name, O_RDONLY)
        except SysError as error:
            process.warn(f"cannot open {quote_name(name)} for reading: {error.reason}")
            status = 1
            continue
        try:
            if headers:
                process.print(f"{'' if first else chr(10)}==> {'standard input' if name == '-' else name} <==")
            first = False
            if text.startswith("-"):
                part = all_but_bytes if what == "bytes" else all_but_lines
            else:
                part = first_bytes if what == "bytes" else first_lines
            for piece in part(process, fd, count, delimiter):
                process.stdout.write(piece)
        except SysError as error:
            process.warn(f"error reading {quote_name(name)}: {error.reason}")
            status = 1
        finally:
            if fd:
                process.close(fd)
    return status


def first_bytes(process: Process, fd: int, count: int, delimiter: bytes) -> Iterator[bytes]:
    while count > 0 and (data := process.read(fd, min(count, _CHUNK))):
        count -= len(data)
        yield data


def first_lines(process: Process, fd: int, count: int, delimiter: bytes) -> Iterator[bytes]:
    while count > 0 and (data := process.read(fd, _CHUNK)):
        found = data.count(delimiter)
        if found < count:
            count -= found
            yield data
            continue
        end = 0
        if count > 64:
            end = len(delimiter.join(data.split(delimiter, count)[:count])) + 1
        else:
            for _ in range(count):
                end = data.index(delimiter, end) + 1
        # Leave the rest of a seekable input to whoever shares the descriptor.
        if end < len(data) and process.fds[fd].handle.seekable:
            process.seek(fd, end - len(data), SEEK_CUR)
        yield data[:end]
        return


def all_but_bytes(process: Process, fd: int, count: int, delimiter: bytes) -> Iterator[bytes]:
    held: deque[bytes] = deque()
    size = 0
    while data := process.read(fd):
        process.budget.charge_size(min(size, count))
        held.append(data)
        size += len(data)
        while held and size - len(held[0]) >= count:
            size -= len(held[0])
            yield held.popleft()
    rest = b"".join(held)
    yield rest[: max(0, len(rest) - count)]


def all_but_lines(process: Process, fd: int, count: int, delimiter: bytes) -> Iterator[bytes]:
    if count == 0:
        yield from first_bytes(process, fd, 1 << 62, delimiter)
        return
    held: deque[bytes] = deque()
    size = lines = 0
    while data := process.read(fd):
        held.append(data)
        size += len(data)
        lines += data.count(delimiter)
        process.budget.charge_size(size)
        while held and lines - (ahead := held[0].count(delimiter)) > count:
            lines -= ahead
            size -= len(held[0])
            yield held.popleft()
    rest = b"".join(held)
    parts = rest.split(delimiter)
    tail = parts.pop()
    whole = len(parts) + (1 if tail else 0)
    keep = whole - count
    if keep > 0:
        yield b"".join(part + delimiter for part in parts[:keep])
