"""An agent that has nothing but an MCP client: `belljar mcp` gives it a sandbox, in which it repairs a repository.

The model is scripted: no key is needed. In a checkout of belljar: pip install '.[mcp,python]'
"""

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

from mcp import Client, StdioServerParameters
from repository import BEGIN, DIFF, RIGHT, TASK, TEST, WRONG, repository


def model(task: str, tools: list[str]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Says which tool to call next. Yours would be asked with the task, the tools and what they said so far."""
    assert task
    assert {"exec", "edit_file"} <= set(tools)
    yield "exec", {"command": TEST}
    yield "edit_file", {"path": "/work/stats.py", "old": WRONG, "new": RIGHT}
    yield "exec", {"command": TEST}


async def main() -> None:
    with repository() as directory:
        mount = f"{directory}:/work:overlay"
        server = StdioServerParameters(command=sys.executable, args=["-m", "belljar.cli", "mcp", "--mount", mount])
        async with Client(server) as client:
            await client.call_tool("exec", {"command": BEGIN})
            tools = [tool.name for tool in (await client.list_tools()).tools]
            for name, arguments in model(TASK, tools):
                result = await client.call_tool(name, arguments)
                print(f"[{name}] {result.structured_content}")
            print((await client.call_tool("exec", {"command": DIFF})).structured_content["stdout"])


asyncio.run(main())
