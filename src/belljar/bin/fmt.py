"""fmt - simple optimal text formatter

Usage: fmt [-WIDTH] [OPTION]... [FILE]...

Reformat each paragraph in the FILE(s), writing to standard output. The option -WIDTH is an abbreviated form of
--width=DIGITS. With no FILE, or when FILE is -, read standard input.
"""

from __future__ import annotations

import re
from itertools import pairwise

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errno import EISDIR
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.numbers import bounded
from belljar.bin._kit.quoting import quote_name
from belljar.bin._kit.text import line_batches
from belljar.kernel.process import Process

_WIDEST = 2500
_TAB = 8


@dataclass(frozen=True, slots=True)
class Options:
    crown: bool = flag("-c", "--crown-margin", "preserve indentation of first two lines")
    prefix: str = value("-p", "--prefix", "reformat only lines beginning with STRING", metavar="STRING", default="")
    split: bool = flag("-s", "--split-only", "split long lines, but do not refill")
    tagged: bool = flag("-t", "--tagged-paragraph", "indentation of first line different from second")
    uniform: bool = flag("-u", "--uniform-spacing", "one space between words, two after sentences")
    width: str | None = value("-w", "--width", "maximum line width (default of 75 columns)", metavar="WIDTH")
    goal: str | None = value("-g", "--goal", "goal width (default of 93% of width)", metavar="WIDTH")


def leading_width(args: list[str]) -> list[str]:
    """-72 as the first argument is -w 72; elsewhere it is an error."""
    if args and re.fullmatch(r"-\d+", args[0], re.ASCII):
        return [f"--width={args[0][1:]}", *args[1:]]
    for before, arg in pairwise(["", *args]):
        if arg == "--":
            break
        if re.match(r"-\d", arg, re.ASCII) and before not in ("-w", "-g", "-p", "--width", "--goal", "--prefix"):
            raise UsageError(
                f"invalid option -- {arg[1]}; -WIDTH is recognized only when it is the first\noption; use -w N instead"
            )
    return args


@utility("fmt", Options, rewrite=leading_width)
def main(process: Process, options: Options, operands: list[str]) -> int:
    width, goal = _widths(process, options)
    formatter = Formatter(process, options, width, goal)
    status = 0
    for name in operands or ["-"]:
        try:
            formatter.run(_lines(process, name))
        except SysError as error:
            process.stdout.flush()
            if error.errno == EISDIR:
                process.warn("read error")
            else:
                process.warn(f"cannot open {quote_name(name)} for reading: {error.reason}")
            status = 1
    return status


def _lines(process: Process, name: str) -> list[bytes]:
    lines: list[bytes] = []
    size = 0
    for batch in line_batches(process, name):
        size += sum(map(len, batch)) + 8 * len(batch)
        process.budget.charge(len(batch) + 1)
        process.budget.charge_size(size)
        lines += batch
    return lines


def _widths(process: Process, options: Options) -> tuple[int, int]:
    width = 75
    if options.width is not None:
        width = bounded(process, options.width, "width", 0, _WIDEST)
    if options.goal is not None:
        goal = bounded(process, options.goal, "width", 0, width if options.width is not None else 75)
        return (width if options.width is not None else goal + 10), goal
    return width, width * (2 * (100 - 7) + 1) // 200


@dataclass(slots=True)
class Word:
    text: bytes
    space: int = 1
    """Columns between it and the next."""
    opens: bool = False
    ends_sentence: bool = False
    punctuated: bool = False
    final: bool = False
    """Ends a sentence for sure: a line's end or two spaces follow."""
    cost: int = 0
    line: int = 0
    """Length of the line that begins here, in the best layout."""
    next: int = 0


@dataclass(slots=True)
class Line:
    raw: bytes
    indent: int = 0
    words: list[Word] = field(default_factory=list)
    has_prefix: bool = False
    prefix_indent: int = 0


