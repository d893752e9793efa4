"""Compiles jq's syntax tree into Python functions: `Compiler.value` for outputs, `Compiler.path` for paths."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Any

from belljar.bin.jq import operators
from belljar.bin.jq.access import index, index_error, iterate_error, slice_of
from belljar.bin.jq.code import (
    EMPTY,
    MANY,
    ONE,
    OPT,
    Argument,
    Code,
    CompileProblem,
    Env,
    PathRun,
    Run,
    Runtime,
    Scope,
    Tail,
    Target,
    as_many,
    coerce,
    getter,
    root_scope,
)
from belljar.bin.jq.depth import Stack, weigh
from belljar.bin.jq.formats import FORMATS
from belljar.bin.jq.nodes import (
    Alternative,
    Array,
    Binary,
    Bind,
    BindArray,
    BindObject,
    BindVariable,
    BreakOut,
    Call,
    Comma,
    Define,
    Foreach,
    Format,
    Function,
    Identity,
    If,
    Index,
    Iterate,
    Label,
    Literal,
    Location,
    Logic,
    Negate,
    Node,
    Object,
    Pattern,
    Pipe,
    RecurseDefault,
    Reduce,
    Slice,
    Text,
    Try,
    Update,
    Variable,
)
from belljar.bin.jq.numbers import negate
from belljar.bin.jq.values import Break, JqError, Value, describe, is_number, type_error

BATCH = 1 << 16
Binder = Callable[[Value, Env], Any]


def identity(v: Value, e: Env) -> Value:
    return v


def fail_key(key: Value) -> JqError:
    return JqError(f"Cannot use {describe(key)} as object key")


class Compiler:
    """Compiles the filters of one program for one runtime."""

    def __init__(self, runtime: Runtime, globals_: dict[str, Value] | None = None) -> None:
        from belljar.bin.jq.paths import PathCompiler
        from belljar.bin.jq.updates import UpdateCompiler

        self.runtime = runtime
        self.charge = runtime.charge
        self.operators = operators.table(runtime)
        self.globals = globals_ or {}
        self.stack = Stack()
        self.current: Target | None = None
        self.file = "<top-level>"
        self.root = root_scope()
        self.paths = PathCompiler(self)
        self.updates = UpdateCompiler(self)
        self.library: dict[tuple[str, int], Scope] = {}
        self.search_list: list[str] = []
        self.describe_module: Callable[[str], Value] | None = None
        self.formats = FORMATS
        self.forms: dict[tuple[str, int], Any] = {}
        """Builtins of a dialect, looked at before jq's own."""
        self._compilers: dict[type, Callable[[Any, Scope, bool], Code]] = {
            Identity: lambda node, scope, tail: Code(ONE, identity),
            RecurseDefault: self.recurse_default,
            Literal: self.literal,
            Text: self.text,
            Format: self.format,
            Index: self.index,
            Slice: self.slice,
            Iterate: self.iterate,
            Negate: self.negate,
            Array: self.array,
            Object: self.object,
            Pipe: self.pipe,
            Comma: self.comma,
            Binary: self.binary,
            Logic: self.logic,
            Alternative: self.alternative,
            Update: lambda node, scope, tail: self.updates.update(node, scope),
            If: self.if_,
            Try: self.try_,
            Bind: self.bind,
            Reduce: self.reduce,
            Foreach: self.foreach,
            Label: self.label,
            BreakOut: self.break_out,
            Variable: self.variable,
            Location: self.location,
            Call: self.call,
            Define: self.define,
        }

    def value(self, node: Node, scope: Scope, tail: bool = False) -> Code:
        """Code for the outputs of `node`. `tail`: nothing happens to them but being the function's outputs."""
        return self._compilers[type(node)](node, scope, tail)

    def many(self, node: Node, scope: Scope) -> Callable[[Value, Env], Iterable[Value]]:
        return as_many(self.value(node, scope))

    def path(self, node: Node, scope: Scope) -> PathRun:
        return self.paths.path(node, scope)

    def argument(self, node: Node, scope: Scope) -> Argument:
        """`node` as a filter that a function may run in the scope it was written in."""
        current, self.current = self.current, None
        try:
            code = self.value(node, scope)
        finally:
            self.current = current
        return Argument(code, lambda: self.path(node, scope))

    # Constants and strings

    def literal(self, node: Literal, scope: Scope, tail: bool) -> Code:
        value = node.value
        return Code(ONE, lambda v, e: value)

    def location(self, node: Location, scope: Scope, tail: bool) -> Code:
        value = {"file": self.file, "line": node.line}
        return Code(ONE, lambda v, e: value)

    def format(self, node: Format, scope: Scope, tail: bool) -> Code:
        render = self.renderer(node.name)
        return Code(ONE, lambda v, e: render(v))

    def renderer(self, name: str) -> Callable[[Value], str]:
        render = self.formats.get(name)
        if render is None:
            raise CompileProblem(f"{name} is not a valid format")
        return render

    def text(self, node: Text, scope: Scope, tail: bool) -> Code:
        render = self.renderer(node.format)
        pieces: list[Any] = []
        simple = True
        for part in node.parts:
            if isinstance(part, str):
                pieces.append(part)
            else:
                code = self.value(part, scope)
                simple = simple and code.kind == ONE
                pieces.append(code)
        charge_size = self.runtime.charge_size

        def join(texts: list[str]) -> str:
            size = sum(map(len, texts))
            if size > BATCH:
                charge_size(size)
            return "".join(texts)

        if simple:
            runs = [piece if isinstance(piece, str) else piece.run for piece in pieces]
            return Code(
                ONE,
                lambda v, e: join(
                    [run if run.__class__ is str else render(run(v, e)) for run in runs]  # type: ignore[operator]
                ),
            )
        manys = [piece if isinstance(piece, str) else as_many(piece) for piece in pieces]

        def all_texts(v: Value, e: Env, count: int) -> Iterator[list[str]]:
            # The last interpolation is the outermost loop.
            if count == 0:
                yield []
                return
            piece = manys[count - 1]
            if isinstance(piece, str):
                for texts in all_texts(v, e, count - 1):
                    yield [*texts, piece]
                return
            for output in piece(v, e):
                rendered = render(output)
                for texts in all_texts(v, e, count - 1):
                    yield [*texts, rendered]

        return Code(MANY, lambda v, e: map(join, all_texts(v, e, len(manys))))

    # Access

    def index(self, node: Index, scope: Scope, tail: bool) -> Code:
        target = self.value(node.target, scope)
        key = node.key
        if isinstance(key, Literal):
            return self.constant_index(target, key.value)
        keys = self.value(key, scope)
        if target.kind == ONE and keys.kind == ONE:
            get, get_key = target.run, keys.run

            def one(v: Value, e: Env) -> Value:
                k = get_key(v, e)
                return index(get(v, e), k)

            return Code(ONE, one)
        each_target, each_key = as_many(target), as_many(keys)

        def run(v: Value, e: Env) -> Iterator[Value]:
            for k in each_key(v, e):
                for item in each_target(v, e):
                    yield index(item, k)

        return Code(MANY, run)

    def constant_index(self, target: Code, key: Value) -> Code:
        if key.__class__ is str:

            def field(v: Value, e: Env) -> Value:
                if v.__class__ is dict:
                    return v.get(key)
                if v is None:
                    return None
                raise index_error(v, key)

            after = field
        elif key.__class__ is int:

            def item(v: Value, e: Env) -> Value:
                if v.__class__ is list:
                    return v[key] if -len(v) <= key < len(v) else None
                return index(v, key)

            after = item
        else:

            def other(v: Value, e: Env) -> Value:
                return index(v, key)

            after = other
        if target.run is identity:
            return Code(ONE, after)
        if target.kind == ONE and key.__class__ is str:
            get = target.run

            def nested(v: Value, e: Env) -> Value:
                v = get(v, e)
                if v.__class__ is dict:
                    return v.get(key)
                if v is None:
                    return None
                raise index_error(v, key)

            return Code(ONE, nested)
        return self.then(target, Code(ONE, after))

    def slice(self, node: Slice, scope: Scope, tail: bool) -> Code:
        target = self.value(node.target, scope)
        start = self.value(node.start, scope) if node.start is not None else Code(ONE, lambda v, e: None)
        end = self.value(node.end, scope) if node.end is not None else Code(ONE, lambda v, e: None)
        if target.kind == start.kind == end.kind == ONE:
            get, first, last = target.run, start.run, end.run
            return Code(ONE, lambda v, e: slice_of(get(v, e), first(v, e), last(v, e)))
        targets, starts, ends = as_many(target), as_many(start), as_many(end)

        def run(v: Value, e: Env) -> Iterator[Value]:
            for low in starts(v, e):
                for high in ends(v, e):
                    for item in targets(v, e):
                        yield slice_of(item, low, high)

        return Code(MANY, run)

    def iterate(self, node: Iterate, scope: Scope, tail: bool) -> Code:
        charge = self.charge

        def items(v: Value, e: Env) -> Iterable[Value]:
            if v.__class__ is list:
                charge(len(v))
                return v  # type: ignore[no-any-return]
            if v.__class__ is dict:
                charge(len(v))
                return v.values()  # type: ignore[no-any-return]
            raise iterate_error(v)

        return self.then(self.value(node.target, scope), Code(MANY, items))

    def recurse_default(self, node: RecurseDefault, scope: Scope, tail: bool) -> Code:
        charge = self.charge

        def run(v: Value, e: Env) -> Iterator[Value]:
            stack: list[Value] = [v]
            while stack:
                v = stack.pop()
                if v.__class__ is list or v.__class__ is dict:
                    charge(len(v) + 1)
                    items = list(v if v.__class__ is list else v.values())
                    items.reverse()
                    stack += items
                yield v

        return Code(MANY, run)

    # Construction

    def collect(self, outputs: Iterable[Value]) -> list[Value]:
        """All outputs in a list, paid for as it grows."""
        if outputs.__class__ is list:
            return list(outputs)
        source = iter(outputs)
        result = list(islice(source, BATCH))
        while len(result) % BATCH == 0 and result:
            self.runtime.charge_size(len(result) * 8)
            more = list(islice(source, BATCH))
            if not more:
                break
            result += more
        return result

    def array(self, node: Array, scope: Scope, tail: bool) -> Code:
        if node.body is None:
            return Code(ONE, lambda v, e: [])
        code = self.value(node.body, scope)
        run = code.run
        if code.kind == ONE:
            return Code(ONE, lambda v, e: [run(v, e)])
        if code.kind == OPT:

            def optional(v: Value, e: Env) -> Value:
                output = run(v, e)
                return [] if output is EMPTY else [output]

            return Code(ONE, optional)
        collect = self.collect
        return Code(ONE, lambda v, e: collect(run(v, e)))

    def object(self, node: Object, scope: Scope, tail: bool) -> Code:
        entries = [(self.value(key, scope), self.value(value, scope)) for key, value in node.entries]
        if all(key.kind == value.kind == ONE for key, value in entries):
            if all(isinstance(key, Literal) for key, _ in node.entries):
                names = [key.value for key, _ in node.entries if isinstance(key, Literal)]
                runs = [value.run for _, value in entries]
                pairs = list(zip(names, runs, strict=True))
                if len(set(names)) == len(names):
                    return Code(ONE, lambda v, e: {name: run(v, e) for name, run in pairs})
            both = [(key.run, value.run) for key, value in entries]

            def build(v: Value, e: Env) -> Value:
                result = {}
                for get_key, get_value in both:
                    key = get_key(v, e)
                    if key.__class__ is not str:
                        raise fail_key(key)
                    result[key] = get_value(v, e)
                return result

            return Code(ONE, build)
        manys = [(as_many(key), as_many(value)) for key, value in entries]

        def product(v: Value, e: Env, position: int, result: dict[str, Value]) -> Iterator[Value]:
            if position == len(manys):
                yield result
                return
            keys, values = manys[position]
            for key in keys(v, e):
                if key.__class__ is not str:
                    raise fail_key(key)
                for value in values(v, e):
                    yield from product(v, e, position + 1, {**result, key: value})

        return Code(MANY, lambda v, e: product(v, e, 0, {}))

    # Composition

    def then(self, left: Code, right: Code) -> Code:
        """`left | right`."""
        first, second = left.run, right.run
        if first is identity:
            return right
        if second is identity:
            return left
        if left.kind == ONE:
            return Code(right.kind, lambda v, e: second(first(v, e), e))
        if left.kind == OPT:
            nothing: Any = () if right.kind == MANY else EMPTY

            def maybe(v: Value, e: Env) -> Any:
                output = first(v, e)
                return nothing if output is EMPTY else second(output, e)

            return Code(MANY if right.kind == MANY else OPT, maybe)
        if right.kind == ONE:
            return Code(MANY, lambda v, e: (second(output, e) for output in first(v, e)))
        if right.kind == OPT:

            def filtered(v: Value, e: Env) -> Iterator[Value]:
                for output in first(v, e):
                    result = second(output, e)
                    if result is not EMPTY:
                        yield result

            return Code(MANY, filtered)

        def chained(v: Value, e: Env) -> Iterator[Value]:
            for output in first(v, e):
                yield from second(output, e)

        return Code(MANY, chained)

    def pipe(self, node: Pipe, scope: Scope, tail: bool) -> Code:
        code = self.value(node.parts[0], scope)
        final = len(node.parts) - 1
        for position, part in enumerate(node.parts[1:], 1):
            code = self.then(code, self.value(part, scope, tail and position == final and code.kind != MANY))
        return code

    def comma(self, node: Comma, scope: Scope, tail: bool) -> Code:
        final = len(node.parts) - 1
        codes = [self.value(part, scope, tail and place == final) for place, part in enumerate(node.parts)]
        if all(code.kind == ONE for code in codes) and not tail:
            ones = [code.run for code in codes]

            def each(v: Value, e: Env) -> Iterator[Value]:
                for one in ones:
                    yield one(v, e)

            return Code(MANY, each)
        runs = [as_many(code) for code in codes]

        def run(v: Value, e: Env) -> Iterator[Value]:
            for many in runs:
                yield from many(v, e)

        return Code(MANY, run)

    # Operators

    def negate(self, node: Negate, scope: Scope, tail: bool) -> Code:
        def run(v: Value, e: Env) -> Value:
            if not is_number(v):
                raise type_error(v, "cannot be negated")
            return negate(v)

        return self.then(self.value(node.body, scope), Code(ONE, run))

    def binary(self, node: Binary, scope: Scope, tail: bool) -> Code:
        return self.apply(self.operators[node.operator], node.left, node.right, scope)

    def apply(self, function: Callable[[Value, Value], Value], left: Node, right: Node, scope: Scope) -> Code:
        """`function` over every pair of outputs; those of `right` are the outer loop."""
        code, other = self.value(left, scope), self.value(right, scope)
        first, second = code.run, other.run
        if code.kind == ONE and other.kind == ONE:
            if isinstance(right, Literal):
                constant = right.value
                return Code(ONE, lambda v, e: function(first(v, e), constant))

            def one(v: Value, e: Env) -> Value:
                argument = second(v, e)
                return function(first(v, e), argument)

            return Code(ONE, one)
        lefts, rights = as_many(code), as_many(other)

        def run(v: Value, e: Env) -> Iterator[Value]:
            for b in rights(v, e):
                for a in lefts(v, e):
                    yield function(a, b)

        return Code(MANY, run)

    def logic(self, node: Logic, scope: Scope, tail: bool) -> Code:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        first, second = left.run, right.run
        stop = node.operator == "or"
        if left.kind == ONE and right.kind == ONE:

            def one(v: Value, e: Env) -> bool:
                a = first(v, e)
                if (a is not None and a is not False) is stop:
                    return stop
                b = second(v, e)
                return b is not None and b is not False

            return Code(ONE, one)
        lefts, rights = as_many(left), as_many(right)

        def run(v: Value, e: Env) -> Iterator[bool]:
            for a in lefts(v, e):
                if (a is not None and a is not False) is stop:
                    yield stop
                    continue
                for b in rights(v, e):
                    yield b is not None and b is not False

        return Code(MANY, run)

    def alternative(self, node: Alternative, scope: Scope, tail: bool) -> Code:
        left, right = self.value(node.left, scope), self.value(node.right, scope)
        first, second = left.run, right.run
        if left.kind != MANY:
            many = right.kind == MANY

            def choose(v: Value, e: Env) -> Any:
                try:
                    output = first(v, e)
                except JqError:
                    return second(v, e)
                if output is None or output is False or output is EMPTY:
                    return second(v, e)
                return (output,) if many else output

            return Code(right.kind, choose)
        rights = as_many(right)

        def run(v: Value, e: Env) -> Iterator[Value]:
            found = False
            try:
                for output in first(v, e):
                    if output is not None and output is not False:
                        found = True
                        yield output
            except JqError:
                pass
            if not found:
                yield from rights(v, e)

        return Code(MANY, run)

    # Control

    def if_(self, node: If, scope: Scope, tail: bool) -> Code:
        condition = self.value(node.condition, scope)
        simple = condition.kind == ONE
        then = self.value(node.then, scope, tail and simple)
        otherwise = (
            self.value(node.otherwise, scope, tail and simple) if node.otherwise is not None else Code(ONE, identity)
        )
        kind = max(then.kind, otherwise.kind)
        yes, no, test = coerce(then, kind).run, coerce(otherwise, kind).run, condition.run
        if simple:

            def branch(v: Value, e: Env) -> Any:
                c = test(v, e)
                return no(v, e) if c is None or c is False else yes(v, e)

            return Code(kind, branch)
        each, yeses, noes = as_many(condition), as_many(then), as_many(otherwise)

        def run(v: Value, e: Env) -> Iterator[Value]:
            for c in each(v, e):
                yield from noes(v, e) if c is None or c is False else yeses(v, e)

        return Code(MANY, run)

    def try_(self, node: Try, scope: Scope, tail: bool) -> Code:
        body = self.value(node.body, scope)
        handler = self.value(node.handler, scope) if node.handler is not None else Code(OPT, lambda v, e: EMPTY)
        attempt, catch = body.run, handler.run
        if body.kind != MANY and handler.kind != MANY:

            def optional(v: Value, e: Env) -> Any:
                try:
                    return attempt(v, e)
                except JqError as error:
                    caught = error.value
                return catch(caught, e)

            return Code(max(body.kind, handler.kind), optional)
        attempts, handlers = as_many(body), as_many(handler)

        def run(v: Value, e: Env) -> Iterator[Value]:
            try:
                yield from attempts(v, e)
            except JqError as error:
                caught = error.value
            else:
                return
            yield from handlers(caught, e)

        return Code(MANY, run)

    def label(self, node: Label, scope: Scope, tail: bool) -> Code:
        body = self.value(node.body, scope.bind("label", node.name))
        inner = body.run
        if body.kind != MANY:

            def optional(v: Value, e: Env) -> Any:
                mark = object()
                try:
                    return inner(v, (mark, e))
                except Break as leaving:
                    if leaving.label is not mark:
                        raise
                return EMPTY

            return Code(OPT, optional)

        def run(v: Value, e: Env) -> Iterator[Value]:
            mark = object()
            try:
                yield from inner(v, (mark, e))
            except Break as leaving:
                if leaving.label is not mark:
                    raise

        return Code(MANY, run)

    def break_out(self, node: BreakOut, scope: Scope, tail: bool) -> Code:
        entry = scope.label(node.name)
        if entry is None:
            raise CompileProblem(f"$*label-{node.name} is not defined", node.at, len(node.name) + 1)
        get = getter(scope.depth - entry.depth)

        def run(v: Value, e: Env) -> Value:
            raise Break(get(v, e))

        return Code(OPT, run)

    # Bindings

    def variable(self, node: Variable, scope: Scope, tail: bool) -> Code:
        entry = scope.variable(node.name)
        if entry is not None:
            if entry.sort == "constant":
                return self.literal(Literal(entry.constant), scope, tail)
            return Code(ONE, getter(scope.depth - entry.depth))
        if node.name == "ENV":
            environment = self.runtime.environment
            return Code(ONE, lambda v, e: environment())
        if node.name in self.globals:
            return self.literal(Literal(self.globals[node.name]), scope, tail)
        raise CompileProblem(f"${node.name} is not defined", node.at, len(node.name) + 1)

    def binder(self, patterns: tuple[Pattern, ...], scope: Scope) -> tuple[int, Binder, Scope]:
        """How to extend an environment by one pattern: its kind, the function and the scope inside."""
        return self.pattern(patterns[0], scope)

    def pattern(self, pattern: Pattern, scope: Scope) -> tuple[int, Binder, Scope]:
        if isinstance(pattern, BindVariable):
            return ONE, lambda value, e: (value, e), scope.bind("variable", pattern.name)
        steps: list[tuple[Any, Binder, int]] = []
        kind = ONE
        if isinstance(pattern, BindArray):
            for place, item in enumerate(pattern.items):
                inner_kind, inner, scope = self.pattern(item, scope)
                kind = max(kind, inner_kind)
                steps.append((Code(ONE, self.array_item(place)), inner, inner_kind))
        else:
            assert isinstance(pattern, BindObject)
            for key, name, member in pattern.entries:
                getter_code = self.member(key, scope)
                kind = max(kind, getter_code.kind)
                if name is not None:
                    steps.append((getter_code, lambda value, e: (value, e), ONE))
                    scope = scope.bind("variable", name)
                if member is not None:
                    if name is not None:
                        getter_code = self.member(key, scope)
                    inner_kind, inner, scope = self.pattern(member, scope)
                    kind = max(kind, inner_kind)
                    steps.append((getter_code, inner, inner_kind))
        if kind == ONE:
            simple = [(code.run, inner) for code, inner, _ in steps]

            def bind(value: Value, e: Env) -> Env:
                for get, inner in simple:
                    e = inner(get(value, e), e)
                return e

            return ONE, bind, scope
        wide = [(as_many(code), inner if inner_kind == MANY else _each(inner)) for code, inner, inner_kind in steps]

        def product(value: Value, e: Env, position: int = 0) -> Iterator[Env]:
            if position == len(wide):
                yield e
                return
            gets, inner = wide[position]
            for part in gets(value, e):
                for extended in inner(part, e):
                    yield from product(value, extended, position + 1)

        return MANY, product, scope

    def array_item(self, place: int) -> Run:
        def get(v: Value, e: Env) -> Value:
            if v.__class__ is list:
                return v[place] if place < len(v) else None
            if v is None:
                return None
            raise JqError(f"Cannot index {operators.kind_name(v)} with number")

        return get

    def member(self, key: Node, scope: Scope) -> Code:
        keys = self.value(key, scope)

        def get(v: Value, k: Value) -> Value:
            if k.__class__ is not str:
                raise index_error(v, k)
            return index(v, k)

        if keys.kind == ONE:
            one = keys.run
            return Code(ONE, lambda v, e: get(v, one(v, e)))
        many = as_many(keys)
        return Code(MANY, lambda v, e: (get(v, k) for k in many(v, e)))

    def bind(self, node: Bind, scope: Scope, tail: bool) -> Code:
        source = self.value(node.source, scope)
        if len(node.patterns) > 1:
            return self.bind_alternatives(node, source, scope)
        kind, extend, inner = self.binder(node.patterns, scope)
        body = self.value(node.body, inner, tail and source.kind == kind == ONE)
        get, run = source.run, body.run
        if source.kind == ONE and kind == ONE:
            if isinstance(node.patterns[0], BindVariable):
                return Code(body.kind, lambda v, e: run(v, (get(v, e), e)))
            return Code(body.kind, lambda v, e: run(v, extend(get(v, e), e)))
        extends = extend if kind == MANY else _each(extend)
        sources, bodies = as_many(source), as_many(body)
        if kind == ONE and body.kind == ONE:
            return Code(MANY, lambda v, e: (run(v, extend(item, e)) for item in sources(v, e)))

        def each(v: Value, e: Env) -> Iterator[Value]:
            for item in sources(v, e):
                for extended in extends(item, e):
                    yield from bodies(v, extended)

        return Code(MANY, each)

    def alternatives(
        self, patterns: tuple[Pattern, ...], scope: Scope
    ) -> tuple[list[Callable[[Value, Env], Iterator[Env]]], Scope]:
        """`?//`: one binder a pattern, all ending in the same scope with every name of every pattern."""
        names = list(dict.fromkeys(name for pattern in patterns for name in pattern_names(pattern)))
        inner = scope
        for name in names:
            inner = inner.bind("variable", name)
        return [self.uniform(pattern, names, scope) for pattern in patterns], inner

    def uniform(self, pattern: Pattern, names: list[str], scope: Scope) -> Callable[[Value, Env], Iterator[Env]]:
        kind, extend, own = self.pattern(pattern, scope)
        extends = extend if kind == MANY else _each(extend)
        bound = set(pattern_names(pattern))
        reads: list[Run | None] = []
        for name in names:
            entry = own.variable(name) if name in bound else None
            reads.append(getter(own.depth - entry.depth) if entry is not None else None)

        def run(value: Value, e: Env) -> Iterator[Env]:
            for extended in extends(value, e):
                result = e
                for read in reads:
                    result = (read(None, extended) if read is not None else None, result)
                yield result

        return run

    def bind_alternatives(self, node: Bind, source: Code, scope: Scope) -> Code:
        binders, inner = self.alternatives(node.patterns, scope)
        sources, bodies = as_many(source), self.many(node.body, inner)

        def run(v: Value, e: Env) -> Iterator[Value]:
            for item in sources(v, e):
                for extends in binders[:-1]:
                    try:
                        for extended in extends(item, e):
                            yield from bodies(v, extended)
                    except JqError:
                        continue
                    break
                else:
                    for extended in binders[-1](item, e):
                        yield from bodies(v, extended)

        return Code(MANY, run)

    # Folds

    def fold_binder(
        self, patterns: tuple[Pattern, ...], scope: Scope
    ) -> tuple[Callable[[Value, Env], Iterable[Env]], Scope, bool]:
        """Binder for reduce and foreach; True if it just pushes the value."""
        if len(patterns) > 1:
            binders, inner = self.alternatives(patterns, scope)

            def first_that_fits(value: Value, e: Env) -> list[Env]:
                for extends in binders[:-1]:
                    try:
                        return list(extends(value, e))
                    except JqError:
                        continue
                return list(binders[-1](value, e))

            return first_that_fits, inner, False
        kind, extend, inner = self.binder(patterns, scope)
        return (extend if kind == MANY else _each(extend)), inner, isinstance(patterns[0], BindVariable)

    def reduce(self, node: Reduce, scope: Scope, tail: bool) -> Code:
        sources = self.many(node.source, scope)
        initial = self.value(node.initial, scope)
        extends, inner, plain = self.fold_binder(node.patterns, scope)
        charge = self.charge
        accumulate = self.updates.accumulator(node.update, inner)
        if accumulate is not None:
            step = accumulate

            def fold(state: Value, v: Value, e: Env) -> Value:
                owned: dict[int, Value] = {}
                for item in sources(v, e):
                    charge(1)
                    for extended in extends(item, e):
                        state = step(state, extended, owned)
                return state

        else:
            update = self.value(node.update, inner)
            run = update.run
            if update.kind == ONE and plain:

                def fold(state: Value, v: Value, e: Env) -> Value:
                    for item in sources(v, e):
                        charge(1)
                        state = run(state, (item, e))
                    return state

            else:
                updates = as_many(update)

                def fold(state: Value, v: Value, e: Env) -> Value:
                    for item in sources(v, e):
                        for extended in extends(item, e):
                            charge(1)
                            latest = None
                            for latest in updates(state, extended):  # noqa: B007 (the last one counts)
                                pass
                            state = latest
                    return state

        start = initial.run
        if initial.kind == ONE:
            return Code(ONE, lambda v, e: fold(start(v, e), v, e))
        starts = as_many(initial)
        return Code(MANY, lambda v, e: (fold(state, v, e) for state in starts(v, e)))

    def foreach(self, node: Foreach, scope: Scope, tail: bool) -> Code:
        sources = self.many(node.source, scope)
        starts = self.many(node.initial, scope)
        extends, inner, _ = self.fold_binder(node.patterns, scope)
        updates = self.many(node.update, inner)
        extract = self.value(node.extract, inner) if node.extract is not None else None
        extracts = as_many(extract) if extract is not None and extract.run is not identity else None
        charge = self.charge

        def run(v: Value, e: Env) -> Iterator[Value]:
            for state in starts(v, e):
                for item in sources(v, e):
                    for extended in extends(item, e):
                        charge(1)
                        latest = None
                        for latest in updates(state, extended):
                            if extracts is None:
                                yield latest
                            else:
                                yield from extracts(latest, extended)
                        state = latest

        return Code(MANY, run)

    # Functions

    def define(self, node: Define, scope: Scope, tail: bool) -> Code:
        return self.value(node.rest, scope.define(node.function), tail)

    def call(self, node: Call, scope: Scope, tail: bool) -> Code:
        from belljar.bin.jq.forms import FORMS
        from belljar.bin.jq.natives import NATIVES

        name, arity = node.name, len(node.arguments)
        entry = scope.callee(name, arity) or self.library.get((name, arity))
        if entry is None:
            form = self.forms.get((name, arity)) or FORMS.get((name, arity))
            if form is not None:
                return form(self, scope, node.arguments)
            native = NATIVES.get((name, arity))
            if native is not None:
                return self.native(native, node.arguments, scope)
            entry = self.prelude(name, arity)
        if entry is None:
            raise CompileProblem(f"{name}/{arity} is not defined", node.at, len(name))
        if entry.sort == "parameter":
            return Code(ONE, getter(scope.depth - entry.depth))
        if entry.sort == "filter":
            return self.call_filter(entry, scope)
        return self.call_function(entry, node.arguments, scope, tail)

    def prelude(self, name: str, arity: int) -> Scope | None:
        """The builtin of that name that is itself written in jq."""
        from belljar.bin.jq.prelude import definition

        function = definition(name, arity)
        if function is None:
            return None
        entry = self.root.define(function)
        self.library[name, arity] = entry
        return entry

    def native(self, function: Callable[..., Value], arguments: tuple[Node, ...], scope: Scope) -> Code:
        """A function of the input and of argument values; several outputs of the last are the outer loop."""
        codes = [self.value(argument, scope) for argument in arguments]
        if all(code.kind == ONE for code in codes):
            if not codes:
                return Code(ONE, lambda v, e: function(v))
            if len(codes) == 1:
                only = codes[0].run
                return Code(ONE, lambda v, e: function(v, only(v, e)))
            runs = [code.run for code in codes]
            return Code(ONE, lambda v, e: function(v, *[run(v, e) for run in runs]))
        manys = [as_many(code) for code in codes]

        def product(v: Value, e: Env, count: int, values: tuple[Value, ...]) -> Iterator[Value]:
            if count == 0:
                yield function(v, *values)
                return
            for value in manys[count - 1](v, e):
                yield from product(v, e, count - 1, (value, *values))

        return Code(MANY, lambda v, e: product(v, e, len(manys), ()))

    def call_filter(self, entry: Scope, scope: Scope) -> Code:
        get = getter(scope.depth - entry.depth)

        def run(v: Value, e: Env) -> Any:
            argument, env = get(v, e)
            return argument.code.run(v, env)

        if entry.kind != MANY:
            return Code(entry.kind, run)

        def many(v: Value, e: Env) -> Any:
            argument, env = get(v, e)
            return as_many(argument.code)(v, env)

        return Code(MANY, many)

    def closures(
        self, function: Function, arguments: tuple[Node, ...], scope: Scope
    ) -> tuple[tuple[int, ...], list[Any]]:
        """What each argument becomes: for a filter, a function of the environment that makes the closure."""
        kinds: list[int] = []
        made: list[Any] = []
        for parameter, node in zip(function.parameters, arguments, strict=True):
            if parameter[0] == "$":
                code = self.value(node, scope)
                made.append(code)
                continue
            passed = scope.callee(node.name, 0) if isinstance(node, Call) and not node.arguments else None
            if passed is not None and passed.sort == "filter":
                # A filter handed on as it came: no closure around a closure.
                kinds.append(passed.kind)
                made.append(_handed_on(scope.depth - passed.depth))
                continue
            argument = self.argument(node, scope)
            kinds.append(argument.code.kind)
            made.append(_closure(argument))
        return tuple(kinds), made

    def body_scope(self, entry: Scope, kinds: tuple[int, ...]) -> Scope:
        assert entry.function is not None
        scope, filters = entry, iter(kinds)
        for parameter in entry.function.parameters:
            if parameter[0] == "$":
                scope = scope.bind("parameter", parameter[1:])
            else:
                scope = scope.bind("filter", parameter, next(filters))
        return scope

    def target(self, entry: Scope, kinds: tuple[int, ...]) -> Target:
        """The function compiled for filters of these kinds. A recursive one is first assumed to be ONE."""
        known = entry.targets.get(kinds)
        if known is not None:
            if known.pending:
                known.recursive = True
            return known
        assert entry.function is not None
        scope = self.body_scope(entry, kinds)
        current, file = self.current, self.file
        assumed = ONE
        while True:
            target = Target(assumed, identity)
            entry.targets[kinds] = target
            self.current = target
            try:
                code = self.value(entry.function.body, scope, tail=True)
            finally:
                self.current, self.file = current, file
            target.pending = False
            if not target.recursive or code.kind <= assumed:
                break
            assumed = code.kind
        kind = assumed if target.recursive else code.kind
        target.kind = kind
        target.run = self.trampoline(coerce(code, kind), target, weigh(entry.function.body))
        return target

    def trampoline(self, code: Code, target: Target, weight: int) -> Run:
        """Calls a recursive function's body; its tail calls become turns of this loop."""
        body, charge, stack = code.run, self.charge, self.stack
        if not target.recursive:
            return body
        if code.kind != MANY:

            def loop(v: Value, e: Env) -> Any:
                charge(1)
                output = stack.run(weight, body, v, e)
                while output.__class__ is Tail:
                    charge(1)
                    output = stack.run(weight, body, output.value, output.env)
                return output

            return loop

        def loop_many(v: Value, e: Env) -> Iterator[Value]:
            charge(1)
            outputs = iter(stack.run(weight, body, v, e))
            while True:
                stack.push(weight)
                try:
                    output = next(outputs, EMPTY)
                finally:
                    stack.weight -= weight
                if output is EMPTY:
                    return
                if output.__class__ is Tail:
                    charge(1)
                    outputs = iter(stack.run(weight, body, output.value, output.env))
                else:
                    yield output

        return loop_many

    def call_function(self, entry: Scope, arguments: tuple[Node, ...], scope: Scope, tail: bool) -> Code:
        assert entry.function is not None
        kinds, made = self.closures(entry.function, arguments, scope)
        target = self.target(entry, kinds)
        up = scope.depth - entry.depth
        if all(not isinstance(item, Code) or item.kind == ONE for item in made):
            frame = _frame(up, [item.run if isinstance(item, Code) else None for item in made], made)
            if target.pending and tail and target is self.current:
                target.tail = True
                if target.kind == MANY:
                    return Code(MANY, lambda v, e: (Tail(v, frame(v, e)),))
                return Code(target.kind, lambda v, e: Tail(v, frame(v, e)))
            if target.pending:
                return Code(target.kind, lambda v, e: target.run(v, frame(v, e)))
            run = target.run
            if not made and up == 0:
                return Code(target.kind, run)
            return Code(target.kind, lambda v, e: run(v, frame(v, e)))
        frames = _frames(up, made)
        many = target.kind == MANY

        def each(v: Value, e: Env) -> Iterator[Value]:
            for inner in frames(v, e):
                output = target.run(v, inner)
                if many:
                    yield from output
                elif output is not EMPTY:
                    yield output

        return Code(MANY, each)


