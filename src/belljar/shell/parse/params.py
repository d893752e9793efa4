"""Parameter expansion: everything that can stand in ${ }."""

from __future__ import annotations

import re

from belljar.shell.nodes import (
    AllElements,
    BadSubstitution,
    ChangeCase,
    Default,
    Index,
    Length,
    Literal,
    Param,
    ParamKeys,
    ParamNames,
    ParamOp,
    Replace,
    Slice,
    Strip,
    Transform,
    Word,
    WordPart,
)
from belljar.shell.parse.static_arith import make_subscript
from belljar.shell.parse.words import (
    BRACE,
    BRACE_QUOTED,
    BRACE_SLASH,
    BRACE_SLICE,
    SUBSCRIPT,
    WordReader,
    merge,
    tilde_prefix,
)

NAME = r"[A-Za-z_][A-Za-z0-9_]*"
HEAD = re.compile(rf"({NAME}|[0-9]+|[@*#?$!-])").match
LENGTH = re.compile(rf"\$\{{#(?:({NAME})(\[)?|([0-9]+|[@*#?$!-]))").match
INDIRECT = re.compile(rf"\$\{{!(?:({NAME}|[0-9]+)([*@]\}})?|([@*#])(?=[}}:@]))").match
OPERATOR = re.compile(r"(:?[-=?+])|(:)|(##|#|%%|%)|(/[/#%]?)|(\^\^|\^|,,|,|~~|~)|@([A-Za-z])(?=\})").match
#: Names and operators up to a line joint in them.
JOINED_HEAD = re.compile(r"\$\{[A-Za-z0-9_@*#?$!:=+/%^,~-]*(?=\\\n)").match
JOINED_OPERATOR = re.compile(r"[@#?:=+/%^,~-]{1,2}(?=\\\n)").match


class ParamReader(WordReader):
    """Adds ${ } to the words."""

    def brace_param(self, start: int, *, quoted: bool) -> WordPart:
        self.enter()
        while match := JOINED_HEAD(self.text, start):
            self.join_lines(match.end())
        part = self._param(start, quoted=quoted)
        self.pos += 1  # the closing brace
        self.depth -= 1
        return part

    def _param(self, start: int, *, quoted: bool) -> WordPart:
        """The ${...} at `start`, read up to its closing brace."""
        text = self.text
        if text.startswith("#", start + 2):
            match = LENGTH(text, start)
            if match is not None:
                self.pos = match.end(1) if match.group(1) else match.end()
                index = self.subscript(start) if match.group(2) else None
                if self.text.startswith("}", self.pos):
                    return Param(match.group(1) or match.group(3), index, op=Length(), braced=True)
        indirect = False
        if text.startswith("!", start + 2) and (match := INDIRECT(text, start)):
            if match.group(2):
                self.pos = match.end() - 1
                return ParamNames(match.group(1), match.group(2)[0] == "*")
            indirect = True
        match = HEAD(text, start + 3 if indirect else start + 2)
        if match is None:
            return self._bad(start, quoted=quoted)
        name = match.group(1)
        self.pos = match.end()
        index = None
        if self.text.startswith("[", self.pos) and (name[0].isalpha() or name[0] == "_"):
            index = self.subscript(start)
        if indirect and isinstance(index, AllElements) and self.text.startswith("}", self.pos):
            return ParamKeys(name, index.joined)
        if self._at_end(start):
            return Param(name, index, indirect, braced=True)
        while match := JOINED_OPERATOR(self.text, self.pos):
            self.join_lines(match.end())
        match = OPERATOR(self.text, self.pos)
        if match is None:
            return self._bad(start, quoted=quoted)
        op = self._operator(match, start, quoted=quoted)
        if name == "#" and match.group() in ("%", "+", "/", "=") and self.pos == start + 4:
            return self._bad(start, quoted=quoted)
        if op is None or not self.text.startswith("}", self.pos):
            return self._bad(start, quoted=quoted)
        return Param(name, index, indirect, op, braced=True)

    def _at_end(self, start: int) -> bool:
        while self.text.startswith("\\\n", self.pos):
            self.pos += 2
        if self.pos >= len(self.text) and not self.fill("}"):
            raise self.unexpected_eof("}", self.line_at(start))
        return self.text[self.pos] == "}"

    def _bad(self, start: int, *, quoted: bool) -> BadSubstitution:
        self.pos = start + 2
        self.read_context(BRACE_QUOTED if quoted else BRACE, "}", start)
        return BadSubstitution(self.text[start : self.pos + 1])

    def subscript(self, opened: int) -> Index:
        """The [subscript] at `pos`."""
        self.pos += 1
        parts = self.read_context(SUBSCRIPT, "]", opened)
        self.pos += 1
        return make_subscript(parts)

    def _operator(self, match: re.Match[str], start: int, *, quoted: bool) -> ParamOp | None:
        self.pos = match.end()
        default, colon, strip, replace, case, transform = match.groups()
        if default:
            return Default(default[-1], len(default) == 2, self._operand(start, quoted=quoted))
        if colon:
            return self._slice(start)
        if strip:
            return Strip(strip, self._pattern(start))
        if replace:
            # A slash right behind `//` belongs to the pattern: ${x////-} replaces the slashes.
            slash: list[WordPart] = []
            if replace == "//" and self.text.startswith("/", self.pos):
                self.pos += 1
                slash.append(Literal("/"))
            parts = tilde_prefix(self.read_context(BRACE_SLASH, "}", start))
            pattern = Word(merge([*slash, *parts]) if slash else parts)
            if self.text[self.pos] != "/":
                return Replace(replace[1:], pattern, None)
            self.pos += 1
            return Replace(replace[1:], pattern, self._pattern(start))
        if case and self.text[start + 2] == "#":
            return None
        if case:
            return ChangeCase(case, None if self._at_end(start) else self._pattern(start))
        return Transform(transform) if transform in "QEPAaKkUuL" else None

    def _operand(self, start: int, *, quoted: bool) -> Word:
        if quoted:
            return Word(self.read_context(BRACE_QUOTED, "}", start))
        return Word(tilde_prefix(self.read_context(BRACE, "}", start)))

    def _pattern(self, start: int) -> Word:
        """A pattern or replacement: quotes and tildes in it are its own, even within double quotes."""
        return Word(tilde_prefix(self.read_context(BRACE, "}", start)))

    def _slice(self, start: int) -> Slice | None:
        offset = self.arith(self.read_context(BRACE_SLICE, "}", start))
        if self.text[self.pos] != ":":
            return Slice(offset, None) if offset.source.parts else None
        self.pos += 1
        length = self.read_context(BRACE_SLICE, "}", start)
        if self.text[self.pos] == ":":
            # Everything after the second colon is one expression, which then is wrong at run time.
            rest = self.read_context(BRACE, "}", start)
            length = (*length, *rest)
        return Slice(offset, self.arith(length))
