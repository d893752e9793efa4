"""Texts: their character set, line ends, and the language they seem to be in."""

from __future__ import annotations

import json
import re
from itertools import accumulate
from typing import Final

from belljar.bin.file.verdict import Verdict

_CONTROLS: Final = re.compile(rb"[\x00-\x06\x0e-\x1a\x1c-\x1f\x7f]")
_NO_BRACKETS: Final = bytes(set(range(256)) - set(b"[]{}"))
_DEEPEST: Final = 500
"""How deep JSON may nest to be looked at: parsing it recurses."""
_LONG_LINE: Final = 300
_INTERPRETERS: Final[tuple[tuple[str, str, str], ...]] = (
    (r"bash", "Bourne-Again shell script", "text/x-shellscript"),
    (r"(?:ba|da|a)?sh", "POSIX shell script", "text/x-shellscript"),
    (r"zsh", "Paul Falstad's zsh script", "text/x-shellscript"),
    (r"ksh", "Korn shell script", "text/x-shellscript"),
    (r"python[0-9.]*", "Python script", "text/x-script.python"),
    (r"perl[0-9.]*", "Perl script", "text/x-perl"),
    (r"ruby", "Ruby script", "text/x-ruby"),
    (r"node", "Node.js script executable", "application/javascript"),
    (r"[gmn]?awk", "awk script", "text/x-awk"),
    (r"php[0-9.]*", "PHP script", "text/x-php"),
    (r"lua[0-9.]*", "Lua script", "text/x-lua"),
)
_LANGUAGES: Final[tuple[tuple[re.Pattern[bytes], str, str], ...]] = (
    (re.compile(rb"\s*<\?xml\s"), "XML 1.0 document", "text/xml"),
    (re.compile(rb"\s*<(?:!doctype\s+html|html|head|title|body)\b", re.IGNORECASE), "HTML document", "text/html"),
    (re.compile(rb"\s*<\?php"), "PHP script", "text/x-php"),
    (re.compile(rb"\s*<svg\b"), "SVG Scalable Vector Graphics image", "image/svg+xml"),
    (re.compile(rb"(?:diff |--- .*\n\+\+\+ )"), "unified diff output", "text/x-diff"),
    (re.compile(rb"(?s).{0,4096}?^#include\s*[<\"]", re.MULTILINE), "C source", "text/x-c"),
    (re.compile(rb"(?s).{0,4096}?^import java\.", re.MULTILINE), "Java source", "text/x-java"),
    (
        re.compile(rb"(?s).{0,4096}?^(?:from\s+[\w.]+\s+import\s+\w|def\s+\w+\s*\([^)]*\)\s*:\s*$)", re.MULTILINE),
        "Python script",
        "text/x-script.python",
    ),
    (re.compile(rb"%!PS"), "PostScript document text", "application/postscript"),
    (re.compile(rb"\{\\rtf"), "Rich Text Format data", "text/rtf"),
    (re.compile(rb"-----BEGIN CERTIFICATE-----"), "PEM certificate", "text/plain"),
    (re.compile(rb"(?s).{0,4096}?\\documentclass"), "LaTeX 2e document", "text/x-tex"),
)


def describe_text(data: bytes) -> Verdict | None:
    """None if it is no text."""
    for mark, name, encoding in (
        (b"\xff\xfe", "UTF-16, little-endian", "utf-16le"),
        (b"\xfe\xff", "UTF-16, big-endian", "utf-16be"),
    ):
        if data.startswith(mark):
            lines = b"\n\0" in data or b"\0\n" in data
            tail = "" if lines else ", with no line terminators"
            return Verdict(f"Unicode text, {name} text{tail}", "text/plain", encoding)
    if _CONTROLS.search(data):
        return None
    charset = _charset(data)
    if charset is None:
        return None
    name, encoding = charset
    whole = _structured(data, encoding)
    if whole is not None:
        return whole
    language, mime, tail = _language(data)
    if language == "Perl script":
        return Verdict("Perl script text executable", mime, encoding)
    text = f"{name} text" if not tail else f"{name} text {tail}"
    return Verdict(f"{language}, {text}{_traits(data)}" if language else text + _traits(data), mime, encoding)


def _charset(data: bytes) -> tuple[str, str] | None:
    if data.isascii():
        return "ASCII", "us-ascii"
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        # A file that was looked at only in part may end within a character.
        if error.end < len(data) or error.reason != "unexpected end of data":
            if re.search(rb"[\x80-\x9f]", data):
                return "Non-ISO extended-ASCII", "unknown-8bit"
            return "ISO-8859", "iso-8859-1"
    return "Unicode text, UTF-8" + (" (with BOM)" if data.startswith(b"\xef\xbb\xbf") else ""), "utf-8"


def _structured(data: bytes, encoding: str) -> Verdict | None:
    """JSON and CSV, which are told by the whole of the text."""
    stripped = data.strip()
    if stripped[:1] in (b"{", b"[") and stripped[-1:] in (b"}", b"]") and _depth(stripped) <= _DEEPEST:
        try:
            json.loads(stripped)
        except (ValueError, RecursionError):
            return None
        return Verdict("JSON text data", "application/json", encoding)
    lines = data.split(b"\n")[:10]
    if len(lines) > 3 or (len(lines) == 3 and lines[-1]):
        counts = {_commas(line) for line in lines if line}
        if len(counts) == 1 and counts.pop() > 0 and sum(bool(line) for line in lines) >= 3:
            return Verdict("CSV text", "text/csv", encoding)
    return None


def _depth(data: bytes) -> int:
    brackets = data.translate(None, _NO_BRACKETS)
    return max(accumulate(1 if byte in b"[{" else -1 for byte in brackets))


def _commas(line: bytes) -> int:
    return re.sub(rb'"(?:[^"]|"")*"', b"", line).count(b",")


def _language(data: bytes) -> tuple[str, str, str]:
    """Name, MIME type, and what follows the character set."""
    if data.startswith(b"#!"):
        words = data[2:200].partition(b"\n")[0].decode("latin-1").split()
        program = words[0].rpartition("/")[2] if words else ""
        if program == "env" and len(words) > 1:
            program = words[1] if words[1] != "-S" or len(words) < 3 else words[2]
        for pattern, name, mime in _INTERPRETERS:
            if re.fullmatch(pattern, program):
                return name, mime, "executable"
        return f"a {' '.join(words)} script", "text/plain", "executable"
    for expression, name, mime in _LANGUAGES:
        if expression.match(data[:8192].removeprefix(b"\xef\xbb\xbf")):
            return name, mime, "executable" if name == "Python script" else ""
    return "", "text/plain", ""


def _traits(data: bytes) -> str:
    out = ""
    longest = max((len(line) for line in data.split(b"\n")), default=0)
    if longest > _LONG_LINE:
        out += f", with very long lines ({longest})"
    crlf, lf, cr = data.count(b"\r\n"), data.count(b"\n"), data.count(b"\r")
    ends = [name for name, count in (("CRLF", crlf), ("CR", cr - crlf), ("LF", lf - crlf)) if count > 0]
    if not ends:
        out += ", with no line terminators"
    elif ends != ["LF"]:
        out += f", with {', '.join(ends)} line terminators"
    if b"\x1b" in data:
        out += ", with escape sequences"
    if b"\b" in data:
        out += ", with overstriking"
    return out
