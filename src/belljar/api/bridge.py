"""Host functions that a guest's interpreter may call: what was bound, what a call may cost, and how it is answered."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from belljar.abi.limits import RunLimits
from belljar.abi.values import NotPlain, dumps, loads
from belljar.api.arguments import public_text
from belljar.api.await_host import call_async, is_being_cancelled, run_awaitable
from belljar.api.errors import printable
from belljar.api.request import check_mapping

HostFunction = Callable[..., Any]


def _senseless() -> None:
    raise ValueError('write {"args": [...], "kwargs": {...}}, in JSON on one line')


@dataclass(frozen=True, slots=True)
class HostCall:
    """A guest's call of a host function, checked for shape."""

    number: int
    name: str
    function: HostFunction
    args: list[Any]
    kwargs: dict[str, Any]

    @classmethod
    def parse(cls, number: int, name: str, function: HostFunction, line: bytes) -> HostCall:
        """The call a guest wrote down. One that makes no sense is a call that raises."""
        try:
            match loads(line):
                case {"args": list(args), "kwargs": dict(kwargs)} if all(isinstance(key, str) for key in kwargs):
                    return cls(number, name, function, args, kwargs)
        except ValueError:
            pass
        return cls(number, name, _senseless, [], {})

    def run(self) -> str:
        """Call it and wait: the line that answers the guest."""
        try:
            result = self.function(*self.args, **self.kwargs)
            return self._answer(run_awaitable(result) if inspect.isawaitable(result) else result)
        except BaseException as error:  # noqa: BLE001 - the owner's own function: whatever it raises is its answer
            return self._raised(error)

    async def run_async(self, start: Callable[[Callable[[], None]], None]) -> str:
        """The same on an event loop: a plain function runs on a thread that `start` gives."""
        try:
            return self._answer(await call_async(self.function, self.kwargs, self.args, start))
        except BaseException as error:  # as above: SystemExit, and a cancellation of its own, too
            if is_being_cancelled():
                raise
            return self._raised(error)

    def _answer(self, value: Any) -> str:
        try:
            return dumps({"op": "answer", "id": self.number, "value": value}, f"{self.name}()").replace("\n", "")
        except NotPlain as error:
            return self._raised(TypeError(str(error).replace("['value']", "", 1)))

    def _raised(self, error: BaseException) -> str:
        text = public_text(error, f"{self.args!r:.10000} {self.kwargs!r:.10000}")
        what = {"name": type(error).__name__, "message": printable(text)}
        return dumps({"op": "answer", "id": self.number, "error": what})


class BridgeLimit(Exception):
    """The run called too often, or moved too much."""


class Bridge:
    """The functions of one run, and what it used of its allowance."""

    def __init__(self, functions: Mapping[str, HostFunction], limits: RunLimits) -> None:
        self._functions = functions
        self._limits = limits
        self.calls = 0
        self._bytes = 0

    def take(self, message: Mapping[str, Any], size: int) -> HostCall:
        """The call a guest's message asks for. BridgeLimit; ValueError for one that makes no sense."""
        match message:
            case {"id": int(number), "name": str(name), "args": list(args), "kwargs": dict(kwargs)}:
                function = self._functions.get(name)
                if function is None or not all(isinstance(key, str) for key in kwargs):
                    raise ValueError(f"a call of {name[:60]!r}, which was never bound")
            case _:
                raise ValueError("a call without its parts")
        self.calls += 1
        if self.calls > self._limits.max_bridge_calls:
            raise BridgeLimit(f"more than max_bridge_calls={self._limits.max_bridge_calls} calls of host functions")
        self.charge(size)
        return HostCall(number, name, function, args, kwargs)

    def charge(self, size: int) -> None:
        self._bytes += size
        if self._bytes > self._limits.max_bridge_bytes:
            raise BridgeLimit(f"more than max_bridge_bytes={self._limits.max_bridge_bytes} to and from host functions")


def check_globals(given: Mapping[str, Any] | None) -> tuple[dict[str, HostFunction], dict[str, Any]]:
    """The functions among some globals, and the plain values. ValueError for what can't be one."""
    functions: dict[str, HostFunction] = {}
    values: dict[str, Any] = {}
    for name, value in check_mapping("globals", given).items():
        if not str(name).isidentifier():
            raise ValueError(f"globals[{name!r}]: a global's name is an identifier")
        if callable(value):
            functions[name] = value
        else:
            dumps(value, f"globals[{name!r}]")
            values[name] = value
    return functions, values


def read_message(line: str | bytes) -> dict[str, Any]:
    """A guest's line as a message. ValueError if it is none."""
    message = loads(line)
    if not isinstance(message, dict) or not isinstance(message.get("op"), str):
        raise ValueError("a message without an op")
    return message
