"""An Inspect evaluation: a sample is a repository with a failing test, its score whether an agent repaired it.

The model is scripted: no key is needed. In a checkout of belljar: pip install '.[inspect,python]'
"""

import tempfile
from typing import Any

from inspect_ai import Task, eval
from inspect_ai.dataset import Sample
from inspect_ai.model import ChatMessage, ModelAPI, ModelOutput, modelapi
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import SandboxEnvironmentSpec, sandbox
from repository import BEGIN, DIFF, RIGHT, TASK, TEST, WRONG, repository

from belljar.integrations.inspect_ai import BelljarConfig


@modelapi(name="scripted")
class Scripted(ModelAPI):
    """Runs a command, then another one, then says that it is done."""

    async def generate(self, input: list[ChatMessage], *_: Any, **__: Any) -> ModelOutput:
        commands = [TEST, f"sed -i 's/{WRONG}/{RIGHT}/' /work/stats.py; {TEST}"]
        said = sum(message.role == "assistant" for message in input)
        if said == len(commands):
            return ModelOutput.from_content("scripted", "Repaired.")
        return ModelOutput.for_tool_call("scripted", "bash", {"command": commands[said]})

    async def count_text_tokens(self, text: str) -> int:
        return len(text) // 4  # Inspect's own count needs a table that it would download


@scorer(metrics=[accuracy()])
def repaired() -> Any:
    async def score(state: TaskState, target: Target) -> Score:
        tests = (await sandbox().exec(["bash", "-c", TEST])).stdout
        diff = (await sandbox().exec(["bash", "-c", DIFF])).stdout
        return Score(value=tests == "OK\n", explanation=diff)

    return score


with repository() as directory, tempfile.TemporaryDirectory() as logs:
    task = Task(
        dataset=[Sample(TASK, setup=f"#!/bin/bash\n{BEGIN}")],
        solver=[use_tools(bash(timeout=60)), generate()],
        scorer=repaired(),
        sandbox=SandboxEnvironmentSpec("belljar", BelljarConfig(mounts={"/work": str(directory)})),
    )
    (log,) = eval(task, model="scripted/model", log_dir=logs, display="none")
    assert log.status == "success", log.error
    assert log.samples is not None
    for message in log.samples[0].messages:
        print(f"[{message.role}] {message.text}")
    scores = log.samples[0].scores or {}
    print(scores["repaired"].explanation)
    print("score:", scores["repaired"].value)
