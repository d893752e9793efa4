"""POSIX patterns: GNU's answers, errors included, and agreement of the engines."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar import regex
from belljar.regex import RegexError
from belljar.regex.analyse import analyse
from belljar.regex.dialect import DIALECTS
from belljar.regex.engine import Regex
from belljar.regex.parse import parse

CASES = [json.loads(line) for line in (Path(__file__).parent / "gnu.jsonl").read_text().splitlines()]


def bracketed(compiled: Regex, subject: str | bytes) -> str:
    """Every match as the recorder's sed command shows it."""
    groups = min(compiled.groups, 3)
    text = subject.decode("utf-8", "surrogateescape") if isinstance(subject, bytes) else subject
    out = []
    last = 0
    for match in compiled.finditer(subject):
        parts = [match.group(n) or "" for n in range(groups + 1)]
        shown = [p.decode("utf-8", "surrogateescape") if isinstance(p, bytes) else p for p in parts]
        start, end = match.span()
        if isinstance(subject, bytes):
            start, end = (len(subject[:at].decode("utf-8", "surrogateescape")) for at in (start, end))
        out.append(text[last:start] + "[" + "|".join(shown) + "]")
        last = end
    return "".join(out) + text[last:]


@pytest.mark.parametrize("case", CASES, ids=lambda case: f"{case['syntax']} {case['pattern']} {case['subject']}")
def test_gnu_agrees(case: dict[str, object]) -> None:
    syntax, pattern, subject = str(case["syntax"]), str(case["pattern"]), str(case["subject"])
    if "error" in case:
        with pytest.raises(RegexError) as caught:
            regex.compile(pattern, syntax=syntax)
        assert str(caught.value) == case["error"]
        return
    compiled = regex.compile(pattern, syntax=syntax)
    data = subject.encode()
    if syntax in ("grep", "egrep"):
        assert bool(list(compiled.lines(data + b"\n"))) == case["result"]
    else:
        assert bracketed(compiled, subject) == case["result"]
        assert bracketed(compiled, data) == case["result"]


@pytest.mark.parametrize(
    "pattern", ["(a+)+$", "(a|aa)+$", "(a*)*b", "(a|a)*b", "((a{1,9}){1,9})+b", "(.*)(.*)(.*)(.*)x"]
)
@pytest.mark.parametrize("syntax", ["ere", "egrep", "perl"])
def test_explosive_patterns_end(pattern: str, syntax: str) -> None:
    compiled = regex.compile(pattern, syntax=syntax)
    data = b"a" * 3000 + b"!"
    assert list(compiled.lines(data)) == []
    if syntax != "perl":
        assert compiled.search(data) is None
        assert compiled.search(data.decode()) is None


@pytest.mark.parametrize(
    ("syntax", "pattern"),
    [
        ("ere", "(a{1,65535}){1,65535}"),
        ("ere", "(a{1,32767}){1,32767}"),
        ("perl", "(?:a{1,65535}){1,65535}"),
        ("ere", "(" * 5000 + ")" * 5000),
        ("perl", "(" * 5000 + ")" * 5000),
    ],
)
def test_absurd_patterns_are_refused(syntax: str, pattern: str) -> None:
    with pytest.raises(RegexError):
        regex.compile(pattern, syntax=syntax)


NOISE = st.text(alphabet="ab(){}[]\\|*+?.^$-,:=1<é\n", max_size=24)


@given(NOISE, st.sampled_from([*DIALECTS, "fixed", "perl"]), st.text(alphabet="ab-1 é\n", max_size=12))
def test_no_pattern_crashes(pattern: str, syntax: str, subject: str) -> None:
    try:
        compiled = regex.compile(pattern, syntax=syntax)
    except RegexError:
        return
    data = subject.encode()
    for match in compiled.finditer(data):
        assert 0 <= match.start() <= match.end() <= len(data)
    for start, end in compiled.lines(data):
        assert b"\n" not in data[start:end]


@st.composite
def patterns(draw: st.DrawFn, depth: int = 2) -> str:
    kinds = ["a", "b", "c", ".", "[ab]", "[^a]", "é"]
    atoms = st.sampled_from(kinds)
    if depth:
        atoms = st.one_of(atoms, patterns(depth - 1).map(lambda inner: f"({inner})"))
    repeated = st.tuples(atoms, st.sampled_from(["", "", "*", "+", "?", "{1,2}"])).map("".join)
    branch = st.lists(repeated, min_size=1, max_size=3).map("".join)
    return draw(st.lists(branch, min_size=1, max_size=2).map("|".join))


