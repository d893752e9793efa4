"""The outputs that show changes one after another: normal, context, unified, and the scripts for ed and RCS."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit.clock import format_time
from belljar.bin.diff.sides import Comparison, Side
from belljar.libc.line_diff import Change
from belljar.libc.quotearg import c_escape
from belljar.libc.zones import Zone
from belljar.regex import Regex

_NO_NEWLINE: Final = b"\\ No newline at end of file\n"
_COLOURS: Final = {"rs": b"0", "hd": b"1", "ad": b"32", "de": b"31", "ln": b"36"}


@dataclass(frozen=True, slots=True)
class Style:
    """How a comparison is shown."""

    context: int = 3
    zone: Zone | None = None
    colour: bool = False
    palette: tuple[tuple[str, bytes], ...] = ()
    expand_tabs: bool = False
    tabsize: int = 8
    initial_tab: bool = False
    bare_blank: bool = False
    """Whether an empty context line has no space before it."""
    function: Regex | None = None

    def paint(self, kind: str, text: bytes) -> bytes:
        if not self.colour:
            return text
        codes = dict(_COLOURS) | dict(self.palette)
        return b"\x1b[" + codes[kind] + b"m" + text + b"\x1b[" + codes["rs"] + b"m"

    def line(self, mark: bytes, line: bytes) -> bytes:
        """One line with its mark, without a newline."""
        if self.initial_tab:
            mark = mark.rstrip(b" ") + b"\t" if line or not self.bare_blank else mark.rstrip(b" ")
        elif self.bare_blank and not line:
            mark = mark.rstrip(b" ")
        return mark + (line.expandtabs(self.tabsize) if self.expand_tabs else line)


def is_last(comparison: Comparison, side: int, index: int) -> bool:
    """Whether a line is one without its newline."""
    return not comparison.complete[side] and index == len(comparison.lines[side]) - 1


def shown_lines(
    comparison: Comparison, side: int, low: int, high: int, mark: bytes, kind: str, style: Style
) -> Iterator[bytes]:
    lines = comparison.lines[side]
    paint = style.colour and kind != ""
    plain = not (paint or style.initial_tab or style.bare_blank or style.expand_tabs)
    if plain:
        if low < high:
            yield mark + (b"\n" + mark).join(lines[low:high]) + b"\n"
    else:
        for line in lines[low:high]:
            text = style.line(mark, line)
            yield (style.paint(kind, text) if paint else text) + b"\n"
    if low < high and is_last(comparison, side, high - 1):
        yield _NO_NEWLINE


def _range(low: int, high: int) -> bytes:
    """Lines [low, high) counted from 1; the line before if there are none."""
    if high <= low + 1:
        return b"%d" % (high if high > low else low)
    return b"%d,%d" % (low + 1, high)


def normal(comparison: Comparison, style: Style) -> Iterator[bytes]:
    for change in comparison.changes:
        if change.trivial:
            continue
        removed, added = change.high_a > change.low_a, change.high_b > change.low_b
        letter = b"c" if removed and added else b"d" if removed else b"a"
        head = _range(change.low_a, change.high_a) + letter + _range(change.low_b, change.high_b)
        yield style.paint("ln", head) + b"\n"
        yield from shown_lines(comparison, 0, change.low_a, change.high_a, b"< ", "de", style)
        if removed and added:
            yield b"---\n"
        yield from shown_lines(comparison, 1, change.low_b, change.high_b, b"> ", "ad", style)


def group(changes: list[Change], context: int) -> Iterator[list[Change]]:
    """Changes so near one another that their context would touch; groups that don't count are left out."""
    found: list[Change] = []
    for change in changes:
        limit = context if change.trivial else 2 * context + 1
        if found and change.low_a - found[-1].high_a >= limit:
            if not all(c.trivial for c in found):
                yield found
            found = []
        found.append(change)
    if found and not all(c.trivial for c in found):
        yield found


def _header(side: Side, mark: bytes, style: Style) -> bytes:
    if side.label is not None:
        text = fsencode(side.label)
    else:
        mtime = side.stat.mtime if side.stat is not None else 0
        assert style.zone is not None
        when = format_time("%Y-%m-%d %H:%M:%S.%N %z", mtime, style.zone)
        text = fsencode(f"{header_name(side.name)}\t{when}")
    return style.paint("hd", mark + b" " + text) + b"\n"


def header_name(name: str) -> str:
    """A name with characters that would confuse patch is shown as C would write it."""
    escaped = c_escape(name, also='"')
    return name if escaped == name else f'"{escaped}"'


