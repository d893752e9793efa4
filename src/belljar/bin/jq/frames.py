"""Makes the environment a function's body runs in from that of its call."""

from collections.abc import Callable, Iterator
from typing import Any

from belljar.bin.jq.code import Argument, Code, Env, Run, Value, as_many, getter


def closure(argument: Argument) -> Callable[[Env], Any]:
    return lambda e: (argument, e)


def handed_on(up: int) -> Callable[[Env], Any]:
    get = getter(up)
    return lambda e: get(None, e)


def frame_maker(up: int, runs: list[Run | None], made: list[Any]) -> Callable[[Value, Env], Env]:
    """Makes the environment of a function's body from that of its call."""
    pairs = list(zip(runs, made, strict=True))
    if not pairs:
        if up == 0:
            return lambda v, e: e

        def outer(v: Value, e: Env) -> Env:
            for _ in range(up):
                e = e[1]
            return e

        return outer

    def frame(v: Value, e: Env) -> Env:
        inner = e
        for _ in range(up):
            inner = inner[1]
        for run, make in pairs:
            inner = (make(e) if run is None else run(v, e), inner)
        return inner

    return frame


def frames_maker(up: int, made: list[Any]) -> Callable[[Value, Env], Iterator[Env]]:
    """As `frame_maker`, once for every combination of the value arguments' outputs; the first is outermost."""
    steps: list[Any] = [as_many(item) if isinstance(item, Code) else item for item in made]
    values = [isinstance(item, Code) for item in made]

    def product(v: Value, e: Env, inner: Env, position: int) -> Iterator[Env]:
        if position == len(steps):
            yield inner
        elif values[position]:
            for value in steps[position](v, e):
                yield from product(v, e, (value, inner), position + 1)
        else:
            yield from product(v, e, (steps[position](e), inner), position + 1)

    def frames(v: Value, e: Env) -> Iterator[Env]:
        inner = e
        for _ in range(up):
            inner = inner[1]
        return product(v, e, inner, 0)

    return frames
