"""The parser of bash's arithmetic, used on the text of a script and, at run time, on expanded text."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from belljar.shell.nodes import (
    ArithAssign,
    ArithBinary,
    ArithConditional,
    ArithIncrement,
    ArithNode,
    ArithNumber,
    ArithSubst,
    ArithUnary,
    ArithVariable,
    Index,
    WordPart,
)
from belljar.shell.parse.errors import ArithSyntaxError, ShellSyntaxError

#: Stands in the text for an expansion whose value isn't known yet.
SUBST = "\ue0f0"

MAX_NESTING = 100
#: Levels of a[a[a[...]]]; each is searched for its end, so it must not be many.
MAX_SUBSCRIPTS = 20

NAME, NUMBER, PLACEHOLDER, PREFIX, POSTFIX, ASSIGN, END = "name", "number", "subst", "prefix", "postfix", "assign", ""

TOKEN = re.compile(
    r"[ \t\n\r]*(?:([A-Za-z_][A-Za-z0-9_]*)|([0-9][0-9A-Za-z#@_]*)"
    r"|(<<=|>>=|\*\*|&&|\|\||==|!=|<=|>=|<<|>>|[-*/%+&^|]=|\+\+|--|[-+*/%&^|<>=!~?:,()])|(" + SUBST + r")|(\Z))"
)
BRACKET = re.compile(r"[\[\]]")
NEXT_IS_NAME = re.compile(r"[ \t\n\r]*[A-Za-z_]")

PRECEDENCE = {
    "||": 1, "&&": 2, "|": 3, "^": 4, "&": 5, "==": 6, "!=": 6, "<": 7, "<=": 7, ">": 7, ">=": 7,
    "<<": 8, ">>": 8, "+": 9, "-": 9, "*": 10, "/": 10, "%": 10,
}  # fmt: skip
ASSIGNMENTS = {"=": "", "<<=": "<<", ">>=": ">>"} | {op + "=": op for op in "*/%+-&^|"}
OPERATORS = frozenset(PRECEDENCE) | {"**", "!", "~", "?", ":", ",", "(", ")", PREFIX, ASSIGN, END}

#: Reads the subscript in a text whose `[` is at the first number: its Index, and where its `]` is. ShellSyntaxError.
#: The second number says how many placeholders stand before it.
SubscriptReader = Callable[[str, int, int], tuple[Index, int]]


def wrap(value: int) -> int:
    """`value` reduced to a signed 64-bit integer."""
    return (value + 0x8000000000000000 & 0xFFFFFFFFFFFFFFFF) - 0x8000000000000000


def bracket_depth(text: str) -> int:
    deepest = depth = 0
    for match in BRACKET.finditer(text):
        if match.group() == "[":
            depth += 1
            deepest = max(deepest, depth)
        elif match.group() == "]":
            depth -= 1
    return deepest


def digit_value(char: str, base: int) -> int:
    if char.isdecimal():
        return ord(char) - 48
    if "a" <= char <= "z":
        return ord(char) - 87
    if "A" <= char <= "Z":
        return ord(char) - (55 if base <= 36 else 29)
    return {"@": 62, "_": 63}.get(char, 64)


def parse_number(token: str) -> int:
    """The value of an integer constant; raises ValueError with bash's message."""
    if token.isdecimal() and token[0] != "0":
        # Python refuses absurdly long decimal strings; bash just wraps, so only the low digits can matter.
        return wrap(int(token)) if len(token) < 1000 else _in_base(token, 10)
    if token[:2] in ("0x", "0X"):
        return _in_base(token[2:], 16)
    if token[0] == "0":
        return _in_base(token, 8)
    if "#" not in token:
        return _in_base(token, 10)
    head, _, digits = token.partition("#")
    base = _in_base(head, 10)
    if not 2 <= base <= 64:
        raise ValueError("invalid arithmetic base")
    if not digits or digits[0] == "#":
        raise ValueError("invalid integer constant")
    return _in_base(digits, base)


