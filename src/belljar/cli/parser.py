"""argparse without the modules that it loads to find the screen's width."""

from __future__ import annotations

from argparse import ArgumentParser, HelpFormatter
from typing import Any

from belljar.cli.screen_host import columns


class Formatter(HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns() - 2)


class Parser(ArgumentParser):
    """A parser whose subcommands' parsers are of this class, too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=Formatter)
