"""Files of a conversation: in another process, and at an earlier message, they are as they were there."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from deepagents import create_deep_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from belljar import Sandbox, SnapshotError, Store
from belljar.integrations.deepagents_state import SnapshotMiddleware
from belljar.integrations.langchain import ReplMiddleware
from tests.integrations.scripted import ScriptedModel, call
from tests.integrations.test_conversations import Talk

APPEND = "x = globals().get('x', 0) + 1\nopen('/workspace/log', 'a').write(f'{x}\\n')"
READ = "[x, open('/workspace/log').read()]"


def test_a_program_s_files_go_with_its_variables() -> None:
    store = Store.memory()
    talk = Talk("python", store=store)
    try:
        talk.turn(APPEND)
        early = talk.checkpoint()
        talk.turn(APPEND)
        assert talk.turn(READ) == ['[2, "1\\n2\\n"]']
        talk.new_process()
        (said,) = talk.turn(READ)
        assert said.endswith('[2, "1\\n2\\n"]')
        assert "Files" not in said
        (said,) = talk.turn(READ, checkpoint_id=early)
        assert said.endswith('[1, "1\\n"]')
        assert talk.turn(READ) == ['[1, "1\\n"]']  # that branch is the conversation now
    finally:
        talk.repl.close()


def test_files_that_are_lost_are_told() -> None:
    talk = Talk("python", store=Store.memory())
    try:
        talk.turn(APPEND)
        talk.options = {"store": Store.memory()}
        talk.new_process()
        (said,) = talk.turn("import os; [x, os.path.exists('/workspace/log')]")
        assert "Files that programs wrote are gone: " in said
        assert said.endswith("[1, false]")
    finally:
        talk.repl.close()


def test_a_sandbox_of_the_owner_s_is_not_kept() -> None:
    with Sandbox() as sandbox, pytest.raises(ValueError, match="a store, or a sandbox"):
        ReplMiddleware("python", sandbox=sandbox, store=Store.memory())


class Agent:
    """A Deep Agent whose processes come and go."""

    def __init__(self, **options: Any) -> None:
        self.saver = InMemorySaver()
        self.store = Store.memory()
        self.options = options
        self.files = SnapshotMiddleware(self.store, **options)

    def new_process(self) -> None:
        self.files.close()
        self.files = SnapshotMiddleware(self.store, **self.options)

    def made(self, *commands: str) -> Any:
        script = [call("execute", command=command) for command in commands] + [AIMessage("done")]
        return create_deep_agent(
            ScriptedModel(script=script),
            backend=self.files.backend,
            middleware=[self.files],
            checkpointer=self.saver,
        )

    def config(self, thread: str = "1", **more: Any) -> Any:
        return {"configurable": {"thread_id": thread, **more}}

    def turn(self, *commands: str, thread: str = "1", **config: Any) -> list[str]:
        state = self.made(*commands).invoke({"messages": [HumanMessage("go")]}, self.config(thread, **config))
        assert "belljar_files" not in state  # private
        return shown(state)[-len(commands) :]

    def checkpoint(self, thread: str = "1") -> str:
        return str(self.made().get_state(self.config(thread)).config["configurable"]["checkpoint_id"])


def shown(state: Any) -> list[str]:
    return [str(message.content).split("\n")[0] for message in state["messages"] if message.type == "tool"]


def test_a_deep_agent_has_its_files_wherever_it_goes_on() -> None:
    agent = Agent(key=b"secret", files={"/workspace/log": "0\n"})
    try:
        agent.turn("sed -i d log; echo 1 >> log", "echo 2 >> log")
        early = agent.checkpoint()
        agent.turn("echo 3 >> log; rm -rf ~/.cache")
        assert agent.turn("paste -sd, log", thread="2") != ["1,2,3"]
        agent.new_process()
        assert agent.turn("paste -sd, log") == ["1,2,3"]
        assert agent.turn("echo 4 >> log; paste -sd, log", checkpoint_id=early) == ["1,2,4"]
        assert agent.turn("paste -sd, log") == ["1,2,4"]
    finally:
        agent.files.close()


def test_time_travel_into_the_midst_of_a_turn() -> None:
    agent = Agent()
    try:
        agent.turn("echo 1 > f", "echo 2 > f", "cat f")
        history = list(agent.made().get_state_history(agent.config()))
        (point,) = [each for each in history if each.next == ("tools",) and len(shown(each.values)) == 1]
        agent.new_process()
        for _ in range(2):  # the second time the sandbox has gone on from there
            made = agent.made("cat f")
            state = made.invoke(None, agent.config(checkpoint_id=point.config["configurable"]["checkpoint_id"]))
            assert shown(state)[-1] == "2"
            again = agent.turn("cat f", checkpoint_id=point.config["configurable"]["checkpoint_id"])
            assert again == ["1"]
    finally:
        agent.files.close()


def test_an_async_agent() -> None:
    agent = Agent()

    async def turn(command: str) -> list[str]:
        return shown(await agent.made(command).ainvoke({"messages": [HumanMessage("go")]}, agent.config()))

    try:
        asyncio.run(turn("echo 1 > f"))
        agent.new_process()
        assert asyncio.run(turn("cat f"))[-1] == "1"
    finally:
        agent.files.close()


def test_a_key_keeps_others_out() -> None:
    agent = Agent(key=b"secret")
    try:
        agent.turn("echo 1 > f")
        agent.options = {"key": b"another"}
        agent.new_process()
        with pytest.raises(SnapshotError, match="sealed with another key"):
            agent.turn("cat f")
    finally:
        agent.files.close()


def test_only_so_many_sandboxes_live() -> None:
    agent = Agent(max_conversations=2)
    try:
        for number in range(4):
            agent.turn(f"echo {number} > f", thread=str(number))
        assert len(agent.files._live) == 2
        assert [agent.turn("cat f", thread=str(number))[0] for number in range(4)] == ["0", "1", "2", "3"]
    finally:
        agent.files.close()
