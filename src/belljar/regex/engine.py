"""`Regex`: one compiled pattern, matched against bytes or text by the engine that suits it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from belljar.regex.analyse import Traits, nullable
from belljar.regex.nodes import Alt, Assert, Cat, Char, Group, Node, RegexError, Repeat, Zero
from belljar.regex.nodes import Any as AnyNode
from belljar.regex.program import HAVE_RE2, Match, Program, Re2Program, ReProgram, Spans, Subject
from belljar.regex.translate import Target, Untranslatable, translate

_DENSE = 400  # bytes a match below which `re`, faster a call, beats RE2, faster a byte
_TRIAL = 64  # matches to judge that by
_LONG = 1 << 15  # subjects beyond which a quadratic pattern goes to RE2
_CONTINUATION = range(0x80, 0xC0)  # bytes of a UTF-8 sequence after its first


class Regex:
    """A compiled pattern. Positions are bytes for bytes, characters for str."""

    def __init__(
        self,
        tree: Node,
        groups: int,
        traits: Traits,
        *,
        ignore_case: bool = False,
        newline: int | None = None,
        utf8: bool = True,
        warnings: tuple[str, ...] = (),
    ) -> None:
        self.tree = tree
        self.groups = groups
        self.traits = traits
        self.ignore_case = ignore_case
        self.newline = newline
        self.utf8 = utf8
        self.warnings = warnings
        self._programs: dict[tuple[Any, ...], Program] = {}
        self._literal = self._encode(traits.literal)

    # -- compiling for an engine

    def _encode(self, text: str) -> bytes:
        return text.encode("utf-8", "surrogateescape") if self.utf8 else text.encode("latin-1")

    def program(
        self, *, wide: bool, of_bytes: bool, separator: int | None = None, test: bool = False, long: bool = False
    ) -> Program:
        """The program for one kind of subject; `test`: only whether there is a match counts."""
        key = (wide, of_bytes, separator, test, long)
        found = self._programs.get(key)
        if found is None:
            found = self._programs[key] = self._compile(wide, of_bytes, separator, test, long)
        return found

    def _compile(self, wide: bool, of_bytes: bool, separator: int | None, test: bool, long: bool) -> Program:
        traits = self.traits
        captures = not test or traits.backrefs
        tree = trim(self.tree) if test and not traits.backrefs else self.tree
        if test:
            suits_re = not traits.explosive and traits.ambiguous_repeats <= 1 and not long
        else:
            suits_re = traits.longest_first and traits.ambiguous_repeats <= (0 if long else 2)
        prefer_re2 = HAVE_RE2 and not traits.backrefs and not suits_re
        if prefer_re2:
            try:
                text = translate(tree, Target(True, wide, self.utf8, separator, self.newline, captures))
                return Re2Program(text, ignore_case=self.ignore_case, wide=wide, captures=captures and self.groups > 0)
            except Untranslatable:
                pass
            except RegexError:
                # said when the pattern is compiled, which makes the narrow program; later the CPU guard must do
                if traits.explosive and not wide:
                    raise
        text = translate(
            longest_literals_first(tree), Target(False, wide, self.utf8, separator, self.newline, captures)
        )
        return ReProgram(text, ignore_case=self.ignore_case, of_bytes=of_bytes, ascii_only=not wide)

    # -- matching

    def search(self, subject: Subject, pos: int = 0, end: int | None = None) -> Match | None:
        """The leftmost-longest match in subject[pos:end]; ^ means the subject's start, not pos."""
        stop = len(subject) if end is None else end
        if isinstance(subject, bytes):
            return self._search_bytes(subject, pos, stop)
        return self._search_text(subject, pos, stop)

    def _search_bytes(self, subject: bytes, pos: int, end: int) -> Match | None:
        long = end - pos > _LONG
        if self.narrow(subject):
            return self.program(wide=False, of_bytes=True, long=long).search(subject, pos, end)
        chosen = self.program(wide=True, of_bytes=False, long=long)
        if isinstance(chosen, Re2Program):
            return chosen.search(subject, pos, end)
        text = subject[:end].decode("utf-8", "surrogateescape")
        start = len(subject[:pos].decode("utf-8", "surrogateescape"))
        match = chosen.search(text, start, len(text))
        if match is None:
            return None
        return Spans(subject, [_byte_span(text, match.span(n)) for n in range(self.groups + 1)])

    def _search_text(self, subject: str, pos: int, end: int) -> Match | None:
        wide = self.utf8 and not subject.isascii()
        chosen = self.program(wide=wide, of_bytes=False, long=end - pos > _LONG)
        if self.utf8 and isinstance(chosen, ReProgram):
            return chosen.search(subject, pos, end)
        data = subject[:end].encode("utf-8", "surrogateescape")
        start = len(subject[:pos].encode("utf-8", "surrogateescape"))
        match = self._search_bytes(data, start, len(data))
        if match is None:
            return None
        return Spans(subject, [_text_span(data, match.span(n)) for n in range(self.groups + 1)])

    def narrow(self, subject: bytes) -> bool:
        """Whether this subject may be matched byte by byte."""
        traits = self.traits
        if not self.utf8 or traits.ascii_exact or subject.isascii():
            return True
        return traits.ascii_exact_if_valid and _well_formed(subject)

    def test(self, subject: Subject) -> bool:
        """Whether there is a match."""
        return self.search(subject) is not None

    def finditer(self, subject: Subject, pos: int = 0, end: int | None = None) -> Iterator[Match]:
        """All matches; as POSIX has it, none is empty right after another one."""
        stop = len(subject) if end is None else end
        search = self.searcher(subject)
        last = -1
        while pos <= stop:
            match = search(subject, pos, stop)
            if match is None:
                return
            start, finish = match.span()
            if start == finish == last:
                pos = _advance(subject, finish)
                continue
            yield match
            last = finish
            pos = finish if finish > start else _advance(subject, finish)

    def searcher(self, subject: Subject) -> Any:
        """`search` for this subject with the choice of engine already made."""
        if isinstance(subject, bytes) and len(subject) <= _LONG and self.narrow(subject):
            return self.ascii_search
        return self.search

    @property
    def ascii_search(self) -> Any:
        """search(bytes, pos, end) for ASCII subjects of moderate length, without further checks."""
        chosen = self.program(wide=False, of_bytes=True)
        return chosen.compiled.search if isinstance(chosen, ReProgram) else chosen.search

    # -- for callers that use `re` directly

    @property
    def quick(self) -> re.Pattern[bytes] | None:
        """The pattern of `re` for ASCII subjects, where that is the right engine."""
        chosen = self.program(wide=False, of_bytes=True)
        return chosen.compiled if isinstance(chosen, ReProgram) else None

    @property
    def may_be_empty(self) -> bool:
        return nullable(self.tree)

    @property
    def anchored(self) -> bool:
        """Whether there is at most one match a line, because it must begin or end it."""
        ends = self.tree.items if isinstance(self.tree, Cat) else (self.tree,)
        return bool(ends) and (ends[0] == Assert(Zero.LINE_START) or ends[-1] == Assert(Zero.LINE_END))

    def may_match(self, buffer: bytes) -> bool:
        """False if a quick look shows that nothing in `buffer` matches."""
        return not self._literal or self._literal in buffer

    def line_pattern(self, frame: str, *, wide: bool) -> re.Pattern[Any] | None:
        """The pattern of `re` for whole buffers of newline-separated lines, put in `frame` for its {}.

        None where RE2 would have to find the longest match.
        """
        if not self.traits.longest_first or self.traits.ambiguous_repeats > 2:
            return None
        key = ("line", frame, wide)
        chosen = self._programs.get(key)
        if chosen is None:
            target = Target(False, wide, self.utf8, 10, self.newline, True)
            text = translate(longest_literals_first(self.tree), target)
            text = frame.replace("{}", text)
            chosen = ReProgram(text, ignore_case=self.ignore_case, of_bytes=not wide, ascii_only=not wide)
            self._programs[key] = chosen
        return chosen.compiled if isinstance(chosen, ReProgram) else None

    def line_finder(self, *, wide: bool) -> Re2Program | None:
        """RE2's program for whole buffers of lines; for when `line_pattern` is None or lines are very long."""
        chosen = self.program(wide=wide, of_bytes=not wide, separator=10, long=True)
        return chosen if isinstance(chosen, Re2Program) else None

    # -- whole buffers of lines

    def lines(self, buffer: bytes, separator: int = 10) -> Iterator[tuple[int, int]]:
        """(start, end) of each line of `buffer` with a match, without its separator.

        A final separator does not begin another line. Nothing here is a loop over lines that
        don't match.
        """
        end = len(buffer)
        if not end:
            return
        if buffer[-1] == separator:
            end -= 1
        if self._literal and self._literal not in buffer:
            return
        if self.narrow(buffer):
            yield from self._narrow_lines(buffer, end, separator)
        else:
            yield from self._wide_lines(buffer, end, separator)

    def _narrow_lines(self, buffer: bytes, end: int, separator: int) -> Iterator[tuple[int, int]]:
        fast = self.program(wide=False, of_bytes=True, separator=separator, test=True)
        scan = self._scanner(wide=False, separator=separator) or fast
        text = buffer if end == len(buffer) else buffer[:end]
        pos = 0
        if isinstance(scan, Re2Program):
            for hits, (start, stop) in enumerate(scan.lines(text, 0, separator), 1):
                yield start, stop
                pos = stop + 1
                if hits == _TRIAL and pos < _TRIAL * _DENSE and isinstance(fast, ReProgram):
                    break
            else:
                return
        if isinstance(fast, ReProgram):
            yield from fast.lines(text, pos, separator)

    def _scanner(self, *, wide: bool, separator: int) -> Program | None:
        """RE2 where it skips text faster than `re` although both would do."""
        if not HAVE_RE2 or self.traits.backrefs:
            return None
        key = (wide, "scan", separator)
        if key not in self._programs:
            try:
                text = translate(trim(self.tree), Target(True, wide, self.utf8, separator, self.newline, False))
                self._programs[key] = Re2Program(text, ignore_case=self.ignore_case, wide=wide, captures=False)
            except (Untranslatable, RegexError):
                self._programs[key] = self.program(wide=wide, of_bytes=not wide, separator=separator, test=True)
        return self._programs[key]

    def _wide_lines(self, buffer: bytes, end: int, separator: int) -> Iterator[tuple[int, int]]:
        scan = self._scanner(wide=True, separator=separator)
        if isinstance(scan, Re2Program):
            yield from scan.lines(buffer if end == len(buffer) else buffer[:end], 0, separator)
            return
        decoded = buffer[:end].decode("utf-8", "surrogateescape")
        chosen = self.program(wide=True, of_bytes=False, separator=separator, test=True)
        assert isinstance(chosen, ReProgram)
        done = offset = 0
        for start, stop in chosen.lines(decoded, 0, separator):
            first = offset + len(decoded[done:start].encode("utf-8", "surrogateescape"))
            offset = first + len(decoded[start:stop].encode("utf-8", "surrogateescape"))
            done = stop
            yield first, offset

    def line_matches(self, buffer: bytes, separator: int = 10) -> Iterator[tuple[int, int]]:
        """(start, end) of every match in every line of `buffer`, empty ones included."""
        end = len(buffer)
        if end and buffer[-1] == separator:
            buffer = buffer[:-1]
        narrow = self.narrow(buffer)
        chosen = self.program(wide=not narrow, of_bytes=narrow, separator=separator)
        if narrow or isinstance(chosen, Re2Program):
            yield from chosen.spans(buffer)
            return
        text = buffer.decode("utf-8", "surrogateescape")
        done = offset = 0
        for start, stop in chosen.spans(text):
            first = offset + len(text[done:start].encode("utf-8", "surrogateescape"))
            offset = first + len(text[start:stop].encode("utf-8", "surrogateescape"))
            done = stop
            yield first, offset

    def line_tester(self, buffer: bytes, separator: int = 10) -> Any:
        """A quick truth function for single lines of this buffer."""
        if self.traits.pure_literal:
            return self._contains
        if not self.narrow(buffer):
            return self.test
        chosen = self.program(wide=False, of_bytes=True, separator=separator, test=True)
        if isinstance(chosen, ReProgram):
            return chosen.compiled.search
        return lambda line: chosen.search(line, 0, len(line))

    def _contains(self, line: bytes) -> bool:
        return self._literal in line

    def count_lines(self, buffer: bytes, separator: int = 10) -> int:
        """Count the lines of `buffer`, most of which match, that have a match."""
        if self._counts_by_findall(buffer):
            key = ("count", separator)
            chosen = self._programs.get(key)
            if chosen is None:
                target = Target(False, False, self.utf8, separator, self.newline, False)
                mark = f"\\x{separator:02x}"
                text = f"(?:{translate(trim(self.tree), target)})[^{mark}]*{mark}?"
                chosen = ReProgram(text, ignore_case=self.ignore_case, of_bytes=True, ascii_only=True)
                self._programs[key] = chosen
            if isinstance(chosen, ReProgram):
                return len(chosen.compiled.findall(buffer))
        return sum(1 for _ in self.lines(buffer, separator))

    def _counts_by_findall(self, buffer: bytes) -> bool:
        traits = self.traits
        if traits.explosive or traits.backrefs or traits.ambiguous_repeats > 1 or nullable(trim(self.tree)):
            return False
        return self.narrow(buffer)


