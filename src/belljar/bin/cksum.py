"""cksum - compute and verify file checksums

Usage: cksum [OPTION]... [FILE]...

Print or verify checksums; by default the 32-bit CRC and the size. With no FILE, or when FILE is -, read standard input.
"""

import base64
import hashlib
import re
from functools import cache

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin import sum as sum_utility
from belljar.bin._digest import Algorithm, compute, digest_length, escape, unescape
from belljar.bin._kit import flag, line_batches, utility, value
from belljar.bin._kit.choices import pick
from belljar.kernel.process import Process

_NAMED = {
    "md5": Algorithm("MD5", lambda _: hashlib.md5(usedforsecurity=False), 128),
    "sha1": Algorithm("SHA1", lambda _: hashlib.sha1(usedforsecurity=False), 160),
    "sha224": Algorithm("SHA224", lambda _: hashlib.sha224(), 224),
    "sha256": Algorithm("SHA256", lambda _: hashlib.sha256(), 256),
    "sha384": Algorithm("SHA384", lambda _: hashlib.sha384(), 384),
    "sha512": Algorithm("SHA512", lambda _: hashlib.sha512(), 512),
    "sha3": Algorithm("SHA3", lambda bits: hashlib.new(f"sha3_{bits or 512}"), 512, True),
    "blake2b": Algorithm("BLAKE2b", lambda bits: hashlib.blake2b(digest_size=(bits or 512) // 8), 512, True),
}


@dataclass(frozen=True, slots=True)
class Options:
    algorithm: str = value(
        "-a", "--algorithm", "crc, sysv, bsd, md5, sha1 ... sha512, blake2b", metavar="TYPE", default="crc"
    )
    base64: bool = flag("--base64", "emit base64-encoded digests, not hexadecimal")
    check: bool = flag("-c", "--check", "read checksums from the FILEs and check them")
    length: str | None = value("-l", "--length", "digest length in bits", metavar="BITS")
    raw: bool = flag("--raw", "emit a raw binary digest, not hexadecimal")
    tag: bool = flag("--tag", "create a BSD-style checksum (the default)")
    untagged: bool = flag("--untagged", "create a reversed style checksum, without digest type")
    zero: bool = flag("-z", "--zero", "end each output line with NUL, not newline")
    ignore_missing: bool = flag("--ignore-missing", "don't fail or report status for missing files")
    quiet: bool = flag("--quiet", "don't print OK for each successfully verified file")
    status: bool = flag("--status", "don't output anything, status code shows success")
    strict: bool = flag("--strict", "exit non-zero for improperly formatted checksum lines")
    warn: bool = flag("-w", "--warn", "warn about improperly formatted checksum lines")


@utility("cksum", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    pick(process, "--algorithm", options.algorithm, {name: () for name in ("bsd", "sysv", "crc", *_NAMED)})
    if options.check:
        return max(check(process, options, name) for name in operands or ["-"])
    status = 0
    for name in operands or ["-"]:
        try:
            if name != "-" and process.fs.stat(name).is_dir:
                process.warn(f"{name}: Is a directory")
                status = 1
                continue
            emit(process, options, name, shown=bool(operands))
        except SysError as error:
            process.warn(f"{name}: {error.reason}")
            status = 1
    return status


def emit(process: Process, options: Options, name: str, *, shown: bool) -> None:
    end = "\0" if options.zero else "\n"
    suffix = f" {name}" if shown else ""
    if options.algorithm == "crc":
        checksum, size = crc(process, name)
        process.print(f"{checksum} {size}{suffix}", end)
    elif options.algorithm == "bsd":
        checksum, size = sum_utility.bsd(process, name)
        process.print(f"{checksum:05d} {-(-size // 1024):5d}{suffix}", end)
    elif options.algorithm == "sysv":
        checksum, size = sum_utility.system_v(process, name)
        process.print(f"{checksum} {-(-size // 512)}{suffix}", end)
    else:
        algorithm = _NAMED[options.algorithm]
        bits = digest_length(process, options, algorithm)
        digest = compute(process, name, algorithm, bits)
        if options.raw:
            process.stdout.write(bytes.fromhex(digest))
            return
        if options.base64:
            digest = base64.b64encode(bytes.fromhex(digest)).decode()
        text, escaped = (name, False) if options.zero else escape(name)
        mark = "\\" if escaped else ""
        tag = algorithm.tag + (f"-{bits}" if bits and bits != algorithm.bits else "")
        process.print(mark + (f"{digest}  {text}" if options.untagged else f"{tag} ({text}) = {digest}"), end)


@cache
def _table() -> tuple[int, ...]:
    """The CRC of POSIX: polynomial 0x04C11DB7, most significant bit first."""
    table = []
    for byte in range(256):
        register = byte << 24
        for _ in range(8):
            register = (register << 1) ^ (0x04C11DB7 if register & 0x80000000 else 0)
        table.append(register & 0xFFFFFFFF)
    return tuple(table)


def crc(process: Process, name: str) -> tuple[int, int]:
    register = size = 0
    table = _table()
    for chunk in process.chunks(name):
        process.budget.charge(len(chunk) >> 3)
        size += len(chunk)
        for byte in chunk:
            register = ((register << 8) & 0xFFFFFFFF) ^ table[(register >> 24) ^ byte]
    length = size
    while length:
        register = ((register << 8) & 0xFFFFFFFF) ^ table[(register >> 24) ^ (length & 0xFF)]
        length >>= 8
    return register ^ 0xFFFFFFFF, size


_TAGGED = re.compile(r"\\?([A-Za-z0-9]+?)(?:-(\d+))? ?\((.*)\) ?= ?([0-9A-Za-z+/]+={0,2})", re.S)
_PLAIN = re.compile(r"\\?([0-9A-Za-z+/]+={0,2})[ \t][ *](.+)", re.S)


def check(process: Process, options: Options, source: str) -> int:
    wrong = unreadable = checked = bad = 0
    try:
        for number, raw in enumerate(line_batches(process, source).lines(), 1):
            line = fsdecode(raw)
            parsed = _parse(line, options)
            if parsed is None:
                bad += bool(line) and not line.startswith("#")
                if options.warn:
                    process.warn(f"{source}: {number}: improperly formatted checksum line")
                continue
            checked += 1
            algorithm, bits, name, expected = parsed
            try:
                outcome = "OK" if compute(process, name, algorithm, bits) == expected else "FAILED"
            except SysError as error:
                if options.ignore_missing and error.name == "ENOENT":
                    continue
                process.warn(f"{name}: {error.reason}")
                outcome = "FAILED open or read"
            wrong += outcome == "FAILED"
            unreadable += outcome.endswith("read")
            if not options.status and not (options.quiet and outcome == "OK"):
                process.print(f"{name}: {outcome}")
    except SysError as error:
        process.warn(f"{source}: {error.reason}")
        return 1
    if not checked:
        process.warn(f"{source}: no properly formatted checksum lines found")
        return 1
    if not options.status:
        for count, one, several in (
            (bad, "line is improperly formatted", "lines are improperly formatted"),
            (unreadable, "listed file could not be read", "listed files could not be read"),
            (wrong, "computed checksum did NOT match", "computed checksums did NOT match"),
        ):
            if count:
                process.warn(f"WARNING: {count} {one if count == 1 else several}")
    return 1 if wrong or unreadable or (bad and options.strict) else 0


def _parse(line: str, options: Options) -> tuple[Algorithm, int, str, str] | None:
    tagged = _TAGGED.fullmatch(line)
    if tagged is not None:
        name, digest = tagged[3], tagged[4]
        algorithm = next((a for a in _NAMED.values() if a.tag.lower() == tagged[1].lower()), None)
        if algorithm is None or (options.algorithm != "crc" and algorithm is not _NAMED.get(options.algorithm)):
            return None
        bits = int(tagged[2][:9]) if tagged[2] else algorithm.bits
    else:
        plain = _PLAIN.fullmatch(line)
        algorithm = _NAMED.get(options.algorithm)
        if plain is None or algorithm is None:
            return None
        digest, name = plain[1], plain[2]
        bits = algorithm.bits
    if algorithm.sizable and (bits % 8 or not 0 < bits <= algorithm.bits):
        return None
    expected = _hexadecimal(digest, bits)
    final = unescape(name) if line.startswith("\\") else name
    if expected is None or final is None or "\0" in final:
        return None
    return algorithm, bits if algorithm.sizable else 0, final, expected


def _hexadecimal(digest: str, bits: int) -> str | None:
    """A digest in either notation as lower-case hexadecimal; None if it has not that many bits."""
    if len(digest) * 4 == bits and re.fullmatch(r"[0-9a-fA-F]+", digest):
        return digest.lower()
    try:
        raw = base64.b64decode(digest, validate=True)
    except ValueError:
        return None
    return raw.hex() if len(raw) * 8 == bits else None
