"""Compiles variables, destructuring patterns, reduce and foreach."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from belljar.bin.jq import operators
from belljar.bin.jq.access import index, index_error
from belljar.bin.jq.base import Binder, CompilerBase, identity
from belljar.bin.jq.code import MANY, ONE, Code, CompileProblem, Env, Run, Scope, as_many, getter
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.nodes import (
    Bind,
    BindArray,
    BindObject,
    BindVariable,
    Foreach,
    Literal,
    Node,
    Pattern,
    Reduce,
    Variable,
)
from belljar.bin.jq.values import Value


class Bindings(CompilerBase):
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
        """Return how to extend an environment by one pattern: its kind, the function and the scope inside."""
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
