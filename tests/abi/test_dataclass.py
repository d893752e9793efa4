"""Our dataclasses behave as the standard ones do, as far as they go, and the sandbox's side uses no others."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path
from typing import Any

import pytest

import belljar
from belljar.abi.dataclass import dataclass, field, fields, is_dataclass, replace


@dataclass(frozen=True, slots=True)
class Point:
    """A place."""

    x: int
    y: int = 0
    tags: list[str] = field(default_factory=list)
    seen: bool = field(default=False, metadata={"why": "it was there"})

    @property
    def sum(self) -> int:
        return self.x + self.y


@dataclass(frozen=True, slots=True)
class Place(Point):
    name: str = field(default="", metadata={"why": "people ask"})
    size: int = 1


@dataclass(slots=True, eq=False)
class Node:
    value: int
    next: Node | None = None


@dataclass(frozen=True, slots=True)
class Word:
    text: str
    at: int = field(default=0, compare=False)


def test_fields_defaults_and_methods() -> None:
    point = Point(1)
    assert (point.x, point.y, point.tags, point.seen, point.sum) == (1, 0, [], False, 1)
    assert point.tags is not Point(1).tags
    assert repr(point) == "Point(x=1, y=0, tags=[], seen=False)"
    assert Point.__doc__ == "A place."
    with pytest.raises(AttributeError):
        point.x = 2  # type: ignore[misc]
    with pytest.raises(TypeError):
        Point()  # type: ignore[call-arg]
    match point:
        case Point(x, 0):
            assert x == 1
        case _:
            pytest.fail("positional patterns name the fields in order")


def test_what_is_said_of_a_field_is_kept() -> None:
    assert [(entry.name, dict(entry.metadata)) for entry in fields(Point)] == [
        ("x", {}),
        ("y", {}),
        ("tags", {}),
        ("seen", {"why": "it was there"}),
    ]


def test_one_made_of_another() -> None:
    place = Place(1, name="here")
    assert (place.x, place.y, place.name, place.size, place.sum) == (1, 0, "here", 1, 1)
    assert [entry.name for entry in fields(place)] == ["x", "y", "tags", "seen", "name", "size"]
    assert [entry.metadata.get("why") for entry in fields(Place)][-3:] == ["it was there", "people ask", None]
    assert isinstance(place, Point)


def test_equality_and_hash() -> None:
    assert Point(1, 2) == Point(1, 2) != Point(2, 1)
    assert Word("a", 1) == Word("a", 2) != Word("b", 1)
    assert hash(Word("a", 1)) == hash(Word("a", 2))
    one, other = Node(1), Node(1)
    assert one != other
    assert len({one, other}) == 2, "without eq, each is itself"


def test_copies_and_kinds() -> None:
    assert replace(Point(1, 2), y=3) == Point(1, 3)
    assert is_dataclass(Word("a"))
    assert not is_dataclass("a")


def test_the_same_as_the_standard_ones() -> None:
    def declare(decorate: Any, given: Any) -> Any:
        @decorate(slots=True)
        class Row:
            key: str
            cells: dict[str, int] = given(default_factory=dict)

        return Row

    ours, standard = declare(dataclass, field), declare(dataclasses.dataclass, dataclasses.field)
    for made in (ours, standard):
        row = made("k")
        row.cells["a"] = 1
        assert (row.key, row.cells, made("k").cells, made.__match_args__) == ("k", {"a": 1}, {}, ("key", "cells"))
        assert made("k") == made("k")
        with pytest.raises(TypeError):
            hash(row)


def test_nothing_a_worker_loads_declares_standard_ones() -> None:
    """Hundreds of classes at half a millisecond each are what a first sandbox would wait for."""
    root = Path(belljar.__file__).parent
    known = {"abi/limits.py"}  # the public Limits
    for layer in ("abi", "kernel", "regex", "shell", "bin"):
        for path in (root / layer).rglob("*.py"):
            if str(path.relative_to(root)) not in known:
                standard = re.search(r"^(from|import) dataclasses", path.read_text(), re.M)
                assert not standard, f"{path}: use belljar.abi.dataclass"
