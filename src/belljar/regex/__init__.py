"""POSIX regular expressions (and what of Perl's `re` can run) for the shell and the utilities.

A pattern is parsed to a syntax tree, analysed once, and run by Python's `re` where that is provably
quick and finds POSIX's longest match, else by RE2.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

from belljar.regex.analyse import analyse
from belljar.regex.dialect import DIALECTS
from belljar.regex.engine import Regex
from belljar.regex.fixed import MANY, FixedStrings
from belljar.regex.nodes import Alt, Assert, Backref, Cat, Char, Group, Node, RegexError, Repeat, Zero
from belljar.regex.parse import parse
from belljar.regex.perl import PerlRegex, check_rust
from belljar.regex.program import Match, Spans

CPU_GUARD = "caller"
"""See kernel/cpu_guard_host.py."""
__all__ = ["Match", "Regex", "RegexError", "Spans", "compile", "compile_any"]


def compile(
    pattern: str | bytes,
    *,
    syntax: str = "ere",
    ignore_case: bool = False,
    newline: bool | int | None = False,
    utf8: bool = True,
) -> Regex:
    """Compile one pattern.

    syntax: bre, ere (POSIX), grep, egrep, sed, sed-ere, awk, emacs (GNU's variants), fixed, perl,
    rust (Perl's without look-around and back-references; classes are Unicode's).
    newline: ^ and $ also match at newlines, which . and [^x] don't match; or which byte that is.
    utf8: characters are UTF-8 sequences, else single bytes.
    Raises RegexError with GNU's message.
    """
    return compile_any([pattern], syntax=syntax, ignore_case=ignore_case, newline=newline, utf8=utf8)


def compile_any(
    patterns: Sequence[str | bytes],
    *,
    syntax: str = "ere",
    ignore_case: bool = False,
    newline: bool | int | None = False,
    utf8: bool = True,
    whole_line: bool = False,
    whole_word: bool = False,
) -> Regex:
    """Compile a choice of patterns (grep -e A -e B), optionally held to whole lines or words."""
    texts = tuple(_characters(pattern, utf8) for pattern in patterns)
    line_end = 10 if newline is True else None if newline is False else newline
    return _compiled(texts, syntax, ignore_case, line_end, utf8, whole_line, whole_word)


def _characters(pattern: str | bytes, utf8: bool) -> str:
    """The pattern with one str character a character of its locale."""
    if isinstance(pattern, str):
        if utf8 or pattern.isascii():
            return pattern
        pattern = pattern.encode("utf-8", "surrogateescape")
    return pattern.decode("utf-8", "surrogateescape") if utf8 else pattern.decode("latin-1")


@lru_cache(maxsize=256)
def _compiled(
    patterns: tuple[str, ...],
    syntax: str,
    ignore_case: bool,
    newline: int | None,
    utf8: bool,
    whole_line: bool,
    whole_word: bool,
) -> Regex:
    if syntax in ("perl", "rust"):
        if syntax == "rust":
            for pattern in patterns:
                check_rust(pattern)
        joined = patterns[0] if len(patterns) == 1 else "|".join(f"(?:{pattern})" for pattern in patterns)
        return PerlRegex(
            joined,
            ignore_case=ignore_case,
            utf8=utf8,
            newline=newline,
            whole_line=whole_line,
            whole_word=whole_word,
            unicode=syntax == "rust",
        )
    if syntax == "fixed" and len(patterns) > MANY and "" not in patterns:
        return FixedStrings(patterns, ignore_case=ignore_case, utf8=utf8, whole_line=whole_line, whole_word=whole_word)
    branches: list[Node] = []
    warnings: list[str] = []
    groups = 0
    for pattern in patterns:
        if syntax == "fixed":
            branches.append(_literal(pattern))
            continue
        parsed = parse(pattern, DIALECTS[syntax])
        branches.append(shift_groups(parsed.tree, groups) if groups else parsed.tree)
        groups += parsed.groups
        warnings += parsed.warnings
    tree: Node = branches[0] if len(branches) == 1 else Alt(tuple(branches))
    if whole_line:
        tree = Cat((Assert(Zero.LINE_START), tree, Assert(Zero.LINE_END)))
    elif whole_word:
        tree = Cat((Assert(Zero.NOT_AFTER_WORD), tree, Assert(Zero.NOT_BEFORE_WORD)))
    traits = analyse(tree, ignore_case=ignore_case, allowance=sum(map(len, patterns)))
    compiled = Regex(
        tree,
        groups,
        traits,
        ignore_case=ignore_case,
        newline=newline,
        utf8=utf8,
        warnings=tuple(warnings),
    )
    compiled.program(wide=False, of_bytes=True)  # raises now what it would raise at the first match
    return compiled


def _literal(text: str) -> Node:
    return Cat(tuple(Char(ord(char)) for char in text)) if len(text) != 1 else Char(ord(text))


def shift_groups(node: Node, by: int) -> Node:
    """The same tree with its groups numbered from `by` + 1."""
    match node:
        case Group(index=index, body=body):
            return Group(index + by, shift_groups(body, by))
        case Backref(index=index):
            return Backref(index + by)
        case Cat(items=items):
            return Cat(tuple(shift_groups(item, by) for item in items))
        case Alt(branches=branches):
            return Alt(tuple(shift_groups(branch, by) for branch in branches))
        case Repeat(body=body, low=low, high=high):
            return Repeat(shift_groups(body, by), low, high)
        case _:
            return node
