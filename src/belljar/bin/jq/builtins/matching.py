"""Builtins that match regular expressions."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from belljar.bin.jq import regex
from belljar.bin.jq.code import EMPTY, MANY, ONE, Code, Env, Scope, as_many
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.nodes import Literal
from belljar.bin.jq.values import Value, kind_name, type_error, type_error2

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler


from belljar.bin.jq.builtins.registry import Arguments, form


@form("splits", 1, 2)
def splits(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    arguments = arguments if len(arguments) == 2 else (*arguments, Literal(None))
    charge = compiler.charge
    code = compiler.native(lambda v, re, flags: regex.split(v, re, flags, charge), arguments, scope)
    return compiler.then(code, Code(MANY, lambda v, e: v))


def matcher(name: str, result: Callable[..., Any], many: bool, arities: tuple[int, ...]) -> None:
    """`test`, `match` and their like: (re), (re; flags) or ([re, flags])."""

    @form(name, *arities)
    def matching(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
        charge = compiler.charge
        pair = len(arguments) == 2 or name == "scan"

        def call(v: Value, re: Value, flags: Value = None) -> Any:
            if not pair:
                if re.__class__ is list and re:
                    re, flags = re[0], re[1] if len(re) > 1 else None
                elif re.__class__ is not str:
                    raise JqError(f"{kind_name(re)} not a string or array")
            return result(v, re, flags, charge)

        code = compiler.native(call, arguments, scope)
        return compiler.then(code, Code(MANY, lambda v, e: v)) if many else code


matcher("test", regex.test, False, (1, 2))
matcher("match", regex.match, True, (1, 2))
matcher("capture", regex.capture, True, (1, 2))
matcher("scan", regex.scan, True, (1, 2))


@form("split", 2)
def split2(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    charge = compiler.charge
    return compiler.native(lambda v, re, flags: regex.split(v, re, flags, charge), arguments, scope)


def substitution(name: str, extra: str) -> None:
    @form(name, 2, 3)
    def substitute(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
        expressions = compiler.many(arguments[0], scope)
        replacement = compiler.value(arguments[1], scope)
        replacements = as_many(replacement)
        all_flags = compiler.many(arguments[2] if len(arguments) == 3 else Literal(""), scope)
        charge, charge_size = compiler.charge, compiler.runtime.charge_size

        def run(v: Value, e: Env) -> Iterator[Value]:
            for re in expressions(v, e):
                for flags in all_flags(v, e):
                    if flags is not None and flags.__class__ is not str:
                        raise type_error(flags, "is not a string")
                    edits = regex.find(v, re, (flags or "") + extra, charge)
                    results: list[list[str]] = []
                    previous = 0
                    for edit in edits:
                        gap = v[previous : edit.start()]
                        for place, insert in enumerate(replacements(regex.named(edit), e)):
                            if insert.__class__ is not str:
                                raise type_error2(gap, insert, "cannot be added")
                            if place == len(results):
                                results.append([])
                            results[place] += (gap, insert)
                        previous = edit.end()
                    if not results:
                        yield v
                        continue
                    for pieces in results:
                        charge_size(sum(map(len, pieces)))
                        yield "".join(pieces) + v[previous:]

        if replacement.kind == ONE and len(arguments) == 2:

            def one(v: Value, e: Env) -> Value:
                for output in run(v, e):
                    return output
                return EMPTY

            code = compiler.value(arguments[0], scope)
            if code.kind == ONE:
                return Code(ONE, one)
        return Code(MANY, run)


substitution("sub", "")
substitution("gsub", "g")
