"""One pattern compiled for one engine: Python's `re`, or RE2 with POSIX's longest match."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, Protocol

from belljar.regex.nodes import RegexError

try:
    import re2
except ImportError:  # the browser has no RE2 wheel
    re2 = None

HAVE_RE2 = re2 is not None

Subject = bytes | str


class Match(Protocol):
    """The methods of `re.Match` that utilities use."""

    def start(self, group: Any = 0, /) -> int: ...
    def end(self, group: Any = 0, /) -> int: ...
    def span(self, group: Any = 0, /) -> tuple[int, int]: ...
    def group(self, group: Any = 0, /) -> Any: ...


class Spans:
    """A match given by its spans."""

    __slots__ = ("spans", "subject")

    def __init__(self, subject: Subject, spans: Any) -> None:
        self.subject = subject
        self.spans = spans

    def start(self, group: Any = 0, /) -> int:
        return int(self.spans[group][0])

    def end(self, group: Any = 0, /) -> int:
        return int(self.spans[group][1])

    def span(self, group: Any = 0, /) -> tuple[int, int]:
        start, end = self.spans[group]
        return start, end

    def group(self, group: Any = 0, /) -> Any:
        start, end = self.spans[group]
        return None if start < 0 else self.subject[start:end]


class ReProgram:
    """Runs on `re`; positions are those of the subject."""

    def __init__(self, text: str, *, ignore_case: bool, of_bytes: bool, ascii_only: bool) -> None:
        flags = re.IGNORECASE if ignore_case else 0
        try:
            if of_bytes:
                self.compiled: re.Pattern[Any] = re.compile(text.encode("latin-1"), flags)
            else:
                self.compiled = re.compile(text, flags | (re.ASCII if ascii_only else 0))
        except (re.error, RecursionError, OverflowError) as error:
            raise RegexError("Regular expression too big") from error
        self.groups = self.compiled.groups

    def search(self, subject: Any, pos: int, end: int) -> Match | None:
        found: Any = self.compiled.search(subject, pos, end)
        return found  # type: ignore[no-any-return]

    def lines(self, text: Any, pos: int, separator: int) -> Iterator[tuple[int, int]]:
        """(start, end) of each line from `pos` on that has a match; `text` ends without a separator."""
        mark: Any = bytes((separator,)) if isinstance(text, bytes) else chr(separator)
        search, find, rfind, end = self.compiled.search, text.find, text.rfind, len(text)
        while pos <= end:
            match = search(text, pos)
            if match is None:
                return
            first, last = match.span()
            start = rfind(mark, pos, first) + 1 or pos
            pos = find(mark, last)
            if pos < 0:
                pos = end
            yield start, pos
            pos += 1

    def spans(self, text: Any) -> Iterator[tuple[int, int]]:
        for match in self.compiled.finditer(text):
            yield match.span()


class Re2Program:
    """Runs on RE2, in bytes: Latin-1 for narrow patterns, UTF-8 for wide ones."""

    def __init__(self, text: str, *, ignore_case: bool, wide: bool, captures: bool, longest: bool = True) -> None:
        options = re2.Options()
        options.longest_match = longest
        options.log_errors = False
        options.case_sensitive = not ignore_case
        options.never_capture = not captures
        options.max_mem = min(max(8 << 20, len(text) << 8), 64 << 20)
        if not wide:
            options.encoding = re2.Options.Encoding.LATIN1
        try:
            compiled = re2.compile(text.encode("ascii"), options)
        except re2.error as error:
            raise RegexError("Regular expression too big") from error
        # the wrapper's own search() builds a generator for each call, which doubles its cost
        self.match = compiled._regexp.Match
        self.groups: int = compiled.groups
        self.unanchored = re2._Anchor.UNANCHORED

    def search(self, subject: Any, pos: int, end: int) -> Match | None:
        if end < len(subject):
            subject = subject[:end]  # RE2 would look past `end` for $ and \b
        spans = self.match(self.unanchored, subject, pos, len(subject))
        return None if spans[0][0] < 0 else Spans(subject, spans)

    def lines(self, text: bytes, pos: int, separator: int) -> Iterator[tuple[int, int]]:
        """As ReProgram.lines."""
        mark = bytes((separator,))
        match, how, find, rfind, end = self.match, self.unanchored, text.find, text.rfind, len(text)
        while pos <= end:
            first, last = match(how, text, pos, end)[0]
            if first < 0:
                return
            start = rfind(mark, pos, first) + 1 or pos
            pos = find(mark, last)
            if pos < 0:
                pos = end
            yield start, pos
            pos += 1

    def spans(self, text: bytes) -> Iterator[tuple[int, int]]:
        match, how, pos, end = self.match, self.unanchored, 0, len(text)
        while pos <= end:
            first, last = match(how, text, pos, end)[0]
            if first < 0:
                return
            yield first, last
            pos = last if last > first else last + 1


Program = ReProgram | Re2Program
