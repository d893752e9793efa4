"""The backslash escapes GNU sed adds to regular expressions, replacements, `y` and text."""

from __future__ import annotations

_SIMPLE = {"a": "\a", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_NUMBERS = {"d": (3, 10, "0123456789"), "o": (3, 8, "01234567"), "x": (2, 16, "0123456789abcdefABCDEF")}
_SPECIAL = {False: frozenset("$*.[\\]^"), True: frozenset("$*.[\\]^+?(){}|")}


class EscapeError(Exception):
    """A malformed escape; the text is GNU's message."""


def convert(text: str, pos: int) -> tuple[str, int] | None:
    """The character of the escape whose letter is at `pos`, and the position after it; None if it is none."""
    letter = text[pos]
    if letter in _SIMPLE:
        return _SIMPLE[letter], pos + 1
    if letter in _NUMBERS:
        most, base, digits = _NUMBERS[letter]
        end = pos + 1
        while end < len(text) and end - pos <= most and text[end] in digits:
            end += 1
        if end == pos + 1:
            return None
        return decode_byte(int(text[pos + 1 : end], base) & 0xFF), end
    if letter == "c":
        if pos + 1 >= len(text):
            raise EscapeError("stray \\c at end")
        control = text[pos + 1]
        if control == "\\":
            if not text.startswith("\\", pos + 2):
                raise EscapeError("recursive escaping after \\c not allowed")
            return "\x1c", pos + 3
        return chr((ord(control.upper()) ^ 64) & 0x7F), pos + 2
    return None


def decode_byte(code: int) -> str:
    """One byte as a str character: an undecodable one is a surrogate."""
    return bytes((code,)).decode("utf-8", "surrogateescape")


def in_pattern(text: str, *, extended: bool) -> str:
    """A regular expression with its escapes replaced; what they produce is literal."""
    out: list[str] = []
    pos = 0
    while (slash := text.find("\\", pos)) >= 0 and slash + 1 < len(text):
        out.append(text[pos:slash])
        found = convert(text, slash + 1) if text[slash + 1] not in "n" else ("\n", slash + 2)
        if found is None:
            out.append(text[slash : slash + 2])
            pos = slash + 2
            continue
        char, pos = found
        out.append("\\" + char if char in _SPECIAL[extended] and text[slash + 1] in _NUMBERS else char)
    out.append(text[pos:])
    return join_bytes("".join(out))


def in_text(text: str) -> str:
    """The text of a, i, c: escapes replaced, any other backslash removed."""
    out: list[str] = []
    pos = 0
    while (slash := text.find("\\", pos)) >= 0:
        out.append(text[pos:slash])
        if slash + 1 >= len(text):
            pos = slash + 1
            break
        found = convert(text, slash + 1)
        if found is None:
            out.append(text[slash + 1])
            pos = slash + 2
        else:
            char, pos = found
            out.append(char)
    out.append(text[pos:])
    return "".join(out)


def join_bytes(text: str) -> str:
    """Bytes written one by one (\\xc3\\xa9) as the character they make up."""
    if text.isascii():
        return text
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "surrogateescape")
