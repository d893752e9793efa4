"""Regular expressions as Oniguruma's Perl_NT syntax means them, on `re`, or on RE2 when `re` could run wild."""

import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Protocol

try:
    import re2
except ImportError:  # the browser has no RE2 wheel
    re2 = None

from belljar.bin.jq.errors import JqError
from belljar.bin.jq.values import Value, type_error
from belljar.libc.ctype import wide

Charge = Callable[[int], None]
LETTER, LETTER_OR_DIGIT = r"[^\W\d_]", r"[^\W_]"
INSIDE = {
    "digit": r"\d",
    "space": r"\s",
    "blank": r" \t",
    "xdigit": "0-9a-fA-F",
    "cntrl": r"\x00-\x1f\x7f-\x9f",
    "word": r"\w",
}
"""POSIX classes that can be spelled inside brackets."""
OUTSIDE = {"alpha": LETTER, "alnum": LETTER_OR_DIGIT}
"""Those that can't, as expressions of their own."""
PROPERTIES = {
    "l": "alpha",
    "letter": "alpha",
    "lu": "upper",
    "ll": "lower",
    "nd": "digit",
    "n": "digit",
    "p": "punct",
    "s": "punct",
    "z": "space",
    "zs": "blank",
    "cc": "cntrl",
}
SCRIPTS = {
    "han": r"\u2e80-\u2fd5\u3005\u3007\u3021-\u3029\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufad9",
    "hiragana": r"\u3041-\u309f",
    "katakana": r"\u30a1-\u30ff",
    "cyrillic": r"\u0400-\u052f",
    "greek": r"\u0370-\u03ff\u1f00-\u1fff",
    "latin": r"A-Za-z\u00aa\u00ba\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02b8\u1e00-\u1eff",
    "arabic": r"\u0600-\u06ff\u0750-\u077f",
    "hebrew": r"\u0591-\u05f4",
    "thai": r"\u0e01-\u0e5b",
    "hangul": r"\u1100-\u11ff\uac00-\ud7a3",
}
QUOTED = re.compile(r"\\Q(.*?)(?:\\E|\Z)", re.DOTALL)
NAMED_GROUP = re.compile(r"\(\?<([A-Za-z_]\w*)>")
# A repeated group that itself repeats or chooses is where a backtracking matcher can take exponential time.
NESTED_REPEAT = re.compile(r"[*+?}|][^()]*\)[^()]*\)*(?:[*+]|\{\d+(?:,|\}))")
LOOKS_AROUND = re.compile(r"\\[1-9kZ]|\(\?(?:[=!>]|<[=!]|P=)|[*+?}]\+")
MAX_CACHE = 256
MARKS = r"\u0300-\u036f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f"
MARKED = re.compile(f"[{MARKS}]")
TOKEN = re.compile(r"\\(.)|\[(?:\\.|[^\]\\])*\]|\$", re.DOTALL)


class Match(Protocol):
    """The common interface of `re` and RE2 matches."""

    def start(self, group: Any = 0) -> int: ...
    def end(self, group: Any = 0) -> int: ...
    def group(self, group: Any = 0) -> Any: ...


class Pattern(Protocol):
    @property
    def groups(self) -> int: ...
    @property
    def groupindex(self) -> Any: ...

    def finditer(self, text: str) -> Iterator[Any]: ...
    def search(self, text: str, position: int) -> Any: ...


def translate(source: str) -> str:
    """Oniguruma's notation in Python's."""
    source = QUOTED.sub(lambda match: re.escape(match.group(1)), source)
    out: list[str] = []
    position, size = 0, len(source)
    while position < size:
        ch = source[position]
        if source.startswith("{,", position):
            # Not a repetition in this syntax.
            out.append(r"\{")
            position += 1
        elif ch == "\\" and position + 1 < size:
            text, position = _escape(source, position)
            out.append(text)
        elif ch == "[":
            text, position = _bracket(source, position)
            out.append(text)
        elif ch == "(" and (named := NAMED_GROUP.match(source, position)):
            out.append(f"(?P<{named.group(1)}>")
            position = named.end()
        else:
            out.append(ch)
            position += 1
    return "".join(out)


