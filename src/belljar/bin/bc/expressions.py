"""Parses bc's expressions and compiles them to closures."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.bin.bc.lexer import Lexer, Token
from belljar.bin.bc.machine import BcError, Machine
from belljar.bin.bc.number import ONE, ZERO, Number, NumberError, length, whole_part

MAX_NESTING = 200

Value = Callable[[], Number]

_SPECIAL = frozenset(("scale", "ibase", "obase", "last", "history"))
_RELATIONS = frozenset(("<", "<=", ">", ">=", "==", "!="))
_ASSIGNMENTS = frozenset(("=", "+=", "-=", "*=", "/=", "%=", "^="))


class BcSyntaxError(Exception):
    """The text is wrong; the rest of the line is skipped."""

    def __init__(self, message: str = "syntax error") -> None:
        super().__init__(message)
        self.message = message


@dataclass(slots=True)
class Expression:
    """Compiled code, whether it is a bare assignment (not printed), and the place it names, if it names one."""

    code: Value
    assigns: bool = False
    load: Value | None = None
    store: Callable[[Number], None] | None = None
    call: str = ""
    place: list[int] | None = None
    """Address of a special variable's store, for warnings."""


class Expressions:
    """Reads tokens from a lexer and makes code of expressions; Parser adds statements."""

    def __init__(self, lexer: Lexer, machine: Machine) -> None:
        self.lexer = lexer
        self.machine = machine
        self.depth = 0
        self.address = 0
        self.token: Token | None = None
        self.pushed: list[Token] = []

    # -- tokens -------------------------------------------------------------------------------------------------

    def peek(self) -> Token:
        if self.token is None:
            self.token = self.pushed.pop() if self.pushed else self.lexer.next()
        return self.token

    def take(self) -> Token:
        token = self.peek()
        self.token = None
        return token

    def accept(self, kind: str) -> bool:
        if self.peek().kind != kind:
            return False
        self.token = None
        return True

    def expect(self, kind: str) -> Token:
        if self.peek().kind != kind:
            raise BcSyntaxError
        return self.take()

    def newlines(self) -> None:
        while self.accept("newline"):
            pass

    # -- expressions, loosest first -----------------------------------------------------------------------------

    def expression(self) -> Expression:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise BcSyntaxError("nesting too deep")
        try:
            return self.disjunction()
        finally:
            self.depth -= 1

    def disjunction(self) -> Expression:
        left = self.conjunction()
        while self.accept("||"):
            first, second = left.code, self.conjunction().code
            self.address += 1
            left = Expression(lambda a=first, b=second: ONE if a().value or b().value else ZERO)  # type: ignore[misc]
        return left

    def conjunction(self) -> Expression:
        left = self.negation()
        while self.accept("&&"):
            first, second = left.code, self.negation().code
            self.address += 1
            left = Expression(lambda a=first, b=second: ONE if a().value and b().value else ZERO)  # type: ignore[misc]
        return left

    def negation(self) -> Expression:
        if not self.accept("!"):
            return self.relation()
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise BcSyntaxError("nesting too deep")
        operand = self.negation().code
        self.depth -= 1
        self.address += 1
        return Expression(lambda: ZERO if operand().value else ONE)

    def relation(self) -> Expression:
        left = self.assignment()
        while self.peek().kind in _RELATIONS:
            symbol = self.take().kind
            right = self.assignment()
            self.address += 1
            left = Expression(self._comparison(symbol, left.code, right.code))
        return left

    def _comparison(self, symbol: str, left: Value, right: Value) -> Value:
        compare = self.machine.arithmetic.compare
        wanted = {"<": (-1,), "<=": (-1, 0), ">": (1,), ">=": (1, 0), "==": (0,), "!=": (-1, 1)}[symbol]

        def test() -> Number:
            first = left()
            return ONE if compare(first, right()) in wanted else ZERO

        return test

    def assignment(self) -> Expression:
        target = self.sum()
        if self.peek().kind not in _ASSIGNMENTS or target.store is None or target.load is None:
            return target
        symbol = self.take().kind
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise BcSyntaxError("nesting too deep")
        value = self.assignment().code
        self.depth -= 1
        load, store = target.load, target.store
        if symbol == "=" and target.place is not None:
            target.place[0] = self.address
        else:
            self.address += 2
        if symbol != "=":
            value = self.combine(symbol[0], load, value)

        def assign() -> Number:
            result = value()
            store(result)
            return load()

        return Expression(assign, assigns=True)

    def sum(self) -> Expression:
        left = self.product()
        while self.peek().kind in ("+", "-"):
            symbol = self.take().kind
            left = Expression(self.combine(symbol, left.code, self.product().code))
        return left

    def product(self) -> Expression:
        left = self.power()
        while self.peek().kind in ("*", "/", "%"):
            symbol = self.take().kind
            left = Expression(self.combine(symbol, left.code, self.power().code))
        return left

    def power(self) -> Expression:
        base = self.unary()
        if not self.accept("^"):
            return base
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise BcSyntaxError("nesting too deep")
        exponent = self.power().code
        self.depth -= 1
        return Expression(self.combine("^", base.code, exponent))

    def combine(self, symbol: str, left: Value, right: Value) -> Value:
        machine = self.machine
        do = machine.arithmetic
        self.address += 1
        address = self.address
        if symbol == "+":
            return lambda: do.add(left(), right())
        if symbol == "-":
            return lambda: do.subtract(left(), right())
        if symbol == "*":
            return lambda: do.multiply(left(), right(), machine.scale)
        if symbol == "^":
            return lambda: self._raise(left(), right(), address)
        operation = do.divide if symbol == "/" else do.modulo

        def compute() -> Number:
            first = left()
            try:
                return operation(first, right(), machine.scale)
            except NumberError as error:
                raise BcError(str(error), address) from error

        return compute

    def _raise(self, base: Number, exponent: Number, address: int) -> Number:
        machine = self.machine
        number = whole_part(exponent)
        if Number(number) != exponent and machine.arithmetic.compare(Number(number), exponent):
            machine.caution("non-zero scale in exponent", address)
        if abs(number) > 1 << 62:
            raise BcError("exponent too large in raise", address)
        try:
            return machine.arithmetic.power(base, number, machine.scale)
        except NumberError as error:
            raise BcError(str(error), address) from error

    def unary(self) -> Expression:
        if not self.accept("-"):
            return self.postfix()
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise BcSyntaxError("nesting too deep")
        operand = self.unary().code
        self.depth -= 1
        self.address += 1

        def negate() -> Number:
            value = operand()
            return Number(-value.value, value.scale)

        return Expression(negate)

    def postfix(self) -> Expression:
        kind = self.peek().kind
        if kind in ("++", "--"):
            self.take()
            target = self.primary()
            return Expression(self._step(target, ONE if kind == "++" else Number(-1), before=True))
        operand = self.primary()
        if operand.store is not None and self.peek().kind in ("++", "--"):
            step = ONE if self.take().kind == "++" else Number(-1)
            return Expression(self._step(operand, step, before=False))
        return operand

    def _step(self, target: Expression, amount: Number, before: bool) -> Value:
        if target.store is None or target.load is None:
            raise BcSyntaxError
        load, store, add = target.load, target.store, self.machine.arithmetic.add
        self.address += 2

        def step() -> Number:
            old = load()
            store(add(old, amount))
            return load() if before else old

        return step

    def primary(self) -> Expression:
        token = self.take()
        machine = self.machine
        match token.kind:
            case "number":
                return self.constant(token.text)
            case "(":
                inner = self.expression().code
                self.expect(")")
                return Expression(inner)
            case "name":
                return self.named(token.text)
            case ".":
                return self.special("last")
            case "scale":
                if self.accept("("):
                    operand = self.closing_operand()
                    return Expression(lambda: Number(operand().scale))
                return self.special("scale")
            case "length":
                self.expect("(")
                operand = self.closing_operand()
                return Expression(lambda: Number(length(operand())))
            case "sqrt":
                self.expect("(")
                operand = self.closing_operand()
                return Expression(self._root(operand, self.address))
            case "read":
                self.expect("(")
                self.expect(")")
                self.address += 2
                return Expression(machine.read_number)
            case "random":
                self.expect("(")
                self.expect(")")
                self.address += 2
                return Expression(lambda: _random(machine))
            case kind if kind in _SPECIAL:
                return self.special(kind)
        self.token = token
        raise BcSyntaxError(f"illegal character: {token.text}" if token.kind == "bad" else "syntax error")

    def closing_operand(self) -> Value:
        operand = self.expression().code
        self.expect(")")
        self.address += 2
        return operand

    def _root(self, operand: Value, address: int) -> Value:
        machine = self.machine

        def root() -> Number:
            value = operand()
            try:
                return machine.arithmetic.sqrt(value, machine.scale)
            except NumberError as error:
                raise BcError(str(error), address) from error

        return root

    def constant(self, text: str) -> Expression:
        machine = self.machine
        self.address += 1 if text in ("0", "1") else len(text.lstrip("0")) + 2
        made: dict[int, Number] = {}

        def load() -> Number:
            # The input base may change between two runs of the same code.
            base = machine.ibase
            value = made.get(base)
            if value is None:
                value = made[base] = machine.arithmetic.parse(text, base)
            return value

        return Expression(load)

    def special(self, name: str) -> Expression:
        machine = self.machine
        self.address += 2
        place = [self.address]

        def load() -> Number:
            return machine.get_special(name)

        def store(value: Number) -> None:
            machine.set_special(name, value, place[0])

        return Expression(load, load=load, store=store, place=place)

    def named(self, name: str) -> Expression:
        if self.accept("["):
            return self.element(name)
        if self.accept("("):
            return self.call(name)
        variables = self.machine.variables
        self.address += 2

        def load() -> Number:
            return variables.get(name, ZERO)

        def store(value: Number) -> None:
            variables[name] = value

        return Expression(load, load=load, store=store)

    def element(self, name: str) -> Expression:
        index = self.expression().code
        self.expect("]")
        machine = self.machine
        self.address += 2
        address = self.address

        # The subscript is evaluated once for a load and a store of the same operation.
        where: list[int] = []

        def load() -> Number:
            place = where.pop() if where else machine.index(index(), name, address)
            return machine.array(name).get(place, ZERO)

        def store(value: Number) -> None:
            place = machine.index(index(), name, address)
            machine.array(name)[place] = value
            where.append(place)

        return Expression(load, load=load, store=store)

    def call(self, name: str) -> Expression:
        arguments: list[Callable[[], Number | dict[int, Number]]] = []
        while self.peek().kind != ")":
            arguments.append(self.argument())
            if not self.accept(","):
                break
        self.expect(")")
        self.address += 2
        machine, address = self.machine, self.address
        return Expression(lambda: machine.call(name, [argument() for argument in arguments], address), call=name)

    def argument(self) -> Callable[[], Number | dict[int, Number]]:
        token = self.peek()
        if token.kind == "name":
            self.take()
            if self.accept("["):
                if self.accept("]"):
                    machine, name = self.machine, token.text
                    return lambda: machine.array(name)
                self.push_back(Token("[", "[", token.line))
            self.push_back(token)
        return self.expression().code

    def push_back(self, token: Token) -> None:
        if self.token is not None:
            self.pushed.append(self.token)
        self.token = token


def _random(machine: Machine) -> Number:
    machine.seed = (machine.seed * 1103515245 + 12345) & 0x7FFFFFFF
    return Number(machine.seed)
