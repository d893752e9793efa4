"""The parser: one complete command at a time, as bash reads its input."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec.structs import replace

from belljar.shell.nodes import (
    AndOr,
    AndOrItem,
    ArithNode,
    Command,
    CommandList,
    Coproc,
    FileRedirect,
    Function,
    Index,
    ListItem,
    Literal,
    Pipeline,
    Redirect,
    Word,
)
from belljar.shell.parse.arith import ArithParser
from belljar.shell.parse.compound import CASE_ENDS, CLOSERS, CompoundReader
from belljar.shell.parse.errors import ShellSyntaxError, Warned
from belljar.shell.parse.source import ParseOptions
from belljar.shell.parse.static_arith import ACTIVE, make_subscript
from belljar.shell.parse.tokens import END, WORD
from belljar.shell.parse.words import HEREDOC, SUBSCRIPT

PLAIN_SUBSCRIPT = re.compile(r"\[([^\[\]$`\"'\\]*)\]").match
OPTION = re.compile(r"[ \t]*-").match
LIST_ENDS = CASE_ENDS | {")", END}
_TERMINATORS = frozenset({";", "\n", END})


class Parser(CompoundReader):
    """Parses a script: `next_command()` until it gives None.

    Aliases and options are looked up as each command is read, so what one command defines holds for the next line.
    """

    def next_command(self) -> Command | None:
        """The commands up to the end of the next line (more lines if one is unfinished); None at the end of input.

        Raises ShellSyntaxError; the rest of the offending line is then skipped, as an interactive shell does.
        """
        self.alias_text = 0
        self.unaliased.clear()
        self.drop_consumed()
        try:
            return self._read_line()
        except ShellSyntaxError:
            self._recover()
            raise
        except RecursionError:
            error = self.too_deep()
            self._recover()
            raise error from None

    def _is_time_utility(self) -> bool:
        """In POSIX mode `time` with an option is no reserved word."""
        return self.options.posix and OPTION(self.text, self.pos) is not None

    def _recover(self) -> None:
        self.depth = self.inside = 0
        self.pending.clear()
        self.aliases.clear()
        end = self.text.find("\n", self.pos)
        self.pos = end + 1 if end >= 0 else len(self.text)

    def _read_line(self) -> Command | None:
        self.advance()
        self.skip_newlines()
        self.begin_command()
        if self.kind == END:
            return None
        line = self.line_at(self.start)
        items: list[ListItem] = []
        while True:
            command = self._and_or()
            kind = self.kind
            items.append(ListItem(command, kind == "&"))
            if kind in ("&", ";"):
                self.advance()
                kind = self.kind
                if kind not in ("\n", END):
                    continue
            if kind not in ("\n", END):
                raise self.unexpected()
            if self.pending:
                self.read_pending()
            return _as_list(items, line)

    # --- lists ---

    def compound_list(self) -> Command:
        self.skip_newlines()
        self.begin_command()
        line = self.line_at(self.start)
        items: list[ListItem] = []
        while True:
            command = self._and_or()
            kind = self.kind
            items.append(ListItem(command, kind == "&", kind == "\n"))
            if kind in ("&", ";"):
                self.advance()
            elif kind != "\n":
                self.passed = self.start
                break
            self.skip_newlines()
            self.begin_command()
            if self.kind in LIST_ENDS or (self.kind == WORD and self.value in CLOSERS and self.value != "!"):
                break
        return _as_list(items, line)

    def _and_or(self) -> Command:
        first = self._pipeline()
        if self.kind not in ("&&", "||"):
            return first
        rest = []
        while self.kind in ("&&", "||"):
            op = self.kind
            self.advance()
            self.skip_newlines()
            self.begin_command()
            rest.append(AndOrItem(op, self._pipeline()))
        return AndOr(first, tuple(rest), _line_of(first))

    def _pipeline(self) -> Command:
        start = self.start
        negated = timed = posix_time = False
        if self.kind == WORD:
            if self.options.alias is not None:
                self.expand_command_aliases()
            while self.kind == WORD and (self.value == "!" or (self.value == "time" and not self._is_time_utility())):
                if self.value == "!":
                    negated = not negated
                    self.advance()
                else:
                    timed = True
                    posix_time = self._time_options() or posix_time
                if self.kind in _TERMINATORS:
                    return Pipeline((), negated, timed, posix_time, self.line_at(start))
        command = self.command()
        if self.kind not in ("|", "|&") and not (negated or timed):
            return command
        line = _line_of(command)
        commands = [command]
        while self.kind in ("|", "|&"):
            if self.kind == "|&":
                commands[-1] = _with_stderr(commands[-1])
            self.advance()
            self.skip_newlines()
            self.begin_command()
            commands.append(self.command())
        if not negated and not timed and len(commands) == 1:
            return command
        return Pipeline(tuple(commands), negated, timed, posix_time, line)

    def _time_options(self) -> bool:
        """Pass `time` and its -p and --; True for -p."""
        posix = False
        self.advance()
        if self.kind == WORD and self.value == "-p":
            posix = True
            self.advance()
        if self.kind == WORD and self.value == "--":
            self.advance()
        return posix

    # --- commands inside words ---

    def command_body(self) -> Command | None:
        outer = self.kind, self.value, self.start, self.pending
        self.pending = []
        self.inside += 1
        line = self.line_at(self.pos)
        self.advance()
        self.skip_newlines()
        body = None
        if self.kind != ")":
            body = self.compound_list()
        if self.kind != ")":
            raise self.unexpected()
        self.inside -= 1
        unread = self.pending
        self.kind, self.value, self.start, self.pending = outer
        if unread:
            count = len(unread)
            plural = "s" if count > 1 else ""
            self.warnings.append(Warned(line, f"command substitution: {count} unterminated here-document{plural}"))
            self.pending = self.pending + unread
        return body


def _as_list(items: list[ListItem], line: int) -> Command:
    if len(items) == 1 and not items[0].background:
        return items[0].command
    return CommandList(tuple(items), line)


def _line_of(command: Command) -> int:
    return command.line


def _with_stderr(command: Command) -> Command:
    """`command |&`: as if it ended in 2>&1."""
    if isinstance(command, Function):
        return replace(command, body=_with_stderr(command.body))
    if isinstance(command, Coproc):
        return replace(command, command=_with_stderr(command.command))
    if isinstance(command, Pipeline | AndOr | CommandList):
        return command  # never the element of a pipeline
    redirect: Redirect = FileRedirect(">&", 2, Word((Literal("1"),)), command.line)
    return replace(command, redirects=(*command.redirects, redirect))


def parse_script(text: str, options: ParseOptions | None = None) -> Iterator[Command]:
    """All commands of `text`, each parsed when asked for."""
    parser = Parser(text, options)
    while (command := parser.next_command()) is not None:
        yield command


def parse_here_text(text: str, options: ParseOptions | None = None) -> Word:
    """`text` as the body of a here-document: for prompts (PS1, PS4) and ${x@P}, expanded as if in double quotes."""
    return Word(Parser(text, options).read_context(HEREDOC, "", 0))


def parse_subscript(text: str, options: ParseOptions | None = None) -> Index:
    """[text] given as a string at run time, as in `unset 'a[1]'`, `read a[1]` or the value of a nameref."""
    if not ACTIVE.search(text):
        return make_subscript((Literal(text),) if text else ())
    reader = Parser(text, options)
    return make_subscript(reader.read_context(replace(SUBSCRIPT, enders="", nest=""), "", 0))


def parse_arith(text: str, options: ParseOptions | None = None) -> ArithNode:
    """The tree of an expression whose text has been expanded; raises ArithSyntaxError."""
    return ArithParser(text, lambda text, start, _: read_subscript(text, start, options)).parse()


def read_subscript(text: str, start: int, options: ParseOptions | None = None) -> tuple[Index, int]:
    """The subscript whose `[` is at `start` in text known at run time, and where its `]` is. ShellSyntaxError."""
    if (match := PLAIN_SUBSCRIPT(text, start)) is not None:
        inner = match.group(1)
        return make_subscript((Literal(inner),) if inner else ()), match.end() - 1
    reader = Parser(text[start + 1 :], options)
    parts = reader.read_context(SUBSCRIPT, "]", 0)
    return make_subscript(parts), start + 1 + reader.pos
