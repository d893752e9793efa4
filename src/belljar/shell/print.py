"""The syntax tree back to source text, in the very layout of bash's `declare -f` and `type`."""

from __future__ import annotations

import re

from belljar.shell.nodes import (
    AndOr,
    ArithCommand,
    ArithFor,
    Case,
    Command,
    CommandList,
    CondAnd,
    CondBinary,
    CondGroup,
    Conditional,
    CondNode,
    CondNot,
    CondOr,
    CondUnary,
    Coproc,
    FdVariable,
    For,
    Function,
    Group,
    HereDoc,
    If,
    IfClause,
    ListItem,
    Pipeline,
    Redirect,
    Select,
    SimpleCommand,
    Subshell,
    While,
    Word,
)
from belljar.shell.print_words import WordPrinter, single_quote

STEP = 4
INPUT = frozenset({"<", "<<<", "<&"})
RESERVED = frozenset(
    "if then else elif fi case esac for select while until do done in function time { } ! [[ ]] coproc".split()
)


class Printer:
    """One text under construction. The state is bash's own, as its layout follows from it:

    `_skip` counts commands that begin in the middle of a line; a here-document inside a list waits in `_deferred`
    until the operator after its command is printed, and `_after_heredoc` says that its last line is the current end.
    """

    def __init__(self, *, in_function: bool = False, in_substitution: bool = False) -> None:
        self._out: list[str] = []
        self._indent = 0
        self._skip = 0
        self._connections = 0
        self._functions = 1 if in_function else 0
        self._in_substitution = in_substitution
        self._deferred: list[HereDoc] = []
        self._after_heredoc = False
        self._words = WordPrinter(print_substitution)

    def text(self) -> str:
        return "".join(self._out)

    def _put(self, text: str) -> None:
        if text:
            self._out.append(text)

    def _newline(self, text: str) -> None:
        self._put("\n" + " " * self._indent + text)

    def _semicolon(self) -> None:
        if not (self._out and self._out[-1][-1] in "&\n"):
            self._put(";")

    # --- here-documents ---

    def _flush(self, operator: str) -> None:
        """Print `operator`, then the bodies of the here-documents announced before it."""
        shown = operator if operator != ";" else ""
        self._put(shown)
        if self._deferred:
            self._bodies(self._deferred)
            if shown:
                self._put(" ")
            self._deferred = []

    def _flush_any(self) -> None:
        if self._deferred:
            self._flush("")

    def _bodies(self, docs: list[HereDoc]) -> None:
        self._put("\n")
        for doc in docs:
            self._put(f"{doc.text}{doc.delimiter}\n")
        self._after_heredoc = True

    def _redirects(self, redirects: tuple[Redirect, ...]) -> None:
        self._after_heredoc = False
        self._put(" ".join([self._redirect(redirect) for redirect in redirects]))
        docs = [redirect for redirect in redirects if isinstance(redirect, HereDoc)]
        if docs and self._connections:
            self._deferred = docs
        elif docs:
            self._bodies(docs)

    def _redirect(self, redirect: Redirect) -> str:
        if isinstance(redirect.fd, FdVariable):
            fd, number = f"{{{redirect.fd.name}{self._words.index(redirect.fd.index)}}}", -1
        else:
            fd, number = str(redirect.fd), redirect.fd
        if isinstance(redirect, HereDoc):
            delimiter = single_quote(redirect.delimiter) if redirect.quoted else redirect.delimiter
            return f"{'' if number == 0 else fd}<<{'-' if redirect.strip_tabs else ''}{delimiter}"
        op, target = redirect.op, self._words.word(redirect.target)
        if op in ("&>", "&>>"):
            return f"{op} {target}"
        default = 0 if op in INPUT else 1
        if op in ("<&", ">&"):
            plain = re.fullmatch(r"[0-9]+|.*-", target, re.DOTALL) is not None
            return f"{'' if number == default and not plain else fd}{op}{target}"
        return f"{'' if number == default else fd}{op} {target}"

    # --- commands ---

    def command(self, command: Command) -> None:
        """The order of the cases and of what they print is bash's."""
        if isinstance(command, CommandList):
            self._list(command)
            return
        if isinstance(command, AndOr):
            self._and_or(command)
            return
        if isinstance(command, Pipeline):
            self._pipeline(command)
            return
        self._begin()
        match command:
            case SimpleCommand():
                self._simple(command)
                return
            case Function():
                self._function(command)
                return
            case Coproc(name, inner):
                self._put(f"coproc {name} ")
                self._skip += 1
                self.command(inner)
                return
            case Group(body):
                self._group(body)
            case Subshell(body):
                self._put("( ")
                self._skip += 1
                self.command(body)
                self._flush_any()
                self._put(" )")
            case If(clauses, otherwise):
                self._if(clauses, otherwise)
            case While(condition, body, until):
                self._while("until" if until else "while", condition, body)
            case For(name, words, body):
                self._put(f"for {name} in {' '.join([self._words.word(word) for word in words])};")
                self._loop(body)
            case Select(name, words, body):
                self._put(f"select {name} in {' '.join([self._words.word(word) for word in words])};")
                self._loop(body)
            case ArithFor(init, test, step, body):
                expressions = "; ".join([self._words.word(arith.source) for arith in (init, test, step)])
                self._put(f"for (({expressions}))")
                self._loop(body)
            case Case():
                self._case(command)
            case ArithCommand(arith):
                self._put(f"(({self._words.word(arith.source)}))")
            case Conditional(expr):
                self._put(f"[[ {self._cond(expr)} ]]")
        if command.redirects:
            self._put(" ")
            self._redirects(command.redirects)

    def _begin(self) -> None:
        if self._skip:
            self._skip -= 1
        else:
            self._put(" " * self._indent)

    def _simple(self, command: SimpleCommand) -> None:
        words = [self._words.assignment(assignment) for assignment in command.assignments]
        words += [self._words.argument(argument) for argument in command.words]
        self._put(" ".join(words))
        if command.redirects:
            if words:
                self._put(" ")
            self._redirects(command.redirects)

    def _if(self, clauses: tuple[IfClause, ...], otherwise: Command | None) -> None:
        """Each elif is an if in the else of the one before."""
        for place, clause in enumerate(clauses):
            if place:
                self._semicolon()
                self._newline("else\n")
                self._indent += STEP
                self._put(" " * self._indent)
            self._put("if ")
            self._skip += 1
            self.command(clause.condition)
            self._semicolon()
            self._put(" then\n")
            self._indented(clause.body)
        if otherwise is not None:
            self._semicolon()
            self._newline("else\n")
            self._indented(otherwise)
        for place in range(len(clauses)):
            if place:
                self._flush_any()
                self._indent -= STEP
            self._semicolon()
            self._newline("fi")

    def _indented(self, body: Command) -> None:
        self._indent += STEP
        self.command(body)
        self._flush_any()
        self._indent -= STEP

    def _while(self, word: str, condition: Command, body: Command) -> None:
        self._put(word + " ")
        self._skip += 1
        self.command(condition)
        self._flush_any()
        self._semicolon()
        self._put(" do\n")
        self._indented(body)
        self._semicolon()
        self._newline("done")

    def _loop(self, body: Command) -> None:
        self._newline("do\n")
        self._indented(body)
        self._semicolon()
        self._newline("done")

    def _group(self, body: Command) -> None:
        self._put("{ ")
        if self._functions:
            self._put("\n")
            self._indented(body)
            self._newline("")
        else:
            self._skip += 1
            self.command(body)
            self._flush_any()
            self._semicolon()
            self._put(" ")
        self._put("}")

    def _case(self, command: Case) -> None:
        self._put(f"case {self._words.word(command.subject)} in ")
        self._indent += STEP
        for clause in command.clauses:
            self._newline(" | ".join([self._words.word(pattern) for pattern in clause.patterns]) + ")\n")
            self._indent += STEP
            if clause.body is not None:
                self.command(clause.body)
            self._indent -= STEP
            self._flush_any()
            self._newline(clause.terminator)
        self._indent -= STEP
        self._newline("esac")

    def _function(self, function: Function) -> None:
        self._put(f"function {function.name} () \n")
        self._put(" " * self._indent + "{ \n")
        self._functions += 1
        redirects = self._function_body(function.body)
        self._functions -= 1
        self._newline("} " if redirects else "}")
        self._after_heredoc = False
        if redirects:
            self._redirects(redirects)

    def _function_body(self, body: Command) -> tuple[Redirect, ...]:
        """Print the commands between the braces; returns the redirections that follow them."""
        redirects: tuple[Redirect, ...] = ()
        if isinstance(body, Group):
            redirects, body = body.redirects, body.body
        self._indented(body)
        return redirects

    def definition(self, function: Function) -> None:
        """A function as `declare -f` shows it."""
        self._put(f"{'function ' if function.name in RESERVED else ''}{function.name} () \n{{ \n")
        self._functions += 1
        redirects = self._function_body(function.body)
        self._functions -= 1
        self._newline("} " if redirects else "}")
        if redirects:
            self._redirects(redirects)

    # --- connections ---

    def _pipeline(self, pipeline: Pipeline) -> None:
        prefix = ("time " if pipeline.timed else "") + ("-p " if pipeline.posix_time else "")
        prefix += "! " if pipeline.negated else ""
        if prefix:
            self._begin()
            self._put(prefix)
            self._skip += 1
        if not pipeline.commands:
            self._begin()
            return
        connected = len(pipeline.commands) > 1
        if not prefix and connected:
            self._begin()
            self._skip += 1
        self._connections += connected
        for place, command in enumerate(pipeline.commands):
            if place:
                self._flush(" |")
                self._put(" ")
                self._skip += 1
            self.command(command)
        if connected:
            self._flush_any()
        self._connections -= connected

    def _and_or(self, command: AndOr) -> None:
        self._begin()
        self._skip += 1
        self._connections += 1
        self.command(command.first)
        for item in command.rest:
            self._flush(f" {item.op} ")
            self._skip += 1
            self.command(item.command)
            self._flush_any()
        self._connections -= 1

    def _list(self, command: CommandList) -> None:
        self._begin()
        self._skip += 1
        self._connections += 1
        last = len(command.items) - 1
        for place, item in enumerate(command.items):
            self.command(item.command)
            # Bash's tree leans left, but `a; b &` holds the pair (b &).
            if place and not (item.background and self._pairs(command.items[place - 1])):
                self._flush_any()
            if item.background:
                self._flush(" &")
                if place < last:
                    self._put(" ")
                    self._skip += 1
            elif place < last:
                self._separate(newline=item.newline)
        self._flush_any()
        self._connections -= 1

    def _pairs(self, before: ListItem) -> bool:
        """Whether a background command after `before` is a pair of its own in bash's tree."""
        return not before.background and not (before.newline and self._in_substitution)

    def _separate(self, *, newline: bool) -> None:
        newline = newline and self._in_substitution
        if self._deferred:
            self._flush("" if self._functions else ";")
        elif self._after_heredoc:
            self._after_heredoc = False
        elif self._functions or not newline:
            self._put("\n" if newline else ";")
        if self._functions:
            self._put("\n")
        else:
            self._put("\n" if newline else " ")
            self._skip += 1

    # --- [[ ]] ---

    def _cond(self, node: CondNode) -> str:
        match node:
            case CondUnary(op, word):
                return f"{op} {self._words.word(word)}"
            case CondBinary(op, left, right):
                return f"{self._words.word(left)} {op} {self._words.word(right)}"
            case CondNot(operand):
                return f"! {self._cond(operand)}"
            case CondGroup(operand):
                return f"( {self._cond(operand)} )"
            case CondAnd(operands):
                return " && ".join([self._cond(operand) for operand in operands])
            case CondOr(operands):
                return " || ".join([self._cond(operand) for operand in operands])


def print_substitution(body: Command) -> str:
    """The commands of $( ) as bash stores them."""
    printer = Printer(in_substitution=True)
    printer.command(body)
    return printer.text()


def print_command(command: Command) -> str:
    """A command on its own, as in BASH_COMMAND and `jobs`."""
    printer = Printer()
    printer.command(command)
    return printer.text()


def print_function(function: Function) -> str:
    """A function as `declare -f` and `type` show it, without the final newline."""
    printer = Printer()
    printer.definition(function)
    return printer.text()


def print_word(word: Word) -> str:
    """A word as it stands in the source."""
    return WordPrinter(print_substitution).word(word)
