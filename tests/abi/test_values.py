"""Plain data crosses unchanged; anything else is an error that says where it is."""

from __future__ import annotations

import contextlib
import json
import math
from datetime import UTC, datetime, timedelta, timezone
from enum import IntEnum
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.values import DEPTH_MAX, NotPlain, dumps, loads

_ATOMS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text()
    | st.binary()
    | st.datetimes(timezones=st.none() | st.just(UTC))
)
_KEYS = st.text() | st.integers() | st.booleans() | st.binary() | st.sampled_from(["$int", "$dict", "$", "__proto__"])
_VALUES = st.recursive(_ATOMS, lambda inner: st.lists(inner) | st.dictionaries(_KEYS, inner), max_leaves=20)


@given(_VALUES)
def test_what_is_plain_crosses_unchanged(value: Any) -> None:
    text = dumps(value)
    assert "\n" not in text
    assert text.isascii()
    assert loads(text) == value
    assert loads(text.encode()) == value


@given(st.text() | st.binary())
def test_any_line_is_a_value_or_a_value_error(text: str | bytes) -> None:
    with contextlib.suppress(ValueError):
        loads(text)


@pytest.mark.parametrize("value", [2**53, 2**53 + 1, -(2**64), math.inf, -math.inf, -0.0, "\ud800", b"\xff"])
def test_the_edges(value: Any) -> None:
    assert loads(dumps(value)) == value


def test_nan() -> None:
    assert math.isnan(loads(dumps(math.nan)))


def test_types_stay_apart() -> None:
    assert loads(dumps([True, 1, 1.0, "1", None])) == [True, 1, 1.0, "1", None]
    assert [type(item) for item in loads(dumps([True, 1, 1.0]))] == [bool, int, float]
    assert loads(dumps((1, (2,)))) == [1, [2]]
    assert loads(dumps({(1, 2): "x"})) == {(1, 2): "x"}
    zone = timezone(timedelta(hours=5, minutes=30))
    assert loads(dumps(datetime(2026, 1, 2, 3, 4, 5, 6, zone))).tzinfo == zone


def test_subclasses_cross_as_what_they_are() -> None:
    class Colour(IntEnum):
        RED = 1

    class Name(str):
        def __str__(self) -> str:
            return "other"

    assert type(loads(dumps(Colour.RED))) is int
    assert loads(dumps(Name("x"))) == "x"


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"a": [1, {2}]}, "value['a'][1] is a set"),
        (object(), "value is a object"),
        (lambda: 1, "value is a function"),
        ([1 + 2j], "value[0] is a complex"),
        ({frozenset(): 1}, "a key of value is a frozenset"),
    ],
)
def test_what_is_not_plain_is_named_with_its_place(value: Any, where: str) -> None:
    with pytest.raises(NotPlain) as caught:
        dumps(value)
    assert where in str(caught.value)


def test_a_value_that_contains_itself_is_an_error() -> None:
    ring: list[Any] = []
    ring.append(ring)
    with pytest.raises(NotPlain, match=f"deeper than {DEPTH_MAX}"):
        dumps(ring)


@pytest.mark.parametrize(
    "tree",
    [
        {"$int": 1},
        {"$int": "zz"},
        {"$float": "1.5"},
        {"$bytes": "*"},
        {"$datetime": "now"},
        {"$dict": [1]},
        {"$dict": [[{"a": 1}, 1]]},
        {"$dict": {"a": 1}},
        {"$dict": [[[{"a": 1}], 1]]},
        {"$eval": "1"},
    ],
)
def test_a_forged_value_is_refused(tree: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        loads(json.dumps(tree))


def test_a_deep_line_is_refused() -> None:
    with pytest.raises(ValueError, match="nested deeper"):
        loads("[" * 100_000 + "]" * 100_000)
    deep = '{"$dict":[[0,' * 1000 + "0" + "]]}" * 1000
    with pytest.raises(ValueError, match="nested deeper"):
        loads(deep)


def test_an_integer_of_any_size() -> None:
    assert loads(dumps([-(10**5000)])) == [-(10**5000)]


def test_a_scalar_of_numpy_crosses_as_what_it_stands_for() -> None:
    class Scalar:
        shape = ()

        def item(self) -> int:
            return 3

    Scalar.__module__ = "numpy"
    assert loads(dumps([Scalar()])) == [3]


@pytest.mark.parametrize(
    "items", [[1, 2**60], [1.0, math.inf], [1, True, "x", None], [1, 2.5], [], ["a", None], [True]]
)
def test_lists_of_one_kind_and_of_several(items: list[Any]) -> None:
    assert loads(dumps(items)) == items
    assert [type(item) for item in loads(dumps(items))] == [type(item) for item in items]
