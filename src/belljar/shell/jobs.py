"""Jobs: pipelines started with `&` or stopped, by number, and how `wait`, `jobs`, `fg` and `kill %1` find them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import Struct, field

from belljar.abi.errno import EINTR
from belljar.abi.errors import SysError
from belljar.abi.flags import WCONTINUED, WNOHANG, WUNTRACED
from belljar.abi.signals import DESCRIPTIONS, Signal, parse_signal
from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus, WaitResult
from belljar.shell import terminal
from belljar.shell.control import ShellError

if TYPE_CHECKING:
    from belljar.shell.shell import Shell

REMEMBERED: Final = 1000
"""Number of ended children's statuses kept for a later `wait`."""


class Job(Struct):
    """One pipeline. `statuses` fills up as its processes end, by pid."""

    number: int
    pgid: int
    text: str
    processes: list[Process]
    statuses: dict[int, ExitStatus] = field(default_factory=dict)
    stops: dict[int, int] = field(default_factory=dict)
    """The signals that stopped those of its processes that are stopped, by pid."""
    notified: bool = True
    """Whether its last change was reported to the user."""
    background: bool = True
    disowned: bool = False
    pipefail: bool = False
    no_hangup: bool = False

    @property
    def done(self) -> bool:
        return len(self.statuses) == len(self.processes)

    @property
    def stopped(self) -> bool:
        """Whether none of its processes runs and one is stopped."""
        return bool(self.stops) and len(self.stops) + len(self.statuses) == len(self.processes)

    @property
    def stop_signal(self) -> int:
        """The signal that stopped the last of its stopped processes."""
        return next((self.stops[p.pid] for p in reversed(self.processes) if p.pid in self.stops), Signal.TSTP)

    @property
    def status(self) -> int:
        """`$?` of the pipeline: that of its last process, or under `pipefail` of the last that failed."""
        if self.pipefail and self.done:
            return next((code for p in reversed(self.processes) if (code := self.status_of(p))), 0)
        return self.status_of(self.processes[-1])

    def status_of(self, process: Process) -> int:
        """The status of one of its processes, as in `$?` and PIPESTATUS."""
        ended = self.statuses.get(process.pid)
        if ended is not None:
            return ended.shell
        return 128 + self.stops[process.pid] if process.pid in self.stops else 0

    @property
    def pid(self) -> int:
        """The pid of the last process, as in `$!`."""
        return self.processes[-1].pid


