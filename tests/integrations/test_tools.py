"""A framework's tool, or a function, as a shell command, a Python function and a JavaScript function."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from enum import Enum
from typing import Any, Literal

import pytest
from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool, tool
from pydantic import BaseModel
from pydantic_ai import RunContext
from pydantic_ai import Tool as PydanticTool
from smolagents import Tool as SmolTool

from belljar import AsyncSandbox, Sandbox


class Item(BaseModel):
    name: str
    count: int = 1


class Colour(Enum):
    RED = "red"
    BLUE = "blue"


def double(number: int) -> int:
    """Twice as much."""
    return number * 2


async def double_later(number: int) -> int:
    """Twice as much, later."""
    await asyncio.sleep(0)
    return number * 2


class SmolDouble(SmolTool):  # type: ignore[misc]
    name = "double"
    description = "Twice as much."
    inputs = {"number": {"type": "integer", "description": "what to double"}}  # noqa: RUF012 - as the framework has it
    output_type = "integer"

    def forward(self, number: int) -> int:
        """Twice as much."""
        return number * 2


class DoubleTool(BaseTool):
    name: str = "double"
    description: str = "Twice as much."

    def _run(self, number: int, run_manager: Any = None) -> int:
        """Twice as much."""
        return number * 2


DOUBLES: dict[str, Any] = {
    "plain": double,
    "plain_later": double_later,
    "langchain": StructuredTool.from_function(double),
    "langchain_later": StructuredTool.from_function(coroutine=double_later),
    "langchain_class": DoubleTool(),
    "pydantic": PydanticTool(double),
    "pydantic_later": PydanticTool(double_later),
    "smol": SmolDouble(),
}


def order(
    item: Item,
    colour: Colour = Colour.RED,
    size: Literal["s", "l"] = "s",
    tags: list[str] | None = None,
    gift: bool = False,
) -> str:
    """Order an item."""
    return f"{item.count} {item.name} {colour.name} {size} {tags} {gift}"


def fail(number: int) -> None:
    """Never works."""
    raise ValueError(f"{number} is out of stock")


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    tools = {**DOUBLES, "order": StructuredTool.from_function(order), "order2": PydanticTool(order), "fail": fail}
    with Sandbox(tools=tools) as sandbox:
        yield sandbox


@pytest.mark.parametrize("name", DOUBLES)
def test_one_tool_in_three_languages(sandbox: Sandbox, name: str) -> None:
    assert sandbox.exec(f"{name} --number 21").stdout == "42\n"
    assert sandbox.exec(f"{name} 21").stdout == "42\n"
    assert sandbox.exec(f"""{name} '{{"number": 21}}'""").stdout == "42\n"
    assert "Twice as much" in sandbox.exec(f"{name} --help").stdout
    assert sandbox.python.run(f"{name}(21) + {name}(number=0)").value == 42
    assert sandbox.python.run(f"await {name}(21)").value == 42
    assert sandbox.js.run(f"await {name}(21)").value == 42


@pytest.mark.parametrize("name", ["order", "order2"])
def test_arguments_have_the_types_the_tool_wants(sandbox: Sandbox, name: str) -> None:
    said = sandbox.exec(
        f"""{name} --item '{{"name": "pear", "count": "7"}}' --colour blue --size l --tags '["a"]' --gift"""
    )
    assert said.stdout == "7 pear BLUE l ['a'] True\n"
    assert (
        sandbox.exec(f"""{name} '{{"item": {{"name": "fig"}}, "colour": "blue"}}'""").stdout
        == "1 fig BLUE s None False\n"
    )
    assert sandbox.python.run(f"{name}({{'name': 'fig'}}, 'blue', gift=True)").value == "1 fig BLUE s None True"
    assert sandbox.js.run(f"await {name}({{ name: 'fig' }}, 'blue')").value == "1 fig BLUE s None False"


@pytest.mark.parametrize(
    ("command", "code", "says"),
    [
        ("plain x", 2, "plain: --number: 'x' is not a valid int"),
        ("plain", 2, "missing argument: number"),
        ("plain 1 2", 2, "too many arguments"),
        ("plain --other 1", 2, "no such option: --other"),
        ("plain '{'", 2, "bad JSON"),
        ("order --item x --colour green", 2, "'green' is not one of red, blue"),
        ("order --item x --size m", 2, "'m' is not one of s, l"),
        ("order --item '{}'", 1, "Field required"),
        ("""langchain '{"number": "x"}'""", 2, "is not"),
        ("fail 3", 1, "fail: 3 is out of stock"),
    ],
)
def test_what_goes_wrong_is_told_in_the_shell(sandbox: Sandbox, command: str, code: int, says: str) -> None:
    said = sandbox.exec(command)
    assert (said.exit_code, said.stdout) == (code, "")
    assert says in said.stderr


def test_what_goes_wrong_is_an_exception_elsewhere(sandbox: Sandbox) -> None:
    said = sandbox.python.run("try: fail(3)\nexcept Exception as error: print(error.name, error.message)").stdout
    assert said == "ValueError 3 is out of stock\n"
    program = "try { await fail(3) } catch (error) { console.log(error.name, error.message) }"
    assert sandbox.js.run(program).stdout == "ValueError 3 is out of stock\n"
    assert sandbox.python.run("pydantic('x')").error.name == "TypeError"  # type: ignore[union-attr]


def test_the_same_awaited() -> None:
    async def main() -> None:
        async with AsyncSandbox(tools=DOUBLES) as sandbox:
            for name in DOUBLES:
                assert (await sandbox.exec(f"{name} 21")).stdout == "42\n"
                assert (await sandbox.python.run(f"{name}(21)")).value == 42
                assert (await sandbox.js.run(f"await {name}(21)")).value == 42

    asyncio.run(main())


def test_a_tool_that_needs_its_agent_is_refused() -> None:
    def with_context(ctx: RunContext[None], number: int) -> int:
        """Needs a run."""
        return number

    @tool
    def with_runtime(number: int, runtime: ToolRuntime) -> int:
        """Needs an agent."""
        return number

    for given, what in ((PydanticTool(with_context), "ctx"), (with_runtime, "runtime")):
        with pytest.raises(TypeError, match=f"only its agent can give it {what}"):
            Sandbox(tools={"t": given})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="not callable"):
        Sandbox(tools={"t": 5})  # type: ignore[dict-item]
