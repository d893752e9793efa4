"""Compiles calls: of builtins, of filters given as arguments, and of functions, whose tail calls become loops."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, cast

from belljar.bin.jq.base import CompilerBase, identity
from belljar.bin.jq.builtins.registry import FORMS, NATIVES
from belljar.bin.jq.code import (
    EMPTY,
    MANY,
    ONE,
    Code,
    CompileProblem,
    Env,
    Run,
    Scope,
    Tail,
    Target,
    as_many,
    coerce,
    getter,
)
from belljar.bin.jq.depth import weigh
from belljar.bin.jq.frames import closure, frame_maker, frames_maker, handed_on
from belljar.bin.jq.nodes import Call, Define, Function, Node
from belljar.bin.jq.prelude import definition
from belljar.bin.jq.values import Value

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler


class Calls(CompilerBase):
    def define(self, node: Define, scope: Scope, tail: bool) -> Code:
        return self.value(node.rest, scope.define(node.function), tail)

    def call(self, node: Call, scope: Scope, tail: bool) -> Code:
        name, arity = node.name, len(node.arguments)
        entry = scope.callee(name, arity) or self.library.get((name, arity))
        if entry is None:
            form = self.forms.get((name, arity)) or FORMS.get((name, arity))
            if form is not None:
                return form(cast("Compiler", self), scope, node.arguments)
            native = NATIVES.get((name, arity))
            if native is not None:
                return self.native(native, node.arguments, scope)
            entry = self.prelude(name, arity)
        if entry is None:
            raise CompileProblem(f"{name}/{arity} is not defined", node.at, len(name))
        if entry.sort == "filter":
            return self.call_filter(entry, scope)
        return self.call_function(entry, node.arguments, scope, tail)

    def prelude(self, name: str, arity: int) -> Scope | None:
        """The builtin of that name that is itself written in jq."""
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
        """Compile the arguments: a filter becomes a function of the environment that makes the closure."""
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
                made.append(handed_on(scope.depth - passed.depth))
                continue
            argument = self.argument(node, scope)
            kinds.append(argument.code.kind)
            made.append(closure(argument))
        return tuple(kinds), made

    def body_scope(self, entry: Scope, kinds: tuple[int, ...]) -> Scope:
        assert entry.function is not None
        scope, filters = entry, iter(kinds)
        for parameter in entry.function.parameters:
            if parameter[0] == "$":
                scope = scope.bind("variable", parameter[1:])
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
            frame = frame_maker(up, [item.run if isinstance(item, Code) else None for item in made], made)
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
        frames = frames_maker(up, made)
        many = target.kind == MANY

        def each(v: Value, e: Env) -> Iterator[Value]:
            for inner in frames(v, e):
                output = target.run(v, inner)
                if many:
                    yield from output
                elif output is not EMPTY:
                    yield output

        return Code(MANY, each)
