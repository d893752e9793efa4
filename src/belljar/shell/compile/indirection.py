"""`${!name}`: the parameter that another one names."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from belljar.shell.compile.params import TARGET, compile_base_values, compile_value, indirect_param, is_list, label
from belljar.shell.control import ExpansionError
from belljar.shell.nodes import AllElements, Default, Escaped, Param, Word
from belljar.shell.variables import NAMEREF, Var, is_name

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

NEVER_SET = "999999999"
LONGEST_TARGET = 10_000


def resolve_indirect(shell: Shell, part: Param) -> Param:
    """The parameter that `${!name...}` means now."""
    entry = shell.table.get(part.name)
    if part.index is None and isinstance(entry, Var) and entry.attrs & NAMEREF and isinstance(entry.value, str):
        is_name_itself = part.op is None or (isinstance(part.op, Default) and part.op.op != "+")
        return _fixed(entry.value) if is_name_itself else _named(shell, entry.value, part)
    if isinstance(part.index, AllElements) or part.name in ("@", "*"):
        values = compile_base_values(Param(part.name, part.index))(shell)
        target: str | None = " ".join(values) if values or not isinstance(part.op, Default) else None
    else:
        target = compile_value(Param(part.name, part.index))(shell)
    if target is None:
        declared = entry is not None or part.index is not None or not is_name(part.name)
        if isinstance(part.op, Default) and part.op.op in "+-" and declared and not _is_reference(entry):
            return Param(NEVER_SET, op=part.op)
        if part.index is None and not part.name.isdecimal():  # only a variable has to be there
            raise ExpansionError(f"{part.name}: invalid indirect expansion")
        _must_be_bound(shell, part, None)
        return NOTHING
    named = _named(shell, target, part)
    if shell.nounset and not isinstance(part.op, Default) and not is_list(named):
        _must_be_bound(shell, part, compile_value(Param(named.name, named.index))(shell))
    return named


def _is_reference(entry: object) -> bool:
    return isinstance(entry, Var) and bool(entry.attrs & NAMEREF)


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
