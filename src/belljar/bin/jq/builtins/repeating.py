"""Builtins that repeat: recurse, repeat, while, until and range."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from belljar.bin.jq.code import EMPTY, MANY, ONE, Code, Env, Scope, as_many
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.nodes import Literal, RecurseDefault
from belljar.bin.jq.numbers import from_float, to_float
from belljar.bin.jq.values import Value, is_number

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler


from belljar.bin.jq.builtins.registry import Arguments, form
from belljar.bin.jq.builtins.selecting import select

WHOLE_NUMBER = 2**53


@form("recurse", 0, 1, 2)
def recurse(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    if not arguments:
        return compiler.recurse_default(RecurseDefault(), scope, False)
    step = compiler.value(arguments[0], scope)
    if len(arguments) == 2:
        step = compiler.then(step, select(compiler, scope, arguments[1:]))
    run, charge = step.run, compiler.charge
    if step.kind != MANY:

        def line(v: Value, e: Env) -> Iterator[Value]:
            while v is not EMPTY:
                charge(1)
                yield v
                v = run(v, e)

        return Code(MANY, line)

    def tree(v: Value, e: Env) -> Iterator[Value]:
        yield v
        stack = [iter(run(v, e))]
        while stack:
            for output in stack[-1]:
                charge(1)
                yield output
                stack.append(iter(run(output, e)))
                break
            else:
                stack.pop()

    return Code(MANY, tree)


@form("repeat", 1)
def repeat(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    outputs, charge = compiler.many(arguments[0], scope), compiler.charge

    def forever(v: Value, e: Env) -> Iterator[Value]:
        while True:
            charge(1)
            yield from outputs(v, e)

    return Code(MANY, forever)


@form("range", 1, 2, 3)
def range_(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    if len(arguments) == 1:
        arguments = (Literal(0), *arguments)
    codes = [compiler.value(argument, scope) for argument in arguments]
    if len(codes) == 2:
        codes.append(Code(ONE, lambda v, e: 1))
    charge = compiler.charge

    def count(start: Value, stop: Value, step: Value) -> Iterable[Value]:
        if not (is_number(start) and is_number(stop) and is_number(step)):
            raise JqError("Range bounds must be numeric")
        if start.__class__ is int and step.__class__ is int and abs(start) < WHOLE_NUMBER:
            limit = to_float(stop)
            if step and abs(step) < WHOLE_NUMBER and abs(limit) < WHOLE_NUMBER:
                whole = int(limit)
                end = whole if whole == limit else whole + (1 if limit > 0 and step > 0 else 0)
                if step < 0 and whole != limit and limit < 0:
                    end = whole - 1
                numbers = range(start, end, step)
                if len(numbers) <= 256:
                    charge(len(numbers))
                    return numbers
                return paid(numbers)
        return slowly(to_float(start), to_float(stop), to_float(step))

    def paid(numbers: range) -> Iterator[Value]:
        for first in range(0, len(numbers), 1024):
            part = numbers[first : first + 1024]
            charge(len(part))
            yield from part

    def slowly(start: float, stop: float, step: float) -> Iterator[Value]:
        if step > 0:
            while start < stop:
                charge(1)
                yield from_float(start)
                start += step
        elif step < 0:
            while start > stop:
                charge(1)
                yield from_float(start)
                start += step

    if all(code.kind == ONE for code in codes):
        first, last, by = (code.run for code in codes)
        return Code(MANY, lambda v, e: count(first(v, e), last(v, e), by(v, e)))
    firsts, lasts, bys = (as_many(code) for code in codes)

    def run(v: Value, e: Env) -> Iterator[Value]:
        for start in firsts(v, e):
            for stop in lasts(v, e):
                for step in bys(v, e):
                    yield from count(start, stop, step)

    return Code(MANY, run)
