"""Event streams: `tostream`, `fromstream` and `truncate_stream`, without recursion."""

from collections.abc import Callable, Iterable, Iterator

from belljar.bin.jq.access import Owned, index, set_path
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.numbers import to_float
from belljar.bin.jq.values import Value, is_number, length


def to_events(root: Value) -> Iterator[Value]:
    """`[path, leaf]` for each leaf, `[path]` when a container ends."""
    if root.__class__ not in (list, dict) or not root:
        yield [[], root]
        return
    path: list[Value] = []
    stack = [_members(root)]
    while stack:
        level = len(stack)
        for key, value in stack[-1]:
            path[level - 1 :] = [key]
            if value.__class__ in (list, dict) and value:
                stack.append(_members(value))
                break
            yield [path[:], value]
        else:
            stack.pop()
            yield [path[:level]]


def _members(value: Value) -> Iterator[tuple[Value, Value]]:
    return iter(value.items()) if value.__class__ is dict else enumerate(value)


def from_events(events: Iterable[Value], charge: Callable[[int], None]) -> Iterator[Value]:
    """The values whose events these are."""
    state: Value = None
    owned: Owned = {}
    complete = False
    for event in events:
        charge(1)
        if complete:
            state, owned, complete = None, {}, False
        path = index(event, 0)
        if length(event) == 2:
            leaf = index(event, 1)
            complete = length(path) == 0
            state = leaf if complete else set_path(state, path, leaf, charge, owned)
        else:
            complete = length(path) == 1
        if complete:
            yield state


def truncated(depth: Value, events: Iterable[Value]) -> Iterator[Value]:
    """Events below `depth`, with that many keys cut off their paths."""
    if not is_number(depth):
        raise JqError("Array/string slice indices must be integers")
    count = int(to_float(depth))
    for event in events:
        path = index(event, 0)
        if len(path) > count:
            yield [path[count:], *event[1:]]
