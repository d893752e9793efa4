"""Parses awk program text into the tree of nodes.py: rules, functions and statements."""

from __future__ import annotations

import re
from collections.abc import Callable

from belljar.bin.awk import nodes as n
from belljar.bin.awk.errors import AwkSyntaxError
from belljar.bin.awk.expressions import Expressions
from belljar.bin.awk.lexer import Lexer, Token

Include = Callable[[str], tuple[str, str]]
"""Gives the text and the canonical name of an included source file."""

_ITEM_ENDS = frozenset(("newline", ";", "eof", "function", "BEGIN", "END", "BEGINFILE", "ENDFILE"))


def parse_program(
    sources: list[tuple[str, str]],
    program: str,
    include: Include,
    *,
    strict: bool = False,
    byte_locale: bool = False,
) -> tuple[n.Program, list[str]]:
    """Parse all `sources` (text, name) into one program; also gives the warnings for standard error.

    Raises AwkSyntaxError with the full report when the text is wrong.
    """
    tree = n.Program()
    warnings: list[str] = []
    seen: set[str] = set()
    for text, where in sources:
        parser = Parser(Lexer(text, where, program, strict=strict, byte_locale=byte_locale), tree, include, seen)
        try:
            parser.parse()
        finally:
            warnings += parser.lexer.warnings.values()
        warnings += parser.warnings
    check_calls(tree, sources[0][1] if sources else "cmd. line", program)
    return tree, warnings


def check_calls(tree: n.Program, where: str, program: str) -> None:
    """Every function called by name must be defined."""
    from belljar.bin.awk.walk import walk_program

    for node in walk_program(tree):
        if isinstance(node, n.Call) and node.name not in tree.functions:
            raise AwkSyntaxError(f"{program}: {where}:{node.line}: fatal: function `{node.name}' not defined\n")


