"""Parameter expansion compiled: `$x`, `${x...}` in every form, to a string, a list or pieces of fields."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

from belljar.abi.paths import byte_length
from belljar.shell.arrays import Array, Assoc
from belljar.shell.compile.arith import compile_arith
from belljar.shell.compile.words import (
    Emit,
    Text,
    compile_emit,
    compile_pattern_text,
    compile_scalar,
    constant_pattern,
    is_multi,
    pattern_parts,
)
from belljar.shell.control import ExpansionError, ShellError
from belljar.shell.expand import operators
from belljar.shell.expand.fields import Fields
from belljar.shell.nodes import (
    AllElements,
    ChangeCase,
    Default,
    Escaped,
    Index,
    Length,
    Literal,
    Param,
    ParamKeys,
    ParamNames,
    Replace,
    Slice,
    Strip,
    Subscript,
    Transform,
    Word,
    WordPart,
)
from belljar.shell.pattern import Pattern, compile_pattern
from belljar.shell.variables import ASSOC, NAMEREF, Var

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Value: TypeAlias = "Callable[[Shell], str | None]"
Values: TypeAlias = "Callable[[Shell], list[str]]"
AnyParam: TypeAlias = "Param | ParamNames | ParamKeys"

NEVER_SET = "999999999"
LONGEST_TARGET = 10_000
TARGET = re.compile(r"(?:([A-Za-z_][A-Za-z0-9_]*)(?:\[(.*)\])?|([0-9]+|[@*#?$!_-]))\Z", re.DOTALL)


def is_multi_param(part: AnyParam) -> bool:
    """Whether it may give several fields even in double quotes."""
    if not isinstance(part, Param):
        return True
    if part.indirect:
        return True
    if isinstance(part.op, Length):
        return False
    if part.name in ("@", "*") or isinstance(part.index, AllElements):
        return True
    return isinstance(part.op, Default) and any(is_multi(inner) for inner in part.op.word.parts)


def compile_any(part: WordPart) -> Text:
    """The expansion as one string."""
    if isinstance(part, Param):
        return compile_param(part)
    assert isinstance(part, ParamNames | ParamKeys)
    values = compile_values(part)
    joined = part.joined
    return lambda shell: (shell.ifs.joiner if joined else " ").join(values(shell))


def compile_simple_list(part: WordPart) -> Values | None:
    """For `"$@"`, `"${a[@]}"` standing alone: their values; None for anything less simple."""
    if isinstance(part, ParamNames | ParamKeys):
        return compile_values(part) if not part.joined else None
    if not isinstance(part, Param) or part.indirect or part.op is not None:
        return None
    if part.name == "@" or (isinstance(part.index, AllElements) and not part.index.joined):
        return compile_values(part)
    return None


# --- values without operator ----------------------------------------------------------------------------------------


def label(part: Param) -> str:
    """The parameter as messages name it."""
    if isinstance(part.index, AllElements):
        return f"{part.name}[{'*' if part.index.joined else '@'}]"
    if isinstance(part.index, Subscript):
        from belljar.shell.print import print_word

        return f"{part.name}[{print_word(part.index.word)}]"
    return part.name


def unbound(shell: Shell, part: Param) -> str:
    """The value of an unset parameter: empty, or an error under `set -u`."""
    if shell.nounset:
        bare = not part.braced and (part.name.isdecimal() or part.name == "!")
        shown = f"${part.name}" if bare else label(part)
        raise ExpansionError(f"{shown}: unbound variable", exits=True)
    return ""


def compile_value(part: Param) -> Value:
    """The value of a single parameter or element, None if unset."""
    name, index = part.name, part.index
    if isinstance(index, Subscript):
        if not index.word.parts:
            return _bad_subscript(name)
        return compile_element(name, index)
    if name.isdecimal():
        return _compile_positional(int(name) if len(name) < 9 else 10**9)
    match name:
        case "?":
            return lambda shell: str(shell.status)
        case "#":
            return lambda shell: str(len(shell.args))
        case "$":
            return lambda shell: str(shell.shell_pid)
        case "!":
            return lambda shell: str(shell.jobs.last_pid) if shell.jobs.last_pid is not None else None
        case "-":
            return lambda shell: shell.option_letters()
        case "@":
            return lambda shell: " ".join(shell.args) if shell.args else None
        case "*":
            return lambda shell: shell.ifs.joiner.join(shell.args) if shell.args else None
        case _:
            pass

    def variable(shell: Shell) -> str | None:
        value = shell.table.get(name)
        if type(value) is str or value is None:
            return value
        if type(value) is int:
            return str(value)
        return shell.vars.get(name)

    return variable


def _bad_subscript(name: str) -> Value:
    def bad(_shell: Shell) -> str | None:
        raise ExpansionError(f"${{{name}[]}}: bad substitution")

    return bad


def _compile_positional(number: int) -> Value:
    if number == 0:
        return lambda shell: shell.name
    place = number - 1

    def positional(shell: Shell) -> str | None:
        args = shell.args
        return args[place] if place < len(args) else None

    return positional


def compile_element(name: str, index: Subscript) -> Value:
    position, key = compile_arith(index.arith), compile_scalar(index.word)

    def element(shell: Shell) -> str | None:
        entry = shell.table.get(name)
        if isinstance(entry, Var):
            contents = entry.value
            if type(contents) is Array:
                place = position(shell)
                if place < 0:
                    place += contents.last + 1
                    if place < 0:
                        shell.error(f"{name}: bad array subscript")
                        return None
                return contents.items.get(place)
            if type(contents) is Assoc:
                return contents.items.get(_checked_key(shell, name, key(shell)))
            if entry.attrs & NAMEREF:
                target, inner = shell.vars.resolve(name)
                if inner is not None:
                    raise ExpansionError(f"{entry.value}: bad array subscript")
                return _element_of(shell, target, position, key)
            return _element_of(shell, name, position, key)
        if entry is None:
            position(shell)
            return None
        return str(entry) if position(shell) in (0, -1) else None

    return element


def _checked_key(shell: Shell, name: str, key: str) -> str:
    if not key:
        shell.error(f"{name}: bad array subscript")
    return key


def _element_of(shell: Shell, name: str, position: Callable[[Shell], int], key: Text) -> str | None:
    contents = shell.vars.contents(name)
    if isinstance(contents, Assoc):
        return contents.get(key(shell))
    if contents is None and shell.vars.attrs(name) & ASSOC:  # declared, and nothing in it yet
        key(shell)
        return None
    place = position(shell)
    if isinstance(contents, Array):
        if place < 0:
            place += contents.last + 1
            if place < 0:
                shell.error(f"{name}: bad array subscript")
                return None
        return contents.get(place)
    return contents if place in (0, -1) else None


def compile_base_values(part: AnyParam) -> Values:
    """The values of `@`, `*`, `name[@]` or names and keys, without operator."""
    match part:
        case ParamNames(prefix):
            return lambda shell: shell.vars.names(prefix)
        case ParamKeys(name):
            return lambda shell: _keys(shell, name)
        case Param(name) if name in ("@", "*"):
            return lambda shell: shell.args
        case Param(name):

            def elements(shell: Shell) -> list[str]:
                entry = shell.table.get(name)
                if isinstance(entry, Var):
                    contents = entry.value
                    if type(contents) is Array and contents.ordered:
                        return list(contents.items.values())
                    return _elements(shell, name)
                return [] if entry is None else [str(entry)]

            return elements


def _elements(shell: Shell, name: str) -> list[str]:
    entry = shell.table.get(name)
    if isinstance(entry, Var) and entry.attrs & NAMEREF:
        target, inner = shell.vars.resolve(name)
        if inner is not None:
            return compile_values(indirect_param(f"{target}[{inner}]", None))(shell)
    contents = shell.vars.contents(name)
    if contents is None:
        return []
    return [contents] if isinstance(contents, str) else contents.values()


def _keys(shell: Shell, name: str) -> list[str]:
    contents = shell.vars.contents(name)
    if contents is None:
        return []
    return ["0"] if isinstance(contents, str) else contents.keys()


# --- as one string --------------------------------------------------------------------------------------------------


def compile_param(part: Param) -> Text:
    """The expansion as one string: quotes, assignments, patterns."""
    if part.indirect:
        return lambda shell: _compiled_text(resolve_indirect(shell, part))(shell)
    op = part.op
    if isinstance(op, Length):
        return _compile_length(part)
    if isinstance(op, Default):
        return _compile_default(part, op)
    if part.name in ("@", "*") or isinstance(part.index, AllElements):
        values = compile_values(part)
        joined = part.name == "*" or (isinstance(part.index, AllElements) and part.index.joined)
        if joined:
            return lambda shell: shell.join(values(shell))
        return lambda shell: shell.join(values(shell), " ")
    value = compile_value(part)
    if op is None:
        return _compile_plain(part, value)
    if isinstance(op, Transform) and op.op in "Aa":
        return _compile_describe(part, op.op)
    apply = compile_operator(op)

    def operated(shell: Shell) -> str:
        text = value(shell)
        if text is None:
            if isinstance(op, Transform):
                if shell.nounset:
                    unbound(shell, part)
                return ""
            return unbound(shell, part)  # what isn't there is not operated on
        return apply(shell, text)

    return operated


def _compile_plain(part: Param, value: Value) -> Text:
    name = part.name
    if part.index is None and name.isidentifier():

        def variable(shell: Shell) -> str:
            found = shell.table.get(name)
            if type(found) is str:
                return found
            if type(found) is int:
                return str(found)
            text = shell.vars.get(name) if found is not None else None
            return text if text is not None else unbound(shell, part)

        return variable

    def plain(shell: Shell) -> str:
        text = value(shell)
        return text if text is not None else unbound(shell, part)

    return plain


def _compile_length(part: Param) -> Text:
    if part.name in ("@", "*"):
        return lambda shell: str(len(shell.args))
    if isinstance(part.index, AllElements):
        name = part.name

        def count(shell: Shell) -> str:
            contents = shell.vars.contents(name)
            if shell.nounset and (contents is None or isinstance(contents, str)):  # a plain string is no array to bash
                raise ExpansionError(f"{name}: unbound variable")
            if contents is None:
                return "0"
            return "1" if isinstance(contents, str) else str(len(contents))

        return count
    value = compile_value(part)

    def length(shell: Shell) -> str:
        text = value(shell)
        if text is None:
            text = unbound(shell, part) if part.index is None else ""
        return str(len(text) if not shell.byte_locale else byte_length(text))

    return length


def _compile_default(part: Param, op: Default) -> Text:
    base = compile_value(part) if not _is_list(part) else None
    values = compile_base_values(part) if base is None else None
    joined = part.name == "*" or (isinstance(part.index, AllElements) and part.index.joined)
    word = compile_scalar(op.word)

    def fetch(shell: Shell) -> str | None:
        if base is not None:
            return base(shell)
        assert values is not None
        found = values(shell)
        return shell.join(found, None if joined else " ") if found else None

    colon = op.colon
    match op.op:
        case "-":

            def default(shell: Shell) -> str:
                text = fetch(shell)
                return word(shell) if text is None or (colon and not text) else text

            return default
        case "+":

            def alternative(shell: Shell) -> str:
                text = fetch(shell)
                return "" if text is None or (colon and not text) else word(shell)

            return alternative
        case "=":

            def assigned(shell: Shell) -> str:
                text = fetch(shell)
                if text is None or (colon and not text):
                    return assign_default(shell, part, word(shell))
                return text

            return assigned
        case _:

            def required(shell: Shell) -> str:
                text = fetch(shell)
                if text is None or (colon and not text):
                    raise missing(shell, part, op, word)
                return text

            return required


def _is_list(part: Param) -> bool:
    return part.name in ("@", "*") or isinstance(part.index, AllElements)


def assign_default(shell: Shell, part: Param, value: str) -> str:
    """`${x=value}`: the value after the assignment (attributes may change it)."""
    if not (part.name[0].isalpha() or part.name[0] == "_") or _is_list(part):
        raise ExpansionError(f"${part.name}: cannot assign in this way")
    if isinstance(part.index, Subscript):
        key = compile_scalar(part.index.word)(shell)
        shell.vars.set_element(part.name, key, value)
        return shell.vars.get_element(part.name, key) or ""
    shell.vars.set(part.name, value)
    return shell.vars.get(part.name) or ""


def missing(shell: Shell, part: Param, op: Default, word: Text) -> ExpansionError:
    """`${x?message}` of an unset parameter."""
    text = word(shell) if op.word.parts else "parameter null or not set" if op.colon else "parameter not set"
    return ExpansionError(f"{label(part)}: {text}", exits=True)


def compile_default_pattern(part: Param) -> Text:
    """`${x-word}` within a pattern: the word's own quoting counts."""
    op = part.op
    if not isinstance(op, Default) or part.indirect:
        return compile_param(part)
    word = pattern_parts(op.word.parts)
    base = compile_value(part)
    colon = op.colon
    if op.op == "-":

        def default(shell: Shell) -> str:
            text = base(shell)
            return word(shell) if text is None or (colon and not text) else text

        return default
    if op.op == "+":

        def alternative(shell: Shell) -> str:
            text = base(shell)
            return "" if text is None or (colon and not text) else word(shell)

        return alternative
    return compile_param(part)


