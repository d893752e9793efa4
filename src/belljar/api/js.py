"""`sandbox.js` and `belljar.js()`: a persistent JavaScript interpreter, and prefixes that many runs start from."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import MappingProxyType
from typing import TYPE_CHECKING, Self

from belljar.abi.limits import RunLimits
from belljar.api.await_host import exclusive
from belljar.api.clock_host import HOST_CLOCK
from belljar.api.command import check_listeners
from belljar.api.core import OnChunk
from belljar.api.interpreter_core import Globals
from belljar.api.js_core import OUTPUT_BYTES, JsCore, JsProcesses, T
from belljar.api.js_link_host import JsLink
from belljar.api.owner_host import refuse_copy
from belljar.api.prefix import Prefix
from belljar.api.runs import RunResult
from belljar.api.saved import MAX_BYTES, SavedVariables
from belljar.api.stepper import finish

if TYPE_CHECKING:
    from belljar.abi.clock import Clock
    from belljar.net.broker.gate_host import Gate


class _Waits:
    """Block."""

    lock = staticmethod(exclusive)
    drive = staticmethod(JsLink.drive)

    @staticmethod
    def call(work: Callable[[], T], _discard: Callable[[T], object]) -> T:
        return work()


def js() -> JsInterpreter:
    """A JavaScript interpreter without a sandbox around it: as sealed, with no files, commands or network."""
    return JsInterpreter()


class JsInterpreter:
    """One persistent interpreter. It starts with its first run and keeps its variables until `reset`.

    >>> sandbox.js.run("let x = 41")
    >>> sandbox.js.run("x + 1").value
    42
    """

    def __init__(
        self,
        *,
        tools: Globals = MappingProxyType({}),
        output_bytes: int = OUTPUT_BYTES,
        network: Callable[[], Gate] | None = None,
        processes: JsProcesses | None = None,
        clock: Clock = HOST_CLOCK,
    ) -> None:
        self.core = JsCore(_Waits(), tools, output_bytes, network, processes, clock)

    def branch_into(self, branch: JsInterpreter) -> None:
        """Its sandbox was forked: give the branch's interpreter a copy of what there is here. Raises SandboxError."""
        finish(self.core.branch_into(branch.core))

    def run(
        self,
        code: str,
        *,
        globals: Globals | None = None,
        limits: RunLimits | None = None,
        on_stdout: OnChunk | None = None,
        on_stderr: OnChunk | None = None,
    ) -> RunResult:
        """Run code in the interpreter; its value is that of the last expression. Never raises for what the code did.

        `globals` binds names before it runs: host functions, and plain data. They stay bound.
        """
        listening = check_listeners(on_stdout, on_stderr)
        return finish(self.core.run(code, globals, limits, listening))

    def save(self, *, max_bytes: int = MAX_BYTES, leave_out: Iterable[str] = ()) -> SavedVariables:
        """The variables, for an interpreter elsewhere or later: data by structure, functions and classes by source.

        What can't be saved is named in `left_out`, with the reason. Raises SnapshotError if nothing could be saved.
        """
        return finish(self.core.save(max_bytes, leave_out))

    def load(self, saved: SavedVariables, *, globals: Globals | None = None) -> dict[str, str]:
        """Start afresh with saved variables; gives the names of those that can't be had back, with the reason.

        `globals` binds host functions that the variables may refer to. Raises SnapshotError, and is then empty.
        """
        return finish(self.core.load(saved, globals))

    @property
    def started(self) -> bool:
        """Whether it has variables: it has run something, and was not ended since."""
        return self.core.started

    def another(self) -> JsInterpreter:
        """A further interpreter with the same tools and network, and variables of its own; `close` ends it."""
        other = JsInterpreter.__new__(JsInterpreter)
        other.core = self.core.another()
        return other

    @property
    def engine(self) -> str:
        """Its engine: "v8", or "quickjs" where V8 can't be had or is not wanted (docs/javascript.md)."""
        return self.core.processes.engine

    def precompile(self, code: str = "", globals: Globals | None = None, *, wasm: bool = False) -> Prefix:
        """Evaluate `code` once, in a process of its own; each `prefix.run` then starts from exactly there.

        `wasm` gives it and its runs WebAssembly (V8 only). Raises `PrefixError` if it fails.
        """
        return Prefix(finish(self.core.precompile(code, globals, wasm)))

    def reset(self) -> None:
        """Forget everything: the next run finds a new interpreter."""
        self.core.reset()

    def close(self) -> None:
        """End the interpreter and all its prefixes. A run that is under way raises SandboxClosed. Idempotent."""
        self.core.close()

    __reduce__ = refuse_copy

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
