"""ptx - produce a permuted index of file contents

Usage: ptx [OPTION]... [INPUT]...

Output a permuted index, including context, of the words in the input files. With no INPUT, or when INPUT is -, read
standard input. The default is '-F /'.
"""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.quoting import quote_if_odd
from belljar.kernel.process import Process
from belljar.regex import RegexError, compile

_WORD = re.compile(rb"[A-Za-z]+")
_BLANKED = bytes(32 if byte in b"\t\n\v\f\r" else byte for byte in range(256))
NEWLINE = b"\n"


_SENTENCE_END = re.compile(rb"[.?!][\])\"'}]*(?:\n|\t|  )[ \t\n]*")


@dataclass(frozen=True, slots=True)
class Options:
    auto_reference: bool = flag("-A", "--auto-reference", "output automatically generated references")
    traditional: bool = flag("-G", "--traditional", "behave more like System V 'ptx'")
    truncation: str = value(
        "-F", "--flag-truncation", "use STRING for flagging line truncations", metavar="STRING", default="/"
    )
    macro: str = value("-M", "--macro-name", "macro name to use instead of 'xx'", metavar="STRING", default="xx")
    output: str = choice({"-O": "roff", "-T": "tex"}, "generate output as roff (-O) or TeX (-T) directives", "")
    format: str | None = value("--format", "generate output as roff or tex directives", metavar="FORMAT")
    right_side: bool = flag("-R", "--right-side-refs", "put references at right, not counted in -w")
    sentence: str | None = value("-S", "--sentence-regexp", "for end of lines or end of sentences", metavar="REGEXP")
    word: str | None = value("-W", "--word-regexp", "use REGEXP to match each keyword", metavar="REGEXP")
    breaks: str | None = value("-b", "--break-file", "word break characters in this FILE", metavar="FILE")
    fold: bool = flag("-f", "--ignore-case", "fold lower case to upper case for sorting")
    gap: str | None = value("-g", "--gap-size", "gap size in columns between output fields", metavar="NUMBER")
    ignore: str | None = value("-i", "--ignore-file", "read ignore word list from FILE", metavar="FILE")
    only: str | None = value("-o", "--only-file", "read only word list from this FILE", metavar="FILE")
    references: bool = flag("-r", "--references", "first field of each line is a reference")
    typeset: bool = flag("-t", "--typeset-mode", "- not implemented -")
    width: str | None = value("-w", "--width", "output width in columns, reference excluded", metavar="NUMBER")


@dataclass(frozen=True, slots=True)
class Entry:
    """A keyword in its line."""

    line: bytes
    start: int
    end: int
    reference: bytes


@utility("ptx", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    gap = _positive(options.gap, "gap width", 3)
    width = _positive(options.width, "line width", 72)
    style = options.output or ("roff" if options.traditional else "")
    if options.format is not None:
        style = pick(process, "--format", options.format, {"roff": (), "tex": ()})
    entries = collect(process, options, operands or ["-"])
    key = (
        (lambda e: (e.line[e.start : e.end].upper(), e.line[e.start :]))
        if options.fold
        else (lambda e: (e.line[e.start : e.end], b""))
    )
    entries.sort(key=key)
    longest = max((len(e.reference) for e in entries), default=0) if options.auto_reference or options.references else 0
    longest_word = max((e.end - e.start for e in entries), default=0)
    layout = Layout(options, width, gap, longest, longest_word)
    for entry in entries:
        process.budget.charge()
        fields = layout.fields(entry)
        if style == "tex":
            process.stdout.write(layout.tex(entry, fields))
        elif style == "roff":
            process.stdout.write(layout.roff(entry, fields))
        else:
            process.stdout.write(layout.dumb(entry, fields))
    return 0


def _positive(text: str | None, what: str, default: int) -> int:
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal()) or not 0 < int(text[:9]) < 1 << 20:
        raise UsageError(f"invalid {what}: \u2018{text}\u2019", hint=False)
    return int(text)


def _words(process: Process, name: str | None, fold: bool) -> frozenset[bytes] | None:
    if name is None:
        return None
    try:
        data = process.read_file(name)
    except SysError as error:
        raise UsageError(f"{quote_if_odd(name)}: {error.reason}", hint=False) from error
    return frozenset((data.upper() if fold else data).split(b"\n")) - {b""}


