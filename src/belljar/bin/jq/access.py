"""Reading, setting and deleting parts of values: `.a`, `.[1:2]`, getpath, setpath, delpaths."""

from collections.abc import Callable, Iterable
from math import ceil, isnan
from typing import Any

from belljar.bin.jq.code import Path
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.numbers import to_float
from belljar.bin.jq.values import MAX_ARRAY, RANKS, compare, describe, equal, is_number, kind_name, sort_key, type_error

Value = Any
MAX_PATH_DEPTH = 10_000
MAX_PADDING = 1 << 24
"""The longest run of nulls one assignment beyond an array's end may make."""
Owned = dict[int, Value]
"""Containers made by the running edit, which may therefore be changed in place; kept alive by being here."""


def index_error(target: Value, key: Value) -> JqError:
    if key.__class__ is str:
        return JqError(f'Cannot index {kind_name(target)} with "{key}"')
    return JqError(f"Cannot index {kind_name(target)} with {kind_name(key)}")


def index(target: Value, key: Value) -> Value:
    """`target[key]`, whatever the two are."""
    kind, key_kind = target.__class__, key.__class__
    if kind is dict and key_kind is str:
        return target.get(key)
    if kind is list:
        if key_kind is int:
            return target[key] if -len(target) <= key < len(target) else None
        if RANKS[key_kind] == 3:
            position = to_float(key)
            if isnan(position) or not -(2**62) < position < 2**62:
                return None
            return index(target, int(position))
        if key_kind is dict:
            return slice_by(target, key)
        if key_kind is list:
            return indices_of_run(target, key)
    elif target is None:
        if key_kind is str or RANKS[key_kind] == 3 or key_kind is dict:
            return None
    elif kind is str and key_kind is dict:
        return slice_by(target, key)
    raise index_error(target, key)


def slice_by(target: Value, key: dict[str, Value]) -> Value:
    """The slice that an object like {"start": 1, "end": null} names."""
    if "start" not in key or "end" not in key:
        raise JqError("Array/string slice indices must be integers")
    start, end = slice_bounds(key["start"], key["end"], len(target))
    return target[start:end]


def slice_of(target: Value, start: Value, end: Value) -> Value:
    kind = target.__class__
    if kind is list or kind is str:
        first, last = slice_bounds(start, end, len(target))
        return target[first:last]
    if target is None:
        return None
    raise index_error(target, {"start": start, "end": end})


def slice_bounds(start: Value, end: Value, size: int) -> tuple[int, int]:
    """The bounds a slice means in a value of `size` items: rounded outwards, clipped."""
    if not ((start is None or is_number(start)) and (end is None or is_number(end))):
        raise JqError("Array/string slice indices must be integers")
    first = 0.0 if start is None else to_float(start)
    last = float(size) if end is None else to_float(end)
    if isnan(first):
        first = 0.0
    if first < 0:
        first += size
    first = min(max(first, 0.0), float(size))
    if isnan(last):
        last = float(size)
    if last < 0:
        last += size
    low = int(first)
    if last < 0:
        last = low
    high = ceil(min(last, float(size)))
    return low, max(low, high)


def indices_of_run(target: list[Value], run: list[Value]) -> Value:
    """Return where the items of `run` follow each other in `target`."""
    if not run:
        return None
    size, first = len(run), run[0]
    return [
        start
        for start, item in enumerate(target)
        if equal(item, first)
        and start + size <= len(target)
        and all(equal(target[start + offset], run[offset]) for offset in range(1, size))
    ]


def iterate(target: Value) -> Iterable[Value]:
    """The items `.[]` gives."""
    kind = target.__class__
    if kind is list:
        items: Iterable[Value] = target
        return items
    if kind is dict:
        members: Iterable[Value] = target.values()
        return members
    raise iterate_error(target)


def iterate_error(target: Value) -> JqError:
    return JqError(f"Cannot iterate over {describe(target)}")


def has(target: Value, key: Value) -> bool:
    if target is None:
        return False
    if target.__class__ is dict and key.__class__ is str:
        return key in target
    if target.__class__ is list and is_number(key):
        position = to_float(key)
        return not isnan(position) and 0 <= position < len(target)
    raise JqError(f"Cannot check whether {kind_name(target)} has a {kind_name(key)} key")


def keys(target: Value) -> list[Value]:
    if target.__class__ is dict:
        return sorted(target)
    if target.__class__ is list:
        return list(range(len(target)))
    raise type_error(target, "has no keys")


# Paths


def path_list(path: Path) -> list[Value]:
    """The keys of a path, outermost first."""
    found = []
    while path is not None:
        path, key = path
        found.append(key)
    found.reverse()
    return found


def checked_path(path: Value) -> list[Value]:
    if path.__class__ is not list:
        raise JqError("Path must be specified as an array")
    if len(path) > MAX_PATH_DEPTH:
        raise JqError("Path too deep")
    return path


