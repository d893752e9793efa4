"""One command under way: its process, its pipes or terminal, and what comes out of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Final

from belljar.abi.errno import EIO
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY, O_RDWR
from belljar.abi.limits import Limits, explain_limit
from belljar.abi.signals import Signal
from belljar.abi.termios import WinSize
from belljar.abi.wire import CONTROL_IN, CONTROL_OUT
from belljar.kernel.kernel import Kernel
from belljar.kernel.loader import run_program
from belljar.kernel.pipe import Outlet
from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.openfile import OpenFile
from belljar.worker.input import InputQueue, OnTaken
from belljar.worker.streams import Streams

LINGER: Final = 0.1
"""Seconds that what an ended command left behind may still add to its output, as long as it is busy."""

OnOutput = Callable[[int, bytes], None]
"""Called in a fiber with 1, 2 or CONTROL_OUT and a piece of it; it may park, and the command then waits."""


class Task:
    """A command started by the sandbox's owner. `on_end` is called once, when its process is over and drained."""

    process: Process

    def __init__(
        self, kernel: Kernel, on_output: OnOutput, on_end: Callable[[Task], None], idle: list[Streams]
    ) -> None:
        """`idle`: pipes that nobody has any more, kept for the next command."""
        self._kernel = kernel
        self._on_output = on_output
        self._on_end = on_end
        self._idle = idle
        self._streams: Streams | None = None
        self.truncated = False
        self.ended = False
        self.merged = False
        """Whether standard error goes where standard output does."""
        self._has_control = False
        self._inputs: dict[int, InputQueue] = {}
        """Our ends of what the command reads from, by its descriptor."""
        self._master: OpenFile | None = None
        self._collecting = False
        self._outlets: dict[int, Outlet] = {}
        """Our ends of its output pipes, by its descriptor; a terminal has none."""

    def start(
        self,
        argv: list[str],
        *,
        env: Mapping[str, str],
        cwd: str,
        credentials: Credentials,
        limits: Limits | None,
        stdin: bytes | None,
        merge_stderr: bool,
        terminal: WinSize | None,
        control: bool,
        forks: Process | None,
        follows: bool = False,
    ) -> None:
        kernel = self._kernel
        if terminal is not None:
            files: dict[int, OpenFile] = {}
            self._master = self._open_terminal(terminal, credentials)
        else:
            files = self._open_pipes(stdin, merge_stderr, follows)
        self.merged = merge_stderr or terminal is not None
        self._has_control = control
        if control:
            files[CONTROL_IN], writer = kernel.open_pipe(kernel.init)
            self._inputs[CONTROL_IN] = InputQueue(kernel.hub, writer.retain())
            files[CONTROL_OUT] = self._open_outlet(CONTROL_OUT)
        master = self._master
        self.process = kernel.start(
            partial(_launch, argv=argv, master=master) if forks is None else partial(_resume, original=forks),
            argv,
            limits=limits,
            env=env,
            credentials=credentials,
            cwd=cwd,
            files=files,
            on_exit=self._exited,
        )
        if master is not None:
            self._collecting = True
            kernel.hub.spawn(lambda: self._collect(master.retain()))

    def _open_pipes(self, stdin: bytes | None, merge_stderr: bool, follows: bool) -> dict[int, OpenFile]:
        """Open the descriptors of the command."""
        kernel = self._kernel
        streams = self._streams = self._idle.pop() if self._idle else Streams(kernel)
        self._outlets = {1: streams.output, 2: streams.error}
        files = streams.begin(
            None if follows else stdin, partial(self._hand_on, 1), None if merge_stderr else partial(self._hand_on, 2)
        )
        if follows:
            files[0], writer = kernel.open_socket(kernel.init) if stdin is None else kernel.open_pipe(kernel.init)
            self._inputs[0] = InputQueue(kernel.hub, writer.retain())
            if stdin:
                self._inputs[0].put(stdin)
        elif stdin is None:
            files[0] = kernel.init.fs.open("/dev/null", O_RDONLY)
        return files

    def _open_outlet(self, stream: int) -> OpenFile:
        kernel = self._kernel
        outlet = Outlet(kernel.hub, partial(self._hand_on, stream))
        self._outlets[stream] = outlet
        return kernel.open_outlet(kernel.init, outlet)

    def _open_terminal(self, size: WinSize, credentials: Credentials) -> OpenFile:
        """A terminal whose person is the sandbox's owner; the command opens its other side."""
        fs = self._kernel.init.fs
        master = fs.open("/dev/ptmx", O_RDWR).retain()
        master.handle.ioctl("set_winsize", size)
        fs.chown(_terminal_path(master), credentials.uid, -1)
        self._inputs[0] = InputQueue(self._kernel.hub, master.retain())
        return master

    @property
    def status(self) -> ExitStatus:
        return self.process.status if self.process.status is not None else ExitStatus(0, Signal.KILL)

    @property
    def limit_line(self) -> bytes:
        """The line that tells of a limit that ended the command; an interpreter's owner has other ways to know."""
        spent = self.process.budget.spent
        if spent is None or self._has_control:
            return b""
        return explain_limit(spent.limit, spent.allowed).encode()

    @property
    def limit(self) -> str | None:
        """The budget that ended it, if one did."""
        spent = self.process.budget.spent
        return spent.limit if spent is not None else None

    def give_input(self, stream: int, data: bytes, on_taken: OnTaken | None = None) -> None:
        """Queue a piece for one of its inputs, in order; `on_taken` hears when it was written. Never waits."""
        queue = self._inputs.get(stream)
        if queue is not None:
            queue.put(data, on_taken)
        elif on_taken is not None:
            on_taken(False)

    def end_input(self, stream: int) -> None:
        """Close an input after all that was given to it."""
        queue = self._inputs.get(stream)
        if queue is not None:
            queue.end()

    def close_input(self, stream: int) -> None:
        """Close an input now."""
        queue = self._inputs.pop(stream, None)
        if queue is not None:
            queue.close()

    def resize(self, size: WinSize) -> None:
        if self._master is not None:
            self._master.handle.ioctl("set_winsize", size)

    def renew(self, limits: Limits | None) -> None:
        """An interpreter's next run: it may use as much as this, or as before, and at most what the sandbox may."""
        narrowed = self.process.budget.limits if limits is None else self._kernel.limits.narrowed(limits)
        self.process.budget.renew(narrowed)
        engine = self.process.engine
        if engine is not None:
            engine.limit(narrowed.cpu_seconds, narrowed.memory_bytes)

    def signal(self, number: int) -> None:
        """Send a signal to the command's process group, as a terminal would."""
        self._kernel.signal_group(self.process.pgid, number, space=self.process.space)

    def kill(self) -> None:
        """Kill everything the command started, at once."""
        self._kernel.kill_budget(self.process.budget)

    def _hand_on(self, stream: int, data: bytes) -> None:
        """Pass on what was written to a stream, within the command's output budget. The fiber that writes is ours."""
        if stream == CONTROL_OUT:
            self._wait_for_other_streams()
        budget = self.process.budget
        room = budget.limits.output_bytes - budget.output
        budget.output += len(data)
        if len(data) > room:
            self.truncated = True
            budget.spend("output_bytes")
            self._kernel.kill_budget(budget)
            data = data[: max(room, 0)]
        if data and not self.ended:
            self._on_output(stream, data)

    def _wait_for_other_streams(self) -> None:
        """Wait until everything that was written to the other streams is handed on."""
        for stream, outlet in self._outlets.items():
            while stream != CONTROL_OUT and outlet.busy:
                outlet.waiters.wait()

    def _collect(self, master: OpenFile) -> None:
        """Hands on what a terminal shows until its last program is gone."""
        try:
            while data := _read(master):
                self._hand_on(1, data)
        finally:
            self._collecting = False
            master.release()

    @property
    def _is_open(self) -> bool:
        """Whether more output may follow."""
        for outlet in self._outlets.values():
            if outlet.writers or outlet.busy:
                return True
        return self._collecting

    def _exited(self, _process: Process) -> None:
        if self._is_open:
            self._kernel.hub.spawn(self._drain)
        else:
            self._end()

    def _drain(self) -> None:
        """Let leftover processes finish writing (`> >(cat)`), for at most LINGER seconds."""
        hub = self._kernel.hub
        until = hub.clock.monotonic() + LINGER
        while self._is_open and not hub.idle and hub.clock.monotonic() < until:
            hub.pause()
        self._end()

    def _end(self) -> None:
        for stream in list(self._inputs):
            self.close_input(stream)
        if self._master is not None:
            self._master.release()
        self.ended = True
        self._outlets = {}  # each leads back here
        streams, self._streams = self._streams, None
        if streams is not None and streams.end():
            self._idle.append(streams)
        self._on_end(self)


def _resume(process: Process, original: Process) -> int:
    if original.engine is None:
        process.error("belljar: there is no interpreter to copy\n")
        return 126
    from belljar.engines.worker.python import resume  # when it is used: a sandbox in a hurry does without

    return resume(process, original.engine)


def _read(reader: OpenFile) -> bytes:
    """The next piece; b"" at the end, which on a terminal is the error that its last program is gone."""
    try:
        return reader.read(1 << 20)
    except SysError as error:
        if error.errno == EIO:
            return b""
        raise


def _terminal_path(master: OpenFile) -> str:
    return f"/dev/pts/{master.handle.ioctl('pty_number')}"


def _launch(process: Process, argv: list[str], master: OpenFile | None) -> int:
    """Exec the program, or print the error, as a shell would."""
    if master is not None:
        # The leader of a session that opens a terminal gets it as the controlling one.
        process.open(_terminal_path(master), O_RDWR)
        process.dup2(0, 1)
        process.dup2(0, 2)
    return run_program(process, argv, "belljar")
