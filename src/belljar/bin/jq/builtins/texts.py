"""Builtins on values and strings: kinds, conversions, trimming, searching."""

import math
from collections.abc import Callable

from belljar.bin.jq.access import delete_paths, has, index, indices_of_run, iterate, keys
from belljar.bin.jq.builtins.registry import NATIVES, native
from belljar.bin.jq.errors import JqError
from belljar.bin.jq.exact import ParseError
from belljar.bin.jq.formats import FORMATS
from belljar.bin.jq.numbers import INFINITE, NAN, NUMERIC, negate, parse_literal, to_float
from belljar.bin.jq.reader import parse_one
from belljar.bin.jq.values import (
    Value,
    add,
    compare,
    contains,
    is_number,
    kind_name,
    length,
    split,
    to_text,
    type_error,
)
from belljar.bin.jq.writer import to_json

UPPER = str.maketrans("abcdefghijklmnopqrstuvwxyz", "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
LOWER = str.maketrans("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "abcdefghijklmnopqrstuvwxyz")
SPACE = "\t\n\v\f\r \x85\xa0\u1680\u2028\u2029\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))


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
    return str(v).removeprefix(prefix)


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
    return str(implode([v]))


@native("split", 1)
def split1(v: Value, separator: Value) -> list[Value]:
    if v.__class__ is not str or separator.__class__ is not str:
        raise JqError("split input and separator must be strings")
    return split(v, separator)


@native("join", 1)
def join(v: Value, separator: Value) -> str:
    items = list(iterate(v))
    if all(item.__class__ is str for item in items) and separator.__class__ is str:
        return str(separator.join(items))
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
