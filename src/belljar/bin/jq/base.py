"""The interface between the parts of the compiler."""

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from belljar.bin.jq.code import Argument, Code, Env, PathRun, Runtime, Scope, Target, as_many
from belljar.bin.jq.depth import Stack
from belljar.bin.jq.nodes import Literal, Node
from belljar.bin.jq.values import Value

if TYPE_CHECKING:
    from belljar.bin.jq.paths import PathCompiler
    from belljar.bin.jq.updates import UpdateCompiler

BATCH = 1 << 16
Binder = Callable[[Value, Env], Any]


def identity(v: Value, e: Env) -> Value:
    return v


class CompilerBase:
    """The state of a compilation, and the methods its parts call across."""

    runtime: Runtime
    charge: Callable[[int], None]
    operators: dict[str, Callable[[Value, Value], Value]]
    globals: dict[str, Value]
    stack: Stack
    current: Target | None
    """The function whose body is being compiled."""
    file: str
    root: Scope
    paths: "PathCompiler"
    updates: "UpdateCompiler"
    library: dict[tuple[str, int], Scope]
    """Functions every program can call, that are written in jq."""
    formats: dict[str, Callable[[Value], str]]
    forms: dict[tuple[str, int], Any]
    """Builtins of a dialect, looked at before jq's own."""

    def value(self, node: Node, scope: Scope, tail: bool = False) -> Code:
        """Code for the outputs of `node`. `tail`: nothing happens to them but being the function's outputs."""
        raise NotImplementedError

    def many(self, node: Node, scope: Scope) -> Callable[[Value, Env], Iterable[Value]]:
        return as_many(self.value(node, scope))

    def path(self, node: Node, scope: Scope) -> PathRun:
        raise NotImplementedError

    def argument(self, node: Node, scope: Scope) -> Argument:
        """`node` as a filter that a function may run in the scope it was written in."""
        raise NotImplementedError

    def then(self, left: Code, right: Code) -> Code:
        """`left | right`."""
        raise NotImplementedError

    def literal(self, node: Literal, scope: Scope, tail: bool) -> Code:
        raise NotImplementedError

    def collect(self, outputs: Iterable[Value]) -> list[Value]:
        """All outputs in a list, paid for as it grows."""
        raise NotImplementedError
