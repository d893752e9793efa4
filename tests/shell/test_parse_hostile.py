# ruff: noqa: E501
"""Scripts made to hurt the parser: refused or parsed, in time about linear in their size."""

from __future__ import annotations

import time

import pytest

from belljar.shell.parse import ParseOptions, Parser, ShellSyntaxError

MANY = 30_000
BOMBS = {
    "(": "(" * MANY, "$(": "$(" * MANY, "${": "${x:-" * MANY, "((": "((" * MANY, "[[ (": "[[ " + "( " * MANY,
    "[[ !": "[[ " + "! " * MANY, "if": "if " * MANY, "case": "case a in a) " * MANY, "{": "{ " * MANY,
    "quotes in $() in quotes": '"$(' * MANY, "`": "`" * (MANY + 1), '"': '"' * (MANY + 1), ";": ";" * MANY * 10,
    "a;": "a;" * MANY, "a|": "a|" * MANY + "a", "a[": "a[" * MANY, "<<E": "a" + " <<E" * MANY + "\n", "{a,": "echo " + "{a," * MANY,
    "{{}}": "echo " + "{a," * MANY + "}" * MANY, "1+": "((" + "x+" * MANY + "1))", "-": "((" + "-" * MANY + "1))",
    "a[a[": "((" + "a[" * MANY + "1" + "]" * MANY + "))", "$(( fallback": "$((" * 100 + "a" + ") )" * 100,
    "x=": "((" + "x=" * MANY + "1))", "?:": "((" + "1?" * MANY + "1))", "NUL": "\0" * MANY, "@(": "echo " + "@(" * MANY,
    "here-document": "cat <<E\n" + "$(" * MANY + "\nE\n", "newlines": "\n" * MANY * 5, "continuations": "a\\\n" * MANY,
}  # fmt: skip


@pytest.mark.parametrize("name", BOMBS)
def test_a_bomb_is_harmless(name: str) -> None:
    start = time.process_time()
    parser = Parser(BOMBS[name], ParseOptions(extglob=True))
    try:
        while parser.next_command() is not None:
            pass
    except ShellSyntaxError as error:
        assert error.line >= 1  # noqa: PT017  (either outcome is fine)
    assert time.process_time() - start < 5
