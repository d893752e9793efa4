"""Reads patches: unified, context and normal diffs, with what git adds before them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from belljar.abi.dataclass import dataclass, field
from belljar.abi.paths import fsdecode

_UNIFIED: Final = re.compile(rb"@@ -(\d+)(?:,(\d+))? \+(\d+)(?:,(\d+))? @@")
_UNNUMBERED: Final = re.compile(rb"@@(?: \.\.\.)?(?: @@|\s*$)")
"""A hunk's header without line numbers: where it belongs, only its lines can say."""
_BODY: Final = (b" ", b"-", b"+", b"\n", b"\t", b"\\")
_NORMAL: Final = re.compile(rb"(\d+)(?:,(\d+))?([acd])(\d+)(?:,(\d+))?\s*\Z")
_CONTEXT_OLD: Final = re.compile(rb"\*\*\* (\d+)(?:,(\d+))? \*\*\*\*")
_CONTEXT_NEW: Final = re.compile(rb"--- (\d+)(?:,(\d+))? -----?")
_ED: Final = re.compile(rb"\d+(?:,\d+)?[acd]\s*\Z")
_LONGEST_HEADER: Final = 4096
_EPOCH: Final = re.compile(rb"(?:19(?:69|70)-(?:12-31|01-01)|1970-01-01)[ T]")

Line = tuple[bytes, bytes]
"""A mark (space, - or +) and a line with its newline, if it has one."""


class Malformed(Exception):
    """The patch can't be read; the text is what GNU patch says after `****`."""


@dataclass(slots=True)
class Hunk:
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: list[Line]
    number: int = 0
    function: bytes = b""
    recounted: str = ""
    """Why its line numbers were not taken from its header, if so."""

    def reversed(self) -> Hunk:
        swap = {b" ": b" ", b"-": b"+", b"+": b"-"}
        turned = [(swap[mark], line) for mark, line in self.lines]
        # Removed lines come before added ones.
        ordered: list[Line] = []
        pending: list[Line] = []
        for mark, line in turned:
            if mark == b"+":
                pending.append((mark, line))
            elif mark == b"-":
                ordered.append((mark, line))
            else:
                ordered += pending
                pending = []
                ordered.append((mark, line))
        ordered += pending
        return Hunk(
            self.new_start, self.new_count, self.old_start, self.old_count, ordered, self.number, self.function,
            self.recounted,
        )  # fmt: skip

    @property
    def old(self) -> list[bytes]:
        return [line for mark, line in self.lines if mark != b"+"]

    @property
    def new(self) -> list[bytes]:
        return [line for mark, line in self.lines if mark != b"-"]


@dataclass(slots=True)
class FilePatch:
    """The changes to one file."""

    style: str
    """unified, context or normal"""
    old_name: str | None = None
    new_name: str | None = None
    index_name: str | None = None
    old_header: bytes = b""
    new_header: bytes = b""
    creates: bool = False
    deletes: bool = False
    rename_from: str | None = None
    rename_to: str | None = None
    copy: bool = False
    mode: int | None = None
    hunks: list[Hunk] = field(default_factory=list)
    leading: list[bytes] = field(default_factory=list)
    """The text before it."""
    at: int = 1
    """The number of the line where it begins."""

    @property
    def starts_empty(self) -> bool:
        """Whether it fits a file that isn't there."""
        return self.creates or not self.hunks or (self.hunks[0].old_start == 0 and self.hunks[0].old_count == 0)

    def turn_round(self) -> None:
        self.hunks = [hunk.reversed() for hunk in self.hunks]
        self.old_name, self.new_name = self.new_name, self.old_name
        self.old_header, self.new_header = self.new_header, self.old_header
        self.creates, self.deletes = self.deletes, self.creates
        self.rename_from, self.rename_to = self.rename_to, self.rename_from


