"""The owner's functions in guest Python: `from tools import x`, in programs and in sessions."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from belljar import AsyncSandbox, RunLimits, Sandbox

calls: list[tuple[Any, ...]] = []


def search(query: str, limit: int = 2) -> list[str]:
    """Search the notes."""
    calls.append((query, limit))
    if query == "bad":
        raise LookupError("nothing of the kind")
    return [query] * limit


def same(value: Any = None, **named: Any) -> Any:
    return named or value


async def slow_up(text: str) -> str:
    await asyncio.sleep(0.01)
    return text.upper()


def opaque() -> Any:
    return object()


TOOLS: dict[str, Callable[..., Any]] = {"search": search, "same": same, "slow-up": slow_up, "opaque": opaque}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(tools=TOOLS) as made:
        made.exec(["python3", "-c", "pass"], timeout=590).check()
        yield made


def run(sandbox: Sandbox, source: str) -> str:
    sandbox.files.write("/workspace/program.py", source)
    result = sandbox.exec("python3 program.py", timeout=60)
    assert result.exit_code == 0, result.stderr
    return result.stdout


def test_functions_are_called_with_values(sandbox: Sandbox) -> None:
    calls.clear()
    said = run(
        sandbox,
        """
from tools import search, slow_up, same
import tools
print(search("bell"), search("jar", limit=1), slow_up("x"))
print(tools.search(query="q"), tools.__all__, dir(tools))
for value in (None, True, 3, 2**70, 1.5, "ü", b"\\0\\xff", [1, [2]], {"a": {1: 2}}, {"$int": "x"}):
    assert same(value) == value, value
print(same((1, 2)), same(a=1, b=None))
print(len(same("x" * 5_000_000)))
""",
    )
    names = ["opaque", "same", "search", "slow_up"]
    assert said.splitlines() == [
        "['bell', 'bell'] ['jar'] X",
        f"['q', 'q'] {names} {sorted([*names, 'HostError'])}",
        "[1, 2] {'a': 1, 'b': None}",
        "5000000",
    ]
    assert calls == [("bell", 2), ("jar", 1), ("q", 2)]


def test_a_datetime_crosses(sandbox: Sandbox) -> None:
    when = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    made = "import datetime\nfrom tools import same\nprint(same(datetime.datetime(2026,1,2,3,4,5,tzinfo=datetime.UTC)))"
    assert run(sandbox, made) == f"{when}\n"


def test_what_goes_wrong(sandbox: Sandbox) -> None:
    said = run(
        sandbox,
        """
import tools
from tools import search, opaque, HostError
for attempt in (lambda: search("bad"), lambda: search(), opaque, lambda: search(print), lambda: tools.nothing):
    try:
        attempt()
    except Exception as error:
        print(type(error).__name__, getattr(error, "name", "-"), error, sep=" | ")
try:
    from tools import other
except ImportError as error:
    print(error.name, "other" in str(error))
""",
    )
    lines = said.splitlines()
    assert lines[0] == "HostError | LookupError | LookupError: nothing of the kind"
    assert lines[1].startswith("HostError | TypeError | TypeError: missing a required argument: 'query'")
    assert lines[2].startswith("HostError | TypeError | TypeError: opaque() is a object, which can't cross")
    assert lines[3].startswith("NotPlain | - | search() args[0] is a builtin_function_or_method, which can't cross")
    assert lines[4].startswith("AttributeError | nothing | this sandbox has no tool 'nothing'; it has: opaque, same")
    assert lines[5] == "tools True"
    result = sandbox.exec(["python3", "-c", "from tools import search\nsearch('bad')"])
    assert result.exit_code == 1
    assert result.stderr.endswith("\ntools.HostError: LookupError: nothing of the kind\n")


def test_a_module_of_the_programs_own_comes_first(sandbox: Sandbox) -> None:
    sandbox.files.write("/workspace/own/tools.py", "search = 'mine'\n")
    assert sandbox.exec("cd own && python3 -c 'import tools; print(tools.search)'").stdout == "mine\n"
    assert sandbox.exec("rm -r own; python3 -c 'import tools; print(tools.__name__)'").stdout == "tools\n"


def test_without_tools_there_is_no_such_module(shared: Sandbox) -> None:
    said = shared.exec(["python3", "-c", "import tools"]).stderr
    assert said.endswith("ModuleNotFoundError: No module named 'tools'\n")


def test_async_code_awaits(sandbox: Sandbox) -> None:
    said = run(
        sandbox,
        """
import asyncio
from tools import search, slow_up
async def main():
    print(await asyncio.gather(search("a", 1), slow_up("b")))
asyncio.run(main())
""",
    )
    assert said == "[['a'], 'B']\n"


def test_a_session_counts_its_calls(sandbox: Sandbox) -> None:
    result = sandbox.python.run("from tools import search\nsearch('s', 1)")
    assert (result.value, result.bridge_calls) == (["s"], 1)
    many = "import tools\nfor _ in range(5):\n    tools.same(1)"
    spent = sandbox.python.run(many, limits=RunLimits(max_bridge_calls=3))
    assert spent.error is not None
    assert spent.error.code == "BRIDGE_LIMIT"
    failed = sandbox.python.run("from tools import search\nsearch('bad')")
    assert failed.error is not None
    assert (failed.error.name, failed.error.message) == ("LookupError", "nothing of the kind")


def test_the_files(sandbox: Sandbox) -> None:
    script = """
    ls /mnt/tools
    exec 3<>/mnt/tools/same
    echo '{"args": [1], "kwargs": {}}' >&3; read -r line <&3; echo "$line"
    echo 'no JSON' >&3; read -r line <&3; echo "$line"
    echo x > /mnt/tools/new
    (head -c 20000000 /dev/zero | tr '\\0' x; echo) >&3
    echo '{"args": ["after"], "kwargs": {}}' >/mnt/tools/search"""
    result = sandbox.exec(script, timeout=60)
    said = result.stdout.splitlines()
    assert said[:4] == ["opaque", "same", "search", "slow-up"]
    assert '"value":1' in said[4]
    assert '"ValueError"' in said[5]
    assert "File too large" in result.stderr
    assert calls[-1] == ("after", 2)


def test_a_killed_caller_leaves_nothing_behind() -> None:
    killed = threading.Event()

    def wait() -> str:
        killed.wait(60)
        return "late"

    with Sandbox(tools={"wait": wait, "same": same}) as sandbox:
        sandbox.exec(["python3", "-c", "pass"], timeout=590).check()
        assert sandbox.exec(["python3", "-c", "import tools; tools.wait()"], timeout=0.3).timed_out
        killed.set()
        assert sandbox.exec(["python3", "-c", "import tools; print(tools.same(1), tools.wait())"]).stdout == "1 late\n"


def test_both_fronts_and_branches() -> None:
    async def main() -> None:
        async with AsyncSandbox(tools={"slow-up": slow_up, "same": same}) as sandbox:
            script = ["python3", "-c", "from tools import slow_up, same; print(slow_up('x'), same([1]))"]
            assert (await sandbox.exec(script, timeout=590)).stdout == "X [1]\n"
            branch = await sandbox.fork()
            async with branch:
                assert (await branch.exec(script)).stdout == "X [1]\n"

    asyncio.run(main())
