"""The builtins that are written in jq itself; each is parsed when a program first uses it."""

from functools import cache

from belljar.bin.jq.nodes import Function, Program
from belljar.bin.jq.parse import parse

SOURCE = """
def values: select(. != null);
def nulls: select(. == null);
def booleans: select(type == "boolean");
def numbers: select(type == "number");
def strings: select(type == "string");
def arrays: select(type == "array");
def objects: select(type == "object");
def iterables: select(type | . == "array" or . == "object");
def scalars: select(type | . != "array" and . != "object");
def normals: select(isnormal);
def finites: select(isfinite);
def leaf_paths: paths(scalars);
def recurse_down: recurse;
def todate: strftime("%Y-%m-%dT%H:%M:%SZ");
def todateiso8601: strftime("%Y-%m-%dT%H:%M:%SZ");
def fromdate: strptime("%Y-%m-%dT%H:%M:%SZ") | mktime;
def fromdateiso8601: strptime("%Y-%m-%dT%H:%M:%SZ") | mktime;
def date: todate;
def dateadd(u; n): . + n;
def datesub(u; n): . - n;
def in(container): . as $key | container | has($key);
def inside(whole): . as $part | whole | contains($part);
def combinations: if . == [] then . else (.[:-1] | combinations) as $left | .[-1][] as $pick | $left + [$pick] end;
def combinations(times): . as $choices | [range(times)] | map($choices) | combinations;
def JOIN($table; key): map([., $table[key]]);
def JOIN($table; rows; key): rows | [., $table[key]];
def JOIN($table; rows; key; combine): JOIN($table; rows; key) | combine;
def with_entries(f): to_entries | map(f) | from_entries;
def INDEX(key): INDEX(.[]; key);
def INDEX(rows; key): reduce rows as $row ({}; .[$row | key | tostring] = $row);
def IN(rows): any(rows == .; .);
def IN(items; rows): any(items == rows; .);
def isempty(f): label $out | (f | false, break $out), true;
def isvalid(f): try ((f | empty), true) catch false;
def while(test; step): def turn: if test then ., (step | turn) else empty end; turn;
def until(test; step): def turn: if test then . else (step | turn) end; turn;
def paths: path(..) | select(length > 0);
def paths(test): path(.. | select(test)) | select(length > 0);
def pick(f): . as $whole | reduce path(f) as $path (null; setpath($path; $whole | getpath($path)));
def nth($n): .[$n];
def first: .[0];
def last: .[-1];
"""


@cache
def _program() -> Program:
    return parse(SOURCE, "<builtin>")


@cache
def _definitions() -> dict[tuple[str, int], Function]:
    return {(function.name, len(function.parameters)): function for function in _program().functions}


def definition(name: str, arity: int) -> Function | None:
    return _definitions().get((name, arity))


def names() -> list[tuple[str, int]]:
    return list(_definitions())
