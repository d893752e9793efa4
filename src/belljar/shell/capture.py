"""Running a command for its output: `$(...)` in a subshell or, if it changes nothing, right here; `<(...)` a file."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.errno import EINTR
from belljar.abi.errors import SysError
from belljar.abi.flags import O_WRONLY
from belljar.abi.paths import fsdecode
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.server import Handle
from belljar.shell.control import Discard, ExitShell, ShellError

if TYPE_CHECKING:
    from belljar.shell.compile.direct import DirectProgram
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell

LOWEST_PROCESS_FD = 63


class Collector(Handle):
    """Collects a builtin's output in memory."""

    __slots__ = ("parts", "shell", "total")
    seekable = False

    def __init__(self, shell: Shell) -> None:
        super().__init__()
        self.parts: list[bytes] = []
        self.total = 0
        self.shell = shell

    def write(self, offset: int | None, data: bytes) -> int:
        self.total += len(data)
        if self.total > 65536:
            self.shell.budget.charge_size(self.total)
        self.parts.append(data)
        return len(data)


def tidy(shell: Shell, data: bytes) -> str:
    """Output as a substitution gives it: without NULs and trailing newlines."""
    if b"\0" in data:
        shell.warn("warning: command substitution: ignored null byte in input")
        data = data.replace(b"\0", b"")
    return fsdecode(data.rstrip(b"\n"))


def capture_here(shell: Shell, run: Run) -> str:
    """Run something that leaves the shell as it is, its output collected."""
    return tidy(shell, collect_here(shell, run))


def collect_here(shell: Shell, run: Run) -> bytes:
    """The output of something that leaves the shell as it is; its status is `$?`, and in `subst_status`."""
    collector = Collector(shell)
    process = shell.process
    fds = process.fds
    old = fds.get(1)
    if old is not None:
        old.retain()
    fds.put(1, OpenFile(collector, O_WRONLY, process.fs.root, "pipe:"))
    process.enter()
    try:
        shell.subst_status = run(shell)
    except ShellError as error:
        shell.error(str(error))
        shell.subst_status = error.status
    except (ExitShell, Discard) as end:
        shell.subst_status = end.status
    finally:
        process.leave()
        if old is not None:
            fds.put(1, old)
            old.release()
        else:
            fds.close(1)
    shell.status = shell.subst_status
    return b"".join(collector.parts)


def capture_output(shell: Shell, run: Run, direct: DirectProgram | None = None) -> str:
    """Run a command in a subshell (or, if it is a plain program, just that) and read what it writes."""
    process = shell.process
    reader, writer = process.kernel.open_pipe(process)
    reader.retain()
    writer.retain()
    try:
        child = direct.start(shell, {1: writer}) if direct is not None else None
        if child is None:
            child = shell.fork_run(run, files={1: writer}, substitution=True)
    finally:
        writer.release()
    parts: list[bytes] = []
    size = 0
    try:
        while data := _read_on(reader):
            size += len(data)
            if size > 65536:
                shell.budget.charge_size(size)
            parts.append(data)
    finally:
        reader.release()
    shell.status = shell.subst_status = shell.wait_for(child)
    if shell.interactive:
        shell.check_interrupt()
    return tidy(shell, b"".join(parts) if len(parts) != 1 else parts[0])


def _read_on(reader: OpenFile) -> bytes:
    """Read, restarted after caught signals."""
    while True:
        try:
            return reader.read(1 << 18)
        except SysError as error:
            if error.errno != EINTR:
                raise


def open_process(shell: Shell, run: Run, *, reads: bool) -> str:
    """`<(command)`: a path under /dev/fd that reads the command's output (or, for `>(...)`, feeds its input)."""
    process = shell.process
    reader, writer = process.kernel.open_pipe(process)
    ours, theirs = (reader, writer) if reads else (writer, reader)
    fd = LOWEST_PROCESS_FD
    while fd in process.fds and fd > 10:
        fd -= 1
    theirs.retain()
    try:
        child = shell.fork_run(run, files={1 if reads else 0: theirs}, substitution=True, background=True)
        process.fds.put(fd, ours)
    finally:
        theirs.release()
    shell.process_files.append((fd, ours))
    shell.jobs.last_pid = child.pid
    return f"/dev/fd/{fd}"


def close_process_files(shell: Shell, mark: int) -> None:
    """Close what the process substitutions of a finished command opened."""
    fds = shell.process.fds
    while len(shell.process_files) > mark:
        fd, file = shell.process_files.pop()
        if fds.get(fd) is file:
            fds.close(fd)
