"""The builtins that take filters: control, selection, folding and path functions, compiled in place."""

from collections.abc import Callable, Iterable, Iterator
from math import inf, isnan
from typing import TYPE_CHECKING, Any

from belljar.bin.jq import dates, regex, streams
from belljar.bin.jq.access import Owned, delete_paths, get_path, iterate, iterate_error, set_path
from belljar.bin.jq.code import EMPTY, MANY, ONE, OPT, Code, Env, Path, PathRun, Scope, as_many
from belljar.bin.jq.nodes import Identity, Iterate, Literal, Node, RecurseDefault
from belljar.bin.jq.numbers import from_float, to_float
from belljar.bin.jq.paths import PathCompiler, proper
from belljar.bin.jq.values import (
    JqError,
    Value,
    compare,
    describe,
    equal,
    is_number,
    kind_name,
    sort_key,
    to_text,
    type_error,
    type_error2,
)

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler

Arguments = tuple[Node, ...]
Form = Callable[["Compiler", Scope, Arguments], Code]
PathForm = Callable[[PathCompiler, Scope, Arguments], PathRun]
FORMS: dict[tuple[str, int], Form] = {}
PATH_FORMS: dict[tuple[str, int], PathForm] = {}
EACH = Iterate(Identity())
SELF = Identity()
WHOLE_NUMBER = 2**53


def form(name: str, *arities: int) -> Callable[[Form], Form]:
    def register(function: Form) -> Form:
        for arity in arities:
            FORMS[name, arity] = function
        return function

    return register


def path_form(name: str, *arities: int) -> Callable[[PathForm], PathForm]:
    def register(function: PathForm) -> PathForm:
        for arity in arities:
            PATH_FORMS[name, arity] = function
        return function

    return register


def truthy(value: Value) -> bool:
    return value is not None and value is not False


# Nothing, errors, selection


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


# Repetition


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


