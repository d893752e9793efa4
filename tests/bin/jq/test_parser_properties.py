"""The parser never crashes, whatever the text; what it accepts also runs within its steps."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.bin.jq.code import CompileProblem
from belljar.bin.jq.errors import Break, JqError
from belljar.bin.jq.lexer import SyntaxProblem
from belljar.bin.jq.parse import parse
from tests.bin.jq.library import Counter, OutOfSteps, outputs

WORDS = [
    *". .. .a .[] .[0] .[1:] | , + - * / % == != < <= // = |= += //= ? ( ) [ ] { } : ;".split(),
    *"$x $__loc__ 1 2.5 null true".split(),
    *"if then else elif end try catch reduce foreach as def f: f label break $x and or not import include".split(),
    *'"s" "a\\(1)b" @base64 @csv map( select( range( recurse path( limit( first( empty error input sort keys'.split(),
    *"?// to_entries add length tostring tojson splits( test( walk( del( paths( getpath( env now".split(),
]
PROGRAMS = st.lists(st.sampled_from(WORDS), max_size=14).map(" ".join)


@given(st.text(max_size=40))
def test_any_text(text: str) -> None:
    with suppress(SyntaxProblem):
        parse(text)


@given(PROGRAMS, st.sampled_from([None, 1, "s", [1, [2]], {"a": [1]}]))
@settings(max_examples=300)
def test_any_program_ends(text: str, value: object) -> None:
    runtime = Counter(steps=5_000)
    with suppress(SyntaxProblem, CompileProblem, JqError, Break, OutOfSteps):
        for _ in outputs(text, value, runtime):
            runtime.charge(1)
