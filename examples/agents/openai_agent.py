"""An OpenAI Agents `SandboxAgent` that repairs a repository. The model is scripted: no key is needed.

In a checkout of belljar: pip install '.[openai-agents,python]'
"""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

from agents import ModelResponse, RunConfig, Runner, Usage
from agents.models.interface import Model
from agents.run_config import SandboxRunConfig
from agents.sandbox import SandboxAgent
from agents.sandbox.capabilities import Shell
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from repository import BEGIN, DIFF, RIGHT, TASK, TEST, WRONG, overlay, repository

from belljar.integrations.openai_agents import BelljarSandboxClient

COMMANDS = [TEST, f"sed -i 's/{WRONG}/{RIGHT}/' /work/stats.py", TEST]


class Scripted(Model):
    """Runs its commands one after the other, then says that it is done."""

    def __init__(self) -> None:
        self.count = 0

    async def get_response(self, *_: Any, **__: Any) -> ModelResponse:
        self.count += 1
        if self.count <= len(COMMANDS):
            arguments = json.dumps({"cmd": COMMANDS[self.count - 1]})
            output: Any = ResponseFunctionToolCall(
                type="function_call", name="exec_command", call_id=f"call-{self.count}", arguments=arguments
            )
        else:
            text = ResponseOutputText(type="output_text", text="Repaired.", annotations=[])
            output = ResponseOutputMessage(
                id="done", type="message", role="assistant", status="completed", content=[text]
            )
        return ModelResponse(output=[output], usage=Usage(), response_id=None)

    def stream_response(self, *_: Any, **__: Any) -> AsyncIterator[Any]:
        raise NotImplementedError


async def main() -> None:
    with repository() as directory:
        client = BelljarSandboxClient(mounts=overlay(directory))
        session = await client.create()
        async with session:
            await session.exec(BEGIN)
            agent = SandboxAgent(name="repairer", model=Scripted(), capabilities=[Shell()])
            config = RunConfig(sandbox=SandboxRunConfig(session=session), tracing_disabled=True)
            result = await Runner.run(agent, TASK, run_config=config)
            for item in result.new_items:
                print(f"[{item.type}] {getattr(item, 'output', '')}")
            print(result.final_output)
            print((await session.exec(DIFF)).stdout.decode())
        await client.delete(session)


asyncio.run(main())
