"""csplit - split a file into sections determined by context lines

Usage: csplit [OPTION]... FILE PATTERN...

Output pieces of FILE separated by PATTERN(s) to files 'xx00', 'xx01', ..., and output byte counts of each piece to
standard output. Each PATTERN may be: INTEGER (copy up to but not including specified line number), /REGEXP/[OFFSET]
(copy up to but not including a matching line), %REGEXP%[OFFSET] (skip to, but not including a matching line),
{INTEGER} (repeat the previous pattern specified number of times), {*} (repeat as many times as possible).
"""

import re

from belljar import regex
from belljar.abi.dataclass import dataclass, replace
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.quoting import quote, quote_if_odd, quote_name
from belljar.kernel.process import Process

_SUFFIX = re.compile(r"%([-#0+' ]*)(\d*)(?:\.(\d*))?([diouxX])", re.A)


@dataclass(frozen=True, slots=True)
class Options:
    suffix: str | None = value("-b", "--suffix-format", "use sprintf FORMAT instead of %02d", metavar="FORMAT")
    prefix: str = value("-f", "--prefix", "use PREFIX instead of 'xx'", metavar="PREFIX", default="xx")
    keep: bool = flag("-k", "--keep-files", "do not remove output files on errors")
    suppress: bool = flag("--suppress-matched", "suppress the lines matching PATTERN")
    digits: str = value("-n", "--digits", "use specified number of digits instead of 2", metavar="DIGITS", default="2")
    quiet: bool = flag("-s", "-q", "--quiet", "--silent", "do not print counts of output file sizes")
    elide: bool = flag("-z", "--elide-empty-files", "remove empty output files")


@dataclass(frozen=True, slots=True)
class Pattern:
    text: str
    line: int = 0
    """A line number, or 0 for an expression."""
    expression: regex.Regex | None = None
    offset: int = 0
    skips: bool = False
    repeat: int = 0
    forever: bool = False


class _CsplitError(Exception):
    pass


