"""Syntax errors, arithmetic errors and the layout of functions, as recorded from bash 5.2.15."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from belljar.shell.nodes import Function
from belljar.shell.parse import ArithSyntaxError, ParseOptions, Parser, ShellSyntaxError, parse_arith, parse_script
from belljar.shell.print import print_function

HERE = Path(__file__).parent
SYNTAX: list[tuple[str, list[str]]] = json.loads((HERE / "syntax_errors.json").read_text())
ARITHMETIC: list[tuple[str, str]] = json.loads((HERE / "arith_errors.json").read_text())


@pytest.mark.parametrize(("text", "expected"), SYNTAX, ids=[repr(text) for text, _ in SYNTAX])
def test_a_syntax_error(text: str, expected: list[str]) -> None:
    parser = Parser(text if text.endswith("\n") else text + "\n")
    shown: list[str] = []
    try:
        while parser.next_command() is not None:
            pass
    except ShellSyntaxError as error:
        shown = [f"{error.line}: {message}" for message in error.messages()]
    warned = [f"{warning.line}: warning: {warning.message}" for warning in parser.warnings]
    assert warned + shown == expected


@pytest.mark.parametrize(("text", "expected"), ARITHMETIC, ids=[repr(text) for text, _ in ARITHMETIC])
def test_an_arithmetic_error(text: str, expected: str) -> None:
    with pytest.raises(ArithSyntaxError) as caught:
        parse_arith(text)
    assert str(caught.value) == expected


def test_the_layout_of_functions() -> None:
    commands = parse_script((HERE / "layout" / "functions.sh").read_text(), ParseOptions(extglob=True))
    printed = [print_function(command) + "\n" for command in commands if isinstance(command, Function)]
    assert "".join(printed) == (HERE / "layout" / "functions.txt").read_text()
