"""Compiles constants, strings, access and construction."""

from collections.abc import Callable, Iterable, Iterator
from typing import Any

from belljar.bin.jq.access import index, index_error, iterate, iterate_error, slice_of
from belljar.bin.jq.base import BATCH, CompilerBase, identity
from belljar.bin.jq.code import EMPTY, MANY, ONE, OPT, Code, CompileProblem, Env, Scope, as_many
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.nodes import (
    Array,
    Binary,
    Format,
    Index,
    Iterate,
    Literal,
    Location,
    Negate,
    Node,
    Object,
    RecurseDefault,
    Slice,
    Text,
)
from belljar.bin.jq.numbers import negate
from belljar.bin.jq.values import Value, describe, is_number, type_error


class Expressions(CompilerBase):
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
                return v
            if v.__class__ is dict:
                charge(len(v))
                return v.values()
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
                    items = list(iterate(v))
                    items.reverse()
                    stack += items
                yield v

        return Code(MANY, run)

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


def fail_key(key: Value) -> JqError:
    return JqError(f"Cannot use {describe(key)} as object key")