def _in_base(digits: str, base: int) -> int:
    value = 0
    for char in digits:
        if char == "#":
            raise ValueError("invalid number")
        digit = digit_value(char, base)
        if digit >= base:
            raise ValueError("value too great for base")
        value = value * base + digit & 0xFFFFFFFFFFFFFFFF
    return wrap(value)


class ArithParser:
    """One expression, by precedence climbing; its grammar and its errors are those of bash's expr.c."""

    def __init__(self, text: str, subscript: SubscriptReader, substitutions: Sequence[WordPart] = ()) -> None:
        self._text = text
        self._subscript = subscript
        self._substitutions = substitutions
        self._used = 0
        self._pos = 0
        self._start = 0
        self._kind = END
        self._last = END
        self._value = ""
        self._node: ArithNode = ArithNumber(0)
        self._depth = 0

    def parse(self) -> ArithNode:
        """The tree; an empty expression is 0."""
        if self._text.count("[") > MAX_SUBSCRIPTS and bracket_depth(self._text) > MAX_SUBSCRIPTS:
            raise self._error("expression recursion level exceeded")
        self._advance()
        if self._kind == END:
            return ArithNumber(0)
        node = self._comma()
        if self._kind != END:
            raise self._error("syntax error in expression")
        return node

    # --- tokens ---

    def _error(self, message: str) -> ArithSyntaxError:
        return ArithSyntaxError(self._text, message, self._text[self._start :])

    def _advance(self) -> None:
        previous = self._kind
        self._last = previous
        text = self._text
        match = TOKEN.match(text, self._pos)
        if match is None:
            self._pos += len(text[self._pos :]) - len(text[self._pos :].lstrip(" \t\n\r"))
            self._start = self._pos
            expected = previous in OPERATORS
            raise self._error("syntax error: " + ("operand expected" if expected else "invalid arithmetic operator"))
        group = match.lastindex or 0
        if group == 5:
            self._pos = match.end()
            self._kind = END
            return
        self._start = match.start(group)
        self._pos = match.end()
        value = match.group(group)
        self._value = value
        if group == 3:
            self._operator(value, previous)
        elif group == 1:
            self._kind = NAME
            self._node = ArithVariable(value, self._index())
            if TOKEN.match(text, self._pos) is None:  # bash looks at the next token before it goes on
                self._start = self._pos + len(text[self._pos :]) - len(text[self._pos :].lstrip(" \t\n\r"))
                raise self._error("syntax error: invalid arithmetic operator")
        elif group == 2:
            self._kind = NUMBER
            try:
                self._node = ArithNumber(parse_number(value))
            except ValueError as error:
                raise ArithSyntaxError(text[: self._pos], str(error), value) from None
        else:
            self._kind = NUMBER
            self._node = ArithSubst(self._substitutions[self._used])
            self._used += 1

    def _operator(self, value: str, previous: str) -> None:
        if value in ASSIGNMENTS:
            self._kind = ASSIGN
        elif value not in ("++", "--"):
            self._kind = value
        elif previous == NAME:
            self._kind = POSTFIX
        elif NEXT_IS_NAME.match(self._text, self._pos):
            self._kind = PREFIX
        else:
            self._kind = self._value = value[0]
            self._pos -= 1

    def _index(self) -> Index | None:
        """The subscript that follows a name at once, if any."""
        text, start = self._text, self._pos
        if not text.startswith("[", start):
            return None
        try:
            index, end = self._subscript(text, start, self._used)
        except ShellSyntaxError:
            raise self._error("bad array subscript") from None
        self._used += text.count(SUBST, start, end)
        self._pos = end + 1
        return index

    # --- grammar ---

    def _comma(self) -> ArithNode:
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._error("expression recursion level exceeded")
        node = self._assignment()
        while self._kind == ",":
            self._advance()
            node = ArithBinary(",", node, self._assignment())
        self._depth -= 1
        return node

    def _assignment(self) -> ArithNode:
        """Right-associative; a chain is collected in a list, so its length isn't Python's stack."""
        targets: list[tuple[str, ArithVariable]] = []
        node = self._conditional()
        while self._kind == ASSIGN:
            if self._last != NAME or not isinstance(node, ArithVariable):
                raise self._error("attempted assignment to non-variable")
            targets.append((ASSIGNMENTS[self._value], node))
            if len(targets) > MAX_NESTING:
                raise self._error("expression recursion level exceeded")
            self._advance()
            node = self._conditional()
        for op, target in reversed(targets):
            node = ArithAssign(op, target, node)
        return node

    def _conditional(self) -> ArithNode:
        node = self._binary(1)
        if self._kind != "?":
            return node
        self._depth += 1
        if self._depth > MAX_NESTING:
            raise self._error("expression recursion level exceeded")
        self._advance()
        if self._kind in (END, ":"):
            raise self._error("expression expected")
        then = self._comma()
        if self._kind != ":":
            raise self._error("`:' expected for conditional expression")
        self._advance()
        if self._kind == END:
            raise self._error("expression expected")
        otherwise = self._conditional()
        self._last = "?"
        self._depth -= 1
        return ArithConditional(node, then, otherwise)

    def _binary(self, level: int) -> ArithNode:
        node = self._power()
        while (precedence := PRECEDENCE.get(self._kind, 0)) >= level:
            op = self._kind
            self._advance()
            right = self._binary(precedence + 1)
            # Sums of constants, such as an array joined with +, needn't become trees thousands deep.
            if op in "+-*" and isinstance(node, ArithNumber) and isinstance(right, ArithNumber):
                a, b = node.value, right.value
                node = ArithNumber(wrap(a + b if op == "+" else a - b if op == "-" else a * b))
            else:
                node = ArithBinary(op, node, right)
            self._last = op
        return node

    def _power(self) -> ArithNode:
        node = self._unary()
        if self._kind != "**":
            return node
        operands = [node]
        while self._kind == "**":
            self._advance()
            operands.append(self._unary())
            if len(operands) > MAX_NESTING:
                raise self._error("expression recursion level exceeded")
        node = operands.pop()
        while operands:
            node = ArithBinary("**", operands.pop(), node)
        self._last = "**"
        return node

    def _unary(self) -> ArithNode:
        if self._kind not in ("-", "+", "!", "~"):
            return self._primary()
        ops = []
        while self._kind in ("-", "+", "!", "~"):
            ops.append(self._kind)
            if len(ops) > MAX_NESTING:
                raise self._error("expression recursion level exceeded")
            self._advance()
        node = self._primary()
        for op in reversed(ops):
            node = (
                ArithNumber(wrap(-node.value)) if op == "-" and isinstance(node, ArithNumber) else ArithUnary(op, node)
            )
        self._last = "-"
        return node

    def _primary(self) -> ArithNode:
        kind, node = self._kind, self._node
        if kind == NAME:
            self._advance()
            if self._kind == POSTFIX and isinstance(node, ArithVariable):
                node = ArithIncrement(node, 1 if self._value == "++" else -1, prefix=False)
                self._kind = NUMBER
                self._advance()
            return node
        if kind == NUMBER:
            self._advance()
            return node
        if kind == PREFIX:
            delta = 1 if self._value == "++" else -1
            self._advance()
            target = self._node
            if self._kind != NAME or not isinstance(target, ArithVariable):
                raise self._error("identifier expected after pre-increment or pre-decrement")
            self._advance()
            if self._kind == POSTFIX:
                raise self._error(f"{self._value}: assignment requires lvalue")
            self._last = NUMBER
            return ArithIncrement(target, delta, prefix=True)
        if kind == "(":
            self._advance()
            node = self._comma()
            if self._kind != ")":
                raise self._error("missing `)'")
            self._advance()
            return node
        raise self._error("syntax error: operand expected")