def _well_formed(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True


def _advance(subject: Subject, pos: int) -> int:
    """The position after the character at `pos`."""
    pos += 1
    if isinstance(subject, bytes):
        while pos < len(subject) and subject[pos] in _CONTINUATION:
            pos += 1
    return pos


def _byte_span(text: str, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    if start < 0:
        return span
    first = len(text[:start].encode("utf-8", "surrogateescape"))
    return first, first + len(text[start:end].encode("utf-8", "surrogateescape"))


def _text_span(data: bytes, span: tuple[int, int]) -> tuple[int, int]:
    start, end = span
    if start < 0:
        return span
    first = len(data[:start].decode("utf-8", "surrogateescape"))
    return first, first + len(data[start:end].decode("utf-8", "surrogateescape"))


def trim(node: Node) -> Node:
    """The pattern without what does not decide whether there is a match: `.*` at either end."""
    if isinstance(node, Group):
        return trim(node.body)
    if not isinstance(node, Cat):
        return node
    items = list(node.items)
    while items and _is_any_star(items[0]):
        del items[0]
    while items and isinstance(items[-1], Repeat) and items[-1].low == 0:
        del items[-1]
    while items and nullable(items[-1]) and _is_any_star(items[-1]):
        del items[-1]
    return items[0] if len(items) == 1 else Cat(tuple(items))


def _is_any_star(node: Node) -> bool:
    if isinstance(node, Group):
        return _is_any_star(node.body)
    return isinstance(node, Repeat) and isinstance(node.body, AnyNode) and node.low == 0 and node.high is None


def longest_literals_first(node: Node) -> Node:
    """Put longer words first, for `re`, which takes the first branch that matches."""
    match node:
        case Alt(branches=branches):
            lengths = [_literal_length(branch) for branch in branches]
            if all(length >= 0 for length in lengths):
                order = sorted(range(len(branches)), key=lambda index: -lengths[index])
                return Alt(tuple(branches[index] for index in order))
            return Alt(tuple(map(longest_literals_first, branches)))
        case Cat(items=items):
            return Cat(tuple(map(longest_literals_first, items)))
        case Group(index=index, body=body):
            return Group(index, longest_literals_first(body))
        case Repeat(body=body, low=low, high=high):
            return Repeat(longest_literals_first(body), low, high)
        case _:
            return node


def _literal_length(node: Node) -> int:
    if isinstance(node, Char):
        return 1
    if isinstance(node, Cat) and all(isinstance(item, Char) for item in node.items):
        return len(node.items)
    return -1
