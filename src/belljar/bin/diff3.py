"""diff3 - compare three files line by line

Usage: diff3 [OPTION]... MYFILE OLDFILE YOURFILE

Exit status is 0 if successful, 1 if conflicts, 2 if trouble.
"""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, choice, flag, many, utility, value
from belljar.bin.diff.sides import split_lines
from belljar.kernel.process import Process
from belljar.libc.line_diff import Change, find_changes


@dataclass(frozen=True, slots=True)
class Options:
    how: str = choice(
        {
            "-A": "all", "--show-all": "all", "-e": "ed", "--ed": "ed", "-E": "overlap", "--show-overlap": "overlap",
            "-3": "easy", "--easy-only": "easy", "-x": "only-overlap", "--overlap-only": "only-overlap",
            "-X": "bracket-overlap",
        },
        "output all changes bracketed (-A), an ed script of changes to YOURFILE (-e), with conflicts bracketed (-E), "
        "of nonoverlapping (-3) or overlapping changes (-x, -X)",
        "",
    )  # fmt: skip
    i: bool = flag("-i", "append 'w' and 'q' commands to ed scripts")
    merge: bool = flag("-m", "--merge", "output actual merged file")
    text: bool = flag("-a", "--text", "treat all files as text")
    strip_cr: bool = flag("--strip-trailing-cr", "strip trailing carriage return on input")
    initial_tab: bool = flag("-T", "--initial-tab", "make tabs line up by prepending a tab")
    program: str | None = value("--diff-program", "use PROGRAM to compare files (ignored)", metavar="PROGRAM")
    labels: tuple[str, ...] = many("-L", "--label", "use LABEL instead of file name", metavar="LABEL")


@dataclass(frozen=True, slots=True)
class Block:
    """A stretch where the files differ: a range of lines in each, and which file is the odd one out (-1: all)."""

    ranges: tuple[tuple[int, int], tuple[int, int], tuple[int, int]]
    odd: int


@utility("diff3", Options, usage_status=2, named_hint=True)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) < 3:
        raise UsageError(f"missing operand after '{operands[-1] if operands else process.argv[-1]}'")
    if len(operands) > 3:
        raise UsageError(f"extra operand '{operands[3]}'")
    if len(options.labels) > 3:
        raise UsageError("too many file label options", hint=False)
    if operands.count("-") > 1:
        raise UsageError("'-' specified for more than one input file", hint=False)
    files: list[list[bytes]] = []
    complete: list[bool] = []
    for name in operands:
        try:
            data = process.read_file(name)
        except SysError as error:
            raise UsageError(f"{name}: {error.reason}", hint=False) from error
        lines, whole = split_lines(data.replace(b"\r\n", b"\n") if options.strip_cr else data)
        process.budget.charge_size(2 * len(data))
        files.append(lines)
        complete.append(whole)
    three = Three(process, options, operands, files, complete)
    if options.merge:
        return three.merge()
    return three.script() if options.how else three.show()