@given(patterns(), st.text(alphabet="abcé", max_size=10))
def test_engines_agree_on_the_longest_match(pattern: str, subject: str) -> None:
    """What the analysis lets `re` run must end where RE2's longest match ends."""
    parsed = parse(pattern, DIALECTS["ere"])
    traits = analyse(parsed.tree, ignore_case=False)
    chosen = regex.compile(pattern)
    always_re2 = Regex(
        parsed.tree,
        parsed.groups,
        type(traits)(
            **{name: getattr(traits, name) for name in traits.__struct_fields__}
            | {"longest_first": False, "explosive": True, "ascii_exact": False, "ascii_exact_if_valid": False}
        ),
    )
    data = subject.encode()
    spans = [[match.span() for match in engine.finditer(data)] for engine in (chosen, always_re2)]
    assert spans[0] == spans[1]
    lines = [list(engine.lines(data)) for engine in (chosen, always_re2)]
    assert lines[0] == lines[1]


def test_bytes_and_text_positions() -> None:
    compiled = regex.compile("é.|(x)")
    match = compiled.search("aéz")
    assert match is not None
    assert match.span() == (1, 3)
    match = compiled.search("aéz".encode())
    assert match is not None
    assert match.span() == (1, 4)


def test_c_locale_matches_bytes() -> None:
    compiled = regex.compile(".", utf8=False)
    assert [match.span() for match in compiled.finditer("é".encode())] == [(0, 1), (1, 2)]
    assert regex.compile("[\xe9]".encode("latin-1"), utf8=False).search(b"\xe9") is not None


def test_invalid_bytes_are_no_characters() -> None:
    assert regex.compile("a.b", syntax="grep").search(b"a\xffb") is None
    assert list(regex.compile("^a.*b$", syntax="grep").lines(b"a\xffb\nab\n")) == [(4, 6)]


def test_newline_mode() -> None:
    data = b"ab\nac\n"
    assert [match.span() for match in regex.compile("^a.*$", newline=True).finditer(data)] == [(0, 2), (3, 5)]
    assert [match.span() for match in regex.compile("^a.*$").finditer(data)] == [(0, 6)]


def test_lines_by_nul() -> None:
    data = b"a\nb\0c\nd\0"
    assert list(regex.compile("a.b", syntax="grep").lines(data, separator=0)) == [(0, 3)]
    assert list(regex.compile("^b", syntax="grep").lines(data, separator=0)) == []
    assert list(regex.compile("^c", syntax="grep").lines(data, separator=0)) == [(4, 7)]


@pytest.mark.parametrize(
    ("pattern", "subject", "span"),
    [
        (r"foo\Kbar", b"foobar", (3, 6)),
        (r"(?<=a|bc)d", b"bcd", (2, 3)),
        (r"\Qa.b\E+", b"a.bb", (0, 4)),
        (r"a\h+b", b"a \tb", (0, 4)),
        (r"(?i)FOO", b"foo", (0, 3)),
        (r"x(?i)A|B", b"b", (0, 1)),
        (r"(?<n>a)\k<n>", b"aa", (0, 2)),
        (r"(a)\g{-1}", b"aa", (0, 2)),
        (r"\d{2,}+\w", b"123a", (0, 4)),
        (r"[[:alpha:]\d]+", b"-a1", (1, 3)),
        (r"\p{Lu}", "é É".encode(), (3, 5)),
        (r"\x{e9}", "é".encode(), (0, 2)),
    ],
)
def test_perl(pattern: str, subject: bytes, span: tuple[int, int]) -> None:
    match = regex.compile(pattern, syntax="perl").search(subject)
    assert match is not None
    assert match.span() == span


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        ("(", "missing closing parenthesis"),
        ("a)", "unmatched closing parenthesis"),
        ("[a", "missing terminating ] for character class"),
        ("*a", "quantifier does not follow a repeatable item"),
        ("(?R)", "recursion in patterns is not supported here"),
    ],
)
def test_perl_errors(pattern: str, message: str) -> None:
    with pytest.raises(RegexError) as caught:
        regex.compile(pattern, syntax="perl")
    assert str(caught.value) == message
