"""Compiles jq's syntax tree into Python functions: `Compiler.value` for outputs, `Compiler.path` for paths."""

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from belljar.bin.jq import operators
from belljar.bin.jq.base import BATCH, identity
from belljar.bin.jq.bindings import Bindings
from belljar.bin.jq.builtins import (  # noqa: F401 (importing them fills the registry)
    arrays,
    grouping,
    matching,
    mathematics,
    pathwise,
    repeating,
    selecting,
    texts,
    tracing,
    world,
)
from belljar.bin.jq.calls import Calls
from belljar.bin.jq.code import ONE, Argument, Code, Env, PathRun, Runtime, Scope, Target, as_many, root_scope
from belljar.bin.jq.control import Control
from belljar.bin.jq.depth import Stack
from belljar.bin.jq.expressions import Expressions
from belljar.bin.jq.formats import FORMATS
from belljar.bin.jq.nodes import (
    Alternative,
    Array,
    Binary,
    Bind,
    BreakOut,
    Call,
    Comma,
    Define,
    Foreach,
    Format,
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
    Pipe,
    RecurseDefault,
    Reduce,
    Slice,
    Text,
    Try,
    Update,
    Variable,
)
from belljar.bin.jq.paths import PathCompiler
from belljar.bin.jq.updates import UpdateCompiler
from belljar.bin.jq.values import Value


class Compiler(Expressions, Control, Bindings, Calls):
    """Compiles the filters of one program for one runtime."""

    def __init__(self, runtime: Runtime, globals_: dict[str, Value] | None = None) -> None:
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
