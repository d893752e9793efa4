"""Compiles what joins filters: pipes, commas, alternatives, conditions, try and label."""

from collections.abc import Iterator
from typing import Any

from belljar.bin.jq.base import CompilerBase, identity
from belljar.bin.jq.code import EMPTY, MANY, ONE, OPT, Code, CompileProblem, Env, Scope, as_many, coerce, getter
from belljar.bin.jq.errors import Break, JqError
from belljar.bin.jq.nodes import Alternative, BreakOut, Comma, If, Label, Logic, Pipe, Try
from belljar.bin.jq.values import Value


class Control(CompilerBase):
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
                output = first(v, e)
                if output is None or output is False or output is EMPTY:
                    return second(v, e)
                return (output,) if many else output

            return Code(right.kind, choose)
        rights = as_many(right)

        def run(v: Value, e: Env) -> Iterator[Value]:
            found = False
            for output in first(v, e):
                if output is not None and output is not False:
                    found = True
                    yield output
            if not found:
                yield from rights(v, e)

        return Code(MANY, run)

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
