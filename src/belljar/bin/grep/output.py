"""Prints selected and context lines of one file after another, with prefixes and colours."""

from __future__ import annotations

from collections.abc import Mapping

from belljar.abi.dataclass import dataclass
from belljar.bin.grep.patterns import Matcher
from belljar.kernel.process import Process

_COLORS = {"ms": "01;31", "mc": "01;31", "sl": "", "cx": "", "fn": "35", "ln": "32", "bn": "32", "se": "36"}


@dataclass(frozen=True, slots=True)
class Style:
    """How lines are shown."""

    filenames: bool = False
    numbers: bool = False
    offsets: bool = False
    null: bool = False
    initial_tab: bool = False
    only_matching: bool = False
    invert: bool = False
    before: int = 0
    after: int = 0
    context: bool = False  # was context asked for, be it none?
    group_separator: bytes | None = b"--"
    separator: bytes = b"\n"
    colors: Mapping[str, bytes] | None = None

    @property
    def plain(self) -> bool:
        return not (self.filenames or self.numbers or self.offsets or self.only_matching or self.colors)


def parse_colors(setting: str) -> dict[str, bytes]:
    """GREP_COLORS over the defaults, each as its escape sequence."""
    colors = dict(_COLORS)
    for item in setting.split(":"):
        name, equals, code = item.partition("=")
        if not equals:
            continue
        for key in ("ms", "mc") if name == "mt" else (name,):
            if key in colors:
                colors[key] = code
    return {name: b"\33[%sm\33[K" % code.encode("utf-8", "surrogateescape") for name, code in colors.items() if code}


def well_formed(data: bytes) -> bool:
    """Is it UTF-8?"""
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


