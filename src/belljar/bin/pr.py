"""pr - paginate or columnate files for printing

Usage: pr [OPTION]... [FILE]...

With no FILE, or when FILE is -, read standard input. +FIRST[:LAST] begins and ends printing at those pages; -COLUMN
puts the text in so many columns, down or (with -a) across.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import UsageError, choice, flag, line_batches, utility, value
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.quoting import quote, quote_if_odd
from belljar.kernel.process import Process

_HEADER_LINES = 5
_TRAILER_LINES = 5
_MOST = 1 << 20


@dataclass(frozen=True, slots=True)
class Options:
    pages: str | None = value("--pages", "begin and end with these pages", metavar="FIRST[:LAST]")
    columns: str | None = value("--columns", "output COLUMN columns", metavar="COLUMN")
    across: bool = flag("-a", "--across", "print columns across rather than down")
    controls: str = choice({"-c": "hat", "--show-control-chars": "hat", "-v": "octal", "--show-nonprinting": "octal"},
                           "show control characters in hat and octal notation, or in octal (-v)", "")  # fmt: skip
    double: bool = flag("-d", "--double-space", "double space the output")
    date_format: str | None = value("-D", "--date-format", "use FORMAT for the header date", metavar="FORMAT")
    expand: str | None = value(
        "-e", "--expand-tabs", "expand input CHARs (TABs) to tab WIDTH (8)", metavar="CHAR[WIDTH]", bare=""
    )
    form_feed: bool = flag("-f", "-F", "--form-feed", "use form feeds instead of newlines to separate pages")
    header: str | None = value("-h", "--header", "use a centered HEADER instead of filename", metavar="HEADER")
    output_tabs: str | None = value(
        "-i", "--output-tabs", "replace spaces with CHARs (TABs) to tab WIDTH (8)", metavar="CHAR[WIDTH]", bare=""
    )
    join: bool = flag("-J", "--join-lines", "merge full lines, turns off truncation and alignment")
    length: str | None = value("-l", "--length", "set the page length to LENGTH (66) lines", metavar="LENGTH")
    merge: bool = flag("-m", "--merge", "print all files in parallel, one in each column")
    number: str | None = value(
        "-n", "--number-lines", "number lines, use DIGITS (5) digits, then SEP (TAB)", metavar="SEP[DIGITS]", bare=""
    )
    first_number: str | None = value("-N", "--first-line-number", "start counting with NUMBER", metavar="NUMBER")
    indent: str | None = value("-o", "--indent", "offset each line with MARGIN (zero) spaces", metavar="MARGIN")
    quiet: bool = flag("-r", "--no-file-warnings", "omit warning when a file cannot be opened")
    separator: str | None = value(
        "-s", "--separator", "separate columns by a single character", metavar="CHAR", bare="\t"
    )
    string: str | None = value("-S", "--sep-string", "separate columns by STRING", metavar="STRING", bare="")
    omit_header: bool = flag("-t", "--omit-header", "omit page headers and trailers")
    omit_pagination: bool = flag("-T", "--omit-pagination", "omit headers and trailers, and form feeds in the input")
    width: str | None = value("-w", "--width", "page width (72) for multiple columns only", metavar="PAGE_WIDTH")
    page_width: str | None = value("-W", "--page-width", "page width (72) always, truncate lines", metavar="PAGE_WIDTH")


def spell_out(args: list[str]) -> list[str]:
    """+FIRST:LAST and -COLUMN, alone or in a bundle (-t2), are no options that can be declared."""
    done: list[str] = []
    for index, arg in enumerate(args):
        if arg == "--":
            return done + args[index:]
        before = args[index - 1] if index else ""
        if re.fullmatch(r"\+0*[1-9]\d*(:\d+)?", arg, re.ASCII):
            done.append(f"--pages={arg[1:]}")
        elif re.match(r"\+\D", arg) and before not in ("-h", "-D", "-l", "-N", "-o", "-w", "-W"):
            raise UsageError(f"invalid + argument '{arg[1:]}'", hint=False)
        elif before in ("-h", "-D", "-l", "-N", "-o", "-w", "-W") or not arg.startswith("-") or arg.startswith("--"):
            done.append(arg)
        elif match := re.fullmatch(r"-([acdfFJmrtTv]*)(\d+)([acdfFJmrtTv]*)", arg, re.ASCII):
            done += [f"-{letter}" for letter in match[1] + match[3]] + [f"--columns={match[2]}"]
        else:
            done.append(arg)
    return done


@utility("pr", Options, rewrite=spell_out)
def main(process: Process, options: Options, operands: list[str]) -> int:
    layout = Layout(process, options, len(operands))
    printer = Printer(process, options, layout)
    if options.merge:
        return printer.run([operands or ["-"]])
    return printer.run([[name] for name in operands or ["-"]])


class Layout:
    """Numbers that the options come to."""

    def __init__(self, process: Process, options: Options, files: int) -> None:
        self.process = process
        self.columns = self._number(options.columns, "number of columns", 1, 1)
        if options.merge:
            if options.columns is not None:
                raise UsageError("cannot specify number of columns when printing in parallel", hint=False)
            if options.across:
                raise UsageError("cannot specify both printing across and printing in parallel", hint=False)
            self.columns = max(files, 1)
        self.first_page, self.last_page = self._pages(options.pages)
        length = self._number(options.length, "'-l PAGE_LENGTH' invalid number of lines", 66, 1)
        self.headers = not (options.omit_header or options.omit_pagination)
        if length <= _HEADER_LINES + _TRAILER_LINES:
            self.headers = False
        self.body = length - _HEADER_LINES - _TRAILER_LINES if self.headers else length
        if options.double:
            self.body = max(1, self.body // 2)
        self.margin = self._number(options.indent, "'-o MARGIN' invalid line offset", 0, 0)
        self.page_width = 72
        if options.page_width is not None:
            self.page_width = self._number(options.page_width, "'-W PAGE_WIDTH' invalid number of characters", 72, 1)
        elif options.width is not None:
            self.page_width = self._number(options.width, "'-w PAGE_WIDTH' invalid number of characters", 72, 1)
        self.number_separator, self.digits = self._lettered(options.number, "\t", 5)
        self.numbered = options.number is not None
        self.start_number = self._start(options.first_number)
        self.in_tab, self.in_width = self._lettered(options.expand, "\t", 8)
        self.out_tab, self.out_width = self._lettered(options.output_tabs, "\t", 8)
        several = self.columns > 1
        self.separator = ""
        if options.string is not None:
            self.separator = options.string
        elif options.separator is not None:
            self.separator = options.separator
        elif several:
            self.separator = "\t" if options.join else " "
        self.join = options.join or (
            options.separator is not None and several and options.width is None and options.page_width is None
        )
        self.truncate = (several or options.page_width is not None) and not self.join
        # Columns that tabs don't separate are measured, so tabs are taken apart on input and made anew on output.
        measured = self.truncate or (several and self.join and self.separator != "\t")
        self.untabify = options.expand is not None or measured
        self.tabify = options.output_tabs is not None or (several and measured and self.separator != "\t")
        number_width = 0
        if self.numbered:
            sep = self.number_separator
            number_width = self.digits + (self.out_width - self.digits % self.out_width if sep == "\t" else len(sep))
        self.number_width = number_width
        gaps = (self.columns - 1) * len(self.separator)
        used = number_width if options.merge else number_width * self.columns
        self.column_width = (self.page_width - used - gaps) // self.columns
        if self.column_width < 1 and self.truncate:
            raise UsageError("page width too narrow", hint=False)

    def _number(self, text: str | None, what: str, default: int, low: int) -> int:
        if text is None:
            return default
        wrong = f"{'' if what[0] == chr(39) else 'invalid '}{what}: {quote(text, self.process.env)}"
        if not (text.isascii() and text.isdecimal()):
            raise UsageError(wrong, hint=False)
        if int(text[:20]) < low:
            raise UsageError(f"{wrong}: Numerical result out of range", hint=False)
        if len(text) > 9:
            raise UsageError(f"{wrong}: Value too large for defined data type", hint=False)
        return min(int(text), _MOST)

    def _start(self, text: str | None) -> int:
        if text is None:
            return 1
        if not re.fullmatch(r"[-+]?\d{1,18}", text, re.ASCII):
            raise UsageError(f"'-N NUMBER' invalid starting line number: {quote(text, self.process.env)}", hint=False)
        return int(text)

    def _pages(self, text: str | None) -> tuple[int, int]:
        if text is None:
            return 1, 1 << 62
        first, _, last = text.partition(":")
        if not re.fullmatch(r"\+?\d+(?::\+?\d+)?", text, re.ASCII):
            raise UsageError(f"invalid --pages argument '{text}'", hint=False)
        if max(len(first), len(last)) > 19:
            raise UsageError(f"--pages argument '{text}' too large", hint=False)
        low, high = int(first), int(last) if last else 1 << 62
        if low == 0 or high < low:
            raise UsageError(f"invalid page range {quote(text, self.process.env)}", hint=False)
        return low, high

    def _lettered(self, text: str | None, char: str, width: int) -> tuple[str, int]:
        """A character unless it is a digit, then a number."""
        if not text:
            return char, width
        if not text[0].isdecimal():
            char, text = text[0], text[1:]
        if text and (not text.isdecimal() or not int(text[:9])):
            raise UsageError(f"extra characters or invalid number in the argument: {quote(text, self.process.env)}")
        return char, min(int(text[:9]), _MOST) if text else width


class Printer:
    """Puts lines on pages."""

    def __init__(self, process: Process, options: Options, layout: Layout) -> None:
        self.process = process
        self.options = options
        self.layout = layout
        self.status = 0

    def run(self, groups: list[list[str]]) -> int:
        for names in groups:
            readers: list[Iterator[str | None]] = []
            for name in names:
                try:
                    if name != "-" and self.process.fs.stat(name).is_dir:
                        raise UsageError(f"{quote_if_odd(name)}: Is a directory", hint=False)
                    if name != "-":
                        self.process.close(self.process.open(name))
                    readers.append(self._lines(name))
                except SysError as error:
                    self.status = 1
                    if not self.options.quiet:
                        self.process.stdout.flush()
                        self.process.warn(f"{quote_if_odd(name)}: {error.reason}")
            if readers:
                self._print(readers, names)
        return self.status

    def _lines(self, name: str) -> Iterator[str | None]:
        """Lines ready to be laid out; None where a form feed ends the page."""
        for batch in line_batches(self.process, name):
            self.process.budget.charge(len(batch) // 2 + 1)
            for raw in batch:
                text = fsdecode(raw)
                if "\f" not in text:
                    yield self._visible(text)
                    continue
                parts = text.split("\f")
                for index, part in enumerate(parts):
                    if index and not self.options.omit_pagination:
                        yield None
                    if part or index == 0:
                        yield self._visible(part)

    def _visible(self, text: str) -> str:
        layout = self.layout
        if layout.untabify and (layout.in_tab in text or "\t" in text):
            text = self._untabbed(text)
        if self.options.controls and not (text.isascii() and text.isprintable()):
            text = "".join(self._shown(char) for char in text)
        return text

    def _untabbed(self, text: str) -> str:
        out: list[str] = []
        column = 0
        for char in text:
            if char == self.layout.in_tab:
                width = self.layout.in_width - column % self.layout.in_width
                if self.layout.columns == 1 and self.layout.truncate and column + width > self.layout.column_width:
                    break
                out.append(" " * width)
                column += width
            elif char == "\b":
                # A backspace at the start of a line moves nothing.
                if column:
                    out.append(char)
                    column -= 1
            else:
                out.append(char)
                column += 1
        return "".join(out)

    def _shown(self, char: str) -> str:
        if (char.isascii() and char.isprintable()) or char == "\t":
            return char
        if self.options.controls == "hat" and char < "\x80":
            return f"^{chr(ord(char) ^ 64)}"
        return "".join(f"\\{byte:03o}" for byte in fsencode(char))

    # Pages.

    def _print(self, readers: list[Iterator[str | None]], names: list[str]) -> None:
        pages = self._merged(readers) if self.options.merge else self._pages(readers[0])
        number = 0
        for rows in pages:
            number += 1
            if number > self.layout.last_page:
                return
            if number < self.layout.first_page:
                continue
            self._page(rows, number, names)

    def _pages(self, lines: Iterator[str | None]) -> Iterator[list[list[str | None]]]:
        """Each page as rows of cells; lines are numbered as they are read."""
        layout = self.layout
        room = layout.body * layout.columns
        count = layout.start_number
        held: list[str] = []
        ended = False
        while not ended:
            held = []
            for line in lines:
                if line is None:
                    break
                held.append(self._numbered(line, count) if layout.numbered else line)
                count += 1
                if len(held) == room:
                    break
            else:
                ended = True
            if held:
                yield self._rows(held)

    def _rows(self, cells: list[str]) -> list[list[str | None]]:
        columns = self.layout.columns
        if columns == 1:
            return [[cell] for cell in cells]
        if self.options.across:
            return [list(cells[at : at + columns]) for at in range(0, len(cells), columns)]
        base, extra = divmod(len(cells), columns)
        stacks: list[list[str]] = []
        at = 0
        for column in range(columns):
            size = base + (1 if column < extra else 0)
            stacks.append(cells[at : at + size])
            at += size
        return [[stack[row] if row < len(stack) else None for stack in stacks] for row in range(max(map(len, stacks)))]

    def _merged(self, readers: list[Iterator[str | None]]) -> Iterator[list[list[str | None]]]:
        layout = self.layout
        count = layout.start_number
        live = [True] * len(readers)
        while any(live):
            rows: list[list[str | None]] = []
            for _ in range(layout.body):
                row: list[str | None] = []
                for index, reader in enumerate(readers):
                    line = next(reader, None) if live[index] else None
                    live[index] = live[index] and line is not None
                    row.append(line)
                if all(cell is None for cell in row):
                    break
                if layout.numbered:
                    row[0] = self._numbered(row[0] or "", count)
                    count += 1
                rows.append(row)
            if rows:
                yield rows

    def _numbered(self, line: str, count: int) -> str:
        text = str(count)[-self.layout.digits :] if count >= 0 else str(count)
        return f"{text.rjust(self.layout.digits)}\0{line}"

    def _page(self, rows: list[list[str | None]], number: int, names: list[str]) -> None:
        layout = self.layout
        if layout.headers:
            self._header(number, names)
        used = 0
        for row in rows:
            self.process.stdout.write(fsencode(self._row(row)) + b"\n")
            used += 1
            if self.options.double:
                self.process.stdout.write(b"\n")
        if not layout.headers:
            return
        if self.options.form_feed:
            self.process.stdout.write(b"\f")
        else:
            gap = (layout.body - used) * (2 if self.options.double else 1)
            self.process.stdout.write(b"\n" * (gap + _TRAILER_LINES))

    def _header(self, number: int, names: list[str]) -> None:
        title = self.options.header
        if title is None:
            title = "" if self.options.merge or names[0] == "-" else names[0]
        if self.options.merge or names[0] == "-":
            when = self.process.kernel.now()
        else:
            when = self.process.fs.stat(names[0]).mtime
        date = format_time(self.options.date_format or "%Y-%m-%d %H:%M", when, zone_of(self.process.env))
        page = f"Page {number}"
        free = max(0, self.layout.page_width - len(date) - len(title) - len(page))
        left = free >> 1
        text = f"{' ' * self.layout.margin}{date}{' ' * max(left, 1)}{title}{' ' * max(free - left, 1)}{page}"
        self.process.stdout.write(b"\n\n" + fsencode(text) + b"\n\n\n")

    def _row(self, row: list[str | None]) -> str:
        """Cells at their columns; spaces are kept back until something follows, then written, as tabs if asked for."""
        layout = self.layout
        writer = _RowWriter(layout.out_tab if layout.tabify else "", layout.out_width, layout.margin)
        last = max((index for index, cell in enumerate(row) if cell is not None), default=-1)
        if self.options.merge:
            last = len(row) - 1
        start = layout.margin
        for index, cell in enumerate(row[: last + 1]):
            if index:
                if not layout.join:
                    start += layout.column_width + (layout.number_width if self._has_number(index - 1) else 0)
                    writer.pad_to(start)
                writer.text(layout.separator)
                start += len(layout.separator)
            self._cell(writer, cell or "")
        return writer.done(padded=self.options.merge and row[-1] is None)

    def _has_number(self, index: int) -> bool:
        return self.layout.numbered and (not self.options.merge or index == 0)

    def _cell(self, writer: _RowWriter, cell: str) -> None:
        layout = self.layout
        number, mark, text = cell.rpartition("\0") if layout.numbered else ("", "", cell)
        if mark:
            writer.text(number)
            if layout.number_separator == "\t":
                writer.tab(layout.out_width)
            else:
                writer.text(layout.number_separator)
        writer.text(text[: layout.column_width] if layout.truncate else text)


class _RowWriter:
    """Text with spaces put off, so that they can become tabs, or nothing at the end."""

    def __init__(self, tab: str, width: int, margin: int) -> None:
        self.tab_char = tab
        self.width = width
        self.parts: list[str] = []
        self.column = 0
        self.pending = margin

    def text(self, text: str) -> None:
        if not text:
            return
        if not self.tab_char:
            self._flush()
            self.parts.append(text)
            self.column += len(text)
            return
        for piece in re.findall(r" +|[^ ]+", text):
            if piece[0] == " ":
                self.pending += len(piece)
            else:
                self._flush()
                self.parts.append(piece)
                self.column += len(piece)

    def pad_to(self, column: int) -> None:
        self.pending = max(self.pending, column - self.column)

    def tab(self, width: int) -> None:
        self._flush()
        self.parts.append("\t")
        self.column += width - self.column % width

    def _flush(self) -> None:
        goal = self.column + self.pending
        if self.tab_char:
            while goal - self.column > 1 and (stop := self.column + self.width - self.column % self.width) <= goal:
                self.parts.append(self.tab_char)
                self.column = stop
        self.parts.append(" " * (goal - self.column))
        self.column = goal
        self.pending = 0

    def done(self, *, padded: bool) -> str:
        if padded:
            self._flush()
        return "".join(self.parts)
