"""Parses bc's statements and functions, one input item at a time, as bc itself runs them."""

from __future__ import annotations

from belljar.bin.bc.expressions import MAX_NESTING, BcSyntaxError, Expressions, Value
from belljar.bin.bc.lexer import Lexer
from belljar.bin.bc.machine import Code, Function, Machine, Parameter, Quit

BREAK, CONTINUE, RETURN = 1, 2, 3
RETURN_OUTSIDE = "Return outside of a function."

_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "q": '"', "\\": "\\"}


class Parser(Expressions):
    """Reads input items from a lexer."""

    def __init__(self, lexer: Lexer, machine: Machine) -> None:
        super().__init__(lexer, machine)
        self.loops = 0
        self.function: Function | None = None

    def recover(self) -> None:
        """Skip the rest of a wrong line."""
        token, self.token = self.token, None
        self.pushed.clear()
        self.depth = self.loops = 0
        self.function = None
        if token is None or token.kind not in ("newline", "eof"):
            self.lexer.skip_line()

    # -- items --------------------------------------------------------------------------------------------------

    def item(self) -> list[Code] | None:
        """The statements of the next line, ready to run; None at the end of the input."""
        self.address = 0
        kind = self.peek().kind
        if kind == "eof":
            return None
        if kind == "define":
            self.definition()
            if self.peek().kind not in ("newline", ";", "eof"):
                raise BcSyntaxError
            return []
        codes: list[Code] = []
        while True:
            if self.peek().kind not in (";", "newline", "eof"):
                codes.append(self.statement())
            if self.accept(";"):
                continue
            if self.peek().kind == "eof" or self.accept("newline"):
                return codes
            raise BcSyntaxError

    def definition(self) -> None:
        self.take()
        void = self.accept("void")
        name = self.expect("name").text
        self.expect("(")
        function = Function(name, self.parameters(")"), void=void)
        self.expect(")")
        self.newlines()
        self.expect("{")
        while self.peek().kind in ("newline", ";"):
            self.take()
        if self.accept("auto"):
            function.autos = self.parameters("")
            if any(
                (auto.name, auto.array) == (p.name, p.array) for auto in function.autos for p in function.parameters
            ):
                raise BcSyntaxError("variable in both parameter and auto lists")
            if self.peek().kind not in (";", "newline"):
                raise BcSyntaxError
        self.function = function
        self.address = 0
        function.body = self.block_body()
        self.function = None
        self.machine.functions[name] = function
        self.machine.natives.pop(name, None)

    def parameters(self, end: str) -> list[Parameter]:
        found: list[Parameter] = []
        if end and self.peek().kind == end:
            return found
        while True:
            reference = self.accept("*") or self.accept("&")
            name = self.expect("name").text
            array = self.accept("[")
            if array:
                self.expect("]")
            if any(known.name == name and known.array == array for known in found):
                raise BcSyntaxError("duplicate parameter names" if end else "duplicate auto variable names")
            found.append(Parameter(name, array, reference and array))
            if not self.accept(","):
                return found

    def block_body(self) -> Code:
        """Statements up to the closing brace, the opening one already read."""
        codes: list[Code] = []
        while True:
            kind = self.peek().kind
            if kind in (";", "newline"):
                self.take()
            elif kind == "}":
                self.take()
                return sequence(codes)
            elif kind == "eof":
                raise BcSyntaxError
            else:
                codes.append(self.statement())
                if self.peek().kind not in (";", "newline", "}"):
                    raise BcSyntaxError

    # -- statements ---------------------------------------------------------------------------------------------

    def statement(self) -> Code:
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise BcSyntaxError("nesting too deep")
        try:
            return self._statement()
        finally:
            self.depth -= 1

    def _statement(self) -> Code:
        token = self.peek()
        machine = self.machine
        match token.kind:
            case "{":
                self.take()
                return self.block_body()
            case "string":
                self.take()
                text = token.text
                return lambda: machine.emit(text)
            case "if":
                return self.if_statement()
            case "while":
                return self.while_statement()
            case "for":
                return self.for_statement()
            case "print":
                return self.print_statement()
            case "break" | "continue":
                self.take()
                if not self.loops:
                    raise BcSyntaxError(
                        "Break outside a for/while" if token.kind == "break" else "Continue outside a for"
                    )
                signal = BREAK if token.kind == "break" else CONTINUE
                return lambda: signal
            case "return":
                return self.return_statement()
            case "quit":
                raise Quit
            case "halt":
                self.take()
                return _halt
            case "auto":
                raise BcSyntaxError
            case "limits" | "warranty":
                self.take()
                return lambda: machine.emit("")
        return self.expression_statement()

    def expression_statement(self) -> Code:
        expression = self.expression()
        machine = self.machine
        code = expression.code
        self.address += 1
        if expression.assigns:

            def assign() -> None:
                code()

            return assign
        name = expression.call

        def show() -> None:
            value = code()
            function = machine.functions.get(name) if name else None
            if function is None or not function.void:
                machine.show(value)

        return show

    def condition(self) -> Value:
        self.expect("(")
        test = self.expression().code
        self.expect(")")
        return test

    def branch(self) -> Code:
        """The statement an `if` or a loop governs, on this line or a following one."""
        self.newlines()
        if self.peek().kind == ";":
            return _nothing
        return self.statement()

    def if_statement(self) -> Code:
        self.take()
        test = self.condition()
        self.address += 3
        yes = self.branch()
        no: Code | None = None
        if self.accept("else"):
            self.address += 3
            no = self.branch()
        other = no

        def choose() -> int | None:
            if test().value:
                return yes()
            return None if other is None else other()

        return choose

    def loop_body(self) -> Code:
        self.loops += 1
        try:
            return self.branch()
        finally:
            self.loops -= 1

    def while_statement(self) -> Code:
        self.take()
        test = self.condition()
        self.address += 3
        return self.loop(test, self.loop_body(), None)

    def for_statement(self) -> Code:
        self.take()
        self.expect("(")
        start = None if self.peek().kind == ";" else self.expression().code
        self.expect(";")
        test = None if self.peek().kind == ";" else self.expression().code
        self.expect(";")
        step = None if self.peek().kind == ")" else self.expression().code
        self.expect(")")
        self.address += 3
        loop = self.loop(test, self.loop_body(), step)
        if start is None:
            return loop
        begin = start

        def run() -> int | None:
            begin()
            return loop()

        return run

    def loop(self, test: Value | None, body: Code, step: Value | None) -> Code:
        charge = self.machine.charge

        def run() -> int | None:
            while test is None or test().value:
                charge(1)
                signal = body()
                if signal == BREAK:
                    return None
                if signal == RETURN:
                    return signal
                if step is not None:
                    step()
            return None

        return run

    def return_statement(self) -> Code:
        self.take()
        machine = self.machine
        bare = self.peek().kind in (";", "newline", "}")
        value = None if bare else self.expression().code
        if self.function is None:
            raise BcSyntaxError(RETURN_OUTSIDE)
        if value is None:
            return lambda: RETURN
        result = value

        def leave() -> int:
            machine.result = result()
            return RETURN

        return leave

    def print_statement(self) -> Code:
        self.take()
        machine = self.machine
        parts: list[Code] = []
        while True:
            if self.peek().kind == "string":
                parts.append(_emitter(machine, unescape(self.take().text)))
            else:
                parts.append(_shower(machine, self.expression().code))
            if not self.accept(","):
                return sequence(parts)


def _nothing() -> int | None:
    return None


def _halt() -> int | None:
    raise Quit


def sequence(codes: list[Code]) -> Code:
    if len(codes) == 1:
        return codes[0]
    every = tuple(codes)

    def run() -> int | None:
        for code in every:
            signal = code()
            if signal is not None:
                return signal
        return None

    return run


def _emitter(machine: Machine, text: str) -> Code:
    return lambda: machine.emit(text)


def _shower(machine: Machine, code: Value) -> Code:
    return lambda: machine.show(code(), end="")


def unescape(text: str) -> str:
    """The escapes of a print statement's string."""
    if "\\" not in text:
        return text
    out: list[str] = []
    position = 0
    while position < len(text):
        if text[position] == "\\" and position + 1 < len(text):
            found = _ESCAPES.get(text[position + 1])
            if found is not None:
                out.append(found)
            position += 2
        else:
            out.append(text[position])
            position += 1
    return "".join(out)
