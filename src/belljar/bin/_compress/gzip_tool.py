"""gzip's behaviour, whatever name it is called by: names, messages, listing."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator
from itertools import chain
from types import MappingProxyType

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import basename, fsdecode, fsencode
from belljar.abi.records import NANO, Stat
from belljar.bin._compress.codecs import GZIP, Corrupt, GzipEncoder, encode
from belljar.bin._compress.files import Failed, ListingOptions, Tool
from belljar.bin._kit import flag
from belljar.bin._kit.clock import format_time, zone_of
from belljar.kernel.process import Process

FHCRC, FEXTRA, FNAME, FCOMMENT = 2, 4, 8, 16
"""Flags of a gzip header (RFC 1952)."""
_WORDS = {
    "magic": "not in gzip format",
    "empty": "unexpected end of file",
    "eof": "unexpected end of file",
    "crc": "invalid compressed data--crc error",
    "length": "invalid compressed data--length error",
    "format": "invalid compressed data--format violated",
    "garbage": "decompression OK, trailing garbage ignored",
}


@dataclass(frozen=True, slots=True)
class GzipOptions(ListingOptions):
    no_name: bool = flag("-n", "--no-name", "do not save or restore the original name and timestamp")
    name: bool = flag("-N", "--name", "save or restore the original name and timestamp")
    recursive: bool = flag("-r", "--recursive", "operate recursively on directories")
    rsyncable: bool = flag("--rsyncable", "(accepted)")
    synchronous: bool = flag("--synchronous", "(accepted)")
    ascii: bool = flag("-a", "--ascii", "(ignored)")


def run(process: Process, options: GzipOptions, operands: list[str], *, decompress: bool, stdout: bool) -> int:
    """gzip, or gunzip (`decompress`), or zcat (`stdout` too). Messages say gzip: the others are scripts around it."""
    tool = Gzip(process, options, "gzip")
    tool.decompressing = tool.decompressing or decompress or options.list
    tool.to_stdout = tool.to_stdout or stdout
    if options.list:
        return tool.list(operands)
    status = tool.run(operands)
    return tool.combine(status, tool.late)


class Gzip(Tool):
    codec = GZIP
    suffix = ".gz"
    known = MappingProxyType(
        {".gz": "", "-gz": "", ".z": "", "-z": "", "_z": "", ".Z": "", ".tgz": ".tar", ".taz": ".tar"}
    )
    options: GzipOptions

    def __init__(self, process: Process, options: GzipOptions, name: str) -> None:
        super().__init__(process, options, name)
        if options.suffix is not None:
            self.suffix = options.suffix
            self.known = MappingProxyType({**self.known, options.suffix: ""})

    def combine(self, old: int, new: int) -> int:
        return 1 if 1 in (old, new) else max(old, new)

    def find(self, name: str) -> tuple[str, Stat]:
        try:
            return name, self.process.fs.stat(name)
        except SysError:
            if not self.decompressing or (self.process.name == "gzip" and not self.options.decompress):
                raise
            if name.endswith(tuple(self.known)):
                raise
            longer = name + self.suffix
            try:
                return longer, self.process.fs.stat(longer)
            except SysError as error:
                raise SysError(error.errno, longer) from None

    def missing(self, name: str, error: SysError) -> int:
        self.say(f"{error.path or name}: {error.reason}")
        return 1

    def is_directory(self, name: str) -> int:
        if not self.options.recursive:
            self._warn(f"{name} is a directory -- ignored")
            return 2
        status = 0
        for entry in sorted(self.process.fs.readdir(name)):
            try:
                status = self.combine(status, self.one(f"{name.rstrip('/')}/{entry.name}"))
            except Failed as failed:
                status = self.combine(status, failed.status)
        return status

    def _warn(self, text: str) -> None:
        if not self.options.quiet:
            self.say(text)

    def exists(self, target: str) -> int:
        if self.options.quiet:
            return 2
        self.process.error(f"gzip: {target} already exists;\tnot overwritten\n")
        return 2

    def has_suffix(self, name: str) -> int:
        # Silent with -r, where it is what one expects to meet.
        suffix = next(s for s in sorted(self.known, key=len, reverse=True) if name.endswith(s))
        if not self.options.recursive or self.options.verbose:
            self._warn(f"{name} already has {suffix} suffix -- unchanged")
        return 0

    def odd_suffix(self, name: str) -> str:
        if not self.options.recursive:
            self._warn(f"{name}: unknown suffix -- ignored")
        raise Failed(2)

    def corrupt(self, name: str, target: str, error: Corrupt) -> int:
        if not (error.kind == "garbage" and self.options.quiet):
            self.process.error(f"\ngzip: {name}: {_WORDS[error.kind]}\n")
        return 2 if error.kind == "garbage" else 1

    def done(self, name: str, target: str) -> None:
        if not self.options.verbose:
            return
        if self.options.test:
            self.process.error(f"{name}:\t OK\n")
            return
        if name == "stdin" and self.decompressing:
            return
        packed, plain = (self.read, self.written) if self.decompressing else (self.written, self.read)
        label = b"" if name == "stdin" or self.options.no_name else fsencode(basename(name)) + b"\0"
        overhead = 18 + (self._overhead - 18 if self.decompressing and self._overhead else len(label))
        shown = ratio(plain - (packed - overhead), plain)
        verb = "created" if self.options.keep and not self.to_stdout else "replaced with"
        self.process.error(f"{shown}\n" if name == "stdin" else f"{name}:\t{shown} -- {verb} {target}\n")

    def decode(self, chunks: Iterable[bytes]) -> Iterator[bytes]:
        source = iter(chunks)
        head = next(source, b"")
        everything = chain([head] if head else [], source)
        if head.startswith(b"\x1f\x8b") and len(head) >= 10:
            self._overhead = header_size(head[:4096]) + 8
        elif self.options.force and self.to_stdout:
            return everything
        return super().decode(everything)

    def encode(self, chunks: Iterable[bytes], name: str, stat: Stat | None) -> Iterator[bytes]:
        keeps_name = stat is not None and not self.options.no_name
        label = fsencode(basename(name)) if keeps_name else b""
        mtime = stat.mtime // NANO if stat is not None and keeps_name else 0
        return encode(chunks, GzipEncoder(self.level, label, mtime))

    def target(self, name: str) -> str:
        target = super().target(name)
        if self.decompressing and self.options.name:
            with_name = original_name(next(iter(self.process.chunks(name, 4096)), b""))
            if with_name:
                return target[: len(target) - len(basename(target))] + basename(with_name)
        return target

    # -l

    def list(self, operands: list[str]) -> int:
        status = 0
        verbose = bool(self.options.verbose)
        totals = [0, 0]
        heading = "method  crc     date  time  " if verbose else ""
        if not self.options.quiet:
            self.process.print(f"{heading}         compressed        uncompressed  ratio uncompressed_name")
        for name in operands or ["-"]:
            try:
                packed, plain, crc, stat = self._measure(name)
            except SysError as error:
                status = self.missing(name, error)
                continue
            except Corrupt as error:
                status = self.corrupt("stdin" if name == "-" else name, "", error)
                continue
            totals[0] += packed
            totals[1] += plain
            details = ""
            if verbose:
                when = stat.mtime if stat is not None else self.process.kernel.now()
                details = f"defla {crc:08x} {format_time('%b %e %H:%M', when, zone_of(self.process.env))} "
            shown = "stdout" if name == "-" else super().target(name)
            share = ratio(plain - (packed - self._overhead), plain)
            self.process.print(f"{details}{packed:19d} {plain:19d} {share} {shown}")
        if len(operands) > 1 and not self.options.quiet:
            gap = " " * 28 if verbose else ""
            # As gzip has it: only the last file's header is left out of the sum.
            share = ratio(totals[1] - (totals[0] - self._overhead), totals[1])
            self.process.print(f"{gap}{totals[0]:19d} {totals[1]:19d} {share} (totals)")
        return status

    _overhead = 0

    def _measure(self, name: str) -> tuple[int, int, int, Stat | None]:
        stat = None if name == "-" else self.process.fs.stat(name)
        packed = plain = 0
        head = tail = b""
        for chunk in self.process.chunks(name):
            packed += len(chunk)
            head = (head + chunk[:4096])[:4096]
            tail = (tail + chunk)[-8:]
        if not head:
            raise Corrupt("eof")
        if not head.startswith(b"\x1f\x8b"):
            raise Corrupt("magic")
        if packed < 18:
            raise Corrupt("eof")
        crc, plain = struct.unpack("<II", tail)
        self._overhead = header_size(head) + 8
        return packed, plain, crc, stat


def ratio(saved: int, whole: int) -> str:
    """gzip's percentage: five places and a sign."""
    if whole == 0:
        return "  0.0%"
    return f"{100.0 * saved / whole:5.1f}%"


def _after_extra(head: bytes) -> int:
    position = 10
    if len(head) > 12 and head[3] & FEXTRA:
        position += 2 + int.from_bytes(head[10:12], "little")
    return position


def original_name(head: bytes) -> str:
    """The name a gzip header carries."""
    if len(head) < 10 or not head[3] & FNAME:
        return ""
    start = _after_extra(head)
    end = head.find(b"\0", start)
    return fsdecode(head[start:end]) if end > start else ""


def header_size(head: bytes) -> int:
    position = _after_extra(head)
    for bit in (FNAME, FCOMMENT):
        if head[3] & bit:
            position = head.find(b"\0", position) + 1
    return position + (2 if head[3] & FHCRC else 0)
