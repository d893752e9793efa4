"""seq - print a sequence of numbers

Usage: seq [OPTION]... LAST
       seq [OPTION]... FIRST LAST
       seq [OPTION]... FIRST INCREMENT LAST

Print numbers from FIRST to LAST, in steps of INCREMENT. If FIRST or INCREMENT is omitted, it defaults to 1.
"""

import re
from collections.abc import Iterator
from decimal import Context, Decimal, InvalidOperation

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import UsageError, flag, value
from belljar.bin._kit.options import parse
from belljar.bin._kit.program import utility, version
from belljar.kernel.process import Process

_NUMBER = re.compile(
    r"[-+]?(?:0x(?:[0-9a-f]+\.?[0-9a-f]*|\.[0-9a-f]+)(?:p[-+]?\d+)?|(?:\d+\.?\d*|\.\d+)(?:e[-+]?\d+)?"
    r"|inf(?:inity)?|nan)",
    re.I | re.A,
)
_FORMAT = re.compile(r"((?:[^%]|%%)*)%([-+ 0#']*)(\d*)(?:\.(\d*))?L?([efgaEFGA])((?:[^%]|%%)*)", re.S | re.A)
_NEGATIVE = re.compile(r"-[\d.]")
_EXACT = Context(prec=60)
_BATCH = 1 << 13


@dataclass(frozen=True, slots=True)
class Options:
    format: str | None = value("-f", "--format", "use printf style floating-point FORMAT", metavar="FORMAT")
    separator: str = value("-s", "--separator", "use STRING to separate numbers", metavar="STRING", default="\n")
    equal_width: bool = flag("-w", "--equal-width", "equalize width by padding with leading zeroes")


@dataclass(frozen=True, slots=True)
class Number:
    value: Decimal
    places: int | None
    """Digits after the point, as written; None for a hexadecimal fraction, which says nothing of that."""
    width: int
    """Columns it takes when written without exponent."""


@utility("seq")
def main(process: Process, args: list[str]) -> int:
    if (plain := _plain_numbers(args)) is not None:
        _count(process, plain)
        return 0
    # A negative number is an operand, not an option.
    split = next((i for i, a in enumerate(args) if _NEGATIVE.match(a)), len(args))
    parsed = parse(Options, args[:split], "first-operand-ends")
    if parsed.asked:
        process.print(main.help().rstrip() if parsed.asked == "help" else version("seq"))
        return 0
    options = Options(**parsed.values)
    operands = parsed.operands + args[split:]
    if not operands:
        raise UsageError("missing operand")
    if len(operands) > 3:
        raise UsageError(f"extra operand \u2018{operands[3]}\u2019")
    numbers = [read_number(text) for text in operands]
    first = numbers[0] if len(numbers) > 1 else Number(Decimal(1), 0, 1)
    step = numbers[1] if len(numbers) == 3 else Number(Decimal(1), 0, 1)
    last = numbers[-1]
    if step.value == 0:
        raise UsageError(f"invalid Zero increment value: \u2018{operands[1]}\u2019")
    if options.format is not None and options.equal_width:
        raise UsageError("format string may not be specified when printing equal width strings")
    emit(process, options, first, step, last)
    return 0


def _plain_numbers(args: list[str]) -> range | None:
    """Whole numbers of ordinary size and nothing else: most calls."""
    if not 1 <= len(args) <= 3:
        return None
    for arg in args:
        if not (arg.isdecimal() and arg.isascii()) or len(arg) > 15:
            return None
    first, step = int(args[0]) if len(args) > 1 else 1, int(args[1]) if len(args) == 3 else 1
    return range(first, int(args[-1]) + 1, step) if step else None


