"""LangChain: a tool with which the model writes a program that calls the agent's own tools, `ReplMiddleware`.

One program can search, filter, join and count; only what it prints or returns goes back to the model.

>>> agent = create_agent(model, tools=[search], middleware=[ReplMiddleware("python", tools=["search"])])
"""

from __future__ import annotations

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Final, Literal

from langchain.agents.middleware import AgentMiddleware
from langchain.tools import ToolRuntime
from langchain_core.tools import BaseTool, StructuredTool

from belljar.abi.limits import RunLimits
from belljar.api.errors import SandboxError
from belljar.api.interpreter import Interpreter
from belljar.api.js import JsInterpreter
from belljar.api.runs import RunResult
from belljar.api.sandbox import Sandbox

Language = Literal["python", "js"]
Mode = Literal["thread", "turn", "call"]

_NAMES: Final = {"python": "py_eval", "js": "eval"}
_PRELUDE: Final = {
    "python": """
class _Tools:
    def __dir__(self): return _tool_names
    def __getattr__(self, name):
        if name not in _tool_names: raise AttributeError(f"no tool {name!r}; there are: {', '.join(_tool_names)}")
        def call(**arguments): return call_tool(name, arguments)
        return call
tools = _Tools()
""",
    "js": """
globalThis.tools = new Proxy({}, {
  ownKeys: () => _tool_names,
  get: (_, name) => {
    if (typeof name !== "string" || name === "then") return undefined
    if (!_tool_names.includes(name)) throw new Error(`no tool ${name}; there are: ${_tool_names.join(", ")}`)
    return (args = {}) => call_tool(name, args)
  },
})
""",
}
_HOW: Final = {
    "python": "Run a Python program. The last expression, and what it prints, is shown to you. ",
    "js": "Run a JavaScript program (top-level await). The last expression, and what it logs, is shown to you. ",
}
_STATE: Final = {
    "thread": "Variables stay for the whole conversation.",
    "turn": "Variables stay until you answer the user.",
    "call": "Each program starts afresh.",
}
SESSIONS_MAX: Final = 32


class ToolCallLimit(Exception):
    """The program called tools too often."""