def collect(process: Process, options: Options, names: list[str]) -> list[Entry]:
    ignored, only = _words(process, options.ignore, options.fold), _words(process, options.only, options.fold)
    try:
        pattern = compile(fsencode(options.word), syntax="emacs") if options.word else None
        sentence = compile(fsencode(options.sentence), syntax="emacs") if options.sentence else None
    except RegexError as error:
        raise UsageError(f"{error} (for regexp \u2018{options.word or options.sentence}\u2019)", hint=False) from error
    plain = _WORD
    if options.breaks is not None:
        try:
            chars = set(process.read_file(options.breaks)) | set(b" \t\n")
        except SysError as error:
            raise UsageError(f"{options.breaks}: {error.reason}", hint=False) from error
        plain = re.compile(b"[^" + b"".join(b"\\x%02x" % byte for byte in sorted(chars)) + b"]+")
    elif options.traditional:
        plain = re.compile(rb"[^ \t\n]+")
    entries: list[Entry] = []
    for name in names:
        try:
            data = process.read_file(name)
        except SysError as error:
            raise UsageError(f"{quote_if_odd(name)}: {error.reason}", hint=False) from error
        shown = "" if name == "-" else name
        number = 1
        for raw in _sentences(data, sentence, options):
            process.budget.charge(len(raw) // 64 + 1)
            reference = b""
            body = raw
            if options.references:
                reference, _, body = raw.lstrip(b" \t").partition(b" ")
            line = body.translate(_BLANKED).rstrip(b" ")
            first, number = number, number + raw.count(b"\n")
            spans = (
                [m.span() for m in plain.finditer(line)]
                if pattern is None
                else [m.span() for m in pattern.finditer(line) if m.end() > m.start()]
            )
            for start, end in spans:
                word = line[start:end].upper() if options.fold else line[start:end]
                if (ignored is None or word not in ignored) and (only is None or word in only):
                    process.budget.charge_size(len(entries) * 100)
                    if options.auto_reference:
                        reference = fsencode(f"{shown}:{first + body.count(NEWLINE, 0, start)}")
                    entries.append(Entry(line, start, end, reference))
    return entries


def _sentences(data: bytes, sentence: object, options: Options) -> list[bytes]:
    """Lines if they have references; else up to the end of a sentence, or of a line if that is how it is."""
    if sentence is not None:
        parts: list[bytes] = []
        start = 0
        for match in sentence.finditer(data):  # type: ignore[attr-defined]
            parts.append(data[start : match.end()])
            start = match.end()
        return [part for part in [*parts, data[start:]] if part.strip()]
    if options.references or options.traditional:
        return data.splitlines(keepends=True)
    parts = []
    start = 0
    for found in _SENTENCE_END.finditer(data):
        parts.append(data[start : found.end()])
        start = found.end()
    return [*parts, data[start:]]


class Layout:
    """Layout of an entry: tail, before, keyword and after, head."""

    def __init__(self, options: Options, width: int, gap: int, longest: int, longest_word: int) -> None:
        self.longest_word = longest_word
        self.options = options
        self.gap = gap
        self.mark = fsencode(options.truncation)
        self.reference_width = longest
        line = width
        if longest and not options.right_side:
            line -= longest + gap
        self.line_width = max(line, 0)
        self.half = max(self.line_width // 2, 0)
        self.before_width = max(self.half - gap - 2 * len(self.mark), 0)
        self.after_width = max(self.half - 2 * len(self.mark), 0)

    def fields(self, entry: Entry) -> tuple[bytes, bytes, bytes, bytes, bool, bool, bool, bool]:
        """Tail, before, after (with the keyword), head; and whether each is cut off at its outer side."""
        line = entry.line
        end = entry.end
        limit = entry.start + self.after_width
        position = end
        while position < len(line) and position <= limit:
            end = position
            position = _skip(line, position)
        if position <= limit:
            end = position
        after = line[entry.start : end].rstrip()
        start = entry.start
        left = line[:start].rstrip()
        # Nothing further back than half a line and a word is looked at.
        reach = self.half + self.longest_word
        origin = _skip(line, start - reach) if start > reach else 0
        begin = origin
        while len(left) - begin > self.before_width and begin < len(left):
            begin = _skip(line, begin)
        before = left[begin:].lstrip()
        before_start = len(left) - len(before) if before else len(left)
        cut_before = before_start > 0 and bool(line[:before_start].strip())
        cut_after = end < len(line) and bool(line[end:].strip())
        # What doesn't fit on one side may go to the other end of the line.
        tail = head = b""
        cut_tail = cut_head = False
        room = self.before_width - self._size(entry, before) - self.gap
        if cut_after and room > 0:
            rest = line[end:].lstrip()
            stop = 0
            position = 0
            while position < len(rest) and position < room:
                stop = position
                position = _skip(rest, position)
            if position < room:
                stop = position
            tail = rest[:stop].rstrip()
            if tail:
                cut_tail = bool(rest[stop:].strip())
                cut_after = False
        room = self.after_width - len(after) - self.gap
        if cut_before and room > 0:
            rest = line[:before_start].rstrip()
            begin = origin
            while len(rest) - begin > room and begin < len(rest):
                begin = _skip(rest, begin)
            head = rest[begin:].lstrip()
            if head:
                cut_head = begin > 0
                cut_before = False
        return tail, before, after, head, cut_tail, cut_before, cut_after, cut_head

    def _size(self, entry: Entry, before: bytes) -> int:
        """Columns of the text before the keyword: where nothing of it is left, GNU subtracts the blanks behind it."""
        return len(before) or len(entry.line[: entry.start].rstrip()) - entry.start

    def dumb(self, entry: Entry, fields: tuple[bytes, bytes, bytes, bytes, bool, bool, bool, bool]) -> bytes:
        tail, before, after, head, cut_tail, cut_before, cut_after, cut_head = fields
        size = len(self.mark)
        out = b""
        if self.reference_width and not self.options.right_side:
            suffix = b":" if self.options.auto_reference else b""
            out += entry.reference + suffix
            out += b" " * (self.reference_width + self.gap - len(entry.reference) - len(suffix))
        elif not self.options.right_side:
            out += b" " * self.gap
        if tail:
            out += tail + (self.mark if cut_tail else b"")
            pad = self.half - self.gap - self._size(entry, before) - (size if cut_before else 0)
            out += b" " * (pad - len(tail) - (size if cut_tail else 0))
        else:
            out += b" " * (self.half - self.gap - self._size(entry, before) - (size if cut_before else 0))
        out += (self.mark if cut_before else b"") + before + b" " * self.gap
        out += after + (self.mark if cut_after else b"")
        if head:
            pad = self.half - len(after) - (size if cut_after else 0) - len(head) - (size if cut_head else 0)
            out += b" " * pad + (self.mark if cut_head else b"") + head
        elif self.reference_width and self.options.right_side:
            out += b" " * (self.half - len(after) - (size if cut_after else 0))
        if self.reference_width and self.options.right_side:
            out += b" " * self.gap + entry.reference
        return out + b"\n"

    def roff(self, entry: Entry, fields: tuple[bytes, bytes, bytes, bytes, bool, bool, bool, bool]) -> bytes:
        tail, before, after, head, cut_tail, cut_before, cut_after, cut_head = fields

        def quoted(text: bytes) -> bytes:
            return b'"' + text.replace(b'"', b'""') + b'"'

        parts = [
            quoted(tail + (self.mark if cut_tail else b"")),
            quoted((self.mark if cut_before else b"") + before),
            quoted(after + (self.mark if cut_after else b"")),
            quoted((self.mark if cut_head else b"") + head),
        ]
        if self.reference_width:
            parts.append(quoted(entry.reference))
        return b"." + fsencode(self.options.macro) + b" " + b" ".join(parts) + b"\n"

    def tex(self, entry: Entry, fields: tuple[bytes, bytes, bytes, bytes, bool, bool, bool, bool]) -> bytes:
        tail, before, after, head = fields[:4]
        size = entry.end - entry.start
        parts = [tail, before, after[:size], after[size:], head]
        if self.reference_width:
            parts.append(entry.reference)
        escaped = [re.sub(rb"([$%&#_{}])", rb"\\\1", fsencode(fsdecode(part))) for part in parts]
        return b"\\" + fsencode(self.options.macro) + b" " + b"".join(b"{" + part + b"}" for part in escaped) + b"\n"


def _skip(line: bytes, position: int) -> int:
    """Past a word, or past one character that is in none."""
    match = _WORD.match(line, position)
    return match.end() if match else position + 1
