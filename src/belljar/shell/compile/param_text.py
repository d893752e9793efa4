"""Parameter expansion to one string: `$x` and `${x...}` in every form."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from belljar.abi.paths import byte_length
from belljar.shell.compile.fields import is_multi
from belljar.shell.compile.indirection import resolve_indirect
from belljar.shell.compile.param_operators import compile_operator, compile_values
from belljar.shell.compile.params import (
    AnyParam,
    Value,
    Values,
    compile_base_values,
    compile_value,
    is_list,
    label,
    unbound,
)
from belljar.shell.compile.words import Text, compile_scalar, pattern_parts
from belljar.shell.control import ExpansionError
from belljar.shell.expand import operators
from belljar.shell.nodes import (
    AllElements,
    Default,
    Length,
    Param,
    ParamKeys,
    ParamNames,
    Subscript,
    Transform,
    WordPart,
)

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


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
    """The values of `"$@"`, `"${a[@]}"` standing alone; None for anything less simple."""
    if isinstance(part, ParamNames | ParamKeys):
        return compile_values(part) if not part.joined else None
    if not isinstance(part, Param) or part.indirect or part.op is not None:
        return None
    if part.name == "@" or (isinstance(part.index, AllElements) and not part.index.joined):
        return compile_values(part)
    return None


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
    apply = compile_operator(op, part.name)

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
    base = compile_value(part) if not is_list(part) else None
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


def assign_default(shell: Shell, part: Param, value: str) -> str:
    """`${x=value}`: the value after the assignment (attributes may change it)."""
    if not (part.name[0].isalpha() or part.name[0] == "_") or is_list(part):
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


@lru_cache(maxsize=512)
def _compiled_text(part: Param) -> Text:
    return compile_param(part)