def _escape(source: str, position: int) -> tuple[str, int]:
    letter = source[position + 1]
    after = position + 2
    if letter == "h":
        return "[0-9a-fA-F]", after
    if letter == "H":
        return "[^0-9a-fA-F]", after
    if letter == "R":
        return r"(?:\r\n|[\n-\r\x85\u2028\u2029])", after
    if letter == "z":
        return r"\Z", after
    if letter == "Z":
        return r"(?=\n?\Z)", after
    if letter == "G":
        return "", after
    if letter == "X":
        return "(?s:.)", after
    if letter == "e":
        return r"\x1b", after
    if letter == "N":
        return r"[^\n]", after
    if letter == "k" and after < len(source) and source[after] == "<":
        end = source.find(">", after)
        name = source[after + 1 : end]
        return (rf"(?:\{name})" if name.isdecimal() else f"(?P={name})"), end + 1
    if letter in "pP" and after < len(source) and source[after] == "{":
        end = source.find("}", after)
        name = source[after + 1 : end].lower()
        known = property_class(name.lstrip("^"))
        if known is None:
            raise JqError(f"Regex failure: invalid character property name {{{source[after + 1 : end]}}}")
        negated = (letter == "P") != name.startswith("^")
        return (f"(?:(?!{known})(?s:.))" if negated else known), end + 1
    if letter == "x" and after < len(source) and source[after] == "{":
        end = source.find("}", after)
        try:
            return re.escape(chr(int(source[after + 1 : end], 16))), end + 1
        except (ValueError, OverflowError):
            raise JqError("Regex failure: invalid code point value") from None
    if letter.isalpha() and letter not in "abfnrtvxuUdDwWsSBAZ":
        return re.escape(letter), after
    return source[position:after], after


def property_class(name: str) -> str | None:
    """An expression for one character of a property or POSIX class."""
    name = PROPERTIES.get(name, name)
    if name in OUTSIDE:
        return OUTSIDE[name]
    inside = class_ranges(name)
    return f"[{inside}]" if inside is not None else None


def class_ranges(name: str) -> str | None:
    """A class as it can stand inside brackets."""
    if name in INSIDE:
        return INSIDE[name]
    if name in SCRIPTS:
        return SCRIPTS[name]
    if name in ("upper", "lower", "punct", "print", "graph"):
        return "".join(f"\\U{low:08x}-\\U{high:08x}" for low, high in wide(name))
    return None


def _bracket(source: str, position: int) -> tuple[str, int]:
    """A bracket expression with its POSIX classes spelled out; those that need it become alternatives beside it."""
    inside: list[str] = []
    beside: list[str] = []
    position += 1
    size = len(source)
    negated = source.startswith("^", position)
    position += negated
    if source.startswith("]", position):
        inside.append(r"\]")
        position += 1
    while position < size:
        ch = source[position]
        if ch == "]":
            return bracket_text("".join(inside), beside, negated), position + 1
        if source.startswith("[:", position) and (end := source.find(":]", position)) > 0:
            name = source[position + 2 : end]
            found = property_class(name.lstrip("^"))
            if found is None:
                raise JqError("Regex failure: premature end of char-class")
            if name.startswith("^"):
                beside.append(f"(?:(?!{found})(?s:.))")
            elif name in OUTSIDE:
                beside.append(found)
            else:
                inside.append(found[1:-1])
            position = end + 2
        elif ch == "\\" and position + 1 < size:
            letter = source[position + 1]
            if letter == "p" and source.startswith("{", position + 2):
                text, position = _escape(source, position)
                beside.append(text)
                continue
            inside.append("0-9a-fA-F" if letter == "h" else source[position : position + 2])
            position += 2
        elif ch == "[":
            inside.append(r"\[")
            position += 1
        else:
            inside.append("\\" + ch if ch in "&~|" and source[position + 1 : position + 2] == ch else ch)
            position += 1
    raise JqError("Regex failure: premature end of char-class")


def bracket_text(inside: str, beside: list[str], negated: bool) -> str:
    if not beside:
        return f"[^{inside}]" if negated else f"[{inside}]"
    others = "|".join(beside)
    if negated:
        return f"(?:(?!{others})" + (f"[^{inside}])" if inside else "(?s:.))")
    return f"(?:{others}|[{inside}])" if inside else f"(?:{others})"


def with_marks(text: str) -> str:
    """Python's notation with combining marks counted as parts of words, as Oniguruma does."""
    word = rf"[\w{MARKS}]"
    edge = rf"(?:(?<={word})(?!{word})|(?<!{word})(?={word}))"
    spelled = {"w": word, "W": rf"[^\w{MARKS}]", "b": edge, "B": rf"(?!{edge})"}

    def spell(token: "re.Match[str]") -> str:
        whole = token.group()
        if whole[0] == "[":
            return whole.replace(r"\w", rf"\w{MARKS}")
        return spelled.get(token.group(1) or "", whole)

    return TOKEN.sub(spell, text)


@lru_cache(MAX_CACHE)
def compiled(source: str, flags: int, marks: bool) -> Pattern:
    text = translate(source)
    if marks:
        text = with_marks(text)
    try:
        pattern = re.compile(text, flags)
    except (re.error, OverflowError, RecursionError, ValueError) as problem:
        raise JqError(f"Regex failure: {problem}") from None
    if NESTED_REPEAT.search(text) and not LOOKS_AROUND.search(text):
        linear = compile_linear(text, flags)
        if linear is not None:
            return linear
    return pattern


