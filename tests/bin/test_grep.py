"""grep and rg beyond their specs: large inputs in pieces, every way of printing agrees, patterns that explode."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from belljar.abi.limits import Limits
from tests.adapter import new_session, put, run_command

LINES = [f"line {n} {'needle' if n % 7 == 0 else 'hay'} {'x' * (n % 50)}" for n in range(40_000)]
DATA = ("\n".join(LINES) + "\n").encode()


@pytest.fixture(scope="module", autouse=True)
def _raise_recursion_limit() -> None:
    """Sessions do; hypothesis does not like that to happen inside a test."""
    new_session()


@pytest.mark.parametrize("option", ["", "-n", "-b", "-H", "-nb"])
@pytest.mark.parametrize(
    ("pattern", "inverted"), [("needle", False), ("needle", True), ("line", False), ("line", True)]
)
def test_files_larger_than_a_chunk(option: str, pattern: str, inverted: bool) -> None:
    session = new_session()
    put(session, "/tmp/big", DATA)
    args = ["grep", *([option] if option else []), *(["-v"] if inverted else []), pattern, "/tmp/big"]
    expected = []
    offset = 0
    for number, line in enumerate(LINES, 1):
        if (pattern in line) != inverted:
            head = "/tmp/big:" if option == "-H" else ""
            head += f"{number}:" if "n" in option else ""
            head += f"{offset}:" if "b" in option else ""
            expected.append(head + line)
        offset += len(line) + 1
    result = run_command(session, args)
    assert result.stdout.decode() == "".join(line + "\n" for line in expected)
    counted = run_command(session, [args[0], "-c", *args[1:]])
    assert counted.stdout.decode().strip().rpartition(":")[2] == str(len(expected))


def test_context_across_chunks() -> None:
    session = new_session()
    put(session, "/tmp/big", DATA)
    result = run_command(session, ["grep", "-n", "-B2", "-A1", "needle", "/tmp/big"])
    shown = result.stdout.decode().splitlines()
    assert "--" in shown
    numbers = [int(line.replace("-", ":", 1).partition(":")[0]) for line in shown if line != "--"]
    assert numbers == sorted(set(numbers))
    wanted = {n + d for n in range(1, len(LINES) + 1) if (n - 1) % 7 == 0 for d in (-2, -1, 0, 1)}
    assert set(numbers) == {n for n in wanted if 1 <= n <= len(LINES)}


TEXT = st.lists(st.text(alphabet="abé \t-", max_size=8), max_size=6)
PATTERNS = st.sampled_from(["a", "ab*", "^a", "b$", "a|ab", "(a|b)+", "[^a]", ".é", "\\<a", "a*", "é", "\\bb", "^$"])


@given(PATTERNS, TEXT, st.sampled_from(["", "-i", "-w", "-x", "-v"]))
def test_ways_of_looking_agree(pattern: str, lines: list[str], option: str) -> None:
    session = new_session({"LC_ALL": "C.UTF-8"})
    data = "".join(line + "\n" for line in lines).encode()
    base = ["grep", "-E", *([option] if option else [])]
    printed = run_command(session, [*base, pattern], stdin=data).stdout
    numbered = run_command(session, [*base, "-n", pattern], stdin=data).stdout
    assert b"".join(line.partition(b":")[2] for line in numbered.splitlines(keepends=True)) == printed
    counted = run_command(session, [*base, "-c", pattern], stdin=data).stdout
    assert int(counted) == printed.count(b"\n")
    contextual = run_command(session, [*base, "-C9", "--no-group-separator", "-n", pattern], stdin=data).stdout
    assert [line for line in contextual.splitlines() if line.partition(b":")[0].isdigit()] == numbered.splitlines()
    if option != "-v":
        parts = run_command(session, [*base, "-o", pattern], stdin=data).stdout
        colored = run_command(session, [*base, "--color=always", pattern], stdin=data).stdout
        assert colored.count(b"\33[01;31m\33[K") == parts.count(b"\n")


@pytest.mark.parametrize(
    "args",
    [
        ["grep", "-E", "(a+)+$"],
        ["grep", "-E", "(a|aa)+$"],
        ["grep", "-oE", "(a|aa)+b"],
        ["grep", "-P", "(a+)+$"],
        ["grep", "-w", "-E", "(a|aa)+"],
        ["rg", "(a+)+$"],
        ["rg", "-o", "(a|aa)+b"],
    ],
)
def test_explosive_patterns_are_harmless(args: list[str]) -> None:
    session = new_session(limits=Limits(cpu_seconds=5))
    result = run_command(session, args, stdin=b"a" * 5000 + b"!\n")
    assert result.limit is None
    assert result.status in (0, 1)


@pytest.mark.parametrize("option", ["-E", "-P"])
def test_absurd_patterns_are_refused(option: str) -> None:
    result = run_command(new_session(), ["grep", option, "(a{1,65535}){1,65535}"], stdin=b"a\n")
    assert result.status == 2
    assert b"too" in result.stderr


def test_backreferences_run_under_the_guard() -> None:
    session = new_session(limits=Limits(cpu_seconds=1, wall_seconds=200))
    result = run_command(session, ["grep", "-E", r"(x?)((a|a)+)+[b-c]\1"], stdin=b"a" * 60 + b"\n")
    assert result.limit == "cpu_seconds"


def test_many_fixed_patterns() -> None:
    session = new_session()
    words = [f"word{n}" for n in range(3000)]
    put(session, "/tmp/words", "\n".join(words).encode())
    put(session, "/tmp/text", b"word17\nword17x\nno\nword2999\n")
    whole = run_command(session, ["grep", "-xF", "-f", "/tmp/words", "/tmp/text"])
    assert whole.stdout == b"word17\nword2999\n"
    part = run_command(session, ["grep", "-cF", "-f", "/tmp/words", "/tmp/text"])
    assert part.stdout == b"3\n"
