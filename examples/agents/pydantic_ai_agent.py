"""A pydantic-ai agent that repairs a repository. The model is scripted: no key is needed.

In a checkout of belljar: pip install '.[pydantic-ai,python]'
"""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel
from repository import BEGIN, DIFF, RIGHT, TASK, TEST, WRONG, overlay, repository

from belljar.integrations.pydantic_ai import BelljarWorkspace

SCRIPT = [
    ToolCallPart("shell", {"command": TEST}),
    ToolCallPart("edit", {"path": "/work/stats.py", "old": WRONG, "new": RIGHT}),
    ToolCallPart("shell", {"command": TEST}),
    TextPart("The mean was divided by one too many."),
]


def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
    return ModelResponse([SCRIPT[sum(isinstance(message, ModelResponse) for message in messages)]])


async def main() -> None:
    with repository() as directory:
        workspace = BelljarWorkspace(mounts=overlay(directory))
        await workspace.run(BEGIN, shell=True)  # noqa: S604 - a sandbox's shell
        agent = Agent(FunctionModel(model))

        @agent.tool_plain
        async def shell(command: str) -> str:
            result = await workspace.run(command, shell=True)  # noqa: S604
            print(f"$ {command}\n{result.stdout}", end="")
            return result.stdout

        @agent.tool_plain
        async def edit(path: str, old: str, new: str) -> None:
            text = (await workspace.read_bytes(path)).decode()
            await workspace.write_bytes(path, text.replace(old, new).encode())

        print((await agent.run(TASK)).output)
        print((await workspace.run(DIFF, shell=True)).stdout)  # noqa: S604
        await workspace.destroy()


asyncio.run(main())
