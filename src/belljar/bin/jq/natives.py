"""The builtins that are plain functions of values."""

import math
from collections.abc import Callable, Iterable

from belljar.bin.jq.access import delete_paths, has, index, indices_of_run, iterate, keys
from belljar.bin.jq.exact import ParseError
from belljar.bin.jq.formats import FORMATS
from belljar.bin.jq.numbers import (
    INFINITE,
    NAN,
    NUMERIC,
    from_float,
    negate,
    parse_literal,
    to_float,
)
from belljar.bin.jq.reader import parse_one
from belljar.bin.jq.values import (
    MAX_DEPTH,
    JqError,
    Value,
    add,
    compare,
    contains,
    equal,
    is_number,
    kind_name,
    length,
    sort_key,
    sorted_values,
    split,
    to_text,
    type_error,
)
from belljar.bin.jq.writer import to_json

NATIVES: dict[tuple[str, int], Callable[..., Value]] = {}
UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


def native(name: str, arity: int = 0) -> Callable[[Callable[..., Value]], Callable[..., Value]]:
    def register(function: Callable[..., Value]) -> Callable[..., Value]:
        NATIVES[name, arity] = function
        return function

    return register


# Kinds and conversions

NATIVES["type", 0] = kind_name
NATIVES["length", 0] = length
NATIVES["tojson", 0] = to_json
NATIVES["tostring", 0] = to_text
NATIVES["keys", 0] = keys
NATIVES["has", 1] = has
NATIVES["contains", 1] = contains
NATIVES["delpaths", 1] = delete_paths
NATIVES["infinite", 0] = lambda v: INFINITE
NATIVES["nan", 0] = lambda v: NAN
NATIVES["have_literal_numbers", 0] = lambda v: True
NATIVES["have_decnum", 0] = lambda v: True
NATIVES["toarray", 0] = lambda v: v if v.__class__ is list else [v]
NATIVES["null", 0] = lambda v: None
NATIVES["true", 0] = lambda v: True
NATIVES["false", 0] = lambda v: False


@native("fromjson")
def fromjson(v: Value) -> Value:
    if v.__class__ is not str:
        raise type_error(v, "only strings can be parsed")
    try:
        return parse_one(v)
    except ParseError as error:
        raise JqError(str(error)) from None


@native("tonumber")
def tonumber(v: Value) -> Value:
    if is_number(v):
        return v
    if v.__class__ is str:
        if NUMERIC.fullmatch(v):
            return parse_literal(v)
        if v.lower() in ("nan", "-nan"):
            return NAN
    raise type_error(v, "cannot be parsed as a number")


@native("toboolean")
def toboolean(v: Value) -> Value:
    if v.__class__ is bool:
        return v
    if v.__class__ is str and v in ("true", "false"):
        return v == "true"
    raise type_error(v, "cannot be parsed as a boolean")


@native("utf8bytelength")
def utf8bytelength(v: Value) -> int:
    if v.__class__ is not str:
        raise type_error(v, "only strings have UTF-8 byte length")
    return len(v.encode("utf-8", "replace"))


@native("format", 1)
def format_(v: Value, name: Value) -> str:
    if name.__class__ is not str:
        raise type_error(name, "is not a valid format")
    render = FORMATS.get(name)
    if render is None:
        raise JqError(f"{name} is not a valid format")
    return render(v)


@native("keys_unsorted")
def keys_unsorted(v: Value) -> list[Value]:
    return list(v) if v.__class__ is dict else keys(v)


@native("abs")
def abs_(v: Value) -> Value:
    if compare(v, 0) >= 0:
        return v
    if not is_number(v):
        raise type_error(v, "cannot be negated")
    return negate(v)


# Strings


def both_strings(v: Value, other: Value, name: str) -> None:
    if v.__class__ is not str or other.__class__ is not str:
        raise JqError(f"{name}() requires string inputs")


@native("startswith", 1)
def startswith(v: Value, prefix: Value) -> bool:
    both_strings(v, prefix, "startswith")
    return bool(v.startswith(prefix))


@native("endswith", 1)
def endswith(v: Value, suffix: Value) -> bool:
    both_strings(v, suffix, "endswith")
    return bool(v.endswith(suffix))


@native("ltrimstr", 1)
def ltrimstr(v: Value, prefix: Value) -> Value:
    both_strings(v, prefix, "startswith")
    return v.removeprefix(prefix)


@native("rtrimstr", 1)
def rtrimstr(v: Value, suffix: Value) -> Value:
    both_strings(v, suffix, "endswith")
    return v.removesuffix(suffix)


@native("trimstr", 1)
def trimstr(v: Value, text: Value) -> Value:
    return rtrimstr(ltrimstr(v, text), text)


def trimmer(name: str, trim: Callable[[str], str]) -> None:
    @native(name)
    def trimmed(v: Value) -> str:
        if v.__class__ is not str:
            raise JqError("trim input must be a string")
        return trim(v)


trimmer("trim", lambda text: text.strip(SPACE))
trimmer("ltrim", lambda text: text.lstrip(SPACE))
trimmer("rtrim", lambda text: text.rstrip(SPACE))


def cased(name: str, table: dict[int, int]) -> None:
    @native(name)
    def change(v: Value) -> str:
        if v.__class__ is not str:
            raise JqError(f"{name} input must be a string")
        return str(v.translate(table))


cased("ascii_downcase", LOWER)
cased("ascii_upcase", UPPER)


