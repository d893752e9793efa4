"""sdiff - side-by-side merge of file differences

Usage: sdiff [OPTION]... FILE1 FILE2

Show FILE1 and FILE2 side by side; with -o, write to FILE what the lines of commands on standard input choose:
l or 1 the left version, r or 2 the right, s and v silence or show common lines, q quit.
"""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError, flag, many, utility, value
from belljar.bin.diff.columns import Columns, side_by_side
from belljar.bin.diff.compare import Comparer, Plan, Trouble
from belljar.bin.diff.sides import Comparison, Ignoring, Side
from belljar.kernel.process import Process
from belljar.libc.line_diff import Change
from belljar.regex import RegexError, compile_any


@dataclass(frozen=True, slots=True)
class Options:
    output: str | None = value("-o", "--output", "operate interactively, sending output to FILE", metavar="FILE")
    ignore_case: bool = flag("-i", "--ignore-case", "consider upper- and lower-case to be the same")
    ignore_tabs: bool = flag("-E", "--ignore-tab-expansion", "ignore changes due to tab expansion")
    ignore_trailing: bool = flag("-Z", "--ignore-trailing-space", "ignore white space at line end")
    ignore_change: bool = flag("-b", "--ignore-space-change", "ignore changes in the amount of white space")
    ignore_space: bool = flag("-W", "--ignore-all-space", "ignore all white space")
    ignore_blank: bool = flag("-B", "--ignore-blank-lines", "ignore changes whose lines are all blank")
    ignore_matching: tuple[str, ...] = many(
        "-I", "--ignore-matching-lines", "ignore changes all of whose lines match RE", metavar="RE"
    )
    strip_cr: bool = flag("--strip-trailing-cr", "strip trailing carriage return on input")
    text: bool = flag("-a", "--text", "treat all files as text")
    width: str = value(
        "-w", "--width", "output at most NUM (default 130) columns per line", metavar="NUM", default="130"
    )
    left: bool = flag("-l", "--left-column", "output only the left column of common lines")
    suppress: bool = flag("-s", "--suppress-common-lines", "do not output common lines")
    expand: bool = flag("-t", "--expand-tabs", "expand tabs to spaces in output")
    tabsize: str = value("--tabsize", "tab stops are every NUM (default 8) columns", metavar="NUM", default="8")
    minimal: bool = flag("-d", "--minimal", "try hard to find a smaller set of changes")
    speed: bool = flag("-H", "--speed-large-files", "assume large files, many scattered small changes")


@utility("sdiff", Options, usage_status=2, named_hint=True)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) < 2:
        raise UsageError(f"missing operand after '{operands[-1] if operands else process.argv[-1]}'")
    if len(operands) > 2:
        raise UsageError(f"extra operand '{operands[2]}'")
    for what, text in (("width", options.width), ("tabsize", options.tabsize)):
        if not (text.isascii() and text.isdecimal()) or int(text[:9]) == 0:
            raise UsageError(f"invalid {what} '{text}'")
    tabsize = int(options.tabsize[:9])
    columns = Columns(int(options.width[:9]), tabsize, options.expand, options.left, options.suppress)
    plan = Plan(
        lambda comparison: side_by_side(comparison, columns),
        _ignoring(options),
        text=options.text,
        tabsize=tabsize,
        shows_equal=True,
    )
    if options.output is None:
        return Comparer(process, plan).compare(*operands)
    return Merge(process, plan, columns).run(operands, options.output)


def _ignoring(options: Options) -> Ignoring:
    try:
        matching = compile_any(list(options.ignore_matching), syntax="grep") if options.ignore_matching else None
    except RegexError as error:
        raise UsageError(f"{options.ignore_matching[0]}: {error}", hint=False) from error
    return Ignoring(
        options.ignore_case, options.ignore_tabs, options.ignore_trailing, options.ignore_change,
        options.ignore_space, options.ignore_blank, matching, options.strip_cr,
    )  # fmt: skip


class Merge:
    """Asks for each change which side to take."""

    def __init__(self, process: Process, plan: Plan, columns: Columns) -> None:
        self.process = process
        self.comparer = Comparer(process, plan)
        self.columns = columns
        self.silent = columns.suppress_common

    def run(self, names: list[str], output: str) -> int:
        try:
            sides = [Side(name, self.process.fs.stat(name), self.process.read_file(name)) for name in names]
            comparison = self.comparer.compare_sides((sides[0], sides[1]))
        except SysError as error:
            self.process.warn(f"{error.path or names[0]}: {error.reason}")
            return 2
        except Trouble:
            return 2
        out: list[bytes] = []
        at_a = at_b = 0
        status = 1 if comparison.changes else 0
        for change in comparison.changes:
            out += self._common(comparison, at_a, change.low_a, at_b)
            chosen = self._ask(comparison, change)
            if chosen is None:
                status = 2
                break
            out += chosen
            at_a, at_b = change.high_a, change.high_b
        else:
            out += self._common(comparison, at_a, len(comparison.lines[0]), at_b)
        self.process.write_file(output, b"".join(line + b"\n" for line in out))
        return status

    def _common(self, comparison: Comparison, low: int, high: int, other: int) -> list[bytes]:
        first, second = comparison.lines
        if not self.silent and low < high:
            size = high - low
            part = Comparison(comparison.sides, (first[low:high], second[other : other + size]), (True, True), [])
            for row in side_by_side(part, self.columns):
                self.process.stdout.write(row)
        return first[low:high]

    def _ask(self, comparison: Comparison, change: Change) -> list[bytes] | None:
        first, second = comparison.lines
        left, right = first[change.low_a : change.high_a], second[change.low_b : change.high_b]
        part = Comparison(comparison.sides, (left, right), (True, True), [Change(0, len(left), 0, len(right))])
        for row in side_by_side(part, self.columns):
            self.process.stdout.write(row)
        while True:
            self.process.stdout.write(b"%")
            self.process.stdout.flush()
            answer = self._line()
            if answer is None or answer == b"q":
                return None
            match answer:
                case b"l" | b"1":
                    return left
                case b"r" | b"2":
                    return right
                case b"s":
                    self.silent = True
                case b"v":
                    self.silent = False
                case b"eb":
                    return left + right
                case b"e":
                    return []
                case _:
                    self.process.print(_COMMANDS, end="")

    def _line(self) -> bytes | None:
        line = b""
        while char := self.process.read(0, 1):
            if char == b"\n":
                return line.strip()
            line += char
        return line.strip() or None


_COMMANDS = """ed:\tEdit then use both versions, each decorated with a header.
eb:\tEdit then use both versions.
el or e1:\tEdit then use the left version.
er or e2:\tEdit then use the right version.
e:\tDiscard both versions then edit a new one.
l or 1:\tUse the left version.
r or 2:\tUse the right version.
s:\tSilently include common lines.
v:\tVerbosely include common lines.
q:\tQuit.
"""
