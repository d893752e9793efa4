"""Builtins on numbers: the C library's functions, with C's answers outside their domains."""

import math
from collections.abc import Callable

from belljar.bin.jq.builtins.registry import NATIVES, native
from belljar.bin.jq.numbers import from_float, to_float
from belljar.bin.jq.values import Value, is_number, type_error


def number(v: Value) -> float:
    if not is_number(v):
        raise type_error(v, "number required")
    return to_float(v)


def careful(function: Callable[..., float]) -> Callable[..., float]:
    """C's answers where Python raises: nan out of the domain, infinity out of the range."""

    def call(*arguments: float) -> float:
        try:
            return function(*arguments)
        except ValueError:
            return math.nan
        except OverflowError:
            return math.inf

    return call


def logarithm(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: -math.inf if x == 0 else function(x)


def half_away(x: float) -> float:
    if not math.isfinite(x) or abs(x) >= 2**52:
        return x
    return math.copysign(math.floor(abs(x) + 0.5), x)


def half_even(x: float) -> float:
    return x if not math.isfinite(x) else math.copysign(float(round(x)), x)


def exponent(x: float) -> float:
    if x == 0:
        return -math.inf
    if not math.isfinite(x):
        return abs(x)
    return float(math.frexp(x)[1] - 1)


def significand(x: float) -> float:
    if x == 0 or not math.isfinite(x):
        return x
    return math.frexp(x)[0] * 2


def log_gamma(x: float) -> float:
    try:
        return math.lgamma(x)
    except (ValueError, OverflowError):
        return math.inf


def power(x: float, y: float) -> float:
    try:
        return math.pow(x, y)
    except OverflowError:
        return -math.inf if x < 0 and y % 2 == 1 else math.inf
    except ValueError:
        return math.inf if x == 0 else math.nan


def scale(x: float, y: float) -> float:
    if not math.isfinite(y):
        return x * power(2.0, y)
    return math.ldexp(x, int(max(min(y, 1e6), -1e6)))


def whole(function: Callable[[float], float]) -> Callable[[float], float]:
    return lambda x: x if not math.isfinite(x) else math.copysign(float(function(x)), x)


UNARY: dict[str, Callable[[float], float]] = {
    "acos": math.acos,
    "acosh": math.acosh,
    "asin": math.asin,
    "asinh": math.asinh,
    "atan": math.atan,
    "atanh": math.atanh,
    "cbrt": math.cbrt,
    "ceil": whole(math.ceil),
    "cos": math.cos,
    "cosh": math.cosh,
    "erf": math.erf,
    "erfc": math.erfc,
    "exp": math.exp,
    "exp10": lambda x: power(10.0, x),
    "exp2": lambda x: power(2.0, x),
    "expm1": math.expm1,
    "fabs": math.fabs,
    "floor": whole(math.floor),
    "gamma": log_gamma,
    "lgamma": log_gamma,
    "log": logarithm(math.log),
    "log10": logarithm(math.log10),
    "log1p": math.log1p,
    "log2": logarithm(math.log2),
    "logb": exponent,
    "nearbyint": half_even,
    "pow10": lambda x: power(10.0, x),
    "rint": half_even,
    "round": half_away,
    "significand": significand,
    "sin": math.sin,
    "sinh": math.sinh,
    "sqrt": math.sqrt,
    "tan": math.tan,
    "tanh": math.tanh,
    "tgamma": math.gamma,
    "trunc": whole(math.trunc),
}
BINARY: dict[str, Callable[[float, float], float]] = {
    "atan2": math.atan2,
    "copysign": math.copysign,
    "drem": math.remainder,
    "fdim": lambda x, y: max(x - y, 0.0),
    "fmax": lambda x, y: y if math.isnan(x) else x if math.isnan(y) else max(x, y),
    "fmin": lambda x, y: y if math.isnan(x) else x if math.isnan(y) else min(x, y),
    "fmod": math.fmod,
    "hypot": math.hypot,
    "ldexp": scale,
    "nextafter": math.nextafter,
    "nexttoward": math.nextafter,
    "pow": power,
    "remainder": math.remainder,
    "scalb": scale,
    "scalbln": scale,
}


def unary(function: Callable[[float], float]) -> Callable[[Value], Value]:
    call = careful(function)
    return lambda v: from_float(call(number(v)))


def binary(function: Callable[[float, float], float]) -> Callable[[Value, Value, Value], Value]:
    call = careful(function)
    return lambda v, a, b: from_float(call(number(a), number(b)))


for _name, _function in UNARY.items():
    NATIVES[_name, 0] = unary(_function)
for _name, _operation in BINARY.items():
    NATIVES[_name, 2] = binary(_operation)
NATIVES["fma", 3] = lambda v, a, b, c: from_float(number(a) * number(b) + number(c))


@native("floor")
def floor(v: Value) -> Value:
    if v.__class__ is int:
        return v
    x = number(v)
    return from_float(x if not math.isfinite(x) else float(math.floor(x)))


@native("frexp")
def frexp(v: Value) -> list[Value]:
    x = number(v)
    mantissa, power_of_two = math.frexp(x) if math.isfinite(x) else (x, 0)
    return [from_float(mantissa), power_of_two]


@native("modf")
def modf(v: Value) -> list[Value]:
    fraction, integer = math.modf(number(v))
    return [from_float(fraction), from_float(integer)]


@native("lgamma_r")
def lgamma_r(v: Value) -> list[Value]:
    x = number(v)
    sign = 1 if x > 0 or math.floor(x) % 2 == 0 else -1
    return [from_float(log_gamma(x)), sign]


@native("isinfinite")
def isinfinite(v: Value) -> bool:
    return is_number(v) and math.isinf(to_float(v))


@native("isnan")
def isnan(v: Value) -> bool:
    return is_number(v) and math.isnan(to_float(v))


@native("isfinite")
def isfinite(v: Value) -> bool:
    return is_number(v) and not math.isinf(to_float(v))


@native("isnormal")
def isnormal(v: Value) -> bool:
    return is_number(v) and math.isfinite(to_float(v)) and abs(to_float(v)) >= 2.2250738585072014e-308
