"""strings - print the sequences of printable characters in files

Usage: strings [OPTION]... [FILE]...

Print the sequences of at least 4 printable characters in each FILE; with no FILE, in standard input.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("-a", "--all", "scan the entire file (the default)")
    data: bool = flag("-d", "--data", "only scan the data sections (here: the entire file)")
    names: bool = flag("-f", "--print-file-name", "print the name of the file before each string")
    least: str = value("-n", "--bytes", "print sequences of at least MIN characters", metavar="MIN", default="4")
    radix: str | None = value("-t", "--radix", "print the offset in base 8, 10 or 16: o, d or x", metavar="{o,d,x}")
    octal: bool = flag("-o", "an alias for --radix=o")
    encoding: str = value(
        "-e",
        "--encoding",
        "characters are s, S (7, 8 bit), b, l (16 bit), B, L (32 bit)",
        metavar="ENCODING",
        default="s",
    )
    whitespace: bool = flag("-w", "--include-all-whitespace", "include all whitespace as valid string characters")
    separator: str = value("-s", "--output-separator", "the separator between strings", metavar="STRING", default="\n")
    target: str | None = value("-T", "--target", "specify the binary file format (ignored)", metavar="BFDNAME")
    unicode: str | None = value("-U", "--unicode", "how to show UTF-8 (default: no special treatment)", metavar="HOW")


@utility("strings", Options, digits="least")
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not (options.least.isascii() and options.least.isdecimal()):
        raise UsageError(f"invalid integer argument {options.least}", hint=False)
    least = min(int(options.least[:10]), 1 << 31)
    if least < 1:
        raise UsageError(f"invalid minimum string length {options.least}", hint=False)
    if options.encoding not in ("s", "S", "b", "l", "B", "L"):
        raise UsageError(f"invalid option -- '{options.encoding}'", hint=False)
    if options.radix not in (None, "o", "d", "x"):
        raise UsageError(f"invalid option -- '{options.radix}'", hint=False)
    radix = options.radix or ("o" if options.octal else "")
    separator = fsencode(options.separator)
    status = 0
    for name in operands or ["-"]:
        before = fsencode(f"{'{standard input}' if name == '-' else name}: ") if options.names else b""
        try:
            if name != "-" and process.fs.stat(name).is_dir:
                process.warn(f"Warning: '{name}' is a directory")
                status = 1
                continue
            for offset, text in find(process, name, options.encoding, least, options.whitespace):
                where = f"{offset:7{radix}} ".encode() if radix else b""
                process.stdout.write(before + where + text + separator)
        except SysError as error:
            reason = "No such file" if error.name == "ENOENT" else error.reason
            process.warn(f"'{name}': {reason}" if error.name == "ENOENT" else f"{name}: {reason}")
            status = 1
    return status


def find(process: Process, name: str, encoding: str, least: int, whitespace: bool) -> Iterator[tuple[int, bytes]]:
    """Offsets and strings. A string that reaches the end of a piece waits for the next one."""
    blanks = b"\t\n\v\f\r" if whitespace else b"\t"
    wanted = bytes(range(0x20, 0x7F)) + blanks + (bytes(range(0x80, 0x100)) if encoding == "S" else b"")
    one = b"[" + re.escape(wanted) + b"]"
    zeros = {"b": 1, "l": 1, "B": 3, "L": 3}.get(encoding, 0)
    if zeros:
        one = b"(?:" + (rb"\0" * zeros + one if encoding in "bB" else one + rb"\0" * zeros) + b")"
    runs = re.compile(one + b"+")
    size = least * (zeros + 1)
    ends = bytes(0 if byte in wanted or (zeros and byte == 0) else 1 for byte in range(256))
    held = b""
    base = 0
    for chunk in process.chunks(name):
        data = held + chunk
        process.budget.charge(len(chunk) // 4096 + 1)
        process.budget.charge_size(len(data))
        # Only a run that touches the end can go on: it begins behind the last byte that ends one.
        start = data.translate(ends).rfind(1) + 1
        if zeros:
            start = max(start, data.rfind(bytes(zeros + 1)) + 1)
        for match in runs.finditer(data, 0, start):
            if match.end() - match.start() >= size:
                yield base + match.start(), match[0].replace(b"\0", b"") if zeros else match[0]
        held, base = data[start:], base + start
    for match in runs.finditer(held):
        if match.end() - match.start() >= size:
            yield base + match.start(), match[0].replace(b"\0", b"") if zeros else match[0]
