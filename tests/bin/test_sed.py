"""sed beyond its specs: no script crashes the parser, both ways of running agree, loops end."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.limits import Limits
from belljar.bin.sed.parse import parse
from belljar.bin.sed.reader import ScriptError, Source, Syntax
from tests.adapter import new_session, put, run_command

NOISE = st.text(alphabet="abspdDnNqr{}!;:,/\\$12~+gIM&\n []()*.^y=lx", max_size=30)


@pytest.fixture(scope="module", autouse=True)
def _raise_recursion_limit() -> None:
    """Sessions do; hypothesis does not like that to happen inside a test."""
    new_session()


@given(NOISE, st.booleans(), st.booleans())
def test_no_script_crashes_the_parser(text: str, extended: bool, posix: bool) -> None:
    try:
        script = parse([Source(text)], Syntax(extended=extended, posix=posix))
    except ScriptError as error:
        message = str(error)
    else:
        message = "fine"
        for command in script.commands:
            assert 0 <= command.target <= len(script.commands)
    assert message


REGEXES = st.sampled_from(
    ["a", "a*", "^", "$", "^a", "a$", "[ab]b", ".", ".*b", "é", "[^a]", "a\\|ab", "\\(a\\)\\(b*\\)", "x"]
)
REPLACEMENTS = st.sampled_from(["", "X", "<&>", "\\n", "é", "a"])
COMMANDS = st.one_of(
    st.builds("s/{}/{}/{}".format, REGEXES, REPLACEMENTS, st.sampled_from(["", "g", "I", "gI"])),
    st.builds("/{}/{}d".format, REGEXES, st.sampled_from(["", "!"])),
    st.sampled_from(["y/ab/ba/", "2d", "2,3d", "s/b/[\\1]/;s/a/b/"]),
)
LINES = st.lists(st.text(alphabet="aabcé ", max_size=6), max_size=5)


@given(st.lists(COMMANDS, min_size=1, max_size=3), LINES, st.booleans())
def test_whole_buffers_and_single_lines_agree(commands: list[str], lines: list[str], complete: bool) -> None:
    """-u goes line by line, so it checks what is done on whole buffers."""
    text = "\n".join(lines) + ("\n" if complete and lines else "")
    script = ";".join(commands)
    session = new_session({"LC_ALL": "C.UTF-8"})
    bulk = run_command(session, ["sed", script], stdin=text.encode())
    single = run_command(session, ["sed", "-u", script], stdin=text.encode())
    assert (bulk.stdout, bulk.stderr, bulk.status) == (single.stdout, single.stderr, single.status)


@pytest.mark.parametrize("script", [":a;ba", ":a;s/x*/y/;ta", "s/^/a\\n/;D", ":a;G;ba", ":a;s/.*/&&/;ta", ":a;H;ba"])
def test_endless_scripts_are_ended(script: str) -> None:
    session = new_session(limits=Limits(steps=200_000, cpu_seconds=5, wall_seconds=10, expansion_bytes=1 << 22))
    result = run_command(session, ["sed", script], stdin=b"x\n")
    assert result.limit is not None
    assert run_command(session, ["sed", "p"], stdin=b"x\n").stdout == b"x\nx\n"


def test_explosive_patterns_are_harmless() -> None:
    session = new_session(limits=Limits(cpu_seconds=5))
    data = b"a" * 5000 + b"!\n"
    for script in ("s/(a+)+$/X/", "s/(a|aa)+$/X/g", "/(a*)*b/d", "s/(.*)(.*)(.*)(.*)b/X/"):
        result = run_command(session, ["sed", "-E", script], stdin=data)
        assert (result.stdout, result.status) == (data, 0)


def test_a_long_replacement_is_charged_for() -> None:
    session = new_session(limits=Limits(expansion_bytes=1 << 20))
    put(session, "/tmp/script", b"s/a/" + b"x" * 4000 + b"/g\n")
    result = run_command(session, ["sed", "-f", "/tmp/script"], stdin=b"a" * 10_000 + b"\n")
    assert result.limit is not None


def test_the_e_command_is_refused() -> None:
    session = new_session()
    for script in ("e ls", "s/a/ls/e"):
        result = run_command(session, ["sed", script], stdin=b"a\n")
        assert result.status == 1
        assert b"not available in this sandbox" in result.stderr
