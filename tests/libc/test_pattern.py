"""Patterns against a table recorded from bash 5.2, and their time on hostile ones."""

import json
from pathlib import Path
from time import process_time

import pytest

from belljar.libc.pattern import compile_pattern, escape, is_pattern

TABLE = [json.loads(line) for line in (Path(__file__).parent / "patterns.jsonl").read_text().splitlines()]


def answer(op: str, pattern: str, text: str) -> str:
    compiled = compile_pattern(pattern, nocase=op == "nocase")
    if op in ("match", "nocase"):
        return str(int(compiled.matches(text)))
    longest = op in ("##", "%%", "/#", "/%")
    if op in ("/", "//", "/#") and not text:
        return "<>" if list(compiled.spans(text)) else text
    if op in ("#", "##", "/#"):
        end = compiled.prefix(text, longest=longest)
        return text if end is None else ("<>" if op == "/#" else "") + text[end:]
    if op in ("%", "%%", "/%"):
        start = compiled.suffix(text, longest=longest)
        return text if start is None else text[:start] + ("<>" if op == "/%" else "")
    result, pos = "", 0
    for start, end in compiled.spans(text):
        result += text[pos:start] + "<>"
        pos = end
        if op == "/":
            break
    return result + text[pos:]


def test_patterns_answer_as_bash_does() -> None:
    wrong = [(*case, got) for case in TABLE if (got := answer(*case[:3])) != case[3]]
    assert wrong == []


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("+(a|aa)", "a" * 5000 + "b"),
        ("*(*(a|aa)|b)", "a" * 3000 + "c"),
        ("*a" * 30 + "*b", "a" * 20000),
        ("!(!(!(a)))x", "a" * 300),
        ("@(" * 200 + "a" + ")" * 200, "a"),
        ("@(" * 50000, "a"),
        ("[" * 50000, "a"),
    ],
)
def test_hostile_patterns_end_soon(pattern: str, text: str) -> None:
    start = process_time()
    compiled = compile_pattern(pattern)
    compiled.matches(text)
    list(compiled.spans(text[:2000]))
    assert process_time() - start < 2


def test_search_is_linear_when_the_rest_never_fits() -> None:
    start = process_time()
    assert list(compile_pattern("a*b").spans("a" * 300_000)) == []
    assert process_time() - start < 1


@pytest.mark.parametrize("text", ["a*b", "[x]", "\\", "@(a|b)", "!x", "a\nb", "]", "^-"])
def test_escaped_text_matches_only_itself(text: str) -> None:
    compiled = compile_pattern(escape(text))
    assert compiled.matches(text)
    assert not compiled.matches(text + "x")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a", False),
        ("a*", True),
        ("\\*", False),
        ("[a", False),
        ("[a]", True),
        ("[]", True),
        ("@(a)", True),
        ("@(a", False),
        ("[" * 200_000, False),
        ("@(" * 200_000, False),
        ("\\[a]", False),
    ],
)
def test_what_is_a_pattern(text: str, expected: bool) -> None:
    start = process_time()
    assert is_pattern(text) is expected
    assert process_time() - start < 1
