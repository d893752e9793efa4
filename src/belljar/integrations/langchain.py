"""LangChain: a tool with which the model writes a program that calls the agent's own tools, `ReplMiddleware`.

One program can search, filter, join and count; only what it prints or returns goes back to the model.

>>> agent = create_agent(model, tools=[search], middleware=[ReplMiddleware("python", tools=["search"])])
"""

from __future__ import annotations

import asyncio
import itertools
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Annotated, Any, Final, Literal, NotRequired, get_args, get_type_hints

from belljar.abi.limits import RunLimits
from belljar.api.await_host import run_awaitable
from belljar.api.clock_host import new_id
from belljar.api.errors import SandboxError
from belljar.api.runs import RunResult
from belljar.api.sandbox import Sandbox
from belljar.api.saved import MAX_BYTES, check_size
from belljar.integrations.conversations import Conversations, Language
from belljar.integrations.extras import needs
from belljar.integrations.shown import texts
from belljar.integrations.skills import link, python_names
from belljar.store.store import Store

with needs("langchain"):
    from langchain.agents.middleware import AgentMiddleware, AgentState
    from langchain.agents.middleware.types import PrivateStateAttr
    from langchain.tools import ToolRuntime
    from langchain_core.messages import SystemMessage, ToolMessage
    from langchain_core.tools import BaseTool, InjectedToolCallId, StructuredTool
    from langgraph.config import get_config
    from langgraph.prebuilt import ToolNode
    from langgraph.types import Command

Mode = Literal["thread", "turn", "call"]

_NAMES: Final = {"python": "py_eval", "js": "eval"}
_PRELUDE: Final = {
    "python": """
class _Tools:
    _names = NAMES
    def __dir__(self): return self._names
    def __getattr__(self, name):
        if name not in self._names: raise AttributeError(f"no tool {name!r}; there are: {', '.join(self._names)}")
        def call(given={}, /, **arguments): return call_tool(name, {**given, **arguments})
        return call
tools = _Tools()
""",
    "js": """
{
  const names = NAMES
  globalThis.tools = new Proxy({}, {
    ownKeys: () => names,
    get: (_, name) => {
      if (typeof name !== "string" || name === "then") return undefined
      if (!names.includes(name)) throw new Error(`no tool ${name}; there are: ${names.join(", ")}`)
      return (given = {}) => call_tool(name, given)
    },
  })
}
""",
}
_GIVEN: Final = ("tools", "_Tools", "call_tool")
"""The names that the prelude and we bind: no variables of a program's."""
_HOW: Final = {
    "python": "Run a Python program (top-level await works). The last expression, and what it prints, is shown to you.",
    "js": "Run a JavaScript program (top-level await works). The last expression, and what it logs, is shown to you.",
}
_CALLS: Final = {
    "python": "It can call tools as tools.NAME(argument=value) or await tools.NAME(argument=value): {}.",
    "js": "It can call tools as await tools.NAME({{ argument: value }}): {}.",
}
_SKILLS: Final = "The Python code of skills can be imported in {}: import {}."
_STATE: Final = {
    "thread": "Variables stay for the whole conversation.",
    "turn": "Variables stay until you answer the user.",
    "call": "Each program starts afresh.",
}


class _PythonState(AgentState[Any]):
    belljar_python_token: NotRequired[Annotated[str, PrivateStateAttr]]
    belljar_python_saved: NotRequired[Annotated[bytes | None, PrivateStateAttr]]


class _JsState(AgentState[Any]):
    belljar_js_token: NotRequired[Annotated[str, PrivateStateAttr]]
    belljar_js_saved: NotRequired[Annotated[bytes | None, PrivateStateAttr]]


class ToolCallLimit(Exception):
    """The program called tools too often."""


