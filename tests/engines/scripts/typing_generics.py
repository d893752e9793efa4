from collections.abc import Callable, Iterable
from typing import Any, Generic, Literal, NamedTuple, NewType, Optional, TypedDict, TypeVar, get_args, get_type_hints

T = TypeVar("T")


class Stack(Generic[T]):
    def __init__(self) -> None:
        self.items: list[T] = []

    def push(self, item: T) -> "Stack[T]":
        self.items.append(item)
        return self


class Movie(TypedDict, total=False):
    title: str
    year: int


class Row(NamedTuple):
    a: int
    b: str = "x"


def first(items: Iterable[T], default: T | None = None, *, key: Callable[[T], bool] = bool) -> T | None:
    return next((item for item in items if key(item)), default)


print(Stack[int]().push(1).items, Row(1), first([0, 3, 4]), get_args(Literal["a", "b"]), Movie(title="x"))
print(sorted(get_type_hints(first)), Movie.__optional_keys__ == {"title", "year"}, Stack.__parameters__)


def outer[K: (int, str)](x: K) -> list[K]:
    return [x]


type Pair[A] = tuple[A, A]
print(outer(2), Pair.__name__, NewType("UserId", int)(5))
