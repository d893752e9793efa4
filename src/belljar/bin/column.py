"""column - columnate lists

Usage: column [OPTION]... [FILE]...

Format input into multiple columns; with -t, into a table.
"""

from __future__ import annotations

import json
from collections.abc import Iterable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.kernel.process import Process
from belljar.libc.width import display_width


@dataclass(frozen=True, slots=True)
class Options:
    table: bool = flag("-t", "--table", "create a table")
    name: str = value("-n", "--table-name", "table name for JSON output", metavar="NAME", default="table")
    order: str | None = value("-O", "--table-order", "specify order of output columns", metavar="COLUMNS")
    columns: str | None = value("-N", "--table-columns", "comma separated columns names", metavar="NAMES")
    limit: str | None = value("-l", "--table-columns-limit", "maximal number of input columns", metavar="NUM")
    noextreme: str | None = value(
        "-E", "--table-noextreme", "don't count long text from the columns", metavar="COLUMNS"
    )
    noheadings: bool = flag("-d", "--table-noheadings", "don't print header")
    maxout: bool = flag("-m", "--table-maxout", "fill all available space")
    repeat_header: bool = flag("-e", "--table-header-repeat", "repeat header for each page")
    hide: str | None = value("-H", "--table-hide", "don't print the columns", metavar="COLUMNS")
    right: str | None = value("-R", "--table-right", "right align text in these columns", metavar="COLUMNS")
    truncate: str | None = value(
        "-T", "--table-truncate", "truncate text in the columns when necessary", metavar="COLUMNS"
    )
    wrap: str | None = value("-W", "--table-wrap", "wrap text in the columns when necessary", metavar="COLUMNS")
    keep_empty: bool = flag("-L", "--keep-empty-lines", "don't ignore empty lines")
    json: bool = flag("-J", "--json", "use JSON output format for table")
    width: str | None = value("-c", "--output-width", "width of output in number of characters", metavar="WIDTH")
    output: str = value(
        "-o", "--output-separator", "columns separator for table output", metavar="STRING", default="  "
    )
    separator: str | None = value("-s", "--separator", "possible table delimiters", metavar="STRING")
    fill: str = choice({"-x": "rows", "--fillrows": "rows"}, "fill rows before columns", "columns")
    tree: str | None = value("-r", "--tree", "column to use tree-like output for the table", metavar="COLUMN")