def _count(process: Process, numbers: range) -> None:
    for start in range(0, len(numbers), _BATCH):
        batch = numbers[start : start + _BATCH]
        process.budget.charge(len(batch) // 8 + 1)
        process.stdout.write(("\n".join(map(str, batch)) + "\n").encode())


def read_number(text: str) -> Number:
    stripped = text.strip()
    if not _NUMBER.fullmatch(stripped) or text != text.rstrip():
        raise UsageError(f"invalid floating point argument: \u2018{text}\u2019")
    if "nan" in stripped.lower():
        raise UsageError(f"invalid \u2018not-a-number\u2019 argument: \u2018{text}\u2019")
    shown = stripped.lstrip("+").lower()
    point = "." in shown
    if "x" in shown:
        mantissa, _, power = shown.partition("p")
        whole, _, fraction = mantissa.replace("0x", "").partition(".")
        if len(power) > 6 or len(mantissa) > _INT_DIGITS:
            raise UsageError(f"invalid floating point argument: \u2018{text}\u2019")
        scale = int(power or "0") - 4 * len(fraction)
        number = Decimal(int(whole + fraction, 16))
        number = _EXACT.multiply(number, _EXACT.power(Decimal(2), scale)) if scale else number
        return Number(number, None if point or power else 0, 0)
    try:
        number = Decimal(shown)
    except InvalidOperation:
        raise UsageError(f"invalid floating point argument: \u2018{text}\u2019") from None
    if number.is_infinite():
        return Number(number, 0, 0)
    if number.adjusted() > _GREATEST:
        raise UsageError(f"invalid floating point argument: \u2018{text}\u2019")
    mantissa, exponential, exponent = shown.partition("e")
    fraction = mantissa.partition(".")[2]
    places, width = len(fraction), len(mantissa)
    if point:
        # "1." is written as "1", ".5" as "0.5".
        width += -1 if not fraction else int(not mantissa[: -len(fraction) - 1][-1:].isdecimal())
    if exponential:
        shift = int(exponent)
        if shift < 0:
            places -= shift
            width += -shift + (0 if fraction else 1)
        else:
            places = max(0, places - shift)
            width += max(0, shift - len(fraction)) - (1 if fraction and not places else 0)
    return Number(number, places, width)


_GREATEST = 4931
"""The largest decimal exponent of a long double."""
_INT_DIGITS = 4000
"""Longer numbers Python refuses to write as int; Decimal does."""


def emit(process: Process, options: Options, first: Number, step: Number, last: Number) -> None:
    separator = fsencode(options.separator)
    started = False
    for batch in texts(process, options, first, step, last):
        process.budget.charge(len(batch) // 8 + 1)
        block = separator.join(batch)
        process.stdout.write(separator + block if started else block)
        started = True
    if started:
        process.stdout.write(b"\n")


def texts(process: Process, options: Options, first: Number, step: Number, last: Number) -> Iterator[list[bytes]]:
    places = None
    if first.places is not None and step.places is not None and last.places is not None:
        places = max(first.places, step.places)
    whole = places == 0 and first.value == int(first.value) if first.value.is_finite() else False
    negative_zero = first.value.is_zero() and first.value.is_signed()
    if (
        options.format is None
        and not options.equal_width
        and whole
        and not negative_zero
        and step.value.is_finite()
        and step.value == step.value.to_integral_value()
        and max(first.value.adjusted(), step.value.adjusted()) < _INT_DIGITS
    ):
        yield from _integers(int(first.value), int(step.value), last.value)
        return
    render = _renderer(process, options, first, step, last, places)
    value, batch = first.value, list[bytes]()
    index = 0
    while (value <= last.value) if step.value > 0 else (value >= last.value):
        batch.append(render(value))
        index += 1
        value = _EXACT.fma(step.value, Decimal(index), first.value)
        if len(batch) >= _BATCH:
            yield batch
            batch = []
    if batch:
        yield batch


def _integers(first: int, step: int, last: Decimal) -> Iterator[list[bytes]]:
    if last.is_infinite():
        if (last > 0) != (step > 0):
            return
        stop = None
    else:
        stop = int(last.to_integral_value("ROUND_FLOOR" if step > 0 else "ROUND_CEILING"))
    while stop is None or ((first <= stop) if step > 0 else (first >= stop)):
        end = first + step * _BATCH
        if stop is not None:
            end = min(end, stop + 1) if step > 0 else max(end, stop - 1)
        numbers = range(first, end, step)
        yield "\n".join(map(str, numbers)).encode().split(b"\n")
        first = numbers[-1] + step


def _renderer(process: Process, options: Options, first: Number, step: Number, last: Number, places: int | None):  # type: ignore[no-untyped-def]
    if options.format is not None:
        match = _FORMAT.fullmatch(options.format)
        if match is None:
            raise UsageError(_format_complaint(options.format), hint=False)
        prefix, flags, width, precision, kind, suffix = match.groups()
        process.budget.charge_size(int((width or "0")[:18]) + int((precision or "0")[:18]))
        template = f"%{flags.replace(chr(39), '')}{width}{'.' + precision if precision is not None else ''}{kind}"
        head, tail = prefix.replace("%%", "%"), suffix.replace("%%", "%")
        if kind in "aA":
            return lambda value: fsencode(head + _hexadecimal(value, kind == "A").rjust(int(width or 0)) + tail)
        return lambda value: fsencode(head + template % float(value) + tail)
    if places is None:
        return lambda value: b"%g" % float(value)
    wide = 0
    if options.equal_width:
        wide = max(_width(first, places), _width(last, places))

    def plain(value: Decimal) -> bytes:
        if value.is_infinite():
            return b"%*f" % (wide, float(value))
        return f"{value:.{places}f}".zfill(wide).encode()

    return plain


def _width(number: Number, places: int) -> int:
    """Columns of a number with the decimals that all of them get."""
    own = number.places or 0
    return number.width + places - own + bool(places) - bool(own)


def _hexadecimal(value: Decimal, upper: bool) -> str:
    """A long double as C's %La writes it: a first digit of 8 to f, and a power of two."""
    if not value.is_finite() or not value:
        text = str(float(value)) if value else "0x0p+0"
    else:
        numerator, denominator = abs(value).as_integer_ratio()
        power = numerator.bit_length() - denominator.bit_length() - 64
        scaled = (numerator << -power) // denominator if power < 0 else numerator // (denominator << power)
        while scaled >> 64:
            scaled, power = scaled >> 1, power + 1
        digits = f"{scaled:016x}"
        fraction = digits[1:].rstrip("0")
        text = f"{'-' if value < 0 else ''}0x{digits[0]}{'.' if fraction else ''}{fraction}p{power + 60:+d}"
    return text.upper() if upper else text


def _format_complaint(text: str) -> str:
    directives = re.findall(r"%%|%[^%]*", text)
    real = [d for d in directives if d != "%%"]
    if not real:
        return f"format \u2018{text}\u2019 has no % directive"
    if len(real) > 1:
        return f"format \u2018{text}\u2019 has too many % directives"
    match = re.match(r"%[-+ 0#']*\d*(?:\.\d*)?L?(.?)", real[0], re.S)
    if match is None or not match[1]:
        return f"format \u2018{text}\u2019 ends in %"
    return f"format \u2018{text}\u2019 has unknown %{match[1]} directive"
