"""`tools`: functions of the owner's, as commands."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any, Literal

import pytest

from belljar import ToolError
from tests.tiers.conftest import Make


def search(query: str, limit: int = 3, deep: bool = False) -> list[str]:
    """Search the notes."""
    return [f"{query}{'!' * deep} {n}" for n in range(limit)]


CALLS: dict[str, tuple[str, Any]] = {
    "an argument": ("search bells", ["bells 0", "bells 1", "bells 2"]),
    "an option": ("search bells --limit 1", ["bells 0"]),
    "an option with =": ("search bells --limit=1", ["bells 0"]),
    "a flag": ("search bells --limit 1 --deep", ["bells! 0"]),
    "by name": ("search --query 'two words' --limit 1", ["two words 0"]),
    "UTF-8": ("search żółć --limit 1", ["żółć 0"]),
}


@pytest.mark.parametrize(("command", "answer"), CALLS.values(), ids=CALLS)
def test_a_function_is_a_command(make: Make, command: str, answer: Any) -> None:
    result = make(tools={"search": search}).exec(command)
    assert (result.exit_code, result.stderr) == (0, "")
    assert json.loads(result.stdout) == answer


def test_it_is_found_like_any_command(make: Make) -> None:
    sb = make(tools={"search": search})
    assert sb.exec("command -v search >/dev/null && echo found").stdout == "found\n"
    assert sb.exec(["search", "x", "--limit", "0"]).stdout == "[]\n"
    assert sb.exec("search a --limit 1 | tr a-z A-Z").stdout == '["A 0"]\n'
    assert sb.exec("echo a b | xargs -n1 search --limit 0").stdout == "[]\n[]\n"


def test_its_help(make: Make) -> None:
    said = make(tools={"search": search}).exec("search --help").stdout
    assert "Search the notes." in said
    assert "--limit" in said


ANSWERS: dict[str, tuple[Any, str]] = {
    "text": ("plain\n", "plain\n"),
    "text without an end": ("plain", "plain\n"),
    "nothing": (None, ""),
    "a number": (42, "42\n"),
    "data": ({"a": [1, None]}, '{"a": [1, null]}\n'),
    "bytes": (b"\0\xff", "\0\ufffd"),
}


@pytest.mark.parametrize(("value", "said"), ANSWERS.values(), ids=ANSWERS)
def test_answers(make: Make, value: Any, said: str) -> None:
    assert make(tools={"get": lambda: value}).exec("get").stdout == said


def test_wrong_arguments(make: Make) -> None:
    sb = make(tools={"search": search})
    for command in ("search", "search a --limit many", "search a --nosuch 1"):
        result = sb.exec(command)
        assert result.exit_code == 2, command
        assert "search" in result.stderr, command


def test_a_function_that_raises(make: Make) -> None:
    def fail(kind: Literal["tool", "other"]) -> None:
        raise ToolError("ask tomorrow: /etc/secret") if kind == "tool" else OSError("can't open /home/me/secret/file")

    sb = make(tools={"fail": fail})
    told = sb.exec("fail tool")
    assert (told.exit_code, told.stderr) == (1, "fail: ask tomorrow: /etc/secret\n")
    other = sb.exec("fail other")
    assert other.exit_code == 1
    assert "/home/me" not in other.stderr
    assert sb.exec("echo usable").stdout == "usable\n"


def test_a_function_may_be_async(make: Make) -> None:
    async def slow(n: int) -> int:
        await asyncio.sleep(0.05)
        return n * 2

    sb = make(tools={"slow": slow})
    assert sorted(sb.exec("for n in 1 2 3; do slow $n & done; wait").stdout.split()) == ["2", "4", "6"]


def test_several_at_once(make: Make) -> None:
    """Two calls that wait for each other."""
    meet = threading.Barrier(2)

    def wait(name: str) -> str:
        meet.wait(120)
        return name

    said = make(tools={"wait-for": wait}).exec("wait-for a & wait-for b & wait", timeout=180).stdout
    assert sorted(said.split()) == ["a", "b"]


def test_a_timeout_while_it_works(make: Make) -> None:
    go_on = threading.Event()
    sb = make(tools={"work": lambda: go_on.wait(120)})
    try:
        assert sb.exec("work", timeout=0.2).timed_out
        assert sb.exec("echo usable").stdout == "usable\n"
    finally:
        go_on.set()


def test_a_long_answer(make: Make) -> None:
    sb = make(tools={"much": lambda: "x" * 3_000_000})
    assert sb.exec("much | wc -c").stdout.strip() == "3000001"


def test_in_a_terminal(make: Make) -> None:
    terminal = make(tools={"greet": lambda name: f"hello {name}"}).pty("greet me")
    seen = b""
    while data := terminal.read():
        seen += data
    assert seen == b"hello me\r\n"


WRONG: dict[str, tuple[dict[str, Any], type[Exception]]] = {
    "no function": ({"x": 1}, TypeError),
    "a name with a slash": ({"a/b": search}, ValueError),
    "no name": ({"": search}, ValueError),
}


@pytest.mark.parametrize(("tools", "error"), WRONG.values(), ids=WRONG)
def test_what_is_no_tool(make: Make, tools: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match="tool"):
        make(tools=tools)
