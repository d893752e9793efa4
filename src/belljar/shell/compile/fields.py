"""Words compiled to the fields of a command line: split, globbed, and as many as braces make."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, TypeAlias

from belljar.shell.compile.arith_shape import has_effects
from belljar.shell.compile.braces import count, expand, merge_literals, plain_texts, unclosed_backquote
from belljar.shell.compile.words import Text, compile_quoted, compile_text, constant_text, merge_constants
from belljar.shell.control import ExpansionError
from belljar.shell.expand.fields import MAGIC, Fields
from belljar.shell.nodes import (
    AnsiQuoted,
    ArithSub,
    Assignment,
    BackquoteSub,
    CommandSub,
    Default,
    DoubleQuoted,
    Escaped,
    Length,
    Literal,
    LocaleQuoted,
    Param,
    ParamKeys,
    ParamNames,
    ProcSub,
    SingleQuoted,
    Subscript,
    Tilde,
    Word,
    WordPart,
)
from belljar.shell.parse.words import tilde_prefix

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Emit: TypeAlias = "Callable[[Shell, Fields], None]"
FieldList: TypeAlias = "Callable[[Shell], list[str]]"


def is_multi(part: WordPart) -> bool:
    """Whether the part may give several fields even in double quotes."""
    from belljar.shell.compile.param_text import is_multi_param

    match part:
        case Param() | ParamNames() | ParamKeys():
            return is_multi_param(part)
        case DoubleQuoted(parts) | LocaleQuoted(parts):
            return any(is_multi(inner) for inner in parts)
        case _:
            return False


def compile_emit(part: WordPart, *, quoted: bool, split_literals: bool = False) -> Emit:
    """The part as pieces of fields. `split_literals`: it stands in the word of `${x-...}`, whose text is split too."""
    match part:
        case Literal(text):
            if quoted:
                return lambda _shell, fields: fields.quoted(text)
            if split_literals:
                return lambda _shell, fields: fields.expanded(text)
            return lambda _shell, fields: fields.literal(text)
        case Escaped(text) | SingleQuoted(text) | AnsiQuoted(text):
            return lambda _shell, fields: fields.quoted(text)
        case DoubleQuoted(parts) | LocaleQuoted(parts):
            if not any(is_multi(inner) for inner in parts):
                whole = compile_quoted(parts)
                return lambda shell, fields: fields.quoted(whole(shell))
            emits = [compile_emit(inner, quoted=True) for inner in parts]

            def emit_all(shell: Shell, fields: Fields) -> None:
                for emit in emits:
                    emit(shell, fields)

            return emit_all
        case Param() | ParamNames() | ParamKeys():
            from belljar.shell.compile.param_fields import compile_param_emit

            return compile_param_emit(part, quoted=quoted)
        case Tilde():
            tilde = compile_text(part)
            return lambda shell, fields: fields.quoted(tilde(shell))
        case ProcSub():
            path = compile_text(part)
            return lambda shell, fields: fields.quoted(path(shell))
        case _:
            value = compile_text(part)
            if quoted:
                return lambda shell, fields: fields.quoted(value(shell))
            return lambda shell, fields: fields.expanded(value(shell))


def compile_parts_fields(parts: Sequence[WordPart], *, glob: bool = True) -> Callable[[Shell, list[str]], None]:
    emits = [compile_emit(part, quoted=False) for part in parts]

    def run(shell: Shell, out: list[str]) -> None:
        fields = Fields(shell, out, glob=glob)
        for emit in emits:
            emit(shell, fields)
        fields.end()
        if len(out) > 10_000:
            shell.budget.charge_size(len(out) * 8)

    return run


def is_repeatable(part: WordPart) -> bool:
    """Whether the part may be expanded twice: it has no effects and runs nothing."""
    match part:
        case DoubleQuoted(parts) | LocaleQuoted(parts):
            return all(is_repeatable(inner) for inner in parts)
        case Param():
            if part.indirect or isinstance(part.index, Subscript):
                return False
            if isinstance(part.op, Default):
                return part.op.op in "-+" and all(is_repeatable(inner) for inner in part.op.word.parts)
            return part.op is None or isinstance(part.op, Length)
        case ArithSub(arith):
            return arith.expr is not None and not has_effects(arith.expr)
        case Literal() | Escaped() | SingleQuoted() | AnsiQuoted():
            return True
        case _:
            return False


CONSTANT, ONE, MANY = 0, 1, 2


def _compile_word(parts: Sequence[WordPart]) -> tuple[int, object]:
    """The fields of one word: a constant, a closure giving one string, or a closure appending to a list."""
    if all(isinstance(part, Literal) for part in parts):
        text = "".join(part.text for part in parts if isinstance(part, Literal))
        if not MAGIC.search(text):
            return (CONSTANT, text) if parts else (MANY, lambda _shell, _out: None)
    elif not any(isinstance(part, Literal) and MAGIC.search(part.text) for part in parts):
        if all(
            isinstance(
                part, Literal | Tilde | ProcSub | DoubleQuoted | LocaleQuoted | Escaped | SingleQuoted | AnsiQuoted
            )
            for part in parts
        ) and not any(is_multi(part) for part in parts):
            text_or_none = constant_text(parts)
            if text_or_none is not None:
                return CONSTANT, text_or_none
            return ONE, compile_quoted(parts)
        if len(parts) == 1:
            return MANY, _compile_single(parts[0])
        if any(isinstance(part, Literal) for part in parts) and all(
            is_repeatable(part) and not is_multi(part) for part in parts
        ):
            return MANY, _compile_mixed(parts)
    return MANY, compile_parts_fields(parts)


def _compile_mixed(parts: Sequence[WordPart]) -> Callable[[Shell, list[str]], None]:
    """Text with unquoted values in it, `/path/$x.c`: one field, as long as no value holds anything special."""
    general = compile_parts_fields(parts)
    pieces = [(isinstance(part, Param | ArithSub), compile_text(part)) for part in merge_constants(parts)]

    def run(shell: Shell, out: list[str]) -> None:
        touches = shell.ifs.touches
        texts = []
        for is_split, piece in pieces:
            text = piece(shell)
            if is_split and touches(text):
                general(shell, out)
                return
            texts.append(text)
        field = "".join(texts)
        if len(field) > 65536:
            shell.budget.charge_size(len(field))
        out.append(field)

    return run


def _compile_single(part: WordPart) -> Callable[[Shell, list[str]], None]:
    """A word that is one unquoted expansion: mostly its value needs no splitting."""
    general = compile_parts_fields((part,))
    if is_multi(part):
        if isinstance(part, DoubleQuoted) and len(part.parts) == 1:
            from belljar.shell.compile.param_text import compile_simple_list

            values = compile_simple_list(part.parts[0])
            if values is not None:
                listed = values

                def extend(shell: Shell, out: list[str]) -> None:
                    out += listed(shell)

                return extend
        return general
    if isinstance(part, Param) and part.op is not None and hasattr(part.op, "word"):
        return general
    value = compile_text(part)
    if isinstance(part, Param | CommandSub | ArithSub | BackquoteSub):

        def one(shell: Shell, out: list[str]) -> None:
            text = value(shell)
            if not text:
                return
            if shell.ifs.touches(text):
                fields = Fields(shell, out)
                fields.expanded(text)
                fields.end()
            else:
                out.append(text)

        return one
    return general


def compile_words(words: Sequence[Word]) -> FieldList:
    """The fields of all words, brace expansion included."""
    items: list[tuple[int, object]] = []
    for word in words:
        if word.braces is None:
            items.append(_compile_word(word.parts))
        else:
            items.append((MANY, _compile_braced(word)))
    if all(kind == CONSTANT for kind, _ in items):
        fixed = [str(item) for _, item in items]
        return lambda _shell: fixed.copy()
    if all(kind != MANY for kind, _ in items):
        pieces: list[Text] = [item if kind == ONE else _const(str(item)) for kind, item in items]  # type: ignore[misc]
        if len(pieces) == 1:
            only = pieces[0]
            return lambda shell: [only(shell)]
        if len(pieces) == 2:
            first, second = pieces
            return lambda shell: [first(shell), second(shell)]
        return lambda shell: [piece(shell) for piece in pieces]

    def build(shell: Shell) -> list[str]:
        out: list[str] = []
        for kind, item in items:
            if kind == 0:
                out.append(item)  # type: ignore[arg-type]
            elif kind == 1:
                out.append(item(shell))  # type: ignore[operator]
            else:
                item(shell, out)  # type: ignore[operator]
        return out

    return build


def _const(text: str) -> Text:
    return lambda _shell: text


def has_one_field(word: Word | Assignment) -> bool:
    return isinstance(word, Word) and word.braces is None and _compile_word(word.parts)[0] != MANY


def _compile_braced(word: Word) -> Callable[[Shell, list[str]], None]:
    assert word.braces is not None
    sequence = word.braces
    plain = compile_words([Word(word.parts)])
    size = count(sequence)
    cached: list[FieldList] = []

    def run(shell: Shell, out: list[str]) -> None:
        if not shell.braceexpand:
            out += plain(shell)
            return
        if not cached:
            if (rest := unclosed_backquote(sequence)) is not None:
                raise ExpansionError(f'bad substitution: no closing "`" in {rest}')
            shell.budget.charge_size(size * 16)
            if size > 1000:
                shell.budget.charge(size // 10)
            fixed = plain_texts(sequence)
            if fixed is not None:
                if size <= 10_000:
                    cached.append(lambda _shell: fixed)
                out += fixed
                return
            texts = list(expand(sequence))
            made = compile_words([Word(tilde_prefix(merge_literals(parts))) for parts in texts])
            if size > 10_000:
                out += made(shell)
                return
            cached.append(made)
        out += cached[0](shell)

    return run