def _compile_describe(part: Param, op: str) -> Text:
    """`@A` and `@a`."""
    name = part.name
    value = compile_value(part)

    def describe(shell: Shell) -> str:
        if not (name.isidentifier()):
            text = value(shell)
            return "" if op == "a" or text is None else operators.assignment_text(shell, name, text, element=None)
        target, _ = shell.vars.resolve(name)
        if op == "a":
            if target not in shell.table and shell.nounset:
                unbound(shell, part)
            return operators.attribute_letters(shell.vars.attrs(target))
        contents = shell.vars.contents(target)
        element = value(shell)
        if contents is None and target not in shell.table:
            return unbound(shell, part)
        if element is None:
            contents = None
            unbound(shell, part)
        return operators.assignment_text(shell, target, contents, element=element)

    return describe


# --- operators ------------------------------------------------------------------------------------------------------


def compile_pattern_of(word: Word) -> Callable[[Shell], Pattern]:
    fixed = constant_pattern(word)
    if fixed is not None:
        return lambda shell: compile_pattern(fixed, extglob=shell.extglob, nocase=shell.nocasematch)
    text = compile_pattern_text(word)
    return lambda shell: compile_pattern(text(shell), extglob=shell.extglob, nocase=shell.nocasematch)


def compile_strip_pattern(word: Word, *, always_extended: bool = False) -> Callable[[Shell], Pattern]:
    fixed = constant_pattern(word)
    if fixed is not None:
        return lambda shell: compile_pattern(fixed, extglob=always_extended or shell.extglob)
    text = compile_pattern_text(word)
    return lambda shell: compile_pattern(text(shell), extglob=always_extended or shell.extglob)