class Reader:
    """Walks the lines of a patch."""

    def __init__(self, data: bytes, charge: Callable[[int], None], style: str = "") -> None:
        if data and not data.endswith(b"\n"):
            data += b"\n"  # the end of a patch that was cut or pasted
        self.lines = data.splitlines(keepends=True) if b"\r" not in data else _split(data)
        self.at = 0
        self.charge = charge
        self.style = style

    def read(self) -> list[FilePatch]:
        found: list[FilePatch] = []
        current = FilePatch("")
        start = 0
        while self.at < len(self.lines):
            self.charge(1)
            line = self.lines[self.at]
            following = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else b""
            if line.startswith(b"diff --git ") and self.style in ("", "unified"):
                if current.rename_to or current.mode is not None or current.creates or current.deletes:
                    current.leading = self.lines[start : self.at]
                    found.append(current)
                    start = self.at
                current = FilePatch("", at=self.at + 1)
                self._git_names(current, line)
            elif self._git_header(current, line):
                pass
            elif line.startswith(b"Index:"):
                current.index_name = fsdecode(line[6:].strip())
            elif line.startswith(b"--- ") and following.startswith(b"+++ ") and self.style in ("", "unified"):
                found.append(self._unified(current, start))
                current, start = FilePatch(""), self.at
                continue
            elif line.startswith(b"*** ") and following.startswith(b"--- ") and self.style in ("", "context"):
                found.append(self._context(current, start))
                current, start = FilePatch(""), self.at
                continue
            elif _NORMAL.match(line) and following[:2] in (b"< ", b"> ", b"<\n", b">\n", b"<\t", b">\t"):
                found.append(self._normal(current, start))
                current, start = FilePatch(""), self.at
                continue
            self.at += 1
        if current.rename_to or current.mode is not None or current.creates or current.deletes:
            current.leading = self.lines[start:]
            found.append(current)
        return found

    def _git_names(self, patch: FilePatch, line: bytes) -> None:
        names = line[11:].rstrip(b"\n")
        half = len(names) // 2
        patch.style = "unified"
        old, new = names[:half], names[half + 1 :]
        if old.partition(b"/")[2] != new.partition(b"/")[2]:
            old, _, new = names.partition(b" ")
        patch.old_name, patch.new_name = fsdecode(old), fsdecode(new)

    def _git_header(self, patch: FilePatch, line: bytes) -> bool:
        if not patch.style:
            return False
        text = line.rstrip(b"\n")
        for prefix, name in (
            (b"new file mode ", "creates"), (b"deleted file mode ", "deletes"), (b"new mode ", "mode"),
            (b"rename from ", "rename_from"), (b"rename to ", "rename_to"), (b"copy from ", "rename_from"),
            (b"copy to ", "rename_to"),
        ):  # fmt: skip
            if text.startswith(prefix):
                value = text[len(prefix) :]
                if name in ("creates", "deletes"):
                    setattr(patch, name, True)
                if name in ("creates", "mode") and value.isdigit():
                    patch.mode = int(value, 8) & 0o7777
                if name.startswith("rename"):
                    setattr(patch, name, fsdecode(value))
                    patch.copy = prefix.startswith(b"copy")
                return True
        return False

    def _start(self, patch: FilePatch, style: str, start: int) -> FilePatch:
        patch.style = style
        patch.leading = self.lines[start : self.at + (2 if style != "normal" else 0)]
        patch.at = start + len(patch.leading)
        return patch

    def _names(self, patch: FilePatch) -> None:
        patch.old_header, patch.new_header = self.lines[self.at][4:], self.lines[self.at + 1][4:]
        patch.old_name, old_gone = _name(patch.old_header)
        patch.new_name, new_gone = _name(patch.new_header)
        patch.creates = patch.creates or old_gone
        patch.deletes = patch.deletes or new_gone
        self.at += 2

    def _unified(self, patch: FilePatch, start: int) -> FilePatch:
        self._start(patch, "unified", start)
        self._names(patch)
        while self.at < len(self.lines):
            line = self.lines[self.at]
            number = len(patch.hunks) + 1
            if match := _UNIFIED.match(line):
                counts = [int(text[:18]) if text is not None else 1 for text in match.groups()]
                hunk = Hunk(counts[0], counts[1], counts[2], counts[3], [], number)
            elif match := _UNNUMBERED.match(line):
                hunk = Hunk(1, 0, 1, 0, [], number, recounted="its header has no line numbers")
            else:
                break
            hunk.function = line[match.end() :].rstrip(b"\n")
            self.at += 1
            self._unified_body(hunk)
            patch.hunks.append(hunk)
        return patch

    def _unified_body(self, hunk: Hunk) -> None:
        """The lines that the header counts; all that look like a hunk's if its numbers are wrong."""
        start = self.at
        wrong: Malformed | None = None
        if not hunk.recounted:
            try:
                self._unified_lines(hunk)
                if not self._goes_on():
                    return
            except Malformed as error:
                wrong = error
        hunk.lines, self.at = [], start
        while self.at < len(self.lines) and self.lines[self.at][:1] in _BODY and not self._at_header():
            line = self.lines[self.at]
            mark, text = (b" ", line) if line[:1] in (b"\n", b"\t") else (line[:1], line[1:])
            self.at += 1
            if mark != b"\\":
                hunk.lines.append((mark, text if text.endswith(b"\n") else text + b"\n"))
                self._no_newline(hunk.lines)
        while hunk.lines and hunk.lines[-1] == (b" ", b"\n"):
            hunk.lines.pop()  # blank lines behind a hunk divide it from what follows
        counted = (len(hunk.old), len(hunk.new))
        if wrong is not None and (not hunk.lines or self._inside_text() or counted == (hunk.old_count, hunk.new_count)):
            raise wrong
        if not hunk.recounted:
            said, found = f"-{hunk.old_count} +{hunk.new_count}", f"-{counted[0]} +{counted[1]}"
            hunk.recounted = f"its header counts {said} lines and it has {found}"
        hunk.old_count, hunk.new_count = counted

    def _at_header(self) -> bool:
        """Whether a `---` line begins another file's part, or a mail's signature."""
        line = self.lines[self.at]
        following = self.lines[self.at + 1] if self.at + 1 < len(self.lines) else b""
        return (line.startswith(b"--- ") and following.startswith(b"+++ ")) or line.rstrip(b"\r\n") == b"-- "

    def _goes_on(self) -> bool:
        """Whether more of a hunk follows than its header counted."""
        if self.at >= len(self.lines) or self._at_header():
            return False
        return self.lines[self.at][:1] in (b" ", b"+", b"-") and self.lines[self.at].rstrip(b"\r\n") != b"--"

    def _inside_text(self) -> bool:
        """Whether what ended a hunk is neither the end, nor a blank line, nor the beginning of another part."""
        if self.at >= len(self.lines):
            return False
        line = self.lines[self.at]
        known = (b"@@", b"diff ", b"Index:", b"--- ", b"***", b"-- ", b"=====", b"From ", b"```")
        return not (line.startswith(known) or not line.strip())

    def _unified_lines(self, hunk: Hunk) -> None:
        old, new = hunk.old_count, hunk.new_count
        while old > 0 or new > 0:
            if self.at >= len(self.lines):
                raise Malformed(f"malformed patch at line {self.at}:  \n")
            line = self.lines[self.at]
            mark, text = line[:1], line[1:]
            if mark in (b"\n", b"\t"):
                mark, text = b" ", line
            if mark not in (b" ", b"-", b"+"):
                shown = fsdecode(line.rstrip(b"\n"))
                raise Malformed(f"malformed patch at line {self.at + 1}: {shown}\n")
            old -= mark != b"+"
            new -= mark != b"-"
            if old < 0 or new < 0:
                raise Malformed(f"malformed patch at line {self.at + 1}: {fsdecode(line)}")
            hunk.lines.append((mark, text))
            self.at += 1
            self._no_newline(hunk.lines)

    def _no_newline(self, lines: list[Line]) -> None:
        """A line that begins with a backslash says that the one before has no newline."""
        if lines and self.at < len(self.lines) and self.lines[self.at].startswith(b"\\ "):
            mark, text = lines[-1]
            lines[-1] = (mark, text.removesuffix(b"\n"))
            self.at += 1

    def _context(self, patch: FilePatch, start: int) -> FilePatch:
        self._start(patch, "context", start)
        self._names(patch)
        while self.at < len(self.lines) and self.lines[self.at].startswith(b"***************"):
            function = self.lines[self.at][15:].rstrip(b"\n")
            self.at += 1
            match = _CONTEXT_OLD.match(self.lines[self.at]) if self.at < len(self.lines) else None
            if match is None:
                raise Malformed(f"malformed patch at line {self.at + 1}")
            self.at += 1
            low, high = int(match[1][:18]), int((match[2] or match[1])[:18])
            old = self._context_part(b"-", _CONTEXT_NEW)
            match = _CONTEXT_NEW.match(self.lines[self.at]) if self.at < len(self.lines) else None
            if match is None:
                raise Malformed(f"malformed patch at line {self.at + 1}")
            self.at += 1
            new_low, new_high = int(match[1][:18]), int((match[2] or match[1])[:18])
            new = self._context_part(b"+", None)
            hunk = Hunk(low, 0, new_low, 0, _merge(old, new), len(patch.hunks) + 1, function)
            hunk.old_count, hunk.new_count = len(hunk.old), len(hunk.new)
            del high, new_high
            patch.hunks.append(hunk)
        return patch

    def _context_part(self, changed: bytes, stop: re.Pattern[bytes] | None) -> list[tuple[bytes, Line]]:
        """Lines as (their own mark, (mark, text)); `!` is a change of either side."""
        part: list[tuple[bytes, Line]] = []
        while self.at < len(self.lines):
            line = self.lines[self.at]
            if stop is not None and stop.match(line):
                break
            mark = line[:1]
            if line[:2] not in (b"  ", b"- ", b"+ ", b"! ") and line not in (b"\n", b" \n"):
                break
            text = line[2:] if len(line) > 2 else b"\n"
            own = changed if mark in (b"!", b"-", b"+") else b" "
            part.append((mark, (own, text)))
            self.at += 1
            if self.at < len(self.lines) and self.lines[self.at].startswith(b"\\ "):
                part[-1] = (mark, (own, text.removesuffix(b"\n")))
                self.at += 1
        return part

    def _normal(self, patch: FilePatch, start: int) -> FilePatch:
        self._start(patch, "normal", start)
        while self.at < len(self.lines) and (match := _NORMAL.match(self.lines[self.at])):
            self.at += 1
            low, high = int(match[1][:18]), int((match[2] or match[1])[:18])
            new_low, new_high = int(match[4][:18]), int((match[5] or match[4])[:18])
            old_count = 0 if match[3] == b"a" else high - low + 1
            new_count = 0 if match[3] == b"d" else new_high - new_low + 1
            hunk = Hunk(low, old_count, new_low, new_count, [], len(patch.hunks) + 1)
            self._normal_lines(hunk, b"<", b"-", old_count)
            if match[3] == b"c":
                if self.at >= len(self.lines) or not self.lines[self.at].startswith(b"---"):
                    raise Malformed(f"'---' expected at line {self.at + 1} of patch")
                self.at += 1
            self._normal_lines(hunk, b">", b"+", new_count)
            patch.hunks.append(hunk)
        return patch

    def _normal_lines(self, hunk: Hunk, sign: bytes, mark: bytes, count: int) -> None:
        for _ in range(count):
            if self.at >= len(self.lines):
                raise Malformed("unexpected end of file in patch")
            line = self.lines[self.at]
            if line[:1] != sign or line[1:2] not in (b" ", b"\t", b"\n"):
                raise Malformed(f"'{sign.decode()}' followed by space or tab expected at line {self.at + 1} of patch")
            hunk.lines.append((mark, line[2:] if line[1:2] != b"\n" else b"\n"))
            self.at += 1
            self._no_newline(hunk.lines)


