"""The table of builtins; each module beside this one adds its own."""

from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.bin.jq.code import Code, PathRun, Scope
from belljar.bin.jq.nodes import Identity, Iterate, Node
from belljar.bin.jq.values import Value

if TYPE_CHECKING:
    from belljar.bin.jq.compile import Compiler
    from belljar.bin.jq.paths import PathCompiler

Arguments = tuple[Node, ...]
Form = Callable[["Compiler", Scope, Arguments], Code]
PathForm = Callable[["PathCompiler", Scope, Arguments], PathRun]
FORMS: dict[tuple[str, int], Form] = {}
"""Builtins that are compiled in place, by name and number of arguments."""
PATH_FORMS: dict[tuple[str, int], PathForm] = {}
NATIVES: dict[tuple[str, int], Callable[..., Value]] = {}
"""Builtins that are plain functions of the input and the arguments' values."""
EACH = Iterate(Identity())
SELF = Identity()


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


def native(name: str, arity: int = 0) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        NATIVES[name, arity] = function
        return function

    return register


def truthy(value: Value) -> bool:
    return value is not None and value is not False
