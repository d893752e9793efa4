"""join - join lines of two files on a common field

Usage: join [OPTION]... FILE1 FILE2

For each pair of input lines with identical join fields, write a line to standard output. The default join field is
the first, delimited by blanks. When FILE1 or FILE2 (not both) is -, read standard input. FORMAT is one or more
specifications separated by commas or blanks, each being FILENUM.FIELD or 0, or it is 'auto'. FILE1 and FILE2 must be
sorted on the join fields.
"""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import UsageError, choice, flag, many, utility
from belljar.bin._kit.quoting import quote, quote_if_odd, quote_name
from belljar.bin._kit.text import line_batches
from belljar.kernel.process import Process

Fields = list[bytes]


@dataclass(frozen=True, slots=True)
class Options:
    also: tuple[str, ...] = many("-a", "also print unpairable lines from file FILENUM (1 or 2)", metavar="FILENUM")
    empty: tuple[str, ...] = many("-e", "replace missing (empty) input fields with STRING", metavar="STRING")
    ignore_case: bool = flag("-i", "--ignore-case", "ignore differences in case when comparing fields")
    both: tuple[str, ...] = many("-j", "equivalent to '-1 FIELD -2 FIELD'", metavar="FIELD")
    format: tuple[str, ...] = many("-o", "obey FORMAT while constructing output line", metavar="FORMAT")
    separator: tuple[str, ...] = many("-t", "use CHAR as input and output field separator", metavar="CHAR")
    only: tuple[str, ...] = many("-v", "like -a FILENUM, but suppress joined output lines", metavar="FILENUM")
    first: tuple[str, ...] = many("-1", "join on this FIELD of file 1", metavar="FIELD")
    second: tuple[str, ...] = many("-2", "join on this FIELD of file 2", metavar="FIELD")
    check: str = choice(
        {"--check-order": "always", "--nocheck-order": "never"},
        "check that the input is correctly sorted, or don't",
        "auto",
    )
    header: bool = flag("--header", "treat the first line in each file as field headers")
    zero: bool = flag("-z", "--zero-terminated", "line delimiter is NUL, not newline")


def attach_formats(args: list[str]) -> list[str]:
    """-o takes more than one argument if they look like formats: `-o 1.1 2.2 a b`."""
    done: list[str] = []
    index = 0
    while index < len(args):
        arg = args[index]
        index += 1
        if arg in ("-j1", "-j2") and len(args) - index > 2:
            # The obsolete -j1 FIELD: there are more operands than two files.
            arg = f"-{arg[2]}"
        if arg == "--":
            return [*done, arg, *args[index:]]
        done.append(arg)
        if arg == "-o" and index < len(args):
            done.append(args[index])
            index += 1
        if arg.startswith("-o"):
            while index < len(args) - 2 and _is_format(args[index]):
                done += ["-o", args[index]]
                index += 1
    return done


def _is_format(text: str) -> bool:
    return all(item == "0" or (item[:2] in ("1.", "2.") and item[2:].isdecimal()) for item in text.split(","))


@utility("join", Options, rewrite=attach_formats)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if len(operands) < 2:
        where = f" after {quote(operands[-1], process.env)}" if operands else ""
        raise UsageError(f"missing operand{where}")
    if len(operands) > 2:
        raise UsageError(f"extra operand {quote_name(operands[2])}")
    if operands == ["-", "-"]:
        raise UsageError("both files cannot be standard input", hint=False)
    return Join(process, options, operands).run()


