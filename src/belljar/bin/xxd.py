"""xxd - make a hex dump or do the reverse

Usage: xxd [-abeCdEipru] [-c COLS] [-g SIZE] [-l LEN] [-n NAME] [-o OFFSET] [-s SEEK] [INFILE [OUTFILE]]

-a toggle autoskip, -b binary digits, -c octets per line, -C capitalise variable names, -d offsets in decimal,
-e little-endian dump, -E EBCDIC, -g octets per group, -i C include file style, -l stop after LEN octets, -n the name
used by -i, -o add OFFSET to positions, -p plain dump, -r reverse, -s start at SEEK, -u upper case letters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_RDONLY, O_RDWR, SEEK_END
from belljar.bin._hex import DOTS
from belljar.bin._kit import utility
from belljar.kernel.process import Process

_MOST_COLUMNS = 256
_NUMBER = re.compile(r"[+-]*(0[xX][0-9a-fA-F]+|\d+)")


@dataclass(slots=True)
class Settings:
    mode: str = "normal"
    """normal, plain, bits, little, include"""
    reverse: bool = False
    autoskip: bool = False
    columns: int | None = None
    group: int | None = None
    length: int | None = None
    name: str | None = None
    offset: int = 0
    seek: int = 0
    from_end: bool = False
    upper: bool = False
    decimal: bool = False
    capital: bool = False
    ebcdic: bool = False


class Usage(Exception):
    """The command line is wrong."""


_LONG = {
    "autoskip": "a", "bits": "b", "cols": "c", "capitalize": "C", "groupsize": "g", "help": "h", "include": "i",
    "len": "l", "name": "n", "offset": "o", "plain": "p", "postscript": "p", "ps": "p", "revert": "r", "seek": "s",
    "skip": "s", "uppercase": "u", "version": "v", "EBCDIC": "E",
}  # fmt: skip


@utility("xxd")
def main(process: Process, args: list[str]) -> int:
    try:
        settings, operands = parse(args)
    except Usage as error:
        if str(error) == "help":
            process.error(main.help())
            return 1
        if str(error) == "version":
            process.error("xxd 2022-01-14 as belljar has it\n")
            return 0
        process.error(f"xxd: {error}\n" if str(error) else main.help())
        return 1
    source = operands[0] if operands else "-"
    try:
        if settings.reverse:
            if settings.mode not in ("normal", "plain"):
                process.error("xxd: Sorry, cannot revert this type of hexdump\n")
                return 255
            return reverse(process, settings, source, operands[1] if len(operands) > 1 else "-")
        data = read(process, settings, source)
        pieces = _DUMPS[settings.mode](process, settings, data, source)
        if len(operands) > 1 and operands[1] != "-":
            process.write_file(operands[1], b"".join(pieces))
        else:
            for piece in pieces:
                process.stdout.write(piece)
    except SysError as error:
        process.error(f"xxd: {error.path or source}: {error.reason}\n")
        return 2
    except Usage as error:
        process.error(f"xxd: {error}\n")
        return 1
    return 0


def parse(args: list[str]) -> tuple[Settings, list[str]]:
    settings = Settings()
    index = 0
    while index < len(args):
        arg = args[index]
        if arg == "--":
            return settings, args[index + 1 :]
        if not arg.startswith("-") or arg == "-":
            break
        index += 1
        name = arg.lstrip("-")
        letter = _LONG.get(name, "")
        attached = ""
        if not letter:
            # -c8, -cols8: everything behind the letter's digits is the value.
            letter = name[:1]
            attached = name[1:]
            if match := re.fullmatch(r"([a-z]+)([0-9+-].*)", name):
                letter, attached = _LONG.get(match[1], match[1][:1]), match[2]
        if letter in ("c", "g", "l", "n", "o", "s"):
            if not attached:
                if index >= len(args):
                    raise Usage("")
                attached = args[index]
                index += 1
            _set(settings, letter, attached)
            continue
        letters = letter if name in _LONG else name
        for flag in letters:
            _flag(settings, flag)
    if len(args) - index > 2:
        raise Usage("")
    return settings, args[index:]


def _flag(settings: Settings, flag: str) -> None:
    match flag:
        case "a":
            settings.autoskip = not settings.autoskip
        case "b":
            settings.mode = "bits"
        case "e":
            settings.mode = "little"
        case "E":
            settings.ebcdic = True
        case "i":
            settings.mode = "include"
        case "p":
            settings.mode = "plain"
        case "r":
            settings.reverse = True
        case "u":
            settings.upper = True
        case "d":
            settings.decimal = True
        case "C":
            settings.capital = True
        case "h":
            raise Usage("help")
        case "v":
            raise Usage("version")
        case _:
            raise Usage("")


def _set(settings: Settings, letter: str, text: str) -> None:
    if letter == "n":
        settings.name = text
        return
    match = _NUMBER.match(text)
    number = 0
    if match is not None:
        digits = match[1]
        number = int(
            digits[:40], 16 if digits[:2].lower() == "0x" else 8 if digits[0] == "0" and digits.isdecimal() else 10
        )
    negative = text.lstrip("+").startswith("-")
    match letter:
        case "c":
            settings.columns = number
        case "g":
            settings.group = number
        case "l":
            settings.length = number
        case "o":
            settings.offset = -number if negative else number
        case "s":
            settings.seek, settings.from_end = number, negative


def read(process: Process, settings: Settings, source: str) -> Iterator[bytes]:
    fd = 0 if source == "-" else process.open(source, O_RDONLY)
    skip = settings.seek
    if settings.from_end:
        size = process.seek(fd, 0, SEEK_END)
        skip = max(0, size - settings.seek)
        process.seek(fd, 0)
        settings.seek = skip
    left = settings.length

    def chunks() -> Iterator[bytes]:
        nonlocal skip, left
        while left is None or left > 0:
            data = process.read(fd, 1 << 16)
            if not data:
                return
            if skip >= len(data):
                skip -= len(data)
                continue
            data, skip = data[skip:], 0
            if left is not None:
                data = data[:left]
                left -= len(data)
            yield data

    return chunks()


def _rows(process: Process, data: Iterator[bytes], columns: int) -> Iterator[bytes]:
    rest = b""
    for chunk in data:
        process.budget.charge(len(chunk) // 64 + 1)
        rest += chunk
        whole = len(rest) - len(rest) % columns
        for at in range(0, whole, columns):
            yield rest[at : at + columns]
        rest = rest[whole:]
    if rest:
        yield rest


def _columns(settings: Settings, default: int) -> int:
    columns = settings.columns or default
    if columns > _MOST_COLUMNS and settings.mode != "plain":
        raise Usage(f"invalid number of columns (max. {_MOST_COLUMNS}).")
    return columns


def dump(process: Process, settings: Settings, data: Iterator[bytes], source: str) -> Iterator[bytes]:
    bits, little = settings.mode == "bits", settings.mode == "little"
    columns = _columns(settings, 6 if bits else 16)
    group = settings.group if settings.group is not None else 1 if bits else 4 if little else 2
    group = min(group, columns) if group else columns
    digits = [f"{byte:08b}" if bits else f"{byte:02X}" if settings.upper else f"{byte:02x}" for byte in range(256)]
    each = len(digits[0])
    groups = -(-columns // group)
    width = columns * each + groups
    offset = settings.seek + settings.offset
    zeros = 0
    held = b""
    for row in _rows(process, data, columns):
        parts: list[str] = []
        for at in range(0, len(row), group):
            piece = row[at : at + group]
            text = "".join([digits[byte] for byte in (piece[::-1] if little else piece)])
            parts.append(text.rjust(group * each) if little else text)
        if little:
            width = groups * (group * each + 1)
        shown = row.translate(_EBCDIC if settings.ebcdic else DOTS).decode("latin-1")
        where = f"{offset:08d}" if settings.decimal else f"{offset:08x}"
        line = f"{where}: {' '.join(parts):<{width}} {shown}\n".encode()
        offset += len(row)
        if settings.autoskip and not row.strip(b"\0"):
            zeros += 1
            if zeros == 2:
                held = line
                continue
            if zeros > 2:
                if zeros == 3:
                    yield b"*\n"
                held = line
                continue
        else:
            if zeros == 2:
                yield held
            zeros = 0
        yield line
    if zeros >= 2:
        yield held


_EBCDIC = bytes(ord(char) if 32 <= ord(char) < 127 else 46 for char in (bytes([b]).decode("cp037") for b in range(256)))


def plain(process: Process, settings: Settings, data: Iterator[bytes], source: str) -> Iterator[bytes]:
    columns = 30 if settings.columns is None else settings.columns
    for row in _rows(process, data, columns or 1 << 16):
        text = row.hex()
        yield (text.upper() if settings.upper else text).encode() + (b"\n" if columns else b"")
    if not columns:
        yield b"\n"


def include(process: Process, settings: Settings, data: Iterator[bytes], source: str) -> Iterator[bytes]:
    columns = settings.columns or 12
    name = settings.name or (source if source != "-" else "")
    symbol = re.sub(r"[^A-Za-z0-9]", "_", name)
    if symbol[:1].isdecimal():
        symbol = "__" + symbol
    if settings.capital:
        symbol = symbol.upper()
    template = "0X%02X" if settings.upper else "0x%02x"
    if symbol:
        yield f"unsigned char {symbol}[] = {{\n".encode()
    total = 0
    for row in _rows(process, data, columns):
        yield (b",\n  " if total else b"  ") + ", ".join([template % byte for byte in row]).encode()
        total += len(row)
    if total:
        yield b"\n"
    if symbol:
        length = f"{symbol}_{'LEN' if settings.capital else 'len'}"
        yield f"}};\nunsigned int {length} = {total};\n".encode()


_DUMPS = {"normal": dump, "bits": dump, "little": dump, "plain": plain, "include": include}


def reverse(process: Process, settings: Settings, source: str, target: str) -> int:
    text = process.read_file(source)
    process.budget.charge(len(text) // 64 + 1)
    pieces = [(0, _plain_bytes(text))] if settings.mode == "plain" else list(_placed(settings, text))
    base = settings.seek
    if target != "-":
        fd = process.open(target, O_RDWR | O_CREAT)
        for offset, data in pieces:
            process.seek(fd, offset + base)
            process.write_all(fd, data)
        process.close(fd)
        return 0
    at = 0
    for offset, data in pieces:
        where = offset + base
        if where < at:
            process.stdout.flush()
            process.error("xxd: Sorry, cannot seek backwards.\n")
            return 5
        if where > at:
            process.budget.charge_size(where - at)
            process.stdout.write(bytes(where - at))
        process.stdout.write(data)
        at = where + len(data)
    return 0


def _plain_bytes(text: bytes) -> bytes:
    """Digits in pairs: a single bad character ends a pair half done, two of them the line."""
    text = text.translate(None, b" \t\r\v\f")
    text = re.sub(rb"[^0-9a-fA-F\n]{2}[^\n]*", b"!", text).replace(b"\n", b"")
    runs = re.split(rb"[^0-9a-fA-F]+", text)
    return bytes.fromhex(b"".join(run[: len(run) // 2 * 2] for run in runs).decode())


_DUMP_LINE = re.compile(rb"\s*([0-9a-fA-F]+)[: ]\s?(.*)")


def _placed(settings: Settings, text: bytes) -> Iterator[tuple[int, bytes]]:
    """Offsets and bytes of a dump's lines; the text column, two spaces on, is not looked at."""
    columns = settings.columns or 16
    for line in text.split(b"\n"):
        match = _DUMP_LINE.match(line)
        if match is None:
            continue
        body = match[2].partition(b"  ")[0]
        found = re.findall(rb"[0-9a-fA-F]{2}", body.replace(b" ", b""))[:columns]
        yield int(match[1], 16), bytes.fromhex(b"".join(found).decode())
