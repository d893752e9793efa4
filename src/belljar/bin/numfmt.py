"""numfmt - convert numbers from/to human-readable strings

Usage: numfmt [OPTION]... [NUMBER]...

Reformat NUMBER(s), or the numbers from standard input if none are specified. UNIT is none, auto, si, iec or iec-i.
FORMAT is one printf-style floating-point argument, %f, with optional quote, zero, width and precision.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from fractions import Fraction
from math import ceil, floor

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import UsageError, flag, many, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.quoting import quote
from belljar.bin._kit.text import line_batches
from belljar.kernel.process import Process
from belljar.libc.width import display_width

_LETTERS = "KMGTPEZY"
_UNSCALED_DIGITS = 18
_ACCEPTED_DIGITS = 27
_SHOWN_DIGITS = 27
_NUMBER = re.compile(r"[ \t]*(-?)(\d*)(\.\d+)?", re.ASCII)
_FORMAT = re.compile(r"%([ '0]*)(-?)([ '0-]*)(\d*)(?:(\.)(\d*))?f", re.ASCII)


@dataclass(frozen=True, slots=True)
class Options:
    debug: bool = flag("--debug", "---debug", "print warnings about invalid input")
    delimiter: str | None = value("-d", "--delimiter", "use X instead of whitespace for field delimiter", metavar="X")
    fields: tuple[str, ...] = many("--field", "replace the numbers in these input fields", metavar="FIELDS")
    format: str | None = value("--format", "use printf style floating-point FORMAT", metavar="FORMAT")
    source: str = value("--from", "auto-scale input numbers to UNITs", metavar="UNIT", default="none")
    source_unit: str = value("--from-unit", "specify the input unit size", metavar="N", default="1")
    grouping: bool = flag("--grouping", "use locale-defined grouping of digits (none in this locale)")
    header: str | None = value("--header", "print (without converting) the first N header lines", metavar="N", bare="1")
    invalid: str = value("--invalid", "failure mode for invalid numbers", metavar="MODE", default="abort")
    padding: str | None = value("--padding", "pad the output to N characters", metavar="N")
    round: str = value("--round", "use METHOD for rounding when scaling", metavar="METHOD", default="from-zero")
    suffix: str = value(
        "--suffix", "add SUFFIX to output numbers, and accept it in input", metavar="SUFFIX", default=""
    )
    target: str = value("--to", "auto-scale output numbers to UNITs", metavar="UNIT", default="none")
    target_unit: str = value("--to-unit", "the output unit size", metavar="N", default="1")
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")


class Invalid(Exception):
    """A number can't be converted; what to say about it."""


def _towards_zero(number: Fraction) -> int:
    return floor(number) if number > 0 else ceil(number)


def _from_zero(number: Fraction) -> int:
    return ceil(number) if number > 0 else floor(number)


def _nearest(number: Fraction) -> int:
    return _towards_zero(number + Fraction(1, 2) if number > 0 else number - Fraction(1, 2))


_ROUND: dict[str, Callable[[Fraction], int]] = {
    "up": ceil, "down": floor, "from-zero": _from_zero, "towards-zero": _towards_zero, "nearest": _nearest,
}  # fmt: skip


