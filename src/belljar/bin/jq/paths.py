"""Compiles filters for their paths: each output comes with where in the input it was found.

A path is a chain `(outer, key)`, None at the root. A value that was computed rather than found has the path
INVALID: it may be looked at, but not walked into, and not be the answer.
"""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

from belljar.bin.jq.access import get_path, index, iterate_error, path_list
from belljar.bin.jq.builtins.registry import FORMS, NATIVES, PATH_FORMS
from belljar.bin.jq.code import INVALID, Code, CompileProblem, Env, Path, PathRun, PathTarget, Scope, as_many, getter
from belljar.bin.jq.depth import weigh
from belljar.bin.jq.errors import Break, JqError
from belljar.bin.jq.frames import frames_maker
from belljar.bin.jq.nodes import (
    Alternative,
    Bind,
    Call,
    Comma,
    Define,
    Foreach,
    Identity,
    If,
    Index,
    Iterate,
    Label,
    Literal,
    Node,
    Pipe,
    RecurseDefault,
    Reduce,
    Slice,
    Try,
)
from belljar.bin.jq.values import Value, clip
from belljar.bin.jq.writer import preview

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler

Pairs = Iterator[tuple[Path, Value]]
FIRST: dict[tuple[str, int], Value] = {("first", 0): 0, ("last", 0): -1}


def show(value: Value) -> str:
    return clip(preview(value))


def no_element(target: Value, key: Value) -> JqError:
    return JqError(f"Invalid path expression near attempt to access element {show(key)} of {show(target)}")


def no_items(target: Value) -> JqError:
    return JqError(f"Invalid path expression near attempt to iterate through {show(target)}")


def proper(path: Path, value: Value) -> list[Value]:
    """The path as a list of keys, if it is one."""
    if path is INVALID:
        raise JqError(f"Invalid path expression with result {show(value)}")
    return path_list(path)


def items_of(path: Path, target: Value) -> Pairs:
    if path is INVALID:
        raise no_items(target)
    if target.__class__ is list:
        for place, item in enumerate(target):
            yield (path, place), item
    elif target.__class__ is dict:
        for key, item in target.items():
            yield (path, key), item
    else:
        raise iterate_error(target)