def compile_linear(text: str, flags: int) -> Pattern | None:
    """The same expression on RE2, which never backtracks; None if it has something RE2 does not know."""
    if re2 is None or flags & re.VERBOSE:
        return None
    options = re2.Options()
    options.log_errors = False
    options.case_sensitive = not flags & re.IGNORECASE
    options.dot_nl = bool(flags & re.DOTALL)
    options.max_mem = 1 << 24
    try:
        return re2.compile(for_linear(text), options)  # type: ignore[no-any-return]
    except re2.error:
        return None


LINEAR = {"Z": r"\z", "w": r"[\p{L}\p{M}\p{Nd}_]", "W": r"[^\p{L}\p{M}\p{Nd}_]", "d": r"\p{Nd}", "D": r"\P{Nd}"}


def for_linear(text: str) -> str:
    """Python's notation in RE2's, whose letters and digits would otherwise be ASCII only."""

    def spell(token: "re.Match[str]") -> str:
        whole = token.group()
        if whole == "$":
            return r"\z"
        if whole[0] == "[":
            return whole.replace(r"\w", r"\p{L}\p{M}\p{Nd}_").replace(r"\d", r"\p{Nd}")
        return LINEAR.get(token.group(1), whole)

    text = text.replace(LETTER, r"\p{L}").replace(LETTER_OR_DIGIT, r"[\p{L}\p{Nd}]")
    return TOKEN.sub(spell, text)


def find(text: Value, expression: Value, modifiers: Value, charge: Charge) -> list[Any]:
    """The matches in `text`: one, or with `g` all."""
    if text.__class__ is not str:
        raise type_error(text, "cannot be matched, as it is not a string")
    if expression.__class__ is not str:
        raise type_error(expression, "is not a string")
    flags, everywhere, nonempty = 0, False, False
    if modifiers is not None:
        if modifiers.__class__ is not str:
            raise type_error(modifiers, "is not a string")
        for letter in modifiers:
            if letter == "g":
                everywhere = True
            elif letter == "i":
                flags |= re.IGNORECASE
            elif letter == "x":
                flags |= re.VERBOSE
            elif letter in "mp":
                flags |= re.DOTALL
            elif letter == "n":
                nonempty = True
            elif letter not in "sl":
                raise JqError(f"{modifiers} is not a valid modifier string")
    charge(1 + (len(text) >> 8))
    pattern = compiled(expression, flags, not text.isascii() and MARKED.search(text) is not None)
    matches: Iterator[Any] = adjacent(pattern, text)
    if nonempty:
        matches = (match for match in matches if match.start() != match.end())
    if not everywhere:
        for match in matches:
            return [match]
        return []
    found = list(matches)
    charge(len(found))
    return found


def adjacent(pattern: Pattern, text: str) -> Iterator[Any]:
    """All matches left to right. An empty one right after another match counts, and moves on by one."""
    position, size = 0, len(text)
    while position <= size:
        match = pattern.search(text, position)
        if match is None:
            return
        yield match
        position = match.end() + (match.start() == match.end())


def group_names(match: Any) -> dict[int, str]:
    return {number: name for name, number in match.re.groupindex.items()}


def capture_object(match: Any, group: int, name: str | None) -> dict[str, Value]:
    start = match.start(group)
    text = match.group(group)
    return {
        "offset": start if text is not None else -1,
        "length": len(text) if text is not None else 0,
        "string": text,
        "name": name,
    }


def match(text: Value, expression: Value, modifiers: Value, charge: Charge) -> list[Value]:
    found = find(text, expression, modifiers, charge)
    if not found:
        return []
    names, groups = group_names(found[0]), found[0].re.groups
    return [
        {
            "offset": item.start(),
            "length": item.end() - item.start(),
            "string": item.group(),
            "captures": [capture_object(item, group, names.get(group)) for group in range(1, groups + 1)],
        }
        for item in found
    ]


def named(item: Any) -> dict[str, Value]:
    return {name: item.group(name) for name in item.re.groupindex}


def capture(text: Value, expression: Value, modifiers: Value, charge: Charge) -> list[Value]:
    return [named(item) for item in find(text, expression, modifiers, charge)]


def scan(text: Value, expression: Value, modifiers: Value, charge: Charge) -> list[Value]:
    flags = "g" + modifiers if modifiers.__class__ is str else "g"
    found = find(text, expression, flags, charge)
    if found and found[0].re.groups:
        return [[item.group(group) for group in range(1, item.re.groups + 1)] for item in found]
    return [item.group() for item in found]


def test(text: Value, expression: Value, modifiers: Value, charge: Charge) -> bool:
    flags = modifiers.replace("g", "") if modifiers.__class__ is str else modifiers
    return bool(find(text, expression, flags, charge))


def split(text: Value, expression: Value, modifiers: Value, charge: Charge) -> list[Value]:
    if text.__class__ is str and expression.__class__ is not str:
        raise type_error(expression, "cannot be matched, as it is not a string")
    pieces, previous = [], 0
    for item in find(text, expression, (modifiers or "") + "g", charge):
        pieces.append(text[previous : item.start()])
        previous = item.end()
    return [*pieces, text[previous:]]
