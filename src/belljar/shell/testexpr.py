"""`test` and `[`: POSIX's rules by the number of arguments, then the old grammar with -a, -o and parentheses."""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import eq, ge, gt, le, lt, ne
from typing import Final

from belljar.abi.paths import fsencode
from belljar.kernel.process import Process
from belljar.shell.filetest import FILE_COMPARISONS, FILE_OPERATORS, compare_files, test_file

INTEGER: Final[dict[str, Callable[[int, int], bool]]] = {
    "-eq": eq, "-ne": ne, "-lt": lt, "-le": le, "-gt": gt, "-ge": ge,
}  # fmt: skip
_STRING: Final[dict[str, Callable[[bytes, bytes], bool]]] = {"=": eq, "==": eq, "!=": ne, "<": lt, ">": gt}
BINARY: Final = frozenset([*INTEGER, *_STRING, *FILE_COMPARISONS])
_PLAIN_UNARY: Final = FILE_OPERATORS | {"-n", "-z", "-t"}
_NUMBER: Final = re.compile(r"[ \t\n]*[+-]?[0-9]+[ \t\n]*", re.ASCII)


class TestError(Exception):
    """An invalid expression; the text is the message after the command's name."""


class Words:
    """Bash's error messages, and the operators that need a shell; GNU's program has its own."""

    shell_operators: frozenset[str] = frozenset(["-o", "-v", "-R"])
    wide = False
    """Whether integers may be of any size."""

    def ask(self, operator: str, word: str) -> bool:
        """-v name, -o option, -R name."""
        raise NotImplementedError

    def two(self, args: list[str]) -> str:
        return f"{args[0]}: unary operator expected"

    def unary(self, word: str) -> str:
        return f"{word}: unary operator expected"

    def binary(self, word: str) -> str:
        return f"{word}: binary operator expected"

    def integer(self, word: str) -> str:
        return f"{word}: integer expression expected"

    def missing(self, _previous: str) -> str:
        return "argument expected"

    def surplus(self, word: str) -> str:
        return f"syntax error: `{word}' unexpected" if word.startswith("-") else "too many arguments"

    def parenthesis(self, found: str | None) -> str:
        return "`)' expected" + (f", found {found}" if found is not None else "")

    def terminal(self, process: Process, word: str) -> bool:
        return bool(_NUMBER.fullmatch(word)) and len(word) < 10 and process.isatty(int(word))


class Expression:
    """The arguments of one call, read from left to right."""

    def __init__(self, process: Process, words: Words, args: list[str]) -> None:
        self.process = process
        self.words = words
        self.args = args
        self.pos = 0

    def value(self) -> bool:
        args = self.args
        count = len(args)
        if count == 3:
            operator = args[1]
            if operator in BINARY:
                return self.compare(args[0], operator, args[2])
        if count <= 4:
            found = self._few(args)
            if found is not None:
                return found
        self.pos = 0
        found = self._or()
        if self.pos < count:
            raise TestError(self.words.surplus(args[self.pos]))
        return found

    def _few(self, args: list[str]) -> bool | None:
        """Up to four arguments have fixed meanings; None: it's for the grammar."""
        count = len(args)
        if count == 0:
            return False
        if count == 1:
            return args[0] != ""
        if count == 2:
            return self._two(args)
        if count == 3:
            return self._three(args)
        if args[0] == "!":
            return not self._three(args[1:])
        if args[0] == "(" and args[3] == ")":
            return self._two(args[1:3])
        return None

    def _two(self, args: list[str]) -> bool:
        if args[0] == "!":
            return args[1] == ""
        if self._is_unary(args[0]):
            return self.unary(args[0], args[1])
        raise TestError(self.words.two(args))

    def _three(self, args: list[str]) -> bool:
        left, operator, right = args
        if operator in BINARY:
            return self.compare(left, operator, right)
        if operator == "-a":
            return left != "" and right != ""
        if operator == "-o":
            return left != "" or right != ""
        if left == "!":
            return not self._two(args[1:])
        if left == "(" and right == ")":
            return operator != ""
        raise TestError(self.words.binary(operator))

    def _is_unary(self, word: str) -> bool:
        return word in _PLAIN_UNARY or word in self.words.shell_operators

    # The grammar. Nothing is skipped: both sides of -a and -o are always evaluated, as their errors must show.

    def _or(self) -> bool:
        value = self._and()
        while self.pos < len(self.args) and self.args[self.pos] == "-o":
            self.pos += 1
            value = self._and() or value
        return value

    def _and(self) -> bool:
        value = self._term()
        while self.pos < len(self.args) and self.args[self.pos] == "-a":
            self.pos += 1
            value = self._term() and value
        return value

    def _term(self) -> bool:
        args = self.args
        negated = False
        while self.pos < len(args) and args[self.pos] == "!":
            self.pos += 1
            negated = not negated
        return self._primary() is not negated

    def _primary(self) -> bool:
        args, pos = self.args, self.pos
        if pos >= len(args):
            raise TestError(self.words.missing(args[-1] if args else ""))
        word = args[pos]
        if word == "(":
            self.pos += 1
            self.process.enter()
            value = self._or()
            self.process.leave()
            if self.pos >= len(args) or args[self.pos] != ")":
                raise TestError(self.words.parenthesis(args[self.pos] if self.pos < len(args) else None))
            self.pos += 1
            return value
        if pos + 3 <= len(args) and args[pos + 1] in BINARY:
            self.pos += 3
            return self.compare(word, args[pos + 1], args[pos + 2])
        if pos + 2 <= len(args) and self._is_unary(word):
            self.pos += 2
            return self.unary(word, args[pos + 1])
        self.pos += 1
        return word != ""

    # The operators.

    def unary(self, operator: str, word: str) -> bool:
        if operator == "-n":
            return word != ""
        if operator == "-z":
            return word == ""
        if operator == "-t":
            return self.words.terminal(self.process, word)
        if operator in self.words.shell_operators:
            return self.words.ask(operator, word)
        return test_file(self.process, operator, word)

    def compare(self, left: str, operator: str, right: str) -> bool:
        if operator == "=" or operator == "==":
            return left == right
        number = INTEGER.get(operator)
        if number is not None:
            return number(self._integer(left), self._integer(right))
        if operator in FILE_COMPARISONS:
            return compare_files(self.process, left, operator, right)
        return _STRING[operator](fsencode(left), fsencode(right))

    def _integer(self, word: str) -> int:
        if word.isdecimal() and word.isascii() and len(word) < 19:
            return int(word)
        if not _NUMBER.fullmatch(word):
            raise TestError(self.words.integer(word))
        if len(word) > 4000:
            word = word.strip()
            raise TestError(self.words.integer(word))
        value = int(word)
        if not self.words.wide and not -(1 << 63) <= value < 1 << 63:
            raise TestError(self.words.integer(word))
        return value
