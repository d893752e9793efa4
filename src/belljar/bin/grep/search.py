"""Searches one file: reads it in large pieces, selects lines, counts or prints them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import filterfalse

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import SEEK_SET
from belljar.abi.records import Stat
from belljar.bin.grep.options import UNLIMITED
from belljar.bin.grep.output import Output, Style, well_formed
from belljar.bin.grep.patterns import Matcher
from belljar.kernel.process import Process

CHUNK = 1 << 18
_SPARSE = 400  # bytes a matching line above which lines that don't match are skipped in bulk
_PROBE = 1 << 15  # how much of a file is looked at for NUL bytes first


@dataclass(frozen=True, slots=True)
class Plan:
    """Options of the search of every file."""

    style: Style
    limit: int = UNLIMITED
    printing: bool = True  # else only the number of selected lines counts
    stop_at_first: bool = False
    binary: str = "binary"  # binary | text | without-match
    utf8: bool = True


class Search:
    """One file. `run` returns how many lines were selected."""

    def __init__(
        self, process: Process, plan: Plan, matcher: Matcher, fd: int, name: str, stat: Stat, started: bool
    ) -> None:
        self.process = process
        self.plan = plan
        self.matcher = matcher
        self.fd = fd
        self.name = name
        width = len(str(stat.size)) if stat.is_regular else 19
        self.output = Output(process, plan.style, matcher, name.encode("utf-8", "surrogateescape"), width, started)
        self.selected = 0
        self.printing = plan.printing
        self.binary = False
        self.suppressed = False  # lines that would have been shown in a text file
        self.offset = 0
        self.dense = False
        self.stdin_start = -1
        self.trailing = False  # only trailing context is still wanted
        self.after_last = -1  # where the last line that -m allows ends
        style = plan.style
        self.by_match = style.only_matching and not style.invert and not style.context and not style.colors

    def run(self) -> int:
        plan = self.plan
        if plan.limit == 0:
            return 0
        if self.fd == 0:
            self.stdin_start = self.tell()
        for buffer in self.buffers():
            if self.trailing:
                self.output.pay(buffer, len(buffer))
                self.output.finish_buffer(buffer)
                stop = not self.output.owed
            else:
                stop = self.feed(buffer)
            if stop:
                break
        self.leave_stdin()
        if (self.suppressed or self.output.suppressed) and plan.printing:
            self.process.stdout.flush()
            self.process.warn(f"{self.name}: binary file matches")
        return self.selected

    def tell(self) -> int:
        try:
            return self.process.seek(0, 0, 1)
        except SysError:
            return -1

    def buffers(self) -> Iterator[bytes]:
        """Whole lines, always ending in a separator."""
        separator = self.plan.style.separator
        rest: list[bytes] = []
        held = 0
        first = True
        while True:
            data = self.process.read(self.fd, _PROBE if first else CHUNK)
            if first:
                self.classify(data)
                first = False
                if self.binary and self.plan.binary == "without-match":
                    return
            elif not self.binary and self.plan.binary != "text" and separator != b"\0" and b"\0" in data:
                self.binary = True
            if not data:
                break
            if self.binary and self.plan.binary == "binary":
                data = data.replace(b"\0", b"\n") if separator == b"\n" else data
            cut = data.rfind(separator) + 1
            if not cut:
                held += len(data)
                self.process.budget.charge_size(held)
                rest.append(data)
                continue
            rest.append(data[:cut] if cut < len(data) else data)
            whole = b"".join(rest) if len(rest) > 1 else rest[0]
            rest = [data[cut:]] if cut < len(data) else []
            held = len(data) - cut
            yield whole
        if rest:
            yield b"".join(rest) + separator

    def classify(self, data: bytes) -> None:
        if self.plan.binary == "text":
            return
        if self.plan.style.separator == b"\n":
            self.binary = b"\0" in data

    def feed(self, buffer: bytes) -> bool:
        """Deal with one buffer; True if the rest of the file does not matter."""
        plan = self.plan
        self.process.budget.charge(1 + (len(buffer) >> 12))
        if self.binary and plan.binary == "binary" and plan.printing:
            if next(self.blocks(buffer), None) is None:
                return False
            self.selected += 1
            self.suppressed = True
            self.output.started = True
            return True
        if not plan.printing:
            return self.count(buffer)
        before = self.selected
        if self.by_match and plan.limit == UNLIMITED and (plan.binary == "text" or self.readable(buffer)):
            return self.print_matches(buffer)
        if not self.simple(buffer):
            stop = self.print(buffer)
        elif plan.style.plain and self.dense:
            stop = self.print_dense(buffer)
        elif plan.style.plain or plan.style.invert:
            stop = self.print(buffer)
        else:
            stop = self.print_prefixed(buffer)
        matching = self.selected - before
        if plan.style.invert:
            matching = buffer.count(plan.style.separator) - matching
        self.dense = matching * _SPARSE > len(buffer)
        return stop

    def simple(self, buffer: bytes) -> bool:
        """Is every selected line printed by itself, with at most name and number?"""
        plan, style = self.plan, self.plan.style
        if style.context or style.offsets or style.colors or style.initial_tab or style.only_matching:
            return False
        if plan.limit != UNLIMITED:
            return False
        return plan.binary == "text" or self.readable(buffer)

    def readable(self, buffer: bytes) -> bool:
        """Is all of it text in this locale?"""
        return not self.plan.utf8 or buffer.isascii() or well_formed(buffer)

    def count(self, buffer: bytes) -> bool:
        plan = self.plan
        separator = plan.style.separator[0]
        found = 0
        if plan.stop_at_first:
            hits = self.blocks(buffer) if plan.style.invert else self.matcher.lines(buffer, separator)
            found = 0 if next(hits, None) is None else 1
        else:
            count = getattr(self.matcher, "count_lines", None) if self.dense else None
            found = count(buffer, separator) if count else sum(1 for _ in self.matcher.lines(buffer, separator))
            self.dense = found * _SPARSE > len(buffer)
        if plan.style.invert and not plan.stop_at_first:
            found = buffer.count(plan.style.separator) - found
        if self.selected + found >= plan.limit:
            self.selected = plan.limit
            return True
        self.selected += found
        return plan.stop_at_first and self.selected > 0

    def tester(self, buffer: bytes):  # type: ignore[no-untyped-def]
        searcher = getattr(self.matcher, "line_tester", None)
        return self.matcher.test if searcher is None else searcher(buffer, self.plan.style.separator[0])

    def print_dense(self, buffer: bytes) -> bool:
        mark = self.plan.style.separator
        lines = buffer[:-1].split(mark)
        test = self.tester(buffer)
        kept = list(filterfalse(test, lines) if self.plan.style.invert else filter(test, lines))
        self.selected += len(kept)
        if kept:
            kept.append(b"")
            self.process.stdout.write(mark.join(kept))
        return False

    def print_prefixed(self, buffer: bytes) -> bool:
        """`simple` lines behind the file's name, their number, or both."""
        style, output = self.plan.style, self.output
        mark = style.separator
        head = output.name + (b"\0" if style.null else b":") if style.filenames else b""
        out: list[bytes] = []
        number, counted = output.number, 0
        if self.dense:
            test = self.tester(buffer)
            lines = buffer[:-1].split(mark)
            if style.numbers:
                out = [b"%b%d:%b" % (head, n, line) for n, line in enumerate(lines, number) if test(line)]
            else:
                out = [head + line for line in lines if test(line)]
        else:
            for start, end in self.matcher.lines(buffer, mark[0]):
                if style.numbers:
                    number += buffer.count(mark, counted, start)
                    counted = start
                    out.append(b"%b%d:%b" % (head, number, buffer[start:end]))
                else:
                    out.append(head + buffer[start:end])
        output.number, output.counted = number, counted
        if out:
            self.selected += len(out)
            out.append(b"")
            self.process.stdout.write(mark.join(out))
        output.finish_buffer(buffer)
        return False

    def print_matches(self, buffer: bytes) -> bool:
        """-o: every non-empty match, without asking first which lines have one."""
        style, output = self.plan.style, self.output
        mark = style.separator
        out = []
        for start, end in self.matcher.line_matches(buffer, mark[0]):
            self.selected = 1
            if start < end:
                number = output.number_at(buffer, start) if style.numbers else 0
                out.append(output.head(number, output.base + start, b":") + buffer[start:end])
        if out:
            out.append(b"")
            self.process.stdout.write(mark.join(out))
        output.finish_buffer(buffer)
        return False

    def print(self, buffer: bytes) -> bool:
        plan = self.plan
        output = self.output
        mark = plan.style.separator
        output.careful = plan.binary == "binary" and not self.readable(buffer)
        for start, end in self.blocks(buffer):
            count = buffer.count(mark, start, end)
            room = plan.limit - self.selected
            if count > room:
                end = start
                for _ in range(room):
                    end = buffer.find(mark, end) + 1
                count = room
            self.selected += count
            output.block(buffer, start, end)
            if self.selected >= plan.limit:
                self.after_last = output.base + end
                output.pay(buffer, len(buffer))
                output.finish_buffer(buffer)
                self.trailing = True
                return not output.owed
        output.finish_buffer(buffer)
        return False

    def leave_stdin(self) -> None:
        """Seek standard input to just after the last line that -m allows, for the next reader."""
        if self.stdin_start < 0 or self.after_last < 0:
            return
        try:
            self.process.seek(0, self.stdin_start + self.after_last, SEEK_SET)
        except SysError:
            return

    def blocks(self, buffer: bytes) -> Iterator[tuple[int, int]]:
        """Runs of selected lines as (start, end), separators included."""
        lines = self.matcher.lines(buffer, self.plan.style.separator[0])
        if self.plan.style.invert:
            start = 0
            for first, last in lines:
                if first > start:
                    yield start, first
                start = last + 1
            if start < len(buffer):
                yield start, len(buffer)
            return
        begin = stop = -1
        for first, last in lines:
            if first == stop:
                stop = last + 1
                continue
            if begin >= 0:
                yield begin, stop
            begin, stop = first, last + 1
        if begin >= 0:
            yield begin, stop