@native("explode")
def explode(v: Value) -> list[int]:
    if v.__class__ is not str:
        raise JqError("explode input must be a string")
    return list(map(ord, v))


@native("implode")
def implode(v: Value) -> str:
    if v.__class__ is not list:
        raise JqError("implode input must be an array")
    letters = []
    for code in v:
        number = to_float(code) if is_number(code) else math.nan
        if math.isnan(number):
            raise type_error(code, "can't be imploded, unicode codepoint needs to be numeric")
        valid = 0 <= number < 0x110000 and not 0xD800 <= number < 0xE000
        letters.append(chr(int(number)) if valid else "\ufffd")
    return "".join(letters)


@native("ascii")
def ascii_(v: Value) -> str:
    return implode([v])


@native("split", 1)
def split1(v: Value, separator: Value) -> list[Value]:
    if v.__class__ is not str or separator.__class__ is not str:
        raise JqError("split input and separator must be strings")
    return split(v, separator)  # type: ignore[return-value]


@native("join", 1)
def join(v: Value, separator: Value) -> str:
    items = list(iterate(v))
    if all(item.__class__ is str for item in items) and separator.__class__ is str:
        return separator.join(items)  # type: ignore[no-any-return]
    result: Value = None
    for item in items:
        result = "" if result is None else add(result, separator)
        if item.__class__ is bool or is_number(item):
            item = to_text(item)
        result = add(result, "" if item is None else item)
    return "" if result is None else result


@native("indices", 1)
def indices(v: Value, what: Value) -> Value:
    if v.__class__ is str and what.__class__ is str:
        found: list[int] = []
        place = v.find(what) if what else -1
        while place >= 0:
            found.append(place)
            place = v.find(what, place + 1)
        return found
    if v.__class__ is list:
        return indices_of_run(v, what if what.__class__ is list else [what])
    return index(v, what)


@native("index", 1)
def index_first(v: Value, what: Value) -> Value:
    if v.__class__ is str and what.__class__ is str:
        place = v.find(what) if what else -1
        return place if place >= 0 else None
    return index(indices(v, what), 0)


@native("rindex", 1)
def index_last(v: Value, what: Value) -> Value:
    if v.__class__ is str and what.__class__ is str:
        place = v.rfind(what) if what else -1
        return place if place >= 0 else None
    return index(indices(v, what), -1)


# Arrays


def need_array(v: Value) -> list[Value]:
    if v.__class__ is not list:
        raise type_error(v, "cannot be sorted, as it is not an array")
    return v  # type: ignore[no-any-return]


@native("sort")
def sort(v: Value) -> list[Value]:
    return sorted_values(need_array(v))


@native("unique")
def unique(v: Value) -> list[Value]:
    result: list[Value] = []
    for item in sorted_values(need_array(v)):
        if not result or not equal(result[-1], item):
            result.append(item)
    return result


@native("min")
def min_(v: Value) -> Value:
    return min(v, key=sort_key) if need_array(v) else None


@native("max")
def max_(v: Value) -> Value:
    return max(reversed(v), key=sort_key) if need_array(v) else None


@native("reverse")
def reverse(v: Value) -> Value:
    if v.__class__ is str:
        return v[::-1]
    if v.__class__ is list:
        return v[::-1]
    if v is None:
        return []
    if length(v) == 0:
        return []
    raise JqError(f"Cannot index {kind_name(v)} with number")


@native("flatten", 0)
def flatten_all(v: Value) -> list[Value]:
    return flatten_to(iterate(v), MAX_DEPTH + 1)


@native("flatten", 1)
def flatten(v: Value, depth: Value) -> list[Value]:
    if compare(depth, 0) < 0:
        raise JqError("flatten depth must not be negative")
    return flatten_to(iterate(v), to_float(depth) if is_number(depth) else math.inf)


def flatten_to(items: Iterable[Value], depth: float) -> list[Value]:
    result: list[Value] = []
    stack = [iter(items)]
    while stack:
        for item in stack[-1]:
            if item.__class__ is list and len(stack) <= depth:
                stack.append(iter(item))
                break
            result.append(item)
        else:
            stack.pop()
    return result


@native("transpose")
def transpose(v: Value) -> list[Value]:
    rows = list(iterate(v))
    width = max((length(row) for row in rows), default=0)
    return [[index(row, column) for row in rows] for column in range(int(to_float(width)))]


@native("bsearch", 1)
def bsearch(v: Value, target: Value) -> int:
    if v.__class__ is not list:
        raise type_error(v, "cannot be searched from")
    low, high = 0, len(v) - 1
    while low <= high:
        middle = (low + high) // 2
        order = compare(v[middle], target)
        if order == 0:
            return middle
        if order < 0:
            low = middle + 1
        else:
            high = middle - 1
    return -1 - low


# Arithmetic


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
    "gamma": math.lgamma,
    "lgamma": math.lgamma,
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
    return [from_float(careful(math.lgamma)(x)), sign]


@native("isinfinite")
def isinfinite(v: Value) -> bool:
    return math.isinf(number(v))


@native("isnan")
def isnan(v: Value) -> bool:
    return math.isnan(number(v))


@native("isfinite")
def isfinite(v: Value) -> bool:
    return is_number(v) and not math.isinf(to_float(v))


@native("isnormal")
def isnormal(v: Value) -> bool:
    x = number(v)
    return math.isfinite(x) and abs(x) >= 2.2250738585072014e-308
