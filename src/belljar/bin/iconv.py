"""iconv - convert text from one character encoding to another

Usage: iconv [OPTION]... [-f ENCODING] [-t ENCODING] [FILE]...

ENCODING may end in //TRANSLIT (replace what can't be converted with something similar) or //IGNORE (leave it out).
"""

from __future__ import annotations

import codecs
from collections.abc import Iterator
from encodings.aliases import aliases
from unicodedata import category, normalize

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_TRUNC, O_WRONLY
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._kit.locale import is_utf8
from belljar.kernel.process import Process

_NOT_CHARSETS = frozenset(
    ["idna", "punycode", "unicode_escape", "raw_unicode_escape", "mbcs", "oem", "undefined", "utf-8-sig", "palmos"]
)
_SPECIAL = {"UCS-4": "utf-32-be", "UCS4": "utf-32-be", "UCS-2": "utf-16-le", "UCS2": "utf-16-le",
            "UCS-4BE": "utf-32-be", "UCS-4LE": "utf-32-le", "UCS-2BE": "utf-16-be", "UCS-2LE": "utf-16-le",
            "UNICODE": "utf-16", "WCHAR_T": "utf-32-le", "CP1252": "cp1252", "MS-ANSI": "cp1252"}  # fmt: skip
_SIMILAR = {
    "\u20ac": "EUR", "\u2018": "'", "\u2019": "'", "\u201c": '"', "\u201d": '"', "\u201e": ",,", "\u201a": ",",
    "\u2013": "-", "\u2014": "-", "\u2026": "...", "\u00ab": "<<", "\u00bb": ">>", "\u00df": "ss", "\u00e6": "ae",
    "\u00c6": "AE", "\u0153": "oe", "\u0152": "OE", "\u00a9": "(C)", "\u00ae": "(R)", "\u2122": "(TM)", "\u00a0": " ",
    "\u00d8": "O", "\u00f8": "o", "\u0142": "l", "\u0141": "L", "\u2022": "o", "\u00d7": "x", "\u2192": "->",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Options:
    source: str | None = value("-f", "--from-code", "encoding of original text", metavar="NAME")
    target: str | None = value("-t", "--to-code", "encoding for output", metavar="NAME")
    list: bool = flag("-l", "--list", "list all known coded character sets")
    omit: bool = flag("-c", "omit invalid characters from output")
    output: str | None = value("-o", "--output", "output file", metavar="FILE")
    silent: bool = flag("-s", "--silent", "suppress warnings")
    verbose: bool = flag("--verbose", "print progress information")


class Bad(Exception):
    """A byte that is no character, or a character the target doesn't have; `position` in the input."""

    def __init__(self, position: int, *, incomplete: bool = False) -> None:
        super().__init__(position)
        self.position = position
        self.incomplete = incomplete


@utility("iconv", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.list:
        for name in sorted({name.upper().replace("_", "-") for name in (*aliases, *aliases.values())}):
            process.print(f"{name}//")
        return 0
    default = "UTF-8" if is_utf8(process.env) else "ANSI_X3.4-1968"
    source, _, _ = (options.source or default).partition("//")
    target, _, how = (options.target or default).partition("//")
    decoder, encoder = find_codec(source or default), find_codec(target or default)
    if decoder is None or encoder is None:
        _unsupported(source, target, decoder is None, encoder is None)
    assert decoder is not None
    assert encoder is not None
    conversion = Conversion(decoder, encoder, "TRANSLIT" in how.upper(), options.omit or "IGNORE" in how.upper())
    status = 0
    out = 1
    if options.output not in (None, "-"):
        out = process.open(options.output or "", O_WRONLY | O_CREAT | O_TRUNC)
    for name in operands or ["-"]:
        try:
            for piece in conversion.convert(process.chunks(name)):
                process.budget.charge(len(piece) // 4096 + 1)
                if out == 1:
                    process.stdout.write(piece)
                else:
                    process.write_all(out, piece)
        except SysError as error:
            process.warn(f"cannot open input file `{name}': {error.reason}")
            status = 1
        except Bad as bad:
            process.stdout.flush()
            if bad.incomplete:
                process.warn("incomplete character or shift sequence at end of buffer")
            else:
                process.warn(f"illegal input sequence at position {bad.position}")
            return 1
    # //IGNORE tells that something was left out; -c doesn't.
    return 1 if conversion.omitted and not options.omit else status


def _unsupported(source: str, target: str, no_source: bool, no_target: bool) -> None:
    if no_source and no_target:
        what = f"conversions from `{source}' and to `{target}' are not supported"
    elif no_source:
        what = f"conversion from `{source}' is not supported"
    else:
        what = f"conversion to `{target}' is not supported"
    raise UsageError(f"{what}\nTry `iconv --help' or `iconv --usage' for more information.", hint=False)


def find_codec(name: str) -> codecs.CodecInfo | None:
    """A character set by one of its names; codecs that are none (base64, zlib) are not found."""
    name = _SPECIAL.get(name.upper(), name)
    if name.upper() in ("ANSI_X3.4-1968", "US-ASCII", "646"):
        name = "ascii"
    try:
        found = codecs.lookup(name)
    except (LookupError, ValueError):
        return None
    return found if found._is_text_encoding and found.name not in _NOT_CHARSETS else None


_MARKS = {
    "utf-16": (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE),
    "utf-32": (codecs.BOM_UTF32_LE, codecs.BOM_UTF32_BE),
}


class Conversion:
    """Text through two codecs, piece by piece."""

    def __init__(self, source: codecs.CodecInfo, target: codecs.CodecInfo, transliterate: bool, omit: bool) -> None:
        self.source = source
        self.target = target
        self.transliterate = transliterate
        self.omit = omit
        self.omitted = False
        assert target.incrementalencoder is not None
        self.encoder = target.incrementalencoder("strict")

    def convert(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        assert self.source.incrementaldecoder is not None
        decoder = self.source.incrementaldecoder("strict")
        position = 0
        for chunk in chunks:
            data = chunk
            marks = _MARKS.get(self.source.name, ())
            if not position and marks and not data.startswith(marks):
                # without a byte order mark it is the machine's own order
                decoder = codecs.getincrementaldecoder(f"{self.source.name}-le")("strict")
            while data:
                held = decoder.getstate()[0]
                try:
                    text = decoder.decode(data)
                    rest = b""
                except UnicodeDecodeError as error:
                    whole = held + data
                    decoder.reset()
                    text = decoder.decode(whole[: error.start])
                    rest = whole[error.start + 1 :]
                    start = position - len(held)
                    yield from self._encode(text, start)
                    if not self.omit:
                        raise Bad(start + error.start) from None
                    self.omitted = True
                    position = start + error.start + 1
                    decoder.reset()
                else:
                    yield from self._encode(text, position - len(held))
                    position += len(data)
                data = rest
        if decoder.getstate()[0]:
            raise Bad(position, incomplete=True)

    def _encode(self, text: str, start: int) -> Iterator[bytes]:
        while text:
            try:
                yield self.encoder.encode(text)
                return
            except UnicodeEncodeError as error:
                at = error.start
                # Some codecs keep what they had done before the bad character to themselves.
                if at:
                    yield self.encoder.encode(text[:at])
                similar = self._similar(text[at]) if self.transliterate else None
                if similar is not None:
                    yield self.encoder.encode(similar)
                elif self.omit:
                    self.omitted = True
                else:
                    consumed = len(self.source.encode(text[:at])[0])
                    raise Bad(start + consumed) from None
                start += len(self.source.encode(text[: at + 1])[0])
                text = text[at + 1 :]

    def _similar(self, char: str) -> str | None:
        plain = "".join(c for c in normalize("NFKD", char) if category(c) != "Mn")
        for candidate in (_SIMILAR.get(char), plain, "?"):
            if candidate:
                try:
                    self.target.encode(candidate)
                except UnicodeEncodeError:
                    continue
                return candidate
        return None
