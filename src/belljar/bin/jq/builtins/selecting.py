"""Builtins that choose, fail, and take some of many outputs."""

from collections.abc import Callable, Iterable, Iterator
from math import inf, isnan
from typing import TYPE_CHECKING, Any

from belljar.bin.jq.access import iterate
from belljar.bin.jq.code import EMPTY, MANY, ONE, OPT, Code, Env, Path, PathRun, Scope, as_many
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.numbers import to_float
from belljar.bin.jq.values import Value, compare, is_number, type_error2

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler
    from belljar.bin.jq.paths import PathCompiler


from belljar.bin.jq.builtins.registry import EACH, SELF, Arguments, form, path_form, truthy


@form("empty", 0)
def empty(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    return Code(OPT, lambda v, e: EMPTY)


@form("error", 0, 1)
def error(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    def fail(v: Value, e: Env) -> Value:
        raise JqError(v)

    failing = Code(ONE, fail)
    return compiler.then(compiler.value(arguments[0], scope), failing) if arguments else failing


@form("not", 0)
def not_(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    return Code(ONE, lambda v, e: v is None or v is False)


@form("select", 1)
def select(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    condition = compiler.value(arguments[0], scope)
    test = condition.run
    if condition.kind == ONE:

        def keep(v: Value, e: Env) -> Value:
            c = test(v, e)
            return EMPTY if c is None or c is False else v

        return Code(OPT, keep)
    tests = as_many(condition)
    return Code(MANY, lambda v, e: (v for c in tests(v, e) if truthy(c)))


@form("map", 1)
def map_(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    code = compiler.value(arguments[0], scope)
    run, charge, collect = code.run, compiler.charge, compiler.collect

    def items(v: Value) -> Iterable[Value]:
        found = iterate(v)
        charge(len(found))  # type: ignore[arg-type]
        return found

    if code.kind == ONE:
        return Code(ONE, lambda v, e: [run(item, e) for item in items(v)])
    if code.kind == OPT:
        return Code(ONE, lambda v, e: [output for item in items(v) if (output := run(item, e)) is not EMPTY])
    return Code(ONE, lambda v, e: collect(output for item in items(v) for output in run(item, e)))


@form("map_values", 1)
def map_values(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    return compiler.updates.modify(EACH, compiler.value(arguments[0], scope), scope)


def counted(name: str, what: str) -> Callable[[Value], float]:
    def check(count: Value) -> float:
        number = to_float(count) if is_number(count) else inf if compare(count, 0) > 0 else -inf
        if number < 0 or isnan(number):
            raise JqError(f"{name} doesn't support negative {what}")
        return number

    return check


def take(outputs: Iterable[Any], count: float) -> Iterator[Any]:
    if count <= 0:
        return
    for output in outputs:
        yield output
        count -= 1
        if count <= 0:
            return


def drop(outputs: Iterable[Any], count: float) -> Iterator[Any]:
    for output in outputs:
        if count > 0:
            count -= 1
        else:
            yield output


def counted_form(name: str, check: Callable[[Value], float], part: Callable[..., Iterator[Any]]) -> None:
    @form(name, 2)
    def some(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
        counts, outputs = compiler.many(arguments[0], scope), compiler.many(arguments[1], scope)

        def run(v: Value, e: Env) -> Iterator[Value]:
            for count in counts(v, e):
                if (number := check(count)) or name != "limit":  # limit(0; f) does not run f
                    yield from part(outputs(v, e), number)

        return Code(MANY, run)

    @path_form(name, 2)
    def some_paths(compiler: "PathCompiler", scope: Scope, arguments: Arguments) -> PathRun:
        counts, paths = compiler.compiler.many(arguments[0], scope), compiler.path(arguments[1], scope)

        def run(p: Path, v: Value, e: Env) -> Iterator[tuple[Path, Value]]:
            for count in counts(v, e):
                yield from part(paths(p, v, e), check(count))

        return run


counted_form("limit", counted("limit", "count"), take)
counted_form("skip", counted("skip", "count"), drop)
counted_form("nth", counted("nth", "indices"), lambda outputs, count: take(drop(outputs, count), 1))


@form("first", 1)
def first(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    code = compiler.value(arguments[0], scope)
    run = code.run
    if code.kind != MANY:
        return code

    def one(v: Value, e: Env) -> Value:
        for output in run(v, e):
            return output
        return EMPTY

    return Code(OPT, one)


@form("last", 1)
def last(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    outputs = compiler.many(arguments[0], scope)

    def one(v: Value, e: Env) -> Value:
        output = EMPTY
        for output in outputs(v, e):  # noqa: B007 (the last one counts)
            pass
        return output

    return Code(OPT, one)


def quantifier(name: str, stop: bool) -> None:
    @form(name, 0, 1, 2)
    def quantified(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
        generator = arguments[0] if len(arguments) == 2 else EACH
        condition = arguments[-1] if arguments else SELF
        outputs = as_many(compiler.then(compiler.value(generator, scope), compiler.value(condition, scope)))

        def run(v: Value, e: Env) -> bool:
            for output in outputs(v, e):
                if (output is not None and output is not False) is stop:
                    return stop
            return not stop

        return Code(ONE, run)


quantifier("any", True)
quantifier("all", False)


@form("add", 0, 1)
def add(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    plus, charge, charge_size = compiler.operators["+"], compiler.charge, compiler.runtime.charge_size

    def total(outputs: Iterable[Value]) -> Value:
        source = iter(outputs)
        result = next(source, None)
        if result.__class__ is str:
            # Joining at the end is linear, adding one by one is not.
            parts, size = [result], len(result)
            for output in source:
                if output.__class__ is not str:
                    if output is None:
                        continue
                    result = plus("".join(parts), output)
                    break
                parts.append(output)
                size += len(output)
                charge_size(size)
            else:
                return "".join(parts)
        elif result.__class__ is list or result.__class__ is dict:
            gather: Any = list(result) if result.__class__ is list else dict(result)
            for output in source:
                if output is None:
                    continue
                if output.__class__ is not gather.__class__:
                    raise type_error2(gather, output, "cannot be added")
                charge(len(output))
                if gather.__class__ is list:
                    gather += output
                else:
                    gather.update(output)
                charge_size(len(gather) * 8)
            return gather
        for output in source:
            result = plus(result, output)
        return result

    if arguments:
        outputs = compiler.many(arguments[0], scope)
        return Code(ONE, lambda v, e: total(outputs(v, e)))
    return Code(ONE, lambda v, e: total(iterate(v)))
