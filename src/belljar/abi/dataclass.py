"""Dataclasses as msgspec makes them: declared and used as the standard ones, but each is made in 30 us instead of 700.

A zygote has hundreds of such classes, and somebody waits for it. The standard library writes the methods of each as
text and compiles that; a msgspec struct has none of its own. What they can't do is left out: all have slots.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar, dataclass_transform, overload

from msgspec import NODEFAULT, Struct
from msgspec import field as struct_field
from msgspec.structs import replace as struct_replace

__all__ = ["Field", "dataclass", "field", "fields", "is_dataclass", "replace"]

T = TypeVar("T")
_META: Final[Any] = type(Struct)
_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})


class Field:
    """The declaration of one field, as `dataclasses.Field`."""

    __slots__ = ("compare", "default", "default_factory", "metadata", "name")

    def __init__(self, default: Any, default_factory: Any, compare: bool, metadata: Mapping[str, Any]) -> None:
        self.name = ""
        self.default = default
        self.default_factory = default_factory
        self.compare = compare
        self.metadata = metadata


def field(
    *,
    default: Any = NODEFAULT,
    default_factory: Callable[[], Any] | Any = NODEFAULT,
    compare: bool = True,
    metadata: Mapping[str, Any] = _NOTHING,
) -> Any:
    """A field of which more is to be said than its default."""
    return Field(default, default_factory, compare, metadata)


@overload
def dataclass(cls: type[T], /) -> type[T]: ...


@overload
def dataclass(
    *, frozen: bool = False, eq: bool = True, kw_only: bool = False, slots: Literal[True] = True
) -> Callable[[type[T]], type[T]]: ...


@dataclass_transform(field_specifiers=(field,))
def dataclass(
    cls: type[T] | None = None,
    /,
    *,
    frozen: bool = False,
    eq: bool = True,
    kw_only: bool = False,
    slots: Literal[True] = True,
) -> Any:
    """Make a dataclass of a class with annotations. All have slots, whether they say so or not."""
    if cls is not None:
        return _make(cls, frozen=frozen, eq=eq, kw_only=kw_only)
    return lambda given: _make(given, frozen=frozen, eq=eq, kw_only=kw_only)


def _make(cls: Any, *, frozen: bool, eq: bool, kw_only: bool) -> Any:
    own = cls.__annotations__  # evaluated here: from Python 3.14 on, the class body has only a function that gives them
    body = {name: value for name, value in vars(cls).items() if name not in _MADE_BY_TYPE}
    said: dict[str, Field] = {}
    bases = (Struct, *(base for base in cls.__bases__ if base is not object))
    if isinstance(cls, _META):  # of a dataclass: msgspec has made a struct of it already, and put the defaults away
        bases = cls.__bases__
        said.update(cls.__dataclass_said__)
        body = {name: value for name, value in body.items() if name not in own and name not in _MADE_BY_MSGSPEC}
        defaults = dict(zip(reversed(cls.__struct_fields__), reversed(cls.__struct_defaults__), strict=False))
        body |= {name: defaults[name] for name in own if defaults.get(name, NODEFAULT) is not NODEFAULT}
    for name, value in list(body.items()):
        if isinstance(value, Field):
            value.name = name
            said[name] = value
            body[name] = (
                struct_field(default_factory=value.default_factory) if value.default is NODEFAULT else value.default
            )
    body |= {"__annotations__": own, "__dataclass_said__": said}
    made = _META(cls.__name__, bases, body, frozen=frozen, eq=eq, kw_only=kw_only)
    if not all(entry.compare for entry in said.values()):
        _compare_some(made, [name for name in made.__struct_fields__ if name not in said or said[name].compare])
    return made


_MADE_BY_TYPE: Final = frozenset(
    {"__dict__", "__weakref__", "__annotations__", "__annotate__", "__annotate_func__", "__annotations_cache__"}
)
_MADE_BY_MSGSPEC: Final = frozenset(
    {"__struct_fields__", "__struct_defaults__", "__struct_encode_fields__", "__match_args__", "__slots__"}
)


def _compare_some(made: Any, names: list[str]) -> None:
    """Let equality and the hash be those of some fields only."""
    key = attrgetter(*names)
    made.__eq__ = lambda self, other: key(self) == key(other) if type(other) is made else NotImplemented
    made.__hash__ = lambda self: hash(key(self))


def fields(record: Any) -> list[Field]:
    """The fields of a dataclass or an instance of one, in order."""
    said = record.__dataclass_said__
    return [said[name] if name in said else _plain(name) for name in record.__struct_fields__]


def _plain(name: str) -> Field:
    plain = Field(NODEFAULT, NODEFAULT, True, _NOTHING)
    plain.name = name
    return plain


def is_dataclass(value: object) -> bool:
    return isinstance(value, Struct)


def replace(record: T, /, **changes: Any) -> T:
    """A copy with some fields changed."""
    return struct_replace(record, **changes)  # type: ignore[type-var]
