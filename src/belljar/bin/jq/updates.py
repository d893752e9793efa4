"""Compiles assignments: `=`, `|=`, `+=` and their like, and folds whose state is only ever updated.

Values are immutable, so each update copies the containers on its way. Inside one assignment, and inside one
`reduce`, containers just copied belong to nobody else yet; those are then changed in place.
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.bin.jq.access import Owned, delete_paths, get_path, index, iterate_error, put, set_path
from belljar.bin.jq.code import EMPTY, MANY, ONE, Code, Env, Scope, as_many
from belljar.bin.jq.nodes import (
    Array,
    Binary,
    Bind,
    BindVariable,
    Call,
    Identity,
    If,
    Index,
    Iterate,
    Literal,
    Location,
    Logic,
    Negate,
    Node,
    Object,
    Pipe,
    Text,
    Update,
    Variable,
)
from belljar.bin.jq.paths import proper
from belljar.bin.jq.values import Value

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler

Change = Callable[[Value], Value]
"""The new value for an old one, or EMPTY to delete it."""
Walker = Callable[[Value, Env, Change], Value]
Step = Callable[[Value, Env, Owned], Value]


class UpdateCompiler:
    def __init__(self, compiler: "Compiler") -> None:
        self.compiler = compiler

    def update(self, node: Update, scope: Scope) -> Code:
        if node.operator == "|":
            return self.modify(node.target, self.compiler.value(node.value, scope), scope)
        values = self.compiler.value(node.value, scope)
        walk = self.walker(node.target, scope) or self.walk_paths(node.target, scope)
        operator = self.compiler.operators.get(node.operator)
        if node.operator == "":

            def changed(v: Value, e: Env, right: Value) -> Value:
                return walk(v, e, lambda old: right)

        elif node.operator == "//":

            def changed(v: Value, e: Env, right: Value) -> Value:
                return walk(v, e, lambda old: right if old is None or old is False else old)

        else:
            assert operator is not None
            apply = operator

            def changed(v: Value, e: Env, right: Value) -> Value:
                return walk(v, e, lambda old: apply(old, right))

        run = values.run
        if values.kind == ONE:
            return Code(ONE, lambda v, e: changed(v, e, run(v, e)))
        many = as_many(values)
        return Code(MANY, lambda v, e: (changed(v, e, right) for right in many(v, e)))

    def modify(self, target: Node, code: Code, scope: Scope) -> Code:
        """`|=`: the first output of the right side; none deletes."""
        walk = self.walker(target, scope) or self.walk_paths(target, scope)
        run = code.run

        def first(v: Value, e: Env) -> Value:
            for output in run(v, e):
                return output
            return EMPTY

        change = first if code.kind == MANY else run

        def modified(v: Value, e: Env) -> Value:
            result = walk(v, e, lambda old: change(old, e))
            return None if result is EMPTY else result

        return Code(ONE, modified)

    # Walking straight down paths of `.a`, `.[n]`, `.[]` and `select`

    def walker(self, node: Node, scope: Scope) -> Walker | None:
        """Changes what `node` points at in one descent, if its paths cannot overlap."""
        if isinstance(node, Identity):
            return lambda v, e, change: change(v)
        if isinstance(node, Pipe):
            walkers = [self.walker(part, scope) for part in node.parts]
            walk = walkers[-1]
            for outer in reversed(walkers[:-1]):
                if outer is None or walk is None:
                    return None
                walk = _nest(outer, walk)
            return walk
        if isinstance(node, Index):
            if not isinstance(node.key, Literal | Variable):
                return None
            key = self.compiler.value(node.key, scope).run
            outer = self.walker(node.target, scope)
            return _nest(outer, self.member(key)) if outer is not None else None
        if isinstance(node, Iterate):
            outer = self.walker(node.target, scope)
            return _nest(outer, self.items()) if outer is not None else None
        if isinstance(node, Call) and node.name == "select" and len(node.arguments) == 1:
            if scope.callee("select", 1) is not None:
                return None
            condition = self.compiler.value(node.arguments[0], scope)
            if condition.kind != ONE:
                return None
            test = condition.run

            def selected(v: Value, e: Env, change: Change) -> Value:
                c = test(v, e)
                return v if c is None or c is False else change(v)

            return selected
        return None

    def member(self, key: Callable[[Value, Env], Value]) -> Walker:
        charge = self.compiler.charge

        def walk(v: Value, e: Env, change: Change) -> Value:
            k = key(v, e)
            old = index(v, k)
            new = change(old)
            if new is EMPTY:
                return v if v is None else delete_paths(v, [[k]])
            return put(v, k, new, charge)

        return walk

    def items(self) -> Walker:
        charge = self.compiler.charge

        def walk(v: Value, e: Env, change: Change) -> Value:
            if v.__class__ is list:
                charge(len(v))
                return [new for old in v if (new := change(old)) is not EMPTY]
            if v.__class__ is dict:
                charge(len(v))
                return {key: new for key, old in v.items() if (new := change(old)) is not EMPTY}
            raise iterate_error(v)

        return walk

    def walk_paths(self, node: Node, scope: Scope) -> Walker:
        """The general way: list the paths, then change the value at each in turn."""
        paths = self.compiler.path(node, scope)
        charge = self.compiler.charge

        def walk(v: Value, e: Env, change: Change) -> Value:
            result, doomed, owned = v, [], {}  # type: Value, list[Value], Owned
            for path, value in paths(None, v, e):
                keys = proper(path, value)
                charge(1)
                old = get_path(result, keys)
                new = change(old)
                if new is EMPTY:
                    doomed.append(keys)
                    continue
                if id(old) in owned and new.__class__ in (list, dict):
                    # The new value may hold the old one, even twice: nothing is surely ours any more.
                    owned.clear()
                result = set_path(result, keys, new, charge, owned)
            return delete_paths(result, doomed) if doomed else result

        return walk

    # Folds

    def accumulator(self, node: Node, scope: Scope) -> Step | None:
        """A fold's update as a step that changes the state in place where only the fold can see it."""
        if isinstance(node, Update) and node.operator != "|" and independent(node.value):
            return self.accumulate_update(node, scope)
        if isinstance(node, Binary) and node.operator == "+" and isinstance(node.left, Identity):
            return self.accumulate_sum(node, scope) if independent(node.right) else None
        if isinstance(node, Pipe):
            steps = [self.accumulator(part, scope) for part in node.parts]
            if any(step is None for step in steps):
                return None
            sure = [step for step in steps if step is not None]

            def each(state: Value, e: Env, owned: Owned) -> Value:
                for step in sure:
                    state = step(state, e, owned)
                return state

            return each
        if isinstance(node, If):
            return self.accumulate_if(node, scope)
        if isinstance(node, Bind) and len(node.patterns) == 1:
            return self.accumulate_bind(node, scope)
        return None

    def accumulate_if(self, node: If, scope: Scope) -> Step | None:
        condition = self.compiler.value(node.condition, scope)
        keep: Step = lambda state, e, owned: state  # noqa: E731
        yes = keep if isinstance(node.then, Identity) else self.accumulator(node.then, scope)
        no = (
            keep
            if node.otherwise is None or isinstance(node.otherwise, Identity)
            else self.accumulator(node.otherwise, scope)
        )
        if condition.kind != ONE or yes is None or no is None:
            return None
        test, then, otherwise = condition.run, yes, no

        def branch(state: Value, e: Env, owned: Owned) -> Value:
            c = test(state, e)
            return (otherwise if c is None or c is False else then)(state, e, owned)

        return branch

    def accumulate_bind(self, node: Bind, scope: Scope) -> Step | None:
        """`EXPR as $x | update`, where $x cannot hold a part of the state that is changed later."""
        if not isinstance(node.patterns[0], BindVariable) or not independent(node.source):
            return None
        source = self.compiler.value(node.source, scope)
        inner = self.accumulator(node.body, scope.bind("variable", node.patterns[0].name))
        if source.kind != ONE or inner is None:
            return None
        get, step = source.run, inner
        return lambda state, e, owned: step(state, (get(state, e), e), owned)

    def accumulate_update(self, node: Update, scope: Scope) -> Step | None:
        keys = self.straight(node.target, scope)
        value = self.compiler.value(node.value, scope)
        if keys is None or value.kind != ONE:
            return None
        run, charge = value.run, self.compiler.charge
        operator = self.compiler.operators.get(node.operator)
        plain = node.operator == ""
        alternative = node.operator == "//"
        appends = node.operator == "+" and isinstance(node.value, Array)

        def step(state: Value, e: Env, owned: Owned) -> Value:
            right = run(state, e)
            path = [key(state, e) for key in keys]
            if plain:
                return set_path(state, path, right, charge, owned)
            old = get_path(state, path)
            if alternative:
                new = right if old is None or old is False else old
            elif appends and old.__class__ is list and id(old) in owned:
                old += right
                return state
            else:
                assert operator is not None
                new = operator(old, right)
                if appends and new.__class__ is list:
                    owned[id(new)] = new
            return set_path(state, path, new, charge, owned)

        return step

    def accumulate_sum(self, node: Binary, scope: Scope) -> Step | None:
        value = self.compiler.value(node.right, scope)
        if value.kind != ONE:
            return None
        run, plus, charge_size = value.run, self.compiler.operators["+"], self.compiler.runtime.charge_size

        def step(state: Value, e: Env, owned: Owned) -> Value:
            right = run(state, e)
            kind = state.__class__
            if kind is right.__class__ and (kind is list or kind is dict):
                if id(state) not in owned:
                    state = list(state) if kind is list else dict(state)
                    owned[id(state)] = state
                if len(state) & 0xFFFF == 0xFFFF:
                    charge_size(len(state) * 8)
                if kind is list:
                    state += right
                else:
                    state.update(right)
                return state
            return plus(state, right)

        return step

    def straight(self, node: Node, scope: Scope) -> list[Callable[[Value, Env], Value]] | None:
        """The keys of a path like `.a[$k].b`, each evaluated on the state; None for any other path."""
        if isinstance(node, Identity):
            return []
        if isinstance(node, Pipe):
            found: list[Callable[[Value, Env], Value]] = []
            for part in node.parts:
                keys = self.straight(part, scope) if constant_keys(part) else None
                if keys is None:
                    return None
                found += keys
            return found
        if isinstance(node, Index):
            outer = self.straight(node.target, scope)
            key = self.compiler.value(node.key, scope)
            if outer is None or key.kind != ONE or not independent(node.key):
                return None
            return [*outer, key.run]
        return None


def _nest(outer: Walker, inner: Walker) -> Walker:
    return lambda v, e, change: outer(v, e, lambda part: inner(part, e, change))


def constant_keys(node: Node) -> bool:
    """True if no key of the path looks at `.`, which in a later stage of a pipe is no longer the state."""
    if isinstance(node, Index):
        return independent(node.key) and constant_keys(node.target)
    return isinstance(node, Identity)


def independent(node: Node) -> bool:
    """True if the outputs cannot contain a part of `.`: made of constants and variables alone."""
    match node:
        case Literal() | Variable() | Location():
            return True
        case Array(body):
            return body is None or independent(body)
        case Object(entries):
            return all(independent(key) and independent(value) for key, value in entries)
        case Index(target, key):
            return independent(target) and independent(key)
        case Pipe(parts):
            return independent(parts[0])
        case Binary(_, left, right) | Logic(_, left, right):
            return independent(left) and independent(right)
        case Negate(body):
            return independent(body)
        case Text(parts=pieces):
            return all(isinstance(piece, str) or independent(piece) for piece in pieces)
    return False
