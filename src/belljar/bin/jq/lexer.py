"""Splits jq program text into tokens; a string is several, with its interpolations in between."""

import re

from belljar.abi.dataclass import dataclass
from belljar.bin.jq.exact import Complaint, unescape

KEYWORDS = frozenset(
    "as import include module def if then else elif and or end reduce foreach try catch label break".split()
)
NAME = r"(?:[a-zA-Z_][a-zA-Z_0-9]*::)*[a-zA-Z_][a-zA-Z_0-9]*"
TOKEN = re.compile(
    rf"""(?P<blank>[ \t\r\n]+|\#(?:\\(?:\\|\r?\n|(?!\n).)|[^\\\n])*\\?)
    |(?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
    |(?P<field>\.[a-zA-Z_][a-zA-Z_0-9]*)
    |(?P<variable>\${NAME})
    |(?P<name>{NAME})
    |(?P<format>@[a-zA-Z0-9_]+)
    |(?P<quote>")
    |(?P<mark>\?//=?|//=|\|=|\+=|-=|\*=|/=|%=|==|!=|<=|>=|//|\.\.|[.?=;,:|+\-*/%$<>()\[\]{{}}])
    """,
    re.VERBOSE,
)
PLAIN = re.compile(r'[^\\"]+')
ESCAPES = re.compile(r"(?:\\[^u(]|\\u[a-zA-Z0-9]{0,4})+", re.DOTALL)


class SyntaxProblem(Exception):
    """The program is malformed; `at` is the offset."""

    def __init__(self, message: str, at: int, end: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.at = at
        self.end = at + 1 if end is None else end


@dataclass(frozen=True, slots=True)
class Token:
    kind: str
    """name, keyword, field, variable, number, format, mark, text, and the string brackets " and \\( and \\)."""
    text: str
    at: int


def tokenize(source: str) -> list[Token]:
    tokens: list[Token] = []
    position, size = 0, len(source)
    brackets: list[str] = []
    """Stack of closing brackets: ) ] } of the program, or the ) that ends an interpolation (written \\)."""
    while position < size:
        match = TOKEN.match(source, position)
        if match is None:
            raise SyntaxProblem("syntax error, unexpected INVALID_CHARACTER", position)
        kind, text, at = match.lastgroup or "", match.group(), position
        position = match.end()
        if kind == "blank":
            continue
        if kind == "quote":
            tokens.append(Token('"', text, at))
            position = _string(source, position, tokens, brackets)
            continue
        if kind == "mark":
            if text in "([{":
                brackets.append({"(": ")", "[": "]", "{": "}"}[text])
            elif text in ")]}":
                expected = brackets.pop() if brackets else ""
                if expected == "\\)" and text == ")":
                    tokens.append(Token("\\)", text, at))
                    position = _string(source, position, tokens, brackets)
                    continue
                if expected != text:
                    raise SyntaxProblem("syntax error, unexpected INVALID_CHARACTER", at)
            elif text == "?//=":
                # `?//` is the alternative operator; the `=` belongs to what follows.
                text, position = "?//", position - 1
        elif kind == "field" or kind == "variable" or kind == "format":
            text = text[1:]
        elif kind == "name" and text in KEYWORDS:
            kind = "keyword"
        tokens.append(Token(kind, text, at))
    tokens.append(Token("end", "", size))
    return tokens


def _string(source: str, position: int, tokens: list[Token], brackets: list[str]) -> int:
    """Tokens of a string's inside, up to its end or its next interpolation."""
    size = len(source)
    while position < size:
        ch = source[position]
        if ch == '"':
            tokens.append(Token("close", ch, position))
            return position + 1
        if source.startswith("\\(", position):
            tokens.append(Token("\\(", "\\(", position))
            brackets.append("\\)")
            return position + 2
        match = PLAIN.match(source, position) or ESCAPES.match(source, position)
        if match is None:
            raise SyntaxProblem("syntax error, unexpected INVALID_CHARACTER", position)
        text = match.group()
        if ch == "\\":
            try:
                text = unescape(text)
            except Complaint as complaint:
                raise SyntaxProblem(f"{complaint} at line 1, column {len(text)}", position) from None
        tokens.append(Token("text", text, position))
        position = match.end()
    return position