@utility("column", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    lines: list[str] = []
    status = 0
    for name in operands or ["-"]:
        try:
            data = process.read_file(name)
        except SysError as error:
            process.warn(f"{name}: {error.reason}")
            status = 1
            continue
        text = fsdecode(data)
        lines += text.removesuffix("\n").split("\n") if text else []
    process.budget.charge(len(lines) // 4 + 1)
    process.budget.charge_size(sum(map(len, lines)) * 4)
    width = _width(process, options)
    if not options.keep_empty:
        lines = [line for line in lines if line.strip(" \t\v\f\r") or (line and not options.table and line.strip())]
    asked = any(
        getattr(options, name) is not None
        for name in ("order", "columns", "hide", "right", "truncate", "wrap", "noextreme", "limit")
    )
    if asked and not options.table and not options.json:
        raise UsageError("option --table required for all --table-*", hint=False)
    if options.json and not options.columns:
        raise UsageError("option --table-columns required for --json", hint=False)
    if options.table or options.json:
        if lines or options.columns:
            print_table(process, options, lines, width)
    elif lines:
        fill(process, lines, width, by_rows=options.fill == "rows")
    return status


def _width(process: Process, options: Options) -> int:
    if options.width == "unlimited":
        return 1 << 30
    if options.width is not None:
        if not (options.width.isascii() and options.width.isdecimal()):
            raise UsageError(f"invalid columns argument: '{options.width}'", hint=False)
        return int(options.width[:9]) or 80
    columns = process.env.get("COLUMNS", "")
    return int(columns) if columns.isascii() and columns.isdecimal() and 0 < len(columns) < 6 and int(columns) else 80


def fill(process: Process, entries: list[str], width: int, *, by_rows: bool) -> None:
    """Columns of equal width, a multiple of a tab."""
    lengths = [display_width(entry) for entry in entries]
    cell = (max(lengths) + 8) & ~7
    across = max(1, width // cell) if width > max(lengths) else 1
    if max(lengths) >= width:
        for entry in entries:
            process.print(entry)
        return
    rows = -(-len(entries) // across)
    for row in range(rows):
        process.budget.charge()
        if by_rows:
            picked = range(row * across, min((row + 1) * across, len(entries)))
        else:
            picked = range(row, len(entries), rows)
        line, at = "", 0
        for index in picked:
            if index != picked[0]:
                stop = (picked.index(index)) * cell
                line += "\t" * ((stop - (at & ~7)) // 8)
                at = stop
            line += entries[index]
            at += lengths[index]
        process.print(line)


def print_table(process: Process, options: Options, lines: list[str], width: int) -> None:
    limit = int(options.limit[:9]) if options.limit and options.limit.isdecimal() else 0
    rows = [_cells(line, options.separator, limit) for line in lines]
    names = options.columns.split(",") if options.columns is not None else []
    count = max([len(row) for row in rows] + [len(names)], default=0)
    hidden = _picked(options.hide, names, count, empty_means_unnamed=True)
    order = _order(options.order, names, count)
    shown = [index for index in order if index not in hidden]
    if options.json:
        _json(process, options, rows, names, shown)
        return
    right = set(_picked(options.right, names, count))
    if names and not options.noheadings:
        rows.insert(0, names)
    _print_rows(process, rows, shown, right, options.output, set(_picked(options.truncate, names, count)), width)


def _cells(line: str, separator: str | None, limit: int) -> list[str]:
    if separator is None:
        return line.split(None, limit - 1) if limit else line.split()
    if len(separator) > 1:
        line = line.translate(dict.fromkeys(map(ord, separator[1:]), separator[0]))
    if not separator:
        return [line]
    return line.split(separator[0], limit - 1) if limit else line.split(separator[0])


def _picked(text: str | None, names: list[str], count: int, *, empty_means_unnamed: bool = False) -> list[int]:
    """The columns that a list of names and numbers means; 0 is all of them."""
    found: list[int] = []
    for item in text.split(",") if text else []:
        if item in names:
            found.append(names.index(item))
        elif item == "0":
            found += range(count)
        elif item == "-" and empty_means_unnamed:
            found += range(len(names), count)
        elif item.isascii() and item.isdecimal() and len(item) < 9 and int(item) <= count:
            found.append(int(item) - 1)
        else:
            raise UsageError(f"undefined column name '{item}'", hint=False)
    return found


def _order(text: str | None, names: list[str], count: int) -> list[int]:
    first = list(dict.fromkeys(_picked(text, names, count)))
    return first + [index for index in range(count) if index not in first]


def _print_rows(
    process: Process,
    rows: list[list[str]],
    shown: list[int],
    right: set[int],
    separator: str,
    truncated: set[int],
    width: int,
) -> None:
    widths = {index: max((display_width(row[index]) for row in rows if index < len(row)), default=0) for index in shown}
    total = sum(widths.values()) + display_width(separator) * max(0, len(shown) - 1)
    for index in reversed(shown):
        if index in truncated and total > width:
            cut = min(widths[index] - 1, total - width)
            widths[index] -= max(0, cut)
            total -= max(0, cut)
    process.budget.charge_size(sum(widths.values()) + len(separator) * len(shown))
    for row in rows:
        process.budget.charge()
        parts: list[str] = []
        for index in shown:
            text = row[index] if index < len(row) else ""
            if index in truncated:
                text = text[: widths[index]]
            padding = " " * (widths[index] - display_width(text))
            last = index == shown[-1]
            parts.append(padding + text if index in right else text if last else text + padding)
        process.print(separator.join(parts))


def _json(process: Process, options: Options, rows: list[list[str]], names: list[str], shown: Iterable[int]) -> None:
    process.print("{")
    process.print(f"   {json.dumps(options.name)}: [")
    for number, row in enumerate(rows):
        process.print("      {" if number == 0 else ",{", end="")
        pairs = [
            f"         {json.dumps((names[index] if index < len(names) else '').lower())}: "
            f"{json.dumps(row[index], ensure_ascii=False) if index < len(row) else 'null'}"
            for index in shown
        ]
        process.print("\n" + ",\n".join(pairs))
        process.print("      }", end="")
    process.print("\n   ]\n}")
