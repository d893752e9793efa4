"""comm - compare two sorted files line by line

Usage: comm [OPTION]... FILE1 FILE2

When FILE1 or FILE2 (not both) is -, read standard input. With no options, produce three-column output: lines unique to
FILE1, lines unique to FILE2, and lines common to both files.
"""

from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, choice, flag, line_batches, many, utility
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class Options:
    no_first: bool = flag("-1", "suppress column 1 (lines unique to FILE1)")
    no_second: bool = flag("-2", "suppress column 2 (lines unique to FILE2)")
    no_common: bool = flag("-3", "suppress column 3 (lines that appear in both files)")
    check: bool | None = choice(
        {"--check-order": True, "--nocheck-order": False}, "check that the input is correctly sorted, or do not"
    )
    delimiters: tuple[str, ...] = many("--output-delimiter", "separate columns with STR", metavar="STR")
    total: bool = flag("--total", "output a summary")
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")


class OutOfOrder(Exception):
    """A file is not sorted, and that is an error."""


@utility("comm", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) < 2:
        raise UsageError(f"missing operand after \u2018{operands[0]}\u2019" if operands else "missing operand")
    if len(operands) > 2:
        raise UsageError(f"extra operand \u2018{operands[2]}\u2019")
    if len(set(options.delimiters)) > 1:
        raise UsageError("multiple output delimiters specified", hint=False)
    return Comparison(process, options, operands).run()


class Comparison:
    def __init__(self, process: Process, options: Options, names: list[str]) -> None:
        self._process = process
        self._options = options
        self._newline = b"\0" if options.zero else b"\n"
        delimiter = (fsencode(options.delimiters[0]) or b"\0") if options.delimiters else b"\t"
        first = b"" if options.no_first else delimiter
        second = b"" if options.no_second else delimiter
        self._prefixes = (b"", first, first + second)
        self._delimiter = delimiter
        self._wanted = (not options.no_first, not options.no_second, not options.no_common)
        self._counts = [0, 0, 0]
        self._warned = [False, False]
        self._unpaired = False
        self._streams = [self._checked(index, name) for index, name in enumerate(names)]

    def _checked(self, index: int, name: str) -> Iterator[bytes]:
        before: bytes | None = None
        last: bytes | None = None
        for line in line_batches(self._process, name, self._newline).lines():
            if last is not None and line < last:
                self._disordered(index)
            before, last = last, line
            yield line
        # Since the last two were looked at, an unpaired line may have made their order matter.
        if before is not None and last is not None and last < before:
            self._disordered(index)

    def _disordered(self, index: int) -> None:
        check = self._options.check
        if check is False or self._warned[index] or not (check or self._unpaired):
            return
        self._warned[index] = True
        self._process.warn(f"file {index + 1} is not in sorted order")
        if check:
            raise OutOfOrder

    def run(self) -> int:
        try:
            self._compare()
        except OutOfOrder:
            return 1
        if self._options.total:
            counts = self._delimiter.join(b"%d" % n for n in self._counts)
            self._process.stdout.write(counts + self._delimiter + b"total" + self._newline)
        if any(self._warned):
            self._process.warn("input is not in sorted order")
            return 1
        return 0

    def _compare(self) -> None:
        a, b = next(self._streams[0], None), next(self._streams[1], None)
        while a is not None or b is not None:
            self._process.budget.charge()
            if b is None or (a is not None and a < b):
                assert a is not None
                self._unpaired = True
                self._emit(0, a)
                a = next(self._streams[0], None)
            elif a is None or b < a:
                self._unpaired = True
                self._emit(1, b)
                b = next(self._streams[1], None)
            else:
                self._emit(2, a)
                a, b = next(self._streams[0], None), next(self._streams[1], None)

    def _emit(self, column: int, line: bytes) -> None:
        self._counts[column] += 1
        if self._wanted[column]:
            self._process.stdout.write(self._prefixes[column] + line + self._newline)
