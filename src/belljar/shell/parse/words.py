"""Words: quoting and expansions, read straight from the source text into parts."""

from __future__ import annotations

import re
from collections.abc import Callable

from msgspec import Struct

from belljar.shell.nodes import (
    AnsiQuoted,
    Arith,
    ArithSub,
    BackquoteSub,
    BadSubstitution,
    Command,
    CommandSub,
    DoubleQuoted,
    Escaped,
    Literal,
    LocaleQuoted,
    Param,
    ProcSub,
    SingleQuoted,
    Tilde,
    Word,
    WordPart,
)
from belljar.shell.parse.ansi import decode_ansi
from belljar.shell.parse.braces import parse_braces
from belljar.shell.parse.errors import ShellSyntaxError
from belljar.shell.parse.source import JOINTS, ParseOptions, Reader, Source
from belljar.shell.parse.static_arith import make_arith

Match = Callable[[str, int], "re.Match[str] | None"]

# Runs of characters without meaning, outside quotes: in a word, in the regular expression of [[ =~ ]], and inside the
# parentheses of an extended pattern or of such a regular expression.
RUN_WORD = re.compile(r"[^ \t\n;&|<>()$`\"'\\]*").match
RUN_REGEX = re.compile(r"[^ \t\n;&<>()$`\"'\\]*").match
RUN_NESTED = re.compile(r"[^()$`\"'\\]*").match

SPECIAL = r"[A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-]"
DOLLAR = re.compile(
    rf"\$(?:({SPECIAL})|\{{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*#?$!-])\}}|(\{{)|(\(\()|(\()|(')|(\")|(\[))"
).match
ACTIVE = re.compile(r"[$`\"'\\}]").search
PLAIN_QUOTE = re.compile(r'"([^$`"\\]*)"').match
ANSI_BODY = re.compile(r"[^'\\]*+(?:\\.[^'\\]*+)*+'", re.DOTALL).match
BACKQUOTE_BODY = re.compile(r"[^`\\]*+(?:\\.[^`\\]*+)*+`", re.DOTALL).match
BACKQUOTE_ESCAPE = re.compile(r"\\([$`\\])")
BACKQUOTE_ESCAPE_QUOTED = re.compile(r"\\([$`\\\"])")
ANY_ESCAPE = re.compile(r"\\.", re.DOTALL)
ASSIGNMENT_HEAD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[[^\]]*\])?\+?=").match
TILDE = re.compile(r"~([^/:]*)").match
TILDE_IN_ASSIGNMENT = re.compile(r"(?:(?<=:)|^)~([^/:]*)")


class Context(Struct, frozen=True):
    """A place where text is read up to a closing character, with its own idea of quoting.

    `run` matches characters without meaning there; `quoted`: as in double quotes, where a backslash only quotes the
    `escapes`; `nest` is a character that opens a nested pair whose end is the first of `enders`.
    """

    run: Match
    enders: str
    quoted: bool
    escapes: str = ""
    nest: str = ""
    ternary: bool = False


DOUBLE = Context(re.compile(r"[^$`\"\\]*").match, '"', quoted=True, escapes='$`"\\')
HEREDOC = Context(re.compile(r"[^$`\\]*").match, "", quoted=True, escapes="$`\\")
BRACE = Context(re.compile(r"[^}$`\"'\\<>]*").match, "}", quoted=False)
BRACE_QUOTED = Context(re.compile(r"[^}$`\"'\\]*").match, "}", quoted=True, escapes='$`"\\}')
BRACE_SLASH = Context(re.compile(r"[^}/$`\"'\\<>]*").match, "/}", quoted=False)
BRACE_SLICE = Context(
    re.compile(r"[^}:?()$`\"'\\]*").match, ":}", quoted=True, escapes='$`"\\}', nest="(", ternary=True
)
SUBSCRIPT = Context(re.compile(r"[^\[\]$`\"'\\]*").match, "]", quoted=False, nest="[")
PAREN = Context(re.compile(r"[^()$`\"'\\]*").match, ")", quoted=True, escapes='$`"\\', nest="(")
SQUARE = Context(re.compile(r"[^\[\]$`\"'\\]*").match, "]", quoted=True, escapes='$`"\\', nest="[")


