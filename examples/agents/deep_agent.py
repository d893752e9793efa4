"""A Deep Agent that repairs a repository it can't touch. The model is scripted: no key is needed.

pip install 'belljar[langchain]'
"""

import tempfile
from pathlib import Path
from typing import Any

from deepagents import create_deep_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from belljar import Mount, Sandbox
from belljar.integrations.deepagents import BelljarSandbox


class Scripted(BaseChatModel):
    """Says what it was told to say, one message after the other."""

    script: list[AIMessage]

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        said = sum(message.type == "ai" for message in messages)
        return ChatResult(generations=[ChatGeneration(message=self.script[said])])

    def bind_tools(self, *_: Any, **__: Any) -> Any:
        return self

    @property
    def _llm_type(self) -> str:
        return "scripted"


def call(name: str, **args: Any) -> AIMessage:
    return AIMessage("", tool_calls=[{"name": name, "args": args, "id": name, "type": "tool_call"}])


SCRIPT = [
    call("execute", command="cd /work && cat greet.sh && bash greet.sh"),
    call("edit_file", file_path="/work/greet.sh", old_string="Helo", new_string="Hello"),
    call("execute", command="cd /work && bash greet.sh && git diff"),
    AIMessage("Fixed the greeting."),
]

with tempfile.TemporaryDirectory() as repository:
    (Path(repository) / "greet.sh").write_text("echo Helo world\n")
    with Sandbox(mounts={"/work": Mount.overlay(Mount.host(repository))}) as sandbox:
        sandbox.exec(
            "cd /work && git init -q && git add . && git -c user.name=me -c user.email=me@example.com commit -qm base"
        ).check()
        agent = create_deep_agent(Scripted(script=SCRIPT), backend=BelljarSandbox(sandbox=sandbox))
        state = agent.invoke({"messages": [HumanMessage("Fix the typo.")]})
    for message in state["messages"]:
        print(f"[{message.type}] {message.content}")
    print("on the host it is still:", (Path(repository) / "greet.sh").read_text().strip())
