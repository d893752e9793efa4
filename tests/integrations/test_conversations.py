"""Variables of a conversation's programs: across turns, processes, interruptions and branches of the conversation."""

from __future__ import annotations

import asyncio
import threading
import time
from operator import add
from typing import Annotated, Any

import pytest
from langchain.agents import AgentState, create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware
from langchain.tools import ToolRuntime
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import InjectedToolCallId, tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.prebuilt import InjectedState
from langgraph.types import Command

from belljar import RunLimits, Sandbox
from belljar.integrations.langchain import ReplMiddleware
from tests.integrations.scripted import ScriptedModel, call

TOOLS = {"js": "eval", "python": "py_eval"}


@pytest.fixture(params=["js", "python"])
def language(request: pytest.FixtureRequest) -> str:
    return str(request.param)


class Talk:
    """One process after the other, or one, in which an agent with a REPL goes on with what checkpoints hold."""

    def __init__(self, language: str, own: list[Any] | None = None, **options: Any) -> None:
        self.language = language
        self.saver = InMemorySaver()
        self.own = own or []
        self.options = options
        self.repl: Any = None

    def new_process(self) -> None:
        """Nothing of the old one is left."""
        if self.repl is not None:
            self.repl.close()
        self.repl = ReplMiddleware(self.language, **self.options)  # type: ignore[arg-type]

    def agent(self, *programs: str, middleware: tuple[Any, ...] = ()) -> Any:
        if self.repl is None:
            self.new_process()
        script = [call(TOOLS[self.language], code=program) for program in programs] + [AIMessage("done")]
        return create_agent(
            ScriptedModel(script=script), self.own, middleware=[self.repl, *middleware], checkpointer=self.saver
        )

    def turn(self, *programs: str, thread: str = "1", **config: Any) -> list[str]:
        """What the model is shown of the programs of one turn."""
        agent = self.agent(*programs)
        state = agent.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": thread, **config}})
        return [str(message.content) for message in state["messages"] if message.type == "tool"][-len(programs) :]

    def checkpoint(self, thread: str = "1") -> str:
        """Where the conversation is now."""
        config = {"configurable": {"thread_id": thread}}
        return str(self.agent().get_state(config).config["configurable"]["checkpoint_id"])


SET = {
    "python": "rows = [1, 2]\ndef total(): return sum(rows)\nclass Box: size = 3\n"
    "box = Box()\nstream = (i for i in rows)",
    "js": "const rows = [1, 2]; function total() { return rows[0] + rows[1] }\nclass Box { size = 3 }\n"
    "const box = new Box(); const stream = rows[Symbol.iterator]()",
}
GET = {"python": "[total(), box.size]", "js": "[total(), box.size]"}


def test_another_process_goes_on(language: str) -> None:
    talk = Talk(language)
    try:
        talk.turn(SET[language])
        talk.new_process()
        (said,) = talk.turn(GET[language])
        note, value = said.rsplit("\n", 1)
        assert value == "[3, 3]"
        assert "stream" in note
        assert "Files" in note
        assert talk.turn(GET[language]) == ["[3, 3]"]  # told once
        talk.new_process()
        assert talk.turn(GET[language])[0].endswith("[3, 3]")  # what was restored was saved again
    finally:
        talk.repl.close()


def test_the_same_process_keeps_even_what_can_not_be_saved() -> None:
    talk = Talk("python")
    try:
        talk.turn("stream = iter(range(9)); next(stream)\ng = (i for i in 'abc'); next(g)")
        assert talk.turn("next(g)") == ["b"]
    finally:
        talk.repl.close()


def test_conversations_are_apart(language: str) -> None:
    talk = Talk(language)
    get = {"python": "'x' in globals()", "js": "'x' in globalThis"}[language]
    try:
        talk.turn({"python": "x = 1", "js": "let x = 1"}[language], thread="1")
        assert talk.turn(get, thread="2") == ["false"]
        assert talk.turn(get, thread="1") == ["true"]
    finally:
        talk.repl.close()


def test_without_a_checkpointer_each_invocation_is_a_conversation() -> None:
    repl = ReplMiddleware("python")
    try:
        for _ in range(2):
            script = [call("py_eval", code="x = globals().get('x', 0) + 1\nx"), AIMessage("done")]
            state = create_agent(ScriptedModel(script=script), [], middleware=[repl]).invoke(
                {"messages": [HumanMessage("go")]}
            )
            assert state["messages"][-2].content == "1"
            assert not {key for key in state if "belljar" in key}  # private
        assert not repl._conversations._talks  # nothing is left running
    finally:
        repl.close()