class Three:
    """Three files and where they differ. The middle one is the common ancestor."""

    def __init__(
        self, process: Process, options: Options, names: list[str], files: list[list[bytes]], complete: list[bool]
    ) -> None:
        self.process = process
        self.options = options
        self.files = files
        self.complete = complete
        given = list(options.labels)
        self.names = [fsencode(given[i] if i < len(given) else names[i]) for i in range(3)]
        self.blocks = list(self._compare())

    def _compare(self) -> Iterator[Block]:
        mine, old, yours = self.files
        charge = self.process.budget.charge
        first, second = find_changes(old, mine, charge), find_changes(old, yours, charge)
        i = j = 0
        shift_a = shift_b = 0
        while i < len(first) or j < len(second):
            group_a: list[Change] = []
            group_b: list[Change] = []
            low, high = self._begin(first, second, i, j)
            # Changes that touch one another's lines belong to one block.
            grew = True
            while grew:
                grew = False
                while i < len(first) and first[i].low_a <= high:
                    group_a.append(first[i])
                    high = max(high, first[i].high_a)
                    i += 1
                    grew = True
                while j < len(second) and second[j].low_a <= high:
                    group_b.append(second[j])
                    high = max(high, second[j].high_a)
                    j += 1
                    grew = True
            start_a, start_b = low + shift_a, low + shift_b
            shift_a += sum((c.high_b - c.low_b) - (c.high_a - c.low_a) for c in group_a)
            shift_b += sum((c.high_b - c.low_b) - (c.high_a - c.low_a) for c in group_b)
            ranges = ((start_a, high + shift_a), (low, high), (start_b, high + shift_b))
            yield Block(ranges, self._odd(ranges, bool(group_a), bool(group_b)))

    def _begin(self, first: list[Change], second: list[Change], i: int, j: int) -> tuple[int, int]:
        options = [c for c in (first[i : i + 1] + second[j : j + 1])]
        low = min(c.low_a for c in options)
        return low, low

    def _odd(self, ranges: tuple[tuple[int, int], ...], mine: bool, yours: bool) -> int:
        if not yours:
            return 0
        if not mine:
            return 2
        part = [self.files[n][low:high] for n, (low, high) in enumerate(ranges)]
        return 1 if part[0] == part[2] else -1

    # The default output.

    def show(self) -> int:
        for block in self.blocks:
            self.process.print("====" + ("" if block.odd < 0 else str(block.odd + 1)))
            pair = {0: (1, 2), 1: (0, 2), 2: (0, 1)}.get(block.odd)
            for number in (0, 2, 1) if block.odd == 1 else (0, 1, 2):
                low, high = block.ranges[number]
                where = f"{low + 1},{high}" if high - low > 1 else str(high)
                self.process.print(f"{number + 1}:{where}{'c' if high > low else 'a'}")
                # Of two that are the same only the later is shown.
                if pair is not None and number == pair[0]:
                    continue
                self._indented(number, low, high)
        return 0

    def _indented(self, number: int, low: int, high: int) -> None:
        mark = b"\t" if self.options.initial_tab else b"  "
        for index in range(low, high):
            self.process.stdout.write(mark + self.files[number][index] + b"\n")
            if index == len(self.files[number]) - 1 and not self.complete[number]:
                self.process.stdout.write(b"\\ No newline at end of file\n")

    # Merging.

    def _wanted(self, block: Block) -> str:
        """Choose how to merge a block: take yours, bracket it, or leave mine."""
        how = self.options.how or "all"
        if block.odd == 2:
            return "yours" if how not in ("only-overlap", "bracket-overlap") else "mine"
        if block.odd == 0:
            return "mine"
        if block.odd == 1:
            return "bracket-same" if how == "all" else "mine"
        return {"ed": "yours", "easy": "mine", "only-overlap": "yours", "bracket-overlap": "yours"}.get(how, "bracket")

    def merge(self) -> int:
        out: list[bytes] = []
        at = 0
        conflicts = False
        mine = self.files[0]
        for block in self.blocks:
            (low, high), old, yours = block.ranges
            out += mine[at:low]
            what = self._wanted(block)
            if what == "mine":
                out += mine[low:high]
            elif what == "yours":
                out += self.files[2][yours[0] : yours[1]]
            else:
                conflicts = True
                out += self._bracketed(block, old, what)
            at = high
        out += mine[at:]
        data = b"\n".join(out)
        last_whole = (
            self.complete[0] if not self.blocks or self.blocks[-1].ranges[0][1] < len(mine) else self.complete[2]
        )
        self.process.stdout.write(data + b"\n" if out and last_whole else data)
        return 1 if conflicts else 0

    def _bracketed(self, block: Block, old: tuple[int, int], what: str) -> list[bytes]:
        mine = self.files[0][slice(*block.ranges[0])]
        ancestor = self.files[1][slice(*old)]
        yours = self.files[2][slice(*block.ranges[2])]
        if what == "bracket-same":
            return [b"<<<<<<< " + self.names[1], *ancestor, b"=======", *yours, b">>>>>>> " + self.names[2]]
        middle = [b"||||||| " + self.names[1], *ancestor] if (self.options.how or "all") == "all" else []
        return [
            b"<<<<<<< " + self.names[0], *mine, *middle, b"=======", *yours, b">>>>>>> " + self.names[2]
        ]  # fmt: skip

    # Scripts for ed, from the last change to the first.

    def script(self) -> int:
        conflicts = False
        for block in reversed(self.blocks):
            low, high = block.ranges[0]
            yours = self.files[2][slice(*block.ranges[2])]
            what = self._wanted(block)
            if what == "mine":
                continue
            if what == "yours":
                self._ed_change(low, high, yours)
                continue
            conflicts = True
            bracketed = self._bracketed(block, block.ranges[1], what)
            if what == "bracket-same":
                self._ed_text(high, bracketed[-1:])
                self._ed_text(low, bracketed[: bracketed.index(b"=======") + 1])
            else:
                self._ed_text(high, bracketed[1 + high - low :])
                self._ed_text(low, bracketed[:1])
        if self.options.i:
            self.process.print("w\nq")
        return 1 if conflicts else 0

    def _ed_change(self, low: int, high: int, text: list[bytes]) -> None:
        where = b"%d,%d" % (low + 1, high) if high - low > 1 else b"%d" % high
        if not text:
            self.process.stdout.write(where + b"d\n")
            return
        self.process.stdout.write(where + (b"c" if high > low else b"a") + b"\n")
        self._ed_lines(text)

    def _ed_text(self, line: int, text: list[bytes]) -> None:
        self.process.stdout.write(b"%da\n" % line)
        self._ed_lines(text)

    def _ed_lines(self, text: list[bytes]) -> None:
        dots = False
        for line in text:
            dots = dots or line.startswith(b".")
            self.process.stdout.write((b"." if line.startswith(b".") else b"") + line + b"\n")
        self.process.stdout.write(b".\n")
