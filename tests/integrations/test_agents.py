"""One agent per framework, with a scripted model: it repairs a repository that it can't touch; the diff comes back."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from deepagents import create_deep_agent
from inspect_ai import Task, eval_async
from inspect_ai.dataset import Sample
from inspect_ai.model import ModelOutput, get_model
from inspect_ai.scorer import Score, Target, accuracy, scorer
from inspect_ai.solver import TaskState, generate, use_tools
from inspect_ai.tool import bash
from inspect_ai.util import sandbox as inspect_sandbox
from langchain_core.messages import AIMessage, HumanMessage
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
from pydantic_ai.models.function import AgentInfo, FunctionModel

from belljar import Sandbox
from belljar.integrations.deepagents import BelljarSandbox
from belljar.integrations.pydantic_ai import BelljarWorkspace
from tests.integrations import repo
from tests.integrations.scripted import ScriptedModel, call

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")]

HERE = "/workspace/work"
"""Where Inspect, which copies a sample's files, has the repository."""


def test_deep_agents(tmp_path: Path) -> None:
    script = [
        call("execute", command=repo.RUN_TESTS),
        call("edit_file", file_path="/work/stats.py", old_string=repo.WRONG, new_string=repo.RIGHT),
        call("execute", command=repo.RUN_TESTS),
        AIMessage("Fixed."),
    ]
    with Sandbox(mounts=repo.make(tmp_path / "repo")) as sandbox:
        sandbox.exec(repo.BASELINE).check()
        agent = create_deep_agent(ScriptedModel(script=script), backend=BelljarSandbox(sandbox=sandbox))
        state = agent.invoke({"messages": [HumanMessage("Fix the failing test.")]})
        diff = sandbox.exec(repo.DIFF).stdout
    told = [str(message.content) for message in state["messages"] if message.type == "tool"]
    assert "FAILED" in told[0]
    assert "OK" in told[2]
    assert diff.endswith(repo.EXPECTED)
    repo.check_untouched(tmp_path / "repo")


async def test_pydantic_ai(tmp_path: Path) -> None:
    workspace = BelljarWorkspace(mounts=repo.make(tmp_path / "repo"))
    await workspace.run(repo.BASELINE, shell=True)  # noqa: S604
    script: list[ToolCallPart | TextPart] = [
        ToolCallPart("shell", {"command": repo.RUN_TESTS}),
        ToolCallPart("edit", {"path": "/work/stats.py", "old": repo.WRONG, "new": repo.RIGHT}),
        ToolCallPart("shell", {"command": repo.RUN_TESTS}),
        TextPart("Fixed."),
    ]

    def model(messages: list[ModelMessage], _: AgentInfo) -> ModelResponse:
        return ModelResponse([script[sum(isinstance(message, ModelResponse) for message in messages)]])

    told: list[str] = []
    agent = Agent(FunctionModel(model))

    @agent.tool_plain
    async def shell(command: str) -> str:
        result = await workspace.run(command, shell=True)  # noqa: S604
        told.append(result.stdout)
        return result.stdout

    @agent.tool_plain
    async def edit(path: str, old: str, new: str) -> None:
        text = (await workspace.read_bytes(path)).decode()
        await workspace.write_bytes(path, text.replace(old, new).encode())

    assert (await agent.run("Fix the failing test.")).output == "Fixed."
    diff = (await workspace.run(repo.DIFF, shell=True)).stdout  # noqa: S604
    await workspace.destroy()
    assert ["FAILED" in told[0], "OK" in told[1]] == [True, True]
    assert diff.endswith(repo.EXPECTED)
    repo.check_untouched(tmp_path / "repo")


def here(command: str) -> str:
    return command.replace("/work", HERE)


async def test_inspect(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # Its mock model counts tokens with a table that it would download.
    monkeypatch.setattr("inspect_ai.model._model.count_text_tokens", len)
    directory = tmp_path / "repo"
    repo.make(directory)
    files = {f"{HERE}/{path.name}": path.read_text() for path in directory.iterdir()}

    @scorer(metrics=[accuracy()])
    def repaired() -> Any:
        async def score(state: TaskState, target: Target) -> Score:
            diff = (await inspect_sandbox().exec(["bash", "-c", here(repo.DIFF)])).stdout
            tests = (await inspect_sandbox().exec(["bash", "-c", here(repo.RUN_TESTS)])).stdout
            return Score(value=diff.endswith(repo.EXPECTED) and tests == "OK\n", explanation=diff)

        return score

    def use_bash(command: str) -> ModelOutput:
        return ModelOutput.for_tool_call("mockllm/model", "bash", {"command": here(command)})

    model = get_model(
        "mockllm/model",
        custom_outputs=[
            use_bash(repo.RUN_TESTS),
            use_bash(f"sed -i 's/{repo.WRONG}/{repo.RIGHT}/' /work/stats.py; {repo.RUN_TESTS}"),
            ModelOutput.from_content("mockllm/model", "Fixed."),
        ],
    )
    task = Task(
        dataset=[Sample("Fix the failing test.", files=files, setup=f"#!/bin/bash\n{here(repo.BASELINE)}")],
        solver=[use_tools(bash(timeout=60)), generate()],
        scorer=repaired(),
        sandbox="belljar",
    )
    (log,) = await eval_async(task, model=model, log_dir=str(tmp_path / "logs"))
    assert log.status == "success", log.error
    assert log.results is not None
    assert log.results.scores[0].metrics["accuracy"].value == 1, json.dumps(log.samples[0].scores, default=str)  # type: ignore[index]
    repo.check_untouched(directory)
