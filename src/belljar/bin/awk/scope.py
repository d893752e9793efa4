"""The base of the compiler: how an expression is compiled for the type its user wants."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.values import Array, Value, string_number, to_number, truth
from belljar.bin.awk.walk import Names

if TYPE_CHECKING:
    from belljar.bin.awk.runtime import Runtime

Frame = list[Value]
"""The parameters and locals of one call, then its return value. Rules run with an empty one."""

NumberCode = Callable[[Frame], float]
StringCode = Callable[[Frame], str]
ValueCode = Callable[[Frame], Value]
TestCode = Callable[[Frame], object]
ArrayCode = Callable[[Frame], Array]
StoreCode = Callable[[Frame, Value], None]

NUM, STR, VAL, TEST = "num", "str", "val", "test"
"""What a compiled expression gives: a float, a str, any value, something only its truth of which counts."""

Code = Callable[[Frame], int | None]
"""A statement: None, or a signal that ends the statements around it."""

BREAK, CONTINUE, NEXT, RETURN = 1, 2, 3, 4
"""The signals."""

BATCH = 512
"""Loop turns are charged in batches of this many."""

Compiled = tuple[str, Callable[[Frame], Any]]


class Scope:
    """State shared by the parts of the compiler, and the conversions between kinds of compiled code."""

    def __init__(self, tree: n.Program, runtime: Runtime) -> None:
        self.tree = tree
        self.runtime = runtime
        self.names = Names(tree)
        self.record = runtime.record
        self.conversion = runtime.conversion
        self.function: n.Function | None = None
        self.locals: dict[str, int] = {}
        self.walking: dict[str, list[Value]] = {}
        """Loop variables that walk the fields, and where the loop holds the current one."""
        self.functions: dict[str, Any] = {}
        """By name, the compiled function; filled before bodies are compiled so that they may refer to each other."""

    def compile(self, node: n.Expr, want: str) -> Compiled:
        """Compile `node`, knowing what its user wants; the answer says what kind it really gives."""
        method = getattr(self, "expr_" + type(node).__name__.lower())
        compiled: Compiled = method(node, want)
        return compiled

    def num(self, node: n.Expr) -> NumberCode:
        kind, code = self.compile(node, NUM)
        if kind == NUM:
            return code
        if kind == TEST:
            return lambda frame: 1.0 if code(frame) else 0.0
        if kind == STR:
            return lambda frame: string_number(code(frame))

        def number(frame: Frame) -> float:
            value = code(frame)
            return value if type(value) is float else to_number(value)

        return number

    def string(self, node: n.Expr) -> StringCode:
        kind, code = self.compile(node, STR)
        if kind == STR:
            return code
        if kind == TEST:
            return lambda frame: "1" if code(frame) else "0"
        convert = self.conversion.string
        if kind == NUM:
            get, spell = self.conversion.cache.get, self.conversion.number

            def text_of_number(frame: Frame) -> str:
                number = code(frame)
                return get(number) or spell(number)

            return text_of_number

        def text(frame: Frame) -> str:
            value = code(frame)
            return value if type(value) is str else convert(value)

        return text

    def value(self, node: n.Expr) -> ValueCode:
        kind, code = self.compile(node, VAL)
        if kind == TEST:
            return lambda frame: 1.0 if code(frame) else 0.0
        return code

    def test(self, node: n.Expr) -> TestCode:
        """Code whose result is to be used for its truth only."""
        kind, code = self.compile(node, TEST)
        if kind == VAL:

            def check(frame: Frame) -> object:
                value = code(frame)
                return value if type(value) is float else truth(value)

            return check
        return code

    def is_local(self, name: str) -> bool:
        return name in self.locals

    def is_array(self, name: str) -> bool:
        if name in self.locals:
            assert self.function is not None
            return name in self.names.array_parameters[self.function.name]
        return name in self.names.arrays

    def scalar_misuse(self, name: str, line: int) -> Callable[[Frame], Any]:
        def misuse(_frame: Frame) -> Any:
            raise AwkFatal(f"attempt to use array `{name}' in a scalar context", line)

        return misuse
