"""Operators on parameters: `${x#...}`, `${x/...}`, `${x:...}` and the like."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from belljar.abi.paths import narrow, widen
from belljar.libc.pattern import Pattern, compile_pattern
from belljar.shell.arrays import Assoc
from belljar.shell.compile.arith import compile_arith
from belljar.shell.compile.params import AnyParam, Values, compile_base_values
from belljar.shell.compile.words import compile_pattern_text, compile_scalar, constant_pattern, mark_quoted
from belljar.shell.control import ArithError
from belljar.shell.expand import operators
from belljar.shell.nodes import Arith, ChangeCase, Param, Replace, Slice, Strip, Transform, Word

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


def compile_pattern_of(word: Word) -> Callable[[Shell], Pattern]:
    fixed = constant_pattern(word)
    if fixed is not None:
        return lambda shell: compile_pattern(_of_locale(shell, fixed), extglob=shell.extglob, nocase=shell.nocasematch)
    text = compile_pattern_text(word)
    return lambda shell: compile_pattern(
        _of_locale(shell, text(shell)), extglob=shell.extglob, nocase=shell.nocasematch
    )


def _of_locale(shell: Shell, pattern: str) -> str:
    """A pattern as `compile_operator` gives its values: one character a byte in the locale C."""
    return narrow(pattern) if shell.byte_locale else pattern


def compile_strip_pattern(word: Word, *, always_extended: bool = False) -> Callable[[Shell], Pattern]:
    fixed = constant_pattern(word)
    if fixed is not None:
        return lambda shell: compile_pattern(_of_locale(shell, fixed), extglob=always_extended or shell.extglob)
    text = compile_pattern_text(word)
    return lambda shell: compile_pattern(_of_locale(shell, text(shell)), extglob=always_extended or shell.extglob)


def compile_operator(op: object, name: str) -> Callable[[Shell, str], str]:
    """Compile an operator to a function of one value of the parameter `name`."""
    operate = _compile_operator(op, name)
    if isinstance(op, Transform):
        return operate

    def run(shell: Shell, value: str) -> str:
        if shell.byte_locale and not value.isascii():
            return widen(operate(shell, narrow(value)))
        return operate(shell, value)

    return run


def _compile_operator(op: object, name: str) -> Callable[[Shell, str], str]:
    match op:
        case Strip(kind, word):
            pattern = compile_strip_pattern(word)
            return lambda shell, value: operators.strip(value, kind, pattern(shell)) if value else value
        case Replace(mode, word, replacement):
            return _compile_replace(mode, word, replacement)
        case ChangeCase(kind, None):
            return lambda _shell, value: operators.change_case(value, kind, None)
        case ChangeCase(kind, word) if word is not None:
            letters = compile_strip_pattern(word, always_extended=True)
            return lambda shell, value: operators.change_case(value, kind, letters(shell))
        case Slice(offset, length):
            bounds = _compile_bounds(offset, length, name)
            return lambda shell, value: operators.slice_text(value, *bounds(shell))
        case Transform(kind):
            return lambda shell, value: operators.transform(shell, value, kind)
        case _:
            raise AssertionError(op)


def _compile_bounds(offset: Arith, length: Arith | None, name: str) -> Callable[[Shell], tuple[int, int | None]]:
    """Offset and length of ${name:offset:length}; errors in them begin with the name."""
    start = compile_arith(offset)
    size = compile_arith(length) if length is not None else None

    def bounds(shell: Shell) -> tuple[int, int | None]:
        try:
            return start(shell), size(shell) if size is not None else None
        except ArithError as error:
            raise ArithError(f"{name}: {error}") from None

    return bounds


def _compile_replace(mode: str, word: Word, replacement: Word | None) -> Callable[[Shell, str], str]:
    pattern = compile_pattern_of(word)
    plain = compile_scalar(replacement) if replacement is not None else None
    marked = mark_quoted(replacement.parts, _mark) if replacement is not None else None

    def run(shell: Shell, value: str) -> str:
        if plain is None or marked is None:
            return operators.replace(shell, value, pattern(shell), mode, "", None)
        matcher = pattern(shell)
        if shell.patsub_replacement:
            text = marked(shell)
            if "&" in text or "\\" in text:
                parts = operators.replacement_parts(text)
                if None in parts:
                    return operators.replace(shell, value, matcher, mode, "", parts)
                text = "".join([part for part in parts if part is not None])
        else:
            text = plain(shell)
        if not matcher.items and mode in ("", "/"):
            return value
        return operators.replace(shell, value, matcher, mode, text, None)

    return run


def _mark(text: str) -> str:
    """Escape `&` and backslashes, as they are quoted in a replacement."""
    return text.replace("\\", "\\\\").replace("&", "\\&")


def compile_values(part: AnyParam) -> Values:
    """The values of a list, the operator applied to each."""
    base = compile_base_values(part)
    if not isinstance(part, Param) or part.op is None:
        return base
    op = part.op
    name = part.name
    if isinstance(op, Slice):
        bounds = _compile_bounds(op.offset, op.length, name if name in ("@", "*") else f"{name}[@]")

        def sliced(shell: Shell) -> list[str]:
            offset, length = bounds(shell)
            if name in ("@", "*"):
                return operators.slice_positional(shell, offset, length)
            return operators.slice_array(shell.vars.contents(name), offset, length)

        return sliced
    if isinstance(op, Transform) and op.op in "AaKk":
        return _compile_list_transform(name, op.op, base)
    apply = compile_operator(op, name)
    return lambda shell: [apply(shell, value) for value in base(shell)]


def _compile_list_transform(name: str, op: str, base: Values) -> Values:
    def run(shell: Shell) -> list[str]:
        from belljar.libc import quote

        if name in ("@", "*"):
            if op == "A":
                return ["set -- " + " ".join([quote.for_reuse(value) for value in shell.args])] if shell.args else []
            return [quote.for_reuse(value) for value in shell.args] if op in "Kk" else ["" for _ in shell.args]
        target, _ = shell.vars.resolve(name)
        contents = shell.vars.contents(target)
        if op == "a":
            letters = operators.attribute_letters(shell.vars.attrs(target))
            return [letters for _ in base(shell)]
        if op == "A":
            text = operators.assignment_text(shell, target, contents, element=None)
            return [text] if text else []
        if contents is None:
            return []
        if isinstance(contents, str):
            return [quote.for_reuse(contents)]
        if op == "k":
            return [text for pair in contents.pairs() for text in pair]
        pairs = [
            f"{quote.for_key(key) if isinstance(contents, Assoc) else key} {quote.for_declare(value)}"
            for key, value in contents.pairs()
        ]
        return [" ".join(pairs) + (" " if isinstance(contents, Assoc) else "")]

    return run
