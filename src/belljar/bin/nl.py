r"""nl - number lines of files

Usage: nl [OPTION]... [FILE]...

Write each FILE to standard output, with line numbers added. With no FILE, or when FILE is -, read standard input.
STYLE is a (number all lines), t (only nonempty lines), n (no lines) or pBRE (lines that match the regular expression).
FORMAT is ln (left justified), rn (right justified) or rz (right justified, with leading zeros).
A line of the delimiter, \:\:\: begins a header, \:\: a body, \: a footer.
"""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.numbers import bounded
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.bin._kit.text import line_batches
from belljar.kernel.process import Process
from belljar.regex import RegexError, compile

_LOW, _HIGH = -(1 << 63), (1 << 63) - 1


@dataclass(frozen=True, slots=True)
class Options:
    body: str = value("-b", "--body-numbering", "use STYLE for numbering body lines", metavar="STYLE", default="t")
    delimiter: str = value(
        "-d", "--section-delimiter", "use CC for logical page delimiters", metavar="CC", default="\\:"
    )
    footer: str = value(
        "-f", "--footer-numbering", "use STYLE for numbering footer lines", metavar="STYLE", default="n"
    )
    header: str = value(
        "-h", "--header-numbering", "use STYLE for numbering header lines", metavar="STYLE", default="n"
    )
    increment: str = value(
        "-i", "--line-increment", "line number increment at each line", metavar="NUMBER", default="1"
    )
    join_blank: str = value(
        "-l", "--join-blank-lines", "count groups of NUMBER empty lines as one", metavar="NUMBER", default="1"
    )
    format: str = value(
        "-n", "--number-format", "insert line numbers according to FORMAT", metavar="FORMAT", default="rn"
    )
    no_renumber: bool = flag("-p", "--no-renumber", "do not reset line numbers for each section")
    separator: str = value(
        "-s", "--number-separator", "add STRING after (possible) line number", metavar="STRING", default="\t"
    )
    start: str = value(
        "-v", "--starting-line-number", "first line number for each section", metavar="NUMBER", default="1"
    )
    width: str = value("-w", "--number-width", "use NUMBER columns for line numbers", metavar="NUMBER", default="6")


Test = Callable[[bytes], bool] | None


@utility("nl", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    numbering = Numbering(process, options)
    status = 0
    for name in operands or ["-"]:
        try:
            for batch in line_batches(process, name):
                process.budget.charge(len(batch) // 8 + 1)
                process.stdout.write(numbering.number(batch))
        except SysError as error:
            process.warn(f"{quote_if_odd(name)}: {error.reason}")
            status = 1
    return status


class Numbering:
    """State of the line counter."""

    def __init__(self, process: Process, options: Options) -> None:
        self.process = process
        self.styles = {
            "header": _style(process, options.header, "header"),
            "body": _style(process, options.body, "body"),
            "footer": _style(process, options.footer, "footer"),
        }
        self.start = bounded(process, options.start, "starting line number", _LOW, _HIGH)
        self.increment = bounded(process, options.increment, "line number increment", _LOW, _HIGH)
        self.join_blank = bounded(process, options.join_blank, "line number of blank lines", 1, signed=True)
        width = bounded(process, options.width, "line number field width", 1, 0x7FFFFFFF, signed=True)
        if options.format not in ("ln", "rn", "rz"):
            raise UsageError(f"invalid line numbering format: {quote(options.format, process.env)}")
        process.budget.charge_size(width)
        self.format = {"ln": b"%%-%dd", "rn": b"%%%dd", "rz": b"%%0%dd"}[options.format] % width
        self.separator = fsencode(options.separator)
        self.blank = b" " * (width + len(self.separator))
        self.renumber = not options.no_renumber
        text = fsencode(options.delimiter)
        delimiter = text + b":" if len(text) == 1 else text  # a lone character is followed by a colon
        self.sections: dict[bytes, str] = {}
        if delimiter:
            self.sections = {delimiter * 3: "header", delimiter * 2: "body", delimiter: "footer"}
        self.current = self.start
        self.style = self.styles["body"]
        self.blanks = 0
        self.overflowed = False

    def number(self, lines: list[bytes]) -> bytes:
        out: list[bytes] = []
        template = self.format + self.separator.replace(b"%", b"%%") + b"%b\n"
        for line in lines:
            section = self.sections.get(line)
            if section is not None:
                self.style = self.styles[section]
                if self.renumber:
                    self.current = self.start
                    self.overflowed = False
                out.append(b"\n")
            elif self.counts(line):
                if self.overflowed:
                    self.process.stdout.write(b"".join(out))
                    raise UsageError("line number overflow", hint=False)
                out.append(template % (self.current, line))
                self.current += self.increment
                self.overflowed = not _LOW <= self.current <= _HIGH
            else:
                out.append(self.blank + line + b"\n")
        return b"".join(out)

    def counts(self, line: bytes) -> bool:
        if self.style is None:
            if self.join_blank > 1 and not line:
                self.blanks += 1
                if self.blanks < self.join_blank:
                    return False
            self.blanks = 0
            return True
        return self.style(line)


def _style(process: Process, text: str, what: str) -> Test:
    """None numbers every line."""
    if text == "a":
        return None
    if text == "t":
        return bool
    if text == "n":
        return lambda line: False
    if text.startswith("p"):
        try:
            return compile(fsencode(text[1:]), syntax="bre").test
        except RegexError as error:
            raise UsageError(str(error), hint=False) from error
    raise UsageError(f"invalid {what} numbering style: {quote(text, process.env)}")
