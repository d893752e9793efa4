"""Long lists of fixed strings (`grep -F -f words`): one alternation, written without a syntax tree."""

from __future__ import annotations

import re

from belljar.regex.analyse import Traits
from belljar.regex.engine import Regex
from belljar.regex.nodes import EMPTY, RegexError
from belljar.regex.program import HAVE_RE2, Program, Re2Program, ReProgram
from belljar.regex.translate import Untranslatable

MANY = 64
_PLAIN = re.compile(r"[A-Za-z0-9_]+")


class FixedStrings(Regex):
    """Any of many strings; sorted, because RE2 then shares their beginnings."""

    def __init__(
        self, strings: tuple[str, ...], *, ignore_case: bool, utf8: bool, whole_line: bool, whole_word: bool
    ) -> None:
        self.strings = sorted(set(strings))
        self.whole_line = whole_line
        self.whole_word = whole_word
        exact = not whole_word and (not ignore_case or all(map(str.isascii, strings)))
        traits = Traits(
            longest_first=False,
            ambiguous_repeats=0,
            explosive=False,
            backrefs=False,
            word_edges=whole_word,
            ascii_exact=exact,
            ascii_exact_if_valid=exact,
            literal="",
            pure_literal=False,
        )
        super().__init__(EMPTY, 0, traits, ignore_case=ignore_case, utf8=utf8)

    def _compile(self, wide: bool, of_bytes: bool, separator: int | None, test: bool, long: bool) -> Program:
        if HAVE_RE2:
            try:
                text = self._text(wide, separator, test, re2=True)
                return Re2Program(text, ignore_case=self.ignore_case, wide=wide, captures=False)
            except (Untranslatable, RegexError):
                pass  # e.g. whole words, for which RE2 has no assertion
        text = self._text(wide, separator, test, re2=False)
        return ReProgram(text, ignore_case=self.ignore_case, of_bytes=of_bytes, ascii_only=not wide)

    def _scanner(self, *, wide: bool, separator: int) -> Program | None:
        return self.program(wide=wide, of_bytes=not wide, separator=separator, test=True)

    def _counts_by_findall(self, buffer: bytes) -> bool:
        return False

    def _text(self, wide: bool, separator: int | None, test: bool, *, re2: bool) -> str:
        strings = self.strings if re2 else sorted(self.strings, key=len, reverse=True)
        words = "|".join([self._escape(string, wide, re2) for string in strings])
        lines = separator == 10
        if self.whole_line:
            if separator == 0:
                if re2:
                    raise Untranslatable
                return f"(?<![^\\x00])(?:{words})(?![^\\x00])"
            start, end = ("(?m:^)", "(?m:$)") if lines else ("\\A", "\\z" if re2 else "\\Z")
            return f"{start}(?:{words}){end}"
        if not self.whole_word:
            return words
        if not re2:
            return f"(?<!\\w)(?:{words})(?!\\w)"
        if wide or not test or not lines:
            raise Untranslatable
        # only whether there is a match counts, so the neighbours may be consumed
        return f"(?:(?m:^)|[^0-9A-Za-z_\\n])(?:{words})(?:(?m:$)|[^0-9A-Za-z_\\n])"

    def _escape(self, string: str, wide: bool, re2: bool) -> str:
        if _PLAIN.fullmatch(string):
            return string
        if not wide:
            data = string.encode("utf-8", "surrogateescape") if self.utf8 else string.encode("latin-1")
            return "".join([chr(byte) if chr(byte).isalnum() and byte < 128 else f"\\x{byte:02x}" for byte in data])
        if re2 and any(0xDC80 <= ord(char) <= 0xDCFF for char in string):
            raise Untranslatable
        spelling = "\\x{{{:x}}}" if re2 else "\\U{:08x}"
        return "".join([char if char.isascii() and char.isalnum() else spelling.format(ord(char)) for char in string])
