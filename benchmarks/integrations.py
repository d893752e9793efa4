"""What each adapter adds to a call of the bare API: the same command, turn by turn. Target: at most 1 ms.

Shown are the median and the fastest of all; what is added is the difference of the fastest, which other load on the
machine disturbs least.

python -m benchmarks.integrations
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any

from langchain.tools import ToolRuntime
from mcp import Client

from belljar import AsyncSandbox, Sandbox
from belljar.integrations.commands import CommandSandbox
from belljar.integrations.deepagents import BelljarSandbox
from belljar.integrations.inspect_ai import BelljarSandboxEnvironment
from belljar.integrations.langchain import ReplMiddleware
from belljar.integrations.mcp import make_server
from belljar.integrations.openai_agents import BelljarSandboxClient
from belljar.integrations.pydantic_ai import BelljarWorkspace
from belljar.integrations.smolagents import BelljarExecutor

ROUNDS = 200


def repl(language: Any, sandbox: Sandbox) -> Callable[[], object]:
    """A call of a REPL's tool, as an agent makes it."""
    middleware = ReplMiddleware(language, sandbox=sandbox)
    state = {f"belljar_{language}_token": "bench"}
    runtime: Any = ToolRuntime(
        state=state, context=None, config={}, stream_writer=lambda _: None, tool_call_id="1", store=None
    )
    (tool,) = middleware.tools
    return lambda: tool.func("1 + 1", runtime)  # type: ignore[attr-defined]


async def main() -> None:
    bare = await AsyncSandbox().start()
    workspace = BelljarWorkspace()
    environment = (await BelljarSandboxEnvironment.sample_init("bench", None, {}))["default"]
    client = BelljarSandboxClient()
    session = await client.create()
    deep_async = BelljarSandbox(sandbox=bare)
    with Sandbox() as plain:
        deep, smol = BelljarSandbox(sandbox=plain), BelljarExecutor(sandbox=plain)
        async with session, Client(make_server()) as mcp:
            asynchronous: dict[str, Callable[[], Awaitable[object]]] = {
                "bare (async)": lambda: bare.exec("echo hi"),
                "Deep Agents (async)": lambda: deep_async.aexecute("echo hi"),
                "pydantic-ai": lambda: workspace.run("echo hi", shell=True),  # noqa: S604
                "Inspect": lambda: environment.exec(["bash", "-c", "echo hi"]),
                "OpenAI Agents": lambda: session.exec("echo hi"),
                "commands": lambda: CommandSandbox(bare).execute_command("echo hi"),
                "MCP, in process": lambda: mcp.call_tool("exec", {"command": "echo hi"}),
            }
            plainly: dict[str, Callable[[], object]] = {
                "bare (sync)": lambda: plain.exec("echo hi"),
                "Deep Agents (sync)": lambda: deep.execute("echo hi"),
                "bare (python)": lambda: plain.python.run("1 + 1"),
                "LangChain (python)": repl("python", plain),
                "smolagents (python)": lambda: smol("1 + 1"),
                "bare (js)": lambda: plain.js.run("1 + 1"),
                "LangChain (js)": repl("js", plain),
            }
            times: dict[str, list[float]] = {name: [] for name in [*asynchronous, *plainly]}
            for _ in range(ROUNDS):
                for name, run in asynchronous.items():
                    began = time.perf_counter()
                    await run()
                    times[name].append(time.perf_counter() - began)
                for name, call in plainly.items():
                    began = time.perf_counter()
                    call()
                    times[name].append(time.perf_counter() - began)
    await workspace.destroy()
    await client.delete(session)
    await BelljarSandboxEnvironment.sample_cleanup("bench", None, {"default": environment}, False)
    await bare.close()
    medians = {name: sorted(values)[ROUNDS // 2] * 1e3 for name, values in times.items()}
    fastest = {name: min(values) * 1e3 for name, values in times.items()}
    for name, median in medians.items():
        kind = name.partition("(")[2].rstrip(")")
        base = fastest[f"bare ({kind})" if f"bare ({kind})" in fastest else "bare (async)"]
        print(f"{name:22} {median:7.3f} ms {fastest[name]:7.3f} ms   adds {fastest[name] - base:+7.3f} ms")


if __name__ == "__main__":
    asyncio.run(main())
