"""Builtins about paths and events: path, paths, del, pick, walk, tostream."""

from typing import TYPE_CHECKING

from belljar.bin.jq import streams
from belljar.bin.jq.access import delete_paths, get_path, set_path
from belljar.bin.jq.code import MANY, ONE, Code, Env, Scope, as_many
from belljar.bin.jq.paths import proper
from belljar.bin.jq.values import Value

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler


from belljar.bin.jq.builtins.registry import Arguments, form


@form("path", 1)
def path(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    paths = compiler.path(arguments[0], scope)
    return Code(MANY, lambda v, e: (proper(where, value) for where, value in paths(None, v, e)))


@form("del", 1)
def del_(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    found = compiler.path(arguments[0], scope)
    return Code(ONE, lambda v, e: delete_paths(v, [proper(where, value) for where, value in found(None, v, e)]))


@form("setpath", 2)
def setpath(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    charge = compiler.charge
    return compiler.native(lambda v, way, new: set_path(v, way, new, charge), arguments, scope)


@form("walk", 1)
def walk(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    code = compiler.value(arguments[0], scope)
    run, charge = code.run, compiler.charge
    outputs = as_many(code)

    # Lists rather than generators: plain calls may nest as deeply as values do.
    def all_of(v: Value, e: Env) -> list[Value]:
        charge(1)
        if v.__class__ is list:
            v = [output for item in v for output in all_of(item, e)]
        elif v.__class__ is dict:
            v = {key: output for key, item in v.items() for output in all_of(item, e)[:1]}
        return list(outputs(v, e))

    def one_of(v: Value, e: Env) -> Value:
        charge(1)
        if v.__class__ is list:
            v = [one_of(item, e) for item in v]
        elif v.__class__ is dict:
            v = {key: one_of(item, e) for key, item in v.items()}
        return run(v, e)

    return Code(ONE, one_of) if code.kind == ONE else Code(MANY, all_of)


@form("getpath", 1)
def getpath(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    return compiler.native(get_path, arguments, scope)


@form("tostream", 0)
def tostream(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    return Code(MANY, lambda v, e: streams.to_events(v))


@form("fromstream", 1)
def fromstream(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    events, charge = compiler.many(arguments[0], scope), compiler.charge
    return Code(MANY, lambda v, e: streams.from_events(events(v, e), charge))


@form("truncate_stream", 1)
def truncate_stream(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    events = compiler.many(arguments[0], scope)
    return Code(MANY, lambda v, e: streams.truncated(v, events(None, e)))
