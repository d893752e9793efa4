"""cksum - compute and verify file checksums

Usage: cksum [OPTION]... [FILE]...

Print or verify checksums; by default the 32-bit CRC and the size. With no FILE, or when FILE is -, read standard input.
"""

import base64
import hashlib
from functools import cache

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin import sum as sum_utility
from belljar.bin._digest import Algorithm, Checker, compute, digest_length, escape, refuse_checking_options
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.quoting import quote_if_odd
from belljar.kernel.process import Process

_NAMED = {
    "md5": Algorithm("MD5", lambda _: hashlib.md5(usedforsecurity=False), 128),
    "sha1": Algorithm("SHA1", lambda _: hashlib.sha1(usedforsecurity=False), 160),
    "sha224": Algorithm("SHA224", lambda _: hashlib.sha224(), 224),
    "sha256": Algorithm("SHA256", lambda _: hashlib.sha256(), 256),
    "sha384": Algorithm("SHA384", lambda _: hashlib.sha384(), 384),
    "sha512": Algorithm("SHA512", lambda _: hashlib.sha512(), 512),
    "sha3": Algorithm("SHA3", lambda bits: hashlib.new(f"sha3_{bits or 512}"), 512, True),
    "sm3": Algorithm("SM3", lambda _: hashlib.new("sm3", usedforsecurity=False), 256),
    "blake2b": Algorithm("BLAKE2b", lambda bits: hashlib.blake2b(digest_size=(bits or 512) // 8), 512, True),
}


_LISTED = ("bsd", "sysv", "crc", "md5", "sha1", "sha224", "sha256", "sha384", "sha512", "blake2b", "sm3")


def _algorithm(tag: str, chosen: str | None) -> Algorithm | None:
    """The algorithm of a line of a list: the chosen one, or else the one its tag names."""
    if chosen is not None:
        return _NAMED[chosen] if tag in ("", _NAMED[chosen].tag) else None
    return next((algorithm for algorithm in _NAMED.values() if algorithm.tag == tag), None)


@dataclass(frozen=True, slots=True)
class Options:
    algorithm: str | None = value(
        "-a", "--algorithm", "crc (the default), sysv, bsd, md5, sha1 ... sha512, blake2b, sm3", metavar="TYPE"
    )
    base64: bool = flag("--base64", "emit base64-encoded digests, not hexadecimal")
    check: bool = flag("-c", "--check", "read checksums from the FILEs and check them")
    length: str | None = value("-l", "--length", "digest length in bits", metavar="BITS")
    raw: bool = flag("--raw", "emit a raw binary digest, not hexadecimal")
    tag: bool = flag("--tag", "create a BSD-style checksum (the default)")
    untagged: bool = flag("--untagged", "create a reversed style checksum, without digest type")
    zero: bool = flag("-z", "--zero", "end each output line with NUL, not newline")
    ignore_missing: bool = flag("--ignore-missing", "don't fail or report status for missing files")
    report: str = choice(
        {"--quiet": "quiet", "--status": "status", "-w": "warn", "--warn": "warn"},
        "print no OK (--quiet), nothing at all (--status), or also what is wrong with a line (-w)",
        "",
    )
    strict: bool = flag("--strict", "exit non-zero for improperly formatted checksum lines")
    debug: bool = flag("--debug", "indicate which implementation is used")


@utility("cksum", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.algorithm not in _NAMED and options.algorithm is not None:
        pick(process, "--algorithm", options.algorithm, {name: () for name in _LISTED}, abbreviated=False)
    if options.length is not None and options.algorithm not in ("blake2b", "sha3"):
        raise UsageError("--length is only supported with --algorithm=blake2b", hint=False)
    if options.check:
        if options.algorithm in ("bsd", "sysv", "crc"):
            raise UsageError("--check is not supported with --algorithm={bsd,sysv,crc}", hint=False)
        if options.tag:
            raise UsageError("the --tag option is meaningless when verifying checksums")
        return Checker(process, options, lambda tag: _algorithm(tag, options.algorithm)).run(operands or ["-"])
    refuse_checking_options(options)
    status = 0
    for name in operands or ["-"]:
        try:
            if name != "-" and process.fs.stat(name).is_dir:
                process.warn(f"{name}: Is a directory")
                status = 1
                continue
            emit(process, options, name, shown=bool(operands))
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
    return status


def emit(process: Process, options: Options, name: str, *, shown: bool) -> None:
    end = "\0" if options.zero else "\n"
    suffix = f" {name}" if shown else ""
    if options.algorithm in (None, "crc"):
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
