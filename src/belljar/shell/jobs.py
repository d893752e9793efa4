"""Jobs: pipelines started with `&` or stopped, by number, and how `wait`, `jobs`, `fg` and `kill %1` find them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from belljar.kernel.process import Process
from belljar.kernel.status import ExitStatus

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


@dataclass(slots=True)
class Job:
    """One pipeline. `statuses` fills up as its processes end, by pid."""

    number: int
    pgid: int
    text: str
    processes: list[Process]
    statuses: dict[int, ExitStatus] = field(default_factory=dict)
    stopped: bool = False
    notified: bool = True
    """Whether its last change was reported to the user."""
    background: bool = True
    disowned: bool = False
    no_hangup: bool = False

    @property
    def done(self) -> bool:
        return len(self.statuses) == len(self.processes)

    @property
    def status(self) -> int:
        """`$?` of the pipeline: that of its last process."""
        last = self.statuses.get(self.processes[-1].pid)
        return last.shell if last is not None else 0

    @property
    def pid(self) -> int:
        """What `$!` was: the pid of the last process."""
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

    def add(self, processes: list[Process], text: str, *, background: bool = True) -> Job:
        raise NotImplementedError

    def find(self, spec: str) -> Job:
        """The job of `%1`, `%+`, `%%`, `%-`, `%name`, `%?text`. ShellError: `spec: no such job`, `ambiguous job spec`."""
        raise NotImplementedError

    def by_pid(self, pid: int) -> Job | None:
        raise NotImplementedError

    def remove(self, job: Job) -> None:
        raise NotImplementedError

    def refresh(self) -> None:
        """Take in what children did meanwhile, without waiting."""
        raise NotImplementedError

    def wait(self, job: Job) -> int:
        """Wait until the job ends (or stops); its status. EINTR-safe: a trapped signal ends it with 128+n."""
        raise NotImplementedError

    def wait_pid(self, pid: int) -> int | None:
        """Wait for one child by pid; None if it isn't a child of this shell (127 is the builtin's to say)."""
        raise NotImplementedError

    def wait_any(self, jobs: list[Job] | None = None) -> tuple[Job, int] | None:
        """`wait -n`: the next of these jobs (all, if None) to end; None if there is none to wait for."""
        raise NotImplementedError

    def wait_all(self) -> int:
        """`wait` without arguments; 0, or 128+n if a trapped signal came."""
        raise NotImplementedError

    def foreground(self, job: Job) -> int:
        """`fg`: continue the job and wait for it."""
        raise NotImplementedError

    def background(self, job: Job) -> None:
        """`bg`: continue the job."""
        raise NotImplementedError
