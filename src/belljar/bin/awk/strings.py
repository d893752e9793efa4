"""Compiles the calls of awk's functions of plain strings."""

from __future__ import annotations

from belljar.bin.awk import nodes as n
from belljar.bin.awk.lvalues import array_code, key_code
from belljar.bin.awk.printing import format_code
from belljar.bin.awk.scope import NUM, STR, BuiltinCompiler, Compiled, Frame, Scope
from belljar.bin.awk.values import UNINIT


def _call_length(scope: Scope, node: n.Builtin) -> Compiled:
    if not node.arguments:
        record = scope.record
        return NUM, lambda frame: float(len(record.get_text()))
    argument = n.ungroup(node.arguments[0])
    if isinstance(argument, n.Var):
        if scope.is_array(argument.name):
            array = array_code(scope, argument)
            return NUM, lambda frame: float(len(array(frame)))
        if argument.name in scope.locals:
            index = scope.locals[argument.name]
            convert = scope.conversion.string

            def measure(frame: Frame) -> float:
                value = frame[index]
                return float(len(value)) if type(value) in (str, dict) else float(len(convert(value)))  # type: ignore[arg-type]

            return NUM, measure
    if isinstance(argument, n.Index):
        return _element_length(scope, argument)
    text = scope.string(argument)
    return NUM, lambda frame: float(len(text(frame)))


def _element_length(scope: Scope, node: n.Index) -> Compiled:
    array = array_code(scope, node.array)
    key = key_code(scope, node.subscripts)
    convert = scope.conversion.string

    def measure(frame: Frame) -> float:
        value = array(frame).setdefault(key(frame), UNINIT)
        return float(len(value)) if type(value) is dict else float(len(convert(value)))

    return NUM, measure


def _call_index(scope: Scope, node: n.Builtin) -> Compiled:
    text, part = scope.string(node.arguments[0]), scope.string(node.arguments[1])
    if scope.runtime.cases_matter:
        runtime = scope.runtime

        def find(frame: Frame) -> float:
            subject, wanted = text(frame), part(frame)
            if runtime.ignore_case:
                subject, wanted = lower(subject), lower(wanted)
            return float(subject.find(wanted) + 1)

        return NUM, find
    return NUM, lambda frame: float(text(frame).find(part(frame)) + 1)


def _call_substr(scope: Scope, node: n.Builtin) -> Compiled:
    text, start = scope.string(node.arguments[0]), scope.num(node.arguments[1])
    if len(node.arguments) == 2:

        def rest(frame: Frame) -> str:
            subject = text(frame)
            return subject[_offset(start(frame)) :]

        return STR, rest
    length = scope.num(node.arguments[2])

    def cut(frame: Frame) -> str:
        subject = text(frame)
        begin = _offset(start(frame))
        size = length(frame)
        return subject[begin : begin + int(min(size, 1e15))] if size >= 1.0 else ""

    return STR, cut


def _call_tolower(scope: Scope, node: n.Builtin) -> Compiled:
    text = scope.string(node.arguments[0])
    return STR, lambda frame: lower(text(frame))


def _call_toupper(scope: Scope, node: n.Builtin) -> Compiled:
    text = scope.string(node.arguments[0])
    return STR, lambda frame: upper(text(frame))


def _call_sprintf(scope: Scope, node: n.Builtin) -> Compiled:
    return STR, format_code(scope, node.arguments, node.line)


def _offset(start: float) -> int:
    """Return where substr() begins: fractions are cut off, and what lies before the string is taken for its start."""
    return int(min(start, 1e15)) - 1 if start >= 1.0 else 0


def lower(text: str) -> str:
    """Character by character, as towlower does: never changing the length."""
    if text.isascii():
        return text.lower()
    return "".join([small if len(small := char.lower()) == 1 else char for char in text])


def upper(text: str) -> str:
    if text.isascii():
        return text.upper()
    return "".join([big if len(big := char.upper()) == 1 else char for char in text])


FUNCTIONS: dict[str, BuiltinCompiler] = {
    "index": _call_index,
    "length": _call_length,
    "sprintf": _call_sprintf,
    "substr": _call_substr,
    "tolower": _call_tolower,
    "toupper": _call_toupper,
}
