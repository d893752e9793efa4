"""Child processes of a shell: subshells, programs, waiting for them, and finding commands by PATH."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFMT, S_IFREG, X_OK
from belljar.abi.paths import join
from belljar.abi.signals import DESCRIPTIONS, Signal
from belljar.kernel.loader import Program, load
from belljar.kernel.process import IGNORE, Process
from belljar.kernel.status import ExitStatus
from belljar.kernel.vfs.openfile import OpenFile
from belljar.shell import terminal
from belljar.shell.absent import hint
from belljar.shell.control import Break, Continue, Discard, ExitShell, KilledBySignal, Return, ShellError
from belljar.shell.print import print_command
from belljar.shell.state import State

if TYPE_CHECKING:
    from belljar.shell.nodes import Command
    from belljar.shell.shell import Shell

Run = Callable[["Shell"], int]


class Processes(State):
    """Starting processes and waiting for them."""

    def fork_run(  # type: ignore[misc]
        self: Shell,
        run: Run,
        *,
        files: Mapping[int, OpenFile] | None = None,
        substitution: bool = False,
        background: bool = False,
        pgid: int | None = None,
    ) -> Process:
        """Start a subshell that runs `run`; `files` become its descriptors."""
        process = self.process
        if process.depth >= self.budget.limits.depth:
            self.budget.exceed("depth")
        child = process.kernel.fork(process, process.argv)
        child.depth = process.depth + 1
        if files:
            fds = child.fds
            for fd, file in files.items():
                fds.put(fd, file)
        if pgid is not None or (self.monitor and not substitution):
            child.pgid = pgid or child.pid
        sub = self.fork(child, substitution=substitution)
        if background:
            sub.background = True
        if files and 0 in files:
            sub.stdin_given = True
        child.start_fiber(lambda _process: sub.run_as_process(run))
        return child

    def run_as_process(self: Shell, run: Run) -> int:  # type: ignore[misc]
        """Run a subshell from start to exit status."""
        try:
            try:
                status = run(self)
            except ExitShell as end:
                status = end.status
            except (Return, Discard) as end:
                status = end.status
            except (Break, Continue):
                status = 0
            except ShellError as error:
                self.error(str(error))
                status = error.status
            if self.fatal:
                self.die_of_signal()
            return self.finish(status)
        except KilledBySignal:
            self.die_of_signal()
        finally:
            self.end()

    def start_process(self: Shell, body: Callable[[Process], int], argv: list[str]) -> Process:  # type: ignore[misc]
        """Start a program in a child."""
        process = self.process
        child = process.kernel.fork(process, argv)
        child.depth = process.depth
        child.handlers = {n: h for n, h in child.handlers.items() if h is IGNORE}
        terminal.reset_signals(self, child)
        if self.monitor:
            child.pgid = child.pid
        child.start_fiber(body)
        return child

    def is_throwaway(self: Shell) -> bool:  # type: ignore[misc]
        """Whether this process ends after its only command, so that a program may take it over."""
        return self.subshell_process and "EXIT" not in self.traps.commands and not self.process_files

    def wait_for(self: Shell, child: Process) -> int:  # type: ignore[misc]
        """A child's status, as `$?` shows it."""
        return self.wait_status(child).shell

    def wait_status(self: Shell, child: Process) -> ExitStatus:  # type: ignore[misc]
        return self.process.wait_for(child)

    def wait_children(self: Shell, children: list[Process]) -> list[ExitStatus]:  # type: ignore[misc]
        """Wait for foreground children. A ^C meanwhile ends this shell only if it ended them."""
        process = self.process
        before = process.handlers.get(Signal.INT)
        if before is not None and before != self.traps.note_fatal:
            return [process.wait_for(child) for child in children]
        came: list[int] = []
        process.handlers[Signal.INT] = came.append
        try:
            statuses = [process.wait_for(child) for child in children]
        finally:
            if before is None:
                del process.handlers[Signal.INT]
            else:
                process.handlers[Signal.INT] = before
        if came:
            process.interrupted = False
            if statuses and statuses[-1].signal == Signal.INT:
                process.raise_signal(Signal.INT)
        return statuses

    def wait_foreground(self: Shell, child: Process, node: Command | None) -> int:  # type: ignore[misc]
        """Wait for a child and return its status; `node` is its command, for the report of a signal."""
        if self.monitor:
            return self.wait_group([child], node)[0]
        (status,) = self.wait_children([child])
        if status.signal:
            self.report_signal(child, status, print_command(node) if node is not None else "")
        self.after_waiting(status.shell)
        return status.shell

    def after_waiting(self: Shell, status: int) -> None:  # type: ignore[misc]
        """Run the traps of signals that came while waiting, and remove ended jobs."""
        if self.traps.pending:
            self.status = status
            self.run_pending_traps()
        if self.jobs.jobs and not self.interactive:
            self.jobs.forget_ended()

    def wait_pipeline(self: Shell, children: list[Process], node: Command) -> list[int]:  # type: ignore[misc]
        """Wait for all stages; the statuses in order."""
        if self.monitor:
            return self.wait_group(children, node)
        statuses = self.wait_children(children)
        if statuses and statuses[-1].signal:
            self.report_signal(children[-1], statuses[-1], print_command(node))
        self.after_waiting(statuses[-1].shell if statuses else 0)
        return [status.shell for status in statuses]

    def wait_group(self: Shell, children: list[Process], node: Command | None) -> list[int]:  # type: ignore[misc]
        """Wait under job control: the group is in the foreground meanwhile, and becomes a job if it stops."""
        job = self.jobs.add(children, print_command(node) if node is not None else "", background=False)
        with terminal.foreground(self, job):
            while not job.done and not job.stopped:
                self.jobs.wait_news()
        if job.stopped:
            self.jobs.tell_stopped(job)
            if self.interactive and self.loops:
                raise Break(self.loops, 128 + job.stop_signal)
        else:
            self.jobs.remove(job)
            last = job.statuses[job.pid]
            if last.signal:
                self.report_signal(job.processes[-1], last, job.text)
        return [job.status_of(child) for child in children]

    def report_signal(self: Shell, child: Process, status: ExitStatus, text: str) -> None:  # type: ignore[misc]
        """Report a foreground child killed by a signal other than SIGINT and SIGPIPE.

        A ^C that ended a job of an interactive shell also interrupts the command the job was part of.
        """
        if status.signal == Signal.INT and self.interactive and self.monitor:
            self.interrupted = True
            self.check_interrupt()
        if status.signal in (Signal.INT, Signal.PIPE):
            return
        what = DESCRIPTIONS.get(status.signal, f"Unknown signal {status.signal}")
        notice = f"{what}\n"
        if not self.interactive and status.signal != Signal.TERM:
            notice = f"{self.message_name()}: line {self.line}: " + f"{child.pid:>5} {what:<23} {text}".rstrip() + "\n"
        if self.holds_notice:
            self.held_notice = notice
        else:
            self.process.error(notice)

    # Finding commands.

    def find_command(  # type: ignore[misc]
        self: Shell, name: str, path: str | None = None, *, hashes: bool = True
    ) -> str | None:
        """The file a command name means by PATH (or `path`), through the hash table; None if there is none.

        `hashes` False: for a child, which would have a hash table of its own.
        """
        if "/" in name:
            return name
        if path is None:
            found = self.hash.get(name)
            if found is not None and (self.posix or self.shopts["checkhash"]) and not self._is_there(found[0]):
                self.located.pop(name, None)
                found = None
            if found is not None:
                if hashes:
                    self.hash[name] = (found[0], found[1] + 1)
                return found[0]
        located = self.located.get(name) if path is None and (self.subshell_process or not hashes) else None
        if located is None:
            located = self.search_path(name, self.vars.get("PATH") if path is None else path)
        if located is not None and path is None:
            self.located[name] = located
            if self.options["hashall"] and hashes:
                self.hash[name] = (located, 1)
        return located

    def _is_there(self: Shell, path: str) -> bool:  # type: ignore[misc]
        try:
            self.process.fs.resolve(path)
        except SysError:
            return False
        return True

    def search_path(self: Shell, name: str, path: str | None, *, every: bool = False) -> str | None:  # type: ignore[misc]
        """The first executable of that name; if there is none, the first file that isn't executable."""
        if not name or path is None:
            return None
        fs = self.process.fs
        second: str | None = None
        for directory in path.split(":"):
            candidate = f"{directory}/{name}" if directory else f"./{name}"
            try:
                place = fs.resolve(candidate)
            except SysError:
                continue
            if place.node.mode & S_IFMT != S_IFREG:
                continue
            if fs.credentials.may(place.node, X_OK):
                return candidate
            second = second or candidate
        return second

    def command_not_found(self: Shell, argv: list[str]) -> int:  # type: ignore[misc]
        name = argv[0]
        handler = self.functions.get("command_not_found_handle")
        if handler is not None:
            child = self.fork_run(lambda sub: sub.call(handler, ["command_not_found_handle", *argv], True))
            return self.wait_for(child)
        if self.vars.get("PATH") in (None, ""):
            self.error(f"{name}: No such file or directory")
        else:
            self.error(f"{name}: command not found")
            if (instead := hint(name)) is not None:
                self.process.error(f"{name}: {instead}\n")
        return 127

    def script_program(self: Shell, path: str, argv: list[str]) -> tuple[Program, list[str]] | None:  # type: ignore[misc]
        """A file without `#!` that is text: this shell runs it. None if it is binary."""
        try:
            file = self.process.fs.open(path, 0).retain()
        except SysError:
            return None
        try:
            head = file.read(80)
        finally:
            file.release()
        if head.startswith(b"\x7fELF") or b"\0" in head.partition(b"\n")[0]:
            return None
        from belljar.shell.main import main

        return main, ["bash", path, *argv[1:]]

    def bad_interpreter(self: Shell, path: str) -> str | None:  # type: ignore[misc]
        """The interpreter that a file which can be opened names in its `#!` line, if it has one."""
        try:
            file = self.process.fs.open(path, 0).retain()
        except SysError:
            return None
        try:
            head = file.read(128)
        finally:
            file.release()
        words = head[2:].decode(errors="replace").split() if head.startswith(b"#!") else []
        return words[0] if words else None

    def exec(  # type: ignore[misc]
        self: Shell, argv: list[str], env: dict[str, str] | None = None, *, title: str | None = None
    ) -> int:
        """Replace the shell by a program (`exec`): returns 126/127 only if it can't, with the message printed.

        `title` is its argv[0].
        """
        from belljar.shell.invoke import report_failure

        name = argv[0]
        path = name if "/" in name else self.find_command(name)
        if path is None:
            self.error(f"exec: {name}: not found")
            return 127
        environment = dict(self.environment() if env is None else env)
        process = self.process
        if title is not None:
            argv = [title, *argv[1:]]
        try:
            program, full = load(process, path, argv)
        except SysError as error:
            script = self.script_program(path, argv) if error.name == "ENOEXEC" else None
            if script is None:
                shown = join(self.vars.get("PWD") or "/", path.removeprefix("./"))
                if error.name != "EACCES":
                    return report_failure(self, shown, path, error)
                reason = "Is a directory" if self.process.fs.is_dir(path) else error.reason
                self.error(f"{shown}: {reason}")
                self.error(f"exec: {shown}: cannot execute: {reason}")
                return 126
            program, full = script
        if env is None:
            environment["_"] = path
        level = environment.get("SHLVL", "")
        if level.isdigit() and len(level) < 9:
            environment["SHLVL"] = str(max(int(level) - 1, 0))
        process.prepare_exec(path, full, environment)
        process.exit(program(process))