def compile_operator(op: object) -> Callable[[Shell, str], str]:
    """What an operator makes of one value."""
    operate = _compile_operator(op)
    if isinstance(op, Transform):
        return operate

    def run(shell: Shell, value: str) -> str:
        if shell.byte_locale and not value.isascii():
            return operators.widen(operate(shell, operators.narrow(value)))
        return operate(shell, value)

    return run


def _compile_operator(op: object) -> Callable[[Shell, str], str]:
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
            start = compile_arith(offset)
            size = compile_arith(length) if length is not None else None
            return lambda shell, value: operators.slice_text(
                value, start(shell), size(shell) if size is not None else None
            )
        case Transform(kind):
            return lambda shell, value: operators.transform(shell, value, kind)
        case _:
            raise AssertionError(op)


def _compile_replace(mode: str, word: Word, replacement: Word | None) -> Callable[[Shell, str], str]:
    pattern = compile_pattern_of(word)
    plain = compile_scalar(replacement) if replacement is not None else None
    marked = _compile_marked(replacement) if replacement is not None else None

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


def _compile_marked(word: Word) -> Text:
    """A replacement in which the quoted `&` and backslashes are escaped."""
    from belljar.shell.compile.words import _constant, compile_text, join

    pieces: list[Text] = []
    for part in word.parts:
        if isinstance(part, Literal):
            text = part.text
            pieces.append(lambda _shell, text=text: text)  # type: ignore[misc]
            continue
        fixed = _constant((part,))
        if fixed is not None:
            fixed = _mark(fixed)
            pieces.append(lambda _shell, text=fixed: text)  # type: ignore[misc]
        elif isinstance(part, Param | ParamKeys | ParamNames) or not hasattr(part, "parts"):
            pieces.append(compile_text(part))
        else:
            inner = compile_text(part)
            pieces.append(lambda shell, inner=inner: _mark(inner(shell)))  # type: ignore[misc]
    return join(pieces) if pieces else lambda _shell: ""


