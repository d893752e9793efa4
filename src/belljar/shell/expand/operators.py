"""The operators of parameter expansion, on values already fetched: strip, replace, change case, slice, transform."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from belljar.abi.paths import narrow
from belljar.libc import quote
from belljar.libc.pattern import Pattern, compile_pattern
from belljar.shell.arrays import Array, Assoc
from belljar.shell.control import SubstringError
from belljar.shell.parse.ansi import decode_ansi
from belljar.shell.variables import LETTERS, Var

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

REPLACEMENT = re.compile(r"\\[&\\]|&|[^\\&]+|\\")


def matches(shell: Shell, value: str, pattern: str, *, extglob: bool = True) -> bool:
    """Whether all of a text matches a pattern: by bytes in the locale C, without regard to case under nocasematch."""
    if shell.byte_locale:
        value, pattern = narrow(value), narrow(pattern)
    return compile_pattern(pattern, extglob=extglob, nocase=shell.nocasematch).matches(value)


def strip(value: str, op: str, pattern: Pattern) -> str:
    """${value#pattern} and kin."""
    if op[0] == "#":
        end = pattern.prefix(value, longest=len(op) == 2)
        return value if end is None else value[end:]
    start = pattern.suffix(value, longest=len(op) == 2)
    return value if start is None else value[:start]


def replacement_parts(text: str) -> list[str | None]:
    """A replacement in which `&` is the match (None) unless escaped."""
    parts: list[str | None] = []
    for piece in REPLACEMENT.findall(text):
        if piece == "&":
            parts.append(None)
        else:
            parts.append(piece[1] if len(piece) == 2 and piece[0] == "\\" else piece)
    return parts


def replace(shell: Shell, value: str, pattern: Pattern, mode: str, text: str, parts: list[str | None] | None) -> str:
    """${value/pattern/text}; `parts` instead of `text` when `&` stands for the match."""
    if mode == "#":
        end = pattern.prefix(value, longest=True)
        if end is None:
            return value
        spans = [(0, end)]
    elif mode == "%":
        start = pattern.suffix(value, longest=True)
        if start is None:
            return value
        spans = [(start, len(value))]
    elif mode == "/":
        if pattern.literal and parts is None:
            count = value.count(pattern.literal)
            if count:
                shell.budget.charge_size(len(value) + count * (len(text) - len(pattern.literal)))
            return value.replace(pattern.literal, text)
        spans = list(pattern.spans(value))
    else:
        first = next(iter(pattern.spans(value)), None)
        if first is None:
            return value
        spans = [first]
    pieces: list[str] = []
    size = position = 0
    for start, end in spans:
        pieces.append(value[position:start])
        if parts is None:
            new = text
        else:
            matched = value[start:end]
            new = "".join([matched if part is None else part for part in parts])
        pieces.append(new)
        size += start - position + len(new)
        if size > 65536:
            shell.budget.charge_size(size)
        position = end
    pieces.append(value[position:])
    return "".join(pieces)


def change_case(value: str, op: str, pattern: Pattern | None) -> str:
    """${value^pattern} and kin."""
    if not value:
        return value
    if len(op) == 2:
        if pattern is None:
            if op == "^^":
                return _upper(value)
            if op == ",,":
                return _lower(value)
        matches = pattern.matches if pattern is not None else None
        return "".join([_case(char, op[0]) if matches is None or matches(char) else char for char in value])
    if pattern is not None and not pattern.matches(value[0]):
        return value
    return _case(value[0], op) + value[1:]


def _case(char: str, op: str) -> str:
    if op == "^":
        return _upper(char)
    if op == ",":
        return _lower(char)
    upper = _upper(char)
    return upper if upper != char else _lower(char)


def _upper(text: str) -> str:
    if text.isascii():
        return text.upper()
    return "".join([new if len(new := char.upper()) == 1 else char for char in text])


def _lower(text: str) -> str:
    if text.isascii():
        return text.lower()
    return "".join([new if len(new := char.lower()) == 1 else char for char in text])


def slice_text(value: str, offset: int, length: int | None) -> str:
    """${value:offset:length}"""
    size = len(value)
    if offset < 0:
        offset += size
        if offset < 0:
            return ""
    if offset > size:
        return ""
    if length is None:
        return value[offset:]
    if length < 0:
        end = size + length
        if end < offset:
            raise SubstringError(length)
        return value[offset:end]
    return value[offset : offset + length]


def slice_positional(shell: Shell, offset: int, length: int | None) -> list[str]:
    """${@:offset:length}; $0 is at offset 0."""
    values = [shell.name, *shell.args]
    if offset < 0:
        offset += len(values)
        if offset < 0:
            return []
    if length is not None and length < 0:
        raise SubstringError(length)
    return values[offset:] if length is None else values[offset : offset + length]


def slice_array(contents: str | Array | Assoc | None, offset: int, length: int | None) -> list[str]:
    """${array[@]:offset:length}: by index for an indexed array."""
    if contents is None:
        return []
    if isinstance(contents, str):
        contents = Array({0: contents})
    if isinstance(contents, Array):
        if offset < 0:
            offset += contents.last + 1
            if offset < 0:
                return []
        contents.sort()
        values = [value for index, value in contents.items.items() if index >= offset]
    else:
        values = contents.values()
        if offset < 0:
            offset += len(values)
            if offset < 0:
                return []
        values = values[max(offset - 1, 0) if offset else 0 :]
    if length is not None and length < 0:
        raise SubstringError(length)
    return values if length is None else values[:length]


def attribute_letters(attrs: int) -> str:
    return "".join([letter for bit, letter in LETTERS if attrs & bit])


def transform(shell: Shell, value: str, op: str) -> str:
    """${value@op} for the operators that need only the value."""
    match op:
        case "Q" | "K" | "k":
            return quote.for_reuse(value)
        case "E":
            return decode_ansi(value)
        case "P":
            return shell.expand_prompt(value)
        case "U":
            return _upper(value)
        case "u":
            return _upper(value[:1]) + value[1:]
        case "L":
            return _lower(value)
        case _:
            return value


def assignment_text(shell: Shell, name: str, contents: str | Array | Assoc | None, *, element: str | None) -> str:
    """${name@A}: the statement that makes the variable again."""
    entry = shell.vars.entry(name)
    attrs = entry.attrs if isinstance(entry, Var) else 0
    letters = attribute_letters(attrs)
    if isinstance(contents, str):
        text = f"{name}={quote.for_reuse(contents)}"
        return f"declare -{letters} {text}" if letters else text
    if contents is None:
        return f"declare -{letters} {name}" if letters else ""
    if element is not None:
        return f"declare -{letters} {name}={quote.for_reuse(element)}"
    return f"declare -{letters} {name}={compound_text(contents)}"


def compound_text(contents: Array | Assoc) -> str:
    """The `(...)` of a declaration."""
    if isinstance(contents, Array):
        return "(" + " ".join([f"[{key}]={quote.for_declare(value)}" for key, value in contents.pairs()]) + ")"
    pairs = [f"[{quote.for_key(key)}]={quote.for_declare(value)}" for key, value in contents.pairs()]
    return "(" + " ".join(pairs) + (" )" if pairs else ")")