def unified(comparison: Comparison, style: Style) -> Iterator[bytes]:
    first = True
    for changes in group(comparison.changes, style.context):
        if first:
            yield _header(comparison.sides[0], b"---", style) + _header(comparison.sides[1], b"+++", style)
            first = False
        low_a, high_a, low_b, high_b = _window(comparison, changes, style.context)
        head = b"@@ -%s +%s @@" % (_count(low_a, high_a), _count(low_b, high_b))
        yield style.paint("ln", head) + _function_line(comparison, low_a, style) + b"\n"
        at = low_a
        for change in changes:
            yield from shown_lines(comparison, 0, at, change.low_a, b" ", "", style)
            yield from shown_lines(comparison, 0, change.low_a, change.high_a, b"-", "de", style)
            yield from shown_lines(comparison, 1, change.low_b, change.high_b, b"+", "ad", style)
            at = change.high_a
        yield from shown_lines(comparison, 0, at, high_a, b" ", "", style)


def _window(comparison: Comparison, changes: list[Change], context: int) -> tuple[int, int, int, int]:
    before_a, before_b = min(context, changes[0].low_a), min(context, changes[0].low_b)
    after = min(
        context,
        len(comparison.lines[0]) - changes[-1].high_a,
        len(comparison.lines[1]) - changes[-1].high_b,
    )
    return (
        changes[0].low_a - before_a,
        changes[-1].high_a + after,
        changes[0].low_b - before_b,
        changes[-1].high_b + after,
    )


def _count(low: int, high: int) -> bytes:
    if high - low == 1:
        return b"%d" % high
    return b"%d,%d" % (low + 1 if high > low else low, high - low)


def _function_line(comparison: Comparison, low: int, style: Style) -> bytes:
    if style.function is None:
        return b""
    for line in reversed(comparison.lines[0][:low]):
        if style.function.test(line):
            return b" " + line.lstrip()[:40].rstrip()
    return b""


def context(comparison: Comparison, style: Style) -> Iterator[bytes]:
    first = True
    for changes in group(comparison.changes, style.context):
        if first:
            yield _header(comparison.sides[0], b"***", style) + _header(comparison.sides[1], b"---", style)
            first = False
        low_a, high_a, low_b, high_b = _window(comparison, changes, style.context)
        yield b"***************" + _function_line(comparison, low_a, style) + b"\n"
        removes = any(c.high_a > c.low_a for c in changes)
        adds = any(c.high_b > c.low_b for c in changes)
        yield style.paint("ln", b"*** " + _range(low_a, high_a) + b" ****") + b"\n"
        if removes:
            at = low_a
            for change in changes:
                mark = b"! " if change.high_b > change.low_b else b"- "
                yield from shown_lines(comparison, 0, at, change.low_a, b"  ", "de", style)
                yield from shown_lines(comparison, 0, change.low_a, change.high_a, mark, "de", style)
                at = change.high_a
            yield from shown_lines(comparison, 0, at, high_a, b"  ", "de", style)
        yield style.paint("ln", b"--- " + _range(low_b, high_b) + b" ----") + b"\n"
        if adds:
            at = low_b
            for change in changes:
                mark = b"! " if change.high_a > change.low_a else b"+ "
                yield from shown_lines(comparison, 1, at, change.low_b, b"  ", "ad", style)
                yield from shown_lines(comparison, 1, change.low_b, change.high_b, mark, "ad", style)
                at = change.high_b
            yield from shown_lines(comparison, 1, at, high_b, b"  ", "ad", style)


def ed(comparison: Comparison, style: Style) -> Iterator[bytes]:
    """Write an ed script, from the last change to the first, so that line numbers stay right."""
    for change in reversed(comparison.changes):
        if change.trivial:
            continue
        removed, added = change.high_a > change.low_a, change.high_b > change.low_b
        letter = b"c" if removed and added else b"d" if removed else b"a"
        yield _range(change.low_a, change.high_a) + letter + b"\n"
        if not added:
            continue
        insert_mode = True
        for line in comparison.lines[1][change.low_b : change.high_b]:
            if not insert_mode:
                yield b"a\n"
                insert_mode = True
            if line == b".":
                # A lone dot would end the text: double it, then take one dot away.
                yield b"..\n.\ns/.//\n"
                insert_mode = False
            else:
                yield line + b"\n"
        if insert_mode:
            yield b".\n"


def forward_ed(comparison: Comparison, style: Style) -> Iterator[bytes]:
    for change in comparison.changes:
        if change.trivial:
            continue
        removed, added = change.high_a > change.low_a, change.high_b > change.low_b
        letter = b"c" if removed and added else b"d" if removed else b"a"
        yield letter + _range(change.low_a, change.high_a).replace(b",", b" ") + b"\n"
        if added:
            yield b"".join(line + b"\n" for line in comparison.lines[1][change.low_b : change.high_b]) + b".\n"


def rcs(comparison: Comparison, style: Style) -> Iterator[bytes]:
    for change in comparison.changes:
        if change.trivial:
            continue
        if change.high_a > change.low_a:
            yield b"d%d %d\n" % (change.low_a + 1, change.high_a - change.low_a)
        if change.high_b > change.low_b:
            yield b"a%d %d\n" % (change.high_a, change.high_b - change.low_b)
            text = b"".join(line + b"\n" for line in comparison.lines[1][change.low_b : change.high_b])
            yield text[:-1] if is_last(comparison, 1, change.high_b - 1) else text
