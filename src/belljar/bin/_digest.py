"""What md5sum, sha1sum and their kin share: print digests of files, and check lists of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Protocol

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import Program, UsageError, choice, flag, line_batches, utility, value
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    binary: bool = choice({"-b": True, "--binary": True, "-t": False, "--text": False}, "read in binary or text mode")
    check: bool = flag("-c", "--check", "read checksums from the FILEs and check them")
    tag: bool = flag("--tag", "create a BSD-style checksum")
    zero: bool = flag("-z", "--zero", "end each output line with NUL, not newline, and disable file name escaping")
    ignore_missing: bool = flag("--ignore-missing", "don't fail or report status for missing files")
    quiet: bool = flag("--quiet", "don't print OK for each successfully verified file")
    status: bool = flag("--status", "don't output anything, status code shows success")
    strict: bool = flag("--strict", "exit non-zero for improperly formatted checksum lines")
    warn: bool = flag("-w", "--warn", "warn about improperly formatted checksum lines")


@dataclass(frozen=True, slots=True)
class LengthOptions(Options):
    length: str | None = value("-l", "--length", "digest length in bits; must be a multiple of 8", metavar="BITS")


class Hash(Protocol):
    def update(self, data: bytes, /) -> None: ...
    def hexdigest(self) -> str: ...


@dataclass(frozen=True, slots=True)
class Algorithm:
    """A digest: its BSD name, and how to begin one of so many bits (0: the longest)."""

    tag: str
    new: Callable[[int], Hash]
    bits: int
    sizable: bool = False


def digest_utility(name: str, algorithm: Algorithm, doc: str) -> Program:
    """The utility of one algorithm."""
    options_type = LengthOptions if algorithm.sizable else Options

    def main(process: Process, options: Options, operands: list[str]) -> int:
        bits = digest_length(process, options, algorithm)
        if options.check:
            if options.tag:
                raise UsageError("the --tag option is meaningless when verifying checksums")
            if options.zero:
                raise UsageError("the --zero option is not supported when verifying checksums")
            return Checker(process, options, algorithm).run(operands or ["-"])
        for given, text in ((options.ignore_missing, "ignore-missing"), (options.status, "status"),
                            (options.warn, "warn"), (options.quiet, "quiet"), (options.strict, "strict")):  # fmt: skip
            if given:
                raise UsageError(f"the --{text} option is meaningful only when verifying checksums")
        return write_digests(process, options, algorithm, bits, operands or ["-"])

    return utility(name, options_type, doc=doc)(main)


def digest_length(process: Process, options: object, algorithm: Algorithm) -> int:
    text = getattr(options, "length", None)
    if text is None:
        return 0
    if not text.isdecimal():
        raise UsageError(f"invalid length: {quote(text, process.env)}", hint=False)
    bits = int(text[-18:])
    if bits % 8:
        raise UsageError(
            f"invalid length: {quote(text, process.env)}\n{process.name}: length is not a multiple of 8", hint=False
        )
    if bits > algorithm.bits or len(text) > 18:
        raise UsageError(
            f"invalid length: {quote(text, process.env)}\n{process.name}: maximum digest length for "
            f"{quote(algorithm.tag, process.env)} is {algorithm.bits} bits",
            hint=False,
        )
    return bits


def compute(process: Process, name: str, algorithm: Algorithm, bits: int) -> str:
    digest = algorithm.new(bits)
    for chunk in process.chunks(name, 1 << 20):
        process.budget.charge(len(chunk) >> 14)
        digest.update(chunk)
    return digest.hexdigest()


def write_digests(process: Process, options: Options, algorithm: Algorithm, bits: int, names: list[str]) -> int:
    status = 0
    for name in names:
        try:
            if name != "-" and process.fs.stat(name).is_dir:
                process.warn(f"{name}: Is a directory")
                status = 1
                continue
            value = compute(process, name, algorithm, bits)
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
            continue
        shown, escaped = (name, False) if options.zero else escape(name)
        if options.tag:
            suffix = f"-{bits}" if bits and bits != algorithm.bits else ""
            line = f"{algorithm.tag}{suffix} ({shown}) = {value}"
        else:
            line = f"{value} {'*' if options.binary else ' '}{shown}"
        process.stdout.write(fsencode(("\\" if escaped else "") + line) + (b"\0" if options.zero else b"\n"))
    return status


def escape(name: str) -> tuple[str, bool]:
    """A name that fits on a line, and whether that took escapes."""
    if not re.search(r"[\\\n\r]", name):
        return name, False
    return name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r"), True


def unescape(name: str) -> str | None:
    if re.search(r"\\(?![nr\\])", name):
        return None
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r", "\\": "\\"}[m[1]], name)


class Checker:
    """Verifies the digests listed in files."""

    def __init__(self, process: Process, options: Options, algorithm: Algorithm) -> None:
        self._process = process
        self._options = options
        self._algorithm = algorithm

    def run(self, names: list[str]) -> int:
        return max(self._check_list(name) for name in names)

    def _check_list(self, source: str) -> int:
        process, options = self._process, self._options
        shown = "'standard input'" if source == "-" else source
        bad_lines = mismatched = unreadable = checked = matched = 0
        try:
            for number, raw in enumerate(line_batches(process, source).lines(), 1):
                line = fsdecode(raw).removesuffix("\r")
                if not line or line.startswith("#"):
                    continue
                parsed = self._parse(line)
                if parsed is None:
                    bad_lines += 1
                    if options.warn:
                        process.warn(f"{shown}: {number}: improperly formatted {self._algorithm.tag} checksum line")
                    continue
                checked += 1
                outcome = self._verify(*parsed)
                matched += outcome == "OK"
                mismatched += outcome == "FAILED"
                unreadable += outcome == "FAILED open or read"
        except SysError as error:
            process.warn(f"{source}: {error.reason}")
            return 1
        if checked == 0:
            process.warn(f"{shown}: no properly formatted checksum lines found")
            return 1
        if not options.status:
            self._summarise(bad_lines, "line is improperly formatted", "lines are improperly formatted")
            self._summarise(unreadable, "listed file could not be read", "listed files could not be read")
            self._summarise(mismatched, "computed checksum did NOT match", "computed checksums did NOT match")
            if options.ignore_missing and not matched:
                process.warn(f"{shown}: no file was verified")
        failed = mismatched or unreadable or (options.strict and bad_lines) or (options.ignore_missing and not matched)
        return 1 if failed else 0

    def _summarise(self, count: int, one: str, several: str) -> None:
        if count:
            self._process.warn(f"WARNING: {count} {one if count == 1 else several}")

    def _parse(self, line: str) -> tuple[str, int, str] | None:
        """Digest, its bits, and the file name, of either form of line."""
        escaped = line.startswith("\\")
        body = line[1:] if escaped else line
        tagged = re.fullmatch(rf"{re.escape(self._algorithm.tag)}(?:-(\d+))? ?\((.*)\) ?= ?([0-9a-fA-F]+)", body, re.S)
        if tagged:
            bits, name, value = int((tagged[1] or str(self._algorithm.bits))[:9]), tagged[2], tagged[3]
        else:
            plain = re.fullmatch(r"\s*([0-9a-fA-F]+)[ \t]([ *]?)(.+)", body, re.S)
            if plain is None:
                return None
            name, value = plain[3], plain[1]
            bits = len(value) * 4 if self._algorithm.sizable else self._algorithm.bits
        if len(value) * 4 != bits or bits > self._algorithm.bits or bits == 0 or bits % 8:
            return None
        final = unescape(name) if escaped else name
        return None if final is None else (value.lower(), bits, final)

    def _verify(self, expected: str, bits: int, name: str) -> str:
        process, options = self._process, self._options
        shown, escaped = escape(name)
        try:
            got = compute(process, name, self._algorithm, bits if self._algorithm.sizable else 0)
        except SysError as error:
            if options.ignore_missing and error.name == "ENOENT":
                return "missing"
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            outcome = "FAILED open or read"
        else:
            outcome = "OK" if got == expected else "FAILED"
        if not options.status and not (options.quiet and outcome == "OK"):
            process.print(f"{chr(92) if escaped else ''}{shown}: {outcome}")
        return outcome
