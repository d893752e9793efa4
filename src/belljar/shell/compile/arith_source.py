"""The text of an arithmetic expression, expanded: bash expands subscripts on their own and quotes the result.

So in `(( m[$k]++ ))` the value of `k` is a key whatever it holds; no command in it is run when the text is parsed.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from belljar.shell.compile.words import Text, compile_quoted, join
from belljar.shell.nodes import DoubleQuoted, Literal, Subscript, Word, WordPart
from belljar.shell.print import print_word

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

SPECIAL = re.compile(r"[\[\]$`~\\'\"]")
#: Those of them that a backslash still quotes after the text was read as if in double quotes.
SPECIAL_IN_QUOTES = re.compile(r"[\[\]~']")
PIECE = re.compile(r"\\.|[\[\]'\\]|[^\[\]'\\]+", re.DOTALL)


def compile_arith_source(parts: Sequence[WordPart]) -> Text:
    """The parts as the text that is to be parsed as arithmetic."""
    if all(isinstance(part, Literal) for part in parts) or not _has_bracket(parts):
        return compile_quoted(parts)
    pieces: list[Text] = []
    for inside, section in _sections(parts):
        pieces.append(_compile_subscript(section) if inside else _compile_outside(section))
    return join(pieces)


def quote_brackets(text: str) -> str:
    """Expanded text of a subscript in an expression, as it is parsed: it holds no subscripts of its own."""
    return SPECIAL_IN_QUOTES.sub(r"\\\g<0>", text)


def _has_bracket(parts: Sequence[WordPart]) -> bool:
    return any(
        "[" in part.text if isinstance(part, Literal) else isinstance(part, DoubleQuoted) and _has_bracket(part.parts)
        for part in parts
    )


def _compile_outside(parts: Sequence[WordPart]) -> Text:
    pieces = [
        compile_arith_source(part.parts) if isinstance(part, DoubleQuoted) else compile_quoted((part,))
        for part in parts
    ]
    return join(pieces) if pieces else lambda _shell: ""


def _compile_subscript(parts: Sequence[WordPart]) -> Text:
    from belljar.shell.parse import ShellSyntaxError, parse_subscript

    # Written out and read again, as quotes within a subscript are quotes, and outside it aren't.
    written = print_word(Word(tuple(parts)))
    try:
        index = parse_subscript(written)
    except ShellSyntaxError:
        return lambda _shell: f"[{written}]"
    if not isinstance(index, Subscript):
        return lambda _shell: f"[{written}]"
    text = compile_quoted(index.word.parts)

    def subscript(shell: Shell) -> str:
        return f"[{SPECIAL.sub(_quote, text(shell))}]"

    return subscript


def _quote(match: re.Match[str]) -> str:
    return f"\\{match.group()}"


def _sections(parts: Sequence[WordPart]) -> list[tuple[bool, list[WordPart]]]:
    """The parts cut at the brackets of subscripts; True for what is inside of one, without its brackets."""
    sections: list[tuple[bool, list[WordPart]]] = []
    current: list[WordPart] = []
    depth = 0
    quoted = False
    for part in parts:
        if not isinstance(part, Literal):
            current.append(part)
            continue
        for piece in PIECE.findall(part.text):
            if depth and piece == "'":
                quoted = not quoted
            elif piece == "[" and not quoted:
                depth += 1
                if depth == 1:
                    sections.append((False, current))
                    current = []
                    continue
            elif piece == "]" and depth and not quoted:
                depth -= 1
                if not depth:
                    sections.append((True, current))
                    current = []
                    continue
            current.append(Literal(piece))
    if depth:
        current.insert(0, Literal("["))
    sections.append((False, current))
    return [(inside, section) for inside, section in sections if inside or section]