@utility("csplit", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    if len(operands) < 2:
        raise UsageError(f"missing operand after {quote(operands[0], process.env)}")
    name, *texts = operands
    template = _template(options, process)
    patterns = _parse(process, texts)
    try:
        data = process.read_file(name)
    except SysError as error:
        process.warn(f"cannot open {quote_name(name)} for reading: {error.reason}")
        return 1
    splitter = Splitter(process, options, template, _lines(data))
    try:
        splitter.run(patterns)
    except _CsplitError as error:
        process.warn(str(error))
        if not options.keep:
            splitter.remove()
        return 1
    return 0


def _lines(data: bytes) -> list[bytes]:
    lines = [line + b"\n" for line in data.split(b"\n")]
    lines[-1] = lines[-1][:-1]
    return lines if lines[-1] else lines[:-1]


def _template(options: Options, process: Process) -> str:
    if options.suffix is None:
        if not (options.digits.isascii() and options.digits.isdecimal()):
            raise UsageError(f"{quote(options.digits, process.env)}: invalid number", hint=False)
        process.budget.charge_size(int(options.digits[:18]))
        return f"%0{int(options.digits)}d"
    text = options.suffix.replace("%%", "")
    found = text.count("%")
    if found > 1:
        raise UsageError("too many % conversion specifications in suffix", hint=False)
    if found == 0:
        raise UsageError("missing % conversion specification in suffix", hint=False)
    match = _SUFFIX.search(text)
    if match is None:
        letter = re.search(r"%[-#0+' ]*\d*(?:\.\d*)?(.?)", text)
        assert letter is not None
        if not letter[1]:
            raise UsageError("missing conversion specifier in suffix", hint=False)
        raise UsageError(f"invalid conversion specifier in suffix: {letter[1]}", hint=False)
    process.budget.charge_size(int((match[2] or "0")[:18]) + int((match[3] or "0")[:18]))
    return options.suffix.replace("%i", "%d").replace("%u", "%d").replace("'", "")


def _parse(process: Process, texts: list[str]) -> list[Pattern]:
    patterns: list[Pattern] = []
    previous = 0
    for text in texts:
        shown = quote(text, process.env)
        if text[:1] in ("/", "%"):
            patterns.append(_expression(process, text))
        elif text.startswith("{") and patterns:
            patterns[-1] = _repeated(process, patterns[-1], text)
        elif text.isascii() and text.isdecimal():
            number = int(text[:18])
            if number == 0:
                raise UsageError(f"{text}: line number must be greater than zero", hint=False)
            if number < previous:
                message = f"line number {shown} is smaller than preceding line number, {previous}"
                raise UsageError(message, hint=False)
            if number == previous:
                process.warn(f"warning: line number {shown} is the same as preceding line number")
            previous = number
            patterns.append(Pattern(text, line=number))
        else:
            raise UsageError(f"{shown}: invalid pattern", hint=False)
    return patterns


def _expression(process: Process, text: str) -> Pattern:
    delimiter, shown = text[0], quote(text, process.env)
    end = text.rfind(delimiter)
    if end == 0:
        raise UsageError(f"{text}: closing delimiter '{delimiter}' missing", hint=False)
    tail = text[end + 1 :]
    if tail and not re.fullmatch(r"[-+]?\d+", tail):
        raise UsageError(f"{shown}: integer expected after delimiter", hint=False)
    try:
        compiled = regex.compile(text[1:end], syntax="bre")
    except regex.RegexError as error:
        raise UsageError(f"{shown}: invalid regular expression: {error}", hint=False) from None
    return Pattern(text, expression=compiled, offset=int((tail or "0")[:18]), skips=delimiter == "%")


def _repeated(process: Process, pattern: Pattern, text: str) -> Pattern:
    if not text.endswith("}"):
        raise UsageError(f"{text}: '}}' is required in repeat count", hint=False)
    inner = text[1:-1]
    if inner == "*":
        return replace(pattern, forever=True)
    if not (inner.isascii() and inner.isdecimal()):
        shown = quote(text[:-1], process.env)
        raise UsageError(f"{shown}}}: integer required between '{{' and '}}'", hint=False)
    return replace(pattern, repeat=int(inner[:18]))


class Splitter:
    """Walks through the lines; `_next` is the first one not yet written."""

    def __init__(self, process: Process, options: Options, template: str, lines: list[bytes]) -> None:
        self._process = process
        self._options = options
        self._template = template
        self._lines = lines
        self._next = 0
        self._made: list[str] = []
        self._search = 0
        """Line at which the next search starts: never twice at the same line."""

    def run(self, patterns: list[Pattern]) -> None:
        for pattern in patterns:
            turn = 0
            while pattern.forever or turn <= pattern.repeat:
                self._process.budget.charge()
                done = self._by_line(pattern, turn) if pattern.line else self._by_expression(pattern, turn)
                if not done:
                    return
                turn += 1
        self._write(len(self._lines))

    def remove(self) -> None:
        for name in self._made:
            try:
                self._process.fs.unlink(name)
            except SysError as error:
                self._process.warn(f"{quote_if_odd(name)}: {error.reason}")

    def _by_line(self, pattern: Pattern, turn: int) -> bool:
        line = pattern.line * (turn + 1) - 1
        if line >= len(self._lines):
            self._write(len(self._lines))
            raise self._missing(pattern, turn, "line number out of range")
        self._write(line)
        if self._options.suppress:
            self._next += 1
        self._search = self._next
        return True

    def _by_expression(self, pattern: Pattern, turn: int) -> bool:
        """False when a pattern that goes on for ever has come to the end."""
        assert pattern.expression is not None
        found = next(
            (i for i in range(self._search, len(self._lines)) if pattern.expression.test(self._lines[i].rstrip(b"\n"))),
            None,
        )
        self._process.budget.charge((found if found is not None else len(self._lines)) - self._search + 1)
        if found is None:
            if not pattern.skips:
                self._write(len(self._lines))
            if pattern.forever:
                return False
            raise self._missing(pattern, turn, "match not found")
        line = found + pattern.offset
        if line > len(self._lines) or line < self._next:
            self._write(len(self._lines))
            raise _CsplitError(f"{quote(pattern.text, self._process.env)}: line number out of range")
        if pattern.skips:
            self._next = line
        else:
            self._write(line)
        if self._options.suppress and pattern.offset == 0:
            self._next += 1
        self._search = max(found + 1, self._next)
        return True

    def _missing(self, pattern: Pattern, turn: int, what: str) -> _CsplitError:
        again = f" on repetition {turn}" if turn else ""
        return _CsplitError(f"{quote(pattern.text, self._process.env)}: {what}{again}")

    def _write(self, end: int) -> None:
        """The lines up to `end` as the next file."""
        data = b"".join(self._lines[self._next : end])
        self._next = max(self._next, end)
        if not data and self._options.elide:
            return
        name = self._options.prefix + self._template % len(self._made)
        try:
            self._process.write_file(name, data)
        except SysError as error:
            raise _CsplitError(f"{name}: {error.reason}") from None
        self._made.append(name)
        if not self._options.quiet:
            self._process.print(str(len(data)))
