"""One pattern compiled for one engine: Python's `re`, or RE2 with POSIX's longest match."""

from __future__ import annotations

import re
from typing import Any, Protocol

from belljar.regex.nodes import RegexError

try:
    import re2
except ImportError:  # the browser has no RE2 wheel
    re2 = None

HAVE_RE2 = re2 is not None

Subject = bytes | str


class Match(Protocol):
    """What utilities use of a match; `re.Match` has it too."""

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


Program = ReProgram | Re2Program
