"""test - check file types and compare values

Usage: test EXPRESSION
       [ EXPRESSION ]

Exit with the status determined by EXPRESSION: 0 if it is true, 1 if not, 2 if it makes no sense.

  ( EXPR )   ! EXPR   A -a B   A -o B
  -n STRING  -z STRING  A = B  A != B  A < B  A > B
  A -eq B    -ne -lt -le -gt -ge
  A -ef B    A -nt B    A -ot B
  -b -c -d -e -f -g -G -h -k -L -N -O -p -r -s -S -t -u -w -x
"""

from collections.abc import Mapping

from belljar.bin._kit import utility
from belljar.bin._kit.program import version
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process
from belljar.shell.testexpr import Expression, TestError, Words


class GnuWords(Words):
    """The words of coreutils; integers may be of any size."""

    shell_operators = frozenset[str]()
    wide = True

    def __init__(self, env: Mapping[str, str]) -> None:
        self._env = env

    def _quote(self, word: str) -> str:
        return quote(word, self._env)

    def two(self, args: list[str]) -> str:
        if args[0].startswith("-") and len(args[0]) == 2:
            return f"{self._quote(args[0])}: unary operator expected"
        return f"missing argument after {self._quote(args[-1])}"

    def unary(self, word: str) -> str:
        return f"{self._quote(word)}: unary operator expected"

    def binary(self, word: str) -> str:
        return f"{self._quote(word)}: binary operator expected"

    def integer(self, word: str) -> str:
        return f"invalid integer {self._quote(word)}"

    def missing(self, previous: str) -> str:
        return f"missing argument after {self._quote(previous)}"

    def surplus(self, word: str) -> str:
        return f"extra argument {self._quote(word)}"

    def parenthesis(self, found: str | None) -> str:
        expected = f"{self._quote(')')} expected"
        return expected if found is None else f"{expected}, found {self._quote(found)}"

    def terminal(self, process: Process, word: str) -> bool:
        if not word.strip().lstrip("+-").isdecimal():
            raise TestError(self.integer(word))
        return super().terminal(process, word)


@utility("test", usage_status=2)
def main(process: Process, args: list[str]) -> int:
    if process.name == "[":
        if args == ["--help"]:
            process.print(main.help().rstrip())
            return 0
        if args == ["--version"]:
            process.print(version("["))
            return 0
        if not args or args[-1] != "]":
            process.warn(f"missing {quote(']', process.env)}")
            return 2
        args = args[:-1]
    try:
        return int(not Expression(process, GnuWords(process.env), args).value())
    except TestError as error:
        process.warn(str(error))
        return 2
