"""The synchronous front: `Sandbox`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self

from belljar.abi.limits import Limits
from belljar.abi.wire import Signal
from belljar.api.clock_host import monotonic, new_id, wall_time
from belljar.api.core import Conversation, Pending
from belljar.api.errors import FileError, IsolationUnavailable, SandboxCreationError, SandboxError
from belljar.api.files import Files
from belljar.api.link_host import Link
from belljar.api.mounts import Mount
from belljar.api.operations import Run, Steps
from belljar.api.process import Process, Terminal
from belljar.api.request import (
    GRACE,
    FileContents,
    boot_message,
    check_command,
    check_contents,
    check_environment,
    exec_result,
    limits_for_exec,
    raise_failure,
)
from belljar.api.results import ExecResult, Info
from belljar.api.tools import Tool
from belljar.worker.supervisor_host import WorkerUnavailable, shared

OnOutput = Callable[[bytes], object]


class Sandbox:
    """A sealed Unix for an agent: no host files, no network, bounded in time, memory and output.

    >>> with Sandbox() as sandbox:
    ...     sandbox.exec("echo hello | tr a-z A-Z").stdout
    'HELLO\\n'
    """

    def __init__(
        self,
        *,
        tier: str = "virtual",
        image: str | None = None,
        files: Mapping[str, FileContents] | None = None,
        mounts: Mapping[str, Mount] | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str = "/workspace",
        user: str = "agent",
        hostname: str = "belljar",
        limits: Limits | None = None,
        tools: Mapping[str, Callable[..., Any]] | None = None,
        require: set[str] | None = None,
        name: str | None = None,
    ) -> None:
        if tier != "virtual":
            raise SandboxCreationError(f"tier {tier!r} is not in this version of belljar; use tier='virtual'")
        if image is not None:
            raise SandboxCreationError("images are not in this version of belljar; leave image= out")
        if user != "agent":
            raise SandboxCreationError(f"user {user!r} is not in this version of belljar; use user='agent'")
        self._limits = limits if limits is not None else Limits()
        self._environment = check_environment(env)
        contents = [(path, *check_contents(path, value)) for path, value in (files or {}).items()]
        offered = [Tool(name, function) for name, function in (tools or {}).items()]
        self._cwd = cwd
        self._created = wall_time()
        self._name = name or new_id()
        try:
            worker = shared.take(self._limits.memory_bytes)
        except WorkerUnavailable as error:
            raise SandboxCreationError(f"could not start a sandbox: {error}. Try `belljar doctor`.") from error
        self._link = Link(worker, Conversation())
        try:
            self._link.send(
                self._conversation.message(boot_message(self._environment, cwd, user, hostname, self._limits))
            )
            self._require(require)
            self.files = Files(self._run)
            for path, mount in (mounts or {}).items():
                self.mount(path, mount)
            for tool in offered:
                self._link.offer(tool)
                raise_failure(self._call("tool", tool.name.encode()))
            for path, data, mode in contents:
                self.files.write(path, data, mode=mode)
            if cwd != "/workspace":
                self.files.mkdir(cwd, parents=True)
        except SandboxError:
            self.close()
            raise

    @property
    def _conversation(self) -> Conversation:
        return self._link.conversation

    def _require(self, layers: set[str] | None) -> None:
        if not layers:
            return
        self._wait_ready()
        assert self._conversation.ready is not None
        held = self._conversation.ready.layers
        if missing := set(layers) - set(held):
            raise IsolationUnavailable(missing, held)

    def _wait_ready(self) -> None:
        if not self._link.wait_until(lambda: self._conversation.ready is not None, monotonic() + GRACE):
            raise SandboxCreationError("the sandbox's worker did not report in time. Try again; see `belljar doctor`.")

    @property
    def info(self) -> Info:
        """id, tier, the isolation layers that hold, image, created."""
        self._wait_ready()
        assert self._conversation.ready is not None
        layers = tuple(self._conversation.ready.layers)
        return Info(self._name, "virtual", layers, "base", self._created)

    # Commands.

    def exec(
        self,
        command: str | list[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes = b"",
        timeout: float | None = None,
        limits: Limits | None = None,
        on_stdout: OnOutput | None = None,
        on_stderr: OnOutput | None = None,
        merge_stderr: bool = False,
    ) -> ExecResult:
        """Run a command to its end. A str runs in bash, a list is argv. Never raises for what the command did.

        After `timeout` seconds its processes are killed and the exit code is 124; the sandbox stays usable.
        """
        sent_limits, effective = limits_for_exec(self._limits, limits, timeout)
        callbacks = {stream: f for stream, f in ((1, on_stdout), (2, on_stderr)) if f is not None}
        began = monotonic()
        number, running, frame = self._conversation.start(
            check_command(command),
            env=check_environment(env),
            cwd=cwd,
            stdin=stdin.encode() if isinstance(stdin, str) else stdin,
            merge=merge_stderr,
            live=bool(callbacks),
            limits=sent_limits,
            allowed_output=effective.output_bytes,
            on_chunk=callbacks,
        )
        self._link.send(frame)
        try:
            finished = self._link.wait(running, began + effective.wall_seconds + GRACE)
        except KeyboardInterrupt:
            self._link.send(self._conversation.message(Signal(number, 9, True)))
            raise
        if not finished:
            # The worker itself should have ended it: it no longer answers, so it is not to be trusted with more.
            self._link.close()
            raise SandboxError("the sandbox stopped answering past the command's time limit and was ended")
        raise_failure(running, cwd or self._cwd)
        return exec_result(running, monotonic() - began, timeout)

    def spawn(
        self,
        command: str | list[str],
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        stdin: str | bytes | None = None,
    ) -> Process:
        """Start a command and talk to it while it runs. Its streams wait when you do not read them."""
        process = Process(self._link)
        process.start(
            check_command(command),
            env=check_environment(env),
            cwd=cwd,
            stdin=stdin.encode() if isinstance(stdin, str) else stdin,
            allowed=self._limits.output_bytes,
        )
        return process

    def pty(
        self,
        command: str | list[str] = "exec bash -il",
        *,
        cwd: str | None = None,
        env: Mapping[str, str] | None = None,
        rows: int = 24,
        cols: int = 80,
    ) -> Terminal:
        """Start a command on a terminal of its own."""
        process = Process(self._link)
        process.start(
            check_command(command),
            env={"TERM": "xterm-256color", **check_environment(env)},
            cwd=cwd,
            stdin=None,
            allowed=self._limits.output_bytes,
            size=(rows, cols),
        )
        return Terminal(process)

    # Everything else.

    def _call(self, name: str, *arguments: object) -> Pending:
        pending, frame = self._conversation.call(name, *arguments)
        self._link.send(frame)
        self._link.wait(pending)
        return pending

    def _run(self, steps: Steps[Any]) -> Any:
        """Run an operation of the files API to its end."""
        answer: Any = None
        failure: FileError | None = None
        while True:
            try:
                step = steps.send(answer) if failure is None else steps.throw(failure)
            except StopIteration as end:
                return end.value
            answer, failure = None, None
            if isinstance(step, Run):
                answer = self.exec(step.argv)
                continue
            try:
                answer = self._file_call(step.path, step.name, *step.arguments)
            except FileError as error:
                failure = error

    def _file_call(self, path: str, name: str, *arguments: object) -> Any:
        pending = self._call(name, *arguments)
        raise_failure(pending, path)
        return pending.value

    def mount(self, path: str, mount: Mount) -> None:
        """Make a tree appear at `path`, for every command started from now on."""
        if not path.startswith("/") or path == "/":
            raise ValueError(f"can't mount at {path!r}: an absolute path other than / is needed")
        recipe = mount.build(self._link.export)
        self._file_call(path, "mount", path.encode("utf-8", "surrogateescape"), recipe, mount.read_only)
        for name, data, mode in mount.files:
            self.files.write(f"{path}/{name.lstrip('/')}", data, mode=mode)

    def unmount(self, path: str) -> None:
        self._file_call(path, "unmount", path.encode("utf-8", "surrogateescape"))

    def stats(self) -> dict[str, float]:
        """Processes, files, bytes and uptime now."""
        pending = self._call("stats")
        raise_failure(pending)
        return {key.decode(): value for key, value in pending.value.items()}

    def close(self) -> None:
        """End every process and release everything. Idempotent."""
        self._link.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        link = getattr(self, "_link", None)
        if link is not None:
            link.close()

    def __repr__(self) -> str:
        return f"<Sandbox {self._name}{' (closed)' if self._link.closed else ''}>"
