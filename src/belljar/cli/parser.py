"""argparse without the modules that it loads to find the screen's width."""

from __future__ import annotations

from argparse import ArgumentParser, ArgumentTypeError, HelpFormatter
from typing import Any, NoReturn

from belljar.cli.screen_host import columns


def count(text: str) -> int:
    """The value of an option that is a number of something. ArgumentTypeError."""
    if not (text.isascii() and text.isdecimal() and int(text) > 0):
        raise ArgumentTypeError(f"{text!r} is no whole number above 0")
    return int(text)


class Formatter(HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns() - 2)


class Parser(ArgumentParser):
    """A parser whose subcommands' parsers are of this class, too. A wrong command line costs one line."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=Formatter)

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")