class Formatter:
    """Reads lines, gathers paragraphs, and lays each out at the least cost."""

    def __init__(self, process: Process, options: Options, width: int, goal: int) -> None:
        self.process = process
        self.options = options
        self.width = width
        self.goal = goal
        text = fsencode(options.prefix)
        self.prefix = text.strip(b" ")
        self.prefix_lead = len(text) - len(text.lstrip(b" "))
        self.tabs = False

    def run(self, raw: list[bytes]) -> None:
        lines = [self._parse(line) for line in raw]
        index = 0
        while index < len(lines):
            line = lines[index]
            if not line.words:
                self._copy(line)
                index += 1
                continue
            count = self._paragraph(lines, index)
            words = [word for item in lines[index : index + count] for word in item.words]
            first = line.indent
            other = first
            if self.options.crown or self.options.tagged:
                if count > 1:
                    other = lines[index + 1].indent
                elif self.options.tagged:
                    other = 0 if first else 3
            self._lay_out(words, first, other, line.prefix_indent)
            index += count

    def _copy(self, line: Line) -> None:
        """A line that is no part of a paragraph."""
        if not line.has_prefix:
            self.process.stdout.write(line.raw + b"\n")
        else:
            text = self._space(0, line.prefix_indent) + self.prefix
            self.process.stdout.write(text.rstrip(b" \t") + b"\n" if self.prefix else b"\n")

    def _parse(self, raw: bytes) -> Line:
        line = Line(raw)
        if b"\t" in raw:
            self.tabs = True
        text = raw.expandtabs(_TAB) if b"\t" in raw else raw
        body = text.lstrip(b" \t\v\f\r")
        column = len(text) - len(body)
        line.prefix_indent = column
        if self.prefix:
            if not body.startswith(self.prefix) or column < self.prefix_lead:
                return line
            line.prefix_indent = column
            rest = body[len(self.prefix) :]
            body = rest.lstrip(b" ")
            column += len(self.prefix) + len(rest) - len(body)
        line.has_prefix = True
        line.indent = column
        pieces = re.findall(rb"([^ \t\n\v\f\r]+)([ \t\n\v\f\r]*)", body)
        for number, (word, blank) in enumerate(pieces):
            line.words.append(self._word(word, len(blank), number == len(pieces) - 1))
        return line

    def _word(self, text: bytes, space: int, last: bool) -> Word:
        word = Word(text)
        word.opens = text[:1] in (b"(", b"[", b"'", b"`", b'"')
        word.punctuated = text[-1:] in _PUNCTUATION
        core = text.rstrip(b")]'\"")
        word.ends_sentence = core[-1:] in (b".", b"?", b"!") and core != b""
        word.final = word.ends_sentence and (last or space > 1)
        word.space = (2 if word.final else 1) if last or self.options.uniform else space
        return word

    def _paragraph(self, lines: list[Line], start: int) -> int:
        """Return how many lines belong together."""
        if self.options.split:
            return 1
        first = lines[start]

        def joins(index: int, indent: int) -> bool:
            if index >= len(lines) or not lines[index].words:
                return False
            item = lines[index]
            return (
                item.prefix_indent == first.prefix_indent and item.indent == indent
                if self.prefix
                else item.indent == indent
            )

        end = start + 1
        indent = first.indent
        if self.options.crown or self.options.tagged:
            if end < len(lines) and lines[end].words and (self.options.crown or lines[end].indent != indent):
                indent = lines[end].indent
                end += 1
            else:
                return 1
        while joins(end, indent):
            end += 1
        return end - start

    # Layout: from the last word back, the cheapest line that begins at each.

    def _lay_out(self, words: list[Word], first: int, other: int, prefix_indent: int) -> None:
        words[-1].ends_sentence = words[-1].final = True
        count = len(words)
        costs = [0] * (count + 1)
        for start in range(count - 1, -1, -1):
            self.process.budget.charge()
            length = (first if start == 0 else other) + len(words[start].text)
            best, end = 1 << 60, start
            word = words[start]
            while True:
                end += 1
                cost = self._line_cost(words, end, length) + costs[end]
                if cost < best:
                    best, word.next, word.line = cost, end, length
                if end == count:
                    break
                length += words[end - 1].space + len(words[end].text)
                if length >= self.width:
                    break
            costs[start] = best + _base_cost(words, start)
        start = 0
        indent = first
        while start < count:
            self._put(words[start : words[start].next], indent, prefix_indent)
            start = words[start].next
            indent = other

    def _line_cost(self, words: list[Word], end: int, length: int) -> int:
        if end == len(words):
            return 0
        cost = ((self.goal - length) * 10) ** 2
        if words[end].next != len(words):
            cost += ((length - words[end].line) * 10) ** 2 // 2
        return cost

    def _put(self, words: list[Word], indent: int, prefix_indent: int) -> None:
        if self.prefix:
            start = self._space(0, prefix_indent) + self.prefix
            column = prefix_indent + len(self.prefix)
            start += self._space(column, indent)
        else:
            start = self._space(0, indent)
        column = indent
        parts = [start]
        for number, word in enumerate(words):
            parts.append(word.text)
            column += len(word.text)
            if number < len(words) - 1:
                parts.append(self._space(column, column + word.space))
                column += word.space
        self.process.stdout.write(b"".join(parts) + b"\n")

    def _space(self, column: int, target: int) -> bytes:
        """White space from one column to another, with tabs if the input has any."""
        out = b""
        if self.tabs:
            stop = target // _TAB * _TAB
            if column + 1 < stop:
                while column < stop:
                    out += b"\t"
                    column = (column // _TAB + 1) * _TAB
        return out + b" " * (target - column)


_PUNCTUATION = frozenset(bytes([b]) for b in b"!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~")


def _base_cost(words: list[Word], at: int) -> int:
    """Return the cost of beginning a line with a word, whatever else is on it."""
    cost = 70**2
    if at > 0:
        before = words[at - 1]
        if before.ends_sentence:
            cost += -(50**2) if before.final else 600**2
        elif before.punctuated:
            cost -= 40**2
        elif at > 1 and words[at - 2].final:
            cost += 200**2 // (len(before.text) + 2)
    word = words[at]
    if word.opens:
        cost -= 40**2
    elif word.final:
        cost += 150**2 // (len(word.text) + 2)
    return cost