def _mark(text: str) -> str:
    return text.replace("\\", "\\\\").replace("&", "\\&")


def compile_values(part: AnyParam) -> Values:
    """The values of a list, the operator applied to each."""
    base = compile_base_values(part)
    if not isinstance(part, Param) or part.op is None:
        return base
    op = part.op
    name = part.name
    if isinstance(op, Slice):
        start = compile_arith(op.offset)
        size = compile_arith(op.length) if op.length is not None else None

        def sliced(shell: Shell) -> list[str]:
            offset = start(shell)
            length = size(shell) if size is not None else None
            if name in ("@", "*"):
                return operators.slice_positional(shell, offset, length)
            return operators.slice_array(shell.vars.contents(name), offset, length)

        return sliced
    if isinstance(op, Transform) and op.op in "AaKk":
        return _compile_list_transform(name, op.op, base)
    apply = compile_operator(op)
    return lambda shell: [apply(shell, value) for value in base(shell)]


def _compile_list_transform(name: str, op: str, base: Values) -> Values:
    def run(shell: Shell) -> list[str]:
        from belljar.shell import quote

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


# --- indirection ----------------------------------------------------------------------------------------------------


def resolve_indirect(shell: Shell, part: Param) -> Param:
    """The parameter that `${!name...}` means now."""
    entry = shell.table.get(part.name)
    if part.index is None and isinstance(entry, Var) and entry.attrs & NAMEREF and isinstance(entry.value, str):
        return _fixed(entry.value) if part.op is None else _named(shell, entry.value, part)
    if isinstance(part.index, AllElements) or part.name in ("@", "*"):
        target: str | None = " ".join(compile_base_values(Param(part.name, part.index))(shell))
    else:
        target = compile_value(Param(part.name, part.index))(shell)
    if target is None:
        if isinstance(part.op, Default) and part.op.op in "+-":
            return Param(NEVER_SET, op=part.op)
        if part.index is None and not part.name.isdecimal():  # only a variable has to be there
            raise ExpansionError(f"{part.name}: invalid indirect expansion")
        _must_be_bound(shell, part, None)
        return NOTHING
    named = _named(shell, target, part)
    if shell.nounset and not isinstance(part.op, Default) and not _is_list(named):
        _must_be_bound(shell, part, compile_value(Param(named.name, named.index))(shell))
    return named


