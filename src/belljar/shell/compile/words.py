"""Words compiled to one string or to a pattern."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from belljar.libc.pattern import escape
from belljar.shell.control import ExpansionError
from belljar.shell.nodes import (
    AnsiQuoted,
    ArithSub,
    BackquoteSub,
    BadSubstitution,
    CommandSub,
    DoubleQuoted,
    Escaped,
    Literal,
    LocaleQuoted,
    Param,
    ParamKeys,
    ParamNames,
    ProcSub,
    SingleQuoted,
    Tilde,
    Word,
    WordPart,
)

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Text: TypeAlias = "Callable[[Shell], str]"


def constant(word: Word) -> str | None:
    """The text of a word without expansions, quotes removed; None if it has any."""
    return constant_text(word.parts)


def constant_text(parts: Sequence[WordPart]) -> str | None:
    texts = []
    for part in parts:
        if isinstance(part, Literal | Escaped | SingleQuoted | AnsiQuoted):
            texts.append(part.text)
        elif isinstance(part, DoubleQuoted | LocaleQuoted):
            inner = constant_text(part.parts)
            if inner is None:
                return None
            texts.append(inner)
        else:
            return None
    return "".join(texts)


def compile_scalar(word: Word) -> Text:
    """The word as one string: no splitting, no globbing (assignments, `case`, redirections, here-strings)."""
    return compile_quoted(word.parts)


def compile_later(parts: Sequence[WordPart]) -> Text:
    """As `compile_quoted`, but compiled when it is first needed.

    Where something is compiled in two ways, one of them is to be so, or nesting would double the work at each level.
    """
    if constant_text(parts) is not None:
        return compile_quoted(parts)
    made: Text | None = None

    def text(shell: Shell) -> str:
        nonlocal made
        if made is None:
            made = compile_quoted(parts)
        return made(shell)

    return text


def compile_quoted(parts: Sequence[WordPart]) -> Text:
    """The parts as one string, as if in double quotes."""
    text = constant_text(parts)
    if text is not None:
        return lambda _shell: text
    return join([compile_text(part) for part in merge_constants(parts)])


def merge_constants(parts: Sequence[WordPart]) -> list[WordPart]:
    """Neighbouring constants made one, so that `"a"b'c'$x` is two pieces."""
    merged: list[WordPart] = []
    for part in parts:
        text = constant_text((part,))
        if text is None:
            merged.append(part)
        elif merged and isinstance(merged[-1], SingleQuoted):
            merged[-1] = SingleQuoted(merged[-1].text + text)
        else:
            merged.append(SingleQuoted(text))
    return merged


def join(pieces: list[Text]) -> Text:
    if len(pieces) == 1:
        return pieces[0]
    if len(pieces) == 2:
        first, second = pieces

        def pair(shell: Shell) -> str:
            text = first(shell) + second(shell)
            if len(text) > 65536:
                shell.budget.charge_size(len(text))
            return text

        return pair

    def several(shell: Shell) -> str:
        texts = [piece(shell) for piece in pieces]
        size = sum(map(len, texts))
        if size > 65536:
            shell.budget.charge_size(size)
        return "".join(texts)

    return several


def compile_text(part: WordPart) -> Text:
    """One part as a string."""
    match part:
        case Literal(text) | Escaped(text) | SingleQuoted(text) | AnsiQuoted(text):
            return lambda _shell: text
        case DoubleQuoted(parts) | LocaleQuoted(parts):
            return compile_quoted(parts)
        case Tilde(user):
            return lambda shell: shell.expand_tilde(user)
        case Param() | ParamNames() | ParamKeys():
            from belljar.shell.compile.param_text import compile_any

            return compile_any(part)
        case CommandSub() | BackquoteSub() | ProcSub():
            from belljar.shell.compile.substitutions import compile_substitution

            return compile_substitution(part)
        case ArithSub(arith):
            from belljar.shell.compile.arith import compile_arith

            value = compile_arith(arith)
            return lambda shell: str(value(shell))
        case BadSubstitution(text, within):

            def bad(_shell: Shell) -> str:
                raise ExpansionError(f"{within or text}: bad substitution")

            return bad


def mark_quoted(
    parts: Sequence[WordPart], mark: Callable[[str], str], quoted: tuple[type, ...] = (DoubleQuoted, LocaleQuoted)
) -> Text:
    """The parts as one string, in which `mark` was applied to what was quoted."""
    pieces: list[Text] = []
    for part in parts:
        fixed = constant_text((part,))
        if fixed is not None:
            text = fixed if isinstance(part, Literal) else mark(fixed)
            pieces.append(lambda _shell, text=text: text)  # type: ignore[misc]
        elif isinstance(part, quoted):
            inner = compile_text(part)
            pieces.append(lambda shell, inner=inner: mark(inner(shell)))  # type: ignore[misc]
        else:
            pieces.append(compile_text(part))
    return join(pieces) if pieces else lambda _shell: ""


def compile_pattern_text(word: Word) -> Text:
    """The word as a pattern: quoted characters are escaped."""
    return pattern_parts(word.parts)


def pattern_parts(parts: Sequence[WordPart]) -> Text:
    pieces: list[Text] = []
    for part in parts:
        match part:
            case Literal(text):
                pieces.append(lambda _shell, text=text: text)  # type: ignore[misc]
            case Param() if part.op is not None and hasattr(part.op, "word"):
                from belljar.shell.compile.param_text import compile_default_pattern

                pieces.append(compile_default_pattern(part))
            case Param() | ParamNames() | ParamKeys() | CommandSub() | BackquoteSub() | ArithSub() | BadSubstitution():
                pieces.append(compile_text(part))
            case _:
                fixed = constant_text((part,))
                if fixed is not None:
                    fixed = escape(fixed)
                    pieces.append(lambda _shell, text=fixed: text)  # type: ignore[misc]
                else:
                    pieces.append(_escaped(compile_text(part)))
    if not pieces:
        return lambda _shell: ""
    return join(pieces)


def _escaped(text: Text) -> Text:
    return lambda shell: escape(text(shell))


def constant_pattern(word: Word) -> str | None:
    """The pattern, if it needs no expansion."""
    texts = []
    for part in word.parts:
        if isinstance(part, Literal):
            texts.append(part.text)
        else:
            text = constant_text((part,))
            if text is None:
                return None
            texts.append(escape(text))
    return "".join(texts)