def get_path(target: Value, path: Value) -> Value:
    for key in checked_path(path):
        if target is None:
            return None
        target = index(target, key)
    return target


def set_path(
    root: Value, path: Value, value: Value, charge: Callable[[int], None], owned: Owned | None = None
) -> Value:
    """`root` with `value` at `path`; containers in `owned` are changed in place, others copied."""
    targets = []
    target = root
    for key in checked_path(path):
        targets.append(target)
        target = index(target, key)
    for key in reversed(path):
        value = put(targets.pop(), key, value, charge, owned)
    return value


def put(target: Value, key: Value, value: Value, charge: Callable[[int], None], owned: Owned | None = None) -> Value:
    """`target` with `value` at `key`: in place if it is owned, else a copy (which then is)."""
    kind, key_kind = target.__class__, key.__class__
    if key_kind is str and (kind is dict or target is None):
        if owned is not None and id(target) in owned:
            target[key] = value
            return target
        size = len(target) if target else 0
        if size > 64:
            charge(size >> 6)
        result: Any = {**target} if target else {}
        result[key] = value
    elif RANKS[key_kind] == 3 and (kind is list or target is None):
        result = put_item(target, key, value, charge, owned)
        if result is target:
            return target
    elif key_kind is dict and (kind is list or target is None):
        if value.__class__ is not list:
            raise JqError("A slice of an array can only be assigned another array")
        whole = target or []
        start, end = slice_bounds(key.get("start"), key.get("end"), len(whole))
        charge(len(whole) + len(value) >> 6)
        result = [*whole[:start], *value, *whole[end:]]
    elif key_kind is dict and kind is str:
        raise JqError("Cannot update string slices")
    else:
        raise JqError(f"Cannot update field at {kind_name(key)} index of {kind_name(target)}")
    if owned is not None:
        owned[id(result)] = result
    return result


def put_item(target: Value, key: Value, value: Value, charge: Callable[[int], None], owned: Owned | None) -> Value:
    position = to_float(key)
    if isnan(position):
        raise JqError("Cannot set array element at NaN index")
    if position > MAX_ARRAY:
        raise JqError("Array index too large")
    size = len(target) if target else 0
    place = int(max(position, -(2.0**62)))
    if place < 0:
        place += size
        if place < 0:
            raise JqError("Out of bounds negative array index")
    if place > size + MAX_PADDING:
        raise JqError("Array index too large")
    if owned is not None and id(target) in owned:
        result = target
    else:
        charge(size >> 6)
        result = list(target) if target else []
    if place < size:
        result[place] = value
    else:
        charge(place - size >> 6)
        result.extend([None] * (place - size))
        result.append(value)
    return result


def delete_paths(root: Value, paths: Value) -> Value:
    if paths.__class__ is not list:
        raise JqError("Paths must be specified as an array")
    for path in paths:
        if path.__class__ is not list:
            raise JqError(f"Path must be specified as array, not {kind_name(path)}")
        if len(path) > MAX_PATH_DEPTH:
            raise JqError("Path too deep")
    if any(not path for path in paths):
        return None
    return _delete(root, sorted(paths, key=sort_key), 0)


def _delete(target: Value, paths: list[list[Value]], level: int) -> Value:
    """`target` without `paths`, which are sorted and all lead through it at `level`."""
    if target is None:
        return None
    doomed = []
    position, count = 0, len(paths)
    owned: Owned = {}
    while position < count:
        key = paths[position][level]
        group = [paths[position]]
        position += 1
        while position < count and compare(paths[position][level], key) == 0:
            group.append(paths[position])
            position += 1
        if any(len(path) == level + 1 for path in group):
            doomed.append(key)
            continue
        child = index(target, key)
        if child is None:
            continue
        smaller = _delete(child, group, level + 1)
        if smaller is not child:
            target = put(target, key, smaller, _free, owned)
    return delete_keys(target, doomed) if doomed else target


def _free(steps: int) -> None:
    """Deleting only makes smaller: nothing to pay."""


def delete_keys(target: Value, doomed: list[Value]) -> Value:
    if target.__class__ is dict:
        for key in doomed:
            if key.__class__ is not str:
                raise JqError(f"Cannot delete field at object index of {kind_name(key)}")
        gone = set(doomed)
        return {key: value for key, value in target.items() if key not in gone}
    if target.__class__ is not list:
        raise JqError(f"Cannot delete fields from {kind_name(target)}")
    size = len(target)
    places: set[int] = set()
    for key in doomed:
        if is_number(key):
            position = to_float(key)
            if not isnan(position) and -(2**62) < position < 2**62:
                place = int(position)
                places.add(place + size if place < 0 else place)
        elif key.__class__ is dict:
            start, end = slice_bounds(key.get("start"), key.get("end"), size)
            places.update(range(start, end))
        else:
            raise JqError(f"Cannot delete field at array index of {kind_name(key)}")
    return [item for place, item in enumerate(target) if place not in places]
