"""dc's stack machine: numbers, strings that are programs, registers and arrays."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin.bc import line_length, lines
from belljar.bin.bc.number import ZERO, Arithmetic, Number, NumberError, length, whole_part
from belljar.kernel.process import Process

Item = Number | str
MAX_DEPTH = 10_000
_MESSAGES = {"Divide by zero": "divide by zero", "Modulo by zero": "remainder by zero"}


class Quit(Exception):
    """Leave this many levels of macros; -1 leaves the program, with a status."""

    def __init__(self, levels: int, status: int = 0) -> None:
        super().__init__(levels)
        self.levels = levels
        self.status = status


class Text:
    """A program being read: a string, or lines that come one by one."""

    def __init__(self, text: str, more: Callable[[], str] | None = None) -> None:
        self.text = text
        self.more = more
        self.position = 0

    def peek(self) -> str:
        """The next character, "" at the end."""
        while self.position >= len(self.text):
            if self.more is None:
                return ""
            self.text = self.more()
            self.position = 0
            if not self.text:
                self.more = None
                return ""
        return self.text[self.position]

    def take(self) -> str:
        char = self.peek()
        self.position += 1
        return char


class Calculator:
    """The stack machine. Commands are methods found through `_COMMANDS`."""

    def __init__(self, process: Process) -> None:
        self.process = process
        self.charge = process.budget.charge
        self.arithmetic = Arithmetic(process.budget.charge, process.budget.charge_size)
        self.stack: list[Item] = []
        self.registers: dict[str, list[Item]] = {}
        self.arrays: dict[str, list[dict[int, Item]]] = {}
        self.scale = 0
        self.ibase = 10
        self.obase = 10
        self.width = line_length({"BC_LINE_LENGTH": process.env.get("DC_LINE_LENGTH", "")})
        self.input = lines(process, "-")
        self.running: list[Text] = []

    def warn(self, message: str) -> None:
        self.process.stdout.flush()
        self.process.error(f"{self.process.name}: {message}\n")

    def write(self, text: str) -> None:
        self.process.stdout.write(fsencode(text))

    # -- running ------------------------------------------------------------------------------------------------

    def run(self, text: Text) -> None:
        """Run a program and the macros it starts. A macro in tail position replaces its caller."""
        base = len(self.running)
        self.running.append(text)
        try:
            while len(self.running) > base:
                current = self.running[-1]
                char = current.take()
                if not char:
                    self.running.pop()
                    continue
                self.charge(1)
                try:
                    self.command(char, current)
                except NumberError as error:
                    self.warn(_MESSAGES.get(str(error), str(error)))
                except Quit as leave:
                    if leave.levels < 0 or leave.levels > len(self.running) - 1 - base:
                        raise
                    del self.running[len(self.running) - leave.levels :]
        finally:
            del self.running[base:]

    def start(self, macro: str) -> None:
        current = self.running[-1]
        if current.more is None and current.position >= len(current.text):
            self.running.pop()
        if len(self.running) >= MAX_DEPTH:
            raise Quit(-1)
        self.running.append(Text(macro))

    def command(self, char: str, text: Text) -> None:
        if char in "0123456789ABCDEF_.":
            self.number(char, text)
            return
        if char.isspace():
            return
        if char == "#":
            while text.take() not in ("\n", ""):
                pass
            return
        if char == "[":
            self.string(text)
            return
        if char in "<>=!":
            self.comparison(char, text)
            return
        handler = _COMMANDS.get(char)
        if handler is not None:
            handler(self)
            return
        with_register = _REGISTER_COMMANDS.get(char)
        if with_register is not None:
            name = text.take()
            if name:
                with_register(self, name)
            else:
                self.warn("unexpected EOS")
            return
        code = ord(char) if ord(char) < 128 else fsencode(char)[0]
        shown = f"'{char}' (0{code:o})" if char.isprintable() else f"0{code:o}"
        # dc's own message starts on one stream and ends on the other.
        self.process.stdout.flush()
        self.process.error(f"{self.process.name}: ")
        self.write(f"{shown} unimplemented\n")

    def number(self, char: str, text: Text) -> None:
        sign = 1
        if char == "_":
            sign = -1
            char = ""
        digits = char
        dots = char.count(".")
        while (following := text.peek()) and following in "0123456789ABCDEF.":
            dots += following == "."
            if dots > 1:
                break
            digits += text.take()
        whole, _, fraction = digits.partition(".")
        value = 0
        if self.ibase == 10 and (whole + fraction).isdecimal():
            value = self.arithmetic.parse("0" + whole + fraction, 10).value
        else:
            # Unlike bc, a digit beyond the base keeps its value.
            for digit in whole + fraction:
                self.charge(1 + len(digits) // 500)
                value = value * self.ibase + int(digit, 16)
        number = Number(sign * value, 0)
        if fraction:
            if self.ibase == 10:
                number = Number(sign * value, len(fraction))
            else:
                number = self.arithmetic.divide(number, Number(self.ibase ** len(fraction)), len(fraction))
        self.stack.append(number)

    def string(self, text: Text) -> None:
        depth = 1
        out: list[str] = []
        while True:
            char = text.take()
            if not char:
                break
            depth += (char == "[") - (char == "]")
            if not depth:
                break
            out.append(char)
        self.process.budget.charge_size(len(out))
        self.stack.append("".join(out))

    # -- the stack ----------------------------------------------------------------------------------------------

    def need(self, count: int) -> bool:
        if len(self.stack) >= count:
            return True
        self.warn("stack empty")
        return False

    def numbers(self) -> tuple[Number, Number] | None:
        """The two operands of an arithmetic command, left on the stack until it succeeds."""
        if not self.need(2):
            return None
        right, left = self.stack[-1], self.stack[-2]
        if isinstance(left, str) or isinstance(right, str):
            self.warn("non-numeric value")
            return None
        return left, right

    def top_number(self) -> Number | None:
        if not self.need(1):
            return None
        top = self.stack[-1]
        if isinstance(top, str):
            self.warn("non-numeric value")
            return None
        return top

    def binary(self, operation: Callable[[Number, Number, int], Number]) -> None:
        pair = self.numbers()
        if pair is not None:
            result = operation(*pair, self.scale)
            self.stack[-2:] = [result]

    def add(self) -> None:
        self.binary(lambda left, right, scale: self.arithmetic.add(left, right))

    def subtract(self) -> None:
        self.binary(lambda left, right, scale: self.arithmetic.subtract(left, right))

    def multiply(self) -> None:
        self.binary(self.arithmetic.multiply)

    def divide(self) -> None:
        self.binary(self.arithmetic.divide)

    def remainder(self) -> None:
        self.binary(self.arithmetic.modulo)

    def divide_and_remainder(self) -> None:
        pair = self.numbers()
        if pair is not None:
            quotient = self.arithmetic.divide(*pair, self.scale)
            self.stack[-2:] = [quotient, self.arithmetic.modulo(*pair, self.scale)]

    def power(self) -> None:
        def operation(base: Number, exponent: Number, scale: int) -> Number:
            whole = whole_part(exponent)
            if self.arithmetic.compare(Number(whole), exponent):
                self.process.stdout.flush()
                self.process.error("Runtime warning: non-zero scale in exponent\n")
            if whole < 0 and not base.value:
                return ZERO
            if abs(whole) > 1 << 62:
                self.process.budget.exceed("expansion_bytes")
            return self.arithmetic.power(base, whole, scale)

        self.binary(operation)

    def modular_power(self) -> None:
        if not self.need(3):
            return
        base, exponent, modulus = self.stack[-3:]
        if isinstance(base, str) or isinstance(exponent, str) or isinstance(modulus, str):
            self.warn("non-numeric value")
            return
        power, ring = whole_part(exponent), whole_part(modulus)
        if not ring:
            self.warn("remainder by zero")
            return
        if power < 0:
            self.warn("negative exponent")
            return
        value = whole_part(base)
        self.arithmetic.pay(ring.bit_length() * 64, max(power.bit_length(), 1) * 64)
        result = pow(abs(value), power, abs(ring))
        self.stack[-3:] = [Number(-result if value < 0 and power % 2 else result)]

    def root(self) -> None:
        top = self.top_number()
        if top is None:
            return
        if top.value < 0:
            self.stack.pop()
            self.warn("square root of negative number")
            return
        self.stack[-1] = self.arithmetic.sqrt(top, self.scale)

    # -- printing -----------------------------------------------------------------------------------------------

    def shown(self, item: Item) -> str:
        if isinstance(item, str):
            return item
        text = self.arithmetic.text(item, self.obase)
        if not self.width or len(text) < self.width:
            return text
        room = self.width - 1
        return "\\\n".join(text[at : at + room] for at in range(0, len(text), room))

    def print_top(self) -> None:
        if self.need(1):
            self.write(self.shown(self.stack[-1]) + "\n")

    def pop_and_print(self) -> None:
        if self.need(1):
            self.write(self.shown(self.stack.pop()))

    def print_stack(self) -> None:
        for item in reversed(self.stack):
            self.charge(1)
            self.write(self.shown(item) + "\n")

    def print_bytes(self) -> None:
        """P: a string as it is, a number as the bytes it spells in base 256."""
        if not self.need(1):
            return
        item = self.stack.pop()
        if isinstance(item, str):
            self.write(item)
            return
        value = abs(whole_part(item))
        self.process.stdout.write(value.to_bytes(max((value.bit_length() + 7) // 8, 1), "big"))

    # -- stack and registers ------------------------------------------------------------------------------------

    def clear(self) -> None:
        self.stack.clear()

    def duplicate(self) -> None:
        if self.need(1):
            self.stack.append(self.stack[-1])

    def swap(self) -> None:
        if self.need(2):
            self.stack[-2:] = self.stack[:-3:-1]

    def rotate(self) -> None:
        top = self.top_number()
        if top is None:
            return
        self.stack.pop()
        count = whole_part(top)
        size = min(abs(count), len(self.stack))
        if size < 2:
            return
        part = self.stack[-size:]
        self.stack[-size:] = part[1:] + part[:1] if count > 0 else part[-1:] + part[:-1]

    def drop(self) -> None:
        if self.need(1):
            self.stack.pop()

    def store(self, name: str) -> None:
        if self.need(1):
            self.registers.setdefault(name, [ZERO])[-1:] = [self.stack.pop()]

    def load(self, name: str) -> None:
        held = self.registers.get(name)
        self.stack.append(held[-1] if held else ZERO)

    def push_register(self, name: str) -> None:
        if self.need(1):
            self.registers.setdefault(name, []).append(self.stack.pop())
            self.arrays.setdefault(name, []).append({})

    def pop_register(self, name: str) -> None:
        held = self.registers.get(name)
        if not held:
            self.warn(f"stack register '{name}' (0{ord(name or ' '):o}) is empty")
            return
        self.stack.append(held.pop())
        if self.arrays.get(name):
            self.arrays[name].pop()

    def store_element(self, name: str) -> None:
        if not self.need(2):
            return
        index, value = self.stack.pop(), self.stack.pop()
        place = self._place(index)
        if place is not None:
            self._array(name)[place] = value

    def load_element(self, name: str) -> None:
        if not self.need(1):
            return
        place = self._place(self.stack.pop())
        if place is not None:
            self.stack.append(self._array(name).get(place, ZERO))

    def _array(self, name: str) -> dict[int, Item]:
        levels = self.arrays.setdefault(name, [])
        if not levels:
            levels.append({})
        return levels[-1]

    def _place(self, index: Item) -> int | None:
        if isinstance(index, str) or index.value < 0:
            self.warn("array index must be a nonnegative integer")
            return None
        return whole_part(index)

    # -- parameters ---------------------------------------------------------------------------------------------

    def _parameter(self, low: int, high: int, message: str) -> int | None:
        if not self.need(1):
            return None
        top = self.stack.pop()
        number = -1 if isinstance(top, str) else whole_part(top)
        if not low <= number <= high:
            self.warn(message)
            return None
        return number

    def set_scale(self) -> None:
        number = self._parameter(0, 2**31 - 1, "scale must be a nonnegative number")
        self.scale = self.scale if number is None else number

    def set_ibase(self) -> None:
        number = self._parameter(2, 16, "input base must be a number between 2 and 16 (inclusive)")
        self.ibase = self.ibase if number is None else number

    def set_obase(self) -> None:
        number = self._parameter(2, 2**31 - 1, "output base must be a number greater than 1")
        self.obase = self.obase if number is None else number

    def push(self, item: Item) -> None:
        self.stack.append(item)

    def depth(self) -> None:
        self.push(Number(len(self.stack)))

    def digits(self) -> None:
        if self.need(1):
            top = self.stack.pop()
            self.push(Number(len(top) if isinstance(top, str) else _digits(top)))

    def fraction_digits(self) -> None:
        if self.need(1):
            top = self.stack.pop()
            self.push(Number(0 if isinstance(top, str) else top.scale))

    def to_character(self) -> None:
        if not self.need(1):
            return
        top = self.stack.pop()
        self.push(top[:1] if isinstance(top, str) else fsdecode(bytes([whole_part(top) & 0xFF])))

    # -- strings as programs ------------------------------------------------------------------------------------

    def execute(self) -> None:
        if self.need(1):
            top = self.stack.pop()
            if isinstance(top, str):
                self.start(top)
            else:
                self.push(top)

    def read_and_execute(self) -> None:
        line = self.input()
        if line:
            self.start(line)

    def comparison(self, char: str, text: Text) -> None:
        negated = char == "!"
        if negated:
            if text.peek() not in ("<", ">", "="):
                self.shell(text)
                return
            char = text.take()
        name = text.take()
        pair = self.numbers()
        if pair is None:
            return
        del self.stack[-2:]
        left, right = pair
        order = self.arithmetic.compare(right, left)
        if {"<": order < 0, ">": order > 0, "=": order == 0}[char] is not negated:
            held = self.registers.get(name)
            macro = held[-1] if held else ZERO
            if isinstance(macro, str):
                self.start(macro)
            else:
                self.push(macro)

    def shell(self, text: Text) -> None:
        """!: the rest of the line is a command."""
        command: list[str] = []
        while (char := text.take()) not in ("\n", ""):
            command.append(char)
        try:
            self.process.run(["sh", "-c", "".join(command)])
        except SysError as error:
            self.warn(error.reason)

    def quit(self) -> None:
        raise Quit(2 if len(self.running) > 2 else -1, 1)

    def quit_levels(self) -> None:
        top = self.top_number()
        if top is None:
            return
        self.stack.pop()
        levels = whole_part(top)
        if levels < 1:
            self.warn("Q command requires a number >= 1")
            return
        if levels > len(self.running) - 1:
            self.warn("Q command argument exceeded string execution depth")
            levels = len(self.running) - 1
        if levels:
            raise Quit(levels)


def _digits(number: Number) -> int:
    """Z counts the digits of the integer part and the fraction, leading zeros aside."""
    if not number.value:
        return max(number.scale, 1) if number.scale else 1
    return length(Number(number.value, 0)) if number.scale else length(number)


_COMMANDS: dict[str, Callable[[Calculator], None]] = {
    "+": Calculator.add,
    "-": Calculator.subtract,
    "*": Calculator.multiply,
    "/": Calculator.divide,
    "%": Calculator.remainder,
    "~": Calculator.divide_and_remainder,
    "^": Calculator.power,
    "|": Calculator.modular_power,
    "v": Calculator.root,
    "p": Calculator.print_top,
    "n": Calculator.pop_and_print,
    "f": Calculator.print_stack,
    "P": Calculator.print_bytes,
    "c": Calculator.clear,
    "d": Calculator.duplicate,
    "r": Calculator.swap,
    "R": Calculator.rotate,
    "k": Calculator.set_scale,
    "i": Calculator.set_ibase,
    "o": Calculator.set_obase,
    "K": lambda calculator: calculator.push(Number(calculator.scale)),
    "I": lambda calculator: calculator.push(Number(calculator.ibase)),
    "O": lambda calculator: calculator.push(Number(calculator.obase)),
    "z": Calculator.depth,
    "Z": Calculator.digits,
    "X": Calculator.fraction_digits,
    "a": Calculator.to_character,
    "x": Calculator.execute,
    "?": Calculator.read_and_execute,
    "q": Calculator.quit,
    "Q": Calculator.quit_levels,
}

_REGISTER_COMMANDS: dict[str, Callable[[Calculator, str], None]] = {
    "s": Calculator.store,
    "l": Calculator.load,
    "S": Calculator.push_register,
    "L": Calculator.pop_register,
    ":": Calculator.store_element,
    ";": Calculator.load_element,
}
