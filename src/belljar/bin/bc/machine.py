"""bc's state while it runs: variables, arrays, functions, the bases and the scale, and its output column."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.dataclass import dataclass, field
from belljar.bin.bc.mathlib import MathLibrary
from belljar.bin.bc.number import ZERO, Arithmetic, Number, NumberError, whole_part

MAX_DEPTH = 2000
MAX_INDEX = 16_777_215
MAX_SCALE = 2_147_483_647

Code = Callable[[], int | None]


class BcError(Exception):
    """A run-time error: the statement ends, the program goes on with the next line."""

    def __init__(self, message: str, address: int) -> None:
        super().__init__(message)
        self.message = message
        self.address = address
        self.where = ""


class Quit(Exception):
    """`quit` or `halt`."""


@dataclass(slots=True)
class Parameter:
    name: str
    array: bool = False
    reference: bool = False


@dataclass(slots=True)
class Function:
    name: str
    parameters: list[Parameter]
    autos: list[Parameter] = field(default_factory=list)
    void: bool = False
    body: Code = lambda: None


class Machine:
    """The state of a running bc program."""

    def __init__(
        self,
        charge: Callable[[int], None],
        charge_size: Callable[[int], None],
        write: Callable[[str], None],
        warn: Callable[[str], None],
        read_line: Callable[[], str],
        line_length: int,
    ) -> None:
        self.charge = charge
        self.arithmetic = Arithmetic(charge, charge_size)
        self.library = MathLibrary(self.arithmetic)
        self.write = write
        self.warn = warn
        self.read_line = read_line
        self.line_length = line_length
        self.column = 0
        self.variables: dict[str, Number] = {}
        self.arrays: dict[str, dict[int, Number]] = {}
        self.functions: dict[str, Function] = {}
        self.natives: dict[str, tuple[int, Callable[..., Number]]] = {}
        self.scale = 0
        self.ibase = 10
        self.obase = 10
        self.last = ZERO
        self.result = ZERO
        self.calls: list[str] = []
        self.seed = 1

    def use_math_library(self) -> None:
        library = self.library
        self.scale = 20
        self.natives = {
            "s": (1, library.sine),
            "c": (1, library.cosine),
            "a": (1, library.arctangent),
            "l": (1, library.logarithm),
            "e": (1, library.exponential),
            "j": (2, library.bessel),
        }

    # -- special variables --------------------------------------------------------------------------------------

    def get_special(self, name: str) -> Number:
        if name == "last":
            return self.last
        return Number({"scale": self.scale, "ibase": self.ibase, "obase": self.obase, "history": 0}[name])

    def set_special(self, name: str, value: Number, address: int = 0) -> None:
        number = whole_part(value)
        if name == "last":
            self.last = value
        elif name == "scale":
            if number < 0:
                self.caution("negative scale, set to 0", address)
            self.scale = max(0, min(number, MAX_SCALE))
        elif name == "ibase":
            if not 2 <= number <= 36:
                self.caution(f"ibase too {'small, set to 2' if number < 2 else 'large, set to 36'}", address)
            self.ibase = max(2, min(number, 36))
        elif name == "obase":
            if number < 2:
                self.caution("obase too small, set to 2", address)
            self.obase = max(2, min(number, MAX_SCALE))

    def caution(self, message: str, address: int = 0) -> None:
        self.warn(f"Runtime warning (func={self.where()}, adr={address}): {message}\n")

    def where(self) -> str:
        return self.calls[-1] if self.calls else "(main)"

    # -- arrays -------------------------------------------------------------------------------------------------

    def array(self, name: str) -> dict[int, Number]:
        return self.arrays.setdefault(name, {})

    def index(self, value: Number, name: str, address: int) -> int:
        number = whole_part(value)
        if not 0 <= number <= MAX_INDEX:
            raise BcError(f"Array {name} subscript out of bounds.", address)
        return number

    # -- calls --------------------------------------------------------------------------------------------------

    def call(self, name: str, arguments: list[Number | dict[int, Number]], address: int) -> Number:
        function = self.functions.get(name)
        if function is None:
            if name in self.natives:
                return self._call_native(name, arguments, address)
            raise BcError(f"Function {name} not defined.", address)
        if len(arguments) != len(function.parameters):
            raise BcError("Parameter number mismatch", address + 1 + min(len(arguments), len(function.parameters)))
        if len(self.calls) >= MAX_DEPTH:
            raise BcError("Function calls nested too deeply", address)
        self.charge(2)
        saved = self._enter(function, arguments, address)
        scale_before = self.ibase
        self.calls.append(name)
        self.result = ZERO
        try:
            function.body()
            return self.result
        except BcError as error:
            error.where = error.where or name
            raise
        finally:
            self.ibase = scale_before
            self.calls.pop()
            self._leave(saved)

    def _call_native(self, name: str, arguments: list[Number | dict[int, Number]], address: int) -> Number:
        count, native = self.natives[name]
        numbers = [argument for argument in arguments if isinstance(argument, Number)]
        if len(numbers) != count or len(arguments) != count:
            raise BcError("Parameter number mismatch", address + 1 + min(len(arguments), count))
        self.charge(10)
        try:
            return native(*numbers, self.scale)
        except NumberError as error:
            raise BcError(str(error), address) from error

    def _enter(
        self, function: Function, arguments: list[Number | dict[int, Number]], address: int
    ) -> list[tuple[Parameter, object]]:
        saved: list[tuple[Parameter, object]] = []
        for parameter in [*function.parameters, *function.autos]:
            table: dict[str, object] = self.arrays if parameter.array else self.variables  # type: ignore[assignment]
            saved.append((parameter, table.get(parameter.name)))
        for parameter, argument in zip(function.parameters, arguments, strict=True):
            if parameter.array != isinstance(argument, dict):
                self._leave(saved)
                raise BcError(f"Parameter type mismatch, parameter {parameter.name}.", address)
            if isinstance(argument, dict):
                self.charge(len(argument) >> 4)
                self.arrays[parameter.name] = argument if parameter.reference else dict(argument)
            else:
                self.variables[parameter.name] = argument
        for parameter in function.autos:
            if parameter.array:
                self.arrays[parameter.name] = {}
            else:
                self.variables[parameter.name] = ZERO
        return saved

    def _leave(self, saved: list[tuple[Parameter, object]]) -> None:
        for parameter, value in reversed(saved):
            table: dict[str, object] = self.arrays if parameter.array else self.variables  # type: ignore[assignment]
            if value is None:
                table.pop(parameter.name, None)
            else:
                table[parameter.name] = value

    # -- output -------------------------------------------------------------------------------------------------

    def show(self, value: Number, end: str = "\n") -> None:
        """Print a number, broken into lines where it is too long."""
        text = self.arithmetic.text(value, self.obase)
        self.last = value
        self.emit(text)
        if end:
            self.emit(end)

    def emit(self, text: str) -> None:
        limit = self.line_length
        if not limit or (len(text) + self.column < limit - 1 and "\n" not in text[:-1]):
            self.write(text)
            self.column = 0 if text.endswith("\n") else self.column + len(text)
            return
        out: list[str] = []
        for line in text.splitlines(keepends=True):
            while self.column + len(line.rstrip("\n")) >= limit - 1:
                room = limit - 2 - self.column
                out.append(line[:room] + "\\\n")
                line = line[room:]
                self.column = 0
            out.append(line)
            self.column = 0 if line.endswith("\n") else self.column + len(line)
        self.write("".join(out))

    def read_number(self) -> Number:
        """read(): a number from standard input."""
        text = self.read_line().strip()
        sign = -1 if text.startswith("-") else 1
        body = text.lstrip("+-").upper()
        if not body or body.strip("0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ.") or body.count(".") > 1:
            return ZERO
        number = self.arithmetic.parse(body, self.ibase)
        return Number(sign * number.value, number.scale)
