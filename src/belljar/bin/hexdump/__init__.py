"""hexdump - display file contents in hexadecimal, decimal, octal, or ascii

Usage: hexdump [OPTION]... [FILE]...
"""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, flag, many, utility, value
from belljar.bin._kit.sizes import parse_size
from belljar.bin.hexdump.units import Unit, parse_format
from belljar.kernel.process import Process

_OFFSET = '"%07.7_Ax\n"'
CANONICAL = "canonical"
_STYLES: dict[str, tuple[str, ...]] = {
    CANONICAL: (
        '"%08.8_Ax\n"',
        '"%08.8_ax  " 8/1 "%02x " "  " 8/1 "%02x "',
        '"  |" 16/1 "%_p" "|\n"',
    ),
    "b": (_OFFSET, '"%07.7_ax " 16/1 "%03o " "\n"'),
    "c": (_OFFSET, '"%07.7_ax " 16/1 "%3_c " "\n"'),
    "d": (_OFFSET, '"%07.7_ax " 8/2 "  %05u " "\n"'),
    "o": (_OFFSET, '"%07.7_ax " 8/2 " %06o " "\n"'),
    "x": (_OFFSET, '"%07.7_ax " 8/2 "   %04x " "\n"'),
    "default": (_OFFSET, '"%07.7_ax " 8/2 "%04x " "\n"'),
}


@dataclass(frozen=True, slots=True)
class Options:
    styles: tuple[str, ...] = many(
        "--style",
        "one-byte octal (-b), one-byte character (-c), canonical (-C), two-byte decimal (-d), octal (-o), hex (-x)",
        metavar="STYLE",
        constants={
            "-b": "b", "--one-byte-octal": "b", "-c": "c", "--one-byte-char": "c", "-C": CANONICAL,
            "--canonical": CANONICAL, "-d": "d", "--two-bytes-decimal": "d", "-o": "o", "--two-bytes-octal": "o",
            "-x": "x", "--two-bytes-hex": "x",
        },
    )  # fmt: skip
    formats: tuple[str, ...] = many("-e", "--format", "format string to be used for displaying data", metavar="FORMAT")
    files: tuple[str, ...] = many("-f", "--format-file", "file that contains format strings", metavar="FILE")
    length: str | None = value("-n", "--length", "interpret only LENGTH bytes of input", metavar="LENGTH")
    skip: str | None = value("-s", "--skip", "skip OFFSET bytes from the beginning", metavar="OFFSET")
    verbose: bool = flag("-v", "--no-squeezing", "output identical lines")
    colour: str | None = value("-L", "--color", "interpret color formatting specifiers", metavar="MODE", bare="auto")


@utility("hexdump", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    return run(process, options, operands, "default")


def run(process: Process, options: Options, operands: list[str], default: str) -> int:
    texts: list[str] = []
    for name in options.styles:
        texts += _STYLES.get(name, ())
    texts += options.formats
    for file in options.files:
        lines = fsdecode(process.read_file(file)).splitlines()
        texts += [line for line in lines if line.strip() and not line.lstrip().startswith("#")]
    formats = [parse_format(text) for text in texts or _STYLES[default]]
    return Dump(process, options, formats).run(operands or ["-"])


class Dump:
    """All files as one stream of blocks, each shown by every format."""

    def __init__(self, process: Process, options: Options, formats: list[list[Unit]]) -> None:
        self.process = process
        self.options = options
        self.formats = formats
        self.block = max(sum(unit.repeat * unit.size for unit in units) for units in formats)
        process.budget.charge_size(self.block * 64)
        for units in formats:
            self._fill(units)
        self.status = 0
        self.opened = False

    def _fill(self, units: list[Unit]) -> None:
        """The last unit that takes bytes goes on to the end of the block, unless it says how often."""
        used = sum(unit.repeat * unit.size for unit in units)
        taking = [unit for unit in units if unit.size]
        if taking and used < self.block and taking[-1] is units[-1] and not taking[-1].fixed:
            units[-1].repeat += (self.block - used) // units[-1].size

    def run(self, names: list[str]) -> int:
        address = _number(self.options.skip, "offset") or 0
        previous: bytes | None = None
        starred = False
        rest = b""
        if self.block == 0:
            return 0
        for chunk in self._chunks(names, address):
            data = rest + chunk
            whole = len(data) - len(data) % self.block
            self.process.budget.charge(whole // 8 + 1)
            for at in range(0, whole, self.block):
                block = data[at : at + self.block]
                if block == previous and not self.options.verbose:
                    if not starred:
                        self.process.stdout.write(b"*\n")
                        starred = True
                else:
                    self._show(block, len(block), address + at)
                    previous, starred = block, False
            rest, address = data[whole:], address + whole
        if rest:
            self._show(rest + bytes(self.block - len(rest)), len(rest), address)
            address += len(rest)
        if address or rest:
            self._end(address)
        return self.status if self.opened else 1

    def _show(self, block: bytes, valid: int, address: int) -> None:
        for units in self.formats:
            if any(piece.at_end for unit in units for piece in unit.pieces):
                continue
            at = 0
            for unit in units:
                text, at = unit.render(block, at, valid, address)
                self.process.stdout.write(text.encode("latin-1"))

    def _end(self, address: int) -> None:
        """The last of the formats for the end of the data counts."""
        endings = [(unit, piece) for units in self.formats for unit in units for piece in unit.pieces if piece.at_end]
        for unit, piece in endings[-1:]:
            assert piece.show is not None
            self.process.print(piece.before + piece.show(b"", address) + unit.tail, end="")

    def _chunks(self, names: list[str], skip: int) -> Iterator[bytes]:
        left = _number(self.options.length, "length")
        for name in names:
            try:
                for chunk in self.process.chunks(name, 1 << 16):
                    self.opened = True
                    if skip >= len(chunk):
                        skip -= len(chunk)
                        continue
                    data, skip = chunk[skip:], 0
                    if left is not None:
                        data = data[:left]
                        left -= len(data)
                    if data:
                        yield data
                    if left == 0:
                        return
                self.opened = True
            except SysError as error:
                self.process.stdout.flush()
                self.process.warn(f"{name}: {error.reason}")
                self.status = 1
        if not self.opened:
            self.process.warn("all input file arguments failed")


def _number(text: str | None, what: str) -> int | None:
    if text is None:
        return None
    size = int(text, 16) if text[:2].lower() == "0x" and text[2:].isalnum() else parse_size(text)
    if size is None or size < 0:
        raise UsageError(f"failed to parse {what}: '{text}': Invalid argument", hint=False)
    return size
