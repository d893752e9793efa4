"""A tool's arguments by its annotations, and what a guest is told of an exception of the owner's code."""

from __future__ import annotations

import collections.abc as abc
import inspect
import re
import types
from collections.abc import Callable
from datetime import datetime
from enum import Enum
from functools import wraps
from typing import Annotated, Any, Final, Literal, Union, get_args, get_origin

from belljar.api.await_host import told
from belljar.api.errors import ToolError

_LISTS: Final[dict[Any, Callable[[list[Any]], Any]]] = {
    list: list,
    abc.Sequence: list,
    abc.Iterable: list,
    abc.Collection: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
}
_DICTS: Final = (dict, abc.Mapping, abc.MutableMapping)
_PATH: Final = re.compile(r"(?<![\w/:.\\])(?:(?:/[^\s/'\"<>:,;()\[\]]+){2,}/?|[A-Za-z]:\\[^\s'\"<>,;]+)")
_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{6,}\b")


def public_text(error: BaseException, known: str = "") -> str:
    """Text of an exception, without paths and addresses of the owner's process, but for those in `known`.

    A `ToolError` says what its owner wants the guest to know: it is not changed.
    """
    text = told(error)
    if isinstance(error, ToolError):
        return text
    text = _PATH.sub(lambda found: found[0] if found[0] in known else "<path>", text)
    return _ADDRESS.sub("<address>", text)


def checked(function: Callable[..., Any], hints: dict[str, Any]) -> Callable[..., Any]:
    """The function, with its arguments checked against its annotations. They raise TypeError."""
    if not hints:
        return function
    signature = inspect.signature(function)

    def check(args: tuple[Any, ...], kwargs: dict[str, Any]) -> inspect.BoundArguments:
        bound = signature.bind(*args, **kwargs)
        try:
            for name, value in bound.arguments.items():
                bound.arguments[name] = check_argument(signature.parameters[name], hints.get(name, Any), value)
        except ValueError as error:
            raise TypeError(str(error)) from None
        return bound

    if inspect.iscoroutinefunction(function):

        @wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            bound = check(args, kwargs)
            return await function(*bound.args, **bound.kwargs)

        return call_async

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        bound = check(args, kwargs)
        return function(*bound.args, **bound.kwargs)

    return call


def check_argument(parameter: inspect.Parameter, hint: Any, value: Any) -> Any:
    """The value that a parameter takes. ValueError."""
    if parameter.kind is parameter.VAR_POSITIONAL:
        return tuple(check_value(hint, item, parameter.name) for item in value)
    if parameter.kind is parameter.VAR_KEYWORD:
        return {key: check_value(hint, item, key) for key, item in value.items()}
    return value if value is parameter.default else check_value(hint, value, parameter.name)


def check_value(hint: Any, value: Any, where: str) -> Any:
    """The value as its annotation says; ValueError if it is something else. What is no plain type is not judged."""
    origin = get_origin(hint)
    if origin is Annotated:
        return check_value(get_args(hint)[0], value, where)
    if origin in (Union, types.UnionType):
        return _check_union(get_args(hint), value, where)
    if origin is Literal:
        if any(value == choice and type(value) is type(choice) for choice in get_args(hint)):
            return value
        raise _wrong(where, value, f"one of {', '.join(map(repr, get_args(hint)))}")
    kind = origin or hint
    if kind in _LISTS:
        return _check_list(kind, get_args(hint), value, where)
    if kind in _DICTS:
        return _check_dict(get_args(hint), value, where)
    return _check_plain(kind, value, where)


def _check_union(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    for hint in sorted(hints, key=lambda hint: hint is not type(value)):
        try:
            return check_value(hint, value, where)
        except ValueError:
            continue
    raise _wrong(where, value, f"a valid {' or '.join(getattr(hint, '__name__', str(hint)) for hint in hints)}")


def _check_list(kind: Any, hints: tuple[Any, ...], value: Any, where: str) -> Any:
    if not isinstance(value, list | tuple | set | frozenset):
        raise _wrong(where, value, "a list")
    if kind is tuple and hints and hints[-1] is not Ellipsis:
        if len(hints) != len(value):
            raise _wrong(where, value, f"a list of {len(hints)}")
        return tuple(check_value(hint, item, where) for hint, item in zip(hints, value, strict=True))
    hint = hints[0] if hints else Any
    return _LISTS[kind]([check_value(hint, item, where) for item in value])


def _check_dict(hints: tuple[Any, ...], value: Any, where: str) -> Any:
    if not isinstance(value, dict):
        raise _wrong(where, value, "an object")
    key_hint, item_hint = hints if len(hints) == 2 else (Any, Any)
    return {check_value(key_hint, key, where): check_value(item_hint, item, where) for key, item in value.items()}


def _check_plain(kind: Any, value: Any, where: str) -> Any:
    given = type(value)
    if kind is None or kind is type(None):
        fits = value is None
    elif kind is int:
        if given is float and value.is_integer():
            return int(value)
        fits = given is int
    elif kind is float:
        if given is int:
            return float(value)
        fits = given is float
    elif kind is bytes:
        if given is str:
            return value.encode("utf-8", "surrogateescape")
        fits = given in (bytes, bytearray)
    elif kind in (str, bool):
        fits = given is kind
    elif kind is datetime:
        if given is str:
            return datetime.fromisoformat(value)
        fits = isinstance(value, datetime)
    elif isinstance(kind, type) and issubclass(kind, Enum) and not isinstance(value, kind):
        return kind(value)
    else:
        return value
    if not fits:
        raise _wrong(where, value, f"a valid {getattr(kind, '__name__', kind)}")
    return value


def _wrong(where: str, value: Any, wanted: str) -> ValueError:
    shown = repr(value) if isinstance(value, str | int | float | None) else type(value).__name__
    return ValueError(f"{where}: {shown[:80]} is not {wanted}")
