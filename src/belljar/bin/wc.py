"""wc - print newline, word, and byte counts for each file

Usage: wc [OPTION]... [FILE]...
       wc [OPTION]... --files0-from=F

With no FILE, or when FILE is -, read standard input. A word is a nonempty sequence of non white space. Counts are
always in the order: newline, word, character, byte, maximum line length.
"""

import codecs
import re
from collections.abc import Iterable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode
from belljar.bin._kit import flag, utility, value
from belljar.bin._kit.choices import pick
from belljar.bin._kit.files0 import files0_entries
from belljar.bin._kit.locale import is_utf8
from belljar.bin._kit.quoting import quote_if_odd
from belljar.kernel.process import Process
from belljar.libc.quote import is_printable
from belljar.libc.width import character_width


@dataclass(frozen=True, slots=True)
class Options:
    bytes: bool = flag("-c", "--bytes", "print the byte counts")
    chars: bool = flag("-m", "--chars", "print the character counts")
    lines: bool = flag("-l", "--lines", "print the newline counts")
    files0: str | None = value("--files0-from", "read input from the NUL-terminated names in file F", metavar="F")
    width: bool = flag("-L", "--max-line-length", "print the maximum display width")
    words: bool = flag("-w", "--words", "print the word counts")
    debug: bool = flag("--debug", "say which implementation is used (there is one)")
    total: str = value(
        "--total", "when to print a total line: auto, always, only, never", metavar="WHEN", default="auto"
    )


@dataclass(slots=True)
class Counts:
    lines: int = 0
    words: int = 0
    chars: int = 0
    bytes: int = 0
    width: int = 0

    def add(self, other: "Counts") -> None:
        self.lines += other.lines
        self.words += other.words
        self.chars += other.chars
        self.bytes += other.bytes
        self.width = max(self.width, other.width)


@utility("wc", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.total not in ("auto", "always", "only", "never"):
        pick(process, "--total", options.total, {word: () for word in ("auto", "always", "only", "never")})
    chosen = [n for n in ("lines", "words", "chars", "bytes", "width") if getattr(options, n)]
    chosen = chosen or ["lines", "words", "bytes"]
    if options.files0 is None:
        return report(process, options, chosen, operands or [""], stdin=not operands)
    if operands:
        process.warn(f"extra operand '{operands[0]}'")
        process.error("file operands cannot be combined with --files0-from\n")
        process.error(f"Try '{process.name} --help' for more information.\n")
        return 1
    found = files0_entries(process, options.files0)
    if found is None:
        return 1
    entries = list(found)
    names = [name for name in entries if name is not None]
    status = report(process, options, chosen, names, len(entries))
    return status if len(names) == len(entries) else 1


def report(
    process: Process, options: Options, chosen: list[str], names: list[str], given: int = 0, *, stdin: bool = False
) -> int:
    """`given` counts names that could not be used too."""
    status = 0
    utf8 = is_utf8(process.env)
    total = Counts()
    width = 1 if _is_stream(process, options.files0) else _column_width(process, chosen, names)
    for name in names:
        if not name and not stdin:
            process.warn("invalid zero-length file name")
            status = 1
            continue
        try:
            counts = count(process.chunks(name or "-"), chosen, utf8)
        except SysError as error:
            process.warn(f"{quote_if_odd(name or '-')}: {error.reason}")
            if error.name != "EISDIR":
                status = 1
                continue
            status, counts = 1, Counts()
        total.add(counts)
        if options.total != "only":
            process.print(render(counts, chosen, width, name))
    if options.total == "only":
        process.print(render(total, chosen, 1, ""))
    elif options.total == "always" or (options.total == "auto" and max(given, len(names)) > 1):
        process.print(render(total, chosen, width, "total"))
    return status


def count(chunks: Iterable[bytes], chosen: list[str], utf8: bool = True) -> Counts:
    """Count only what is asked for, a chunk at a time."""
    found = Counts()
    decoder = _UTF8(errors="ignore")
    in_word = False
    column = 0
    wants_words, wants_chars, wants_width = ("words" in chosen, "chars" in chosen, "width" in chosen)
    for chunk in chunks:
        found.bytes += len(chunk)
        found.lines += chunk.count(b"\n")
        if wants_words or wants_chars:
            valid = chunk if chunk.isascii() and not decoder.getstate()[0] else decoder.decode(chunk).encode()
        if wants_words:
            text = valid.translate(None, _CONTROLS)
            text = text if text.isascii() else _ODD_SPACES.sub(b" ", text)
            found.words += len(text.split())
            # A word that began in the last chunk was counted there already.
            if text:
                if in_word and not text[:1].isspace():
                    found.words -= 1
                in_word = not text[-1:].isspace()
        if wants_chars:
            found.chars += len(valid.translate(None, _CONTINUATION) if utf8 else chunk)
        if wants_width:
            column = _widths(found, chunk, column)
    found.width = max(found.width, column)
    return found


_UTF8 = codecs.getincrementaldecoder("utf-8")
_CONTROLS = bytes(byte for byte in (*range(32), 127) if byte not in b"\t\n\v\f\r")
"""Characters that neither belong to a word nor end one."""
_CONTINUATION = bytes(range(0x80, 0xC0))
# U+2000..200A but not the no-break U+2007, U+2028, U+2029, U+1680, U+205F, U+3000: spaces to iswspace().
_ODD_SPACES = re.compile(b"\xe2\x80[\x80-\x86\x88-\x8a\xa8\xa9]|\xe1\x9a\x80|\xe2\x81\x9f|\xe3\x80\x80")


def _widths(found: Counts, chunk: bytes, column: int) -> int:
    for line in re.split(rb"([\n\r\f])", chunk):
        if line in (b"\n", b"\r", b"\f"):
            found.width = max(found.width, column)
            column = 0
        else:
            for piece in re.split(rb"(\t)", line):
                column = column + 8 - column % 8 if piece == b"\t" else column + _width(fsdecode(piece))
    return column


def _width(text: str) -> int:
    return sum(character_width(char) for char in text if is_printable(char))


def _is_stream(process: Process, files0: str | None) -> bool:
    """Whether names come one by one, so that how wide their counts will be can't be known."""
    if files0 is None:
        return False
    try:
        stat = process.fstat(0) if files0 == "-" else process.fs.stat(files0)
    except SysError:
        return False
    return not stat.is_regular


def _column_width(process: Process, chosen: list[str], names: list[str]) -> int:
    """GNU's rule: wide enough for the sum of the sizes, 7 if one of several is not a regular file."""
    if len(names) == 1 and len(chosen) == 1:
        return 1
    total, minimum = 0, 1
    for name in names:
        try:
            stat = process.fs.stat(name) if name not in ("", "-") else process.fstat(0)
        except SysError:
            continue
        if stat.is_regular:
            total += stat.size
        else:
            minimum = 7
    return max(minimum, len(str(total)))


def render(counts: Counts, chosen: list[str], width: int, name: str) -> str:
    text = " ".join(f"{getattr(counts, key):>{width}}" for key in chosen)
    return f"{text} {name}" if name else text
