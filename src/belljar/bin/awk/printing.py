"""Compiles print, printf and sprintf."""

from __future__ import annotations

from operator import itemgetter
from typing import Any

from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.format import plan_format, sprintf
from belljar.bin.awk.scope import PRINT, STR, TEST, Code, Frame, Scope, StringCode


def stmt_print(scope: Scope, node: n.Print) -> Code:
    text = format_code(scope, node.arguments, node.line) if node.formatted else _printed(scope, node)
    runtime = scope.runtime
    if node.redirect == "":
        write = runtime.streams.stdout.write
        return lambda frame: write(text(frame))
    assert node.destination is not None
    destination = scope.string(node.destination)
    redirect, line = node.redirect, node.line
    streams = runtime.streams

    def send(frame: Frame) -> None:
        data = text(frame)
        streams.output(redirect, destination(frame), line).write(data)

    return send


def _printed(scope: Scope, node: n.Print) -> StringCode:
    separators = scope.runtime.separators
    if not node.arguments:
        record = scope.record

        def whole(_frame: Frame) -> str:
            text = record.text
            if text is None:
                text = record.rebuild()
            return text + separators.ors

        return whole
    parts = [_output_text(scope, argument) for argument in node.arguments]
    places = [n.constant_field(argument) - 1 for argument in node.arguments]
    if len(parts) > 1 and all(place >= 0 for place in places):
        return _printed_fields(scope, places, parts)
    if len(parts) == 1:
        only = parts[0]
        return lambda frame: only(frame) + separators.ors
    if len(parts) == 2:
        first, second = parts
        return lambda frame: f"{first(frame)}{separators.ofs}{second(frame)}{separators.ors}"
    return lambda frame: separators.ofs.join([part(frame) for part in parts]) + separators.ors


def _printed_fields(scope: Scope, places: list[int], parts: list[StringCode]) -> StringCode:
    """`print $1, $3`: taken from the record at once, unless one is missing or not plain text."""
    separators, record = scope.runtime.separators, scope.record
    wanted = itemgetter(*places)

    def fields_text(frame: Frame) -> str:
        fields = record.fields
        if fields is None:
            fields = record.split()
        try:
            return separators.ofs.join(wanted(fields)) + separators.ors
        except (IndexError, TypeError):
            return separators.ofs.join([part(frame) for part in parts]) + separators.ors

    return fields_text


def _output_text(scope: Scope, node: n.Expr) -> StringCode:
    """A value as print shows it: numbers by OFMT."""
    kind, code = scope.compile(node, PRINT)
    if kind == STR:
        return code
    if kind == TEST:
        return lambda frame: "1" if code(frame) else "0"
    separators = scope.runtime.separators
    slow = scope.conversion.slow
    get = scope.conversion.cache.get
    string = scope.conversion.string

    def shown(frame: Frame) -> str:
        value = code(frame)
        if type(value) is str:
            return value
        if type(value) is float:
            return get(value) or slow(value, separators.ofmt)
        return string(value)

    return shown


def format_code(scope: Scope, arguments: list[n.Expr], line: int) -> StringCode:
    """sprintf() and printf: the format first, then the values."""
    if not arguments:

        def nothing_to_print(_frame: Frame) -> str:
            raise AwkFatal("printf: no arguments", line)

        return nothing_to_print
    if isinstance(arguments[0], n.Str):
        quick = _constant_format(scope, arguments[0].value, arguments[1:], line)
        if quick is not None:
            return quick
    form = scope.string(arguments[0])
    values = [scope.value(argument) for argument in arguments[1:]]
    conversion = scope.conversion
    charge_size = scope.runtime.charge_size

    def formatted(frame: Frame) -> str:
        text = form(frame)
        return sprintf(text, [value(frame) for value in values], conversion, line, charge_size)

    return formatted


def _constant_format(scope: Scope, form: str, arguments: list[n.Expr], line: int) -> StringCode | None:
    """A format known now whose conversions Python's % has too; None when it needs the general way."""
    plan = plan_format(form)
    if plan is None or len(plan.kinds) != len(arguments):
        return None
    template = plan.template
    codes = [
        scope.string(argument) if kind == "s" else scope.num(argument)
        for kind, argument in zip(plan.kinds, arguments, strict=True)
    ]
    conversion, charge_size = scope.conversion, scope.runtime.charge_size
    if not codes:
        literal = template % ()
        return lambda frame: literal
    whole = [place for place, kind in enumerate(plan.kinds) if kind == "d"]
    floats = [place for place, kind in enumerate(plan.kinds) if kind == "f"]

    def formatted(frame: Frame) -> str:
        values: list[Any] = [code(frame) for code in codes]
        raw = values
        try:
            if whole:
                raw = values.copy()
                for place in whole:
                    values[place] = int(values[place])
            for place in floats:
                if values[place] - values[place] != 0.0:
                    raise OverflowError
            return template % tuple(values)
        except (OverflowError, ValueError):
            return sprintf(form, raw, conversion, line, charge_size)

    return formatted
