"""Builtins that reach outside the program: inputs, messages, the environment, time, the end."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from belljar.bin.jq import dates
from belljar.bin.jq.code import EMPTY, MANY, ONE, Code, Env, Scope
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.nodes import Literal
from belljar.bin.jq.numbers import from_float, to_float
from belljar.bin.jq.values import Value, is_number, type_error

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler


from belljar.bin.jq.builtins.registry import FORMS, NATIVES, Arguments, form


@form("input", 0)
def input_(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    next_input = compiler.runtime.next_input

    def run(v: Value, e: Env) -> Value:
        try:
            return next_input()
        except StopIteration:
            raise JqError("break") from None

    return Code(ONE, run)


@form("inputs", 0)
def inputs(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    next_input, charge = compiler.runtime.next_input, compiler.charge

    def run(v: Value, e: Env) -> Iterator[Value]:
        while True:
            charge(1)
            try:
                value = next_input()
            except StopIteration:
                return
            yield value

    return Code(MANY, run)


@form("debug", 0, 1)
def debug(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    show = compiler.runtime.debug
    messages = compiler.many(arguments[0], scope) if arguments else None

    def run(v: Value, e: Env) -> Value:
        for message in messages(v, e) if messages is not None else (v,):
            show(message)
        return v

    return Code(ONE, run)


@form("stderr", 0)
def stderr(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    show = compiler.runtime.stderr

    def run(v: Value, e: Env) -> Value:
        show(v)
        return v

    return Code(ONE, run)


def world(name: str, read: Callable[["Compiler"], Callable[[], Value]]) -> None:
    @form(name, 0)
    def reader(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
        get = read(compiler)
        return Code(ONE, lambda v, e: get())


world("env", lambda compiler: compiler.runtime.environment)
world("now", lambda compiler: lambda: from_float(compiler.runtime.now()))
world("input_filename", lambda compiler: compiler.runtime.input_filename)
world("input_line_number", lambda compiler: compiler.runtime.input_line_number)
world("get_search_list", lambda compiler: lambda: compiler.search_list)


@form("modulemeta", 0)
def modulemeta(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    def run(v: Value, e: Env) -> Value:
        if v.__class__ is not str:
            raise JqError("modulemeta input module name must be a string")
        assert compiler.describe_module is not None
        return compiler.describe_module(v)

    return Code(ONE, run)


class Halt(Exception):
    """`halt` and `halt_error`: end the program now."""

    def __init__(self, status: int, message: Value = EMPTY) -> None:
        super().__init__()
        self.status = status
        self.message = message


@form("halt", 0)
def halt(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    def run(v: Value, e: Env) -> Value:
        raise Halt(0)

    return Code(ONE, run)


@form("halt_error", 0, 1)
def halt_error(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    def stop(v: Value, status: Value) -> Value:
        if not is_number(status):
            raise type_error(v, "halt_error/1: number required")
        raise Halt(int(to_float(status)), v)

    return compiler.native(stop, arguments or (Literal(5),), scope)


@form("builtins", 0)
def builtins(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    from belljar.bin.jq.prelude import names

    everything = [*FORMS, *NATIVES, *names()]
    listed = [f"{name}/{arity}" for name, arity in everything if name[0] != "_"]
    return Code(ONE, lambda v, e: listed)


def dated(name: str, function: Callable[..., Value], zoned: bool, arity: int) -> None:
    @form(name, arity)
    def date_form(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
        zone = compiler.runtime.zone
        if zoned:
            return compiler.native(lambda v, *rest: function(v, *rest, zone()), arguments, scope)
        return compiler.native(function, arguments, scope)


dated("gmtime", dates.gmtime, False, 0)
dated("mktime", dates.mktime, False, 0)
dated("strptime", dates.strptime, False, 1)
dated("localtime", dates.localtime, True, 0)
dated("strftime", lambda v, text: dates.format_time(v, text, "strftime", "UTC0"), False, 1)
dated("strflocaltime", lambda v, text, zone: dates.format_time(v, text, "strflocaltime", zone), True, 1)