def pattern_names(pattern: Pattern) -> list[str]:
    if isinstance(pattern, BindVariable):
        return [pattern.name]
    if isinstance(pattern, BindArray):
        return [name for item in pattern.items for name in pattern_names(item)]
    names = []
    for _, name, member in pattern.entries:
        if name is not None:
            names.append(name)
        if member is not None:
            names += pattern_names(member)
    return names


def _each(extend: Binder) -> Callable[[Value, Env], Iterable[Env]]:
    return lambda value, e: (extend(value, e),)


def _closure(argument: Argument) -> Callable[[Env], Any]:
    return lambda e: (argument, e)


def _handed_on(up: int) -> Callable[[Env], Any]:
    get = getter(up)
    return lambda e: get(None, e)


def _frame(up: int, runs: list[Run | None], made: list[Any]) -> Callable[[Value, Env], Env]:
    """Makes the environment of a function's body from that of its call."""
    pairs = list(zip(runs, made, strict=True))
    if not pairs:
        if up == 0:
            return lambda v, e: e

        def outer(v: Value, e: Env) -> Env:
            for _ in range(up):
                e = e[1]
            return e

        return outer

    def frame(v: Value, e: Env) -> Env:
        inner = e
        for _ in range(up):
            inner = inner[1]
        for run, make in pairs:
            inner = (make(e) if run is None else run(v, e), inner)
        return inner

    return frame


def _frames(up: int, made: list[Any]) -> Callable[[Value, Env], Iterator[Env]]:
    """As `_frame`, once for every combination of the value arguments' outputs; the first is outermost."""
    steps = [as_many(item) if isinstance(item, Code) else item for item in made]
    values = [isinstance(item, Code) for item in made]

    def product(v: Value, e: Env, inner: Env, position: int) -> Iterator[Env]:
        if position == len(steps):
            yield inner
        elif values[position]:
            for value in steps[position](v, e):
                yield from product(v, e, (value, inner), position + 1)
        else:
            yield from product(v, e, (steps[position](e), inner), position + 1)

    def frames(v: Value, e: Env) -> Iterator[Env]:
        inner = e
        for _ in range(up):
            inner = inner[1]
        return product(v, e, inner, 0)

    return frames
