"""Compound commands: loops, conditions, case, groups, functions, coprocesses."""

from __future__ import annotations

from collections.abc import Callable

from belljar.shell.nodes import (
    Arith,
    ArithCommand,
    ArithFor,
    Case,
    CaseClause,
    Command,
    Coproc,
    DoubleQuoted,
    For,
    Function,
    Group,
    If,
    IfClause,
    Literal,
    Param,
    Select,
    Subshell,
    While,
    Word,
    WordPart,
)
from belljar.shell.parse.conditional import ConditionalReader
from belljar.shell.parse.errors import ShellSyntaxError
from belljar.shell.parse.tokens import END, OTHER, WORD

POSITIONAL = Word((DoubleQuoted((Param("@"),)),))
CASE_ENDS = frozenset({";;", ";&", ";;&"})

#: Reserved words that end or divide a compound command and so can't begin one.
CLOSERS = frozenset({"then", "else", "elif", "fi", "do", "done", "esac", "}", "in", "!"})


class CompoundReader(ConditionalReader):
    """Adds the compound commands; what a list of commands is comes from the parser built on it."""

    def compound_list(self) -> Command:
        """One or more commands up to a reserved word or token that can't begin another."""
        raise NotImplementedError

    # --- choosing ---

    def command(self) -> Command:
        """The command that begins with the current token."""
        if self.options.alias is not None:
            self.expand_command_aliases()
        kind = self.kind
        if kind == WORD:
            parse = COMPOUND.get(self.value)
            if parse is not None:
                return self._nested(parse)
            if self.value in CLOSERS:
                raise self.unexpected()
        elif kind == "(":
            return self._nested(CompoundReader._parenthesis)
        elif kind == "\n" or kind in CASE_ENDS or kind in _CANT_BEGIN:
            raise self.unexpected()
        start = self.start
        line = self.line_at(start)
        command = self.simple_command()
        if self.kind == "(":
            return self._function_or_error(start, line, command.assignments == () == command.redirects, command.words)
        return command

    def _nested(self, parse: Callable[[CompoundReader], Command]) -> Command:
        self.enter()
        command = parse(self)
        self.depth -= 1
        return command

    def _begins_compound(self) -> bool:
        return self.kind == "(" or (self.kind == WORD and self.value in COMPOUND and self.value not in _NOT_A_BODY)

    def _is(self, word: str) -> bool:
        return self.kind == WORD and self.value == word

    def _expect(self, word: str) -> None:
        if self.kind != WORD or self.value != word:
            raise self.unexpected()
        self.advance()

    # --- groups ---

    def _parenthesis(self) -> Command:
        """( list ) or (( expression ))."""
        line = self.line_at(self.start)
        if self.text.startswith("(", self.pos):
            after = self.pos
            parts = self.arith_between(self.start)
            if parts is not None:
                line = self.line_at(self.pos)
                self.advance()
                return ArithCommand(self.arith(parts), self.redirections(), line)
            self.pos = after
        self.advance()
        body = self.compound_list()
        if self.kind != ")":
            raise self.unexpected()
        self.advance()
        return Subshell(body, self.redirections(), line)

    def _group(self) -> Group:
        line = self.line_at(self.start)
        self.advance()
        body = self.compound_list()
        self._expect("}")
        return Group(body, self.redirections(), line)

    # --- conditions and loops ---

    def _if(self) -> If:
        line = self.line_at(self.start)
        clauses: list[IfClause] = []
        while True:
            self.advance()
            condition = self.compound_list()
            self._expect("then")
            clauses.append(IfClause(condition, self.compound_list()))
            if not self._is("elif"):
                break
        otherwise = None
        if self._is("else"):
            self.advance()
            otherwise = self.compound_list()
        self._expect("fi")
        if isinstance(otherwise, If) and not otherwise.redirects:
            # `else if ... fi` is `elif`, and bash prints the one for the other.
            clauses += otherwise.clauses
            otherwise = otherwise.otherwise
        return If(tuple(clauses), otherwise, self.redirections(), line)

    def _while(self) -> While:
        line = self.line_at(self.start)
        until = self.value == "until"
        self.advance()
        condition = self.compound_list()
        self._expect("do")
        body = self.compound_list()
        self._expect("done")
        return While(condition, body, until, self.redirections(), line)

    def _for(self) -> For | ArithFor:
        line = self.line_at(self.start)
        self.advance()
        if self.kind == "(" and self.text.startswith("(", self.pos):
            return self._arith_for(line)
        name, words, body = self._over_words()
        return For(name, words, body, self.redirections(), line)

    def _select(self) -> Select:
        line = self.line_at(self.start)
        self.advance()
        name, words, body = self._over_words()
        return Select(name, words, body, self.redirections(), line)

    def _over_words(self) -> tuple[str, tuple[Word, ...], Command]:
        self.expand_next_word()
        name = self.take_name()
        words: tuple[Word, ...] = (POSITIONAL,)
        self.expand_next_word()
        if self.kind == ";":
            self.advance()
        else:
            self.skip_newlines()
            if self._is("in"):
                self.advance()
                listed = []
                self.expand_next_word()
                while self.kind in (WORD, OTHER):
                    listed.append(self.take_word())
                    self.expand_next_word()
                words = tuple(listed)
                if self.kind not in (";", "\n", END):
                    raise self.unexpected()
                if self.kind == ";":
                    self.advance()
        self.skip_newlines()
        return name, words, self._loop_body()

    def _loop_body(self) -> Command:
        if self.options.alias is not None:
            self.expand_command_aliases()
        closing = "}" if self._is("{") else "done"
        if closing == "done":
            self._expect("do")
        else:
            self.advance()
        body = self.compound_list()
        self._expect(closing)
        return body

    def _arith_for(self, line: int) -> ArithFor:
        start = self.start
        parts = self.arith_between(start)
        if parts is None:
            self.pos = start + 1
            raise self.unexpected()
        source = self.text[start : self.pos]
        expressions = self._split(parts)
        if len(expressions) != 3:
            message = "arithmetic expression required" if len(expressions) < 3 else "`;' unexpected"
            raise ShellSyntaxError(line, f"syntax error: {message}", f"syntax error: `{source}'")
        init, test, step = (self._for_expression(expression) for expression in expressions)
        self.advance()
        if self.kind == ";":
            self.advance()
        self.skip_newlines()
        return ArithFor(init, test, step, self._loop_body(), self.redirections(), line)

    def _split(self, parts: tuple[WordPart, ...]) -> list[tuple[WordPart, ...]]:
        """The parts between the semicolons."""
        expressions: list[list[WordPart]] = [[]]
        for part in parts:
            if not isinstance(part, Literal):
                expressions[-1].append(part)
                continue
            for place, piece in enumerate(part.text.split(";")):
                if place:
                    expressions.append([])
                if piece:
                    expressions[-1].append(Literal(piece))
        return [tuple(expression) for expression in expressions]

    def _for_expression(self, parts: tuple[WordPart, ...]) -> Arith:
        if parts and isinstance(parts[0], Literal):
            first = parts[0].text.lstrip(" \t")
            parts = (Literal(first), *parts[1:]) if first else parts[1:]
        return self.arith(parts or (Literal("1"),))

    # --- case ---

    def _case(self) -> Case:
        self.advance()
        self.expand_next_word()
        line = self.line_at(self.start)
        subject = self.take_word()
        line = max(line, self.ended)
        self.expand_next_word()
        self.skip_newlines()
        self._expect("in")
        clauses: list[CaseClause] = []
        self.skip_newlines()
        while not self._is("esac"):
            clauses.append(clause := self._case_clause())
            self.skip_newlines()
            if not clause.terminator:
                clauses[-1] = CaseClause(clause.patterns, clause.body)
                break
        self._expect("esac")
        return Case(subject, tuple(clauses), self.redirections(), line)

    def _case_clause(self) -> CaseClause:
        """One clause; its terminator is "" if it has none, as only the last one may."""
        if self.kind == "(":
            self.advance()
        patterns = [self.take_word()]
        while self.kind == "|":
            self.advance()
            patterns.append(self.take_word())
        if self.kind != ")":
            raise self.unexpected()
        self.advance()
        self.skip_newlines()
        body = None
        if self.kind not in CASE_ENDS and not self._is("esac"):
            body = self.compound_list()
        terminator = ""
        if self.kind in CASE_ENDS:
            terminator = self.kind
            self.advance()
        return CaseClause(tuple(patterns), body, terminator)

    # --- functions and coprocesses ---

    def _function_or_error(self, start: int, line: int, bare: bool, words: tuple[object, ...]) -> Function:
        """name ( ) body; the current token is the parenthesis after the first word of a simple command."""
        if not bare or len(words) != 1:
            raise self.unexpected()
        name = self.text[start : self.start].replace("\\\n", "").rstrip(" \t")
        self.advance()
        if self.kind != ")":
            raise self.unexpected()
        self.advance()
        return self._function_body(name, line)

    def _function(self) -> Function:
        line = self.line_at(self.start)
        self.advance()
        name = self.take_name()
        if self.kind == "(" and not self.text.startswith("(", self.pos):
            after, start = self.pos, self.start
            self.advance()
            if self.kind == ")":
                self.advance()
            else:  # function name (subshell)
                self.kind = self.value = "("
                self.pos, self.start = after, start
        return self._function_body(name, line)

    def _function_body(self, name: str, line: int) -> Function:
        self.skip_newlines()
        if not self._begins_compound():
            raise self.unexpected()
        return Function(name, self.command(), line)

    def _coproc(self) -> Coproc:
        line = self.line_at(self.start)
        self.advance()
        if self._begins_compound():
            return Coproc("COPROC", self.command(), line)
        if self.kind not in (WORD, OTHER):
            if self.kind in _CANT_BEGIN or self.kind == "\n":
                raise self.unexpected()
            return Coproc("COPROC", self.simple_command(), line)
        kind, value, start, pos = self.kind, self.value, self.start, self.pos
        name = self.take_name()
        if self._begins_compound():
            return Coproc(name, self.command(), line)
        self.kind, self.value, self.start, self.pos = kind, value, start, pos
        return Coproc("COPROC", self.simple_command(), line)


COMPOUND: dict[str, Callable[[CompoundReader], Command]] = {
    "if": CompoundReader._if,
    "while": CompoundReader._while,
    "until": CompoundReader._while,
    "for": CompoundReader._for,
    "select": CompoundReader._select,
    "case": CompoundReader._case,
    "function": CompoundReader._function,
    "{": CompoundReader._group,
    "[[": CompoundReader.conditional,
    "coproc": CompoundReader._coproc,
}
_NOT_A_BODY = frozenset({"function", "coproc"})
_CANT_BEGIN = frozenset({";", "&", "&&", "||", "|", "|&", ")", "end"})
