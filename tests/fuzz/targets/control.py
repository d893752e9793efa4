"""A guest that writes anything to its interpreter's control channel: two interpreters, of two sandboxes, with runs.

A run's result is from a line that its own interpreter said with that run's number.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Hashable
from contextlib import suppress
from functools import partial
from typing import Any, Self

from belljar import SandboxError
from belljar.abi.limits import Limits, RunLimits
from belljar.abi.values import loads
from belljar.abi.wire import CONTROL_OUT, Exited, Output, WireError, encode
from belljar.api.bridge import HostCall
from belljar.api.core import Conversation
from belljar.api.dialogue import PYTHON, Dialogue, Run
from tests.fuzz.driver import Target

_RUNS = 3
_VALUES: tuple[Any, ...] = (
    None, True, 7, 1.5, "text", [], {}, [[]], {"a": [1]}, {"$int": "0xff"}, {"$int": "zz"}, {"$bytes": "aGk="},
    {"$bytes": "?"}, {"$float": "nan"}, {"$float": "1"}, {"$datetime": "2026-01-02T03:04:05"}, {"$datetime": "x"},
    {"$dict": [[1, 2]]}, {"$dict": [[[1], {}]]}, {"$dict": [[{}, 1]]}, {"$dict": 7}, {"$what": 1}, "\ud800", "\x1b[31m",
)  # fmt: skip
_DEEP = (
    "[" * 300 + "]" * 300,
    "[" * 5000,
    "[" + "[]," * 3000 + "1]",
    '"' + "x" * 9000 + '"',
    "9" * 5000,
    "NaN",
    "1e999",
)


def line(rng: random.Random, number: int) -> bytes:
    """One line of a run with this number, right in form, odd in content."""
    value = rng.choice(_VALUES)
    wrong = {"code": rng.choice(("RUNTIME_ERROR", "SYNTAX_ERROR", "MEMORY_LIMIT", "CPU_LIMIT", 7)), "name": "E",
             "message": rng.choice(("m", "\x1b[0m\n", "", 7)), "stack": "s"}  # fmt: skip
    message = rng.choice(
        (
            {"op": "ready"},
            {"op": "call", "id": rng.choice((1, 2, "1", -1, 1 << 60)), "name": rng.choice(("f", "g", "__class__", 7)),
             "args": rng.choice(([], [value], value)), "kwargs": rng.choice(({}, {"x": value}, {"self": 1}, value))},
            {"op": "output", "mime": rng.choice(("text/html", "\n", 7)), "data": rng.choice(("d", "d" * 9000, value))},
            {"op": "done", "ok": True, "exports": {"default": value}, "unsent": {}},
            {"op": "done", "ok": True, "exports": {"default": f"of run {number}"}, "unsent": {}},
            {"op": "done", "ok": rng.choice((True, False, 1)), "exports": rng.choice(({}, {"$": 1}, value)),
             "unsent": rng.choice(({}, {"a": "why"}, {"a": 7}))},
            {"op": "done", "ok": False, "error": rng.choice((wrong, wrong, {}, value))},
            {"op": rng.choice(("answer", "run", "", 7, None))},
            value,
        )
    )  # fmt: skip
    text = json.dumps(message)
    if rng.random() < 0.15:
        text = text.replace("7", rng.choice(_DEEP))
    return b"%d %s\n" % (number, text.encode())


def _exports(said: bytes) -> Any:
    with suppress(ValueError, LookupError, TypeError):
        return loads(said.partition(b" ")[2])["exports"]
    return None


class _Sandbox:
    """A conversation with one interpreter; what it would send is dropped."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.heard = b""
        self.conversation = Conversation()
        self.dialogue = Dialogue(
            self.conversation, lambda _frame: None, PYTHON, Limits(output_bytes=1 << 20), self._called
        )
        self.run: Run | None = None

    def begin(self) -> None:
        self.run = self.dialogue.begin("1", "repl", {"f": partial(_host_function, self.name)}, {}, RunLimits())

    def _called(self, dialogue: Dialogue, call: HostCall) -> None:
        assert self.run is not None
        answer = json.loads(call.run())
        assert answer.get("value", self.name) == self.name
        dialogue.answer(self.run, json.dumps(answer))

    def hear(self, data: bytes) -> None:
        self.heard += data
        self.conversation.feed(encode(Output(self.dialogue.number, CONTROL_OUT, data)))


def _host_function(name: str, *_: Any) -> str:
    return name


class Control(Target):
    def __enter__(self) -> Self:
        return self

    def close(self) -> None:
        """Nothing is held."""

    def piece(self, rng: random.Random) -> bytes:
        """A line for one of the interpreters: the first byte says which; or that its next run begins."""
        which = rng.choice((b"A", b"A", b"B"))
        match rng.randrange(12):
            case 0:
                return which + b"begin\n"
            case 1:
                return which + b'0 {"op":"ready"}\n'
            case 2:
                return which + rng.choice(
                    (b"1 \n", b"\n", b" {}\n", b"1\0{}\n", b"01 {}\n", b"\xff\n", b"x" * 70000 + b"\n")
                )
            case _:
                return which + line(rng, rng.choice((1, 1, 1, 2, 2, 3, 0, 99)))

    def split(self, data: bytes) -> list[bytes]:
        return re.findall(rb"[^\n]*\n|[^\n]+", data)

    def run(self, data: bytes) -> Hashable:
        sandboxes = {b"A": _Sandbox("A"), b"B": _Sandbox("B")}
        seen: list[object] = []
        for sandbox in sandboxes.values():
            sandbox.begin()
        pieces = self.split(data)
        for piece in pieces:
            sandbox = sandboxes.get(piece[:1], sandboxes[b"A"])
            if piece[1:] == b"begin\n":
                seen.append(self._end(sandbox))
                if not sandbox.dialogue.ended and sandbox.dialogue._runs < _RUNS:
                    sandbox.begin()
            elif piece[1:]:
                with_rest = piece[1:] if len(piece) % 3 else piece[1:-1]  # an end of line that comes later, or never
                for start in range(0, len(with_rest), 100_000):
                    try:
                        sandbox.hear(with_rest[start : start + 100_000])
                    except WireError:
                        seen.append("broke the protocol")
        seen += map(self._end, sandboxes.values())
        return tuple(seen[-4:])

    def _end(self, sandbox: _Sandbox) -> Hashable:
        """How the run under way stands; its interpreter is told to have ended if it was killed."""
        run, dialogue = sandbox.run, sandbox.dialogue
        assert run is not None
        if dialogue.killed and not dialogue.running.done:
            sandbox.conversation.feed(encode(Exited(dialogue.number, 0, 9, None, b"", b"", False)))
        try:
            dialogue.check_end(run)
        except SandboxError as error:
            return type(error).__name__
        result = run.result(0)
        if result.ok and run.done and isinstance(result.value, str):
            ours = [line for line in sandbox.heard.split(b"\n") if line.startswith(b"%d " % dialogue._runs)]
            assert any(_exports(line) == result.exports for line in ours), "the result of another run or sandbox"
        if result.error is not None:
            str(result.error)
            return result.error.code, result.error.name[:20]
        return run.done, type(result.value).__name__, len(result.outputs)

    def check(self) -> None:
        sandbox = _Sandbox("C")
        sandbox.begin()
        sandbox.hear(b'1 {"op":"done","ok":true,"exports":{"default":7},"unsent":{}}\n')
        assert sandbox.run is not None
        assert sandbox.run.result(0).value == 7


def target() -> Target:
    return Control()
