"""`sandbox.python`: a persistent interpreter, and prefixes from whose exact state runs start."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager

from belljar.abi.limits import Limits, RunLimits
from belljar.api.await_host import exclusive
from belljar.api.bridge import HostCall
from belljar.api.command import check_listeners
from belljar.api.core import OnChunk
from belljar.api.dialogue import Dialogue, Engine, ForkState, Run
from belljar.api.errors import SandboxError
from belljar.api.interpreter_core import Globals, InterpreterCore
from belljar.api.link_host import Link
from belljar.api.owner_host import refuse_copy
from belljar.api.prefix import Prefix
from belljar.api.runs import RunResult
from belljar.api.saved import MAX_BYTES, SavedVariables
from belljar.api.stepper import finish


class Interpreter:
    """One persistent interpreter. It starts with its first run and keeps its variables until `reset`, or until a run
    is ended by a limit: the next run then finds a new one.

    >>> sandbox.python.run("x = 41")
    >>> sandbox.python.run("x + 1").value
    42
    """

    def __init__(self, link: Callable[[], Link], engine: Engine, limits: Limits, *, tools: Globals) -> None:
        self._given = link, engine, limits, tools
        self.core = InterpreterCore(*self._given, exclusive(), _caller)

    @contextmanager
    def quiesced(self) -> Iterator[ForkState]:
        """For a fork of the sandbox: no run begins meanwhile."""
        if not self.core.lock.acquire(blocking=False):
            yield ForkState(at_work=True)
            return
        try:
            yield self.core.fork_state()
        finally:
            self.core.lock.release()

    def adopt(self, state: ForkState) -> None:
        """In a branch: be what the origin's is."""
        self.core.adopt(state)

    def run(
        self,
        code: str,
        *,
        globals: Globals | None = None,
        limits: RunLimits | None = None,
        on_stdout: OnChunk | None = None,
        on_stderr: OnChunk | None = None,
    ) -> RunResult:
        """Run code in the interpreter. Never raises for what the code did: see `ok` and `error`.

        `globals` binds names before it runs: host functions, and plain data. They stay bound.

        `on_stdout` and `on_stderr` hear what it says as it comes, by lines; what they raise ends the interpreter, and
        is raised here.
        """
        listening = check_listeners(on_stdout, on_stderr)
        return finish(self.core.run(code, globals, limits, listening))

    def precompile(self, code: str = "", globals: Globals | None = None) -> Prefix:
        """Run `code` once, in an interpreter of its own; each `prefix.run` then starts from exactly there.

        Raises `PrefixError` if it fails.
        """
        return Prefix(finish(self.core.precompile(code, globals)))

    @property
    def started(self) -> bool:
        """Whether it has variables: it has run something, and was not ended since."""
        return self.core.started

    def interrupt(self) -> None:
        """Interrupt the run under way as ^C does, from another thread: it ends with KeyboardInterrupt."""
        self.core.interrupt()

    def reset(self) -> None:
        """Forget everything: the next run finds a new interpreter."""
        self.core.reset()

    def save(self, *, max_bytes: int = MAX_BYTES, leave_out: Iterable[str] = ()) -> SavedVariables:
        """The variables, for an interpreter elsewhere or later: data, functions and classes by value, modules by name.

        What can't be saved is named in `left_out`, with the reason. Files are the sandbox's and not among them.
        Raises SnapshotError if nothing could be saved.

        >>> saved = sandbox.python.save()
        >>> another_sandbox.python.load(saved)
        """
        return finish(self.core.save(max_bytes, leave_out))

    def load(self, saved: SavedVariables, *, globals: Globals | None = None) -> dict[str, str]:
        """Start afresh with saved variables; gives the names of those that can't be had back, with the reason.

        `globals` binds host functions that the variables may refer to. Raises SnapshotError, and is then empty.
        """
        return finish(self.core.load(saved, globals))

    def another(self) -> Interpreter:
        """A further interpreter in the same sandbox, with variables of its own; `reset` ends it."""
        link, _, limits, tools = self._given
        return Interpreter(link, self.core.engine, limits, tools=tools)

    __reduce__ = refuse_copy


def _caller(link: Link) -> Callable[[Dialogue, HostCall], None]:
    """Calls host functions on the sandbox's threads: a run's time limit holds while they are at work."""

    def call(dialogue: Dialogue, wanted: HostCall) -> None:
        run = dialogue.run
        assert isinstance(run, Run)

        def work() -> None:
            line = wanted.run()
            try:
                dialogue.answer(run, line)
            except SandboxError:
                return  # the sandbox ended while its function was at work

        link.threads.start(lambda: run.context.copy().run(work))

    return call
