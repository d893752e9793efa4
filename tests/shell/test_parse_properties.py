# ruff: noqa: RUF005
"""Properties of the parser and the printer on made-up scripts and on noise."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.shell.nodes import Command, Function
from belljar.shell.parse import ArithSyntaxError, ParseOptions, Parser, ShellSyntaxError, parse_arith, parse_script
from belljar.shell.print import print_function
from tests.shell.script_texts import scripts

NOISE = st.lists(
    st.sampled_from(
        "$ ( ) { } [ ] < > & | ; ' \" ` \\ # ! ~ * ? = + - @ % ^ , . / : a b 1 0 x if then fi do done case esac in for "
        "while select function time coproc [[ ]] (( )) $( $(( ${ <( >( << <<- <<< >& &> ;; ;& @( E".split()
        + [" ", "\n", "\t", "\\\n", "\0", "\udcff", "é"]
    ),
    max_size=30,
).map("".join)


def parse(text: str) -> list[Command]:
    return list(parse_script(text, ParseOptions(extglob=True)))


# Here-documents within other commands are left out: bash's layout of some, which we follow, can't be read back.
@settings(max_examples=60, deadline=None)
@given(scripts(nested_heredocs=False))
def test_printing_and_parsing_again_gives_the_same_tree(text: str) -> None:
    [function] = parse(f"f() {{\n{text}\n}}\n")
    assert isinstance(function, Function)
    assert parse(print_function(function) + "\n") == [function]


@settings(max_examples=40, deadline=None)
@given(scripts())
def test_a_script_read_line_by_line_is_the_same_script(text: str) -> None:
    lines = [line + "\n" for line in text.split("\n")]
    pieces = iter(lines)
    parser = Parser(lambda: next(pieces, None), ParseOptions(extglob=True))
    commands = []
    while (command := parser.next_command()) is not None:
        commands.append(command)
    assert commands == parse(text)


@settings(max_examples=300, deadline=None)
@given(NOISE)
def test_noise_is_parsed_or_refused_but_never_crashes(text: str) -> None:
    parser = Parser(text, ParseOptions(extglob=True, alias={"a": "b ", "b": "a x", "x": "if"}.get))
    for _ in range(len(text) + 2):
        try:
            if parser.next_command() is None:
                break
        except ShellSyntaxError as error:
            assert error.line >= 1  # noqa: PT017  (either outcome is fine)
    else:
        raise AssertionError("no end")


@settings(max_examples=300, deadline=None)
@given(st.text("x1 09#@_+-*/%<>=!&|^~?:,()[]$\"'.\\", max_size=20))
def test_arithmetic_noise_is_parsed_or_refused(text: str) -> None:
    try:
        parse_arith(text)
    except ArithSyntaxError as error:
        assert str(error).startswith(error.expression.lstrip())  # noqa: PT017  (either outcome is fine)
