"""Parser of bash 5.2: text to syntax tree, usable on its own."""

from belljar.shell.parse.errors import ArithSyntaxError, ShellSyntaxError, Warned
from belljar.shell.parse.parser import (
    Parser,
    parse_arith,
    parse_here_text,
    parse_script,
    parse_subscript,
    read_subscript,
)
from belljar.shell.parse.source import ParseOptions

__all__ = [
    "ArithSyntaxError",
    "ParseOptions",
    "Parser",
    "ShellSyntaxError",
    "Warned",
    "parse_arith",
    "parse_here_text",
    "parse_script",
    "parse_subscript",
    "read_subscript",
]
