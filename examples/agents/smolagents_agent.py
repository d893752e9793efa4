"""A smolagents CodeAgent whose code runs in a sandbox, where it repairs a repository.

The model is scripted: no key is needed. In a checkout of belljar: pip install '.[smolagents,python]'
"""

from typing import Any

from repository import BEGIN, DIFF, RIGHT, TASK, TEST, WRONG, overlay, repository
from smolagents import CodeAgent, tool
from smolagents.models import ChatMessage, MessageRole, Model

from belljar import Sandbox
from belljar.integrations.smolagents import BelljarExecutor

RUN = f"import subprocess\nprint(subprocess.run({TEST!r}, shell=True, capture_output=True, text=True).stdout)"
REPAIR = f"""
path = "/work/" + where("mean")
code = open(path).read()
open(path, "w").write(code.replace({WRONG!r}, {RIGHT!r}))
"""
SCRIPT = [f"Thought: look.\n<code>\n{RUN}\n</code>", f"Thought: repair.\n<code>\n{REPAIR}{RUN}\n</code>"]
SCRIPT.append("Thought: done.\n<code>\nfinal_answer('Repaired.')\n</code>")


class Scripted(Model):
    def generate(self, messages: list[Any], *_: Any, **__: Any) -> ChatMessage:
        said = sum(message.role == MessageRole.ASSISTANT for message in messages)
        return ChatMessage(role=MessageRole.ASSISTANT, content=SCRIPT[said])


@tool
def where(function: str) -> str:
    """Which file a function is in; this tool runs outside.

    Args:
        function: its name
    """
    return {"mean": "stats.py"}[function]


with repository() as directory, Sandbox(mounts=overlay(directory)) as sandbox:
    sandbox.exec(BEGIN).check()
    agent = CodeAgent(tools=[where], model=Scripted(), executor=BelljarExecutor(sandbox=sandbox), verbosity_level=0)
    print(agent.run(TASK))
    for step in agent.memory.steps[1:]:
        print(f"[code] {getattr(step, 'observations', '')}")
    print(sandbox.exec(DIFF).stdout)
