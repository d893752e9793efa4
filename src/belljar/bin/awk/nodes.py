"""The syntax tree of an awk program: what the parser builds and the compiler walks."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass, field


@dataclass(slots=True)
class Num:
    value: float


@dataclass(slots=True)
class Str:
    value: str


@dataclass(slots=True)
class Regex:
    """`/re/`: a match against $0 as a value, a pattern where one is expected."""

    source: str
    line: int


@dataclass(slots=True)
class TypedRegex:
    """`@/re/`: a regular expression as a value."""

    source: str
    line: int


@dataclass(slots=True)
class Var:
    name: str
    line: int


@dataclass(slots=True)
class Index:
    array: Var | Index
    subscripts: list[Expr]
    line: int


@dataclass(slots=True)
class Field:
    index: Expr
    line: int


@dataclass(slots=True)
class Group:
    """A parenthesised expression; kept because `print (a)(b)` and `(x) in a` care."""

    inner: Expr


@dataclass(slots=True)
class Assign:
    target: Lvalue
    value: Expr
    line: int


@dataclass(slots=True)
class AugAssign:
    target: Lvalue
    operator: str
    value: Expr
    line: int


@dataclass(slots=True)
class Incr:
    target: Lvalue
    delta: float
    prefix: bool
    line: int


@dataclass(slots=True)
class Ternary:
    test: Expr
    yes: Expr
    no: Expr


@dataclass(slots=True)
class And:
    left: Expr
    right: Expr


@dataclass(slots=True)
class Or:
    left: Expr
    right: Expr


@dataclass(slots=True)
class In:
    subscripts: list[Expr]
    array: Var | Index


@dataclass(slots=True)
class Match:
    left: Expr
    right: Expr
    negated: bool
    line: int


@dataclass(slots=True)
class Compare:
    operator: str
    left: Expr
    right: Expr


@dataclass(slots=True)
class Concat:
    parts: list[Expr]


@dataclass(slots=True)
class Binary:
    operator: str
    left: Expr
    right: Expr
    line: int


@dataclass(slots=True)
class Unary:
    operator: str
    operand: Expr


@dataclass(slots=True)
class Getline:
    """kind: "" (main input), "<" (file), "|" (command), "|&" (coprocess)."""

    kind: str
    source: Expr | None
    target: Lvalue | None
    line: int


@dataclass(slots=True)
class Call:
    name: str
    arguments: list[Expr]
    line: int


@dataclass(slots=True)
class IndirectCall:
    name: str
    arguments: list[Expr]
    line: int


@dataclass(slots=True)
class Builtin:
    name: str
    arguments: list[Expr]
    line: int


_Operand = Num | Str | Regex | TypedRegex | Var | Index | Field | Group | Assign | AugAssign | Incr | Ternary | And | Or
Expr = _Operand | In | Match | Compare | Concat | Binary | Unary | Getline | Call | IndirectCall | Builtin
Lvalue = Var | Index | Field


@dataclass(slots=True)
class Print:
    """redirect: "" (standard output), ">", ">>", "|" or "|&"; formatted: printf."""

    arguments: list[Expr]
    redirect: str
    destination: Expr | None
    formatted: bool
    line: int


@dataclass(slots=True)
class ExprStatement:
    expression: Expr


@dataclass(slots=True)
class If:
    test: Expr
    yes: Statement
    no: Statement | None


@dataclass(slots=True)
class While:
    test: Expr
    body: Statement


@dataclass(slots=True)
class Do:
    body: Statement
    test: Expr


@dataclass(slots=True)
class For:
    start: Statement | None
    test: Expr | None
    step: Statement | None
    body: Statement


@dataclass(slots=True)
class ForIn:
    target: Lvalue
    array: Var | Index
    body: Statement
    line: int


@dataclass(slots=True)
class Block:
    statements: list[Statement]


@dataclass(slots=True)
class Break:
    pass


@dataclass(slots=True)
class Continue:
    pass


@dataclass(slots=True)
class Next:
    line: int


@dataclass(slots=True)
class NextFile:
    line: int


@dataclass(slots=True)
class Exit:
    status: Expr | None


@dataclass(slots=True)
class Return:
    value: Expr | None


@dataclass(slots=True)
class Delete:
    """subscripts is None for `delete array`."""

    array: Var | Index
    subscripts: list[Expr] | None
    line: int


@dataclass(slots=True)
class Case:
    """value is None for `default:`."""

    value: Expr | None
    body: list[Statement]


@dataclass(slots=True)
class Switch:
    subject: Expr
    cases: list[Case]


_Branch = If | While | Do | For | ForIn | Block | Switch
Statement = _Branch | Print | ExprStatement | Break | Continue | Next | NextFile | Exit | Return | Delete


@dataclass(slots=True)
class Rule:
    """A pattern-action pair; `end` makes it a range, `body` None means print."""

    pattern: Expr | None
    end: Expr | None
    body: Block | None


@dataclass(slots=True)
class Function:
    name: str
    parameters: list[str]
    body: Block
    line: int


@dataclass(slots=True)
class Program:
    begin: list[Block] = field(default_factory=list)
    end: list[Block] = field(default_factory=list)
    begin_file: list[Block] = field(default_factory=list)
    end_file: list[Block] = field(default_factory=list)
    rules: list[Rule] = field(default_factory=list)
    functions: dict[str, Function] = field(default_factory=dict)


def ungroup(node: Expr) -> Expr:
    """The expression inside parentheses."""
    while isinstance(node, Group):
        node = node.inner
    return node


def named(node: object) -> str | None:
    """The name of a variable; None if it is something else."""
    return node.name if isinstance(node, Var) else None


def constant_field(node: Expr) -> int:
    """The number of a field that is given by a constant, else -1."""
    if isinstance(node, Field) and isinstance(node.index, Num) and 0 <= node.index.value < 1e9:
        return int(node.index.value)
    return -1


ARRAY_ARGUMENTS = {"split": (1, 3), "patsplit": (1, 3), "match": (2,), "asort": (0, 1), "asorti": (0, 1)}
"""The arguments of built-in functions that are arrays, by place."""
