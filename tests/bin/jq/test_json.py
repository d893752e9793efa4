"""Reading and writing JSON: exact numbers, jq's leniences and messages, any chunking, any depth."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.bin.jq.exact import EventParser, ParseError
from belljar.bin.jq.numbers import Number, format_float, parse_literal
from belljar.bin.jq.reader import Decoder, parse_one
from belljar.bin.jq.streams import from_events, to_events
from belljar.bin.jq.writer import Style, pieces, to_json, write

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=20,
)


def decode(*chunks: bytes) -> list[Any]:
    decoder = Decoder()
    values = [value for chunk in chunks for value in decoder.feed(chunk)]
    return values + list(decoder.close())


def texts(*chunks: bytes) -> list[str]:
    return [to_json(value) for value in decode(*chunks)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"1 2\n3", ["1", "2", "3"]),
        (b'{"a":1}[2]"x"null', ['{"a":1}', "[2]", '"x"', "null"]),
        (b"\xef\xbb\xbf[1]", ["[1]"]),
        (b"[nan, NaN, Infinity, -Infinity]", ["[null,null,1.7976931348623157e+308,-1.7976931348623157e+308]"]),
        (b"[01, +1, .5, 1., -0, 1e2]", ["[1,1,0.5,1,-0,1E+2]"]),
        (b"100000000000000000000000000000001", ["100000000000000000000000000000001"]),
        (b"[1.000, 1.10, 0.00001, 1e1000]", ["[1.000,1.10,0.00001,1E+1000]"]),
        (b'{"a":1,"a":2}', ['{"a":2}']),
        (b'"\\ud83d\\ude00 \\ud800 \\u0041"', ['"\U0001f600 \ufffd A"']),
        (b'["\xff\xc3"]', ['["\ufffd\ufffd"]']),
        (b"  \n ", []),
        (b"", []),
    ],
)
def test_decode(text: bytes, expected: list[str]) -> None:
    assert texts(text) == expected
    assert texts(*(text[i : i + 1] for i in range(len(text)))) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b'{"a":1', "Unfinished JSON term at EOF at line 1, column 6"),
        (b"[1,\n2", "Unfinished JSON term at EOF at line 2, column 1"),
        (b'"abc', "Unfinished string at EOF at line 1, column 4"),
        (b"{a:1}", "Invalid literal at line 1, column 3"),
        (b"{'a':1}", "Invalid string literal; expected \", but got ' at line 1, column 5"),
        (b"[1 2]", "Expected separator between values at line 1, column 5"),
        (b"[1,]", "Expected another array element at line 1, column 4"),
        (b'{"a" 1}', "Expected separator between values at line 1, column 7"),
        (b"]", "Unmatched ']' at line 1, column 1"),
        (b"{1:2}", "Object keys must be strings at line 1, column 3"),
        (b"tru ", "Invalid literal at line 1, column 4"),
        (b"nul", "Invalid literal at EOF at line 1, column 3"),
        (b"1 x ", "Invalid numeric literal at line 1, column 4"),
        (b'"\\x"', "Invalid escape at line 1, column 4"),
        (
            b'"a\nb"',
            "Invalid string: control characters from U+0000 through U+001F must be escaped at line 2, column 2",
        ),
        (b"[" * 10_001, "Exceeds depth limit for parsing at line 1, column 10001"),
    ],
)
def test_parse_error(text: bytes, message: str) -> None:
    with pytest.raises(ParseError) as caught:
        decode(text)
    assert str(caught.value) in (
        message,
        message.replace("Invalid literal at line 1, column 3", "Invalid numeric literal at line 1, column 3"),
    )


def test_values_before_an_error_are_seen() -> None:
    values = Decoder().feed(b'{"a":1}\n[2]\n{"b" 3}\n')
    assert [next(values), next(values)] == [{"a": 1}, [2]]
    with pytest.raises(ParseError):
        next(values)


def test_a_value_comes_as_soon_as_it_is_complete() -> None:
    decoder = Decoder()
    assert list(decoder.feed(b'{"a":1}\n12')) == [{"a": 1}]
    assert list(decoder.feed(b"3\n")) == [123]
    assert decoder.lines == 2


@given(JSON)
def test_round_trip(value: Any) -> None:
    text = json.dumps(value)
    ours = to_json(parse_one(text))
    assert json.loads(ours) == value or "e" in text
    assert to_json(parse_one(ours)) == ours


@given(JSON, st.integers(1, 7))
@settings(max_examples=50)
def test_chunking_changes_nothing(value: Any, size: int) -> None:
    data = json.dumps([value, value], ensure_ascii=False).encode() + b"\n" + json.dumps(value).encode() + b" "
    whole = texts(data)
    assert texts(*(data[i : i + size] for i in range(0, len(data), size))) == whole


@given(JSON)
def test_the_fast_and_the_exact_writer_agree(value: Any) -> None:
    value = parse_one(json.dumps(value))
    for style in (Style(), Style(indent=None), Style(indent=3, sort=True), Style(tab=True)):
        assert write(value, style) == "".join(pieces(value, style)).encode()


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    try:
        values = decode(data)
    except ParseError:
        return
    assert all(to_json(value) is not None for value in values)


@given(JSON)
def test_events_make_the_value_again(value: Any) -> None:
    value = parse_one(json.dumps(value))
    made = list(from_events(to_events(value), lambda steps: None))
    assert [to_json(item) for item in made] == [to_json(value)]
    parser = EventParser()
    text = to_json(value) + " "
    events = [*parser.feed(text), *parser.close()]
    assert [to_json(event) for event in events] == [to_json(event) for event in to_events(value)]


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_doubles_print_shortest(value: float) -> None:
    assert float(format_float(value)) == value


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (1e17, "1e+17"),
        (123456789e15, "123456789000000000000000"),
        (0.0001, "0.0001"),
        (0.00001, "1e-05"),
        (1.5e-7, "1.5e-07"),
        (3.0, "3"),
        (-0.0, "-0"),
        (1e308 * 10, "1.7976931348623157e+308"),
        (0.1 + 0.2, "0.30000000000000004"),
    ],
)
def test_format(value: float, text: str) -> None:
    assert format_float(value) == text


def test_literals_keep_what_a_double_would_lose() -> None:
    assert parse_literal("9007199254740993") == 2**53 + 1
    assert isinstance(parse_literal("1.0"), Number)
    assert parse_literal("2.5") == 2.5


def test_depth_costs_no_stack() -> None:
    deep: Any = None
    for _ in range(10_000):
        deep = [deep]
    text = to_json(deep)
    assert text == "[" * 10_000 + "null" + "]" * 10_000
    assert to_json(decode(text.encode())[0]) == text
    assert "<skipped: too deep>" in to_json([[deep]])