class ReplMiddleware(AgentMiddleware[Any, Any, Any]):
    """Adds the tool `py_eval` (Python) or `eval` (JavaScript) to an agent.

    - `tools`: which of the agent's tools a program may call, by name, or tools of its own; none unless said.
    - `max_tool_calls`: by one program; `limits`: CPU, time, memory and calls of one program.
    - `max_output`: characters of what a program says that the model is shown.
    - `mode`: how long variables live: "thread" (a conversation), "turn" (one invocation of the agent), "call".
    - `sandbox`: what programs run in; each conversation has one of its own if you give none.
    - `store`: keeps the files of these, so that whoever goes on with a conversation has them as they were there.
    - `max_saved_bytes`: of variables, which are saved in the conversation's checkpoints whenever programs have run.
    - `key`: seals what is saved, so that nobody who can write to the checkpoints can make programs of it.
    """

    def __init__(
        self,
        language: Language = "python",
        *,
        tools: Sequence[str | BaseTool | Callable[..., Any]] = (),
        max_tool_calls: int = 256,
        mode: Mode = "thread",
        limits: RunLimits | None = None,
        max_output: int = 20_000,
        sandbox: Sandbox | None = None,
        store: Store | None = None,
        max_saved_bytes: int = MAX_BYTES,
        key: bytes = b"",
        max_conversations: int = 32,
    ) -> None:
        super().__init__()
        if language not in _NAMES:
            raise ValueError(f"language is 'python' or 'js', not {language!r}")
        if mode not in _STATE:
            raise ValueError(f"mode is 'thread', 'turn' or 'call', not {mode!r}")
        if sandbox is not None and store is not None:
            raise ValueError("a sandbox of yours is not kept with each conversation: give a store, or a sandbox")
        self._language: Language = language
        self.state_schema = _PythonState if language == "python" else _JsState
        self._token_key, self._saved_key = f"belljar_{language}_token", f"belljar_{language}_saved"
        self._allowed = [tool for tool in tools if isinstance(tool, str) and tool != _NAMES[language]]
        own = [tool for tool in tools if not isinstance(tool, str)]
        self._own = {tool.name: tool for tool in (_as_tool(tool) for tool in own)}
        self._max_tool_calls = max_tool_calls
        self._mode = mode
        self._limits = limits
        self._max_output = max_output
        self._conversations = Conversations(
            language,
            sandbox=sandbox,
            store=store,
            key=key,
            max_bytes=check_size(max_saved_bytes),
            most=max_conversations,
            leave_out=_GIVEN,
        )
        self.tools = [self._tool()]

    @property
    def name(self) -> str:
        return f"{type(self).__name__}[{self._language}]"

    def _tool(self) -> BaseTool:
        offered = [*self._allowed, *(_signature(tool, self._language) for tool in self._own.values())]
        calls = _CALLS[self._language].format("; ".join(offered)) if offered else ""
        parts = [_HOW[self._language], calls, _STATE[self._mode]]

        def evaluate(code: str, runtime: ToolRuntime) -> Any:
            return self._evaluate(code, runtime, None)

        async def evaluate_async(code: str, runtime: ToolRuntime) -> Any:
            loop = asyncio.get_running_loop()
            try:
                return await asyncio.to_thread(self._evaluate, code, runtime, loop)
            except asyncio.CancelledError:
                self._conversations.interrupt(_get(runtime.state, self._token_key))
                raise

        return StructuredTool.from_function(
            evaluate, coroutine=evaluate_async, name=_NAMES[self._language], description=" ".join(filter(None, parts))
        )

    # Skills, as Deep Agents' SkillsMiddleware has them in the agent's state.

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(self._with_skills(request))

    async def awrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return await handler(self._with_skills(request))

    def _skills(self, state: Any) -> dict[str, str]:
        return python_names(_get(state, "skills_metadata") or ()) if self._language == "python" else {}

    def _with_skills(self, request: Any) -> Any:
        """Tell the model what it can import."""
        skills = self._skills(request.state)
        if not skills:
            return request
        text = _SKILLS.format(_NAMES[self._language], ", ".join(f"skills.{name}" for name in skills))
        before = request.system_message.content_blocks if request.system_message else []
        message = SystemMessage(content_blocks=[*before, {"type": "text", "text": f"\n\n{text}" if before else text}])
        return request.override(system_message=message)

    # Where variables begin and go between programs.

    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        """Begin a turn."""
        token, saved = _get(state, self._token_key), _get(state, self._saved_key)
        if self._mode == "thread":
            return {self._token_key: self._conversations.begin(token, saved)}
        self._conversations.end(token)
        return {self._token_key: self._conversations.begin(None, None), self._saved_key: None}

    def before_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """Save variables: if this turn is interrupted here, another process can go on from them."""
        if self._mode == "call":
            return None
        saved = self._conversations.save(_get(state, self._token_key), _thread(get_config()))
        return {self._saved_key: saved} if saved is not None else None

    async def abefore_model(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return await asyncio.to_thread(self.before_model, state, runtime)

    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        """End the turn."""
        if self._mode == "thread" and _thread(get_config()):
            return self.before_model(state, runtime)  # a tool whose result is the answer ran last
        self._conversations.end(_get(state, self._token_key))
        return {self._saved_key: None} if self._mode == "turn" else None

    async def aafter_agent(self, state: Any, runtime: Any) -> dict[str, Any] | None:
        return await asyncio.to_thread(self.after_agent, state, runtime)

    def close(self) -> None:
        """End the interpreters, and the sandboxes that were made for them. What was saved can still be gone on from."""
        self._conversations.close()

    # A program.

    def _evaluate(self, code: str, runtime: ToolRuntime, loop: asyncio.AbstractEventLoop | None) -> Any:
        known = {tool.name: tool for tool in runtime.tools} if runtime.tools else {}
        offered = {name: known[name] for name in self._allowed if name in known} | self._own
        names = list(offered)
        if self._language == "js":
            names += [camel for name in offered if (camel := _camel(name)) not in offered]
        calls = Calls(offered, self._max_tool_calls, runtime, loop)
        token, saved = _get(runtime.state, self._token_key), _get(runtime.state, self._saved_key)
        bound = {"call_tool": calls}
        turn = token or new_id()
        try:
            with self._conversations.use(turn, saved, _thread(runtime.config), bound) as talk:
                if self._mode == "call":
                    talk.interpreter.reset()
                if "tools" in code:  # each time: an earlier program may have used the name for something else
                    prelude = _PRELUDE[self._language].replace("NAMES", json.dumps(names))
                    made = talk.interpreter.run(prelude, globals=bound)
                    if made.error is not None:
                        return f"Error: {made.error}"
                skills = self._skills(runtime.state)
                if skills != talk.skills:
                    link(talk.sandbox, skills)
                    talk.skills = skills
                result = talk.interpreter.run(code, globals=bound, limits=self._limits)
                told, talk.told = talk.told, ""
                if not talk.interpreter.started:
                    told += "\n[The interpreter was ended: variables are as they were before this step.]"
                text = "\n".join(filter(None, [told.strip(), show(result, self._max_output)]))
        except SandboxError as error:
            self._conversations.end(turn)
            text = f"Error: {error}"
        if token is None:  # called outside of an agent's turn
            self._conversations.end(turn)
        if calls.updates:
            return [*calls.updates, ToolMessage(text, tool_call_id=runtime.tool_call_id, name=_NAMES[self._language])]
        return text


class Calls:
    """The tool calls of one program: what it may call, how often, and what they change in the agent's state."""

    def __init__(
        self,
        tools: Mapping[str, BaseTool],
        most: int,
        runtime: ToolRuntime,
        loop: asyncio.AbstractEventLoop | None,
    ) -> None:
        self._tools = {**{_camel(name): tool for name, tool in tools.items()}, **tools}
        self._most = most
        self._runtime = runtime
        self._loop = loop
        self._numbers = itertools.count(1)
        self.updates: list[Command[Any]] = []

    def __call__(self, name: str, arguments: dict[str, Any]) -> Any:
        number = next(self._numbers)
        if number > self._most:
            raise ToolCallLimit(f"a program may call tools {self._most} times")
        tool = self._tools.get(name)
        if tool is None:
            raise LookupError(f"no tool {name!r}")
        if not isinstance(arguments, dict):
            raise TypeError(f"{name} takes its arguments by name")
        return self._unwrapped(self._invoke(tool, arguments, number))

    def _invoke(self, tool: BaseTool, arguments: dict[str, Any], number: int) -> Any:
        runtime = replace(self._runtime, tool_call_id=f"{self._runtime.tool_call_id}-{number}")
        call: Any = {"name": tool.name, "args": arguments, "id": runtime.tool_call_id, "type": "tool_call"}
        # As the agent itself would call it: what only the agent may fill in (its state, its store) a program can't.
        filled = ToolNode([tool])._inject_tool_args(call, runtime, tool)
        given = filled if _wants_id(tool) else filled["args"]
        config = self._runtime.config
        if self._loop is not None:
            return asyncio.run_coroutine_threadsafe(tool.ainvoke(given, config), self._loop).result()
        if isinstance(tool, StructuredTool) and tool.func is None:
            return run_awaitable(tool.ainvoke(given, config))
        return tool.invoke(given, config)

    def _unwrapped(self, value: Any) -> Any:
        """Convert a tool's result to plain data. Its updates of the agent's state are kept for the agent."""
        if isinstance(value, list) and value and all(isinstance(item, Command | ToolMessage) for item in value):
            return [self._unwrapped(item) for item in value][-1]
        if isinstance(value, Command):
            update = value.update if isinstance(value.update, dict) else {}
            messages = update.get("messages", [])
            rest = {key: held for key, held in update.items() if key != "messages"}
            if rest:
                self.updates.append(replace(value, update=rest))
            return self._unwrapped(messages[-1]) if messages else None
        if isinstance(value, ToolMessage):
            return _plain(value.content)
        return _plain(value)


def show(result: RunResult, most: int = 20_000) -> str:
    """Render a run for a model."""
    parts = texts(result)
    parts += [f"[{output.mime}, not shown]" for output in result.outputs if not output.mime.startswith("text/")]
    text = "\n".join(parts) or "(no output)"
    if len(text) > most:
        half = most // 2
        text = f"{text[:half]}\n[... {len(text) - 2 * half} characters left out ...]\n{text[-half:]}"
    return text


def _as_tool(tool: BaseTool | Callable[..., Any]) -> BaseTool:
    if isinstance(tool, BaseTool):
        return tool
    if asyncio.iscoroutinefunction(tool):
        return StructuredTool.from_function(coroutine=tool)
    return StructuredTool.from_function(tool)


def _signature(tool: BaseTool, language: Language) -> str:
    """Describe, for the model, a tool that only programs have."""
    schema: Any = tool.tool_call_schema
    fields = schema if isinstance(schema, dict) else schema.model_json_schema()
    needed = fields.get("required", [])
    arguments = ", ".join(
        f"{name}{'' if name in needed else '?'}: {field.get('type', 'any')}"
        for name, field in fields.get("properties", {}).items()
    )
    name = tool.name if language == "python" else _camel(tool.name)
    about = tool.description.strip().split("\n")[0].rstrip(".")
    return f"{name}({arguments})" + (f" - {about}" if about else "")


def _get(state: Any, key: str) -> Any:
    return state.get(key) if isinstance(state, Mapping) else getattr(state, key, None)


def _thread(config: Mapping[str, Any]) -> str:
    """Return the conversation's thread id; empty if it has none."""
    return str(config.get("configurable", {}).get("thread_id", ""))


def _wants_id(tool: BaseTool) -> bool:
    hints = get_type_hints(tool.get_input_schema(), include_extras=True)
    marks = [mark for hint in hints.values() for mark in get_args(hint)[1:]]
    return any(mark is InjectedToolCallId or isinstance(mark, InjectedToolCallId) for mark in marks)


def _plain(value: Any) -> Any:
    """Convert to plain data."""
    return value if isinstance(value, str | bytes | int | float | bool | type(None)) else json.loads(_dump(value))


def _dump(value: Any) -> str:
    return json.dumps(value, default=lambda other: other.model_dump() if hasattr(other, "model_dump") else str(other))


def _camel(name: str) -> str:
    return re.sub(r"_([a-z0-9])", lambda match: match[1].upper(), name)
