"""Parameter expansion to pieces of fields, which are split and globbed later."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from belljar.shell.compile.fields import Emit, compile_emit, is_multi
from belljar.shell.compile.indirection import resolve_indirect
from belljar.shell.compile.param_operators import compile_values
from belljar.shell.compile.param_text import assign_default, compile_param, missing
from belljar.shell.compile.params import AnyParam, Values, compile_base_values, compile_value, is_joined, is_list
from belljar.shell.compile.words import compile_scalar
from belljar.shell.expand.fields import Fields
from belljar.shell.nodes import Default, Length, Param, ParamNames

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


@lru_cache(maxsize=512)
def _compiled_emit(part: Param, quoted: bool) -> Emit:
    return compile_param_emit(part, quoted=quoted)


def compile_param_emit(part: AnyParam, *, quoted: bool) -> Emit:
    if isinstance(part, Param):
        if part.indirect:
            return lambda shell, fields: _compiled_emit(resolve_indirect(shell, part), quoted)(shell, fields)
        if isinstance(part.op, Default):
            return _compile_default_emit(part, part.op, quoted=quoted)
        if isinstance(part.op, Length) or not is_list(part):
            text = compile_param(part)
            if quoted:
                return lambda shell, fields: fields.quoted(text(shell))
            return lambda shell, fields: fields.expanded(text(shell))
    joined = part.joined if not isinstance(part, Param) else is_joined(part)
    values = compile_values(part)
    emit = _emit_list(values, joined=joined, quoted=quoted)
    if isinstance(part, Param) or quoted or not joined:
        return emit
    separator = "" if isinstance(part, ParamNames) else " "

    def names(shell: Shell, fields: Fields) -> None:
        """Names and keys, which bash makes one field if IFS is empty."""
        if shell.vars.get("IFS") == "":
            fields.expanded(separator.join(values(shell)))
        else:
            emit(shell, fields)

    return names


def _emit_list(values: Values, *, joined: bool, quoted: bool) -> Emit:
    if quoted and joined:
        return lambda shell, fields: fields.quoted(shell.join(values(shell)))
    return lambda shell, fields: fields.elements(values(shell), quoted=quoted)


def _compile_default_emit(part: Param, op: Default, *, quoted: bool) -> Emit:
    """`${x-word}`: the word's parts keep their own quoting, and its text is split."""
    emits = [compile_emit(inner, quoted=quoted, split_literals=True) for inner in op.word.parts]
    word_text = compile_scalar(op.word)
    colon, kind = op.colon, op.op
    joined = is_joined(part)
    several = is_list(part)
    value = compile_value(part) if not several else None
    values = compile_base_values(part) if several else None
    emit_values = _emit_list(values, joined=joined, quoted=quoted) if values is not None else None

    def emit_word(shell: Shell, fields: Fields) -> None:
        for emit in emits:
            emit(shell, fields)
        if quoted:  # a field even if "$@" in it gives none
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
            elif quoted and (not several or joined or text is not None):
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
    """Emit an empty quoted field, unless the word is "$@"-like."""
    if not any(is_multi(inner) for inner in op.word.parts):
        fields.quoted("")
