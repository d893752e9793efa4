"""The common part of md5sum, sha1sum and the like: print digests of files, and check lists of them."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable
from typing import Protocol

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EISDIR
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import Program, UsageError, choice, flag, line_batches, many, utility, value
from belljar.bin._kit.numbers import bounded
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    style: tuple[str, ...] = many(
        "read in binary or text mode; create a BSD-style checksum",
        constants={"-b": "binary", "--binary": "binary", "-t": "text", "--text": "text", "--tag": "tag"},
    )
    check: bool = flag("-c", "--check", "read checksums from the FILEs and check them")
    zero: bool = flag("-z", "--zero", "end each output line with NUL, not newline, and disable file name escaping")
    ignore_missing: bool = flag("--ignore-missing", "don't fail or report status for missing files")
    report: str = choice(
        {"--quiet": "quiet", "--status": "status", "-w": "warn", "--warn": "warn"},
        "print no OK (--quiet), nothing at all (--status), or also what is wrong with a line (-w)",
        "",
    )
    strict: bool = flag("--strict", "exit non-zero for improperly formatted checksum lines")


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
        tag = "tag" in options.style
        if tag and options.style[-1] == "text":
            raise UsageError("--tag does not support --text mode")
        if options.check:
            if options.zero:
                raise UsageError("the --zero option is not supported when verifying checksums")
            if tag:
                raise UsageError("the --tag option is meaningless when verifying checksums")
            if options.style:
                raise UsageError("the --binary and --text options are meaningless when verifying checksums")
            checker = Checker(process, options, lambda word: algorithm if word in ("", algorithm.tag) else None)
            return checker.run(operands or ["-"])
        refuse_checking_options(options)
        return write_digests(process, options, algorithm, bits, operands or ["-"])

    return utility(name, options_type, doc=doc)(main)


class CheckOptions(Protocol):
    """Options that only matter when checksums are verified."""

    @property
    def ignore_missing(self) -> bool: ...
    @property
    def report(self) -> str: ...
    @property
    def strict(self) -> bool: ...


def refuse_checking_options(options: CheckOptions) -> None:
    """UsageError if an option was given that only --check has a use for."""
    names = ["ignore-missing"] * options.ignore_missing + [options.report] * bool(options.report)
    for name in names + ["strict"] * options.strict:
        raise UsageError(f"the --{name} option is meaningful only when verifying checksums")


def digest_length(process: Process, options: object, algorithm: Algorithm) -> int:
    text = getattr(options, "length", None)
    if text is None:
        return 0
    bits = bounded(process, text, "length", 0, (1 << 64) - 1)
    if bits % 8:
        raise UsageError(
            f"invalid length: {quote(text, process.env)}\n{process.name}: length is not a multiple of 8", hint=False
        )
    if bits > algorithm.bits:
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
        if "tag" in options.style:
            suffix = f"-{bits}" if bits and bits != algorithm.bits else ""
            line = f"{algorithm.tag}{suffix} ({shown}) = {value}"
        else:
            mark = "*" if options.style[-1:] == ("binary",) else " "
            line = f"{value} {mark}{shown}"
        process.stdout.write(fsencode(("\\" if escaped else "") + line) + (b"\0" if options.zero else b"\n"))
    return status


def escape(name: str) -> tuple[str, bool]:
    """A name that fits on a line, and whether that took escapes."""
    if not re.search(r"[\\\n\r]", name):
        return name, False
    return name.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r"), True


def unescape(name: str) -> str | None:
    if not re.fullmatch(r"(?:[^\\]|\\[nr\\])*", name, re.S):
        return None
    return re.sub(r"\\(.)", lambda m: {"n": "\n", "r": "\r", "\\": "\\"}[m[1]], name)


class Checker:
    """Verifies the digests listed in files. `find` gives the algorithm of a line's tag, "" where there is none."""

    def __init__(self, process: Process, options: CheckOptions, find: Callable[[str], Algorithm | None]) -> None:
        self._process = process
        self._options = options
        self._find = find
        self._reversed: bool | None = None
        """Whether names follow their digest after one blank (BSD's `-r`) instead of two characters: all lines agree."""

    def run(self, names: list[str]) -> int:
        return max(self._check_list(name) for name in names)

    def _check_list(self, source: str) -> int:
        process, options = self._process, self._options
        shown = "'standard input'" if source == "-" else source
        bad_lines = mismatched = unreadable = checked = matched = 0
        try:
            for number, raw in enumerate(line_batches(process, source).lines(), 1):
                line = fsdecode(raw.partition(b"\0")[0]).removesuffix("\r")
                if not line or line.startswith("#"):
                    continue
                parsed = self._parse(line)
                if parsed is None:
                    bad_lines += 1
                    if options.report == "warn":
                        known = self._find("")
                        tag = f"{known.tag} " if known is not None else ""
                        process.warn(f"{shown}: {number}: improperly formatted {tag}checksum line")
                    continue
                checked += 1
                outcome = self._verify(*parsed)
                matched += outcome == "OK"
                mismatched += outcome == "FAILED"
                unreadable += outcome == "FAILED open or read"
        except SysError as error:
            process.warn(f"{source}: {'read error' if error.errno == EISDIR else error.reason}")
            return 1
        if checked == 0:
            process.warn(f"{shown}: no properly formatted checksum lines found")
            return 1
        if options.report != "status":
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

    def _parse(self, line: str) -> tuple[Algorithm, str, int, str] | None:
        """Algorithm, digest, its bits, and the file name, of either form of line."""
        body = line.lstrip(" \t")
        escaped = body.startswith("\\")
        body = body[1:] if escaped else body
        if tagged := _TAGGED.fullmatch(body):
            algorithm = self._find(tagged[1])
            if algorithm is None or (tagged[2] and not algorithm.sizable):
                return None
            bits, name, value = int((tagged[2] or str(algorithm.bits))[:9]), tagged[3], tagged[4]
        else:
            algorithm, plain = self._find(""), _PLAIN.fullmatch(body)
            if algorithm is None or plain is None:
                return None
            value, name = plain.groups()
            if len(name) == 1 or name[0] not in " *":
                if self._reversed is False:
                    return None
                self._reversed = True
            elif not self._reversed:
                self._reversed, name = False, name[1:]
            hexadecimal = re.fullmatch(r"[0-9a-fA-F]+", value) is not None
            bits = len(value) * 4 if algorithm.sizable and hexadecimal else algorithm.bits
        if bits > algorithm.bits or bits == 0 or bits % 8:
            return None
        expected = _hexadecimal(value, bits)
        final = unescape(name) if escaped else name
        return None if final is None or expected is None else (algorithm, expected, bits, final)

    def _verify(self, algorithm: Algorithm, expected: str, bits: int, name: str) -> str:
        process, options = self._process, self._options
        shown, escaped = escape(name) if "\n" in name else (name, False)
        try:
            got = compute(process, name, algorithm, bits if algorithm.sizable else 0)
        except SysError as error:
            if options.ignore_missing and error.name == "ENOENT":
                return "missing"
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            outcome = "FAILED open or read"
        else:
            outcome = "OK" if got == expected else "FAILED"
        if options.report != "status" and not (options.report == "quiet" and outcome == "OK"):
            process.print(f"{chr(92) if escaped else ''}{shown}: {outcome}")
        return outcome


_TAGGED = re.compile(r"([A-Za-z0-9]+)(?:-(\d+))? ?\((.*)\)[ \t]*=[ \t]*([0-9A-Za-z+/]+={0,2})", re.S)
_PLAIN = re.compile(r"([0-9A-Za-z+/]+={0,2})[ \t](.+)", re.S)


def _hexadecimal(digest: str, bits: int) -> str | None:
    """A digest in either notation as lower-case hexadecimal; None if it has not that many bits."""
    if len(digest) * 4 == bits and re.fullmatch(r"[0-9a-fA-F]+", digest):
        return digest.lower()
    try:
        raw = base64.b64decode(digest, validate=True)
    except ValueError:
        return None
    return raw.hex() if len(raw) * 8 == bits else None
