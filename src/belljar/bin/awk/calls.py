"""Compiles calls of the program's own functions, and getline."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.errors import SysError
from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.expressions import ARITY
from belljar.bin.awk.lvalues import array_code, key_code, place_code, store_code
from belljar.bin.awk.scope import NUM, VAL, Compiled, ExpressionCompiler, Frame, Scope, UserFunction
from belljar.bin.awk.values import UNINIT, Array, Untyped, Value, strnum

MAX_DEPTH = 20_000
"""Calls of functions nested deeper than this are refused."""
_INDIRECT = (
    "length tolower toupper substr index sprintf sin cos exp log sqrt int atan2 strtonum systime strftime mktime and "
    "or xor compl lshift rshift gensub"
).split()
"""The built-in functions that can be called by name."""

# -- calls --------------------------------------------------------------------------------------------------


def _expr_call(scope: Scope, node: n.Call, want: str) -> Compiled:
    function: UserFunction = scope.functions[node.name]
    if len(node.arguments) > len(function.parameters):
        raise AwkFatal(f"function `{node.name}' called with more arguments than declared", node.line)
    arguments = [
        _argument(scope, argument, node.name, parameter)
        for argument, parameter in zip(node.arguments, function.parameters, strict=False)
    ]
    padding: list[Value] = [UNINIT] * (len(function.parameters) - len(arguments) + 1)
    runtime = scope.runtime
    charge = runtime.charge
    line = node.line

    def call(frame: Frame) -> Value:
        inner = [argument(frame) for argument in arguments] + padding
        charge(1)
        runtime.depth += 1
        if runtime.depth > MAX_DEPTH:
            raise AwkFatal(f"function `{node.name}': calls nested too deeply", line)
        function.code(inner)
        runtime.depth -= 1
        return inner[-1]

    return VAL, call


def _argument(scope: Scope, node: n.Expr, function: str | None, parameter: str) -> Callable[[Frame], Value]:
    """An argument's code: arrays by reference, names nobody has typed yet as something that may become one."""
    if function is not None and parameter in scope.names.scalar_parameters[function]:
        if isinstance(node, n.Var) and scope.is_array(node.name):
            return scope.scalar_misuse(f"{parameter} (from {node.name})", node.line)
        return scope.value(node)
    if isinstance(node, n.Var) and node.name not in ("NR", "NF", "FNR"):
        if scope.is_array(node.name):
            return array_code(scope, node)
        if node.name in scope.tree.functions:
            return scope.value(node)
        if node.name in scope.locals:
            index = scope.locals[node.name]

            def pass_local(frame: Frame) -> Value:
                value = frame[index]
                return Untyped(frame, index) if value is UNINIT else value

            return pass_local
        cell = scope.runtime.cell(node.name)
        name = node.name
        arrays = scope.runtime.arrays

        def pass_global(_frame: Frame) -> Value:
            value = cell[0]
            if value is UNINIT:
                return arrays[name] if name in arrays else Untyped(cell, 0)
            return value

        return pass_global
    if isinstance(node, n.Index):
        container = array_code(scope, node.array)
        key = key_code(scope, node.subscripts)

        def pass_element(frame: Frame) -> Value:
            held: Array = container(frame)
            subscript = key(frame)
            value = held.setdefault(subscript, UNINIT)
            return Untyped(held, subscript) if value is UNINIT else value

        return pass_element
    return scope.value(node)


def _expr_indirectcall(scope: Scope, node: n.IndirectCall, want: str) -> Compiled:
    name_of = scope.string(n.Var(node.name, node.line))
    arguments = [_argument(scope, argument, None, "") for argument in node.arguments]
    builtins = {
        name: scope.value(n.Builtin(name, node.arguments, node.line))
        for name in _INDIRECT
        if _fits(name, len(node.arguments))
    }
    functions, runtime, line = scope.functions, scope.runtime, node.line

    def call(frame: Frame) -> Value:
        name = name_of(frame)
        function = functions.get(name)
        if function is None:
            if name in builtins:
                return builtins[name](frame)
            raise AwkFatal(f"`{name}' is not a function, so it cannot be called indirectly", line)
        if len(arguments) > len(function.parameters):
            raise AwkFatal(f"function `{name}' called with more arguments than declared", line)
        runtime.charge(1)
        result: Value = function.invoke([argument(frame) for argument in arguments])
        return result

    return VAL, call


# -- getline ------------------------------------------------------------------------------------------------


def _expr_getline(scope: Scope, node: n.Getline, want: str) -> Compiled:
    if node.kind == "":
        return _plain_getline(scope, node)
    assert node.source is not None
    name = scope.string(node.source)
    place = None if node.target is None else place_code(scope, node.target)
    runtime, record, kind, line = scope.runtime, scope.record, node.kind, node.line
    streams = runtime.streams
    terminator = runtime.cell("RT") if "RT" in scope.names.mentioned else None
    errno = runtime.cell("ERRNO")

    def read(frame: Frame) -> float:
        source = name(frame)
        # The target's subscripts are evaluated even when nothing can be read.
        where = None if place is None else place[0](frame)
        reader = streams.input(kind, source, line)
        if reader is None:
            errno[0] = streams.error
            return -1.0
        try:
            text = reader.next()
        except SysError as error:
            errno[0] = error.reason
            return -1.0
        if text is None:
            return 0.0
        if terminator is not None:
            terminator[0] = reader.remaining_terminator()
        if place is None:
            record.set_text(text)
        else:
            place[2](frame, where, strnum(text))
        return 1.0

    return NUM, read


def _plain_getline(scope: Scope, node: n.Getline) -> Compiled:
    store = None if node.target is None else store_code(scope, node.target)
    runtime, record, line = scope.runtime, scope.record, node.line
    terminator = runtime.cell("RT") if "RT" in scope.names.mentioned else None

    def read(frame: Frame) -> float:
        if runtime.input.in_hook:
            raise AwkFatal(f"non-redirected `getline' invalid inside `{runtime.section}' rule", line)
        text = runtime.input.next_record()
        if text is None:
            return 0.0
        if terminator is not None and runtime.input.reader is not None:
            terminator[0] = runtime.input.reader.remaining_terminator()
        record.nr += 1
        if store is None:
            record.set_text(text)
        else:
            store(frame, strnum(text))
        return 1.0

    return NUM, read


def _fits(name: str, count: int) -> bool:
    low, high = ARITY[name]
    return low <= count <= high


EXPRESSIONS: dict[type, ExpressionCompiler] = {
    n.Call: _expr_call,
    n.IndirectCall: _expr_indirectcall,
    n.Getline: _expr_getline,
}
