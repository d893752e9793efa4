"""Tokens: one look at what comes next, skipping blanks, comments and joined lines."""

from __future__ import annotations

import re

from belljar.shell.parse.errors import ShellSyntaxError
from belljar.shell.parse.heredocs import HereDocReader
from belljar.shell.parse.source import ParseOptions, Reader

#: Group 1: a word with nothing in it to expand or quote. Group 2: an operator. Neither: another word, or the end.
SKIPPED = r"(?:[ \t]|\\\n)*+"
COMMENT = r"(?:#[^\n]*)?"
FOUND = (
    r"(?:([^ \t\n;&|<>()$`\"'\\{}~=\[]+|[{}]|\[\[?)(?=[ \t\n;&|)]|[<>](?!\()|(?<![?*+@!])\(|\Z)"
    r"|(\n|;;&|;;|;&|;|&&|&>>|&>|&|\|\||\|&|\||<<<|<<-|<<|<&|<>|<(?!\()|>>|>&|>\||>(?!\()|\(|\))|)"
)
TOKEN = re.compile(SKIPPED + COMMENT + FOUND).match
TOKEN_NO_COMMENT = re.compile(SKIPPED + FOUND).match

#: The beginning of a plain word that goes on in the next line: the whole may be a reserved one.
JOINED_WORD = re.compile(r"(?:[^ \t\n;&|<>()$`\"'\\]++|\\\n)++")
JOINABLE = frozenset((";", ";;", "&", "&>", "|", "<", "<<", ">", "("))

WORD, OTHER, END = "word", "other", "end"


class TokenReader(HereDocReader):
    """`kind` is WORD (plain, its text in `value`), OTHER (a word to be read by read_parts), END, or an operator.

    `start` and `pos` are where the token begins and ends; for OTHER `pos` stays at its beginning.
    """

    def __init__(self, source: str | Reader, options: ParseOptions | None = None, first_line: int = 1) -> None:
        super().__init__(source, options, first_line)
        self.kind = END
        self.value = ""
        self.start = 0
        self.passed = -1
        """Where newlines were last passed: there the end of the text is no newline missing."""

    def advance(self) -> None:
        """Look at the token at `pos`."""
        match = (TOKEN if self.options.comments else TOKEN_NO_COMMENT)(self.text, self.pos)
        assert match is not None
        group = match.lastindex
        if group == 1:
            self.kind = WORD
            self.value = match.group(1)
            self.start = match.start(1)
            self.pos = match.end()
        elif group == 2:
            self.kind = self.value = match.group(2)
            self.start = match.start(2)
            self.pos = match.end()
            if self.kind in JOINABLE and self.join_lines(self.pos):  # what follows may make it a longer one
                self.pos = self.start
                self.advance()
        else:
            self._other(match.end())

    def _other(self, place: int) -> None:
        self.pos = place
        if place >= len(self.text):
            if not self.inside:
                self.drop_consumed()
            if self.fill():
                self.advance()
                return
            self.kind = END
            self.value = ""
        elif self.text.startswith("!(", place) and not self.options.extglob:
            self.kind = WORD
            self.value = "!"
            self.pos = place + 1
        elif self.join_lines(place, JOINED_WORD):
            self.advance()
            return
        else:
            self.kind = OTHER
            self.value = ""
        self.start = place

    def newline(self) -> None:
        """Pass the newline just seen, with the here-documents that follow it."""
        if self.pending:
            self.read_pending()
        self.advance()

    def skip_newlines(self) -> None:
        while self.kind == "\n":
            self.newline()
        self.passed = self.start

    def token_text(self) -> str:
        """The current token as bash names it in an error."""
        if self.kind in ("\n", END):
            return "newline" if self.kind == "\n" else "EOF"
        if self.kind != OTHER:
            return self.value
        self.pos = self.start
        self.read_parts()
        return self.text[self.start : self.pos]

    def unexpected(self) -> ShellSyntaxError:
        """The error for a token that can't stand where it stands."""
        if self.kind == END and self.inside:
            return self.unexpected_eof(")", self.end_line())
        start = self.start
        if self.kind == END and (start == self.passed or not self.text or self.text.endswith("\n")):
            return ShellSyntaxError(self.end_line(), "syntax error: unexpected end of file", incomplete=True)
        if self.kind == END:  # a last line without its newline has one all the same
            self.kind = "\n"
        message = f"syntax error near unexpected token `{self.token_text()}'"
        return ShellSyntaxError(self.line_at(start), message, f"`{self.line_text(start)}'")
