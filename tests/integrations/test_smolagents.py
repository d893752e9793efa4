"""smolagents' code agents, in a sandbox."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from smolagents import CodeAgent, tool
from smolagents.models import ChatMessage, MessageRole, Model

from belljar import RunLimits
from belljar.integrations.smolagents import BelljarExecutor


@pytest.fixture
def executor() -> Iterator[BelljarExecutor]:
    executor = BelljarExecutor(limits=RunLimits(cpu_ms=2000))
    yield executor
    executor.cleanup()


def test_variables_tools_and_answers(executor: BelljarExecutor) -> None:
    executor.send_tools({"double": lambda number: number * 2, "final_answer": None})
    executor.send_variables({"data": [1, 2, 3]})
    said = executor("total = sum(double(x) for x in data)\nprint(total)\ntotal + 1")
    assert (said.output, said.logs, said.is_final_answer) == (13, "12\n", False)
    assert executor("final_answer(total)").output == 12


def test_what_the_code_does_wrong_is_told(executor: BelljarExecutor) -> None:
    with pytest.raises(RuntimeError, match="ZeroDivisionError"):
        executor("1 / 0")
    with pytest.raises(RuntimeError, match="CPU_LIMIT"):
        executor("while True: pass")
    assert executor("1 + 1").output == 2


class Scripted(Model):  # type: ignore[misc]
    def __init__(self, *said: str) -> None:
        super().__init__()
        self._said = list(said)

    def generate(self, *_: Any, **__: Any) -> ChatMessage:
        return ChatMessage(role=MessageRole.ASSISTANT, content=self._said.pop(0))


def test_an_agent(executor: BelljarExecutor) -> None:
    @tool  # type: ignore[untyped-decorator]
    def stock(fruit: str) -> int:
        """How many there are.

        Args:
            fruit: its name
        """
        return {"apple": 3, "pear": 0}[fruit]

    program = "Thought: count.\n<code>\nfinal_answer({f: stock(f) for f in ('apple', 'pear')})\n</code>"
    agent = CodeAgent(tools=[stock], model=Scripted(program), executor=executor, verbosity_level=0)
    assert agent.run("How many apples and pears?") == {"apple": 3, "pear": 0}
