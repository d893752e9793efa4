"""Deep Agents' skills and memory in a sandbox's files, and their code as packages in the Python REPL."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from deepagents import create_deep_agent
from deepagents.middleware.skills import SkillsMiddleware
from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.checkpoint.memory import InMemorySaver

from belljar import Sandbox
from belljar.integrations.deepagents import BelljarFiles, BelljarSandbox
from belljar.integrations.langchain import ReplMiddleware
from tests.integrations.scripted import ScriptedModel, call

SKILL = "---\nname: {}\ndescription: Counts the words of a text.\n---\nUse it on texts.\n"
FILES = {
    "/skills/base/word-count/SKILL.md": SKILL.format("word-count"),
    "/skills/base/word-count/counting.py": "from . import shared\ndef count(text): return len(shared.words(text))\n",
    "/skills/base/word-count/shared.py": "def words(text): return text.split()\n",
    "/skills/user/stems/SKILL.md": SKILL.format("stems"),
    "/skills/user/stems/__init__.py": "from .stem import stem\n",
    "/skills/user/stems/stem.py": "def stem(word): return word.removesuffix('s')\n",
    "/skills/user/broken/SKILL.md": SKILL.format("broken"),
    "/skills/user/broken/bad.py": "import not_there\n",
    "/memory/AGENTS.md": "The user prefers short answers.\n",
}
SOURCES = ["/skills/base/", "/skills/user/"]


@pytest.fixture(scope="module")
def sandbox() -> Iterator[Sandbox]:
    with Sandbox(files=FILES) as made:
        yield made


def ask(repl: ReplMiddleware, backend: Any, *programs: str) -> tuple[list[str], ScriptedModel]:
    """What the model is shown of each program."""
    model = ScriptedModel(script=[*(call("py_eval", code=code) for code in programs), AIMessage("done")])
    skills = SkillsMiddleware(backend=backend, sources=SOURCES)
    agent = create_agent(model, [], middleware=[skills, repl], checkpointer=InMemorySaver())
    try:
        state = agent.invoke({"messages": [HumanMessage("go")]}, {"configurable": {"thread_id": "1"}})
    finally:
        repl.close()
    return [str(message.content) for message in state["messages"] if message.type == "tool"], model


def test_skills_are_packages_in_the_repl(sandbox: Sandbox) -> None:
    said, model = ask(
        ReplMiddleware("python", sandbox=sandbox),
        BelljarFiles(sandbox=sandbox),
        "import skills.word_count\nskills.word_count.counting.count('one two three')",
        "from skills.word_count import counting\ncounting.count('one')",
        "import skills.stems\nskills.stems.stem('bells')",
        "import skills.word_count\nskills.word_count.nothing",
        "from skills.broken import bad",
        "skills.word_count.shared.words('a b')",
    )
    assert said[:3] == ["3", "1", "bell"]
    assert "the skill in /skills/base/word-count has no module 'nothing'" in said[3]
    assert "No module named 'not_there'" in said[4]
    assert said[5] == '["a", "b"]'
    prompt = str(model.heard[0][0].content)
    assert "Counts the words of a text" in prompt
    assert "import skills.word_count, skills.broken, skills.stems" in prompt


def test_programs_of_the_shell_import_them_too(sandbox: Sandbox) -> None:
    ask(ReplMiddleware("python", sandbox=sandbox), BelljarFiles(sandbox=sandbox), "1")
    assert sandbox.exec(["python3", "-c", "from skills.stems import stem; print(stem('jars'))"]).stdout == "jar\n"


def test_skills_that_are_not_in_the_sandbox_say_so(sandbox: Sandbox) -> None:
    said, _ = ask(ReplMiddleware("python"), BelljarFiles(sandbox=sandbox), "import skills.stems")
    assert "has no /skills/user/stems" in said[0]


def test_a_deep_agent_with_skills_and_memory_in_one_sandbox(sandbox: Sandbox) -> None:
    async def main() -> tuple[list[str], str]:
        script = [call("py_eval", code="from skills.word_count.counting import count\ncount('a b')"), AIMessage("done")]
        model = ScriptedModel(script=script)
        repl = ReplMiddleware("python", sandbox=sandbox)
        agent = create_deep_agent(
            model,
            backend=BelljarSandbox(sandbox=sandbox),
            skills=SOURCES,
            memory=["/memory/AGENTS.md"],
            middleware=[repl],
        )
        state = await agent.ainvoke({"messages": [HumanMessage("go")]})
        repl.close()
        said = [str(message.content) for message in state["messages"] if message.type == "tool"]
        return said, str(model.heard[0][0].content)

    said, prompt = asyncio.run(main())
    assert said == ["2"]
    assert "prefers short answers" in prompt
    assert "import skills.word_count" in prompt
