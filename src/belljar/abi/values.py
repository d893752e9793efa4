"""Plain data between an owner and its guests' interpreters: what may cross, and how it is written down.

None, bool, int, float, str, bytes, list (and tuple, which arrives as a list), dict and datetime cross, and numpy's
scalars as the plain ones they stand for; anything else is an error that names where it is. The form is JSON, because
every interpreter reads and writes it at native speed, with an object of one `$` key for what JSON has no word for:

    {"$int": "-0xff"}  an integer beyond 2**53        {"$bytes": "aGk="}  bytes
    {"$float": "nan"}  nan, inf, -inf                 {"$datetime": "2026-01-02T03:04:05+00:00"}
    {"$dict": [[key, value], ...]}  a dict whose keys are not all text, or look like one of these

Guests load this file too, in an image of their own maybe: it is Python 3.8.
"""

from __future__ import annotations

import base64
import binascii
import json
import math
import re
import sys
from collections.abc import Callable
from datetime import datetime
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing import TypeAlias

Value: TypeAlias = Any
"""None, bool, int, float, str, bytes, datetime, and lists and dicts of them."""

DEPTH_MAX: Final = 200
"""Maximum nesting of lists and dicts."""
VALUES_MAX: Final = 1_000_000
CONTAINERS_MAX: Final = 250_000
"""Values that cross at once, and lists and dicts among them: an empty list is 3 bytes of text and 64 of memory."""
_SHALLOW: Final = 2 * DEPTH_MAX + 100
"""Brackets that may be open at once: a dict with odd keys takes two for one level."""
_STRING: Final = re.compile(r'"(?:[^"\\]|\\.)*%s"?' % ("+" if sys.version_info >= (3, 11) else ""))
_NOT_BRACKET: Final = re.compile(r"[^][{}]+")
_STEP: Final = {"[": 1, "{": 1, "]": -1, "}": -1}
_EXACT: Final = 1 << 53
_ATOMS: Final = (type(None), bool, str)
_ENCODER: Final = json.JSONEncoder(separators=(",", ":"))
_DECODER: Final = json.JSONDecoder()


class NotPlain(ValueError):
    """A value that can't cross: which, and where in what was sent."""


def dumps(value: Value, name: str = "value") -> str:
    """Serialise to one line of JSON. NotPlain names an unsupported value by its path from `name`."""
    if type(value) is int and -_EXACT <= value <= _EXACT:
        return str(value)
    return _ENCODER.encode(_tagged(value, name, 0))


def loads(text: str | bytes) -> Value:
    """Parse one line. ValueError if it is malformed."""
    try:
        if isinstance(text, bytes):
            text = text.decode("ascii")
        check_size(text)
        tree = _DECODER.decode(text)
        return _untagged(tree, 0) if '"$' in text or '"\\u0024' in text else tree
    except RecursionError:
        raise ValueError(f"a value nested deeper than {DEPTH_MAX}") from None


def check_size(text: str) -> None:
    """ValueError for JSON of so many values that reading it would take much more memory than the text itself, or so
    deep that it could overflow the stack, where Python's own limit was raised."""
    opened = text.count("[") + text.count("{")
    if opened <= _SHALLOW and text.count(",") <= VALUES_MAX:
        return
    bare = _STRING.sub("", text)
    opened = bare.count("[") + bare.count("{")
    if opened > CONTAINERS_MAX or opened + bare.count(",") > VALUES_MAX:
        raise ValueError(f"more than {VALUES_MAX} values, or {CONTAINERS_MAX} lists and dicts, in one message")
    brackets = _NOT_BRACKET.sub("", bare)
    if max(accumulate(map(_STEP.__getitem__, brackets)), default=0) > _SHALLOW:
        raise ValueError(f"a value nested deeper than {DEPTH_MAX}")


