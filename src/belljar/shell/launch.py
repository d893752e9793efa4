"""Running several processes together: pipelines, subshells, background jobs, coprocesses, and `time`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from msgspec import Struct

from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.abi.signals import Signal
from belljar.kernel.process import IGNORE, Process
from belljar.kernel.vfs.openfile import OpenFile
from belljar.shell.capture import collect_here
from belljar.shell.redirections import Saved
from belljar.shell.times import invalid_character, render_times

if TYPE_CHECKING:
    from belljar.shell.compile.direct import DirectProgram
    from belljar.shell.nodes import Command, Pipeline
    from belljar.shell.processes import Run
    from belljar.shell.shell import Shell


class Stage(Struct):
    """One command of a pipeline: how to run it in a subshell, and the short cut if it may be a plain program."""

    run: Run
    direct: DirectProgram | None


class QuickStage(Struct):
    """A first stage that is a builtin without effects: its output may be made beforehand, in this shell."""

    name: str
    run: Run


def run_pipeline(
    shell: Shell, stages: Sequence[Stage], last_here: Run, node: Pipeline, quick: QuickStage | None
) -> int:
    """Start every stage in a process of its own, joined by pipes, and wait for all of them."""
    children: list[Process] = []
    statuses: list[int] = []
    reader: OpenFile | None = None
    lastpipe = shell.shopts["lastpipe"] and not shell.monitor
    last = len(stages) - 1
    last_status: int | None = None
    pgid = 0
    try:
        for place, stage in enumerate(stages):
            if shell.attention:
                shell.before_stage(node.commands[place])
            if place == 0 and quick is not None and _may_run_here(shell, quick.name):
                reader = _collect(shell, quick.run)
                statuses.append(shell.subst_status)
                continue
            files: dict[int, OpenFile] = {} if reader is None else {0: reader}
            following: OpenFile | None = None
            if place < last:
                following, files[1] = shell.process.kernel.open_pipe(shell.process)
                following.retain()
                files[1].retain()
            try:
                if place == last and lastpipe:
                    assert reader is not None
                    last_status = _run_last_here(shell, last_here, reader)
                else:
                    child = _start(shell, stage, files, pgid if shell.monitor else None)
                    pgid = pgid or child.pgid
                    children.append(child)
            except BaseException:
                if following is not None:
                    following.release()
                raise
            finally:
                if place < last:
                    files[1].release()
                if reader is not None:
                    reader.release()
                reader = None
            reader = following
    except BaseException:
        if reader is not None:
            reader.release()
        raise
    statuses += shell.wait_pipeline(children, node)
    if last_status is not None:
        statuses.append(last_status)
    status = statuses[-1]
    if shell.pipefail:
        status = next((code for code in reversed(statuses) if code), 0)
    shell.status = status
    shell.pipestatus = statuses
    return status


def _start(shell: Shell, stage: Stage, files: dict[int, OpenFile], pgid: int | None) -> Process:
    if stage.direct is not None:
        child = stage.direct.start(shell, files, pgid)
        if child is not None:
            return child
    return shell.fork_run(stage.run, files=files, pgid=pgid)


def _may_run_here(shell: Shell, name: str) -> bool:
    return not (shell.attention or shell.monitor or name in shell.functions or name in shell.disabled)


def _collect(shell: Shell, run: Run) -> OpenFile:
    """The output of a builtin as the filled end of a pipe."""
    data = collect_here(shell, run)
    return shell.process.kernel.open_inlet(shell.process, data).retain()


def _run_last_here(shell: Shell, run: Run, reader: OpenFile) -> int:
    """`shopt -s lastpipe`: the last stage runs in this shell."""
    saved = Saved(shell)
    saved.save(0)
    shell.process.fds.put(0, reader)
    try:
        return run(shell)
    finally:
        saved.restore()


def start_subshell(shell: Shell, run: Run, node: Command | None = None) -> int:
    """( ... ): in a child process, and wait."""
    child = shell.fork_run(run)
    return shell.wait_foreground(child, node)


def start_background(shell: Shell, runs: Sequence[Run], text: Callable[[], str]) -> None:
    """`command &`: the stages of a pipeline, or one command, each in a child of this shell."""
    children: list[Process] = []
    reader: OpenFile | None = None
    pgid = 0 if shell.monitor else None
    if not shell.monitor and not shell.stdin_given:
        with suppress(SysError):
            reader = shell.process.fs.open("/dev/null", O_RDONLY).retain()
    try:
        for place, run in enumerate(runs, 1):
            files: dict[int, OpenFile] = {} if reader is None else {0: reader}
            following: OpenFile | None = None
            if place < len(runs):
                following, files[1] = shell.process.kernel.open_pipe(shell.process)
                following.retain()
                files[1].retain()
            try:
                child = shell.fork_run(run, files=files, pgid=pgid, background=True)
            finally:
                if reader is not None:
                    reader.release()
                reader = following
                if following is not None:
                    files[1].release()
            if shell.monitor:
                pgid = pgid or child.pgid
            else:
                child.catch(Signal.INT, IGNORE)
                child.catch(Signal.QUIT, IGNORE)
            children.append(child)
    finally:
        if reader is not None:
            reader.release()
    job = shell.jobs.add(children, text())
    shell.jobs.last_pid = child.pid
    if shell.interactive:
        shell.process.error(f"[{job.number}] {child.pid}\n")


def run_coproc(shell: Shell, name: str, run: Run, text: Callable[[], str]) -> None:
    """coproc name command: two pipes, their descriptors in the array `name`."""
    process = shell.process
    kernel = process.kernel
    out_reader, out_writer = kernel.open_pipe(process)
    in_reader, in_writer = kernel.open_pipe(process)
    for file in (out_reader, out_writer, in_reader, in_writer):
        file.retain()
    try:
        child = shell.fork_run(run, files={0: in_reader, 1: out_writer}, background=True)
        read_fd = _high(process, out_reader)
        write_fd = _high(process, in_writer)
    finally:
        for file in (out_reader, out_writer, in_reader, in_writer):
            file.release()
    shell.jobs.add([child], f"coproc {name} {text()}")
    shell.jobs.last_pid = child.pid
    shell.vars.set_array(name, [str(read_fd), str(write_fd)])
    shell.vars.set(f"{name}_PID", str(child.pid))
    shell.coprocs[child.pid] = (name, read_fd, write_fd)


def _high(process: Process, file: OpenFile) -> int:
    fd = 63
    while fd in process.fds and fd > 10:
        fd -= 1
    process.fds.put(fd, file, cloexec=True)
    return fd


def timed(run: Run, *, posix: bool) -> Run:
    """time command: how long it took, on stderr, in the form TIMEFORMAT asks for."""

    def measured(shell: Shell) -> int:
        clock = shell.process.kernel.hub.clock
        budget = shell.budget
        start, cpu = clock.monotonic(), budget.cpu
        try:
            return run(shell)
        finally:
            real, user = clock.monotonic() - start, budget.cpu - cpu
            template = shell.vars.get("TIMEFORMAT")
            text = render_times(template, real, max(user, 0.0), 0.0, posix=posix)
            if template and not posix and (wrong := invalid_character(template)):
                shell.error(f"TIMEFORMAT: `{wrong}': invalid format character")
            elif text:
                shell.process.error(text + "\n")

    return measured