def _must_be_bound(shell: Shell, part: Param, value: str | None) -> None:
    if shell.nounset and value is None:
        raise ExpansionError(f"!{label(part)}: unbound variable", exits=True)


NOTHING: Final = Param("?", op=Default("+", False, Word(())))


def _fixed(text: str) -> Param:
    """A parameter that expands to this text."""
    return Param("?", op=Default("+", False, Word((Escaped(text),))))


def _named(shell: Shell, target: str, part: Param) -> Param:
    if len(target) > LONGEST_TARGET or not TARGET.match(target):
        raise ExpansionError(f"{target[:LONGEST_TARGET]}: invalid variable name")
    return indirect_param(target, part.op)


@lru_cache(maxsize=512)
def indirect_param(target: str, op: object) -> Param:
    from belljar.shell.parse import ShellSyntaxError, parse_subscript

    match = TARGET.match(target)
    if match is None:
        raise ShellError(f"{target}: invalid variable name")
    name, subscript, special = match.groups()
    try:
        index: Index | None = parse_subscript(subscript) if subscript is not None else None
    except ShellSyntaxError:
        raise ExpansionError(f"{target}: bad substitution") from None
    return Param(name or special, index, op=op)  # type: ignore[arg-type]


@lru_cache(maxsize=512)
def _compiled_text(part: Param) -> Text:
    return compile_param(part)


