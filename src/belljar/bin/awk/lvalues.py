"""Compiles what can be assigned: variables, array elements and fields."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.scope import (
    NUM,
    PRINT,
    STR,
    TEST,
    VAL,
    ArrayCode,
    Compiled,
    ExpressionCompiler,
    Frame,
    Scope,
    StoreCode,
    StringCode,
)
from belljar.bin.awk.values import NUMERIC_START, UNINIT, Array, FieldText, Untyped, Value, strnum, to_number, whole

# -- variables ----------------------------------------------------------------------------------------------


def _expr_var(scope: Scope, node: n.Var, want: str) -> Compiled:
    name = node.name
    if scope.is_array(name):
        return VAL, scope.scalar_misuse(name, node.line)
    if name in scope.locals:
        return _local(scope, node, scope.locals[name], want)
    record = scope.record
    if name in ("NR", "FNR"):
        of_file = name == "FNR"
        if want in (STR, PRINT):
            return STR, lambda frame: str(record.nr - record.nr_base if of_file else record.nr)
        return NUM, lambda frame: float(record.nr - record.nr_base if of_file else record.nr)
    if name == "NF":

        def field_count(_frame: Frame) -> float:
            fields = record.fields
            if fields is None:
                fields = record.split()
            return float(len(fields))

        return NUM, field_count
    if name in scope.tree.functions:
        message = f"function `{name}' called with space between name and `('\nor used as a variable or an array"
        raise AwkFatal(message, node.line, kind="error")
    cell = scope.runtime.cell(name)
    if want == NUM:

        def number(_frame: Frame) -> float:
            value = cell[0]
            return value if type(value) is float else to_number(value)

        return NUM, number
    if want == STR:
        convert, get, spell = scope.conversion.string, scope.conversion.cache.get, scope.conversion.number

        def text(_frame: Frame) -> str:
            value = cell[0]
            if type(value) is str:
                return value
            if type(value) is float:
                return get(value) or spell(value)
            return convert(value)

        return STR, text
    return VAL, lambda frame: cell[0]


def _local(scope: Scope, node: n.Var, index: int, want: str) -> Compiled:
    name = node.name

    def check(value: Value) -> Value:
        if type(value) is dict:
            raise AwkFatal(f"attempt to use array `{name}' in a scalar context", node.line)
        return UNINIT if type(value) is Untyped else value

    if want == NUM:

        def number(frame: Frame) -> float:
            value = frame[index]
            return value if type(value) is float else to_number(check(value))

        return NUM, number
    if want == STR:
        convert = scope.conversion.string

        def text(frame: Frame) -> str:
            value = frame[index]
            return value if type(value) is str else convert(check(value))

        return STR, text

    def load(frame: Frame) -> Value:
        value = frame[index]
        kind = type(value)
        return value if kind is float or kind is str else check(value)

    return VAL, load


# -- arrays -------------------------------------------------------------------------------------------------


def array_code(scope: Scope, node: n.Expr) -> ArrayCode:
    node = n.ungroup(node)
    if isinstance(node, n.Var):
        if node.name in scope.locals:
            return _local_array(scope, node, scope.locals[node.name])
        if node.name in scope.tree.functions:
            raise AwkFatal(f"function `{node.name}' used as an array", node.line, kind="error")
        array = scope.runtime.array(node.name)
        return lambda frame: array
    if isinstance(node, n.Index):
        return _sub_array(scope, node)
    raise AwkFatal("not an array", 0)


def _local_array(scope: Scope, node: n.Var, index: int) -> ArrayCode:
    name = node.name

    def local(frame: Frame) -> Array:
        value = frame[index]
        if type(value) is dict:
            return value
        if value is UNINIT:
            made: Array = {}
            frame[index] = made
            return made
        if type(value) is Untyped:
            frame[index] = made = value.become_array()
            return made
        raise AwkFatal(f"attempt to use scalar parameter `{name}' as an array", node.line)

    return local


def _sub_array(scope: Scope, node: n.Index) -> ArrayCode:
    parent = array_code(scope, node.array)
    key = key_code(scope, node.subscripts)
    line = node.line

    def nested(frame: Frame) -> Array:
        outer = parent(frame)
        subscript = key(frame)
        value = outer.get(subscript, UNINIT)
        if type(value) is dict:
            return value
        if value is not UNINIT:
            raise AwkFatal(f'attempt to use scalar `{_label(node)}["{subscript}"]\' as an array', line)
        made: Array = {}
        outer[subscript] = made
        return made

    return nested


def key_code(scope: Scope, subscripts: list[n.Expr]) -> StringCode:
    if len(subscripts) == 1:
        return scope.string(subscripts[0])
    parts = [scope.string(part) for part in subscripts]
    separator = scope.runtime.cell("SUBSEP")
    convert = scope.conversion.string
    if len(parts) == 2:
        first, second = parts

        def pair(frame: Frame) -> str:
            return f"{first(frame)}{convert(separator[0])}{second(frame)}"

        return pair
    return lambda frame: convert(separator[0]).join([part(frame) for part in parts])


def _expr_index(scope: Scope, node: n.Index, _want: str) -> Compiled:
    key, known, array = key_code(scope, node.subscripts), scope.global_array(node.array), array_code(scope, node.array)

    def element(frame: Frame) -> Value:
        held = array(frame) if known is None else known
        subscript = key(frame)
        try:
            value = held[subscript]
        except KeyError:
            held[subscript] = UNINIT
            return UNINIT
        if type(value) is dict:
            raise _element_misuse(node, subscript)
        return UNINIT if type(value) is Untyped else value

    return VAL, element


def _expr_in(scope: Scope, node: n.In, want: str) -> Compiled:
    key = key_code(scope, node.subscripts)
    array = array_code(scope, node.array)
    return TEST, lambda frame: key(frame) in array(frame)


# -- fields -------------------------------------------------------------------------------------------------


def _expr_field(scope: Scope, node: n.Field, want: str) -> Compiled:
    index = n.ungroup(node.index)
    if isinstance(index, n.Num) and 0 <= index.value < 1e9:
        return _constant_field(scope, int(index.value), want)
    if isinstance(index, n.Var) and index.name in scope.walking:
        return _walked_field(scope, scope.walking[index.name], want)
    record = scope.record
    place = scope.num(index)
    line = node.line
    if want in (VAL, TEST):
        get = record.get
        return VAL, lambda frame: get(field_number(place(frame), line))
    get_string = record.get_string
    convert = scope.conversion.string

    def text(frame: Frame) -> str:
        number = whole(place(frame))
        fields = record.fields
        if fields is None:
            fields = record.split()
        if 0 < number <= len(fields):
            value = fields[number - 1]
            return value if type(value) is str else convert(value)
        return get_string(field_number(float(number), line))

    if want in (STR, PRINT):
        return STR, text

    def number_of(frame: Frame) -> float:
        value = record.get(field_number(place(frame), line))
        return value if type(value) is float else to_number(value)

    return NUM, number_of


def _walked_field(scope: Scope, holder: list[Value], want: str) -> Compiled:
    """`$i` inside a loop that walks the fields by i: the loop holds the field."""
    convert = scope.conversion.string
    if want in (STR, PRINT):

        def text(_frame: Frame) -> str:
            value = holder[0]
            return value if type(value) is str else convert(value)

        return STR, text

    def value_of(_frame: Frame) -> Value:
        value = holder[0]
        if type(value) is str:
            return strnum(value)
        return value.s if type(value) is FieldText else value

    return VAL, value_of


def _constant_field(scope: Scope, number: int, want: str) -> Compiled:
    record = scope.record
    if number == 0:

        def record_text(_frame: Frame) -> str:
            text = record.text
            return record.rebuild() if text is None else text

        if want in (STR, PRINT):
            return STR, record_text
        return VAL, lambda frame: record.get(0)
    place = number - 1
    convert = scope.conversion.string
    if want in (STR, PRINT):

        def text(_frame: Frame) -> str:
            fields = record.fields
            if fields is None:
                fields = record.split()
            try:
                value = fields[place]
            except IndexError:
                return ""
            return value if type(value) is str else convert(value)

        return STR, text
    if want == NUM:

        def amount(_frame: Frame) -> float:
            fields = record.fields
            if fields is None:
                fields = record.split()
            try:
                text = fields[place]
                number = float(text)  # type: ignore[arg-type]
                if number - number == 0.0 and "_" not in text and text.isascii():  # type: ignore[operator, union-attr]
                    return number
            except IndexError:
                return 0.0
            except (AttributeError, TypeError, ValueError):
                pass
            return to_number(text)

        return NUM, amount
    get = record.get
    return VAL, lambda frame: get(number)


# -- stores -------------------------------------------------------------------------------------------------


def store_code(scope: Scope, node: n.Lvalue) -> StoreCode:
    """Code that puts a value into `node`."""
    if isinstance(node, n.Var):
        return _store_variable(scope, node)
    if isinstance(node, n.Field):
        if isinstance(node.index, n.Num) and 1 <= node.index.value < 1000:
            return _store_field(scope, int(node.index.value))
        place = scope.num(node.index)
        put = scope.record.set
        line = node.line
        return lambda frame, value: put(field_number(place(frame), line), value)
    array, key = array_code(scope, node.array), key_code(scope, node.subscripts)
    known = scope.global_array(node.array)
    if known is not None and not scope.names.nested:

        def store_plain(frame: Frame, value: Value) -> None:
            known[key(frame)] = value

        return store_plain

    def store_element(frame: Frame, value: Value) -> None:
        held = array(frame)
        subscript = key(frame)
        if type(held.get(subscript)) is dict:
            raise _element_misuse(node, subscript)
        held[subscript] = value

    return store_element


def _store_field(scope: Scope, number: int) -> StoreCode:
    record = scope.record

    def store_field(_frame: Frame, value: Value) -> None:
        fields = record.fields
        if fields is None:
            fields = record.split()
        if type(value) is str and number <= len(fields) and (not value or value[0] not in NUMERIC_START):
            fields[number - 1] = value
            record.text = None
        else:
            record.set(number, value)

    return store_field


def _store_variable(scope: Scope, node: n.Var) -> StoreCode:
    name = node.name
    if scope.is_array(name):
        line, filled = node.line, scope.global_array(node)

        def misuse(_frame: Frame, _value: Value) -> None:
            if filled is not None and not filled:
                # Nothing is in it yet: it is the later use as an array that is wrong.
                raise AwkFatal(f"attempt to use scalar `{name}' as an array", line)
            raise AwkFatal(f"attempt to use array `{name}' in a scalar context", line)

        return misuse
    if name in scope.locals:
        index = scope.locals[name]

        def store_local(frame: Frame, value: Value) -> None:
            if type(frame[index]) is dict:
                raise AwkFatal(f"attempt to use array `{name}' in a scalar context", node.line)
            frame[index] = value

        return store_local
    if name in scope.tree.functions:
        raise AwkFatal(f"function `{name}' used as a variable", node.line, kind="error")
    hook = scope.runtime.hook(name)
    cell = scope.runtime.cell(name)
    if hook is not None:

        def store_special(_frame: Frame, value: Value) -> None:
            cell[0] = value
            hook(value)

        return store_special

    def store_global(_frame: Frame, value: Value) -> None:
        cell[0] = value

    return store_global


def place_code(scope: Scope, node: n.Lvalue) -> tuple[Callable[[Frame], Any], Callable[[Frame, Any], Value], Any]:
    """For read-modify-write: `locate(frame)` evaluates subscripts once, for `load(frame, where)` and
    `save(frame, where, value)`."""
    if isinstance(node, n.Field):
        index, record, line = scope.num(node.index), scope.record, node.line
        return (
            lambda frame: field_number(index(frame), line),
            lambda frame, where: record.get(where),
            lambda frame, where, value: record.set(where, value),
        )
    if isinstance(node, n.Index):
        array = array_code(scope, node.array)
        key = key_code(scope, node.subscripts)

        def load_element(_frame: Frame, where: tuple[Array, str]) -> Value:
            value = where[0].get(where[1], UNINIT)
            if type(value) is dict:
                raise _element_misuse(node, where[1])
            return value

        def save_element(_frame: Frame, where: tuple[Array, str], value: Value) -> None:
            where[0][where[1]] = value

        return (lambda frame: (array(frame), key(frame))), load_element, save_element
    load = scope.value(node)
    put = _store_variable(scope, node)
    return (lambda frame: None), (lambda frame, where: load(frame)), (lambda frame, where, value: put(frame, value))


def field_number(number: float, line: int) -> int:
    if number < 0:
        raise AwkFatal(f"attempt to access field {whole(number)}", line)
    return whole(number)


def _label(node: n.Index) -> str:
    array = node.array
    return array.name if isinstance(array, n.Var) else _label(array) + "[...]"


def _element_misuse(node: n.Index, subscript: str) -> AwkFatal:
    return AwkFatal(f'attempt to use array `{_label(node)}["{subscript}"]\' in a scalar context', node.line)


EXPRESSIONS: dict[type, ExpressionCompiler] = {
    n.Var: _expr_var,
    n.Index: _expr_index,
    n.In: _expr_in,
    n.Field: _expr_field,
}