class Output:
    """The lines of one file. `feed` buffers in order; each is whole lines ending in the separator."""

    def __init__(
        self, process: Process, style: Style, matcher: Matcher, name: bytes, width: int, started: bool
    ) -> None:
        self.write = process.stdout.write
        self.style = style
        self.matcher = matcher
        self.name = name
        self.width = width  # of numbers, for -T
        self.number = 1  # of the line at `counted`
        self.counted = 0
        self.base = 0  # offset in the file of the buffer's start
        self.started = started  # has anything been printed, by this file or one before?
        self.skipped = started  # were lines left out since?
        self.owed = 0  # lines of trailing context still to print
        self.history: list[bytes] = []  # unprinted lines before the buffer, for leading context
        self.pos = 0  # up to where the buffer has been dealt with
        self.careful = False  # does the buffer have bytes that are no text?
        self.suppressed = False  # was such a line left out?

    # -- positions

    def number_at(self, buffer: bytes, pos: int) -> int:
        self.number += buffer.count(self.style.separator, self.counted, pos)
        self.counted = pos
        return self.number

    def finish_buffer(self, buffer: bytes) -> None:
        """The buffer has no more selected lines."""
        style = self.style
        end = len(buffer)
        if style.context:
            self.pay(buffer, end)
            if self.pos < end:
                if style.before:
                    start = self.back(buffer, end, style.before)
                    lines = buffer[start : end - 1].split(style.separator)
                    kept = (self.history + lines)[-style.before :] if start == self.pos else lines
                    self.skipped = self.skipped or start > self.pos or len(self.history) + len(lines) > len(kept)
                    self.history = kept
                else:
                    self.skipped = True
        if style.numbers:
            self.number_at(buffer, end)
        self.counted = self.pos = 0
        self.base += end

    def back(self, buffer: bytes, pos: int, lines: int) -> int:
        """Return where the last `lines` lines before `pos` start, not before self.pos."""
        start = pos
        while lines and start > self.pos:
            start = buffer.rfind(self.style.separator, self.pos, start - 1) + 1 or self.pos
            lines -= 1
        return start

    # -- lines

    def block(self, buffer: bytes, start: int, end: int) -> None:
        """Selected lines buffer[start:end], the last separator included."""
        if self.style.context:
            self.lead_in(buffer, start)
        self.selected(buffer, start, end)
        self.started = True
        self.skipped = False
        self.pos = end
        self.owed = self.style.after
        self.history = []

    def lead_in(self, buffer: bytes, start: int) -> None:
        """Trailing context of the last block, a group separator, leading context of the next."""
        style = self.style
        self.pay(buffer, start)
        first = self.back(buffer, start, style.before)
        lines = buffer[first : start - 1].split(style.separator) if first < start else []
        missing = style.before - len(lines)
        earlier = self.history[-missing:] if missing > 0 and first == self.pos else []
        apart = self.skipped or first > self.pos or len(earlier) < len(self.history)
        if apart and self.started and style.group_separator is not None:
            self.write(self.painted("se", style.group_separator) + b"\n")
        before = earlier + lines
        if before:
            size = sum(map(len, before)) + len(before)
            number = self.number_at(buffer, start) - len(before) if style.numbers else 0
            self.show(before, number, self.base + start - size, b"-")

    def pay(self, buffer: bytes, limit: int) -> None:
        """Print the trailing context still owed, from self.pos up to `limit`."""
        style = self.style
        end = self.pos
        count = 0
        while count < self.owed and end < limit:
            end = buffer.find(style.separator, end, limit) + 1 or limit
            count += 1
        if not count:
            return
        self.owed -= count
        number = self.number_at(buffer, self.pos) if style.numbers else 0
        self.show(buffer[self.pos : end - 1].split(style.separator), number, self.base + self.pos, b"-")
        self.pos = end

    def selected(self, buffer: bytes, start: int, end: int) -> None:
        style = self.style
        if style.plain and not self.careful:
            self.write(buffer[start:end])
            return
        number = self.number_at(buffer, start) if style.numbers else 0
        self.show(buffer[start : end - 1].split(style.separator), number, self.base + start, b":")

    def show(self, lines: list[bytes], number: int, offset: int, mark: bytes) -> None:
        style = self.style
        eol = style.separator
        selected = mark == b":"
        if style.only_matching:
            if selected != style.invert:
                self.show_matches(lines, number, offset, mark)
            return
        if not self.careful and style.colors is None and not style.offsets and not style.initial_tab:
            head = self.name + (b"\0" if style.null else mark) if style.filenames else b""
            if style.numbers:
                out = [b"%b%d%b%b" % (head, n, mark, line) for n, line in enumerate(lines, number)]
            elif head:
                out = [head + line for line in lines]
            else:
                out = lines
            out.append(b"")
            self.write(eol.join(out))
            return
        for line in lines:
            body = line
            if self.careful and not well_formed(line):
                self.suppressed = True
                number += 1
                offset += len(line) + 1
                continue
            if style.colors and selected != style.invert:
                body = self.highlight(line, style.colors, style.colors.get("ms" if selected else "mc", b""))
            self.write(self.head(number, offset, mark, empty=not line) + body + eol)
            number += 1
            offset += len(line) + 1

    def show_matches(self, lines: list[bytes], number: int, offset: int, mark: bytes) -> None:
        style = self.style
        simple = style.colors is None and not style.offsets and not style.initial_tab
        paint = style.colors.get("ms", b"") if style.colors else b""
        out = []
        for line in lines:
            head = self.head(number, offset, mark) if simple else b""
            for match in self.matcher.finditer(line):
                text = match.group()
                if not text:
                    continue
                if self.careful and not well_formed(text):
                    self.suppressed = True
                    continue
                if simple:
                    out.append(head + text + style.separator)
                else:
                    shown = paint + text + b"\33[m\33[K" if paint else text
                    out.append(self.head(number, offset + match.start(), mark) + shown + style.separator)
            number += 1
            offset += len(line) + 1
        if out:
            self.write(b"".join(out))

    def head(self, number: int, offset: int, mark: bytes, *, empty: bool = False) -> bytes:
        style = self.style
        parts: list[bytes] = []
        if style.filenames:
            parts.append(self.painted("fn", self.name) + (b"\0" if style.null else self.painted("se", mark)))
        width = self.width if style.initial_tab else 0
        if style.numbers:
            parts.append(self.painted("ln", b"%*d" % (width, number)) + self.painted("se", mark))
        if style.offsets:
            parts.append(self.painted("bn", b"%*d" % (width, offset)) + self.painted("se", mark))
        if style.initial_tab and parts and not empty:
            parts.append(b"\t")
        return b"".join(parts)

    def painted(self, what: str, text: bytes) -> bytes:
        colors = self.style.colors
        return colors[what] + text + b"\33[m\33[K" if colors and what in colors else text

    def highlight(self, line: bytes, colors: Mapping[str, bytes], paint: bytes) -> bytes:
        out = []
        last = 0
        for match in self.matcher.finditer(line):
            start, end = match.span()
            if start == end:
                continue
            out.append(line[last:start] + paint + line[start:end] + b"\33[m\33[K")
            last = end
        return b"".join(out) + line[last:]