def merge(parts: list[WordPart]) -> tuple[WordPart, ...]:
    """The parts with adjacent literals joined, so that equal words have equal trees."""
    out: list[WordPart] = []
    run: list[str] = []
    for part in parts:
        if isinstance(part, Literal):
            run.append(part.text)
            continue
        if run:
            out.append(Literal("".join(run)))
            run.clear()
        out.append(part)
    if run:
        out.append(Literal("".join(run)))
    return tuple(out)


def tilde_prefix(parts: tuple[WordPart, ...]) -> tuple[WordPart, ...]:
    """The parts of a word with a leading unquoted tilde prefix made a Tilde."""
    first = parts[0] if parts else None
    if not isinstance(first, Literal) or not (match := TILDE(first.text, 0)):
        return parts
    end = match.end()
    if end < len(first.text):
        return (Tilde(match.group(1)), Literal(first.text[end:]), *parts[1:])
    return parts if len(parts) > 1 else (Tilde(match.group(1)),)


def tildes_of_assignment(parts: tuple[WordPart, ...]) -> tuple[WordPart, ...]:
    """The parts of an assignment's value with the tilde prefixes at its start and after each colon made Tilde."""
    out: list[WordPart] = []
    for place, part in enumerate(parts):
        if not isinstance(part, Literal) or "~" not in part.text:
            out.append(part)
            continue
        text, start = part.text, 0
        for match in TILDE_IN_ASSIGNMENT.finditer(text):
            if (match.start() == 0 and place > 0) or (match.end() == len(text) and place + 1 < len(parts)):
                continue
            if match.start() > start:
                out.append(Literal(text[start : match.start()]))
            out.append(Tilde(match.group(1)))
            start = match.end()
        if start < len(text):
            out.append(Literal(text[start:]))
    return tuple(out)


