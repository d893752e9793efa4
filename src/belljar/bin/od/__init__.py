"""od - dump files in octal and other formats

Usage: od [OPTION]... [FILE]...
       od [-abcdfilosx]... [FILE] [[+]OFFSET[b]]

Write an unambiguous representation, octal bytes by default, of FILE to standard output. With more than one FILE
argument, concatenate them. With no FILE, or when FILE is -, read standard input. TYPE is made of a (named character),
c (printable character or backslash escape), d, f, o, u, x with a SIZE in bytes or a C type's letter, and z to show the
characters at the end of each line.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from math import lcm

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EISDIR
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, many, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.bin._kit.sizes import unit
from belljar.bin.od.types import Type, parse_types
from belljar.kernel.process import Process

_TRADITIONAL = {
    "-a": "a", "-b": "o1", "-c": "c", "-d": "u2", "-f": "fF", "-i": "dI", "-l": "dL", "-o": "o2", "-s": "d2",
    "-x": "x2", "-h": "x2", "-B": "o2", "-D": "u4", "-e": "fD", "-F": "fD", "-H": "x4", "-I": "dL", "-L": "dL",
    "-O": "o4", "-X": "x4",
}  # fmt: skip
_SIZE = re.compile(r"(0[xX][0-9a-fA-F]+|\d+)(b|B|[kKmMgGtTpPeEzZyY](?:i?B)?)?", re.ASCII)
_OFFSET = re.compile(r"\+?(0[xX][0-9a-fA-F]+|\d+)(\.?)(b)?", re.ASCII)
_DOTS = bytes(byte if 32 <= byte < 127 else 46 for byte in range(256))
_TEXT = rb"[\x20-\x7e\x07-\x0d]"


@dataclass(frozen=True, slots=True)
class Options:
    radix: str = value(
        "-A", "--address-radix", "output format for file offsets: d, o, x or n", metavar="RADIX", default="o"
    )
    endian: str | None = value("--endian", "swap input bytes according to the specified order", metavar="{big|little}")
    skip: str | None = value("-j", "--skip-bytes", "skip BYTES input bytes first", metavar="BYTES")
    limit: str | None = value("-N", "--read-bytes", "limit dump to BYTES input bytes", metavar="BYTES")
    strings: str | None = value(
        "--strings", "show only strings of at least BYTES (3) characters", metavar="BYTES", bare="3"
    )
    s_strings: str | None = value("-S", "the same, with BYTES required", metavar="BYTES")
    types: tuple[str, ...] = many(
        "-t", "--format", "select output format or formats", metavar="TYPE", constants=_TRADITIONAL
    )
    verbose: bool = flag("-v", "--output-duplicates", "do not use * to mark line suppression")
    width: str | None = value(
        "-w", "--width", "output BYTES bytes per output line (32 if not given)", metavar="BYTES", bare="32"
    )
    traditional: bool = flag("--traditional", "accept arguments in third form above")


@utility("od", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.radix[:1] not in ("d", "o", "x", "n"):
        raise UsageError(
            f"invalid output address radix '{options.radix[:1]}'; it must be one character from [doxn]", hint=False
        )
    endian = options.endian and pick(process, "--endian", options.endian, {"little": (), "big": ()})
    skip = _size(options.skip, "-j") or 0
    limit = _size(options.limit, "-N")
    modern = any(
        v is not None for v in (options.skip, options.limit, options.strings, options.s_strings, options.width)
    )
    label: int | None = None
    modern = modern or options.verbose or options.radix != "o"
    modern = modern or any(arg.startswith(("-t", "--f")) for arg in process.argv)
    if operands and (options.traditional or not modern):
        operands, found, label = _traditional(process, options.traditional, operands)
        skip = skip if found is None else found
    dump = Dump(process, options, operands or ["-"], skip, limit, endian == "big", label)
    return dump.run()


def _size(text: str | None, option: str) -> int | None:
    if text is None:
        return None
    match = _SIZE.fullmatch(text)
    if match is None:
        raise UsageError(f"invalid {option} argument '{text}'", hint=False)
    digits = match[1]
    base = 16 if digits[:2].lower() == "0x" else 8 if digits.startswith("0") and len(digits) > 1 else 10
    try:
        number = int(digits, base)
    except ValueError:
        raise UsageError(f"invalid {option} argument '{text}'", hint=False) from None
    number *= 1024 if match[2] == "B" else unit(match[2] or "")
    if number >= 1 << 63:
        raise UsageError(f"{option} argument '{text}' too large", hint=False)
    return number


def _traditional(process: Process, asked: bool, operands: list[str]) -> tuple[list[str], int | None, int | None]:
    """The files, the offset to begin at and the address to show for it, of `[FILE] [[+]OFFSET[.][b] [LABEL]]`."""
    numbers = [_offset(text) for text in operands]
    match operands:
        case [only] if (asked or only.startswith("+")) and numbers[0] is not None:
            return [], numbers[0], None
        case [name, second] if (asked or second.startswith("+") or second[:1].isdecimal()) and numbers[1] is not None:
            if asked and numbers[0] is not None:
                return [], numbers[0], numbers[1]
            return [name], numbers[1], None
        case [name, _, _] if asked and numbers[1] is not None and numbers[2] is not None:
            return [name], numbers[1], numbers[2]
    if asked and len(operands) > 1:
        raise UsageError(
            f"extra operand {quote(operands[1], process.env)}\n"
            f"{process.name}: compatibility mode supports at most one file"
        )
    return operands, None, None


def _offset(text: str) -> int | None:
    match = _OFFSET.fullmatch(text)
    if match is None:
        return None
    digits = match[1]
    base = 16 if digits[:2].lower() == "0x" else 10 if match[2] else 8
    try:
        return int(digits, base) * (512 if match[3] else 1)
    except ValueError:
        return None


class Dump:
    """One run over all the files as if they were one."""

    def __init__(
        self,
        process: Process,
        options: Options,
        names: list[str],
        skip: int,
        limit: int | None,
        big: bool,
        label: int | None,
    ) -> None:
        self.process = process
        self.options = options
        self.names = names
        self.skip = skip
        self.limit = limit
        self.radix = options.radix[0]
        self.status = 0
        self.opened = False
        self.types: list[Type] = []
        for text in options.types or ("o2",):
            self.types += parse_types(process, text, big)
        self.types = self.types or parse_types(process, "o2", big)
        unit_size = lcm(*(kind.size for kind in self.types))
        self.width = self._line_width(unit_size)
        # Fields of all types take the same room, so that bytes stand above one another.
        self.room = max((kind.width + 1) * (self.width // kind.size) for kind in self.types)
        address: Callable[[int], str] = {"o": "{:07o}", "d": "{:07d}", "x": "{:06x}", "n": ""}[self.radix].format
        self.address: Callable[[int], str] = address
        self.margin = {"o": 7, "d": 7, "x": 6, "n": 0}[self.radix]
        if label is not None:
            shift = label - skip
            self.address = lambda offset: f"{address(offset)} ({address(offset + shift)})"
            self.margin += self.margin + 3

    def _line_width(self, unit_size: int) -> int:
        if self.options.width is None:
            return unit_size if unit_size > 16 else 16 // unit_size * unit_size
        wanted = _size(self.options.width, "-w") or 0
        if wanted == 0 or wanted % unit_size:
            self.process.warn(f"warning: invalid width {wanted}; using {unit_size} instead")
            return unit_size
        return wanted

    def run(self) -> int:
        strings = self.options.s_strings if self.options.s_strings is not None else self.options.strings
        if strings is not None:
            self._strings(_size(strings, "-S") or 3)
            return self.status
        offset = self.skip
        previous = None
        starred = False
        rest = b""
        for chunk in self._chunks():
            data = rest + chunk
            whole = len(data) - len(data) % self.width
            self.process.budget.charge(whole // 64 + 1)
            out: list[str] = []
            for at in range(0, whole, self.width):
                line = data[at : at + self.width]
                if line == previous and not self.options.verbose:
                    if not starred:
                        out.append("*\n")
                        starred = True
                else:
                    out.append(self._line(line, offset + at))
                    previous, starred = line, False
            self.process.print("".join(out), end="")
            rest, offset = data[whole:], offset + whole
        if rest:
            self.process.print(self._line(rest, offset), end="")
            offset += len(rest)
        if self.radix != "n" and self.opened:
            self.process.print(self.address(offset))
        return self.status

    def _line(self, line: bytes, offset: int) -> str:
        rows: list[str] = []
        for index, kind in enumerate(self.types):
            start = self.address(offset) if index == 0 else " " * self.margin
            padded = line + bytes(-len(line) % kind.size)
            fields = kind.render(padded)
            count = self.width // kind.size
            pad = self.room - kind.width * count
            if pad == count:
                text = "".join([f" {field:>{kind.width}}" for field in fields])
            else:
                # What is left over goes before the fields, as evenly as it can.
                shares = [pad * (count - i) // count for i in range(len(fields) + 1)]
                text = "".join([f"{field:>{kind.width + shares[i] - shares[i + 1]}}" for i, field in enumerate(fields)])
            if kind.trailer:
                self.process.budget.charge_size(self.room)
                text += " " * (self.room - len(text)) + f"  >{line.translate(_DOTS).decode()}<"
            rows.append(start + text + "\n")
        return "".join(rows)

    def _chunks(self) -> Iterator[bytes]:
        skip, left = self.skip, self.limit
        for name in self.names:
            if left == 0:
                self.opened = True
                break
            try:
                for chunk in self.process.chunks(name, 1 << 16 if left is None else min(left + skip, 1 << 16) or 1):
                    if skip >= len(chunk):
                        skip -= len(chunk)
                        continue
                    data = chunk[skip:]
                    skip = 0
                    if left is not None:
                        data = data[:left]
                        left -= len(data)
                    yield data
                    if left == 0:
                        break
            except SysError as error:
                self.process.stdout.flush()
                self.process.warn(f"{quote_if_odd(name)}: {error.reason}")
                self.status = 1
                self.opened = self.opened or error.errno == EISDIR
            else:
                self.opened = True
        if skip and self.opened:
            raise UsageError("cannot skip past end of combined input", hint=False)

    def _strings(self, least: int) -> None:
        """Runs of printable characters that a NUL ends."""
        runs = re.compile(_TEXT + b"+")
        held = b""
        offset = self.skip
        for chunk in self._chunks():
            data = held + chunk
            self.process.budget.charge(len(chunk) // 4096 + 1)
            self.process.budget.charge_size(len(data))
            for match in runs.finditer(data):
                if match.end() - match.start() < least or data[match.end() : match.end() + 1] != b"\0":
                    continue
                text = "".join(_ESCAPES.get(byte, chr(byte)) for byte in match[0])
                where = self.address(offset + match.start()) + " " if self.radix != "n" else ""
                self.process.print(where + text)
            keep = data.rfind(b"\0") + 1
            held, offset = data[keep:], offset + keep


_ESCAPES = {7: "\\a", 8: "\\b", 12: "\\f", 10: "\\n", 13: "\\r", 9: "\\t", 11: "\\v"}
