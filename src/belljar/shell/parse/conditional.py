"""[[ ... ]]: its operators and operands."""

from __future__ import annotations

from belljar.shell.nodes import CondAnd, CondBinary, CondGroup, Conditional, CondNode, CondNot, CondOr, CondUnary
from belljar.shell.parse.errors import ShellSyntaxError
from belljar.shell.parse.simple import SimpleReader
from belljar.shell.parse.tokens import END, OTHER, WORD

UNARY = frozenset(f"-{letter}" for letter in "abcdefghknoprstuvwxzGLNORS")
PATTERN = frozenset({"=", "==", "!="})
BINARY = PATTERN | {"=~", "-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"}


class ConditionalReader(SimpleReader):
    """Adds [[ ]]."""

    def conditional(self) -> Conditional:
        """The current token is `[[`."""
        opened = self.line_at(self.start)
        self.advance()
        expr = self._or()
        line = self.ended
        self.skip_newlines()
        if isinstance(expr, CondAnd | CondOr):
            line = self.line_at(self.start)
        if not self._is_word("]]"):
            if self.kind == END:
                raise ShellSyntaxError(opened, "unexpected EOF while looking for `]]'", incomplete=True)
            if self.kind in (WORD, OTHER):
                raise self._error("syntax error in conditional expression")
            raise self._error(f"syntax error in conditional expression: unexpected token `{self.token_text()}'")
        self.advance()
        return Conditional(expr, self.redirections(), line)

    def _error(self, message: str) -> ShellSyntaxError:
        error = ShellSyntaxError(self.line_at(self.start), message, incomplete=self.kind == END)
        error.ends = True
        return error

    def _is_word(self, text: str) -> bool:
        return self.kind == WORD and self.value == text

    def _or(self) -> CondNode:
        operands = [self._and()]
        while self.kind == "||":
            self.advance()
            operands.append(self._and())
        return operands[0] if len(operands) == 1 else CondOr(tuple(operands))

    def _and(self) -> CondNode:
        operands = [self._term()]
        while self.kind == "&&":
            self.advance()
            operands.append(self._term())
        return operands[0] if len(operands) == 1 else CondAnd(tuple(operands))

    def _term(self) -> CondNode:
        self.skip_newlines()
        if self.kind == "(":
            self.enter()
            self.advance()
            inner = self._or()
            self.skip_newlines()
            if self.kind != ")":
                raise self._error(f"unexpected token `{self.token_text()}', expected `)'")
            self.depth -= 1
            self.advance()
            node: CondNode = CondGroup(inner)
        elif self._is_word("!"):
            self.enter()
            self.advance()
            inner = self._term()
            node = inner.operand if isinstance(inner, CondNot) else CondNot(inner)  # `! !` cancels out, as in bash
            self.depth -= 1
        else:
            node = self._test()
        self.skip_newlines()
        return node

    def _test(self) -> CondNode:
        if self.kind not in (WORD, OTHER) or self._is_word("]]"):
            raise self._error(f"unexpected token `{self.token_text()}' in conditional command")
        if self.kind == WORD and self.value in UNARY:
            op = self.value
            self.advance()
            if self.kind not in (WORD, OTHER) or self._is_word("]]"):
                raise self._error(f"unexpected argument `{self.token_text()}' to conditional unary operator")
            return CondUnary(op, self.take_word())
        left = self.take_word(extglob=True)
        op = self._binary_operator()
        if op == "":
            if self.kind in ("&&", "||", ")") or self._is_word("]]"):
                return CondUnary("-n", left)
            if self.kind in (WORD, OTHER):
                raise self._error("conditional binary operator expected")
            raise self._error(f"unexpected token `{self.token_text()}', conditional binary operator expected")
        self.advance()
        if self.kind not in (WORD, OTHER, "(") or self._is_word("]]") or (self.kind == "(" and op != "=~"):
            raise self._error(f"unexpected argument `{self.token_text()}' to conditional binary operator")
        if op == "=~":
            if self.kind == "(":
                self.kind = OTHER
            return CondBinary(op, left, self.take_word(regex=True))
        return CondBinary(op, left, self.take_word(extglob=True))

    def _binary_operator(self) -> str:
        """The operator that is the current token, or "" if it is none; `pos` is behind it."""
        if self.kind in ("<", ">"):
            return self.kind
        if self.kind == WORD:
            return self.value if self.value in BINARY else ""
        if self.kind == OTHER:  # those with `=` aren't plain words for the lexer
            for op in ("==", "=~", "!=", "="):
                if (
                    self.text.startswith(op, self.start)
                    and self.text[self.start + len(op) : self.start + len(op) + 1] in " \t\n"
                ):
                    self.pos = self.start + len(op)
                    return op
        return ""
