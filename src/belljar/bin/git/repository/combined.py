"""Combined differences: a file beside all the files that it was merged from."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass, field
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.diffs import quote_path, split_lines
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.store import Flat
from belljar.kernel.process import Process
from belljar.libc.line_diff import find_changes

_CONTEXT = 3
_HEADING = re.compile(rb"[A-Za-z_$]")
_HEADING_WIDTH = 40


@dataclass(slots=True)
class _Row:
    """A line of the result; the last row has none and only holds what was lost at the end."""

    line: bytes
    added: int = 0
    """The parents that do not have it, as bits."""
    lost: list[tuple[bytes, int]] = field(default_factory=list)
    """Lines before it that are gone, and the parents that had them."""
    shown: bool = False
    quiet: bool = False
    """Shown as context only: what is lost before it is not."""


def combined_hunks(process: Process, parents: list[bytes], result: bytes, *, dense: bool = True) -> bytes:
    """Hunks with a column for each parent; `dense` leaves out those that one parent has as they are."""
    lines = split_lines(result)
    rows = [*(_Row(line) for line in lines), _Row(b"")]
    everyone = (1 << len(parents)) - 1
    for number, parent in enumerate(parents):
        before = split_lines(parent)
        for change in find_changes(before, lines, process.budget.charge):
            _lose(process, rows[change.low_b], before[change.low_a : change.high_a], 1 << number)
            for index in range(change.low_b, change.high_b):
                rows[index].added |= 1 << number
    for row in rows:
        row.shown = bool(row.added or row.lost)
    if dense:
        _drop_plain(rows, everyone)
    _add_context(rows)
    return _render(rows, len(parents))


def _lose(process: Process, row: _Row, lines: list[bytes], parent: int) -> None:
    """Note lines that a parent lost, together with the same ones of others."""
    if not row.lost:
        row.lost = [(line, parent) for line in lines]
        return
    before = [line for line, _ in row.lost]
    merged: list[tuple[bytes, int]] = []
    at = 0
    for change in find_changes(before, lines, process.budget.charge):
        merged += [(line, owners | parent) for line, owners in row.lost[at : change.low_a]]
        merged += row.lost[change.low_a : change.high_a]
        merged += [(line, parent) for line in lines[change.low_b : change.high_b]]
        at = change.high_a
    row.lost = merged + [(line, owners | parent) for line, owners in row.lost[at:]]


def _tail(rows: list[_Row], begin: int, end: int) -> int:
    """The end of a run, without a last row that only has something lost before it."""
    return end - 1 if begin + 1 <= end and end > 0 and not rows[end - 1].added else end


def _next(rows: list[_Row], start: int, *, shown: bool) -> int:
    while start < len(rows) and rows[start].shown is not shown:
        start += 1
    return start


def _drop_plain(rows: list[_Row], everyone: int) -> None:
    """Hide runs in which the result is what one of the parents has."""
    begin = _next(rows, 0, shown=True)
    while begin < len(rows):
        end = begin + 1
        while True:
            end = _next(rows, end, shown=False)
            ahead = min(_tail(rows, begin, end) + _CONTEXT, len(rows))
            further = next((at for at in range(ahead - 1, end - 1, -1) if rows[at].shown), None)
            if further is None:
                break
            end = further
        kinds = {row.added for row in rows[begin:end] if row.added}
        kinds |= {owners for row in rows[begin:end] for _, owners in row.lost}
        if len(kinds) == 1 and kinds != {everyone}:
            for row in rows[begin:end]:
                row.shown = False
        begin = _next(rows, end, shown=True)


def _add_context(rows: list[_Row]) -> None:
    at = _next(rows, 0, shown=True)
    while at < len(rows):
        for row in rows[max(0, at - _CONTEXT) : at]:
            row.quiet = row.quiet or not row.shown
            row.shown = True
        end = _next(rows, at, shown=False)
        if end >= len(rows):
            return
        following = _next(rows, end, shown=True)
        tail = _tail(rows, at, end)
        if following < tail + _CONTEXT:
            for row in rows[tail:following]:
                row.quiet = row.quiet or not row.shown
                row.shown = True
            at = following
            continue
        for row in rows[tail : tail + _CONTEXT]:
            row.quiet = row.quiet or not row.shown
            row.shown = True
        at = _next(rows, max(following, tail + _CONTEXT), shown=True)


def _render(rows: list[_Row], parents: int) -> bytes:
    out: list[bytes] = []
    positions = [0] * parents
    heading = b""
    at = 0
    while at < len(rows):
        if not rows[at].shown:
            if _HEADING.match(rows[at].line):
                heading = rows[at].line
            _pass(rows[at], positions, last=at == len(rows) - 1)
            at += 1
            continue
        if rows[at].quiet:
            for _, owners in rows[at].lost:
                positions = [place + (owners >> number & 1) for number, place in enumerate(positions)]
        starts, first = list(positions), at
        if rows[at].quiet:
            rows[at].lost = []
        body: list[bytes] = []
        shown_heading = heading
        while at < len(rows) and rows[at].shown:
            row = rows[at]
            if not row.quiet:
                for line, owners in row.lost:
                    marks = b"".join(b"-" if owners >> number & 1 else b" " for number in range(parents))
                    body.append(marks + (line if line.endswith(b"\n") else line + b"\n"))
            if at < len(rows) - 1:
                marks = b"".join(b"+" if row.added >> number & 1 else b" " for number in range(parents))
                body.append(marks + (row.line if row.line.endswith(b"\n") else row.line + b"\n"))
                if _HEADING.match(row.line):
                    heading = row.line
            _pass(row, positions, last=at == len(rows) - 1)
            at += 1
        if not body:
            continue
        ranges = b"".join(
            b" -%d,%d" % (start + 1, place - start) for start, place in zip(starts, positions, strict=True)
        )
        length = min(at, len(rows) - 1) - first
        sign = b"@" * (parents + 1)
        text = shown_heading[:_HEADING_WIDTH].rstrip()
        tail = b" " + text[:-1] if len(text) > 1 else b""
        out.append(b"%s%s +%d,%d %s%s\n" % (sign, ranges, first + 1, length, sign, tail))
        out += body
    return b"".join(out)


def _pass(row: _Row, positions: list[int], *, last: bool) -> None:
    """Count a row for the line numbers of each parent."""
    for number in range(len(positions)):
        positions[number] += sum(owners >> number & 1 for _, owners in row.lost)
        if not last and not row.added >> number & 1:
            positions[number] += 1


def combined_patch(
    process: Process, path: str, parents: list[tuple[int, bytes, bytes]], result: tuple[int, bytes, bytes] | None, *,
    dense: bool = True,
) -> bytes:  # fmt: skip
    """The text of one file; each side is its mode, object and contents, and a result that is gone is None."""
    text = result[2] if result is not None else b""
    body = combined_hunks(process, [side[2] for side in parents], text, dense=dense)
    if not body:
        return b""
    shown = quote_path(path)
    head = f"diff --{'cc' if dense else 'combined'} {shown}\n"
    names = ",".join(side[1][:7].decode() for side in parents)
    head += f"index {names}..{(result[1] if result is not None else b'0' * 7)[:7].decode()}\n"
    modes = ",".join(f"{side[0]:06o}" for side in parents)
    if result is None:
        head += f"deleted file mode {modes}\n"
    elif any(side[0] != result[0] for side in parents):
        head += f"mode {modes}..{result[0]:06o}\n"
    head += f"--- {quote_path('a/' + path)}\n+++ {quote_path('b/' + path) if result is not None else '/dev/null'}\n"
    return fsencode(head) + body


def merge_patches(repo: Repository, sha: bytes, chosen: set[str] | None, *, dense: bool = True) -> bytes:
    """Return a merge's combined diff against its parents; `chosen` are the paths to compare, None for all."""
    commit = repo.store.commit(sha)
    trees: list[Flat] = [repo.tree_of(bytes(parent)) for parent in commit.parents]
    result = repo.tree_of(sha)
    out: list[bytes] = []
    for path in sorted(set(result).union(*trees)):
        repo.process.budget.charge()
        after = result.get(path)
        sides = [tree.get(path) for tree in trees]
        if any(side == after for side in sides) or (chosen is not None and path not in chosen):
            continue
        filled = [
            (side[0], side[1], repo.contents(side)) if side is not None else (0, b"0" * 40, b"") for side in sides
        ]
        merged = (after[0], after[1], repo.contents(after)) if after is not None else None
        out.append(combined_patch(repo.process, path, filled, merged, dense=dense))
    return b"".join(out)
