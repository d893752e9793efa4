"""argparse, but for what it would load to find out how wide the screen is."""

from __future__ import annotations

from argparse import ArgumentParser, HelpFormatter
from typing import Any

from belljar.cli.screen_host import columns


class Formatter(HelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, width=columns() - 2)


class Parser(ArgumentParser):
    """Its subcommands' parsers are of this class, too."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options, formatter_class=Formatter)
