"""Rewrites the syntax of Perl-compatible patterns in that of Python's `re`."""

from __future__ import annotations

import re
from typing import Any

from belljar.libc.ctype import ASCII, Ranges, complement, letters, union, wide
from belljar.regex.nodes import RegexError

MAX_SIZE = 65536
KEEP = "belljar_keep"
_SCRIPTS = {
    "Han": "\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9",
    "Hiragana": "\u3041-\u309f",
    "Katakana": "\u30a1-\u30ff",
    "Cyrillic": "\u0400-\u052f",
    "Greek": "\u0370-\u03ff\u1f00-\u1fff",
    "Latin": "A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02b8\u1e00-\u1eff",
    "Arabic": "\u0600-\u06ff\u0750-\u077f",
    "Hebrew": "\u0591-\u05f4",
    "Thai": "\u0e01-\u0e5b",
    "Hangul": "\u1100-\u11ff\uac00-\ud7a3",
}
_PROPERTIES = {
    "L": "alpha",
    "Lu": "upper",
    "Ll": "lower",
    "N": "digit",
    "Nd": "digit",
    "P": "punct",
    "S": "punct",
    "Z": "space",
    "Zs": "blank",
    "Cc": "cntrl",
}
_DIGITS = "0-9"
_WORD = "0-9A-Za-z_"
_EDGES = {
    "b": f"(?:(?<![{_WORD}])(?=[{_WORD}])|(?<=[{_WORD}])(?![{_WORD}]))",
    "B": f"(?:(?<![{_WORD}])(?![{_WORD}])|(?<=[{_WORD}])(?=[{_WORD}]))",
}
_CLASSES: dict[str, tuple[tuple[int, int], ...]] = {
    "d": ASCII["digit"],
    "w": (*ASCII["alnum"], (95, 95)),
    "s": ASCII["space"],
}
_SPACES = "\\t-\\r "
_BLANKS = "\\t\\x0b-\\r "  # without the newline


