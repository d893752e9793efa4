"""smolagents: code of an agent runs in a belljar sandbox, and calls the agent's tools outside it.

>>> agent = CodeAgent(tools=[search], model=model, executor=BelljarExecutor())
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from belljar.abi.limits import RunLimits
from belljar.api.sandbox import Sandbox
from belljar.integrations.extras import needs
from belljar.integrations.shown import plain_value

with needs("smolagents"):
    from smolagents.local_python_executor import CodeOutput, PythonExecutor

_FINAL: Final = "final_answer"


class BelljarExecutor(PythonExecutor):
    """One interpreter for the agent's whole run. Tools stay outside: the code only gets functions that call them.

    `sandbox` is used if given; else one is made, and closed by `cleanup`.
    """

    def __init__(self, *, sandbox: Sandbox | None = None, limits: RunLimits | None = None) -> None:
        self._own = sandbox is None
        self._sandbox = sandbox if sandbox is not None else Sandbox()
        self._limits = limits
        self._functions: dict[str, Any] = {}
        self._answer: list[Any] = []

    def send_tools(self, tools: Mapping[str, Any]) -> None:
        for name, tool in tools.items():
            self._functions[name] = self._take_answer if name == _FINAL else tool

    def send_variables(self, variables: Mapping[str, Any]) -> None:
        """Set variables: plain data only; ValueError names what is not."""
        self._functions |= variables

    def _take_answer(self, answer: Any = None) -> Any:
        self._answer.append(answer)
        return answer

    def __call__(self, code_action: str) -> CodeOutput:
        bound, self._functions = self._functions, {}
        result = self._sandbox.python.run(code_action, globals=bound, limits=self._limits)
        if result.error is not None and not self._answer:
            raise RuntimeError(f"{result.stdout}{result.error.stack or result.error}")
        answered = bool(self._answer)
        output = self._answer.pop() if answered else plain_value(result)
        return CodeOutput(output=output, logs=result.stdout + result.stderr, is_final_answer=answered)

    def cleanup(self) -> None:
        if self._own:
            self._sandbox.close()