class Parser(Expressions):
    """Parses one source text into `tree`."""

    def __init__(self, lexer: Lexer, tree: n.Program, include: Include, seen: set[str]) -> None:
        super().__init__(lexer)
        self.tree = tree
        self.include = include
        self.seen = seen
        self.warnings: list[str] = []
        self.function: str | None = None
        self.section = ""
        self.loops = 0
        self.breakable = 0

    # -- items --------------------------------------------------------------------------------------------------

    def parse(self) -> None:
        self.terminators()
        while self.token.kind != "eof":
            self.item()
            # A new rule may follow a closing brace directly.
            if self.token.kind not in _ITEM_ENDS and self.lexer.text[self.previous_end - 1 : self.previous_end] != "}":
                raise self.wrong()
            self.terminators()

    def item(self) -> None:
        kind = self.token.kind
        if kind == "function":
            self.function_definition()
        elif kind in ("BEGIN", "END", "BEGINFILE", "ENDFILE"):
            self.advance()
            if self.token.kind != "{":
                if self.token.kind in ("newline", "eof", ";"):
                    line = self.token.line + (self.token.kind == "newline")
                    place = f"{self.lexer.program}: {self.lexer.where}:{line}"
                    raise AwkSyntaxError(f"{place}: {kind} blocks must have an action part\n")
                raise self.wrong()
            self.section = kind
            block = self.action()
            self.section = ""
            {
                "BEGIN": self.tree.begin,
                "END": self.tree.end,
                "BEGINFILE": self.tree.begin_file,
                "ENDFILE": self.tree.end_file,
            }[kind].append(block)
        elif kind == "@":
            self.directive()
        else:
            pattern: n.Expr | None = None
            end: n.Expr | None = None
            if kind != "{":
                pattern = self.expression()
                if self.accept(","):
                    self.newlines()
                    end = self.expression()
            body = self.action() if self.token.kind == "{" else None
            self.tree.rules.append(n.Rule(pattern, end, body))

    def directive(self) -> None:
        at = self.advance()
        word = self.token.text.rpartition("::")[2]
        if at.start + 1 == self.token.start and word in ("include", "load", "namespace"):
            self.advance()
            name = self.expect("string").text
            if word == "namespace":
                if not re.fullmatch(r"[A-Za-z_]\w*", name, re.ASCII):
                    raise self.complain(f"namespace name `{name}' must meet identifier naming rules", at.line)
                self.lexer.namespace = name
            elif word == "include":
                try:
                    text, where = self.include(name)
                except AwkSyntaxError as error:
                    raise self.complain(error.report.partition(" fatal: ")[2].rstrip("\n"), at.line) from error
                if where not in self.seen:
                    self.seen.add(where)
                    nested = Parser(
                        Lexer(
                            text,
                            where,
                            self.lexer.program,
                            strict=self.lexer.strict,
                            byte_locale=self.lexer.byte_locale,
                        ),
                        self.tree,
                        self.include,
                        self.seen,
                    )
                    nested.parse()
            elif word == "load":
                reason = "No such file or directory"
                raise self.complain(f"cannot open shared library `{name}' for reading: {reason}", at.line)
            return
        pattern: n.Expr = self.after_at(at)
        body = self.action() if self.token.kind == "{" else None
        self.tree.rules.append(n.Rule(pattern, None, body))

    def function_definition(self) -> None:
        line = self.advance().line
        if self.token.kind not in ("name", "funcname"):
            if self.token.kind == "builtin":
                raise self.lexer.error(
                    self.token.start, f"`{self.token.text}' is a built-in function, it cannot be redefined"
                )
            raise self.wrong()
        name = self.advance().text
        if name in self.tree.functions:
            raise self.complain(f"function name `{name}' previously defined", line)
        self.expect("(")
        parameters: list[str] = []
        self.newlines()
        while self.token.kind != ")":
            if self.token.kind != "name":
                raise self.wrong()
            parameter = self.advance().text
            if parameter == name:
                raise self.complain(f"function `{name}': cannot use function name as parameter name", line)
            if parameter in parameters:
                first = parameters.index(parameter) + 1
                raise self.complain(
                    f"function `{name}': parameter #{len(parameters) + 1}, `{parameter}', "
                    f"duplicates parameter #{first}",
                    line,
                )
            parameters.append(parameter)
            self.newlines()
            if not self.accept(","):
                break
            self.newlines()
        self.expect(")")
        self.newlines()
        function = n.Function(name, parameters, n.Block([]), line)
        self.tree.functions[name] = function
        self.function = name
        function.body = self.action()
        self.function = None

    def action(self) -> n.Block:
        self.expect("{")
        block = self.statements("}")
        self.expect("}")
        return n.Block(block)

    def statements(self, *ends: str) -> list[n.Statement]:
        result: list[n.Statement] = []
        self.terminators()
        while self.token.kind not in ends:
            if self.token.kind == "eof":
                raise self.wrong()
            result.append(self.statement())
            self.terminators()
        return result

    # -- statements ---------------------------------------------------------------------------------------------

    def statement(self) -> n.Statement:
        self.deeper()
        try:
            return self._statement()
        finally:
            self.depth -= 1

    def _statement(self) -> n.Statement:
        kind = self.token.kind
        if kind == "{":
            return self.action()
        method = {
            "if": self.if_statement,
            "while": self.while_statement,
            "do": self.do_statement,
            "for": self.for_statement,
            "switch": self.switch_statement,
        }.get(kind)
        if method is not None:
            return method()
        if kind == ";":
            self.advance()
            return n.Block([])
        statement = self.simple_statement()
        self.end_of_statement()
        return statement

    def end_of_statement(self) -> None:
        if self.token.kind in (";", "newline"):
            self.advance()
        elif self.token.kind not in ("}", "eof"):
            raise self.wrong()

    def body(self) -> n.Statement:
        """The statement a loop or branch governs."""
        self.newlines()
        if self.token.kind == ";":
            self.advance()
            return n.Block([])
        return self.statement()

    def if_statement(self) -> n.Statement:
        self.advance()
        test = self.condition()
        yes = self.body()
        saved = self.mark()
        self.newlines()
        if self.accept("else"):
            return n.If(test, yes, self.body())
        self.back_to(saved)
        return n.If(test, yes, None)

    def condition(self) -> n.Expr:
        self.expect("(")
        test = self.inside(self.expression)
        self.expect(")")
        return test

    def loop_body(self) -> n.Statement:
        self.loops += 1
        self.breakable += 1
        try:
            return self.body()
        finally:
            self.loops -= 1
            self.breakable -= 1

    def while_statement(self) -> n.Statement:
        self.advance()
        test = self.condition()
        if self.token.kind == ";":
            self.advance()
            return n.While(test, n.Block([]))
        return n.While(test, self.loop_body())

    def do_statement(self) -> n.Statement:
        self.advance()
        body = self.loop_body()
        self.terminators()
        self.expect("while")
        test = self.condition()
        self.end_of_statement()
        return n.Do(body, test)

    def for_statement(self) -> n.Statement:
        line = self.advance().line
        self.expect("(")
        found = self.for_in(line)
        if found is not None:
            return found
        start = None if self.token.kind == ";" else self.simple_statement()
        self.expect(";")
        self.newlines()
        test = None if self.token.kind == ";" else self.inside(self.expression)
        self.expect(";")
        self.newlines()
        step = None if self.token.kind == ")" else self.simple_statement()
        self.expect(")")
        if self.token.kind == ";":
            self.advance()
            return n.For(start, test, step, n.Block([]))
        return n.For(start, test, step, self.loop_body())

    def for_in(self, line: int) -> n.Statement | None:
        """`(name in array)`; None, with nothing consumed, when it is the other kind of for."""
        if self.token.kind != "name":
            return None
        saved = self.mark()
        name = self.advance()
        if self.accept("in") and self.token.kind == "name":
            array = self.array_reference()
            if self.accept(")"):
                return n.ForIn(n.Var(name.text, name.line), array, self.loop_body(), line)
        self.back_to(saved)
        return None

    def switch_statement(self) -> n.Statement:
        self.advance()
        subject = self.condition()
        self.newlines()
        self.expect("{")
        self.terminators()
        cases: list[n.Case] = []
        self.breakable += 1
        while self.token.kind != "}":
            value: n.Expr | None = None
            if self.token.kind == "case":
                self.advance()
                value = self.case_value()
            elif not self.accept("default"):
                raise self.wrong()
            self.expect(":")
            cases.append(n.Case(value, self.statements("case", "default", "}")))
        self.breakable -= 1
        self.expect("}")
        return n.Switch(subject, cases)

    def case_value(self) -> n.Expr:
        token = self.token
        if token.kind in ("/", "/="):
            return self.regex_constant()
        if token.kind == "@":
            return self.after_at(self.advance())
        sign = 1.0
        if token.kind in ("-", "+"):
            sign = -1.0 if self.advance().kind == "-" else 1.0
            return n.Num(sign * self.expect("number").value)
        if token.kind == "number":
            return n.Num(self.advance().value)
        if token.kind == "string":
            return n.Str(self.advance().text)
        raise self.wrong()

    def simple_statement(self) -> n.Statement:
        token = self.token
        kind = token.kind
        if kind in ("print", "printf"):
            return self.print_statement()
        if kind == "delete":
            return self.delete_statement()
        if kind == "next":
            self.advance()
            self.check_section("next", token)
            return n.Next(token.line)
        if kind == "nextfile":
            self.advance()
            if self.section in ("BEGIN", "END", "ENDFILE"):
                raise self.complain(f"`nextfile' used in {self.section} action", token.line)
            return n.NextFile(token.line)
        if kind == "exit":
            self.advance()
            return n.Exit(self.optional_expression())
        if kind == "return":
            if self.function is None:
                raise self.wrong("`return' used outside function context")
            self.advance()
            return n.Return(self.optional_expression())
        if kind == "break":
            self.advance()
            if not self.breakable:
                raise self.complain("`break' is not allowed outside a loop or switch", token.line)
            return n.Break()
        if kind == "continue":
            self.advance()
            if not self.loops:
                raise self.complain("`continue' is not allowed outside a loop", token.line)
            return n.Continue()
        return n.ExprStatement(self.expression())

    def check_section(self, word: str, token: Token) -> None:
        if self.section:
            raise self.complain(f"`{word}' used in {self.section} action", token.line)

    def optional_expression(self) -> n.Expr | None:
        if self.token.kind in (";", "newline", "}", "eof"):
            return None
        return self.expression()

    def delete_statement(self) -> n.Statement:
        line = self.advance().line
        grouped = self.accept("(")
        reference = self.array_reference()
        if grouped:
            self.expect(")")
        if isinstance(reference, n.Index):
            return n.Delete(reference.array, reference.subscripts, line)
        return n.Delete(reference, None, line)

    def print_statement(self) -> n.Statement:
        token = self.advance()
        arguments: list[n.Expr] = []
        if self.token.kind not in (";", "newline", "}", "eof", ">", ">>", "|", "|&"):
            arguments = self.print_arguments()
        redirect = ""
        destination: n.Expr | None = None
        if self.token.kind in (">", ">>", "|", "|&"):
            redirect = self.advance().kind
            self.no_gt, saved = True, self.no_gt
            destination = self.concatenation()
            self.no_gt = saved
        formatted = token.kind == "printf"
        return n.Print(arguments, redirect, destination, formatted, token.line)

    def print_arguments(self) -> list[n.Expr]:
        saved, self.no_gt = self.no_gt, True
        try:
            if self.token.kind == "(":
                state = self.mark()
                listed = self.parenthesised_list()
                if listed is not None:
                    return listed
                self.back_to(state)
            return self.expressions()
        finally:
            self.no_gt = saved

    def parenthesised_list(self) -> list[n.Expr] | None:
        """`(a, b)` as all of print's arguments, or None when the parentheses only group a part."""
        self.advance()
        if self.token.kind == ")":
            return None
        arguments = self.inside(self.expressions)
        self.newlines()
        if not self.accept(")"):
            raise self.wrong()
        if self.token.kind in (";", "newline", "}", "eof", ">", ">>", "|", "|&"):
            if self.token.kind in ("|", "|&"):
                state = self.mark()
                self.advance()
                is_getline = self.token.kind == "getline"
                self.back_to(state)
                if is_getline:
                    return None
            return arguments
        return None