class Translator:
    """One pass over the pattern; `separator`: no part may match that byte (line mode)."""

    def __init__(self, pattern: str, separator: int | None, *, wide: bool, unicode: bool = False) -> None:
        self.text = pattern
        self.pos = 0
        self.wide = wide
        self.unicode = unicode  # \w, \d and \b know more than ASCII
        self.avoid = "" if separator is None else f"\\x{separator:02x}"
        self.lines = separator == 10
        self.out: list[str] = []
        # for each open group: closers owed to inline flags, the size so far, the group's opening
        self.stack: list[list[Any]] = [["", 0, "", False]]
        self.atom = 0
        self.numbers: list[int] = [0]  # Perl's group number -> ours (\\K adds one)
        self.count = 0
        self.extended = False

    def run(self) -> str:
        text = self.text
        while True:
            verb = re.compile(r"\(\*(?:UTF8?|UCP|ANY|ANYCRLF|LF|CRLF|CR)\)").match(text, self.pos)
            if verb is None:
                break
            self.pos = verb.end()
        while self.pos < len(text):
            self.step()
        if len(self.stack) > 1:
            raise RegexError("missing closing parenthesis")
        self.out.append(self.stack[0][0])
        return "".join(self.out)

    def emit(self, text: str, size: int = 1) -> None:
        self.out.append(text)
        self.stack[-1][1] += size
        self.atom = size
        if self.stack[-1][1] > MAX_SIZE:
            raise RegexError("regular expression is too large")

    def step(self) -> None:
        text, pos = self.text, self.pos
        char = text[pos]
        if self.extended and (char.isspace() or char == "#"):
            end = text.find("\n", pos) if char == "#" else pos
            self.pos = len(text) if end < 0 else end + 1
        elif char == "\\":
            self.escape()
        elif char == "[":
            self.bracket()
        elif char == "(":
            self.open()
        elif char == ")":
            if len(self.stack) == 1:
                raise RegexError("unmatched closing parenthesis")
            closers, size, _, self.extended = self.stack.pop()
            self.out.append(closers + ")")
            self.stack[-1][1] += size
            self.atom = size
            self.pos += 1
        elif char == "|":
            closers = self.stack[-1][0]
            reopen = self.stack[-1][2] if closers else ""
            self.out.append(closers + "|" + reopen)
            self.pos += 1
        elif char == ".":
            # in line mode even (?s) must not cross the separator
            self.emit(f"[^{self.avoid}]" if self.lines else f"(?!{self.avoid})." if self.avoid else ".")
            self.pos += 1
        elif char in "^$":
            self.pos += 1
            if self.lines:
                self.emit("(?m:^)" if char == "^" else "(?m:$)")
            else:
                self.emit(f"(?:{char})")  # `re` refuses to repeat a bare anchor
        elif char in "*+?{":
            self.quantifier()
        else:
            self.emit("(?!)" if char == "\n" and self.lines else char)
            self.pos += 1

    def quantifier(self) -> None:
        counted = re.compile(r"\{(\d+)(,(\d*))?\}").match(self.text, self.pos)
        if self.text[self.pos] == "{":
            if counted is None:
                self.emit("\\{")
                self.pos += 1
                return
            times = max(int(counted[1][:9]), int((counted[3] or "0")[:9]))
            if times > 65535:
                raise RegexError("number too big in {} quantifier")
            self.stack[-1][1] += self.atom * max(times - 1, 0)
            self.atom *= max(times, 1)
            if self.stack[-1][1] > MAX_SIZE:
                raise RegexError("regular expression is too large")
            self.out.append(counted[0])
            self.pos = counted.end()
        else:
            self.out.append(self.text[self.pos])
            self.pos += 1
        if self.text.startswith(("+", "?"), self.pos):
            self.out.append(self.text[self.pos])
            self.pos += 1

    def open(self) -> None:
        text, pos = self.text, self.pos
        rest = text[pos:]
        if rest.startswith("(*"):
            if re.match(r"\(\*F(?:AIL)?\)", rest):
                self.pos = text.index(")", pos) + 1
                self.emit("(?!)")
                return
            raise RegexError("(*VERB) not recognized or malformed")
        if not rest.startswith("(?"):
            self.capture("(", 1)
            return
        if rest.startswith("(?#"):
            end = text.find(")", pos)
            if end < 0:
                raise RegexError("missing ) following (?# comment")
            self.pos = end + 1
            return
        named = re.match(r"\(\?(?:P?<|')([A-Za-z_]\w*)[>']", rest)
        if named:
            self.capture(f"(?P<{named[1]}>", named.end())
            return
        reference = re.match(r"\(\?P=(\w+)\)", rest)
        if reference:
            self.pos += reference.end()
            self.emit(f"(?P={reference[1]})")
            return
        if re.match(r"\(\?(?:R|[+-]?\d+|&\w+|P>\w+)\)", rest):
            raise RegexError("recursion in patterns is not supported here")
        if rest.startswith("(?|"):
            raise RegexError("branch reset (?|...) is not supported here")
        flags = re.match(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]+))?([:)])", rest)
        if flags:
            self.flags(flags)
            return
        behind = re.match(r"\(\?<([=!])", rest)
        if behind:
            self.lookbehind(behind[1])
            return
        for opening in ("(?=", "(?!", "(?>"):
            if rest.startswith(opening):
                self.push(opening, len(opening))
                return
        conditional = re.match(r"\(\?\((\w+)\)", rest)
        if conditional:
            number = conditional[1]
            known = number.isdecimal() and int(number[:9]) < len(self.numbers)
            ours = str(self.numbers[int(number)]) if known else number
            self.push(f"(?({ours})", conditional.end())
            return
        raise RegexError("unrecognized character after (? or (?-")

    def push(self, opening: str, length: int) -> None:
        if len(self.stack) > 120:
            raise RegexError("parentheses are too deeply nested")
        self.out.append(opening)
        self.stack.append(["", 1, "", self.extended])
        self.pos += length

    def capture(self, opening: str, length: int) -> None:
        self.count += 1
        self.numbers.append(self.count)
        self.push(opening, length)

    def flags(self, found: re.Match[str]) -> None:
        on, off = found[1], found[2] or ""
        if set(on + off) - set("imsxnaD"):
            raise RegexError("unrecognized character after (? or (?-")
        extended = self.extended
        if "x" in on + off:
            extended = "x" in on
        on = "".join(sorted(set(on) & set("ims")))
        off = "".join(sorted(set(off) & set("ims")))
        opening = f"(?{on}{'-' + off if off else ''}:"
        if found[3] == ":":
            self.push(opening, found.end())
            self.extended = extended
            return
        self.pos += found.end()
        self.extended = extended
        if on or off:
            # Perl: until the end of the enclosing group, over its further branches
            top = self.stack[-1]
            top[0] += ")"
            top[2] += opening
            self.out.append(opening)

    def lookbehind(self, kind: str) -> None:
        """`re` wants one width; Perl allows one for each branch."""
        depth = 0
        start = self.pos + 4
        branches: list[str] = []
        pos = start
        while pos < len(self.text):
            char = self.text[pos]
            if char == "\\":
                pos += 2
                continue
            if char == "[":
                end = self.text.find("]", pos + 2)
                pos = len(self.text) if end < 0 else end + 1
                continue
            if char == "(":
                depth += 1
            elif char == ")":
                if depth == 0:
                    break
                depth -= 1
            elif char == "|" and depth == 0:
                branches.append(self.text[start:pos])
                start = pos + 1
            pos += 1
        else:
            raise RegexError("missing closing parenthesis")
        if not branches or "(" in self.text[self.pos + 4 : pos]:
            self.push(f"(?<{kind}", 4)
            return
        branches.append(self.text[start:pos])
        parts = []
        for branch in branches:
            separator = 10 if self.lines else 0 if self.avoid else None
            inner = Translator(branch, separator, wide=self.wide, unicode=self.unicode)
            parts.append(f"(?<{kind}{inner.run()})")
        self.emit("(?:" + ("|" if kind == "=" else "").join(parts) + ")")
        self.pos = pos + 1

    def escape(self) -> None:
        text = self.text
        if self.pos + 1 >= len(text):
            raise RegexError("\\ at end of pattern")
        char = text[self.pos + 1]
        rest = text[self.pos :]
        if char == "Q":
            end = text.find("\\E", self.pos)
            quoted = text[self.pos + 2 : end if end >= 0 else len(text)]
            for one in quoted:
                self.emit(self.literal(ord(one)))
            self.pos = len(text) if end < 0 else end + 2
            return
        reference = re.match(r"\\(?:g\{?(-?\d+)\}?|([1-9]\d?))", rest)
        if reference and not (reference[2] and len(reference[2]) == 2 and int(reference[2]) >= len(self.numbers)):
            self.backref(reference)
            return
        named = re.match(r"\\[kg](?:\{(\w+)\}|<(\w+)>|'(\w+)')", rest)
        if named:
            self.pos += named.end()
            self.emit(f"(?P={named[1] or named[2] or named[3]})")
            return
        prop = re.match(r"\\([pP])(?:\{(\^?)([\w&]+)\}|([A-Z]))", rest)
        if prop:
            self.pos += prop.end()
            negated = (prop[1] == "P") != bool(prop[2])
            self.emit(f"[{'^' if negated else ''}{self.property(prop[3] or prop[4])}{self.avoid if negated else ''}]")
            return
        code = re.match(
            r"\\(?:x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{0,2})|o\{([0-7]+)\}|(0[0-7]{0,2}|[1-7][0-7]{2})|c(.))", rest
        )
        if code:
            self.pos += code.end()
            self.emit(self.literal(_code(code)))
            return
        self.pos += 2
        self.emit(self.shorthand(char))

    def backref(self, reference: re.Match[str]) -> None:
        number = int((reference[1] or reference[2])[:9])
        if number < 0:
            number += len(self.numbers)
        if not 0 < number < len(self.numbers):
            raise RegexError("reference to non-existent subpattern")
        self.pos += reference.end()
        self.emit(f"(?:\\{self.numbers[number]})")

    def shorthand(self, char: str) -> str:
        avoid = self.avoid
        match char:
            case "K":
                if len(self.stack) > 1:
                    raise RegexError("\\K is not supported inside a group here")
                self.count += 1
                return f"(?P<{KEEP}>)"
            case "h":
                return "[ \\t\\xa0]" if self.wide else "[ \\t]"
            case "H":
                return f"[^ \\t{avoid}]"
            case "R":
                return "(?!)" if self.lines else "(?>\\r\\n|[\\n\\x0b\\f\\r])"
            case "N":
                return f"[^\\n{avoid}]"
            case "v":
                return "[\\x0b\\f\\r]" if self.lines else "[\\n\\x0b\\f\\r]"
            case "V":
                return f"[^\\n\\x0b\\f\\r{avoid}]"
            case "X":
                return f"(?:[^{avoid}])" if avoid else "(?s:.)"
            case "A":
                return "(?m:^)" if self.lines else "(?:\\A)"
            case "z":
                return "(?m:$)" if self.lines else "(?:\\Z)"
            case "Z":
                return "(?m:$)" if self.lines else "(?=\\n?\\Z)"
            case "G":
                raise RegexError("\\G is not supported here")
            case "e":
                return "\\x1b"
            case "a":
                return "\\x07"
            case "n" if self.lines:
                return "(?!)"
            case "s":
                return f"[{_BLANKS if self.lines else _SPACES}]"
            case "S":
                return f"[^{_SPACES}{avoid}]"
            case "b" | "B" if self.wide and not self.unicode:
                return _EDGES[char]
            case "D" | "W":
                return f"[^{self.members(char.lower())}{avoid}]"
            case "d" | "w":
                return f"[{self.members(char)}]"
            case "b" | "B":
                return f"(?:\\{char})"
            case "n" | "t" | "r" | "f":
                return "\\" + char
            case "E":
                return ""
            case _ if char.isalnum() and char.isascii():
                raise RegexError("unrecognized character follows \\")
            case _:
                return self.literal(ord(char))

    def members(self, char: str) -> str:
        """The bracket members that \\d or \\w stands for."""
        return "\\" + char if self.unicode else _DIGITS if char == "d" else _WORD

    def literal(self, code: int) -> str:
        if code < 128:
            return chr(code) if chr(code).isalnum() else f"\\x{code:02x}"
        if self.wide:
            return f"\\u{code:04x}" if code < 0x10000 else f"\\U{min(code, 0x10FFFF):08x}"
        return "(?:" + "".join(f"\\x{byte:02x}" for byte in chr(code).encode("utf-8", "surrogateescape")) + ")"

    def property(self, name: str) -> str:
        if name == "Any":
            return "\\x00-\\xff"
        if name in _SCRIPTS:
            return _SCRIPTS[name] if self.wide else "A-Za-z" if name == "Latin" else "\\xff"
        if name not in _PROPERTIES:
            raise RegexError("unknown property after \\P or \\p")
        known = _PROPERTIES[name]
        if not self.wide:
            return self.spelled(ASCII[known])
        return self.spelled(letters() if name == "L" else wide(known))

    def spelled(self, ranges: Ranges) -> str:
        """Ranges as the inside of brackets."""
        return "".join(
            f"\\U{low:08x}-\\U{high:08x}" if self.wide else f"\\x{low:02x}-\\x{high:02x}" for low, high in ranges
        )

    def bracket(self) -> None:
        text = self.text
        pos = self.pos + 1
        out = ["["]
        negated = text.startswith("^", pos)
        if negated:
            out.append("^" + self.avoid)
            pos += 1
        guarded = False
        begin = pos
        while True:
            if pos >= len(text):
                raise RegexError("missing terminating ] for character class")
            char = text[pos]
            if char == "]" and pos > begin:
                break
            posix = re.compile(r"\[:(\^?)(\w+):\]").match(text, pos)
            if posix:
                out.append(self.posix_class(posix[1] == "^", posix[2]))
                guarded = guarded or posix[1] != "" or posix[2] in ("space", "cntrl")
                pos = posix.end()
                continue
            if char == "\\":
                piece, pos = self.bracket_escape(pos)
                guarded = guarded or piece in ("\\D", "\\W", "\\x0a")
                out.append(piece)
                continue
            if char == "-":
                out.append("-")
            elif char in "[]&~|^":
                out.append("\\" + char)
            elif char == "\n" and self.lines and not negated:
                out.append("")
            else:
                out.append(char)
            pos += 1
        self.pos = pos + 1
        body = "".join(out) + "]"
        if body == "[]":
            body = "(?!)"
        self.emit(f"(?!{self.avoid}){body}" if guarded and self.avoid and not negated else body)

    def posix_class(self, negated: bool, name: str) -> str:
        if name == "word":
            return "\\W" if negated else "\\w"
        if name not in ASCII:
            raise RegexError("unknown POSIX class name")
        ranges = ASCII[name]
        if negated:
            ranges = complement(ranges, 0x10FFFF if self.wide else 255)
        return self.spelled(ranges)

    def bracket_escape(self, pos: int) -> tuple[str, int]:
        text = self.text
        if pos + 1 >= len(text):
            raise RegexError("\\ at end of pattern")
        char = text[pos + 1]
        prop = re.compile(r"\\p(?:\{([\w&]+)\}|([A-Z]))").match(text, pos)
        if prop:
            return self.property(prop[1] or prop[2]), prop.end()
        code = re.compile(r"\\(?:x\{([0-9a-fA-F]+)\}|x([0-9a-fA-F]{0,2})|o\{([0-7]+)\}|([0-7]{1,3})|c(.))").match(
            text, pos
        )
        if code:
            point = _code(code)
            if not self.wide:
                point = min(point, 255)
            return f"\\U{point:08x}" if point > 255 else f"\\x{point:02x}", code.end()
        simple = {
            "h": " \\t",
            "v": "\\n\\x0b\\f\\r",
            "e": "\\x1b",
            "a": "\\x07",
            "b": "\\x08",
            "n": "\\x0a",
            "E": "",
            "Q": "",
        }
        if char in simple:
            return simple[char], pos + 2
        if char == "s":
            return _BLANKS if self.lines else _SPACES, pos + 2
        if char in "dw":
            return self.members(char), pos + 2
        if char in "DWS":
            ranges = complement(union(_CLASSES[char.lower()]), 0x10FFFF if self.wide else 255)
            return "\\" + char if self.unicode else self.spelled(ranges), pos + 2
        if char in "rtf":
            return "\\" + char, pos + 2
        if char.isascii() and char.isalnum():
            raise RegexError("unrecognized character follows \\")
        return f"\\x{ord(char):02x}" if ord(char) < 128 else char, pos + 2


def _code(found: re.Match[str]) -> int:
    if found[5]:
        return ord(found[5].upper()) ^ 64
    if found[1] is not None or found[2] is not None:
        code = int(found[1] or found[2] or "0", 16)
    else:
        code = int(found[3] or found[4], 8)
    if code > 0x10FFFF:
        raise RegexError("character code point value in \\x{} or \\o{} is too large")
    return code
