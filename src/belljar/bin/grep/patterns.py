"""The patterns of a grep command line, compiled."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from belljar import regex
from belljar.bin._kit.locale import is_utf8
from belljar.bin._kit.program import UsageError
from belljar.bin.grep.options import Options
from belljar.kernel.process import Process

_MANY = 64


class Matcher(Protocol):
    """Selects lines; `Regex` is one."""

    def lines(self, buffer: bytes, separator: int = 10) -> Iterator[tuple[int, int]]: ...
    def line_matches(self, buffer: bytes, separator: int = 10) -> Iterator[tuple[int, int]]: ...
    def test(self, subject: bytes) -> bool: ...
    def finditer(self, subject: bytes) -> Iterator[Any]: ...


class WholeLines:
    """`grep -xF -f list`: lines that are in a set."""

    def __init__(self, wanted: frozenset[bytes]) -> None:
        self.wanted = wanted

    def test(self, subject: bytes) -> bool:
        return subject in self.wanted

    def lines(self, buffer: bytes, separator: int = 10) -> Iterator[tuple[int, int]]:
        mark = bytes((separator,))
        wanted = self.wanted
        pos = 0
        for line in buffer.removesuffix(mark).split(mark):
            end = pos + len(line)
            if line in wanted:
                yield pos, end
            pos = end + 1

    line_matches = lines

    def finditer(self, subject: bytes) -> Iterator[Any]:
        if subject in self.wanted:
            yield regex.Spans(subject, [(0, len(subject))])


class Nothing:
    """`grep -f /dev/null`: no pattern, so no match."""

    def test(self, subject: bytes) -> bool:
        return False

    def lines(self, buffer: bytes, separator: int = 10) -> Iterator[tuple[int, int]]:
        return iter(())

    line_matches = lines

    def finditer(self, subject: bytes) -> Iterator[Any]:
        return iter(())


def collect(process: Process, options: Options, operands: list[str]) -> list[str]:
    """The pattern lines of -e, -f or the first operand, which is taken from `operands`."""
    if not options.patterns and not options.files:
        return operands.pop(0).split("\n")
    patterns = [line for text in options.patterns for line in text.split("\n")]
    for name in options.files:
        text = process.read_file(name).decode("utf-8", "surrogateescape")
        if text:
            patterns += text.removesuffix("\n").split("\n")
    return patterns


def compile_patterns(process: Process, options: Options, patterns: Sequence[str], syntax: str) -> Matcher:
    """Raises regex.RegexError; warns as GNU does."""
    if syntax == "perl" and len(patterns) > 1:
        raise UsageError("the -P option only supports a single pattern", hint=False)
    if not patterns:
        return Nothing()
    ignore_case = bool(options.ignore_case)
    if syntax == "fixed" and options.line and not ignore_case and len(patterns) > _MANY:
        return WholeLines(frozenset(p.encode("utf-8", "surrogateescape") for p in patterns))
    compiled = regex.compile_any(
        list(dict.fromkeys(patterns)),
        syntax=syntax,
        ignore_case=ignore_case,
        utf8=is_utf8(process.env),
        whole_line=options.line,
        whole_word=options.word,
    )
    for warning in compiled.warnings:
        process.warn(f"warning: {warning}")
    return compiled