def _tagged(value: Value, path: str, depth: int) -> Any:
    if value is None or isinstance(value, (bool, str)):
        return value if type(value) in _ATOMS else str.__str__(value)
    if isinstance(value, int):
        return int(value) if -_EXACT <= value <= _EXACT else {"$int": hex(value)}
    if isinstance(value, float):
        return float(value) if math.isfinite(value) else {"$float": repr(float(value))}
    if isinstance(value, (bytes, bytearray)):
        return {"$bytes": base64.b64encode(value).decode()}
    if isinstance(value, datetime):
        return {"$datetime": value.isoformat()}
    if isinstance(value, (list, tuple, dict)):
        if depth >= DEPTH_MAX:
            raise NotPlain(f"{_cut(path)} is nested deeper than {DEPTH_MAX}, or contains itself")
        if isinstance(value, dict):
            return _tagged_dict(value, path, depth)
        if _is_simple(value):
            return value
        return [_tagged(item, f"{path}[{index}]", depth + 1) for index, item in enumerate(value)]
    if type(value).__module__ == "numpy" and getattr(value, "shape", None) == ():
        return _tagged(value.item(), path, depth)
    raise NotPlain(
        f"{_cut(path)} is {_kind(value)}, which can't cross: only None, bool, int, float, str, bytes, list, dict and "
        "datetime do"
    )


def _is_simple(items: list[Any] | tuple[Any, ...]) -> bool:
    """Whether a list can be written as it is: found out at native speed, which matters for long ones in a guest."""
    kinds = set(map(type, items))
    if kinds == {int}:
        return bool(min(items) >= -_EXACT and max(items) <= _EXACT)
    if kinds == {float}:
        return all(map(math.isfinite, items))
    return kinds <= {str, bool, type(None)}


def _tagged_dict(value: dict[Any, Any], path: str, depth: int) -> Any:
    if all(type(key) is str and not key.startswith("$") for key in value):
        return {key: _tagged(item, f"{path}[{key!r}]", depth + 1) for key, item in value.items()}
    return {
        "$dict": [
            [_tagged(key, f"a key of {path}", depth + 1), _tagged(item, f"{path}[{key!r}]", depth + 1)]
            for key, item in value.items()
        ]
    }


def _kind(value: Any) -> str:
    kind = type(value)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    return f"a {name}"


def _cut(path: str) -> str:
    return path if len(path) <= 200 else f"{path[:120]} ... {path[-60:]}"


def _untagged(tree: Any, depth: int) -> Value:
    if depth > 2 * DEPTH_MAX + 2:  # a $dict nests twice
        raise ValueError(f"a value nested deeper than {DEPTH_MAX}")
    if isinstance(tree, list):
        return [_untagged(item, depth + 1) for item in tree]
    if not isinstance(tree, dict):
        return tree
    if len(tree) == 1:
        ((tag, held),) = tree.items()
        if tag.startswith("$"):
            return _special(tag, held, depth)
    return {key: _untagged(item, depth + 1) for key, item in tree.items()}


def _special(tag: str, held: Any, depth: int) -> Value:
    if tag == "$dict":
        return _pairs(held, depth)
    read = _SPECIAL.get(tag)
    if read is None or not isinstance(held, str):
        raise ValueError(f"no value is written as {tag[:40]!r}")
    try:
        return read(held)
    except (ValueError, binascii.Error) as error:
        raise ValueError(f"a bad {tag}: {error}") from None


def _pairs(held: Any, depth: int) -> dict[Any, Any]:
    made: dict[Any, Any] = {}
    for pair in held if isinstance(held, list) else [None]:
        if not isinstance(pair, list) or len(pair) != 2:
            raise ValueError("a bad $dict: not pairs")
        key = _untagged(pair[0], depth + 2)
        if isinstance(key, list):
            key = _frozen(key)
        elif isinstance(key, dict):
            raise ValueError("a bad $dict: a dict can't be a key")
        made[key] = _untagged(pair[1], depth + 2)
    return made


def _frozen(key: list[Any]) -> tuple[Any, ...]:
    """A list that was a tuple: only those can be keys."""
    if any(isinstance(item, dict) for item in key):
        raise ValueError("a bad $dict: a dict can't be in a key")
    return tuple(_frozen(item) if isinstance(item, list) else item for item in key)


def _read_float(text: str) -> float:
    if text not in ("nan", "inf", "-inf"):
        raise ValueError("only nan, inf and -inf")
    return float(text)


_SPECIAL: Final[dict[str, Callable[[str], Value]]] = {
    "$int": lambda text: int(text, 16),
    "$float": _read_float,
    "$bytes": lambda text: base64.b64decode(text, validate=True),
    "$datetime": datetime.fromisoformat,
}