@utility("numfmt", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    converter = Converter(process, options)
    if options.debug:
        if options.grouping:
            process.warn("grouping has no effect in this locale")
        elif converter.source == converter.target == "none" and not converter.padding and not options.format:
            process.warn("no conversion option specified")
    newline = "\0" if options.zero else "\n"
    header = converter.header
    try:
        if operands:
            for text in operands:
                process.print(converter.line(text), end=newline)
        else:
            lines = line_batches(process, "-", fsencode(newline))
            number = 0
            for batch in lines:
                process.budget.charge(len(batch) // 2 + 1)
                for index, raw in enumerate(batch):
                    number += 1
                    text = fsdecode(raw)
                    last = not lines.complete and index == len(batch) - 1
                    process.print(text if number <= header else converter.line(text), end="" if last else newline)
    except Invalid as error:
        process.stdout.flush()
        process.warn(str(error))
        return 2
    if options.debug and converter.failed:
        process.stdout.flush()
        process.warn("failed to convert some of the input numbers")
    return 2 if converter.failed and options.invalid == "fail" else 0


class Converter:
    """Everything the options say about how numbers are read and shown."""

    def __init__(self, process: Process, options: Options) -> None:
        self.process = process
        self.options = options
        units: dict[str, tuple[str, ...]] = {"none": (), "si": (), "iec": (), "iec-i": ()}
        self.source = pick(process, "--from", options.source, units | {"auto": ()})
        self.target = pick(process, "--to", options.target, units)
        self.round = _ROUND[pick(process, "--round", options.round, {name: () for name in _ROUND})]
        self.invalid = pick(process, "--invalid", options.invalid, {m: () for m in ("abort", "fail", "warn", "ignore")})
        self.source_unit = self._unit(options.source_unit)
        self.target_unit = self._unit(options.target_unit)
        self.padding = self._padding(options.padding)
        self.header = self._header(options.header)
        if options.delimiter is not None and len(options.delimiter) > 1:
            raise UsageError("the delimiter must be a single character", hint=False)
        if len(options.fields) > 1:
            raise UsageError("multiple field specifications", hint=False)
        self.fields = self._fields(options.fields[0]) if options.fields else [(1, 1)]
        self.prefix = self.postfix = ""
        self.precision: int | None = None
        self.zeros = 0
        if options.format is not None:
            if options.grouping:
                raise UsageError("--grouping cannot be combined with --format", hint=False)
            self._parse_format(options.format)
        if (options.grouping or self.grouped) and self.target != "none":
            raise UsageError("grouping cannot be combined with --to", hint=False)
        self.automatic = self.padding == 0 and options.delimiter is None
        self.failed = False

    grouped = False

    def _quoted(self, text: str) -> str:
        return quote(text, self.process.env)

    def _unit(self, text: str) -> int:
        match = re.fullmatch(r"(\d*)([KMGTPEZY]i?)?", text, re.ASCII)
        number = 0
        if match is not None and text:
            scale = 1
            if match[2]:
                scale = (1024 if match[2].endswith("i") else 1000) ** (_LETTERS.index(match[2][0]) + 1)
            number = int((match[1] or "1")[:40]) * scale
        if number == 0 or number >= 1 << 64:
            raise UsageError(f"invalid unit size: {self._quoted(text)}", hint=False)
        return number

    def _padding(self, text: str | None) -> int:
        if text is None:
            return 0
        if not re.fullmatch(r"[-+]?\d{1,9}", text, re.ASCII) or int(text) == 0:
            raise UsageError(f"invalid padding value {self._quoted(text)}", hint=False)
        self.process.budget.charge_size(abs(int(text)))
        return int(text)

    def _header(self, text: str | None) -> int:
        if text is None:
            return 0
        if not re.fullmatch(r"\+?\d{1,18}", text, re.ASCII) or int(text) == 0:
            raise UsageError(f"invalid header value {self._quoted(text)}", hint=False)
        return int(text)

    def _fields(self, text: str) -> list[tuple[int, int]]:
        if text == "-":
            return [(1, 1 << 62)]
        ranges: list[tuple[int, int]] = []
        for item in re.split(r"[, \t]", text):
            if not item:
                raise UsageError("fields are numbered from 1")
            low, dash, high = item.partition("-")
            if (low and not low.isdecimal()) or (high and not high.isdecimal()) or not (low or high):
                if dash and not low and not high:
                    raise UsageError("invalid range with no endpoint: -")
                raise UsageError(f"invalid field value {self._quoted(item.lstrip('0123456789') or item)}")
            low, high = low[:18], high[:18]
            start, end = int(low or "1"), int(high) if high else (1 << 62 if dash else int(low))
            if start == 0 or (not dash and end == 0):
                raise UsageError("fields are numbered from 1")
            if end < start:
                raise UsageError("invalid decreasing range")
            ranges.append((start, end))
        return ranges

    def _parse_format(self, text: str) -> None:
        start = re.search(r"(?<!%)(?:%%)*%(?!%)", text)
        if start is None:
            raise UsageError(f"format {self._quoted(text)} has no % directive", hint=False)
        at = start.end() - 1
        match = _FORMAT.match(text, at)
        if match is None:
            if at == len(text) - 1:
                raise UsageError(f"format {self._quoted(text)} ends in %", hint=False)
            if re.match(r"%[ '0-]*\d*\.[+ -]", text[at:]):
                raise UsageError(f"invalid precision in format {self._quoted(text)}", hint=False)
            raise UsageError(f"invalid format {self._quoted(text)}, directive must be %[0]['][-][N][.][N]f", hint=False)
        before, minus, after, width, dot, precision = match.groups()
        flags = before + minus + after
        if re.search(r"(?<!%)(?:%%)*%(?!%)", text[match.end() :]):
            raise UsageError(f"format {self._quoted(text)} has too many % directives", hint=False)
        self.grouped = "'" in flags
        if len(width) > 18:
            raise UsageError(f"invalid format {self._quoted(text)} (width overflow)", hint=False)
        size = int(width or "0")
        self.process.budget.charge_size(size)
        if size:
            if "-" in flags:
                self.padding = -size
            elif "0" in flags:
                self.zeros = size
            else:
                self.padding = size
        if dot:
            self.precision = int((precision or "0")[:18])
        self.prefix = text[:at].replace("%%", "%")
        self.postfix = text[match.end() :].replace("%%", "%")

    # Lines and fields.

    def line(self, text: str) -> str:
        delimiter = self.options.delimiter
        if delimiter == "":
            parts, joint = [text], ""
        elif delimiter is not None:
            parts, joint = text.split(delimiter), delimiter
        else:
            parts, joint = re.findall(r"[ \t]*[^ \t]+|[ \t]+\Z", text) or [text], " "
            parts = [part if index == 0 else part[1:] for index, part in enumerate(parts)]
        for index, part in enumerate(parts):
            if any(low <= index + 1 <= high for low, high in self.fields):
                try:
                    parts[index] = self.field(part, index)
                except Invalid:
                    self.process.stdout.write(fsencode("".join(part + joint for part in parts[:index])))
                    raise
        return joint.join(parts)

    def field(self, text: str, index: int) -> str:
        stripped = text.lstrip(" \t")
        padding = self.padding
        if self.automatic:
            padding = len(text) if index or stripped != text else 0
        try:
            number, precision = self.read(stripped)
            shown = self.show(number, precision)
        except Invalid as error:
            if self.invalid == "abort":
                raise
            if self.invalid != "ignore":
                self.process.stdout.flush()
                self.process.warn(str(error))
            self.failed = True
            return text
        shown += self.options.suffix
        blanks = " " * (abs(padding) - display_width(shown))
        shown = blanks + shown if padding > 0 else shown + blanks
        return self.prefix + shown + self.postfix

    def read(self, text: str) -> tuple[Fraction, int]:
        """The number and how many decimals it was written with."""
        body = text
        suffix = self.options.suffix
        if suffix and text.endswith(suffix) and text != suffix:
            body = text = text.removesuffix(suffix)
        match = _NUMBER.match(body)
        assert match is not None
        sign, whole, decimals = match[1], match[2], match[3] or ""
        if not whole and not decimals:
            raise Invalid(f"invalid number: {self._quoted(text)}")
        rest = body[match.end() :]
        if rest.startswith("."):
            what = "suffix in input" if decimals else "number"
            raise Invalid(f"invalid {what}: {self._quoted(text)}")
        if len(whole.lstrip("0")) > _ACCEPTED_DIGITS or len(decimals) > _ACCEPTED_DIGITS + 1:
            raise Invalid(f"value too large to be converted: {self._quoted(text)}")
        number = Fraction(f"{sign}{whole or '0'}{decimals}")
        precision = max(0, len(decimals) - 1)
        rest = rest.lstrip(" \t")
        if rest:
            number *= self._scale(rest, text)
            precision = 0
        return number, precision

    def _bad_suffix(self, text: str, rest: str) -> str:
        return f"invalid suffix in input {self._quoted(text)}: {self._quoted(rest)}"

    def _scale(self, rest: str, text: str) -> int:
        if rest[0] not in _LETTERS:
            raise Invalid(f"invalid suffix in input: {self._quoted(text)}")
        if self.source == "none":
            raise Invalid(f"rejecting suffix in input: {self._quoted(text)} (consider using --from)")
        power = _LETTERS.index(rest[0]) + 1
        rest = rest[1:]
        base = 1000 if self.source in ("si", "auto") else 1024
        if self.source == "auto" and rest.startswith("i"):
            base, rest = 1024, rest[1:]
        elif self.source == "iec-i":
            if not rest.startswith("i"):
                raise Invalid(f"missing 'i' suffix in input: {self._quoted(text)} (e.g Ki/Mi/Gi)")
            rest = rest[1:]
        if rest:
            raise Invalid(self._bad_suffix(text, rest))
        return int(base**power)

    def show(self, number: Fraction, precision: int) -> str:
        number = number * self.source_unit / self.target_unit
        digits = len(str(int(abs(number)))) - 1 if abs(number) >= 1 else 0
        if self.precision is not None:
            precision = self.precision
        if self.target == "none" and digits + precision > _UNSCALED_DIGITS:
            if precision:
                raise Invalid(
                    f"value/precision too large to be printed: '{_general(number)}/{precision}' (consider using --to)"
                )
            raise Invalid(f"value too large to be printed: '{_general(number)}' (consider using --to)")
        if digits > _SHOWN_DIGITS - 1:
            raise Invalid(f"value too large to be printed: '{_general(number)}' (cannot handle values > 999Y)")
        self.process.budget.charge_size(precision)
        if self.target == "none":
            return _decimal(self.round(number * 10**precision), precision, self.zeros)
        return self._scaled(number)

    def _scaled(self, number: Fraction) -> str:
        base = 1000 if self.target == "si" else 1024
        power = 0
        while abs(number) >= base:
            number /= base
            power += 1
        decimals = 1 if abs(number) < 10 else 0
        if self.precision is not None:
            decimals = min(power * 3, self.precision)
        number = Fraction(self.round(number * 10**decimals), 10**decimals)
        if abs(number) >= base:
            number /= base
            power += 1
        usual = 1 if number and abs(number) < 10 and power else 0
        shown = usual if self.precision is None else self.precision
        text = _decimal(round(number * 10**shown), shown, self.zeros)
        return text + (_LETTERS[power - 1] if power else "") + ("i" if self.target == "iec-i" and power else "")


def _decimal(scaled: int, precision: int, zeros: int) -> str:
    digits = str(abs(scaled)).rjust(precision + 1, "0")
    text = f"{digits[:-precision]}.{digits[-precision:]}" if precision else digits
    sign = "-" if scaled < 0 else ""
    return sign + text.rjust(zeros - len(sign), "0")


def _general(number: Fraction) -> str:
    return f"{float(number):g}"