class JobTable:
    """The jobs of one shell. A subshell starts with none of its own."""

    def __init__(self, shell: Shell) -> None:
        self.shell = shell
        self.jobs: dict[int, Job] = {}
        self.current: int = 0
        """The number of `%+`; `previous` of `%-`."""
        self.previous: int = 0
        self.last_pid: int | None = None
        """$!"""
        self.ended: dict[int, ExitStatus] = {}
        """Statuses of children that are no longer jobs, for a later `wait pid`."""
        self._warned = -1
        """Number of the command that warned of stopped jobs instead of ending the shell."""

    def add(self, processes: list[Process], text: str, *, background: bool = True) -> Job:
        self.refresh()
        if not self.shell.interactive:
            for job in [job for job in self.jobs.values() if job.done and job.notified]:
                self._forget(job)
        number = max(self.jobs, default=0) + 1
        job = Job(number, processes[0].pgid, text, processes, background=background, pipefail=self.shell.pipefail)
        self.jobs[number] = job
        self._make_current(number)
        return job

    def _make_current(self, number: int) -> None:
        if self.current != number:
            self.previous, self.current = self.current, number

    def find(self, spec: str) -> Job:
        """The job of `%1`, `%+`, `%%`, `%-`, `%name`, `%?text`. ShellError: no such job, ambiguous job spec."""
        name = spec.removeprefix("%")
        job: Job | None
        if name in ("", "%", "+"):
            job = self.jobs.get(self.current)
        elif name == "-":
            job = self.jobs.get(self.previous) or self.jobs.get(self.current)
        elif name.isdecimal() and len(name) < 9:
            job = self.jobs.get(int(name))
        else:
            if name.startswith("?"):
                found = [job for job in self.jobs.values() if name[1:] in job.text]
            else:
                found = [job for job in self.jobs.values() if job.text.startswith(name)]
            if len(found) > 1:
                raise ShellError(f"{spec}: ambiguous job spec")
            job = found[0] if found else None
        if job is None:
            raise ShellError(f"{spec}: no such job")
        return job

    def by_pid(self, pid: int) -> Job | None:
        for job in self.jobs.values():
            if any(process.pid == pid for process in job.processes):
                return job
        return None

    def remove(self, job: Job) -> None:
        self.jobs.pop(job.number, None)
        if job.number in (self.current, self.previous):
            if job.number == self.current:
                self.current = self.previous
            others = [number for number in self.jobs if number != self.current]
            self.previous = max(others, default=0)
            if self.current not in self.jobs:
                self.current = self.previous
                self.previous = max((number for number in self.jobs if number != self.current), default=0)

    def forget_ended(self) -> None:
        """Take the jobs that ended off the list."""
        self.refresh()
        for job in [job for job in self.jobs.values() if job.done]:
            self._forget(job)

    def _forget(self, job: Job) -> None:
        """Take a job off the list, but remember how its processes ended."""
        if self.shell.monitor and job.background and not job.notified:
            job.notified = True
            self.shell.process.error(describe(self, job) + "\n")
        last = job.statuses.get(job.pid)
        if (
            last is not None
            and last.signal not in (0, Signal.TERM)
            and not self.shell.interactive
            and not self.shell.subshell_process
        ):
            self.shell.report_signal(job.processes[-1], last, job.text)
        self.drop(job)

    def drop(self, job: Job) -> None:
        """Take a job that ended off the list, its statuses kept for a later `wait`."""
        self.ended.update(job.statuses)
        while len(self.ended) > REMEMBERED:
            del self.ended[next(iter(self.ended))]
        self.remove(job)

    def refresh(self) -> None:
        """Collect the status changes of children without waiting (WNOHANG)."""
        process = self.shell.process
        while True:
            try:
                news = process.wait(-1, WNOHANG | WUNTRACED | WCONTINUED)
            except SysError:
                return
            if news is None:
                return
            self._note(news)

    def _note(self, news: WaitResult) -> None:
        job = self.by_pid(news.pid)
        if job is None:
            if not news.stopped and not news.continued:
                self.ended[news.pid] = news.status
                self.shell.child_ended(news.pid)
            return
        if news.stopped:
            job.stops[news.pid] = news.status.signal
        else:
            job.stops.pop(news.pid, None)
        if not news.stopped and not news.continued:
            job.statuses[news.pid] = news.status
            self.shell.child_ended(news.pid)
        if news.continued:
            job.notified = True
        elif job.done or job.stopped:
            job.notified = False

    def wait_news(self) -> int | None:
        """Wait until any child changes; None, or 128+n if a trapped signal came first. ECHILD."""
        try:
            news = self.shell.process.wait(-1, WUNTRACED)
        except SysError as error:
            if error.errno != EINTR:
                raise
            return self.interruption()
        assert news is not None
        self._note(news)
        return self.interruption()

    def interruption(self) -> int | None:
        """128+n of the first signal whose trap waits to be run, or of ^C."""
        if self.shell.interrupted:
            return 128 + Signal.INT
        for name in self.shell.traps.pending:
            number = parse_signal(name)
            if number and number != Signal.CHLD:
                return 128 + number
        return None

    def wait(self, job: Job) -> int:
        """Wait until the job ends (or stops); its status. A trapped signal ends it with 128+n."""
        while not job.done and not (job.stopped and self.shell.monitor):
            try:
                interrupted = self.wait_news()
            except SysError:
                break
            if interrupted is not None:
                return interrupted
        if job.done:
            self._forget(job)
        return job.status

    def wait_pid(self, pid: int) -> int | None:
        """Wait for one child by pid; None if it isn't a child of this shell."""
        self.refresh()
        while True:
            ended = self.ended.get(pid)
            if ended is not None:
                return ended.shell
            job = self.by_pid(pid)
            if job is not None:
                if job.done:
                    self._forget(job)
                    return job.status if pid == job.pid else job.statuses[pid].shell
            elif not any(child.pid == pid for child in self.shell.process.children):
                return None
            interrupted = self.wait_news()
            if interrupted is not None:
                return interrupted

    def wait_any(self, jobs: list[Job] | None = None) -> tuple[Job, int] | None:
        """`wait -n`: the next of these jobs (all, if None) to end; None if there is none to wait for."""
        self.refresh()
        while True:
            wanted = [job for job in (self.jobs.values() if jobs is None else jobs) if job.number in self.jobs]
            if not wanted:
                return None
            for job in wanted:
                if job.done:
                    self._forget(job)
                    return job, job.status
            try:
                interrupted = self.wait_news()
            except SysError:
                return None
            if interrupted is not None:
                return wanted[0], interrupted

    def wait_all(self) -> int:
        """`wait` without arguments; 0, or 128+n if a trapped signal came."""
        self.refresh()
        while any(not job.done and not (job.stopped and self.shell.monitor) for job in self.jobs.values()):
            try:
                interrupted = self.wait_news()
            except SysError:
                break
            if interrupted is not None:
                return interrupted
        self.forget_ended()
        return 0

    def foreground(self, job: Job) -> int:
        """`fg`: continue the job and wait for it."""
        job.background = False
        self._make_current(job.number)
        with terminal.foreground(self.shell, job):
            self._continue(job)
            status = self.wait(job)
        if job.stopped:
            self.tell_stopped(job)
        elif job.done and self.shell.interactive and (last := job.statuses[job.pid]).signal:
            self.shell.report_signal(job.processes[-1], last, job.text)
        return status

    def holds_back(self) -> bool:
        """Whether the shell shouldn't end yet: there are stopped jobs, and it is the first time it is asked to."""
        shell = self.shell
        self.refresh()
        if self._warned == shell.command_number - 1 or not any(job.stopped for job in self.jobs.values()):
            return False
        self._warned = shell.command_number
        shell.process.error("There are stopped jobs.\n")
        return True

    def tell_stopped(self, job: Job) -> None:
        """A foreground job was stopped from the keyboard."""
        job.notified = True
        self._make_current(job.number)
        self.shell.process.error(f"\n[{job.number}]+  Stopped                 {job.text}\n")

    def background(self, job: Job) -> None:
        """`bg`: continue the job."""
        job.background = True
        self._continue(job)

    def _continue(self, job: Job) -> None:
        job.stops.clear()
        for child in job.processes:
            if child.status is None:
                child.deliver(Signal.CONT)


def state(job: Job, *, long: bool = False) -> str:
    """`Running`, `Done`, `Exit 3`, `Terminated` ..."""
    if job.stopped and not job.done:
        return DESCRIPTIONS[job.stop_signal] if long else "Stopped"
    if not job.done:
        return "Running"
    last = job.statuses[job.processes[-1].pid]
    if last.signal:
        return DESCRIPTIONS.get(last.signal, f"Signal {last.signal}")
    return f"Exit {last.code}" if last.code else "Done"


def describe(table: JobTable, job: Job, *, long: bool = False) -> str:
    """One line of `jobs`."""
    mark = "+" if job.number == table.current else "-" if job.number == table.previous else " "
    ampersand = " &" if not job.done and not job.stopped and job.background else ""
    pid = f"{job.processes[0].pid:>5}" if long else ""
    return f"[{job.number}]{mark} {pid} {state(job, long=long):<24}{job.text}{ampersand}"
