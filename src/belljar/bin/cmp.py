"""cmp - compare two files byte by byte

Usage: cmp [OPTION]... FILE1 [FILE2 [SKIP1 [SKIP2]]]

SKIP1 and SKIP2 are the numbers of bytes to skip at the beginning of each file (zero by default). If a FILE is - or
missing, read standard input. Exit status is 0 if inputs are the same, 1 if different, 2 if trouble.
"""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.sizes import parse_size
from belljar.kernel.process import Process

_CHUNK = 1 << 16


@dataclass(frozen=True, slots=True)
class Options:
    bytes: bool = flag("-b", "--print-bytes", "print differing bytes")
    skip: str | None = value("-i", "--ignore-initial", "skip first SKIP1[:SKIP2] bytes of the inputs", metavar="SKIP")
    verbose: bool = flag("-l", "--verbose", "output byte numbers and differing byte values")
    limit: str | None = value("-n", "--bytes", "compare at most LIMIT bytes", metavar="LIMIT")
    silent: bool = flag("-s", "--quiet", "--silent", "suppress all normal output")


@utility("cmp", Options, usage_status=2, named_hint=True)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError(f"missing operand after '{process.argv[-1]}'")
    if options.verbose and options.silent:
        raise UsageError("options -l and -s are incompatible")
    names = (operands[0], operands[1] if len(operands) > 1 else "-")
    skips = [0, 0]
    if options.skip is not None:
        one, colon, other = options.skip.partition(":")
        skips[0] = _size(one, "--ignore-initial", options.skip)
        skips[1] = _size(other, "--ignore-initial", options.skip) if colon else skips[0]
    for index, text in enumerate(operands[2:4]):
        skips[index] = _size(text, "--ignore-initial", text)
    if len(operands) > 4:
        raise UsageError(f"extra operand '{operands[4]}'")
    limit = _size(options.limit, "--bytes", options.limit) if options.limit is not None else 1 << 62
    if names == ("-", "-") and skips[0] == skips[1]:
        return 0
    for name in names:
        if name != "-":
            try:
                process.fs.stat(name)
            except SysError as error:
                if not options.silent:
                    process.warn(f"{name}: {error.reason}")
                return 2
    try:
        return Comparison(process, options, names, skips, limit).run()
    except SysError as error:
        process.stdout.flush()
        process.warn(f"{error.path or names[0]}: {error.reason}")
        return 2


def _size(text: str, option: str, whole: str) -> int:
    size = parse_size(text)
    if size is None or size < 0:
        raise UsageError(f"invalid {option} value '{whole}'")
    return size


class Comparison:
    """Both files read in step."""

    def __init__(
        self, process: Process, options: Options, names: tuple[str, str], skips: list[int], limit: int
    ) -> None:
        self.process = process
        self.options = options
        self.names = names
        self.limit = limit
        self.inputs = [self._read(name, skip) for name, skip in zip(names, skips, strict=True)]

    def _read(self, name: str, skip: int) -> Iterator[bytes]:
        for chunk in self.process.chunks(name, _CHUNK):
            if skip >= len(chunk):
                skip -= len(chunk)
                continue
            yield chunk[skip:] if skip else chunk
            skip = 0

    def run(self) -> int:
        left = right = b""
        offset = lines = 0
        at_line_start = True
        different = False
        width = self._width()
        while True:
            left = left or next(self.inputs[0], b"")
            right = right or next(self.inputs[1], b"")
            size = min(len(left), len(right), self.limit - offset)
            self.process.budget.charge(size // 65536 + 1)
            if size <= 0:
                break
            one, other = left[:size], right[:size]
            left, right = left[size:], right[size:]
            if one != other:
                if self.options.silent:
                    return 1
                if not self.options.verbose:
                    return self._first(one, other, offset, lines)
                different = True
                self._list(one, other, offset, width)
            lines += one.count(b"\n")
            at_line_start = one.endswith(b"\n")
            offset += size
        if offset < self.limit and (left or right):
            self._end(1 if left else 0, offset, lines, at_line_start)
            return 1
        return 1 if different else 0

    def _first(self, one: bytes, other: bytes, offset: int, lines: int) -> int:
        index = _difference(one, other)
        line = lines + one.count(b"\n", 0, index) + 1
        where = f"{self.names[0]} {self.names[1]} differ: byte {offset + index + 1}"
        text = f"{where}, line {line}"
        if self.options.bytes:
            a, b = one[index], other[index]
            text += f" is {a:3o} {visible(a)} {b:3o} {visible(b)}"
        self.process.print(text)
        return 1

    def _width(self) -> int:
        """Wide enough for the last byte's number."""
        sizes = [self.limit]
        for name in self.names:
            stat = self.process.fstat(0) if name == "-" else self.process.fs.stat(name)
            if stat.is_regular:
                sizes.append(stat.size)
        return len(str(min(sizes)))

    def _list(self, one: bytes, other: bytes, offset: int, width: int) -> None:
        at = 0
        while at < len(one):
            if one[at : at + 256] == other[at : at + 256]:
                at += 256
                continue
            self.process.budget.charge(16)
            for index in range(at, min(at + 256, len(one))):
                a, b = one[index], other[index]
                if a == b:
                    continue
                number = offset + index + 1
                if self.options.bytes:
                    self.process.print(f"{number:>{width}} {a:3o} {visible(a):<4} {b:3o} {visible(b)}")
                else:
                    self.process.print(f"{number:>{width}} {a:3o} {b:3o}")
            at += 256

    def _end(self, shorter: int, offset: int, lines: int, at_line_start: bool) -> None:
        if self.options.silent:
            return
        self.process.stdout.flush()
        name = self.names[shorter]
        if offset == 0:
            self.process.warn(f"EOF on {name} which is empty")
        elif self.options.verbose:
            self.process.warn(f"EOF on {name} after byte {offset}")
        elif at_line_start:
            self.process.warn(f"EOF on {name} after byte {offset}, line {lines}")
        else:
            self.process.warn(f"EOF on {name} after byte {offset}, in line {lines + 1}")


def _difference(one: bytes, other: bytes) -> int:
    """Return where two different strings of equal length first differ, found by halving."""
    low, high = 0, len(one)
    while high - low > 1:
        middle = (low + high) // 2
        if one[low:middle] != other[low:middle]:
            high = middle
        else:
            low = middle
    return low


def visible(byte: int) -> str:
    """As cat -v shows it."""
    text = ""
    if byte >= 128:
        text, byte = "M-", byte - 128
    if byte < 32:
        return f"{text}^{chr(byte + 64)}"
    return text + ("^?" if byte == 127 else chr(byte))
