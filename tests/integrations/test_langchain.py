"""A model that writes programs which call the agent's tools."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from belljar import RunLimits
from belljar.integrations.langchain import ReplMiddleware
from tests.integrations.scripted import ScriptedModel, call

STOCK = {"apple": 3, "pear": 0, "plum": 12}


def look_up_stock(fruit: str) -> dict[str, Any]:
    """How many there are of a fruit."""
    return {"fruit": fruit, "count": STOCK[fruit]}


def forbidden() -> str:
    """Not for programs."""
    raise AssertionError


JS = """
const found = await Promise.all(["apple", "pear", "plum"].map((fruit) => tools.lookUpStock({ fruit })))
found.filter((item) => item.count > 0).map((item) => item.fruit)
"""
PYTHON = """
found = [tools.look_up_stock(fruit=name) for name in ("apple", "pear", "plum")]
[item["fruit"] for item in found if item["count"] > 0]
"""
PROGRAMS = {"js": ("eval", JS), "python": ("py_eval", PYTHON)}


@pytest.fixture(params=["js", "python"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


def talk(language: str, *programs: str, turns: int = 1, **options: Any) -> list[str]:
    """What the model is shown of each program."""
    tool, _ = PROGRAMS[language]
    script = [call(tool, code=program) for program in programs]
    per_turn = len(script) // turns
    said: list[AIMessage] = []
    for turn in range(turns):
        said += [*script[turn * per_turn : (turn + 1) * per_turn], AIMessage("done")]
    model = ScriptedModel(script=said)
    repl = ReplMiddleware(language, **{"tools": ["look_up_stock"], **options})  # type: ignore[arg-type]
    agent = create_agent(model, [look_up_stock, forbidden], middleware=[repl], checkpointer=InMemorySaver())
    try:
        for _ in range(turns):
            state = agent.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "1"}})
    finally:
        repl.close()
    return [str(message.content) for message in state["messages"] if message.type == "tool"]


def test_one_program_calls_many_tools(language: str) -> None:
    assert talk(language, PROGRAMS[language][1]) == ['["apple", "plum"]']


def test_awaited_agents(language: str) -> None:
    tool, program = PROGRAMS[language]

    async def look_up_stock(fruit: str) -> dict[str, Any]:
        """How many there are of a fruit."""
        await asyncio.sleep(0)
        return {"fruit": fruit, "count": STOCK[fruit]}

    async def main() -> str:
        model = ScriptedModel(script=[call(tool, code=program), AIMessage("done")])
        repl = ReplMiddleware(language, tools=["look_up_stock"])  # type: ignore[arg-type]
        agent = create_agent(model, [look_up_stock], middleware=[repl])
        try:
            state = await agent.ainvoke({"messages": [HumanMessage("go")]})
        finally:
            repl.close()
        return str(state["messages"][-2].content)

    assert asyncio.run(main()) == '["apple", "plum"]'


SET = {"js": "globalThis.x = 41; 1", "python": "x = 41"}
GET = {"js": "(globalThis.x ?? 0) + 1", "python": "globals().get('x', 0) + 1"}


@pytest.mark.parametrize(
    ("mode", "turns", "seen"), [("thread", 2, "42"), ("turn", 2, "1"), ("turn", 1, "42"), ("call", 1, "1")]
)
def test_how_long_variables_live(language: str, mode: str, turns: int, seen: str) -> None:
    assert talk(language, SET[language], GET[language], mode=mode, turns=turns)[-1] == seen


def test_only_allowed_tools_can_be_called(language: str) -> None:
    (said,) = talk(language, {"js": "await tools.forbidden()", "python": "tools.forbidden()"}[language])
    assert "no tool" in said
    assert "forbidden" in said


def test_too_many_calls_are_refused(language: str) -> None:
    program = {
        "js": "for (let i = 0; i < 9; i++) await tools.lookUpStock({ fruit: 'pear' })",
        "python": "for i in range(9): tools.look_up_stock(fruit='pear')",
    }[language]
    (said,) = talk(language, program, max_tool_calls=3)
    assert "3 times" in said


def test_a_tool_that_fails_is_an_exception_of_the_program(language: str) -> None:
    program = {
        "js": "try { await tools.lookUpStock({ fruit: 'fig' }) } catch (error) { console.log('caught', error.name) }",
        "python": "try: tools.look_up_stock(fruit='fig')\nexcept Exception as error: print('caught', error.name)",
    }[language]
    assert talk(language, program) == ["caught KeyError"]


def test_a_program_that_never_ends_is_stopped_and_the_next_one_runs(language: str) -> None:
    forever = {"js": "while (true) {}", "python": "while True: pass"}[language]
    said = talk(language, forever, GET[language], limits=RunLimits(cpu_ms=500))
    assert "CPU_LIMIT" in said[0]
    assert said[1] == "1"
