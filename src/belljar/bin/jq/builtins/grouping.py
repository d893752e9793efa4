"""Builtins that sort, group and index by a filter, and make objects of entries."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from belljar.bin.jq.access import iterate, iterate_error
from belljar.bin.jq.code import EMPTY, ONE, Code, Env, Scope, as_many
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.values import Value, describe, kind_name, sort_key, type_error, type_error2

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler


from belljar.bin.jq.builtins.registry import Arguments, form, truthy


def keyed(name: str, finish: Callable[[list[tuple[Value, Value]]], Value]) -> None:
    @form(name, 1)
    def by(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
        code = compiler.value(arguments[0], scope)
        run, charge = code.run, compiler.charge
        many = as_many(code)

        def run_by(v: Value, e: Env) -> Value:
            if v.__class__ is not list:
                if v.__class__ is dict:
                    raise type_error2(
                        v, [[item] for item in v.values()], "cannot be sorted, as they are not both arrays"
                    )
                raise iterate_error(v)
            charge(len(v))
            if code.kind == ONE:
                pairs = [(simple_key(run(item, e)), item) for item in v]
            else:
                pairs = [([simple_key(part) for part in many(item, e)], item) for item in v]
            return finish(pairs)

        return Code(ONE, run_by)


def simple_key(value: Value) -> Any:
    return sort_key(value)


def first_of(pair: tuple[Value, Value]) -> Value:
    return pair[0]


def grouped(pairs: list[tuple[Value, Value]]) -> list[list[Value]]:
    pairs.sort(key=first_of)
    groups: list[list[Value]] = []
    current: Any = EMPTY
    for key, item in pairs:
        if key == current:
            groups[-1].append(item)
        else:
            groups.append([item])
            current = key
    return groups


keyed("sort_by", lambda pairs: [item for _, item in sorted(pairs, key=first_of)])
keyed("group_by", grouped)
keyed("unique_by", lambda pairs: [group[0] for group in grouped(pairs)])
keyed("min_by", lambda pairs: min(pairs, key=first_of)[1] if pairs else None)
keyed("max_by", lambda pairs: max(reversed(pairs), key=first_of)[1] if pairs else None)


def to_entries(v: Value) -> list[Value]:
    if v.__class__ is dict:
        return [{"key": key, "value": value} for key, value in v.items()]
    if v.__class__ is list:
        return [{"key": place, "value": value} for place, value in enumerate(v)]
    raise type_error(v, "has no keys")


def from_entries(entries: Iterable[Value]) -> dict[str, Value]:
    result: dict[str, Value] = {}
    for entry in entries:
        if entry.__class__ is not dict:
            raise JqError(f'Cannot index {kind_name(entry)} with "key"')
        found = (entry.get(name) for name in ("key", "k", "name", "Name", "Key", "K"))
        key = next((item for item in found if truthy(item)), None)
        if key.__class__ is not str:
            raise JqError(f"Cannot use {describe(key)} as object key")
        for name in ("value", "v", "Value", "V"):
            if name in entry:
                result[key] = entry[name]
                break
        else:
            result[key] = None
    return result


@form("to_entries", 0)
def to_entries_form(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    return Code(ONE, lambda v, e: to_entries(v))


@form("from_entries", 0)
def from_entries_form(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    return Code(ONE, lambda v, e: from_entries(iterate(v)))
