"""cat - concatenate files to standard output

Usage: cat [OPTION]... [FILE]...

With no FILE, or when FILE is -, read standard input.
"""

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EISDIR
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFREG, SEEK_CUR
from belljar.abi.records import Stat
from belljar.bin._kit import flag, utility
from belljar.bin._kit.quoting import quote_if_odd
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    show_all: bool = flag("-A", "--show-all", "equivalent to -vET")
    number_nonblank: bool = flag("-b", "--number-nonblank", "number nonempty output lines, overrides -n")
    visible_ends: bool = flag("-e", "equivalent to -vE")
    show_ends: bool = flag("-E", "--show-ends", "display $ at end of each line")
    number: bool = flag("-n", "--number", "number all output lines")
    squeeze: bool = flag("-s", "--squeeze-blank", "suppress repeated empty output lines")
    visible_tabs: bool = flag("-t", "equivalent to -vT")
    show_tabs: bool = flag("-T", "--show-tabs", "display TAB characters as ^I")
    unbuffered: bool = flag("-u", "(ignored)")
    show_nonprinting: bool = flag("-v", "--show-nonprinting", "use ^ and M- notation, except for LFD and TAB")


@utility("cat", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    formatter = Formatter(options)
    status = 0
    out = process.fstat(1) if 1 in process.fds else None
    for name in operands or ["-"]:
        try:
            if name != "-" and process.fs.stat(name).is_dir:
                raise SysError(EISDIR)
            if out is not None and out.kind == S_IFREG and is_output(process, name, out):
                process.warn(f"{name}: input file is output file")
                status = 1
                continue
            for chunk in process.chunks(name):
                process.stdout.write(formatter.feed(chunk) if formatter.active else chunk)
                process.stdout.flush()
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
    return status


def is_output(process: Process, name: str, out: Stat) -> bool:
    """Whether a file would be copied to its own end, for ever."""
    found = process.fstat(0) if name == "-" else process.fs.stat(name)
    offset = process.seek(0, 0, SEEK_CUR) if name == "-" and found.kind == S_IFREG else 0
    return (found.dev, found.ino) == (out.dev, out.ino) and offset < found.size


class Formatter:
    """Numbers, marks and squeezes lines. What it knows of the line so far carries over to the next chunk and file."""

    def __init__(self, o: Options) -> None:
        self.ends = o.show_ends or o.show_all or o.visible_ends
        self.tabs = o.show_tabs or o.show_all or o.visible_tabs
        self.nonprinting = o.show_nonprinting or o.show_all or o.visible_ends or o.visible_tabs
        self.numbers = o.number or o.number_nonblank
        self.nonblank = o.number_nonblank
        self.squeeze = o.squeeze
        self.active = self.ends or self.tabs or self.nonprinting or self.numbers or self.squeeze
        self._count = 0
        self._blanks = 0
        self._line_open = False

    def feed(self, chunk: bytes) -> bytes:
        # Marks first: they never add or remove a newline, and the numbers' own tab must stay a tab.
        plain = chunk
        if self.nonprinting:
            chunk = _UNPRINTABLE.sub(lambda match: _VISIBLE[match[0][0]], chunk)
        if self.tabs:
            chunk = chunk.replace(b"\t", b"^I")
        if self.ends:
            chunk = chunk.replace(b"\r\n", b"^M\n") if not self.nonprinting else chunk
            chunk = chunk.replace(b"\n", b"$\n")
        if self.numbers or self.squeeze:
            return self._by_line(chunk, complete=plain.endswith(b"\n"))
        return chunk

    def _by_line(self, chunk: bytes, *, complete: bool) -> bytes:
        empty = b"$" if self.ends else b""
        out: list[bytes] = []
        lines = chunk.split(b"\n")
        for last, line in ((i == len(lines) - 1, line) for i, line in enumerate(lines)):
            if last:
                if line:
                    out.append(self._start(line == empty) + line)
                    self._line_open = True
                break
            blank = line == empty and not self._line_open
            self._blanks = self._blanks + 1 if blank else 0
            if not (self.squeeze and self._blanks > 1):
                out.append(self._start(blank) + line + b"\n")
            self._line_open = False
        if complete:
            self._line_open = False
        return b"".join(out)

    def _start(self, blank: bool) -> bytes:
        if not self.numbers or self._line_open or (blank and self.nonblank):
            return b""
        self._count += 1
        return b"%6d\t" % self._count


def _visible(byte: int) -> bytes:
    if byte >= 128:
        low = byte - 128
        return b"M-" + (b"^" + bytes([low + 64]) if low in (9, 10) else _visible(low))
    if byte == 127:
        return b"^?"
    if byte < 32 and byte not in (9, 10):
        return b"^" + bytes([byte + 64])
    return bytes([byte])


_UNPRINTABLE = re.compile(rb"[^\t\n -~]")
_VISIBLE = {byte: _visible(byte) for byte in range(256)}
