"""One sandbox's life inside its process: a kernel with the base files, and the commands run in it.

No host contact: machine, limits and programs come in as arguments, so the same session runs sealed in a worker, in a
test on virtual time, or (one day) in a browser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from belljar.abi.errors import SysError
from belljar.abi.limits import Limits
from belljar.kernel.fs.dev import DevServer
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.proc import ProcServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.kernel import Kernel
from belljar.kernel.loader import DEFAULT_PATH, Program, load, search_path
from belljar.kernel.machine import Machine
from belljar.kernel.pipe import PipeEnd
from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.openfile import OpenFile
from belljar.worker.base import AGENT_CREDENTIALS, HOME, WORKSPACE, populate

LINGER = 0.1
"""How long an ended command's leftover processes may still add to its output, while they are busy."""


@dataclass(slots=True)
class Result:
    """What a command did."""

    stdout: bytes
    stderr: bytes
    status: int
    limit: str | None = None
    """The budget that stopped it, if one did."""


@dataclass(slots=True)
class _Output:
    parts: list[bytes] = field(default_factory=list)
    open: bool = True


class Session:
    """A kernel, its files, and `exec`."""

    def __init__(
        self,
        machine: Machine,
        *,
        programs: Callable[[str], Program | None],
        names: Iterable[str],
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str = WORKSPACE,
        hostname: str = "belljar",
        credentials: Credentials = AGENT_CREDENTIALS,
    ) -> None:
        limits = limits if limits is not None else Limits()
        quota = Quota(limits.file_bytes, limits.files)
        root = MemoryServer(machine.clock.time_ns, quota)
        populate(root, hostname, names)
        self.kernel = Kernel(machine, root, limits=limits, quota=quota, programs=programs, hostname=hostname)
        self.credentials = credentials
        self.cwd = cwd
        self.env = {
            "PATH": DEFAULT_PATH,
            "HOME": HOME,
            "USER": "agent",
            "LOGNAME": "agent",
            "SHELL": "/bin/bash",
            "LANG": "C.UTF-8",
            "TERM": "dumb",
            "HOSTNAME": hostname,
            **(env or {}),
        }
        fs = self.kernel.init.fs
        for server, path in (
            (DevServer(self.kernel), "/dev"),
            (ProcServer(self.kernel, self.kernel.init.space), "/proc"),
        ):
            self.kernel.register(server)
            fs.mount(server, path, source=server.kind)

    def exec(
        self,
        command: str | list[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        limits: Limits | None = None,
        merge_stderr: bool = False,
    ) -> Result:
        """Run a command to its end and collect its output. A str runs in bash; a list is argv."""
        argv = ["bash", "-c", command] if isinstance(command, str) else list(command)
        kernel = self.kernel
        input_reader, input_writer = kernel.open_pipe(kernel.init)
        input_writer.retain()
        assert isinstance(input_writer.handle, PipeEnd)
        if stdin:
            input_writer.handle.pipe.chunks.append(stdin)
            input_writer.handle.pipe.used += len(stdin)
        input_writer.release()
        outputs = [_Output(), _Output()]
        out_reader, out_writer = kernel.open_pipe(kernel.init)
        pairs = [(out_reader, outputs[0])]
        files = {0: input_reader, 1: out_writer, 2: out_writer}
        if not merge_stderr:
            error_reader, files[2] = kernel.open_pipe(kernel.init)
            pairs.append((error_reader, outputs[1]))
        else:
            outputs[1].open = False
        process = kernel.start(
            lambda process: _launch(process, argv),
            argv,
            limits=limits,
            env=self.env if env is None else {**self.env, **env},
            credentials=self.credentials,
            cwd=self.cwd if cwd is None else cwd,
            files=files,
        )
        for reader, output in pairs:
            kernel.hub.spawn(_collector(kernel, process, reader, output))
        self._run(process, outputs)
        status = process.status if process.status is not None else ExitStatus(0, 9)
        spent = process.budget.spent
        return Result(
            b"".join(outputs[0].parts),
            b"".join(outputs[1].parts),
            status.shell,
            spent.limit if spent is not None else None,
        )

    def _run(self, process: Process, outputs: list[_Output]) -> None:
        hub = self.kernel.hub
        hub.run(lambda: process.status is not None)
        # What the command left behind may still be writing (`> >(cat)`): let it come to rest, but not wait for it.
        until = hub.clock.monotonic() + LINGER
        hub.run(lambda: not any(output.open for output in outputs) or hub.idle or hub.clock.monotonic() > until)


def _launch(process: Process, argv: list[str]) -> int:
    """Become the program, or say why not, as a shell would."""
    try:
        path = search_path(process.fs, argv[0], process.env.get("PATH"))
        program, full_argv = load(process, path, argv)
    except SysError as error:
        reason = "command not found" if "/" not in argv[0] and error.name == "ENOENT" else error.reason
        process.error(f"belljar: {argv[0]}: {reason}\n")
        return 127 if error.name in ("ENOENT", "ENOTDIR") else 126
    process.prepare_exec(path, full_argv, process.env)
    return program(process)


def _collector(kernel: Kernel, process: Process, reader: OpenFile, output: _Output) -> Callable[[], None]:
    """Reads one stream of a command until its last writer is gone, within the command's output budget."""
    reader.retain()
    limit = process.budget.limits.output_bytes

    def run() -> None:
        try:
            while data := reader.read(1 << 20):
                room = limit - process.budget.output
                process.budget.output += len(data)
                if room < len(data):
                    output.parts.append(data[: max(room, 0)])
                    process.budget.spend("output_bytes")
                    kernel.kill_budget(process.budget)
                    return
                output.parts.append(data)
        finally:
            output.open = False
            reader.release()

    return run