class WordReader(Source):
    """Reads words at `pos`. The commands of $( ) and the operators of ${ } come from the classes built on it."""

    def __init__(self, source: str | Reader, options: ParseOptions | None = None, first_line: int = 1) -> None:
        super().__init__(source, options, first_line)
        self._params: dict[str, Param] = {}
        self._not_arith: set[int] = set()
        self.keeps_source = False
        """Whether substitutions are kept as they are written, too."""

    # --- what the parser adds ---

    def command_body(self) -> Command | None:
        """The commands from `pos` up to and including the closing parenthesis."""
        raise NotImplementedError

    def brace_param(self, start: int, *, quoted: bool) -> WordPart:
        """The `${...}` at `start`."""
        raise NotImplementedError

    def drop_consumed(self) -> None:
        self._not_arith.clear()
        super().drop_consumed()

    def splice_alias(self, name: str, value: str, start: int, end: int) -> None:
        self._not_arith = {pos for pos in self._not_arith if pos < start}
        super().splice_alias(name, value, start, end)

    def join_lines(self, pos: int, pattern: re.Pattern[str] = JOINTS) -> bool:
        joined = super().join_lines(pos, pattern)
        if joined:
            self._not_arith = {place for place in self._not_arith if place < pos}
        return joined

    # --- words ---

    def read_parts(self, *, extglob: bool = False, regex: bool = False) -> tuple[WordPart, ...]:
        """The parts of the word at `pos`, which ends at the first unquoted blank or operator character."""
        run = plain_run = RUN_REGEX if regex else RUN_WORD
        extglob = extglob or self.options.extglob
        parts: list[WordPart] = []
        text, pos = self.text, self.pos
        begun = pos
        nested = 0
        dirty = False
        opened = 0
        while True:
            match = run(text, pos)
            if match is not None and match.end() > pos:
                pos = match.end()
                parts.append(Literal(match.group()))
            char = text[pos : pos + 1]
            if char == '"':
                parts.append(self._double(pos))
            elif char == "$":
                parts.append(part := self.dollar(pos, quoted=False))
                dirty = dirty or part.__class__ is Literal
            elif char == "'":
                parts.append(self._single(pos))
            elif char == "\\":
                if pos + 1 >= len(text):
                    parts.append(Literal("\\"))
                    dirty = True
                    self.pos = pos + 1
                elif text[pos + 1] == "\n":
                    dirty = True
                    self.pos = pos + 2
                    if self.pos >= len(text):
                        self.fill()
                else:
                    parts.append(Escaped(text[pos + 1]))
                    self.pos = pos + 2
            elif char == "`":
                parts.append(self._backquote(pos, quoted=False))
            elif char == "(" and (nested or regex or (extglob and pos and text[pos - 1] in "?*+@!" and parts)):
                if not nested:
                    opened = pos
                nested += 1
                run = RUN_NESTED
                parts.append(Literal("("))
                dirty = True
                self.pos = pos + 1
            elif char == ")" and nested:
                nested -= 1
                run = RUN_NESTED if nested else plain_run
                parts.append(Literal(")"))
                dirty = True
                self.pos = pos + 1
            elif char in ("<", ">") and text.startswith("(", pos + 1):
                parts.append(self.process_sub(pos))
            elif not nested:
                break
            elif not self.fill(")"):
                raise self.unexpected_eof(")", self.line_at(opened))
            else:
                text = self.text
                continue
            pos = self.pos
            text = self.text
        self.pos = pos
        return self.within(merge(parts) if dirty else tuple(parts), begun)

    def within(self, parts: tuple[WordPart, ...], start: int) -> tuple[WordPart, ...]:
        """The parts just read from `start` on; bad substitutions among them know all of it."""
        for part in parts:
            if part.__class__ is BadSubstitution:
                text = self.text[start : self.pos]
                return tuple(BadSubstitution(p.text, text) if isinstance(p, BadSubstitution) else p for p in parts)
        return parts

    def finish_word(self, parts: tuple[WordPart, ...]) -> Word:
        """A word of `parts` as bash reads it where words are expanded: with tildes and braces."""
        braces = None
        for part in parts:
            if part.__class__ is Literal and "{" in part.text:
                braces = parse_braces(parts)
                break
        first = parts[0] if parts else None
        if isinstance(first, Literal):
            if first.text[0] == "~":
                parts = tilde_prefix(parts)
            elif "=" in first.text and not self.options.posix:
                parts = self._assignment_tildes(first.text, parts)
        return Word(parts, braces)

    def _assignment_tildes(self, text: str, parts: tuple[WordPart, ...]) -> tuple[WordPart, ...]:
        head = ASSIGNMENT_HEAD(text, 0)
        if head is None or not any(isinstance(part, Literal) and "~" in part.text for part in parts):
            return parts
        end = head.end()
        rest = (Literal(text[end:]), *parts[1:]) if end < len(text) else parts[1:]
        if end == len(text):  # the value begins with something quoted or expanded, so only a colon helps
            return (parts[0], *tildes_of_assignment((Literal(""), *rest))[1:])
        return merge([Literal(text[:end]), *tildes_of_assignment(rest)])

    # --- quotes ---

    def _single(self, pos: int) -> SingleQuoted:
        end = self.find("'", pos + 1)
        if end < 0:
            raise self.unexpected_eof("'", self.line_at(pos))
        self.pos = end + 1
        return SingleQuoted(self.text[pos + 1 : end])

    def _double(self, pos: int) -> DoubleQuoted:
        match = PLAIN_QUOTE(self.text, pos)
        if match is not None:
            self.pos = match.end()
            literal = match.group(1)
            return DoubleQuoted((Literal(literal),) if literal else ())
        self.enter()
        self.pos = pos + 1
        parts = self.within(self.read_context(DOUBLE, '"', pos), pos + 1)
        self.pos += 1
        self.depth -= 1
        return DoubleQuoted(parts)

    def _double_within(self, pos: int, end: int) -> DoubleQuoted:
        """The quotes opened at `pos` in a "${ }" whose brace closes at `end`, which closes them, too.

        In "${x-'"'y}" single quotes matter only to where the brace ends: what is between them is expanded all the same.
        """
        reader = type(self)(self.text[pos + 1 : end], self.options, self.line_at(pos))
        reader.depth = self.depth
        reader.enter()
        parts = reader.read_context(DOUBLE, "", 0)
        self.pos = pos + 1 + reader.pos
        if self.pos < end:
            self.pos += 1
        return DoubleQuoted(parts)

    def _ansi(self, pos: int) -> AnsiQuoted:
        while (match := ANSI_BODY(self.text, pos + 2)) is None:
            if not self.fill("'"):
                raise self.unexpected_eof("'", self.line_at(pos))
        self.pos = match.end()
        return AnsiQuoted(decode_ansi(self.text[pos + 2 : match.end() - 1]))

    def _backquote(self, pos: int, *, quoted: bool) -> BackquoteSub:
        while (match := BACKQUOTE_BODY(self.text, pos + 1)) is None:
            if not self.fill("`"):
                raise self.unexpected_eof("`", self.line_at(pos))
        self.pos = match.end()
        source = self.text[pos + 1 : match.end() - 1]
        if "\\\n" in source:
            source = ANY_ESCAPE.sub(lambda escape: "" if escape.group() == "\\\n" else escape.group(), source)
        escapes = BACKQUOTE_ESCAPE_QUOTED if quoted else BACKQUOTE_ESCAPE
        text = escapes.sub(r"\1", source) if "\\" in source else source
        return BackquoteSub(source, text, self.line_at(pos))

    def read_context(self, context: Context, wanted: str, opened: int) -> tuple[WordPart, ...]:
        """The parts from `pos` up to one of the context's enders, which is left unread.

        `wanted` and `opened` (a position) are for the error if the text ends first; "" accepts that end.
        """
        run, enders, quoted, nest = context.run, context.enders, context.quoted, context.nest
        closing = {"(": ")", "[": "]"}.get(nest, "")
        parts: list[WordPart] = []
        dirty = False
        nested = ternaries = 0
        literal_until = brace_end = -1
        text, pos = self.text, self.pos
        while True:
            match = run(text, pos)
            if match is not None and match.end() > pos:
                pos = match.end()
                parts.append(Literal(match.group()))
            if pos == brace_end:
                self.pos = pos
                break
            if pos >= len(text):
                self.pos = pos
                if not self.fill(wanted or "\n"):
                    if not wanted:
                        break
                    raise self.unexpected_eof(wanted, self.line_at(opened))
                text = self.text
                dirty = True
                continue
            char = text[pos]
            self.pos = pos + 1
            if char in enders and not nested and pos >= literal_until and not (char == ":" and ternaries):
                self.pos = pos
                break
            if char == "$":
                # In "${x:-$'a'}" the inner quotes are quotes after all.
                parts.append(part := self.dollar(pos, quoted=quoted, in_braces=context is BRACE_QUOTED))
                if context is BRACE_QUOTED and isinstance(part, AnsiQuoted) and not ACTIVE(part.text):
                    parts[-1] = part = Literal(part.text)
                dirty = dirty or part.__class__ is Literal
            elif char == "`":
                parts.append(self._backquote(pos, quoted=quoted))
            elif char == "\\":
                if pos + 1 >= len(text) and self.fill():
                    text = self.text
                following = text[pos + 1 : pos + 2]
                self.pos = pos + 2 if following else pos + 1
                if following == "\n":
                    dirty = True
                elif following and (not quoted or following in context.escapes):
                    parts.append(Escaped(following))
                else:
                    parts.append(Literal("\\" + following))
                    dirty = True
            elif char == '"' and pos < literal_until and context is BRACE_QUOTED:
                if brace_end < 0:
                    self.pos = literal_until + 1
                    self.read_context(context, wanted, opened)
                    brace_end = self.pos
                parts.append(self._double_within(pos, brace_end))
                literal_until = -1
            elif char == '"':
                parts.append(self._double(pos))
            elif char == "'" and not quoted:
                parts.append(self._single(pos))
            elif char in "<>" and not quoted and text.startswith("(", pos + 1):
                parts.append(self.process_sub(pos))
            else:
                dirty = True
                parts.append(Literal(char))
                if char == "'" and pos > literal_until and not self.options.posix:
                    # Within double quotes the quotes in ${x:-'}'} are kept, yet what they enclose can't end it.
                    literal_until = self.find("'", pos + 1)
                    if literal_until < 0 and context is BRACE_QUOTED and not self.options.posix:
                        raise self.unexpected_eof("'", self.line_at(pos))
                elif pos < literal_until:
                    pass
                elif char == nest:
                    nested += 1
                elif nested and char == closing:
                    nested -= 1
                elif context.ternary and char == "?":
                    ternaries += 1
                elif context.ternary and char == ":":
                    ternaries -= 1
            pos = self.pos
            text = self.text
        return merge(parts) if dirty else tuple(parts)

    # --- expansions ---

    def dollar(self, pos: int, *, quoted: bool, in_braces: bool = False) -> WordPart:
        """The expansion that begins with the `$` at `pos`, or a Literal if none does.

        Where all is `quoted`, $' and $" are quotes only in the word of a ${ }.
        """
        self.join_lines(pos + 1)
        match = DOLLAR(self.text, pos)
        group = match.lastindex if match else 0
        if group == 5 and self.join_lines(pos + 2):  # the next one may make it $((
            return self.dollar(pos, quoted=quoted, in_braces=in_braces)
        if match is None or (quoted and not in_braces and group in (6, 7)):
            self.pos = pos + 1
            return Literal("$")
        if group == 1:
            self.pos = match.end()
            name = match.group(1)
            if self.text.startswith("\\\n", self.pos) and (name[0].isalpha() or name[0] == "_"):
                self.join_lines(self.pos)
                return self.dollar(pos, quoted=quoted, in_braces=in_braces)
            param = self._params.get(name)
            if param is None:
                param = self._params[name] = Param(name)
            return param
        if group == 2:
            self.pos = match.end()
            return Param(match.group(2), braced=True)
        if group == 3:
            return self.brace_param(pos, quoted=quoted)
        if group == 4:
            return self._arith_or_command(pos)
        if group == 5:
            return self._command_sub(pos)
        if group == 6:
            return self._ansi(pos)
        if group == 7:
            return LocaleQuoted(self._double(pos + 1).parts)
        self.enter()
        self.pos = pos + 2
        parts = self.read_context(SQUARE, "]", pos)
        self.pos += 1
        self.depth -= 1
        return ArithSub(self.arith(parts), bracket=True)

    def _command_sub(self, pos: int) -> CommandSub:
        self.enter()
        line = self.line_at(pos)
        self.pos = pos + 2
        body = self.command_body()
        self.depth -= 1
        return CommandSub(body, line, self._kept_source(pos))

    def _kept_source(self, pos: int) -> str | None:
        """Source of the substitution at `pos`, just read, if it began with `((` or is in a here-document."""
        if self.keeps_source or self.text.startswith("(", pos + 2):
            return self.text[pos + 2 : self.pos - 1]
        return None

    def process_sub(self, pos: int) -> ProcSub:
        self.enter()
        line = self.line_at(pos)
        direction = self.text[pos]
        self.pos = pos + 2
        body = self.command_body()
        self.depth -= 1
        return ProcSub(direction, body, line, self._kept_source(pos))

    def _arith_or_command(self, pos: int) -> WordPart:
        parts = self.arith_between(pos + 1)
        if parts is not None:
            return ArithSub(self.arith(parts))
        try:
            return self._command_sub(pos)
        except ShellSyntaxError as error:
            if error.incomplete:
                raise self.unexpected_eof(")", self.line_at(pos)) from None
            raise

    def arith_between(self, pos: int) -> tuple[WordPart, ...] | None:
        """Read the `((` ... `))` at `pos`; None if it doesn't end so and thus is two open parentheses.

        A failure is remembered, as trying both ways at each level would take time exponential in the depth.
        """
        if pos in self._not_arith:
            return None
        self.enter()
        self.pos = pos + 2
        parts = self.read_context(PAREN, ")", pos)
        self.depth -= 1
        if self.text.startswith("))", self.pos):
            self.pos += 2
            return parts
        self._not_arith.add(pos)
        return None

    def arith(self, parts: tuple[WordPart, ...]) -> Arith:
        return make_arith(parts)
