"""xz's behaviour, whatever name it is called by: .xz and the older .lzma."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from types import MappingProxyType

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.records import Stat
from belljar.bin._compress.codecs import LZMA, XZ, Corrupt, encode, lzma_encoder, sniff, xz_encoder
from belljar.bin._compress.files import Failed, ListingOptions, Tool
from belljar.bin._kit import flag, value
from belljar.kernel.process import Process

_WORDS = {
    "magic": "File format not recognized",
    "empty": "File format not recognized",
    "eof": "Unexpected end of input",
    "garbage": "Unexpected end of input",
    "format": "Compressed data is corrupt",
    "memory": "Memory usage limit reached",
}
_CHECKS = {0: "None", 1: "CRC32", 4: "CRC64", 10: "SHA-256"}


@dataclass(frozen=True, slots=True)
class XzOptions(ListingOptions):
    extreme: bool = flag("-e", "--extreme", "try to improve compression ratio by using more CPU time")
    threads: str | None = value("-T", "--threads", "(accepted; one is used)", metavar="NUM")
    format: str | None = value("-F", "--format", "file format: auto, xz, lzma", metavar="FMT")
    check: str | None = value("-C", "--check", "(accepted; CRC64 is used)", metavar="CHECK")
    memory: str | None = value("-M", "--memlimit", "(accepted)", metavar="LIMIT")
    plain: bool = flag("-0", "the fastest preset")


def run(
    process: Process, options: XzOptions, operands: list[str], *, decompress: bool, stdout: bool, old: bool = False
) -> int:
    tool = Xz(process, options, process.name)
    if old or options.format in ("lzma", "alone"):
        tool.old = True
        tool.suffix = ".lzma"
    if options.suffix is not None:
        tool.suffix = options.suffix
        tool.known = MappingProxyType({**tool.known, options.suffix: ""})
    if options.decompress is None:
        tool.decompressing = tool.decompressing or decompress
    tool.to_stdout = tool.to_stdout or stdout
    if options.list:
        return tool.list(operands)
    return max(tool.run(operands), tool.late)


class Xz(Tool):
    codec = XZ
    suffix = ".xz"
    known = MappingProxyType({".xz": "", ".lzma": "", ".txz": ".tar", ".tlz": ".tar"})
    options: XzOptions
    old = False

    def combine(self, old: int, new: int) -> int:
        return 1 if 1 in (old, new) else max(old, new)

    def find(self, name: str) -> tuple[str, Stat]:
        return name, self.process.fs.stat(name)

    def missing(self, name: str, error: SysError) -> int:
        self.say(f"{name}: {error.reason}")
        return 1

    def is_directory(self, name: str) -> int:
        if not self.options.quiet:
            self.say(f"{name}: Is a directory, skipping")
        return 2

    def exists(self, target: str) -> int:
        self.say(f"{target}: File exists")
        return 1

    def has_suffix(self, name: str) -> int:
        suffix = next(s for s in self.known if name.endswith(s))
        if not self.options.quiet:
            self.say(f"{name}: File already has `{suffix}' suffix, skipping")
        return 2

    def odd_suffix(self, name: str) -> str:
        head = next(iter(self.process.chunks(name, 64)), b"")
        if sniff(head) not in (XZ, LZMA):
            # The contents are looked at before the name.
            self.say(f"{name}: {_WORDS['magic']}")
            raise Failed(1)
        self.say(f"{name}: Filename has an unknown suffix, skipping")
        raise Failed(2)

    def corrupt(self, name: str, target: str, error: Corrupt) -> int:
        self.say(f"{'(stdin)' if name == 'stdin' else name}: {_WORDS[error.kind]}")
        return 1

    def decode(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        source = iter(chunks)
        head = next(source, b"")
        everything = chain([head] if head else [], source)
        codec = LZMA if sniff(head) is LZMA else XZ
        if self.options.force and self.to_stdout and sniff(head) not in (XZ, LZMA):
            return everything
        return codec.decode(everything, self.process.budget.charge)

    def encode(self, chunks: Iterable[bytes], name: str, stat: Stat | None) -> Iterator[bytes]:
        level = 0 if self.options.plain else self.level
        encoder = lzma_encoder if self.old else xz_encoder
        return encode(chunks, encoder(level, extreme=self.options.extreme))

    def done(self, name: str, target: str) -> None:
        if not self.options.verbose:
            return
        packed, plain = (self.read, self.written) if self.decompressing else (self.written, self.read)
        share = packed / plain if plain else 10.0
        shown = "> 9.999" if share > 9.999 else f"= {share:.3f}"
        self.process.error(f"{'(stdin)' if name == 'stdin' else name}: {size(packed)} / {size(plain)} {shown}\n")

    # -l

    def list(self, operands: list[str]) -> int:
        status = 0
        rows: list[tuple[int, int, int, int, set[int], str]] = []
        for name in operands:
            try:
                rows.append((*measure(self.process, name), name))
            except SysError as error:
                status = self.missing(name, error)
            except Corrupt as error:
                status = self.corrupt(name, "", error)
        if rows:
            self.process.print("Strms  Blocks   Compressed Uncompressed  Ratio  Check   Filename")
        for row in rows:
            self._row(*row)
        if len(operands) > 1:
            self.process.print("-" * 79)
            checks = set().union(*(row[4] for row in rows)) if rows else set()
            files = f"{len(rows)} files" if len(rows) != 1 else "1 file"
            streams, blocks, packed, plain = (sum(row[i] for row in rows) for i in range(4))  # type: ignore[misc]
            self._row(streams, blocks, packed, plain, checks, files)
        return status

    def _row(self, streams: int, blocks: int, packed: int, plain: int, checks: set[int], name: str) -> None:
        share = f"{packed / plain:5.3f}" if plain and packed / plain <= 9.999 else "---"
        kinds = ",".join(_CHECKS.get(check, f"Unknown-{check}") for check in sorted(checks))
        self.process.print(
            f"{streams:5d} {blocks:7d} {size(packed):>12} {size(plain):>12} {share:>6}  {kinds:<7} {name}"
        )


def size(value: int) -> str:
    """As xz shows sizes: exact bytes below 10,000, else one decimal of a binary unit."""
    if value < 10_000:
        return f"{value:,} B"
    number = float(value)
    unit = ""
    for unit in ("KiB", "MiB", "GiB", "TiB"):  # noqa: B007
        number /= 1024
        if number < 9999.95:
            break
    return f"{number:,.1f} {unit}"


def measure(process: Process, name: str) -> tuple[int, int, int, int, set[int]]:
    """Streams, blocks, packed and plain size, and checks of a .xz file, from its indexes alone."""
    fd = process.open(name)
    try:
        file = process.fds[fd]
        end = packed = process.fstat(fd).size
        if file.pread(6, 0) != b"\xfd7zXZ\0":
            raise Corrupt("magic")
        streams = blocks = plain = 0
        checks: set[int] = set()
        while end > 0:
            process.budget.charge()
            footer = file.pread(12, end - 12) if end >= 32 else b""
            if footer[-4:] == b"\0\0\0\0":
                end -= 4
                continue
            if footer[-2:] != b"YZ":
                raise Corrupt("eof")
            length = (struct.unpack("<I", footer[4:8])[0] + 1) * 4
            process.budget.charge_size(length)
            index = file.pread(length, end - 12 - length)
            counts, position = _number(index, 1)
            total = 0
            for _ in range(counts):
                process.budget.charge()
                unpadded, position = _number(index, position)
                uncompressed, position = _number(index, position)
                total += (unpadded + 3) & ~3
                plain += uncompressed
            streams += 1
            blocks += counts
            checks.add(footer[9] & 15)
            end -= 12 + length + total + 12
        if end < 0:
            raise Corrupt("format")
        return streams, blocks, packed, plain, checks
    finally:
        process.close(fd)


def _number(data: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        if position >= len(data) or shift > 62:
            raise Corrupt("format")
        byte = data[position]
        position += 1
        value |= (byte & 0x7F) << shift
        if not byte & 0x80:
            return value, position
        shift += 7
