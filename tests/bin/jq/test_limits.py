"""Hostile programs and inputs end within the budget, with a plain message or a limit's name."""

from __future__ import annotations

import pytest

from belljar.abi.limits import MIB, Limits
from tests.adapter import new_session, run_command

LIMITS = Limits(steps=200_000, wall_seconds=200, cpu_seconds=15, expansion_bytes=4 * MIB, output_bytes=4 * MIB)


@pytest.mark.parametrize(
    ("program", "limit"),
    [
        ("last(repeat(1))", "steps"),
        ("last(range(0; 1e18))", "steps"),
        ("[range(1e18)]", "steps"),
        ("def f: f; f", "steps"),
        ("[range(1000)] | [.[] as $a | .[] as $b | 1]", "steps"),
        ("until(false; .)", "steps"),
        ("[1] | last(recurse(. + .))", "expansion_bytes"),
        ('"x" | last(recurse(. + .))', "steps"),
        ('"x" * 100000000', "expansion_bytes"),
        ("reduce range(60) as $i ([1]; [., .])", "expansion_bytes"),
        ('repeat("x" * 1000)', "output_bytes"),
    ],
)
def test_bomb(program: str, limit: str) -> None:
    result = run_command(new_session(limits=LIMITS), ["jq", "-n", program])
    assert result.limit == limit


@pytest.mark.parametrize(
    ("program", "message"),
    [
        ("def f: [f]; f", "Function calls nested too deeply"),
        ("reduce range(60) as $i ([1]; [., .]) | tojson", "String too long"),
        ("reduce range(60) as $i ([1]; [., .]) | [.] == [map(.)]", "String too long"),
        (".[999999999] = 1", "Array index too large"),
        ("reduce range(20000) as $i (1; [.]) | . == [.]", "Comparison too deep"),
    ],
)
def test_refused(program: str, message: str) -> None:
    result = run_command(new_session(limits=LIMITS), ["jq", "-n", program])
    assert (result.status, message in result.stderr.decode()) == (5, True)


def test_deep_json() -> None:
    session = new_session(limits=LIMITS)
    result = run_command(session, ["jq", "."], stdin=b"[" * 1_000_000)
    assert result.status == 5
    assert result.stderr == b"jq: parse error: Exceeds depth limit for parsing at line 1, column 10001\n"


def test_deep_program() -> None:
    result = run_command(new_session(limits=LIMITS), ["jq", "-n", "(" * 100_000])
    assert result.status == 3


@pytest.mark.parametrize("pattern", ["(a+)+$", "(a|aa)+$", "(a*)*b$"])
def test_backtracking_is_linear(pattern: str) -> None:
    result = run_command(new_session(limits=LIMITS), ["jq", "-n", f'"{"a" * 5000}c" | test("{pattern}")'])
    assert result.stdout == b"false\n"


def test_an_early_reader_ends_the_program() -> None:
    result = run_command(new_session(limits=LIMITS), ["bash", "-c", "jq -n 'repeat(1)' | head -n 2"])
    assert result.stdout == b"1\n1\n"


def test_yaml_alias_bomb() -> None:
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%s]" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 9)) for n in range(1, 10)]
    text = b"\n".join(lines)
    result = run_command(new_session(limits=LIMITS), ["yq", "-o", "json", "."], stdin=text)
    assert result.limit == "expansion_bytes"
    result = run_command(new_session(limits=LIMITS), ["yq", ".a9 | length"], stdin=text)
    assert result.stdout == b"9\n"


def test_deep_yaml() -> None:
    result = run_command(new_session(limits=LIMITS), ["yq", "."], stdin=b"[" * 100_000)
    assert (result.status, b"max depth" in result.stderr) == (1, True)
