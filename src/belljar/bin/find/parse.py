"""From find's arguments to one function that judges a file."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.errors import SysError
from belljar.abi.records import Stat
from belljar.bin._kit import UsageError
from belljar.bin._kit.quoting import quote
from belljar.bin._tree import Follow, Visit
from belljar.bin.find.actions import ACTIONS, print_path
from belljar.bin.find.search import Matcher, Search
from belljar.bin.find.tests import TESTS, new_time_test
from belljar.kernel.process import Process

_ENDS = (")", ",", "-o", "-or", "-a", "-and")
_REGEX_TYPES = {
    "findutils-default": "emacs",
    "ed": "bre",
    "emacs": "emacs",
    "gnu-awk": "awk",
    "grep": "grep",
    "posix-awk": "awk",
    "awk": "awk",
    "posix-basic": "bre",
    "posix-egrep": "egrep",
    "egrep": "egrep",
    "posix-extended": "ere",
    "posix-minimal-basic": "bre",
    "sed": "sed",
}


def split_args(process: Process, args: list[str]) -> tuple[Follow, list[str], list[str]]:
    """The leading options (whether to follow symlinks), the paths, and the expression."""
    follow: Follow = "never"
    index = 0
    while index < len(args):
        arg = args[index]
        if arg in ("-H", "-L", "-P"):
            follow = {"-H": "operands", "-L": "always", "-P": "never"}[arg]  # type: ignore[assignment]
        elif arg == "-D":
            index += 1
            if index >= len(args):
                raise UsageError("Missing argument after the -D option.")
        elif arg == "--":
            index += 1
            break
        elif not (arg.startswith("-O") and arg[2:].isdecimal()):
            break
        index += 1
    first = index
    while index < len(args) and not _looks_like_expression(args[index]):
        index += 1
    return follow, args[first:index], args[index:]


def _looks_like_expression(arg: str) -> bool:
    return (arg.startswith("-") and len(arg) > 1) or arg in ("(", "!")


class Parser:
    def __init__(self, search: Search, args: list[str]) -> None:
        self.search = search
        self._args = args
        self._index = 0
        self._acts = False

    def parse(self) -> Matcher:
        if not self._args:
            return print_path(self.search)
        found = self._list()
        if self._index < len(self._args):
            if self._args[self._index] == ")":
                raise UsageError("you have too many ')'")
            raise UsageError(f"paths must precede expression: `{self._args[self._index]}'")
        if self._acts:
            return found
        shows = print_path(self.search)
        return lambda visit: found(visit) and shows(visit)

    # The grammar, loosest first.

    def _list(self) -> Matcher:
        parts = [self._or()]
        while self._accept(","):
            parts.append(self._operand(self._or, ","))
        if len(parts) == 1:
            return parts[0]

        def in_turn(visit: Visit) -> bool:
            result = False
            for part in parts:
                result = part(visit)
            return result

        return in_turn

    def _or(self) -> Matcher:
        parts = [self._and()]
        while operator := self._accept("-o", "-or"):
            parts.append(self._operand(self._and, operator))
        if len(parts) == 1:
            return parts[0]
        return lambda visit: any(part(visit) for part in parts)

    def _and(self) -> Matcher:
        parts = [self._not()]
        while True:
            operator = self._accept("-a", "-and")
            if operator:
                parts.append(self._operand(self._not, operator))
            elif self._peek() not in ("", *_ENDS):
                parts.append(self._not())
            else:
                break
        if len(parts) == 1:
            return parts[0]
        if len(parts) == 2:
            first, second = parts
            return lambda visit: first(visit) and second(visit)
        return lambda visit: all(part(visit) for part in parts)

    def _operand(self, parse: Callable[[], Matcher], operator: str) -> Matcher:
        if self._index >= len(self._args):
            raise UsageError(f"expected an expression after '{operator}'")
        return parse()

    def _not(self) -> Matcher:
        negations = 0
        operator = ""
        while found := self._accept("!", "-not"):
            negations += 1
            operator = found
        if operator and self._index >= len(self._args):
            raise UsageError(f"expected an expression after '{operator}'")
        inner = self._primary()
        if negations % 2 == 0:
            return inner
        return lambda visit: not inner(visit)

    def _primary(self) -> Matcher:
        arg = self._peek()
        if self._accept("("):
            if self._peek() == ")":
                raise UsageError("invalid expression; empty parentheses are not allowed.")
            inner = self._list()
            if not self._accept(")"):
                raise UsageError("invalid expression; I was expecting to find a ')' somewhere but did not see one.")
            return inner
        if arg in _ENDS:
            if arg == ")":
                raise UsageError("invalid expression; you have too many ')'")
            raise UsageError(f"invalid expression; you have used a binary operator '{arg}' with nothing before it.")
        self._index += 1
        if not arg.startswith("-"):
            raise UsageError(f"paths must precede expression: `{arg}'")
        return self._predicate(arg)

    def _predicate(self, name: str) -> Matcher:
        option = self._option(name)
        if option is not None:
            return option
        if name in TESTS:
            return TESTS[name](self)
        if name in ACTIONS:
            if name != "-prune":
                self._acts = True
            return ACTIONS[name](self)
        if name.startswith("-newer") and len(name) == 8:
            return new_time_test(self, name)
        raise UsageError(f"unknown predicate `{name}'")

    # Options, which are always true.

    def _option(self, name: str) -> Matcher | None:
        search = self.search
        match name:
            case "-maxdepth":
                search.max_depth = self._depth(name)
            case "-mindepth":
                search.min_depth = self._depth(name)
            case "-depth" | "-d":
                search.contents_first = True
            case "-mount" | "-xdev":
                search.one_file_system = True
            case "-follow":
                search.follow = "always"
            case "-daystart":
                search.begin_days_at_midnight()
            case "-regextype":
                self._regex_type()
            case "-files0-from":
                search.files0 = self.argument(name)
            case "-noleaf" | "-ignore_readdir_race" | "-noignore_readdir_race" | "-warn" | "-nowarn":
                pass
            case _:
                return None
        return lambda _visit: True

    def _depth(self, name: str) -> int:
        text = self.argument(name)
        if not (text.isascii() and text.isdecimal()):
            shown = quote(text, self.search.process.env)
            raise UsageError(f"Expected a positive decimal integer argument to {name}, but got {shown}")
        return min(int(text[:18]), 1 << 31)

    def _regex_type(self) -> None:
        text = self.argument("-regextype")
        if text not in _REGEX_TYPES:
            env = self.search.process.env
            known = ", ".join(quote(name, env) for name in _REGEX_TYPES)
            raise UsageError(f"Unknown regular expression type {quote(text, env)}; valid types are {known}.")
        self.search.regex_type = _REGEX_TYPES[text]

    # For tests and actions.

    def argument(self, name: str) -> str:
        if self._index >= len(self._args):
            raise UsageError(f"missing argument to `{name}'")
        self._index += 1
        return self._args[self._index - 1]

    def rest(self) -> list[str]:
        return self._args[self._index :]

    def skip(self, count: int) -> None:
        self._index += count

    def stat(self, path: str) -> Stat:
        """A file that a test compares with."""
        try:
            return self.search.process.fs.stat(path, follow=self.search.follow != "never")
        except SysError as error:
            raise UsageError(f"{quote(path, self.search.process.env)}: {error.reason}") from None

    def _peek(self) -> str:
        return self._args[self._index] if self._index < len(self._args) else ""

    def _accept(self, *words: str) -> str:
        arg = self._peek()
        if arg and arg in words:
            self._index += 1
            return arg
        return ""