@lru_cache(maxsize=512)
def _compiled_emit(part: Param, quoted: bool) -> Emit:
    return compile_param_emit(part, quoted=quoted)


# --- as pieces of fields --------------------------------------------------------------------------------------------


def compile_param_emit(part: AnyParam, *, quoted: bool) -> Emit:
    if isinstance(part, Param):
        if part.indirect:
            return lambda shell, fields: _compiled_emit(resolve_indirect(shell, part), quoted)(shell, fields)
        if isinstance(part.op, Default):
            return _compile_default_emit(part, part.op, quoted=quoted)
        if isinstance(part.op, Length) or not _is_list(part):
            text = compile_param(part)
            if quoted:
                return lambda shell, fields: fields.quoted(text(shell))
            return lambda shell, fields: fields.expanded(text(shell))
    joined = part.joined if not isinstance(part, Param) else _is_joined(part)
    values = compile_values(part)
    return _emit_list(values, joined=joined, quoted=quoted)


def _is_joined(part: Param) -> bool:
    return part.name == "*" or (isinstance(part.index, AllElements) and part.index.joined)


def _emit_list(values: Values, *, joined: bool, quoted: bool) -> Emit:
    if quoted and joined:
        return lambda shell, fields: fields.quoted(shell.join(values(shell)))
    return lambda shell, fields: fields.elements(values(shell), quoted=quoted)


def _compile_default_emit(part: Param, op: Default, *, quoted: bool) -> Emit:
    """`${x-word}`: the word's parts keep their own quoting, and its text is split."""
    emits = [compile_emit(inner, quoted=quoted, split_literals=True) for inner in op.word.parts]
    word_text = compile_scalar(op.word)
    colon, kind = op.colon, op.op
    is_list, joined = _is_list(part), _is_joined(part)
    value = compile_value(part) if not is_list else None
    values = compile_base_values(part) if is_list else None
    emit_values = _emit_list(values, joined=joined, quoted=quoted) if values is not None else None

    def emit_word(shell: Shell, fields: Fields) -> None:
        for emit in emits:
            emit(shell, fields)
        if quoted and not any(is_multi(inner) for inner in op.word.parts):
            fields.quoted("")

    def run(shell: Shell, fields: Fields) -> None:
        if values is not None:
            found = values(shell)
            text = None if not found else shell.join(found, None if joined else " ")
            if colon and len(found) > 1 and not (quoted and joined):
                text = "several values are never null"
        else:
            assert value is not None
            text = value(shell)
        absent = text is None or (colon and not text)
        if kind == "+":
            if not absent:
                emit_word(shell, fields)
            elif quoted and (not is_list or joined or text is not None):
                _emit_nothing(fields, op)
            return
        if absent:
            if kind == "-":
                emit_word(shell, fields)
                return
            if kind == "?":
                raise missing(shell, part, op, word_text)
            text = assign_default(shell, part, word_text(shell))
        elif emit_values is not None:
            emit_values(shell, fields)
            return
        assert text is not None
        if quoted:
            fields.quoted(text)
        else:
            fields.expanded(text)

    return run


def _emit_nothing(fields: Fields, op: Default) -> None:
    """Within double quotes even nothing makes a field, unless the word is "$@"-like."""
    if not any(is_multi(inner) for inner in op.word.parts):
        fields.quoted("")
