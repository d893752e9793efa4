"""The owner's side of the conversation with one JavaScript process: code out, host calls and results in. No I/O.

The messages are those of `dialogue.py`; the process also reports by itself that a limit was reached. Everything that
comes from it is hostile until checked.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict
from typing import Any, Final

from belljar.abi.limits import RunLimits
from belljar.abi.values import dumps
from belljar.api.bridge import BridgeLimit, HostCall, HostFunction, read_message
from belljar.api.command import Listening
from belljar.api.dialogue import Mode, Run, Spent
from belljar.api.errors import printable
from belljar.api.runs import ErrorCode, RunError
from belljar.engines.wire.js import MESSAGE, OUTPUT, BadFrame, Frames, frame

_HALVES: Final = re.compile("[\ud800-\udfff]")
_LIMITS: Final[dict[str, tuple[ErrorCode, str]]] = {
    "cpu_ms": ("CPU_LIMIT", "the run used more than {cpu_ms} ms of processor time"),
    "wall_ms": ("WALL_LIMIT", "the run took longer than {wall_ms} ms"),
    "unsettled": ("WALL_LIMIT", "the run waits for a promise that nothing is left to settle"),
    "memory_mb": ("MEMORY_LIMIT", "the run needed more than {memory_mb} MB"),
    "stack": ("CRASHED", "the run's calls are nested too deep for the engine's stack"),
    "max_bridge_bytes": ("BRIDGE_LIMIT", "more than max_bridge_bytes={max_bridge_bytes} to and from host functions"),
    "engine": ("CRASHED", "the engine gave up"),
}


def _well_formed(value: Any) -> Any:
    """The same with U+FFFD for halves of surrogate pairs, which JavaScript text may hold and nobody can print."""
    match value:
        case str():
            return _HALVES.sub("\ufffd", value)
        case list():
            return [_well_formed(item) for item in value]
        case dict():
            return {_well_formed(key): _well_formed(item) for key, item in value.items()}
        case _:
            return value


class JsDialogue:
    """Protocol of one connection. A run is under way from `begin` until its `done`."""

    def __init__(self, output_bytes: int) -> None:
        self._output_bytes = output_bytes
        self._functions: dict[str, HostFunction] = {}
        self._frames = Frames()
        self._runs = 0
        self.dropped = 0
        """Messages that were not of the run under way."""
        self.run: Run | None = None
        self.layers: tuple[str, ...] = ()
        """The layers that hold around the process."""

    def branch(self) -> JsDialogue:
        """The same with a copy of the process, between two runs."""
        twin = JsDialogue(self._output_bytes)
        twin._functions = dict(self._functions)
        twin.layers = self.layers
        return twin

    def begin(
        self,
        code: str,
        mode: Mode,
        file: str,
        functions: Mapping[str, HostFunction],
        values: Mapping[str, Any],
        limits: RunLimits,
        *,
        bound: Mapping[str, HostFunction] | None = None,
        wasm: bool = False,
        listening: Listening | None = None,
    ) -> tuple[Run, bytes]:
        """A run, and what to send. `bound` are functions whose names the process knows already.

        `wasm`: the prefix and its runs may use WebAssembly.
        """
        self._functions.update(functions)
        self.run = run = Run({**(bound or {}), **self._functions}, limits, self._output_bytes, listening)
        self._runs += 1
        known = bound or {}
        message = {
            "op": "run",
            "run": self._runs,
            "code": code,
            "mode": mode,
            "file": file,
            "wasm": wasm,
            "globals": [name for name in functions if name not in known],
            "limits": {**asdict(limits), "output_bytes": self._output_bytes},
        }
        text = json.dumps(message)[:-1] + ',"values":' + dumps(dict(values), "globals") + "}"
        return run, frame(MESSAGE, text.encode())

    def feed(self, data: bytes) -> Iterator[HostCall]:
        """Take bytes that the process sent; gives the host calls it asks for. b"" is the end of it."""
        run = self.run
        if not data:
            if run is not None:
                run.fail(RunError("CRASHED", "Crashed", "the engine's process ended"))
            return
        try:
            for kind, body in self._frames.feed(data):
                if run is None or run.done:
                    continue
                if kind == OUTPUT and body[:1] in (b"\1", b"\2"):
                    run.say(body[0], body[1:])
                elif kind == MESSAGE:
                    yield from self._take(run, body)
                else:
                    raise BadFrame(f"a frame of kind {kind}")
        except BridgeLimit as error:
            assert run is not None
            run.fail(RunError("BRIDGE_LIMIT", "BridgeLimit", str(error)))
        except Spent as spent:
            assert run is not None
            run.fail(spent.error)
        except ValueError as error:
            if run is not None:
                said = printable(str(error))
                run.fail(RunError("CRASHED", "ProtocolError", f"the engine said what makes no sense: {said}"))

    def _take(self, run: Run, body: bytes) -> Iterator[HostCall]:
        text = body.decode("utf-8", "replace")
        message = read_message(text)
        if "\\ud" in text.lower():
            message = _well_formed(message)
        if message["op"] in ("call", "done") and message.get("run") != self._runs:
            self.dropped += 1
            return
        match message:
            case {"op": "call"}:
                yield run.bridge.take(message, len(body))
            case {"op": "done"}:
                run.finish(message)
            case {"op": "limit", "limit": str(limit)} if limit in _LIMITS:
                code, words = _LIMITS[limit]
                run.fail(RunError(code, limit, words.format(**asdict(run.limits))))
            case {"op": "ready", "layers": str(layers)}:
                self.layers = tuple(layers[:400].split())
            case _:
                raise ValueError(f"no such op: {str(message.get('op'))[:40]!r}")

    def answer(self, run: Run, line: str) -> bytes | None:
        """The frame that answers a host call; None if nobody waits for it any more."""
        if run is not self.run or run.done:
            return None
        try:
            run.bridge.charge(len(line))
            return frame(MESSAGE, line.encode())
        except (BridgeLimit, BadFrame) as error:
            run.fail(RunError("BRIDGE_LIMIT", "BridgeLimit", str(error)))
            return None

    def over_time(self, run: Run) -> None:
        run.fail(RunError("WALL_LIMIT", "wall_ms", f"the run took longer than {run.limits.wall_ms} ms"))