class PathCompiler:
    def __init__(self, compiler: "Compiler") -> None:
        self.compiler = compiler
        self.charge = compiler.runtime.charge
        self._compilers: dict[type, Callable[[Any, Scope], PathRun]] = {
            Identity: lambda node, scope: lambda p, v, e: ((p, v),),
            RecurseDefault: self.recurse_default,
            Index: self.index,
            Slice: self.slice,
            Iterate: self.iterate,
            Pipe: self.pipe,
            Comma: self.comma,
            If: self.if_,
            Try: self.try_,
            Alternative: self.alternative,
            Bind: self.bind,
            Reduce: self.reduce,
            Foreach: self.foreach,
            Label: self.label,
            Define: lambda node, scope: self.path(node.rest, scope.define(node.function)),
            Call: self.call,
        }

    def path(self, node: Node, scope: Scope) -> PathRun:
        compile_ = self._compilers.get(type(node))
        if compile_ is not None:
            return compile_(node, scope)
        return self.computed(self.compiler.value(node, scope))

    def computed(self, code: Code) -> PathRun:
        """A filter that is no path by itself: what it hands through unchanged keeps its path."""
        outputs = as_many(code)

        def run(p: Path, v: Value, e: Env) -> Pairs:
            for output in outputs(v, e):
                yield (p if output is v else INVALID), output

        return run

    def keyed(self, node: Node, scope: Scope, keys: Callable[[Value, Env], Any]) -> PathRun:
        targets = self.path(node, scope)

        def run(p: Path, v: Value, e: Env) -> Pairs:
            for key in keys(v, e):
                for path, target in targets(p, v, e):
                    if path is INVALID:
                        raise no_element(target, key)
                    yield (path, key), index(target, key)

        return run

    def index(self, node: Index, scope: Scope) -> PathRun:
        return self.keyed(node.target, scope, self.compiler.many(node.key, scope))

    def slice(self, node: Slice, scope: Scope) -> PathRun:
        nothing = Literal(None)
        starts = self.compiler.many(node.start or nothing, scope)
        ends = self.compiler.many(node.end or nothing, scope)
        return self.keyed(
            node.target,
            scope,
            lambda v, e: ({"start": start, "end": end} for start in starts(v, e) for end in ends(v, e)),
        )

    def iterate(self, node: Iterate, scope: Scope) -> PathRun:
        targets, charge = self.path(node.target, scope), self.charge

        def run(p: Path, v: Value, e: Env) -> Pairs:
            for path, target in targets(p, v, e):
                charge(len(target) if target.__class__ in (list, dict) else 1)
                yield from items_of(path, target)

        return run

    def recurse_default(self, node: RecurseDefault, scope: Scope) -> PathRun:
        return self.recurse(lambda p, v, e: items_of(p, v) if v.__class__ in (list, dict) else ())

    def recurse(self, step: PathRun) -> PathRun:
        charge = self.charge

        def run(p: Path, v: Value, e: Env) -> Pairs:
            yield p, v
            stack = [iter(step(p, v, e))]
            while stack:
                for path, value in stack[-1]:
                    charge(1)
                    yield path, value
                    stack.append(iter(step(path, value, e)))
                    break
                else:
                    stack.pop()

        return run

    def pipe(self, node: Pipe, scope: Scope) -> PathRun:
        run = self.path(node.parts[0], scope)
        for part in node.parts[1:]:
            run = chain(run, self.path(part, scope))
        return run

    def comma(self, node: Comma, scope: Scope) -> PathRun:
        parts = [self.path(part, scope) for part in node.parts]

        def run(p: Path, v: Value, e: Env) -> Pairs:
            for part in parts:
                yield from part(p, v, e)

        return run

    def if_(self, node: If, scope: Scope) -> PathRun:
        tests = self.compiler.many(node.condition, scope)
        yes = self.path(node.then, scope)
        no = self.path(node.otherwise or Identity(), scope)

        def run(p: Path, v: Value, e: Env) -> Pairs:
            for c in tests(v, e):
                yield from no(p, v, e) if c is None or c is False else yes(p, v, e)

        return run

    def try_(self, node: Try, scope: Scope) -> PathRun:
        body = self.path(node.body, scope)
        handler = self.path(node.handler, scope) if node.handler is not None else None

        def run(p: Path, v: Value, e: Env) -> Pairs:
            try:
                yield from body(p, v, e)
            except JqError as error:
                caught = error.value
            else:
                return
            if handler is not None:
                yield from handler(INVALID, caught, e)

        return run

    def alternative(self, node: Alternative, scope: Scope) -> PathRun:
        left, right = self.path(node.left, scope), self.path(node.right, scope)

        def run(p: Path, v: Value, e: Env) -> Pairs:
            found = False
            for path, value in left(p, v, e):
                if value is not None and value is not False:
                    found = True
                    yield path, value
            if not found:
                yield from right(p, v, e)

        return run

    def bind(self, node: Bind, scope: Scope) -> PathRun:
        sources = self.compiler.many(node.source, scope)
        if len(node.patterns) > 1:
            binders, inner = self.compiler.alternatives(node.patterns, scope)
            bodies = self.path(node.body, inner)

            def attempt(p: Path, v: Value, e: Env) -> Pairs:
                for item in sources(v, e):
                    for place, extends in enumerate(binders, 1):
                        try:
                            for extended in extends(item, e):
                                yield from bodies(p, v, extended)
                            break
                        except JqError:
                            if place == len(binders):
                                raise

            return attempt
        binder, inner, _ = self.compiler.fold_binder(node.patterns, scope)
        body = self.path(node.body, inner)

        def run(p: Path, v: Value, e: Env) -> Pairs:
            for item in sources(v, e):
                for extended in binder(item, e):
                    yield from body(p, v, extended)

        return run

    def reduce(self, node: Reduce, scope: Scope) -> PathRun:
        sources = self.compiler.many(node.source, scope)
        starts = self.path(node.initial, scope)
        extends, inner, _ = self.compiler.fold_binder(node.patterns, scope)
        updates = self.path(node.update, inner)
        charge = self.charge

        def run(p: Path, v: Value, e: Env) -> Pairs:
            for start in starts(p, v, e):
                state = start
                for item in sources(v, e):
                    for extended in extends(item, e):
                        charge(1)
                        latest: tuple[Path, Value] = (INVALID, None)
                        for latest in updates(state[0], state[1], extended):  # noqa: B007
                            pass
                        state = latest
                yield state

        return run

    def foreach(self, node: Foreach, scope: Scope) -> PathRun:
        sources = self.compiler.many(node.source, scope)
        starts = self.path(node.initial, scope)
        extends, inner, _ = self.compiler.fold_binder(node.patterns, scope)
        updates = self.path(node.update, inner)
        extracts = self.path(node.extract or Identity(), inner)
        charge = self.charge

        def run(p: Path, v: Value, e: Env) -> Pairs:
            for start in starts(p, v, e):
                state = start
                for item in sources(v, e):
                    for extended in extends(item, e):
                        charge(1)
                        latest: tuple[Path, Value] = (INVALID, None)
                        for latest in updates(state[0], state[1], extended):
                            yield from extracts(latest[0], latest[1], extended)
                        state = latest

        return run

    def label(self, node: Label, scope: Scope) -> PathRun:
        body = self.path(node.body, scope.bind("label", node.name))

        def run(p: Path, v: Value, e: Env) -> Pairs:
            mark = object()
            try:
                yield from body(p, v, (mark, e))
            except Break as leaving:
                if leaving.label is not mark:
                    raise

        return run

    # Calls

    def call(self, node: Call, scope: Scope) -> PathRun:
        name, arity = node.name, len(node.arguments)
        compiler = self.compiler
        entry = scope.callee(name, arity) or compiler.library.get((name, arity))
        if entry is None:
            form = PATH_FORMS.get((name, arity))
            if form is not None:
                return form(self, scope, node.arguments)
            if (name, arity) in FIRST:
                return self.index(Index(Identity(), Literal(FIRST[name, arity])), scope)
            if (name, arity) in compiler.forms or (name, arity) in FORMS or (name, arity) in NATIVES:
                return self.computed(compiler.value(node, scope))
            entry = compiler.prelude(name, arity)
        if entry is None:
            raise CompileProblem(f"{name}/{arity} is not defined", node.at, len(name))
        if entry.sort == "filter":
            get = getter(scope.depth - entry.depth)

            def run(p: Path, v: Value, e: Env) -> Any:
                argument, env = get(v, e)
                return argument.path(p, v, env)

            return run
        return self.call_function(entry, node.arguments, scope)

    def call_function(self, entry: Scope, arguments: tuple[Node, ...], scope: Scope) -> PathRun:
        assert entry.function is not None
        kinds, made = self.compiler.closures(entry.function, arguments, scope)
        target = self.target(entry, kinds)
        frames = frames_maker(scope.depth - entry.depth, made)
        charge, stack = self.charge, self.compiler.stack
        weight = 2 * weigh(entry.function.body)

        def run(p: Path, v: Value, e: Env) -> Pairs:
            charge(1)
            for inner in frames(v, e):
                pairs = iter(target.run(p, v, inner))
                while True:
                    stack.push(weight)
                    try:
                        pair = next(pairs, None)
                    finally:
                        stack.weight -= weight
                    if pair is None:
                        break
                    yield pair

        return run

    def target(self, entry: Scope, kinds: tuple[int, ...]) -> PathTarget:
        known = entry.path_targets.get(kinds)
        if known is not None:
            return known
        assert entry.function is not None
        target = PathTarget(lambda p, v, e: ())
        entry.path_targets[kinds] = target
        target.run = self.path(entry.function.body, self.compiler.body_scope(entry, kinds))
        return target

    def getpath(self, argument: Node, scope: Scope) -> PathRun:
        paths = self.compiler.many(argument, scope)

        def run(p: Path, v: Value, e: Env) -> Pairs:
            for keys in paths(v, e):
                if p is INVALID:
                    raise no_element(v, keys)
                try:
                    value = get_path(v, keys)
                except JqError:
                    value = None
                path = p
                for key in keys:
                    path = (path, key)
                yield path, value

        return run


def chain(left: PathRun, right: PathRun) -> PathRun:
    def run(p: Path, v: Value, e: Env) -> Pairs:
        for path, value in left(p, v, e):
            yield from right(path, value, e)

    return run
