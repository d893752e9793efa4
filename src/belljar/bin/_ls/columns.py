"""Names in columns, as many as fit: down them (-C), across (-x), or a list with commas (-m)."""

from __future__ import annotations

from collections.abc import Sequence

_LEAST = 3
"""The narrowest column: a letter and two spaces."""


def fit(widths: Sequence[int], line: int, *, across: bool) -> list[int]:
    """The widths of the columns, the gap included, for the most columns that fit in a line."""
    total = len(widths)
    for columns in range(min(total, max(1, line // _LEAST)), 1, -1):
        rows = -(-total // columns)
        if across:
            sizes = [max(widths[i::columns]) for i in range(columns)]
        else:
            used = -(-total // rows)
            sizes = [max(widths[i * rows : (i + 1) * rows]) for i in range(used)]
            sizes += [0] * (columns - used)
        sizes = [size + 2 for size in sizes[:-1]] + sizes[-1:]
        if sum(max(size, _LEAST) for size in sizes) < line:
            return [max(size, _LEAST) for size in sizes]
    return [max(widths, default=0) + 2]


def pad(start: int, end: int, tab: int) -> str:
    """The blanks from one column to another; tabs where they help."""
    if not tab:
        return " " * (end - start)
    out: list[str] = []
    while start < end:
        if end // tab > (start + 1) // tab:
            out.append("\t")
            start += tab - start % tab
        else:
            out.append(" ")
            start += 1
    return "".join(out)


def down(cells: Sequence[str], widths: Sequence[int], line: int, tab: int) -> list[str]:
    """The lines of -C."""
    sizes = fit(widths, line, across=False)
    rows = -(-len(cells) // len(sizes))
    lines: list[str] = []
    for row in range(rows):
        parts: list[str] = []
        start = 0
        for column, index in enumerate(range(row, len(cells), rows)):
            parts.append(cells[index])
            if index + rows < len(cells):
                parts.append(pad(start + widths[index], start + sizes[column], tab))
                start += sizes[column]
        lines.append("".join(parts))
    return lines


def across(cells: Sequence[str], widths: Sequence[int], line: int, tab: int) -> list[str]:
    """The lines of -x."""
    sizes = fit(widths, line, across=True)
    lines: list[str] = []
    for first in range(0, len(cells), len(sizes)):
        parts: list[str] = []
        start = 0
        last = min(first + len(sizes), len(cells)) - 1
        for index in range(first, last + 1):
            parts.append(cells[index])
            if index < last:
                size = sizes[index - first]
                parts.append(pad(start + widths[index], start + size, tab))
                start += size
        lines.append("".join(parts))
    return lines


def separated(cells: Sequence[str], widths: Sequence[int], line: int, separator: str) -> list[str]:
    """The lines of -m (and of -C with no limit of width)."""
    lines: list[str] = []
    current: list[str] = []
    position = 0
    for cell, width in zip(cells, widths, strict=True):
        if current:
            fits = line == 0 or position + width + 2 < line
            if fits:
                current.append(separator + " ")
                position += 2
            else:
                lines.append("".join(current) + separator)
                current, position = [], 0
        current.append(cell)
        position += width
    if current:
        lines.append("".join(current))
    return lines