class Join:
    """Two sorted files walked side by side."""

    def __init__(self, process: Process, options: Options, names: list[str]) -> None:
        self.process = process
        self.options = options
        self.keys = [self._field(options.first, 1), self._field(options.second, 2)]
        self.unpaired = [str(n) in (*options.also, *options.only) for n in (1, 2)]
        for text in (*options.also, *options.only):
            if text not in ("1", "2"):
                raise UsageError(f"invalid field number: {quote(text, process.env)}", hint=False)
        self.paired = not options.only
        if len(set(options.empty)) > 1:
            raise UsageError("conflicting empty-field replacement strings", hint=False)
        self.empty = fsencode(options.empty[0]) if options.empty else b""
        self.delimiter = b"\0" if options.zero else b"\n"
        self.separator = self._separator()
        self.out = self.separator if self.separator else b" "
        self.auto = "auto" in options.format
        self.columns = None if self.auto or not options.format else self._formats()
        self.files = [_File(self, index, name) for index, name in enumerate(names)]
        self.saw_unpairable = False

    def _field(self, own: tuple[str, ...], number: int) -> int:
        wanted = [*self.options.both, *own]
        found = {self._index(text) for text in wanted}
        if len(found) > 1:
            low, high = sorted(found, key=[self._index(t) for t in wanted].index)[:2]
            raise UsageError(f"incompatible join fields {low + 1}, {high + 1}", hint=False)
        return found.pop() if found else 0

    def _index(self, text: str) -> int:
        if not (text.isascii() and text.isdecimal()) or int(text[:18]) == 0:
            raise UsageError(f"invalid field number: {quote(text, self.process.env)}", hint=False)
        return min(int(text[:18]), 1 << 62) - 1

    def _separator(self) -> bytes | None:
        """None: runs of blanks; empty: the whole line is one field."""
        found: list[bytes] = []
        for text in self.options.separator:
            tab = b"\0" if text == "\\0" else fsencode(text)
            if len(tab) > 1:
                raise UsageError(f"multi-character tab {quote(text, self.process.env)}", hint=False)
            found.append(tab or self.delimiter)
        if len(set(found)) > 1:
            raise UsageError("incompatible tabs", hint=False)
        return found[0] if found else None

    def _formats(self) -> list[tuple[int, int]]:
        """Pairs of file (-1: the join field) and field."""
        columns: list[tuple[int, int]] = []
        for text in self.options.format:
            columns += map(self._column, text.replace(" ", ",").replace("\t", ",").split(","))
        return columns

    def _column(self, item: str) -> tuple[int, int]:
        if item == "0":
            return -1, 0
        if item[:1] == "0":
            raise UsageError(f"invalid field specifier: {quote(item, self.process.env)}", hint=False)
        if item[:1] not in ("1", "2"):
            raise UsageError(f"invalid file number in field spec: {quote(item, self.process.env)}", hint=False)
        if item[1:2] != ".":
            raise UsageError(f"invalid field specifier: {quote(item, self.process.env)}", hint=False)
        return int(item[0]) - 1, self._index(item[2:])

    def split(self, line: bytes) -> Fields:
        if self.separator is None:
            return line.split()
        if self.separator == self.delimiter:
            return [line]
        return line.split(self.separator)

    def compare_key(self, key: bytes) -> bytes:
        return key.lower() if self.options.ignore_case else key

    def run(self) -> int:
        first, second = self.files
        first.advance()
        second.advance()
        if self.auto:
            self.columns = self._auto(first.fields, second.fields)
        if self.options.header and (first.fields is not None or second.fields is not None):
            self.write(first.fields, second.fields)
            for file in self.files:
                file.previous = None
                if file.fields is not None:
                    file.advance()
        while first.fields is not None and second.fields is not None:
            self.process.budget.charge()
            if first.key < second.key:
                self._alone(0)
                self.saw_unpairable = True
            elif second.key < first.key:
                self._alone(1)
                self.saw_unpairable = True
            else:
                self._together(first.key)
        for index, file in enumerate(self.files):
            # The rest only matters if it is printed, or to see whether it is in order.
            while file.fields is not None and (self.unpaired[index] or self._must_look(file)):
                self.process.budget.charge()
                self._alone(index)
        if self.options.check == "auto" and any(file.disordered for file in self.files):
            self.process.stdout.flush()
            self.process.warn("input is not in sorted order")
            return 1
        return 0

    def _must_look(self, file: _File) -> bool:
        return self.options.check != "never" and not file.disordered

    def _alone(self, index: int) -> None:
        file = self.files[index]
        if self.unpaired[index]:
            self.write(file.fields if index == 0 else None, file.fields if index == 1 else None)
        file.advance()

    def _together(self, key: bytes) -> None:
        groups: list[list[Fields]] = [[], []]
        size = 0
        for group, file in zip(groups, self.files, strict=True):
            while file.fields is not None and file.key == key:
                group.append(file.fields)
                size += file.size
                self.process.budget.charge_size(size)
                file.advance()
        if self.paired:
            for one in groups[0]:
                for other in groups[1]:
                    self.process.budget.charge()
                    self.write(one, other)

    def _auto(self, one: Fields | None, other: Fields | None) -> list[tuple[int, int]]:
        columns = [(-1, 0)]
        for index, fields in enumerate((one, other)):
            columns += [(index, field) for field in range(len(fields or [])) if field != self.keys[index]]
        return columns

    def write(self, one: Fields | None, other: Fields | None) -> None:
        sides = (one or [], other or [])
        empty = self.empty
        owner = 0 if one is not None else 1
        key = sides[owner][self.keys[owner]] if self.keys[owner] < len(sides[owner]) else b""
        if self.columns is None:
            parts = [key or empty]
            for index, side in enumerate(sides):
                at = self.keys[index]
                rest = side[:at] + side[at + 1 :]
                parts += [field or empty for field in rest] if empty else rest
        else:
            parts = []
            for file, field in self.columns:
                side = sides[file]
                text = key if file < 0 else side[field] if field < len(side) else b""
                parts.append(text or empty)
        self.process.stdout.write(self.out.join(parts) + self.delimiter)


class _File:
    """One input: the current line's fields and join key."""

    def __init__(self, join: Join, index: int, name: str) -> None:
        self.join = join
        self.index = index
        self.name = name
        self.fields: Fields | None = None
        self.key = b""
        self.size = 0
        self.previous: bytes | None = None
        self.number = 0
        self.disordered = False
        self._lines = self._read()

    def _read(self) -> Iterator[bytes]:
        for batch in line_batches(self.join.process, self.name, self.join.delimiter):
            self.join.process.budget.charge(len(batch) // 16)
            yield from batch

    def advance(self) -> None:
        line = next(self._lines, None)
        if line is None:
            self.fields = None
            return
        self.number += 1
        self.size = len(line) + 64
        fields = self.join.split(line)
        at = self.join.keys[self.index]
        key = self.join.compare_key(fields[at] if at < len(fields) else b"")
        if self.previous is not None and key < self.previous:
            self._disorder(line)
        self.fields, self.key, self.previous = fields, key, key

    def _disorder(self, line: bytes) -> None:
        check = self.join.options.check
        if check == "never" or self.disordered or (check == "auto" and not self.join.saw_unpairable):
            return
        self.disordered = True
        text = fsdecode(line)
        process = self.join.process
        process.stdout.flush()
        message = f"{quote_if_odd(self.name)}:{self.number}: is not sorted: {text}"
        if check == "always":
            raise UsageError(message, hint=False)
        process.warn(message)
