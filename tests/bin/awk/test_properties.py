"""The parser and the whole language never crash: every text either runs, is refused, or runs out of budget."""

from __future__ import annotations

from contextlib import suppress

from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.bin.awk.errors import AwkSyntaxError
from belljar.bin.awk.order import table_order
from belljar.bin.awk.parse import parse_program
from belljar.bin.awk.record import split_blanks
from belljar.bin.awk.session import Session
from belljar.bin.awk.values import looks_numeric, string_number
from tests.bin.awk.library import MemoryWorld, OutOfSteps

WORDS = (
    "BEGIN END function if else while for do break continue next exit return delete in getline print printf switch "
    "case default ( ) { } [ ] ; , + - * / % ^ ! > < | ? : ~ $ = == != <= >= && || ++ -- += /= >> |& !~ @ a b f x i "
    'NF NR FS $0 $1 0 1 -1 0.5 1e999 "" "a" "%d" /a/ /b*/ length substr( split( gsub( match( a[1] a[i] f( RS OFS'
).split()

programs = st.lists(st.sampled_from([*WORDS, "\n"]), max_size=30).map(" ".join)
statements = st.lists(st.sampled_from(WORDS), max_size=12).map(lambda words: "BEGIN { " + " ".join(words) + " }")


def _include(name: str) -> tuple[str, str]:
    raise AwkSyntaxError(f"no {name}")


@settings(max_examples=300, deadline=None)
@given(st.one_of(programs, statements, st.text(max_size=60)))
def test_any_text_parses_or_is_refused(text: str) -> None:
    with suppress(AwkSyntaxError):
        parse_program([(text, "cmd. line")], "awk", _include)


@settings(max_examples=300, deadline=None)
@given(st.one_of(programs, statements))
def test_any_program_runs_or_is_refused(text: str) -> None:
    world = MemoryWorld(b"a b 3\n\n4.5 x\n", steps=2000)
    with suppress(OutOfSteps):
        assert Session(world, "awk").run([text]) in range(256)


def test_nesting_is_refused_not_followed() -> None:
    for opening in ("(", "{", "-", "!", "$", "a[", "if (1) ", "f("):
        world = MemoryWorld()
        assert Session(world, "awk").run(["BEGIN { x = " + opening * 50_000]) in (1, 2)


@given(st.text(alphabet=" \t\nab\r\v\x85é\u2003", max_size=30))
def test_blanks_are_only_space_tab_and_newline(text: str) -> None:
    assert split_blanks(text) == [word for word in text.replace("\t", " ").replace("\n", " ").split(" ") if word]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_spelled_number_is_that_number(number: float) -> None:
    assert string_number(repr(number)) == number
    assert looks_numeric(f" {number!r} ") == number


@given(st.text(alphabet="0123456789+-.eE_ xinfa", max_size=12))
def test_what_looks_numeric_counts_as_itself(text: str) -> None:
    number = looks_numeric(text)
    assert number is None or "_" not in text
    assert number is None or number != number or string_number(text) == number


@given(st.dictionaries(st.text(max_size=5), st.none(), max_size=60))
def test_a_traversal_visits_each_element_once(array: dict[str, None]) -> None:
    order = table_order(dict.fromkeys(array, 1.0))
    assert sorted(order) == sorted(array)
