"""Simple commands: assignments, words and redirections."""

from __future__ import annotations

import re

from belljar.shell.nodes import (
    ArrayElement,
    ArrayLiteral,
    Assignment,
    FdVariable,
    FileRedirect,
    Index,
    Literal,
    Redirect,
    SimpleCommand,
    Subscript,
    Word,
    WordPart,
)
from belljar.shell.parse.braces import parse_braces
from belljar.shell.parse.source import ParseOptions, Reader
from belljar.shell.parse.tokens import END, OTHER, WORD, TokenReader
from belljar.shell.parse.words import merge, tildes_of_assignment

#: Builtins whose arguments `name=value` are assignments.
DECLARATIONS = frozenset({"declare", "typeset", "local", "export", "readonly"})
#: Builtins that may be given `name=(...)` all the same, as text.
ARRAY_TEXT = frozenset({"eval", "let", "alias"})
#: Commands that run the builtin named next.
PREFIXES = frozenset({"command", "builtin"})

REDIRECTIONS = frozenset({"<", ">", ">>", ">|", "<>", "&>", "&>>", "<<<", "<&", ">&", "<<", "<<-"})
INPUT = frozenset({"<", "<>", "<<<", "<&", "<<", "<<-"})

ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=|\[)").match
EQUALS = re.compile(r"\+?=").match
FD_VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)(\[)?").match
FD_CLOSE = re.compile(r"\}(?=[<>])").match

MAX_FD_DIGITS = 9


RESERVED = frozenset(
    "if then else elif fi case esac for select while until do done in function time { } ! [[ coproc".split()
)
"""Words that in POSIX mode can't be aliases."""


class SimpleReader(TokenReader):
    """Adds simple commands and redirections."""

    def __init__(self, source: str | Reader, options: ParseOptions | None = None, first_line: int = 1) -> None:
        super().__init__(source, options, first_line)
        self._words: dict[str, Word] = {}
        self.ended = 0
        """The line on which the last word, assignment or redirection ended."""

    # --- words as tokens ---

    def plain_word(self, text: str) -> Word:
        word = self._words.get(text)
        if word is None:
            word = self._words[text] = Word((Literal(text),))
        return word

    def take_word(self, *, extglob: bool = False, regex: bool = False) -> Word:
        """The word that is the current token."""
        if self.kind == WORD and not regex and not (extglob and self.text.startswith("!(", self.start)):
            word = self.plain_word(self.value)
        elif self.kind in (WORD, OTHER):
            self.pos = self.start
            word = self.finish_word(self.read_parts(extglob=extglob, regex=regex))
        else:
            raise self.unexpected()
        self.ended = self.line_at(self.pos)
        self.advance()
        return word

    def take_name(self) -> str:
        """The current token, which must be a word, as it is written."""
        if self.kind not in (WORD, OTHER):
            raise self.unexpected()
        name = self.token_text()
        self.advance()
        return name

    def expand_alias(self) -> bool:
        """Replace the current token by its alias, if it is one; it then isn't the current token any more."""
        if self.kind != WORD or (self.options.posix and self.value in RESERVED):
            return False
        value = self.alias_for(self.value)
        if value is None or (self.value.isdecimal() and self.text[self.pos : self.pos + 1] in ("<", ">")):
            return False
        self.splice_alias(self.value, value, self.start, self.pos)
        self.advance()
        return True

    def expand_next_word(self) -> None:
        """Replace the current token by its alias, and that by its own, if the alias before it ended in a blank."""
        if self.aliases and self.leave_aliases(self.start) and self.expand_alias():
            self.expand_alias()

    def expand_command_aliases(self) -> None:
        """Replace aliases until the current token, which begins a command, isn't one."""
        while self.kind == WORD:
            if self.aliases:
                self.leave_aliases(self.start)
            if not self.expand_alias():
                return

    def begin_command(self) -> None:
        """Replace the aliases a command begins with; what they leave may be nothing but newlines, which are passed."""
        if self.options.alias is None:
            return
        self.expand_command_aliases()
        while self.kind == "\n" and self.aliases:
            self.skip_newlines()
            self.expand_command_aliases()

    # --- the command ---

    def simple_command(self) -> SimpleCommand:
        """Its line is where bash stands when it knows what it has: at the end of the first assignment or redirection,
        but at the end of the token after the first word."""
        line = 0
        assignments: list[Assignment] = []
        words: list[Word | Assignment] = []
        redirects: list[Redirect] = []
        leading = True  # no word yet but assignments and redirections
        declaring = array_text = prefixed = False
        aliasing = self.options.alias is not None
        while True:
            if not line and (words or assignments or redirects):
                if assignments or redirects or len(words) > 1:
                    line = self.ended
                elif self.kind != OTHER:
                    line = self.line_at(self.start)
            kind = self.kind
            if aliasing:
                after_blank = self.leave_aliases(self.start) if self.aliases else False
                if (leading or after_blank) and self.expand_alias():
                    if not leading:
                        self.expand_alias()
                    continue
            if kind == WORD:
                value = self.value
                if value[0] in "0123456789" and (fd := self._fd_number()) is not None:
                    redirects.append(self.redirect(fd))
                    continue
                words.append(self.plain_word(value))
                self.advance()
                if leading or prefixed:
                    leading = False
                    declaring = value in DECLARATIONS
                    array_text = value in ARRAY_TEXT
                    prefixed = value in PREFIXES
                    if self.kind == "(":
                        break
            elif kind == OTHER:
                redirect = self._fd_variable_redirect()
                if redirect is not None:
                    redirects.append(redirect)
                    continue
                assignment = self._assignment(declaring=declaring) if leading or declaring else None
                if assignment is None:
                    words.append(self._argument(array_text=array_text))
                    leading = prefixed = False
                elif leading:
                    assignments.append(assignment)
                else:
                    words.append(assignment)
            elif kind in REDIRECTIONS:
                redirects.append(self.redirect(None))
            else:
                break
        return SimpleCommand(tuple(assignments), tuple(words), tuple(redirects), line or self.line_at(self.start))

    def _argument(self, *, array_text: bool) -> Word:
        self.pos = start = self.start
        parts = self.read_parts()
        if array_text and self.text.startswith("=(", self.pos - 1) and ASSIGNMENT(self.text, start):
            parts = merge([*parts, *_flatten(self._array(self.pos))])
        word = self.finish_word(parts)
        self.ended = self.line_at(self.pos)
        self.advance()
        return word

    # --- assignments ---

    def _assignment(self, *, declaring: bool) -> Assignment | None:
        """The assignment that is the current token, or None if it isn't one (and nothing was read)."""
        start = self.start
        match = ASSIGNMENT(self.text, start)
        if match is None:
            return None
        line = self.line_at(start)
        index = None
        self.pos = match.end()
        operator = match.group(2)
        if operator == "[":
            self.pos -= 1
            index = self.subscript(start)
            equals = EQUALS(self.text, self.pos)
            if equals is None or (declaring and _has_blank(index)):
                self.pos = start
                return None
            operator = equals.group()
            self.pos = equals.end()
        append = operator == "+="
        if self.text.startswith("(", self.pos):
            value: Word | ArrayLiteral = self._array(self.pos)
        else:
            parts = self.read_parts()
            value = self._value(parts, braces=declaring)
        self.ended = self.line_at(self.pos)
        self.advance()
        return Assignment(match.group(1), index, append, value, line)

    def _value(self, parts: tuple[WordPart, ...], *, braces: bool) -> Word:
        expansion = None
        if braces and any(isinstance(part, Literal) and "{" in part.text for part in parts):
            expansion = parse_braces(parts)
        if any(isinstance(part, Literal) and "~" in part.text for part in parts):
            parts = tildes_of_assignment(parts)
        return Word(parts, expansion)

    def _array(self, opened: int) -> ArrayLiteral:
        """The (...) at `opened`; `pos` is left behind it, without a look at the next token."""
        self.enter()
        self.pos = opened + 1
        line = self.line_at(opened)
        elements: list[ArrayElement] = []
        self.advance()
        while True:
            self.skip_newlines()
            if self.kind in (WORD, OTHER):
                elements.append(self._element())
            elif self.kind == ")":
                break
            elif self.kind == END:
                error = self.unexpected_eof(")", line)
                error.status = 1
                raise error
            else:
                error = self.unexpected()
                error.mild = True
                raise error
        self.depth -= 1
        return ArrayLiteral(tuple(elements))

    def _element(self) -> ArrayElement:
        start = self.start
        if self.text.startswith("[", start):
            self.pos = start
            index = self.subscript(start)
            equals = EQUALS(self.text, self.pos)
            if equals is not None:
                self.pos = equals.end()
                value = self._value(self.read_parts(), braces=False)
                self.advance()
                return ArrayElement(index, equals.group() == "+=", value)
            self.pos = start
            self.kind = OTHER
        return ArrayElement(None, append=False, value=self.take_word())

    # --- redirections ---

    def _fd_number(self) -> int | None:
        """The current token if it is the number right before a redirection operator, which then is the token."""
        if not self._is_fd_number():
            return None
        fd = int(self.value)
        self.advance()
        return fd

    def _is_fd_number(self) -> bool:
        value = self.value
        if value.isdecimal() and value.isascii() and len(value) <= MAX_FD_DIGITS:
            return self.text[self.pos : self.pos + 1] in ("<", ">")
        return False

    def _fd_variable_redirect(self) -> Redirect | None:
        """{name}> and its kin, if that is what comes."""
        start = self.start
        match = FD_VARIABLE(self.text, start)
        if match is None:
            return None
        index = None
        if match.group(2):
            self.pos = match.end() - 1
            if self.text.find("]", self.pos) < 0:
                self.pos = start
                return None
            index = self.subscript(start)
        else:
            self.pos = match.end()
        close = FD_CLOSE(self.text, self.pos)
        if close is None or self.text.startswith("(", close.end() + 1):
            self.pos = start
            return None
        self.pos = close.end()
        self.advance()
        return self.redirect(FdVariable(match.group(1), index))

    def redirect(self, fd: int | FdVariable | None) -> Redirect:
        """The redirection whose operator is the current token."""
        op = self.kind
        line = self.line_at(self.start)
        if fd is None:
            fd = 0 if op in INPUT else 1
        self.advance()
        if self.kind not in (WORD, OTHER) or (self.kind == WORD and self._is_fd_number()):
            raise self.unexpected()
        if op in ("<<", "<<-"):
            self.pos = self.start
            doc = self.announce(fd, strip_tabs=op == "<<-")
            self.ended = self.line_at(self.pos)
            self.advance()
            return doc
        target = self.take_word()
        if op == "<&" and target.parts == (Literal("-"),):
            op = ">&"
        return FileRedirect(op, fd, target, line)

    def redirections(self) -> tuple[Redirect, ...]:
        """The redirections that follow a compound command."""
        redirects: list[Redirect] = []
        while True:
            if self.kind in REDIRECTIONS:
                redirects.append(self.redirect(None))
            elif self.kind == WORD and (fd := self._fd_number()) is not None:
                redirects.append(self.redirect(fd))
            elif self.kind == OTHER and (redirect := self._fd_variable_redirect()) is not None:
                redirects.append(redirect)
            else:
                return tuple(redirects)


def _has_blank(index: Index) -> bool:
    """Whether a subscript has unquoted blanks, which end an argument, though not an assignment."""
    parts = index.word.parts if isinstance(index, Subscript) else ()
    return any(isinstance(part, Literal) and any(char in part.text for char in " \t\n") for part in parts)


def _flatten(array: ArrayLiteral) -> list[WordPart]:
    """(...) as the parts of a word, one blank between the elements."""
    parts: list[WordPart] = [Literal("(")]
    for place, element in enumerate(array.elements):
        if place:
            parts.append(Literal(" "))
        if isinstance(element.index, Subscript):
            parts += [Literal("["), *element.index.word.parts, Literal("]")]
        elif element.index is not None:
            parts.append(Literal("[*]" if element.index.joined else "[@]"))
        if element.index is not None:
            parts.append(Literal("+=" if element.append else "="))
        parts += element.value.parts
    return [*parts, Literal(")")]
