"""YAML as yq reads and writes it: values, styles, and never a crash."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.bin.jq.writer import to_json
from belljar.bin.yq.nodes import YamlError
from belljar.bin.yq.reader import read_documents
from belljar.bin.yq.writer import Writer

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)


def read(text: str) -> list[Any]:
    return [document.root.value for document in read_documents(text, lambda steps: None)]


def copy(text: str) -> str:
    """The text as it is written back."""
    return "---\n".join(
        Writer(document=document).write(document.root.value) for document in read_documents(text, lambda steps: None)
    )


CASES: list[tuple[str, str]] = [
    ("a: 1\nb:\n- x\n- y\n", '{"a":1,"b":["x","y"]}'),
    ("- - 1\n  - 2\n- a: 1\n  b: 2\n-\n  c\n", '[[1,2],{"a":1,"b":2},"c"]'),
    ("a: {b: [1, 2], c: {d: e}, f}\n", '{"a":{"b":[1,2],"c":{"d":"e"},"f":null}}'),
    ("a: &x {k: 1}\nb: *x\nc:\n  <<: *x\n  m: 2\n", '{"a":{"k":1},"b":{"k":1},"c":{"m":2,"k":1}}'),
    ("a: |\n  one\n    two\n\n  three\nb: x\n", '{"a":"one\\n  two\\n\\nthree\\n","b":"x"}'),
    ("a: >\n  one\n  two\n\n  three\n", '{"a":"one two\\nthree\\n"}'),
    ("a: |-\n  x\nb: |+\n  y\n\n", '{"a":"x","b":"y\\n\\n"}'),
    ("a: 'it''s'\nb: \"x\\ty\\u00e9\"\n", '{"a":"it\'s","b":"x\\tyé"}'),
    ("a: one\n  two\n  # no\nb: 2\n", '{"a":"one two","b":2}'),
    ("? a\n: 1\n? b\n", '{"a":1,"b":null}'),
    ("a:\nb: ~\nc: null\nd: ''\n", '{"a":null,"b":null,"c":null,"d":""}'),
    ("[0x10, 0o10, 1_000, 1.5, true, yes, 2020-01-01, 1:2]\n", '[16,8,1000,1.5,true,"yes","2020-01-01","1:2"]'),
    ("a: !!str 12\nb: !!int '3'\n", '{"a":"12","b":3}'),
    ("url: http://x:80/#a\ntime: 12:30\nhash: a#b # c\n", '{"url":"http://x:80/#a","time":"12:30","hash":"a#b"}'),
    ("%YAML 1.2\n---\na\n...\n", '"a"'),
    ("# only a comment\n", "null"),
    ("{}\n", "{}"),
    ('"a b": 1\n1: 2\n', '{"a b":1,"1":2}'),
    ("a:\r\n  b: 1\r\n", '{"a":{"b":1}}'),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[case[0] for case in CASES])
def test_read(text: str, expected: str) -> None:
    assert [to_json(value) for value in read(text)] == [expected]


@pytest.mark.parametrize(
    "text",
    [
        "# head\na: 1 # one\n# before b\nb:\n  - x # ex\n  # why\n  - 'y'\n",
        "a: &x\n  k: 1\nb: *x\nc:\n  <<: *x\n  m: 2\n",
        'a: [1, 2, {b: c}]\nt: |\n  x\n  y\ns: "q"\nn: ~\nf: 1.10\n',
        "- a: 1\n  b:\n    c: 2\n- - 1\n  - 2\n",
        "a: >-\n  folded text\nb: yes\n",
        "a: !!str 12\n",
    ],
)
def test_what_was_not_changed_is_written_as_it_was(text: str) -> None:
    assert copy(text) == text


@pytest.mark.parametrize(
    "text",
    [
        "a: b: c\n",
        "a: [1\n",
        "{a: 1\n",
        "a: 1\n b: 2\n",
        "*x\n",
        "a: 'x\n",
        '"\\q"\n',
        "a: 1\na: 2\n",
        "- a\nb\n",
        "@x\n",
        "a: |x\n",
    ],
)
def test_malformed(text: str) -> None:
    with pytest.raises(YamlError):
        read(text)


@given(VALUES)
def test_round_trip(value: Any) -> None:
    written = Writer().write(value)
    assert [to_json(item) for item in read(written)] == [to_json(value)]


@given(st.text(alphabet="ab:-?#&*!|>'\"%@[]{},\n\t 01~.<", max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    with suppress(YamlError):
        for value in read(text):
            Writer().write(value)
