# ruff: noqa: E501
"""Where aliases are expanded; the expectations are those of bash 5.2."""

from __future__ import annotations

import pytest

from belljar.shell.parse import ParseOptions, Parser, ShellSyntaxError, parse_script
from belljar.shell.print import print_command

ALIASES = {
    "e": "echo hi", "ll": "ls -l ", "s": "sudo ", "ifx": "if", "dox": "do", "r1": "r2 a", "r2": "r1 b", "self": "self x",
    "q": "echo 'a", "two": "a; b", "bg": "a &", "t": "time ls", "empty": "", "digit": "echo 2", "in": "cat <<E",
}  # fmt: skip

CASES = [
    ("e there", "echo hi there"),
    ("echo e", "echo e"),
    ("\\e; 'e'", "\\e; 'e'"),
    ("x=1 e", "x=1 echo hi"),
    (">f e", "echo hi > f"),
    ("ll e e", "ls -l echo hi e"),
    ("s ll e", "sudo ls -l echo hi"),
    ("ll >f e", "ls -l e > f"),
    ("ifx e; then e; fi", "if echo hi; then\n    echo hi;\nfi"),
    ("while a; dox b; done", "while a; do\n    b;\ndone"),
    ("r1", "r1 b a"),
    ("self", "self x"),
    ("q b'", "echo 'a b'"),
    ("two x", "a; b x"),
    ("t x", "time ls x"),
    ("empty e", "echo hi"),
    ("digit>f", "echo 2 > f"),
    ("e|e&&e", "echo hi | echo hi && echo hi"),
    ("case e in e) e;; esac", "case e in \n    e)\n        echo hi\n    ;;\nesac"),
    ("in\nx\nE", "cat <<E\nx\nE\n"),
]


@pytest.mark.parametrize(("text", "expected"), CASES, ids=[text for text, _ in CASES])
def test_an_alias(text: str, expected: str) -> None:
    [command] = parse_script(text + "\n", ParseOptions(alias=ALIASES.get))
    assert print_command(command) == expected


def test_an_alias_holds_from_the_line_after_its_definition() -> None:
    aliases: dict[str, str] = {}
    parser = Parser("x; x\nx\n", ParseOptions(alias=aliases.get))
    first = parser.next_command()
    aliases["x"] = "y"
    second = parser.next_command()
    assert first is not None
    assert second is not None
    assert (print_command(first), print_command(second)) == ("x; x", "y")


def test_aliases_that_double_without_end_are_refused() -> None:
    aliases = {f"a{level}": f"a{level + 1} ; a{level + 1}" for level in range(60)}
    with pytest.raises(ShellSyntaxError, match="alias"):
        Parser("a0\n", ParseOptions(alias=aliases.get)).next_command()
