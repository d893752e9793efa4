"""Declaration of builtins: one decorated function each, whose docstring is its usage line and its help."""

from __future__ import annotations

from collections.abc import Callable
from inspect import cleandoc
from typing import TYPE_CHECKING, Any, TypeAlias

from msgspec import Struct

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

Options: TypeAlias = dict[str, str]
"""The option letters given, each with its value ("" for a flag), in the order of their last appearance."""


class Builtin(Struct, frozen=True):
    """A command of the shell's own. `special`: one of POSIX's special builtins. `declares`: takes assignments."""

    name: str
    function: Callable[[Shell, list[Any]], int]
    synopsis: str
    help: str
    special: bool = False
    declares: bool = False

    @property
    def summary(self) -> str:
        return self.help.partition("\n")[0]


BUILTINS: dict[str, Builtin] = {}
"""Every builtin by name; filled by the decorator when the modules of this package are imported."""


class Usage(Exception):
    """The command line is wrong: `message` (if any) and the usage line are printed, the status is `status`."""

    def __init__(self, message: str = "", status: int = 2) -> None:
        super().__init__(message)
        self.message = message
        self.status = status


def builtin(
    name: str, options: str | None = None, *, special: bool = False, declares: bool = False, plus: bool = False
) -> Callable[[Callable[..., int]], Callable[..., int]]:
    """Declare a builtin. Without `options` the function is `f(shell, args)`.

    With `options` (letters as for getopt, `x:` takes a value; with `plus`, `+x` is recorded as the key "+x") it is
    `f(shell, options, args)`.
    """

    def declare(function: Callable[..., int]) -> Callable[..., int]:
        synopsis, _, text = cleandoc(function.__doc__ or name).partition("\n")

        def run(shell: Shell, args: list[Any]) -> int:
            try:
                if args and args[0] == "--help":
                    show_help(shell, BUILTINS[name])
                    return 2
                if options is None:
                    return function(shell, args)
                given, rest = parse_options(args, options, plus=plus)
                return function(shell, given, rest)
            except Usage as error:
                if error.message:
                    shell.error(f"{name}: {error.message}")
                shell.process.error(f"{name}: usage: {synopsis}\n")
                shell.misused = special
                return error.status

        wrapped = function if options is None and function.__name__ in _PLAIN else run
        BUILTINS[name] = Builtin(name, wrapped, synopsis, text.strip("\n"), special, declares)
        return function

    return declare


_PLAIN = frozenset(["colon", "true", "false", "echo", "test", "bracket"])
"""Functions that read no options at all and are called too often to be wrapped."""


def show_help(shell: Shell, entry: Builtin) -> None:
    body = "".join(f"    {line}\n" for line in entry.help.split("\n"))
    shell.write(f"{entry.name}: {entry.synopsis}\n{body}")


def parse_options(args: list[Any], letters: str, *, plus: bool = False) -> tuple[Options, list[Any]]:
    """The options before the first operand, and the operands. Usage."""
    if not args or type(args[0]) is not str or args[0][:1] not in ("-", "+"):
        return {}, args
    given: Options = {}
    position = 0
    while position < len(args):
        arg = args[position]
        if type(arg) is not str or len(arg) < 2 or not (arg[0] == "-" or (plus and arg[0] == "+")):
            break
        position += 1
        if arg == "--":
            break
        sign = "+" if arg[0] == "+" else ""
        place = 1
        while place < len(arg):
            letter = arg[place]
            place += 1
            at = letters.find(letter)
            if at < 0 or letter == ":":
                raise Usage(f"{arg[0]}{letter}: invalid option")
            value = ""
            if letters.startswith(":", at + 1):
                value = arg[place:]
                place = len(arg)
                if not value:
                    if position >= len(args):
                        raise Usage(f"{arg[0]}{letter}: option requires an argument")
                    value = str(args[position])
                    position += 1
            given.pop(sign + letter, None)
            given[sign + letter] = value
    return given, args[position:]
