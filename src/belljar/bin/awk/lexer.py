"""The tokens of awk: read one at a time, because only the parser knows whether `/` divides."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.bin.awk.errors import AwkSyntaxError

KEYWORDS = frozenset(
    "BEGIN END BEGINFILE ENDFILE function func if else while for do break continue next nextfile exit return "
    "delete in getline print printf switch case default".split()
)

BUILTINS = frozenset(
    "atan2 cos sin exp log sqrt int rand srand gensub gsub sub index length match patsplit split sprintf strtonum "
    "substr tolower toupper close fflush system mktime strftime systime and compl lshift or rshift xor asort asorti "
    "isarray typeof bindtextdomain dcgettext dcngettext mkbool".split()
)

_SPACE = re.compile(r"(?:[ \t\r\f\v]|\\\r?\n)+|#[^\n]*")
_NUMBER = re.compile(r"0[xX][0-9a-fA-F]+(?:\.[0-9a-fA-F]*)?(?:[pP][+-]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z_0-9]*(?:::[A-Za-z_][A-Za-z_0-9]*)?")
_OPERATOR = re.compile(
    r"\*\*=|\*\*|\^=|\+\+|--|\+=|-=|\*=|/=|%=|==|<=|>=|!=|!~|&&|\|\||>>|\|&|[-{}()\[\];,+*/%^!<>|?:~$=@]"
)
_STRING = re.compile(r'[^"\\\n]*')
_BRACKET = re.compile(r"\[\^?\]?(?:\[:[a-z]+:\]|\[[.=][^\]]*[.=]\]|\\.|[^\]\\\n])*\]", re.S)

_SIMPLE = {"n": "\n", "t": "\t", "r": "\r", "\\": "\\", '"': '"', "a": "\a", "b": "\b", "f": "\f", "v": "\v"}
_SPELLING = {"**": "^", "**=": "^=", "func": "function"}


@dataclass(slots=True)
class Token:
    """kind: "number", "string", "name", "funcname", "builtin", "newline", "eof", or the operator/keyword itself."""

    kind: str
    text: str
    line: int
    start: int
    value: float = 0.0


class Lexer:
    """Reads tokens of one source text; `where` names it in messages ("cmd. line" or a file name)."""

    def __init__(self, text: str, where: str, program: str, *, strict: bool = False, byte_locale: bool = False) -> None:
        self.text = text
        self.where = where
        self.program = program
        self.strict = strict
        self.byte_locale = byte_locale
        self.position = 0
        self.line = 1
        self.warnings: dict[str, str] = {}
        self.namespace = "awk"
        """The current @namespace; names in it are written without it."""

    def error(self, position: int, message: str) -> AwkSyntaxError:
        """The two-line report gawk prints: the source line and a caret under the position."""
        start = self.text.rfind("\n", 0, position) + 1
        end = self.text.find("\n", position)
        shown = self.text[start : end if end >= 0 else len(self.text)]
        line = self.text.count("\n", 0, start) + 1
        prefix = f"{self.program}: {self.where}:{line}: "
        return AwkSyntaxError(f"{prefix}{shown}\n{prefix}{' ' * (position - start)}^ {message}\n")

    def next(self) -> Token:
        text = self.text
        while match := _SPACE.match(text, self.position):
            self.line += match.group().count("\n")
            self.position = match.end()
        start = self.position
        line = self.line
        if start >= len(text):
            return Token("eof", "", line, start)
        char = text[start]
        if char == "\n":
            self.position += 1
            self.line += 1
            return Token("newline", "newline", line, start)
        if char == '"':
            return self._string(start)
        if match := _NAME.match(text, start):
            return self._word(match, line)
        if match := _NUMBER.match(text, start):
            self.position = match.end()
            return Token("number", match.group(), line, start, self._number(match.group()))
        if match := _OPERATOR.match(text, start):
            self.position = match.end()
            kind = _SPELLING.get(match.group(), match.group())
            return Token(kind, match.group(), line, start)
        if char == ".":
            raise self.error(start, "syntax error")
        prefix = f"{self.program}: {self.where}:{line}: "
        shown = text[text.rfind("\n", 0, start) + 1 :].split("\n", 1)[0]
        caret = " " * (start - text.rfind("\n", 0, start) - 1)
        raise AwkSyntaxError(f"{prefix}{shown}\n{prefix}{caret}^ invalid char '{char}' in expression\n")

    def _word(self, match: re.Match[str], line: int) -> Token:
        word = match.group()
        start = match.start()
        self.position = match.end()
        if word in KEYWORDS:
            return Token(_SPELLING.get(word, word), word, line, start)
        if word in BUILTINS:
            return Token("builtin", word, line, start)
        if "::" in word:
            word = word.removeprefix("awk::")
        elif self.namespace != "awk" and not word.isupper():
            word = f"{self.namespace}::{word}"
        if self.text.startswith("(", self.position):
            return Token("funcname", word, line, start)
        return Token("name", word, line, start)

    def _number(self, text: str) -> float:
        if text[:2] in ("0x", "0X"):
            digits = text[2:]
            if "." in digits or "p" in digits.lower():
                return float.fromhex(text)
            return _large(int(digits, 16))
        if text[0] == "0" and len(text) > 1 and text.isdecimal() and not self.strict and not set(text) & {"8", "9"}:
            return _large(int(text, 8))
        return float(text)

    def _string(self, start: int) -> Token:
        text = self.text
        line = self.line
        position = start + 1
        parts: list[str] = []
        while True:
            match = _STRING.match(text, position)
            if match is not None:
                parts.append(match.group())
                position = match.end()
            if position >= len(text) or text[position] == "\n":
                raise self.error(start, "unterminated string")
            if text[position] == '"':
                break
            piece, position = self._escape(position)
            parts.append(piece)
        self.position = position + 1
        return Token("string", merge_bytes("".join(parts), self.byte_locale), line, start)

    def _escape(self, position: int) -> tuple[str, int]:
        """Decode the escape at `position` (a backslash) of a string constant."""
        text = self.text
        if position + 1 >= len(text):
            return "\\", position + 1
        char = text[position + 1]
        if char == "\n":
            self.line += 1
            return "", position + 2
        if char == "\r" and text.startswith("\n", position + 2):
            self.line += 1
            return "", position + 3
        piece, end = decode_escape(text, position)
        if piece == char and char not in _SIMPLE:
            told = (
                "no hex digits in `\\x' escape sequence"
                if char == "x"
                else f"escape sequence `\\{char}' treated as plain `{char}'"
            )
            self.warnings.setdefault(char, f"{self.program}: {self.where}:{self.line}: warning: {told}\n")
        return piece, end

    def regex(self, start: int) -> Token:
        """Rescan from the `/` at `start` as a regular expression constant."""
        text = self.text
        position = start + 1
        while True:
            if position >= len(text) or text[position] == "\n":
                raise self.error(start + 1, "unterminated regexp")
            char = text[position]
            if char == "/":
                break
            if char == "\\" and position + 1 < len(text):
                position += 2
                continue
            if char == "[":
                # A slash inside brackets does not end the expression.
                match = _BRACKET.match(text, position)
                if match is None:
                    raise self.error(start + 1, "unterminated regexp")
                position = match.end()
                continue
            position += 1
        self.position = position + 1
        source = text[start + 1 : position].replace("\\\n", "")
        self.line += text.count("\n", start, position)
        return Token("regex", source, self.line, start)


def decode_escape(text: str, position: int) -> tuple[str, int]:
    """The characters meant by the escape at `position`, and where it ends; unknown escapes keep the character."""
    char = text[position + 1] if position + 1 < len(text) else ""
    if not char:
        return "\\", position + 1
    if char in _SIMPLE:
        return _SIMPLE[char], position + 2
    if char in "01234567":
        end = position + 2
        while end < position + 4 and end < len(text) and text[end] in "01234567":
            end += 1
        return _byte(int(text[position + 1 : end], 8) & 0xFF), end
    if char == "x":
        end = position + 2
        while end < position + 4 and end < len(text) and text[end] in "0123456789abcdefABCDEF":
            end += 1
        if end > position + 2:
            return _byte(int(text[position + 2 : end], 16)), end
        return "x", end
    if char == "u":
        end = position + 2
        while end < position + 10 and end < len(text) and text[end] in "0123456789abcdefABCDEF":
            end += 1
        if end > position + 2 and (code := int(text[position + 2 : end], 16)) < 0x110000:
            return (chr(code) if not 0xD800 <= code < 0xE000 else "\ufffd"), end
        return "u", position + 2
    return char, position + 2


def _byte(code: int) -> str:
    """One byte as text: ASCII as itself, others as the surrogate that stands for the raw byte."""
    return chr(code) if code < 0x80 else chr(0xDC00 + code)


def _large(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return float("inf")


def decode_escapes(text: str, byte_locale: bool = False) -> str:
    """Process the escapes of a command-line assignment (`-v var=text`)."""
    if "\\" not in text:
        return text
    parts: list[str] = []
    position = 0
    while (slash := text.find("\\", position)) >= 0:
        parts.append(text[position:slash])
        piece, position = decode_escape(text, slash)
        parts.append(piece)
    parts.append(text[position:])
    return merge_bytes("".join(parts), byte_locale)


def merge_bytes(text: str, byte_locale: bool) -> str:
    """Join raw bytes written one escape at a time into the characters they spell."""
    if text.isascii():
        return text
    if byte_locale:
        return text.encode("latin-1", "surrogateescape").decode("latin-1")
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