def _split(data: bytes) -> list[bytes]:
    """Lines end at newlines only."""
    parts = data.split(b"\n")
    last = parts.pop()
    return [part + b"\n" for part in parts] + ([last] if last else [])


def _name(header: bytes) -> tuple[str | None, bool]:
    """The file a header line names, and whether it says that the file isn't there."""
    text = header.rstrip(b"\n")
    name, tab, stamp = text.partition(b"\t")
    if not tab and len(text) < _LONGEST_HEADER:
        match = re.search(rb"\s+(?:\d{4}-\d\d-\d\d|[A-Z][a-z]{2} [A-Z][a-z]{2}) .*\Z", text)
        if match:
            name, stamp = text[: match.start()], match[0].strip()
    name = name.strip()
    if name.startswith(b'"') and name.endswith(b'"') and len(name) > 1:
        name = name[1:-1].replace(b'\\"', b'"').replace(b"\\\\", b"\\")
    if name == b"/dev/null":
        return None, True
    return fsdecode(name), bool(_EPOCH.match(stamp)) and b"00:00:00" in stamp


def _merge(old: list[tuple[bytes, Line]], new: list[tuple[bytes, Line]]) -> list[Line]:
    """One list of the two halves of a context hunk; a half that only has context may have been left out."""
    if not old:
        old = [item for item in new if item[0] == b" "]
    if not new:
        new = [item for item in old if item[0] == b" "]
    lines: list[Line] = []
    i = j = 0
    while i < len(old) or j < len(new):
        while i < len(old) and old[i][0] != b" ":
            lines.append(old[i][1])
            i += 1
        while j < len(new) and new[j][0] != b" ":
            lines.append(new[j][1])
            j += 1
        if i < len(old) and j < len(new):
            lines.append(old[i][1])
        elif i < len(old) or j < len(new):
            raise Malformed("context mangled in hunk")
        i += 1
        j += 1
    return lines