def test_an_earlier_point_of_the_conversation_is_gone_on_from() -> None:
    talk = Talk("python")
    try:
        talk.turn("x = 1")
        early = talk.checkpoint()
        talk.turn("x = 2")
        assert talk.turn("x", checkpoint_id=early)[0].endswith("1")
        assert talk.turn("x")[-1].endswith("1")  # that branch is the conversation now
    finally:
        talk.repl.close()


def test_two_branches_from_one_point_at_the_same_time() -> None:
    talk = Talk("python")
    try:
        talk.turn("x = 1")
        early = talk.checkpoint()
        said: dict[int, str] = {}

        def go_on(number: int) -> None:
            said[number] = talk.turn(f"x += {number}", "x", checkpoint_id=early)[-1]

        threads = [threading.Thread(target=go_on, args=(number,)) for number in (10, 20)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(240)
        assert sorted(text.rsplit("\n", 1)[-1] for text in said.values()) == ["11", "21"]
    finally:
        talk.repl.close()


@pytest.mark.parametrize("mode", ["thread", "turn"])
def test_a_turn_that_waits_for_a_person_goes_on_in_another_process(mode: str) -> None:
    @tool
    def send(text: str) -> str:
        """Send it."""
        return f"sent {text}"

    talk = Talk("python", [send], mode=mode)
    config: Any = {"configurable": {"thread_id": "1"}}
    ask = HumanInTheLoopMiddleware(interrupt_on={"send": True})
    script = [call("py_eval", code="x = 41"), call("send", text="a"), call("py_eval", code="x + 1"), AIMessage("done")]

    def agent(script: list[AIMessage]) -> Any:
        model = ScriptedModel(script=script)
        return create_agent(model, [send], middleware=[talk.repl, ask], checkpointer=talk.saver)

    talk.new_process()
    try:
        state = agent(script).invoke({"messages": [HumanMessage("go")]}, config)
        assert "__interrupt__" in state
        talk.new_process()
        state = agent(script[2:]).invoke(Command(resume={"decisions": [{"type": "approve"}]}), config)
        assert state["messages"][-2].content.endswith("42")
    finally:
        talk.repl.close()


def test_a_key_keeps_others_out() -> None:
    talk = Talk("python", key=b"secret")
    try:
        talk.turn("x = 41")
        talk.new_process()
        assert talk.turn("x + 1")[0].endswith("42")
        talk.options = {"key": b"another"}
        talk.new_process()
        (said,) = talk.turn("'x' in globals()")
        assert "sealed with another key" in said
        assert said.endswith("false")
    finally:
        talk.repl.close()


def test_variables_too_large_are_named() -> None:
    talk = Talk("python", max_saved_bytes=10_000)
    try:
        talk.turn("big = bytes(range(256)) * 1000; small = 1")
        talk.new_process()
        (said,) = talk.turn("small")
        assert "big (too large" in said
        assert said.endswith("1")
    finally:
        talk.repl.close()


@pytest.mark.battery(sample=1)
def test_a_program_that_is_ended_costs_only_its_own_step(language: str) -> None:
    talk = Talk(language, limits=RunLimits(wall_ms=5000))
    endless = {
        "python": "import time\nwhile True: time.sleep(0.01)",
        "js": "await new Promise((r) => setTimeout(r, 1e7))",
    }
    try:
        talk.turn({"python": "x = 41", "js": "let x = 41"}[language])
        said = talk.turn(endless[language], "x + 1")
        assert "WALL_LIMIT" in said[0]
        assert said[1].endswith("42")
    finally:
        talk.repl.close()


def test_a_given_sandbox_is_shared_its_variables_are_not() -> None:
    with Sandbox() as sandbox:
        talk = Talk("python", sandbox=sandbox)
        talk.turn("x = 1; open('/workspace/f', 'w').write('kept')", thread="1")
        assert talk.turn("'x' in globals(), open('/workspace/f').read()", thread="2") == ['[false, "kept"]']
        talk.new_process()
        (said,) = talk.turn("x", thread="1")
        assert "Files" not in said
        talk.repl.close()
        assert sandbox.exec("cat f").stdout == "kept"


def test_only_so_many_interpreters_live() -> None:
    talk = Talk("python", max_conversations=2)
    try:
        for number in range(4):
            talk.turn(f"x = {number}", thread=str(number))
        assert len(talk.repl._conversations._talks) == 2
        assert [talk.turn("x", thread=str(number))[0].split()[-1] for number in range(4)] == ["0", "1", "2", "3"]
    finally:
        talk.repl.close()


# Tools that need their agent.


@tool
def who(runtime: ToolRuntime, messages: Annotated[list[Any], InjectedState("messages")]) -> dict[str, Any]:
    """Who asks."""
    return {
        "thread": runtime.config["configurable"]["thread_id"],
        "messages": len(messages),
        "id": runtime.tool_call_id,
    }


@tool
def note(text: str, tool_call_id: Annotated[str, InjectedToolCallId]) -> Any:
    """Write it into the state."""
    return Command(update={"notes": [text], "messages": [ToolMessage(f"noted {text}", tool_call_id=tool_call_id)]})


class Notes(AgentState[Any]):
    notes: Annotated[list[str], add]


@tool
async def slow(text: str) -> str:
    """Say it later."""
    await asyncio.sleep(0)
    return text.upper()


def test_tools_get_what_only_the_agent_may_give(language: str) -> None:
    forged = {
        "python": "r = tools.who(messages=[1, 2, 3]); [r['thread'], r['messages'], r['id']]",
        "js": "const r = await tools.who({ messages: [1, 2, 3] }); [r.thread, r.messages, r.id]",
    }[language]
    talk = Talk(language, [who], tools=["who"])
    try:
        (said,) = talk.turn(forged)
        assert said.startswith('["1", 2, "call-')
    finally:
        talk.repl.close()


def test_what_a_tool_changes_in_the_agent_s_state_is_changed() -> None:
    repl = ReplMiddleware("python", tools=["note"])
    program = "[tools.note(text=t) for t in 'ab']"
    model = ScriptedModel(script=[call("py_eval", code=program), AIMessage("done")])
    try:
        agent: Any = create_agent(model, [note], middleware=[repl], state_schema=Notes)
        state = agent.invoke({"messages": [HumanMessage("go")], "notes": []})
    finally:
        repl.close()
    assert state["messages"][-2].content == '["noted a", "noted b"]'
    assert state["notes"] == ["a", "b"]


def test_async_tools_from_both_kinds_of_agents(language: str) -> None:
    program = {
        "python": "import asyncio\nawait asyncio.gather(*[tools.slow(text=t) for t in 'ab'])",
        "js": "await Promise.all(['a', 'b'].map((text) => tools.slow({ text })))",
    }[language]
    talk = Talk(language, [slow], tools=["slow"])
    try:
        assert talk.turn(program) == ['["A", "B"]']
        agent = talk.agent(program)
        config = {"configurable": {"thread_id": "2"}}
        state = asyncio.run(agent.ainvoke({"messages": [HumanMessage("go")]}, config))
        assert state["messages"][-2].content == '["A", "B"]'
    finally:
        talk.repl.close()


def test_a_cancelled_agent_stops_its_program() -> None:
    repl = ReplMiddleware("python")
    model = ScriptedModel(script=[call("py_eval", code="import time\nprint(1)\nwhile True: time.sleep(0.01)")])
    agent = create_agent(model, [], middleware=[repl], checkpointer=InMemorySaver())

    async def main() -> None:
        config: Any = {"configurable": {"thread_id": "1"}}
        task = asyncio.create_task(agent.ainvoke({"messages": [HumanMessage("go")]}, config))
        talks = repl._conversations._talks
        while not any(talk.interpreter.started for talk in talks.values()):
            await asyncio.sleep(0.02)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        (talk,) = talks.values()
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline:
            if not talk.interpreter.started:
                return
            await asyncio.sleep(0.02)
        raise AssertionError("it still runs")

    try:
        asyncio.run(main())
    finally:
        repl.close()


def test_the_repl_never_calls_itself_and_bad_options_are_told() -> None:
    talk = Talk("python", tools=["py_eval"])
    try:
        assert "no tool" in talk.turn("tools.py_eval(code='1')")[0]
    finally:
        talk.repl.close()
    for options in ({"language": "perl"}, {"mode": "ever"}, {"max_saved_bytes": 0}):
        with pytest.raises(ValueError, match=r"language|mode|max_bytes"):
            ReplMiddleware(**options)


def test_what_a_program_says_is_cut() -> None:
    talk = Talk("python", max_output=100)
    try:
        (said,) = talk.turn("print('x' * 5000)")
        assert "4900 characters left out" in said
        assert len(said) < 200
    finally:
        talk.repl.close()
