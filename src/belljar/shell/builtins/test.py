"""test and [."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.shell.builtins.registry import builtin
from belljar.shell.compile.conditionals import is_set
from belljar.shell.testexpr import Expression, TestError, Words
from belljar.shell.variables import NAMEREF

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


class ShellWords(Words):
    """The operators only a shell has: -v, -o and -R."""

    def __init__(self, shell: Shell, name: str) -> None:
        self._shell = shell
        self._name = name

    def parenthesis(self, found: str | None) -> str:
        return super().parenthesis("]" if found is None and self._name == "[" else found)

    def ask(self, operator: str, word: str) -> bool:
        shell = self._shell
        if operator == "-o":
            return shell.options.get(word, False)
        if operator == "-R":
            return bool(shell.vars.own_attrs(word) & NAMEREF)
        return is_set(shell, word)


def evaluate(shell: Shell, name: str, args: list[str]) -> int:
    """The status of `test args`, mistakes reported."""
    if len(args) == 3 and args[1] in ("=", "!="):
        return int((args[0] == args[2]) is (args[1] == "!="))
    try:
        return int(not Expression(shell.process, ShellWords(shell, name), args).value())
    except TestError as error:
        shell.error(f"{name}: {error}")
        return 2


@builtin("test")
def test(shell: Shell, args: list[str]) -> int:
    """test [expr]
    Evaluate a conditional expression: 0 if it is true, 1 if not, 2 if it makes no sense.

    Files:    -a -e exists, -b block device, -c character device, -d directory, -f regular, -g set-group-id,
              -h -L symlink, -k sticky, -p pipe, -r readable, -s not empty, -S socket, -t FD terminal, -u set-user-id,
              -w writable, -x executable, -O owned, -G of my group, -N modified since read;
              A -nt B newer, A -ot B older, A -ef B the same file
    Strings:  -z empty, -n not empty, A = B, A != B, A < B, A > B
    Shell:    -o OPTION set, -v VAR set, -R VAR a nameref
    Numbers:  A -eq B, -ne, -lt, -le, -gt, -ge
    Logic:    ! EXPR, ( EXPR ), A -a B, A -o B
    """
    return evaluate(shell, "test", args)


@builtin("[")
def bracket(shell: Shell, args: list[str]) -> int:
    """[ arg... ]
    As `test`, with a last argument `]` to match.
    """
    if not args or args[-1] != "]":
        shell.error("[: missing `]'")
        return 2
    return evaluate(shell, "[", args[:-1])