class ReplMiddleware(AgentMiddleware[Any, Any, Any]):
    """Adds the tool `py_eval` (Python) or `eval` (JavaScript) to an agent.

    - `tools`: which of the agent's tools a program may call, by name, or tools of its own; none unless said.
    - `max_tool_calls`: by one program; `limits`: CPU, time, memory and calls of one program.
    - `mode`: how long variables live: "thread" (a conversation), "turn" (one invocation of the agent), "call".
    - `sandbox`: what programs run in; each conversation has one of its own if you give none.
    """

    def __init__(
        self,
        language: Language = "python",
        *,
        tools: Sequence[str | BaseTool | Callable[..., Any]] = (),
        max_tool_calls: int = 256,
        mode: Mode = "thread",
        limits: RunLimits | None = None,
        sandbox: Sandbox | None = None,
    ) -> None:
        super().__init__()
        self._language = language
        self._allowed = [tool for tool in tools if isinstance(tool, str)]
        own = [tool for tool in tools if not isinstance(tool, str)]
        self._own = {tool.name: tool for tool in (_as_tool(tool) for tool in own)}
        self._max_tool_calls = max_tool_calls
        self._mode = mode
        self._limits = limits
        self._sandbox = sandbox
        self._sandboxes: OrderedDict[str, Sandbox] = OrderedDict()
        self.tools = [self._tool()]

    @property
    def name(self) -> str:
        return f"{type(self).__name__}[{self._language}]"

    def _tool(self) -> BaseTool:
        names = [*self._allowed, *self._own]
        which = f"It can call these tools as tools.NAME(...): {', '.join(names)}. " if names else ""
        keywords = {"python": "Arguments are keywords. ", "js": "They take one object and give a promise. "}

        def evaluate(code: str, runtime: ToolRuntime) -> str:
            return self._evaluate(code, runtime, None)

        async def evaluate_async(code: str, runtime: ToolRuntime) -> str:
            loop = asyncio.get_running_loop()
            return await asyncio.to_thread(self._evaluate, code, runtime, loop)

        return StructuredTool.from_function(
            evaluate,
            coroutine=evaluate_async,
            name=_NAMES[self._language],
            description=_HOW[self._language] + which + (keywords[self._language] if names else "") + _STATE[self._mode],
        )

    def before_agent(self, state: Any, runtime: Any) -> None:
        """A new turn begins."""
        if self._mode == "turn":
            for sandbox in [*self._sandboxes.values(), *([self._sandbox] if self._sandbox else [])]:
                self._interpreter(sandbox).reset()

    def close(self) -> None:
        """End the sandboxes that were made for conversations."""
        while self._sandboxes:
            self._sandboxes.popitem()[1].close()

    def _sandbox_of(self, thread: str) -> Sandbox:
        if self._sandbox is not None:
            return self._sandbox
        if thread not in self._sandboxes:
            while len(self._sandboxes) >= SESSIONS_MAX:
                self._sandboxes.popitem(last=False)[1].close()
            self._sandboxes[thread] = Sandbox()
        self._sandboxes.move_to_end(thread)
        return self._sandboxes[thread]

    def _interpreter(self, sandbox: Sandbox) -> Interpreter | JsInterpreter:
        return sandbox.python if self._language == "python" else sandbox.js

    def _evaluate(self, code: str, runtime: ToolRuntime, loop: asyncio.AbstractEventLoop | None) -> str:
        known = {tool.name: tool for tool in runtime.tools} if runtime.tools else {}
        callable_tools = {name: known[name] for name in self._allowed if name in known} | self._own
        interpreter = self._interpreter(self._sandbox_of(str(_thread(runtime))))
        calls = 0

        def call_tool(name: str, arguments: dict[str, Any]) -> Any:
            nonlocal calls
            calls += 1
            if calls > self._max_tool_calls:
                raise ToolCallLimit(f"a program may call tools {self._max_tool_calls} times")
            tool = callable_tools.get(name) or callable_tools.get(_snake(name))
            if tool is None:
                raise LookupError(f"no tool {name!r}")
            if loop is None:
                return _plain(tool.invoke(arguments, runtime.config))
            return _plain(asyncio.run_coroutine_threadsafe(tool.ainvoke(arguments, runtime.config), loop).result())

        names = list(callable_tools)
        if self._language == "js":
            names += [camel for name in callable_tools if (camel := _camel(name)) != name]
        try:
            if self._mode == "call":
                interpreter.reset()
            bound = {"call_tool": call_tool, "_tool_names": names}
            prelude = interpreter.run(_PRELUDE[self._language], globals=bound)
            if prelude.error is not None:
                return f"Error: {prelude.error}"
            return show(interpreter.run(code, limits=self._limits))
        except SandboxError as error:
            return f"Error: {error}"


def show(result: RunResult) -> str:
    """What a model sees of a run."""
    parts = [text.rstrip("\n") for text in (result.stdout, result.stderr) if text]
    if result.error is not None:
        parts.append(result.error.stack.rstrip() or f"{result.error.name}: {result.error.message}")
        if result.error.code not in ("RUNTIME_ERROR", "SYNTAX_ERROR"):
            parts.append(f"({result.error.code})")
    else:
        value = result.value
        if value is not None:
            parts.append(value if isinstance(value, str) else json.dumps(value, default=str, ensure_ascii=False))
    return "\n".join(parts) or "(no output)"


def _as_tool(tool: BaseTool | Callable[..., Any]) -> BaseTool:
    return tool if isinstance(tool, BaseTool) else StructuredTool.from_function(tool)


def _thread(runtime: ToolRuntime) -> object:
    return runtime.config.get("configurable", {}).get("thread_id", "")


def _plain(value: Any) -> Any:
    """What a tool gives, as data that can cross."""
    return value if isinstance(value, str | bytes | int | float | bool | type(None)) else json.loads(_dump(value))


def _dump(value: Any) -> str:
    return json.dumps(value, default=lambda other: other.model_dump() if hasattr(other, "model_dump") else str(other))


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)


def _snake(name: str) -> str:
    return re.sub(r"[A-Z]", lambda match: f"_{match[0].lower()}", name)
