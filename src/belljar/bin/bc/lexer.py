"""The tokens of bc, read from lines as they come."""

from __future__ import annotations

import re
from collections.abc import Callable

from belljar.abi.dataclass import dataclass

KEYWORDS = frozenset(
    "define auto if else while for break continue return quit halt print length sqrt scale ibase obase last read "
    "random history limits warranty void".split()
)

_TOKEN = re.compile(
    r"(?P<blank>(?:[ \t\r\f\v]|\\\n)+|#[^\n]*)"
    r"|(?P<number>(?:[0-9A-Z](?:\\\n)?)+(?:\.(?:[0-9A-Z]|\\\n)*)?|\.(?:[0-9A-Z]|\\\n)+)"
    r"|(?P<name>[a-z][a-z0-9_]*)"
    r"|(?P<operator>\+\+|--|&&|\|\||[-+*/%^]=|[<>=!]=|[-+*/%^=<>!(){}\[\];,.&]|\n)"
)


@dataclass(slots=True)
class Token:
    """kind: "number", "name", "string", "eof", "bad", or the keyword or operator itself."""

    kind: str
    text: str
    line: int


class Lexer:
    """Reads tokens of one source. `more` gives further lines, "" at the end."""

    def __init__(self, more: Callable[[], str], name: str) -> None:
        self.more = more
        self.name = name
        self.text = ""
        self.position = 0
        self.line = 1

    def _fill(self) -> bool:
        """Append another line to what is unread."""
        line = self.more()
        if not line:
            return False
        self.text = self.text[self.position :] + line
        self.position = 0
        return True

    def next(self) -> Token:
        while True:
            if self.position >= len(self.text) and not self._fill():
                return Token("eof", "", self.line)
            while self.text.endswith("\\\n") and self._fill():
                pass
            if self.text.startswith("/*", self.position):
                if not self._comment():
                    return Token("eof", "", self.line)
                continue
            if self.text[self.position] == '"':
                return self._string()
            match = _TOKEN.match(self.text, self.position)
            if match is None:
                self.position += 1
                return Token("bad", self.text[self.position - 1], self.line)
            line = self.line
            self.position = match.end()
            self.line += match.group().count("\n")
            if match.lastgroup == "blank":
                continue
            text = match.group()
            if match.lastgroup == "number":
                return Token("number", text.replace("\\\n", ""), line)
            if match.lastgroup == "name":
                return Token(text if text in KEYWORDS else "name", text, line)
            return Token("newline" if text == "\n" else text, text, line)

    def _comment(self) -> bool:
        while (end := self.text.find("*/", self.position + 2)) < 0:
            if not self._fill():
                self.position = len(self.text)
                return False
        self.line += self.text.count("\n", self.position, end)
        self.position = end + 2
        return True

    def _string(self) -> Token:
        line = self.line
        while (end := self.text.find('"', self.position + 1)) < 0:
            if not self._fill():
                self.position = len(self.text)
                return Token("bad", '"', line)
        text = self.text[self.position + 1 : end]
        self.line += text.count("\n")
        self.position = end + 1
        return Token("string", text, line)

    def skip_line(self) -> None:
        """Skip the rest of the line, after an error."""
        end = self.text.find("\n", self.position)
        if end < 0:
            self.position = len(self.text)
            return
        self.position = end + 1
        self.line += 1
