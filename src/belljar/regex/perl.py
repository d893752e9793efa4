"""Perl-compatible patterns (`grep -P`) rewritten for Python's `re`, which shares most of their syntax."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from belljar.regex.analyse import Traits
from belljar.regex.engine import Regex
from belljar.regex.nodes import EMPTY, RegexError
from belljar.regex.perl_syntax import KEEP, Translator
from belljar.regex.program import HAVE_RE2, Match, Program, Re2Program, ReProgram, Spans

_TRAITS = Traits(
    longest_first=True,
    ambiguous_repeats=0,
    explosive=False,
    backrefs=True,
    word_edges=True,
    ascii_exact=False,
    ascii_exact_if_valid=False,
    literal="",
    pure_literal=False,
)
_ERRORS = (
    ("missing ), unterminated subpattern", "missing closing parenthesis"),
    ("unbalanced parenthesis", "unmatched closing parenthesis"),
    ("unterminated character set", "missing terminating ] for character class"),
    ("nothing to repeat", "quantifier does not follow a repeatable item"),
    ("multiple repeat", "quantifier does not follow a repeatable item"),
    ("min repeat greater than max repeat", "numbers out of order in {} quantifier"),
    ("bad escape (end of pattern)", "\\ at end of pattern"),
    ("look-behind requires fixed-width pattern", "lookbehind assertion is not fixed length"),
    ("bad character range", "range out of order in character class"),
    ("invalid group reference", "reference to non-existent subpattern"),
    ("unknown group name", "reference to non-existent subpattern"),
    ("cannot refer to an open group", "recursive backreferences are not supported"),
    ("unknown extension", "unrecognized character after (? or (?-"),
)


class PerlRegex(Regex):
    """A Perl pattern; `re`'s first match is what Perl finds, too."""

    def __init__(
        self,
        pattern: str,
        *,
        ignore_case: bool,
        utf8: bool,
        newline: int | None,
        whole_line: bool,
        whole_word: bool,
        unicode: bool = False,
    ) -> None:
        self.unicode = unicode
        self.pattern = pattern
        self.whole_line = whole_line
        self.whole_word = whole_word
        # nested or several unbounded repeats can take exponential or polynomial time in `re`
        self.risky = "\\K" not in pattern and (
            re.search(r"\)[*+{]", pattern) is not None or len(re.findall(r"[*+]|,\}", pattern)) > 1
        )
        super().__init__(EMPTY, 0, _TRAITS, ignore_case=ignore_case, newline=newline, utf8=utf8)
        probe = self.program(wide=False, of_bytes=True)
        self.groups = probe.groups
        self.program(wide=True, of_bytes=False)  # what is wrong with the pattern is said now, not when it runs

    def _compile(self, wide: bool, of_bytes: bool, separator: int | None, test: bool, long: bool) -> Program:
        text = self._text(wide, separator)
        if self.risky and not wide and HAVE_RE2:
            # only RE2 is safe from such patterns; it refuses what it can't do
            try:
                return Re2Program(text, ignore_case=self.ignore_case, wide=False, captures=not test, longest=False)
            except (RegexError, UnicodeEncodeError):
                pass
        try:
            flags = re.IGNORECASE if self.ignore_case else 0
            if of_bytes:
                re.compile(text.encode("latin-1"), flags)
            else:
                re.compile(text, flags)
        except re.error as error:
            raise RegexError(next((ours for theirs, ours in _ERRORS if theirs in error.msg), error.msg)) from error
        except (RecursionError, OverflowError) as error:
            raise RegexError("regular expression is too large") from error
        return ReProgram(text, ignore_case=self.ignore_case, of_bytes=of_bytes, ascii_only=False)

    def _text(self, wide: bool, separator: int | None) -> str:
        text = Translator(self.pattern, separator, wide=wide, unicode=self.unicode and wide).run()
        if not wide:
            # the subject is single bytes: where a wider character stands, one that ASCII text never has
            text = re.sub("[^\\x00-\\xff]", "\xff", text)
        if self.newline is not None:
            text = f"(?m:{text})"
        if self.whole_line:
            edges = ("(?m:^)", "(?m:$)") if separator == 10 else ("\\A", "\\Z")
            text = f"{edges[0]}(?:{text}){edges[1]}"
        elif self.whole_word:
            word = "\\w" if self.unicode else "[0-9A-Za-z_]"
            text = f"(?<!{word})(?:{text})(?!{word})"
        return text

    def search(self, subject: Any, pos: int = 0, end: int | None = None) -> Match | None:
        match = super().search(subject, pos, end)
        return match if match is None or KEEP not in self._names() else self._kept(match)

    def _scanner(self, *, wide: bool, separator: int) -> Program | None:
        key = (wide, "scan", separator)
        if key not in self._programs and HAVE_RE2 and not wide:
            text = self._text(wide, separator)
            try:
                self._programs[key] = Re2Program(
                    text, ignore_case=self.ignore_case, wide=False, captures=False, longest=False
                )
            except (RegexError, UnicodeEncodeError):
                self._programs[key] = self.program(wide=wide, of_bytes=True, separator=separator, test=True)
        return self._programs.get(key)

    def _counts_by_findall(self, buffer: bytes) -> bool:
        return False

    def line_matches(self, buffer: bytes, separator: int = 10) -> Iterator[tuple[int, int]]:
        if KEEP not in self._names():
            yield from super().line_matches(buffer, separator)
            return
        for start, end in self.lines(buffer, separator):
            for match in self.finditer(buffer[start:end]):
                yield start + match.start(), start + match.end()

    @property
    def ascii_search(self) -> Any:
        return self.search if KEEP in self._names() else super().ascii_search

    def _names(self) -> Any:
        probe = self.program(wide=False, of_bytes=True)
        return probe.compiled.groupindex if isinstance(probe, ReProgram) else ()

    def _kept(self, match: Match) -> Match:
        """The match from where `\\K` stood."""
        start = match.start(self._names()[KEEP])
        subject = getattr(match, "subject", None)
        if subject is None:
            subject = match.string  # type: ignore[attr-defined]
        spans = [match.span(n) for n in range(self.groups + 1)]
        if start >= 0:
            spans[0] = (start, max(start, spans[0][1]))
        return Spans(subject, spans)


def check_rust(pattern: str) -> None:
    """Raise for what Rust's regular expressions don't have."""
    if re.search(r"(?<!\\)\(\?(?:[=!]|<[=!])", pattern):
        raise RegexError(
            "look-around, including look-ahead and look-behind, is not supported\n\n"
            "Consider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around."
        )
    if re.search(r"(?<!\\)(?:\\\\)*\\[1-9]", pattern):
        raise RegexError(
            "backreferences are not supported\n\n"
            "Consider enabling PCRE2 with the --pcre2 flag, which can handle backreferences\nand look-around."
        )
