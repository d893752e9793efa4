"""Parses awk's expressions (recursive descent, gawk's precedences and messages)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkSyntaxError
from belljar.bin.awk.lexer import Lexer, Token

MAX_NESTING = 200
"""Expressions and statements nested deeper than this are refused: each level costs interpreter stack."""

_ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "^="))
_RELATIONS = frozenset(("<", "<=", "==", "!=", ">", ">="))
_OPERAND_STARTS = frozenset(
    ("number", "string", "name", "funcname", "builtin", "$", "!", "(", "-", "+", "++", "--", "@")
)

_MANY = 1 << 16
ARITY = {
    "atan2": (2, 2), "cos": (1, 1), "sin": (1, 1), "exp": (1, 1), "log": (1, 1), "sqrt": (1, 1), "int": (1, 1),
    "rand": (0, 0), "srand": (0, 1), "gensub": (3, 4), "gsub": (2, 3), "sub": (2, 3), "index": (2, 2),
    "length": (0, 1), "match": (2, 3), "patsplit": (2, 4), "split": (2, 4), "sprintf": (1, _MANY),
    "strtonum": (1, 1), "substr": (2, 3), "tolower": (1, 1), "toupper": (1, 1), "close": (1, 2), "fflush": (0, 1),
    "system": (1, 1), "mktime": (1, 2), "strftime": (0, 3), "systime": (0, 0), "and": (2, _MANY),
    "or": (2, _MANY), "xor": (2, _MANY), "compl": (1, 1), "lshift": (2, 2), "rshift": (2, 2), "asort": (1, 3),
    "asorti": (1, 3), "isarray": (1, 1), "typeof": (1, 2), "mkbool": (1, 1), "bindtextdomain": (1, 2),
    "dcgettext": (1, 3), "dcngettext": (3, 5),
}  # fmt: skip
"""How many arguments a built-in function takes."""


Mark = tuple[Token, int, int, int]
T = TypeVar("T")


class Expressions:
    """Reads tokens from a lexer and makes expressions of them; Parser adds statements and rules."""

    def __init__(self, lexer: Lexer) -> None:
        self.lexer = lexer
        self.depth = 0
        self.no_in = False
        self.no_gt = False
        self.previous_end = 0
        self.token: Token = lexer.next()

    # -- tokens -------------------------------------------------------------------------------------------------

    def advance(self) -> Token:
        token = self.token
        self.previous_end = self.lexer.position
        self.token = self.lexer.next()
        return token

    def accept(self, kind: str) -> bool:
        if self.token.kind != kind:
            return False
        self.advance()
        return True

    def expect(self, kind: str) -> Token:
        if self.token.kind != kind:
            raise self.wrong()
        return self.advance()

    def wrong(self, message: str = "syntax error", token: Token | None = None) -> AwkSyntaxError:
        token = token or self.token
        if token.kind == "eof":
            message = "unexpected newline or end of string" if message == "syntax error" else message
            return self.lexer.error(max(len(self.lexer.text.rstrip("\n")) - 0, 0), message)
        if token.kind == "newline" and message == "syntax error":
            message = "unexpected newline or end of string"
        return self.lexer.error(token.start, message)

    def complain(self, message: str, line: int) -> AwkSyntaxError:
        return AwkSyntaxError(f"{self.lexer.program}: {self.lexer.where}:{line}: error: {message}\n")

    def newlines(self) -> None:
        while self.token.kind == "newline":
            self.advance()

    def terminators(self) -> None:
        while self.token.kind in ("newline", ";"):
            self.advance()

    def deeper(self) -> None:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.wrong("nesting too deep")

    def mark(self) -> Mark:
        """Return where the parser is, for `back_to`."""
        return self.token, self.lexer.position, self.lexer.line, self.previous_end

    def back_to(self, mark: Mark) -> None:
        self.token, self.lexer.position, self.lexer.line, self.previous_end = mark

    def inside(self, parse: Callable[[], T]) -> T:
        """Parse what is between parentheses or brackets, where `>` compares and `in` tests again."""
        saved = self.no_in, self.no_gt
        self.no_in = self.no_gt = False
        try:
            return parse()
        finally:
            self.no_in, self.no_gt = saved

    def expressions(self) -> list[n.Expr]:
        """Expressions with commas between them."""
        found = [self.expression()]
        while self.accept(","):
            self.newlines()
            found.append(self.expression())
        return found

    def array_reference(self) -> n.Var | n.Index:
        token = self.expect("name")
        array: n.Var | n.Index = n.Var(token.text, token.line)
        while self.token.kind == "[":
            array = self.subscript(array)
        return array

    # -- expressions, loosest first -----------------------------------------------------------------------------

    def expression(self) -> n.Expr:
        self.deeper()
        try:
            return self.ternary()
        finally:
            self.depth -= 1

    def ternary(self) -> n.Expr:
        test = self.disjunction()
        if self.token.kind != "?":
            return test
        self.advance()
        self.newlines()
        yes = self.expression()
        self.newlines()
        self.expect(":")
        self.newlines()
        return n.Ternary(test, yes, self.expression())

    def disjunction(self) -> n.Expr:
        left = self.conjunction()
        while self.token.kind == "||":
            self.advance()
            self.newlines()
            left = n.Or(left, self.conjunction())
        return left

    def conjunction(self) -> n.Expr:
        left = self.membership()
        while self.token.kind == "&&":
            self.advance()
            self.newlines()
            left = n.And(left, self.membership())
        return left

    def membership(self) -> n.Expr:
        left = self.matching()
        while self.token.kind == "in" and not self.no_in:
            self.advance()
            left = n.In([left], self.array_reference())
        return left

    def matching(self) -> n.Expr:
        left = self.comparison()
        while self.token.kind in ("~", "!~"):
            operator = self.advance()
            right = self.comparison()
            left = n.Match(left, right, operator.kind == "!~", operator.line)
        return left

    def comparison(self) -> n.Expr:
        left = self.concatenation()
        compared = False
        while True:
            kind = self.token.kind
            if kind in _RELATIONS and not (kind == ">" and self.no_gt):
                if compared:
                    raise self.wrong()
                compared = True
                self.advance()
                left = n.Compare(kind, left, self.concatenation())
            elif kind in ("|", "|&"):
                state = self.mark()
                line = self.advance().line
                if self.token.kind != "getline":
                    self.back_to(state)
                    return left
                self.advance()
                # The result is an operand: arithmetic and concatenation go on from it.
                left = self.concatenation(n.Getline(kind, left, self.optional_lvalue(), line))
            else:
                return left

    def concatenation(self, first: n.Expr | None = None) -> n.Expr:
        left = self.additive(first)
        if not self.starts_operand():
            return left
        parts = [left]
        while self.starts_operand():
            parts.append(self.additive())
        return n.Concat(parts)

    def starts_operand(self) -> bool:
        return self.token.kind in _OPERAND_STARTS and self.token.kind not in ("+", "-")

    def additive(self, first: n.Expr | None = None) -> n.Expr:
        left = self.multiplicative(first)
        while self.token.kind in ("+", "-"):
            operator = self.advance()
            left = n.Binary(operator.kind, left, self.multiplicative(), operator.line)
        return left

    def multiplicative(self, first: n.Expr | None = None) -> n.Expr:
        left = self.unary() if first is None else first
        while self.token.kind in ("*", "/", "%"):
            operator = self.advance()
            right = self.unary()
            if operator.kind != "*" and isinstance(left, n.Num) and isinstance(right, n.Num) and not right.value:
                what = "division by zero attempted" + (" in `%'" if operator.kind == "%" else "")
                raise self.complain(what, operator.line)
            left = n.Binary(operator.kind, left, right, operator.line)
        return left

    def unary(self) -> n.Expr:
        kind = self.token.kind
        if kind in ("!", "-", "+"):
            self.advance()
            self.deeper()
            operand = self.unary()
            self.depth -= 1
            if kind == "-" and isinstance(operand, n.Num):
                return n.Num(-operand.value)
            return n.Unary(kind, operand)
        return self.power()

    def power(self) -> n.Expr:
        base = self.postfix()
        if self.token.kind != "^":
            return base
        operator = self.advance()
        self.deeper()
        exponent = self.power_operand()
        self.depth -= 1
        return n.Binary("^", base, exponent, operator.line)

    def power_operand(self) -> n.Expr:
        if self.token.kind in ("!", "-", "+"):
            kind = self.advance().kind
            self.deeper()
            operand = self.power_operand()
            self.depth -= 1
            return n.Unary(kind, operand)
        return self.power()

    def postfix(self) -> n.Expr:
        operand = self.primary()
        if isinstance(operand, (n.Var, n.Index, n.Field)):
            kind = self.token.kind
            if kind in ("++", "--"):
                line = self.advance().line
                return n.Incr(operand, 1.0 if kind == "++" else -1.0, False, line)
            if kind in _ASSIGNMENTS:
                return self.assignment(operand)
        return operand

    def assignment(self, target: n.Lvalue) -> n.Expr:
        operator = self.advance()
        self.newlines()
        value = self.expression()
        if operator.kind == "=":
            return n.Assign(target, value, operator.line)
        return n.AugAssign(target, operator.kind[0], value, operator.line)

    def primary(self) -> n.Expr:
        token = self.token
        kind = token.kind
        if kind == "number":
            self.advance()
            return n.Num(token.value)
        if kind == "string":
            self.advance()
            return n.Str(token.text)
        if kind == "$":
            self.advance()
            return n.Field(self.field_index(), token.line)
        if kind in ("++", "--"):
            self.advance()
            target = self.lvalue()
            return n.Incr(target, 1.0 if kind == "++" else -1.0, True, token.line)
        if kind == "name":
            return self.variable()
        if kind == "funcname":
            self.advance()
            return n.Call(token.text, self.arguments(), token.line)
        if kind == "builtin":
            return self.builtin()
        if kind == "(":
            return self.grouping()
        if kind in ("/", "/="):
            return self.regex_constant()
        if kind == "getline":
            return self.getline()
        if kind == "@":
            return self.after_at(self.advance())
        if kind in ("-", "+", "!"):
            return self.unary()
        raise self.wrong()

    def field_index(self) -> n.Expr:
        """Parse the operand of `$`, which binds tighter than everything but the prefix ++ and --."""
        kind = self.token.kind
        self.deeper()
        try:
            if kind in ("-", "+", "!"):
                return self.unary()
            operand = self.primary()
            if kind == "$" and self.token.kind in ("++", "--") and isinstance(operand, n.Field):
                # `$$a++` increments the inner field.
                step = self.advance()
                return n.Incr(operand, 1.0 if step.kind == "++" else -1.0, False, step.line)
            return operand
        finally:
            self.depth -= 1

    def variable(self) -> n.Lvalue:
        token = self.advance()
        result: n.Var | n.Index = n.Var(token.text, token.line)
        while self.token.kind == "[":
            result = self.subscript(result)
        return result

    def subscript(self, array: n.Var | n.Index) -> n.Index:
        line = self.expect("[").line
        subscripts = self.inside(self.expressions)
        self.expect("]")
        return n.Index(array, subscripts, line)

    def lvalue(self) -> n.Lvalue:
        if self.token.kind == "$":
            line = self.advance().line
            return n.Field(self.field_index(), line)
        if self.token.kind == "name":
            return self.variable()
        raise self.wrong()

    def optional_lvalue(self) -> n.Lvalue | None:
        return self.lvalue() if self.token.kind in ("$", "name") else None

    def getline(self) -> n.Expr:
        line = self.advance().line
        target = self.optional_lvalue()
        if self.token.kind != "<":
            return n.Getline("", None, target, line)
        self.advance()
        source = self.primary()
        if isinstance(source, (n.Var, n.Index, n.Field)) and self.token.kind in ("++", "--"):
            delta = 1.0 if self.advance().kind == "++" else -1.0
            source = n.Incr(source, delta, False, line)
        return n.Getline("<", source, target, line)

    def grouping(self) -> n.Expr:
        self.expect("(")
        self.deeper()
        items = self.inside(self.expressions)
        self.newlines()
        self.expect(")")
        self.depth -= 1
        if len(items) == 1:
            return n.Group(items[0])
        if self.token.kind != "in":
            raise self.wrong()
        self.advance()
        return n.In(items, self.array_reference())

    def arguments(self) -> list[n.Expr]:
        self.expect("(")
        self.newlines()
        found = [] if self.token.kind == ")" else self.inside(self.expressions)
        self.newlines()
        self.expect(")")
        return found

    def builtin(self) -> n.Expr:
        token = self.advance()
        if self.token.kind != "(":
            if token.text == "length":
                return n.Builtin("length", [], token.line)
            raise self.wrong()
        arguments = self.arguments()
        low, high = ARITY.get(token.text, (0, 1 << 16))
        if len(arguments) < low and token.text in ("and", "or", "xor", "sprintf"):
            what = "no arguments" if token.text == "sprintf" else "called with less than two arguments"
            place = f"{self.lexer.program}: {self.lexer.where}:{token.line}"
            raise AwkSyntaxError(f"{place}: fatal: {token.text}: {what}\n")
        if not low <= len(arguments) <= high:
            raise self.lexer.error(
                self.previous_end - 1, f"{len(arguments)} is invalid as number of arguments for {token.text}"
            )
        if token.text == "index" and isinstance(arguments[1], n.Regex):
            place = f"{self.lexer.program}: {self.lexer.where}:{token.line}"
            raise AwkSyntaxError(f"{place}: fatal: index: regexp constant as second argument is not allowed\n")
        for position in n.ARRAY_ARGUMENTS.get(token.text, ()):
            if position < len(arguments) and not isinstance(n.ungroup(arguments[position]), (n.Var, n.Index)):
                ordinal = ("first", "second", "third", "fourth")[position]
                raise AwkSyntaxError(
                    f"{self.lexer.program}: {self.lexer.where}:{token.line}: fatal: "
                    f"{token.text}: {ordinal} argument is not an array\n"
                )
        return n.Builtin(token.text, arguments, token.line)

    def regex_constant(self) -> n.Regex:
        token = self.lexer.regex(self.token.start)
        self.previous_end = self.lexer.position
        self.token = self.lexer.next()
        return n.Regex(token.text, token.line)

    def after_at(self, at: Token) -> n.Expr:
        """`@/re/` or `@name(...)`, the `@` already read."""
        if self.token.kind in ("/", "/="):
            regex = self.regex_constant()
            return n.TypedRegex(regex.source, regex.line)
        if self.token.kind == "funcname":
            name = self.advance().text
            return n.IndirectCall(name, self.arguments(), at.line)
        raise self.wrong()