@form("while", 2)
def while_(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    kept = select(compiler, scope, arguments[:1])
    step = compiler.value(arguments[1], scope)
    charge = compiler.charge
    if kept.kind == OPT and step.kind != MANY:
        test, run = kept.run, step.run

        def line(v: Value, e: Env) -> Iterator[Value]:
            while v is not EMPTY and test(v, e) is not EMPTY:
                charge(1)
                yield v
                v = run(v, e)

        return Code(MANY, line)
    tests, steps = as_many(kept), as_many(step)

    def tree(v: Value, e: Env) -> Iterator[Value]:
        charge(1)
        for _ in tests(v, e):
            yield v
            for output in steps(v, e):
                yield from tree(output, e)

    return Code(MANY, tree)


@form("until", 2)
def until(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    condition, step = compiler.value(arguments[0], scope), compiler.value(arguments[1], scope)
    charge = compiler.charge
    if condition.kind == ONE and step.kind != MANY:
        test, run = condition.run, step.run

        def line(v: Value, e: Env) -> Value:
            while v is not EMPTY:
                charge(1)
                c = test(v, e)
                if c is not None and c is not False:
                    return v
                v = run(v, e)
            return EMPTY

        return Code(step.kind, line)
    tests, steps = as_many(condition), as_many(step)

    def tree(v: Value, e: Env) -> Iterator[Value]:
        charge(1)
        for c in tests(v, e):
            if truthy(c):
                yield v
            else:
                for output in steps(v, e):
                    yield from tree(output, e)

    return Code(MANY, tree)


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


# Taking some of many outputs


def counted(name: str, what: str) -> Callable[[Value], float]:
    def check(count: Value) -> float:
        number = to_float(count) if is_number(count) else inf if compare(count, 0) > 0 else -inf
        if number < 0 or isnan(number):
            raise JqError(f"{name} doesn't support negative {what}")
        return number

    return check


check_limit = counted("limit", "count")
check_skip = counted("skip", "count")
check_nth = counted("nth", "indices")


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


@form("limit", 2)
def limit(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    counts, outputs = compiler.many(arguments[0], scope), compiler.many(arguments[1], scope)

    def run(v: Value, e: Env) -> Iterator[Value]:
        for count in counts(v, e):
            number = check_limit(count)
            if number:
                yield from take(outputs(v, e), number)

    return Code(MANY, run)


@form("skip", 2)
def skip(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    counts, outputs = compiler.many(arguments[0], scope), compiler.many(arguments[1], scope)

    def run(v: Value, e: Env) -> Iterator[Value]:
        for count in counts(v, e):
            number = check_skip(count)
            yield from drop(outputs(v, e), number)

    return Code(MANY, run)


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


@form("nth", 2)
def nth(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    counts, outputs = compiler.many(arguments[0], scope), compiler.many(arguments[1], scope)

    def run(v: Value, e: Env) -> Iterator[Value]:
        for count in counts(v, e):
            number = check_nth(count)
            yield from take(drop(outputs(v, e), number), 1)

    return Code(MANY, run)


@form("isempty", 1)
def isempty(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    outputs = compiler.many(arguments[0], scope)

    def run(v: Value, e: Env) -> bool:
        for _ in outputs(v, e):
            return False
        return True

    return Code(ONE, run)


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


@form("IN", 1, 2)
def in_(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    stream = compiler.many(arguments[-1], scope)
    if len(arguments) == 1:
        return Code(ONE, lambda v, e: any(equal(v, item) for item in stream(v, e)))
    sources = compiler.many(arguments[0], scope)
    return Code(ONE, lambda v, e: any(equal(source, item) for item in stream(v, e) for source in sources(v, e)))


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


# Keys: sort_by, group_by and their like


def keyed(name: str, finish: Callable[[list[tuple[Value, Value]]], Value]) -> None:
    @form(name, 1)
    def by(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
        code = compiler.value(arguments[0], scope)
        run, charge = code.run, compiler.charge
        many = as_many(code)

        def run_by(v: Value, e: Env) -> Value:
            if v.__class__ is not list:
                if v.__class__ is dict:
                    raise type_error2(
                        v, [[item] for item in v.values()], "cannot be sorted, as they are not both arrays"
                    )
                raise iterate_error(v)
            charge(len(v))
            if code.kind == ONE:
                pairs = [(simple_key(run(item, e)), item) for item in v]
            else:
                pairs = [([simple_key(part) for part in many(item, e)], item) for item in v]
            return finish(pairs)

        return Code(ONE, run_by)


def simple_key(value: Value) -> Any:
    return sort_key(value)


def first_of(pair: tuple[Value, Value]) -> Value:
    return pair[0]


def grouped(pairs: list[tuple[Value, Value]]) -> list[list[Value]]:
    pairs.sort(key=first_of)
    groups: list[list[Value]] = []
    current: Any = EMPTY
    for key, item in pairs:
        if key == current:
            groups[-1].append(item)
        else:
            groups.append([item])
            current = key
    return groups


keyed("sort_by", lambda pairs: [item for _, item in sorted(pairs, key=first_of)])
keyed("group_by", grouped)
keyed("unique_by", lambda pairs: [group[0] for group in grouped(pairs)])
keyed("min_by", lambda pairs: min(pairs, key=first_of)[1] if pairs else None)
keyed("max_by", lambda pairs: max(reversed(pairs), key=first_of)[1] if pairs else None)


# Entries, objects


@form("with_entries", 1)
def with_entries(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    outputs = compiler.many(arguments[0], scope)

    def run(v: Value, e: Env) -> Value:
        return from_entries(output for entry in to_entries(v) for output in outputs(entry, e))

    return Code(ONE, run)


def to_entries(v: Value) -> list[Value]:
    if v.__class__ is dict:
        return [{"key": key, "value": value} for key, value in v.items()]
    if v.__class__ is list:
        return [{"key": place, "value": value} for place, value in enumerate(v)]
    raise type_error(v, "has no keys")


def from_entries(entries: Iterable[Value]) -> dict[str, Value]:
    result: dict[str, Value] = {}
    for entry in entries:
        if entry.__class__ is not dict:
            raise JqError(f'Cannot index {kind_name(entry)} with "key"')
        key = None
        for name in ("key", "k", "name", "Name", "Key", "K"):
            key = entry.get(name)
            if key is not None and key is not False:
                break
        else:
            key = next((entry[name] for name in ("key", "k", "name", "Name", "Key", "K") if name in entry), None)
        if key.__class__ is not str:
            if key.__class__ in (list, dict):
                raise JqError(f"Cannot use {describe(key)} as object key")
            key = to_text(key)
        for name in ("value", "v", "Value", "V"):
            if name in entry:
                result[key] = entry[name]
                break
        else:
            result[key] = None
    return result


@form("INDEX", 1, 2)
def index_by(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    stream = compiler.many(arguments[0] if len(arguments) == 2 else EACH, scope)
    names = compiler.many(arguments[-1], scope)

    def run(v: Value, e: Env) -> Value:
        result: dict[str, Value] = {}
        for row in stream(v, e):
            for name in names(row, e):
                result[to_text(name)] = row
        return result

    return Code(ONE, run)


# Paths


@form("path", 1)
def path(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    paths = compiler.path(arguments[0], scope)
    return Code(MANY, lambda v, e: (proper(where, value) for where, value in paths(None, v, e)))


@form("paths", 0, 1)
def paths(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    walk = compiler.path(RecurseDefault(), scope)
    if arguments:
        tests = compiler.many(arguments[0], scope)
        return Code(
            MANY,
            lambda v, e: (
                proper(where, value)
                for where, value in walk(None, v, e)
                if where is not None
                for c in tests(value, e)
                if truthy(c)
            ),
        )
    return Code(MANY, lambda v, e: (proper(where, value) for where, value in walk(None, v, e) if where is not None))


@form("del", 1)
def del_(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    found = compiler.path(arguments[0], scope)
    return Code(ONE, lambda v, e: delete_paths(v, [proper(where, value) for where, value in found(None, v, e)]))


@form("to_entries", 0)
def to_entries_form(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    return Code(ONE, lambda v, e: to_entries(v))


@form("from_entries", 0)
def from_entries_form(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    return Code(ONE, lambda v, e: from_entries(iterate(v)))


@form("pick", 1)
def pick(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    found, charge = compiler.path(arguments[0], scope), compiler.charge

    def run(v: Value, e: Env) -> Value:
        result: Value = None
        owned: Owned = {}
        for where, value in found(None, v, e):
            way = proper(where, value)
            result = set_path(result, way, get_path(v, way), charge, owned)
        return result

    return Code(ONE, run)


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


# Event streams


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


# The world


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
    from belljar.bin.jq.natives import NATIVES
    from belljar.bin.jq.prelude import names

    everything = [*FORMS, *NATIVES, *names()]
    listed = [f"{name}/{arity}" for name, arity in everything if name[0] != "_"]
    return Code(ONE, lambda v, e: listed)


@form("getpath", 1)
def getpath(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    return compiler.native(get_path, arguments, scope)


@form("isvalid", 1)
def isvalid(compiler: "Compiler", scope: Scope, arguments: Arguments) -> Code:
    outputs = compiler.many(arguments[0], scope)

    def run(v: Value, e: Env) -> bool:
        try:
            for _ in outputs(v, e):
                pass
        except JqError:
            return False
        return True

    return Code(ONE, run)


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


# Dates


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


# The same builtins where they are used as paths


@path_form("empty", 0)
def path_empty(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    return lambda p, v, e: ()


@path_form("getpath", 1)
def path_getpath(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    return compiler.getpath(arguments[0], scope)


@path_form("nth", 1)
def path_nth(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    return compiler.keyed(SELF, scope, compiler.compiler.many(arguments[0], scope))


@path_form("recurse", 0, 1, 2)
def path_recurse(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    if not arguments:
        return compiler.recurse_default(RecurseDefault(), scope)
    step = compiler.path(arguments[0], scope)
    if len(arguments) == 2:
        tests, inner = compiler.compiler.many(arguments[1], scope), step

        def chosen(p: Path, v: Value, e: Env) -> Iterator[tuple[Path, Value]]:
            for where, value in inner(p, v, e):
                for c in tests(value, e):
                    if truthy(c):
                        yield where, value

        step = chosen
    return compiler.recurse(step)


@path_form("first", 1)
def path_first(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    run = compiler.path(arguments[0], scope)
    return lambda p, v, e: take(run(p, v, e), 1)


@path_form("last", 1)
def path_last(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    run = compiler.path(arguments[0], scope)

    def final(p: Path, v: Value, e: Env) -> Iterator[tuple[Path, Value]]:
        found: Any = None
        for found in run(p, v, e):  # noqa: B007 (the last one counts)
            pass
        if found is not None:
            yield found

    return final


def path_counted(name: str, check: Callable[[Value], float], part: Callable[..., Iterator[Any]]) -> None:
    @path_form(name, 2)
    def counted_paths(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
        counts, run = compiler.compiler.many(arguments[0], scope), compiler.path(arguments[1], scope)

        def some(p: Path, v: Value, e: Env) -> Iterator[tuple[Path, Value]]:
            for count in counts(v, e):
                yield from part(run(p, v, e), check(count))

        return some


path_counted("limit", check_limit, take)
path_counted("skip", check_skip, drop)
path_counted("nth", check_nth, lambda outputs, count: take(drop(outputs, count), 1))


@path_form("until", 2)
def path_until(compiler: PathCompiler, scope: Scope, arguments: Arguments) -> PathRun:
    tests, steps = compiler.compiler.many(arguments[0], scope), compiler.path(arguments[1], scope)
    charge = compiler.charge

    def run(p: Path, v: Value, e: Env) -> Iterator[tuple[Path, Value]]:
        charge(1)
        for c in tests(v, e):
            if truthy(c):
                yield p, v
            else:
                for where, value in steps(p, v, e):
                    yield from run(where, value, e)

    return run
