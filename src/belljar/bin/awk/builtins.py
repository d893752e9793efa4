"""Compiles calls of awk's built-in functions: arrays, types, streams and time, on top of the text and number ones."""

from __future__ import annotations

import math
from collections.abc import Callable

from belljar.bin.awk import matching, numeric, strings, times
from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.lvalues import array_code, key_code
from belljar.bin.awk.operators import type_name
from belljar.bin.awk.scope import NUM, STR, TEST, VAL, BuiltinCompiler, Compiled, ExpressionCompiler, Frame, Scope
from belljar.bin.awk.values import UNINIT, Untyped, Value

# -- arrays and types ---------------------------------------------------------------------------------------


def _sorting(scope: Scope, node: n.Builtin) -> Compiled:
    source = array_code(scope, node.arguments[0])
    destination = array_code(scope, node.arguments[1]) if len(node.arguments) > 1 else None
    how = scope.string(node.arguments[2]) if len(node.arguments) > 2 else None
    by_index = node.name == "asorti"
    runtime, line = scope.runtime, node.line

    def sort(frame: Frame) -> float:
        held = source(frame)
        rule = how(frame) if how is not None else ("@ind_str_asc" if by_index else "@val_type_asc")
        keys = runtime.sorted_keys(held, rule, line)
        values: list[Value] = list(keys) if by_index else [held[key] for key in keys]
        target = held if destination is None else destination(frame)
        target.clear()
        for number, value in enumerate(values, 1):
            target[str(number)] = value
        return float(len(values))

    return NUM, sort


def _raw(scope: Scope, node: n.Expr) -> Callable[[Frame], Value]:
    """The value of an argument that may well be an array or untyped, without creating anything."""
    node = n.ungroup(node)
    if isinstance(node, n.Var):
        if node.name in scope.locals:
            index = scope.locals[node.name]
            return lambda frame: frame[index]
        if scope.is_array(node.name) or node.name in scope.tree.functions:
            array = scope.runtime.array(node.name)
            return lambda frame: array
        if node.name in ("NR", "NF", "FNR"):
            return scope.value(node)
        cell = scope.runtime.cell(node.name)
        return lambda frame: cell[0]
    if isinstance(node, n.Index):
        container = array_code(scope, node.array)
        key = key_code(scope, node.subscripts)
        return lambda frame: container(frame).setdefault(key(frame), UNINIT)
    return scope.value(node)


def _call_isarray(scope: Scope, node: n.Builtin) -> Compiled:
    raw = _raw(scope, node.arguments[0])
    return TEST, lambda frame: type(raw(frame)) is dict


def _call_typeof(scope: Scope, node: n.Builtin) -> Compiled:
    raw = _raw(scope, node.arguments[0])
    is_name = isinstance(node.arguments[0], (n.Var, n.Index))
    record = scope.record
    beyond = scope.num(node.arguments[0].index) if isinstance(node.arguments[0], n.Field) else None

    def name(frame: Frame) -> str:
        value = raw(frame)
        if beyond is not None and value == "" and beyond(frame) > record.get_nf():
            return "unassigned"
        if type(value) is dict:
            return "array"
        if value is UNINIT or type(value) is Untyped:
            return "untyped" if is_name else "unassigned"
        return type_name(value)

    return STR, name


# -- input, output, time ------------------------------------------------------------------------------------


def _call_close(scope: Scope, node: n.Builtin) -> Compiled:
    name = scope.string(node.arguments[0])
    how = scope.string(node.arguments[1]) if len(node.arguments) > 1 else None
    streams, line = scope.runtime.streams, node.line

    def close(frame: Frame) -> float:
        which = name(frame)
        part = how(frame) if how is not None else ""
        if how is not None and part not in ("to", "from"):
            raise AwkFatal("close: second argument must be `to' or `from'", line)
        return streams.close(which, part, line)

    return NUM, close


def _call_fflush(scope: Scope, node: n.Builtin) -> Compiled:
    streams = scope.runtime.streams
    name = scope.string(node.arguments[0]) if node.arguments else None

    warn, line = scope.runtime.warn, node.line

    def flush(frame: Frame) -> float:
        which = "" if name is None else name(frame)
        result = streams.flush(which)
        if result < 0:
            warn(f"fflush: `{which}' is not an open file, pipe or co-process", line)
        return result

    return NUM, flush


def _call_system(scope: Scope, node: n.Builtin) -> Compiled:
    command = scope.string(node.arguments[0])
    streams, line = scope.runtime.streams, node.line
    return NUM, lambda frame: streams.system(command(frame), line)


def _call_systime(scope: Scope, node: n.Builtin) -> Compiled:
    world = scope.runtime.world
    return NUM, lambda frame: float(math.floor(world.now()))


def _call_mktime(scope: Scope, node: n.Builtin) -> Compiled:
    text = scope.string(node.arguments[0])
    utc = scope.test(node.arguments[1]) if len(node.arguments) > 1 else None
    world = scope.runtime.world
    return NUM, lambda frame: times.mktime(text(frame), "UTC0" if utc and utc(frame) else world.timezone())


def _call_strftime(scope: Scope, node: n.Builtin) -> Compiled:
    arguments = node.arguments
    runtime = scope.runtime
    form = scope.string(arguments[0]) if arguments else None
    stamp = scope.num(arguments[1]) if len(arguments) > 1 else None
    utc = scope.test(arguments[2]) if len(arguments) > 2 else None

    def render(frame: Frame) -> str:
        layout = form(frame) if form is not None else runtime.default_time_format()
        moment = math.floor(runtime.world.now()) if stamp is None else stamp(frame)
        zone = "UTC0" if utc and utc(frame) else runtime.world.timezone()
        text = times.strftime(layout, moment, zone)
        runtime.charge_size(len(text))
        return text

    return STR, render


# -- messages in other languages: there is only one ----------------------------------------------------------


def _call_dcgettext(scope: Scope, node: n.Builtin) -> Compiled:
    return VAL, scope.value(node.arguments[0])


def _call_dcngettext(scope: Scope, node: n.Builtin) -> Compiled:
    one, many, count = (scope.value(node.arguments[0]), scope.value(node.arguments[1]), scope.num(node.arguments[2]))
    return VAL, lambda frame: one(frame) if count(frame) == 1 else many(frame)


def _call_bindtextdomain(scope: Scope, node: n.Builtin) -> Compiled:
    text = scope.string(node.arguments[0])
    return STR, text


FUNCTIONS: dict[str, BuiltinCompiler] = {
    **numeric.FUNCTIONS,
    **strings.FUNCTIONS,
    **matching.FUNCTIONS,
    "asort": _sorting,
    "asorti": _sorting,
    "bindtextdomain": _call_bindtextdomain,
    "close": _call_close,
    "dcgettext": _call_dcgettext,
    "dcngettext": _call_dcngettext,
    "fflush": _call_fflush,
    "isarray": _call_isarray,
    "mktime": _call_mktime,
    "strftime": _call_strftime,
    "system": _call_system,
    "systime": _call_systime,
    "typeof": _call_typeof,
}


def _builtin(scope: Scope, node: n.Builtin, _want: str) -> Compiled:
    return FUNCTIONS[node.name](scope, node)


EXPRESSIONS: dict[type, ExpressionCompiler] = {n.Builtin: _builtin}
