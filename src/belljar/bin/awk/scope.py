"""The scope that the parts of the compiler share: what is known of names, and the compilation of a node by its type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkFatal
from belljar.bin.awk.values import UNINIT, Array, Value, string_number, to_number, truth
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

NUM, STR, VAL, TEST, PRINT = "num", "str", "val", "test", "print"
"""Result types of a compiled expression: a float, a str, any value, a truth value. PRINT is only requested: a str for
fields, else any value."""

Code = Callable[[Frame], object]
"""A statement: it gives an int, a signal that ends the statements around it, or anything else (no value is an int)."""

BREAK, CONTINUE, NEXT, RETURN = 1, 2, 3, 4
"""The signals."""

BATCH = 512
"""Loop turns are charged in batches of this many."""

Compiled = tuple[str, Callable[[Frame], Any]]
ExpressionCompiler = Callable[["Scope", Any, str], Compiled]
"""Compiles a node for a user who wants a kind of result; the answer says which kind it really gives."""
StatementCompiler = Callable[["Scope", Any], Code]
BuiltinCompiler = Callable[["Scope", n.Builtin], Compiled]

_TEXT_FUNCTIONS = ("sprintf", "substr", "tolower", "toupper", "gensub", "strftime", "typeof")


class UserFunction:
    """A function of the program. `code` is set once its body is compiled."""

    __slots__ = ("code", "parameters")

    def __init__(self, parameters: list[str]) -> None:
        self.parameters = parameters
        self.code: Code = lambda frame: None

    def invoke(self, arguments: list[Value]) -> Value:
        """Call with values already evaluated, as a sort comparison is."""
        frame: Frame = [*arguments, *([UNINIT] * (len(self.parameters) - len(arguments) + 1))]
        self.code(frame)
        return frame[-1]


class Scope:
    """A program being compiled: its names and state, and the compilers of each type of node."""

    def __init__(
        self,
        tree: n.Program,
        runtime: Runtime,
        expressions: Mapping[type, ExpressionCompiler],
        statements: Mapping[type, StatementCompiler],
    ) -> None:
        self.tree = tree
        self.runtime = runtime
        self.names = Names(tree)
        self.record = runtime.record
        self.conversion = runtime.conversion
        self.function: n.Function | None = None
        self.locals: dict[str, int] = {}
        self.walking: dict[str, list[Value]] = {}
        """Loop variables that walk the fields, and where the loop holds the current one."""
        self.functions: dict[str, UserFunction] = {}
        """The program's functions; filled before bodies are compiled so that they may refer to each other."""
        self._expressions = expressions
        self._statements = statements

    # -- code for a node ----------------------------------------------------------------------------------------

    def compile(self, node: n.Expr, want: str) -> Compiled:
        return self._expressions[type(node)](self, node, want)

    def statement(self, node: n.Statement) -> Code:
        return self._statements[type(node)](self, node)

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
        if kind != VAL:
            return code

        def check(frame: Frame) -> object:
            value = code(frame)
            return value if type(value) is float else truth(value)

        return check

    def typed(self, node: n.Expr) -> Compiled:
        """Code for a value, of the static type of the node."""
        kind = self.kind(node)
        return kind, self.num(node) if kind == NUM else self.string(node) if kind == STR else self.value(node)

    # -- names --------------------------------------------------------------------------------------------------

    def kind(self, node: n.Expr) -> str:
        """The static type of `node`: NUM, STR, or VAL when only the run can tell."""
        match node:
            case n.Group():
                return self.kind(node.inner)
            case n.Num() | n.Binary() | n.Unary() | n.Incr() | n.AugAssign() | n.Compare() | n.Match():
                return NUM
            case n.And() | n.Or() | n.In() | n.Regex() | n.Getline():
                return NUM
            case n.Str() | n.Concat():
                return STR
            case n.Var(name=name):
                return NUM if name in ("NR", "NF", "FNR") and name not in self.locals else VAL
            case n.Builtin(name=name):
                return STR if name in _TEXT_FUNCTIONS else NUM
            case n.Assign():
                return self.kind(node.value)
        return VAL

    def is_array(self, name: str) -> bool:
        if name in self.locals:
            assert self.function is not None
            return name in self.names.array_parameters[self.function.name]
        return name in self.names.arrays

    def global_cell(self, node: n.Expr) -> list[Value] | None:
        """The cell of a global scalar without special meaning."""
        if not isinstance(node, n.Var) or node.name in self.locals or node.name in self.tree.functions:
            return None
        if self.is_array(node.name) or self.runtime.hook(node.name) is not None:
            return None
        return self.runtime.cell(node.name)

    def variable_place(self, node: n.Expr) -> tuple[list[Value] | None, int] | None:
        """Return where a plain variable is held: its cell, or (None) the frame, and the index there."""
        if isinstance(node, n.Var) and node.name in self.locals:
            return None if self.is_array(node.name) else (None, self.locals[node.name])
        cell = self.global_cell(node)
        return None if cell is None else (cell, 0)

    def global_array(self, node: n.Expr) -> Array | None:
        """The array itself when it is known now: a global one."""
        if isinstance(node, n.Var) and node.name not in self.locals:
            return self.runtime.array(node.name)
        return None

    def scalar_misuse(self, name: str, line: int) -> Callable[[Frame], Any]:
        def misuse(_frame: Frame) -> Any:
            raise AwkFatal(f"attempt to use array `{name}' in a scalar context", line)

        return misuse
