"""Job control: jobs, fg, bg, wait, disown, kill and suspend."""

from __future__ import annotations

from typing import TYPE_CHECKING

from belljar.abi.errors import SysError
from belljar.abi.signals import Signal, parse_signal, signal_name
from belljar.libc.numbers import parse_integer
from belljar.shell.builtins.registry import Options, Usage, builtin
from belljar.shell.builtins.trap import signal_names, signal_table
from belljar.shell.control import ShellError
from belljar.shell.jobs import Job, describe
from belljar.shell.variables import is_name

if TYPE_CHECKING:
    from belljar.shell.shell import Shell


@builtin("jobs", "lnprsx")
def jobs(shell: Shell, options: Options, args: list[str]) -> int:
    """jobs [-lnprs] [jobspec ...] or jobs -x command [args]
    Show the jobs of this shell.

    Options:
      -l  with process ids    -p  only the process ids
      -n  only those that changed since last shown
      -r  only running ones   -s  only stopped ones
      -x  run a command with each job spec among its arguments replaced by its process group
    """
    table = shell.jobs
    if "x" in options:
        replaced: list[str] = []
        for arg in args:
            try:
                replaced.append(str(table.find(arg).processes[0].pid) if arg.startswith("%") else arg)
            except ShellError:
                replaced.append(arg)
        return shell.run_command(replaced)
    table.refresh()
    status = 0
    chosen: list[Job] = []
    if args:
        for spec in args:
            try:
                chosen.append(table.find(spec))
            except ShellError as error:
                _report(shell, "jobs", spec, error)
                status = 1
    else:
        chosen = [table.jobs[number] for number in sorted(table.jobs)]
    for job in chosen:
        if ("r" in options and (job.done or job.stopped)) or ("s" in options and not job.stopped):
            continue
        if "n" in options and job.notified:
            continue
        if "p" in options:
            shell.write(f"{job.processes[0].pid}\n")
        else:
            shell.write(describe(shell.jobs, job, long="l" in options) + "\n")
        job.notified = True
        if job.done:
            table.drop(job)
    return status


def _report(shell: Shell, name: str, spec: str, error: ShellError) -> None:
    text = str(error)
    if text.endswith("ambiguous job spec"):
        shell.error(f"{name}: {text.removeprefix('%')}")
        text = f"{spec}: no such job"
    shell.error(f"{name}: {text}")


def _pick(shell: Shell, name: str, spec: str) -> Job | None:
    """The job a spec (or a bare pid, or nothing: the current one) means, or None after saying so."""
    try:
        if not spec:
            return shell.jobs.find("%+")
        return shell.jobs.find(spec)
    except ShellError as error:
        if not spec:
            shell.error(f"{name}: current: no such job")
        else:
            _report(shell, name, spec, error)
        return None


@builtin("fg", "")
def fg(shell: Shell, _options: Options, args: list[str]) -> int:
    """fg [job_spec]
    Continue a job in the foreground.
    """
    if not shell.options["monitor"]:
        shell.error("fg: no job control")
        return 1
    shell.jobs.refresh()
    job = _pick(shell, "fg", args[0] if args else "")
    if job is None:
        return 1
    if job.done:
        shell.error("fg: job has terminated")
        return 1
    shell.write(job.text + "\n")
    return shell.jobs.foreground(job)


@builtin("bg", "")
def bg(shell: Shell, _options: Options, args: list[str]) -> int:
    """bg [job_spec ...]
    Continue stopped jobs in the background.
    """
    if not shell.options["monitor"]:
        shell.error("bg: no job control")
        return 1
    shell.jobs.refresh()
    status = 0
    for spec in args or [""]:
        job = _pick(shell, "bg", spec)
        if job is None:
            status = 1
        elif job.done:
            shell.error("bg: job has terminated")
            status = 1
        elif not job.stopped:
            shell.error(f"bg: job {job.number} already in background")
        else:
            mark = "+" if job.number == shell.jobs.current else "-" if job.number == shell.jobs.previous else " "
            shell.write(f"[{job.number}]{mark} {job.text} &\n")
            shell.jobs.background(job)
    return status


@builtin("wait", "fnp:")
def wait(shell: Shell, options: Options, args: list[str]) -> int:
    """wait [-fn] [-p var] [id ...]
    Wait for jobs or processes to end, all if none is named; the status is that of the last.

    Options:
      -n      for the next one to end
      -p VAR  put the process id it is about into VAR
      -f      until it really ends, not only changes
    """
    target = options.get("p")
    if target is not None:
        if not is_name(target.partition("[")[0]):
            shell.error(f"wait: `{target}': not a valid identifier")
            return 1
        if "[" not in target:
            shell.vars.unset(target)
    if "n" in options:
        return _wait_next(shell, args, target)
    if not args:
        return shell.jobs.wait_all()
    status = 0
    for spec in args:
        status = _wait_one(shell, spec, target)
    return status


def _wait_next(shell: Shell, args: list[str], target: str | None) -> int:
    chosen: list[Job] | None = None
    if args:
        chosen = []
        for spec in args:
            job = _job_of(shell, spec)
            if job is not None:
                chosen.append(job)
    found = shell.jobs.wait_any(chosen)
    if found is None:
        return 127
    job, status = found
    if target is not None:
        shell.assign(target, str(job.pid))
    return status


def _job_of(shell: Shell, spec: str) -> Job | None:
    if spec.startswith("%"):
        return _pick(shell, "wait", spec)
    pid = parse_integer(spec)
    if pid is None:
        shell.error(f"wait: `{spec}': not a pid or valid job spec")
        return None
    job = shell.jobs.by_pid(pid)
    if job is None:
        shell.error(f"wait: pid {pid} is not a child of this shell")
    return job


def _wait_one(shell: Shell, spec: str, target: str | None) -> int:
    if spec.startswith("%"):
        job = _pick(shell, "wait", spec)
        if job is None:
            return 127
        if target is not None:
            shell.assign(target, str(job.pid))
        return shell.jobs.wait(job)
    pid = parse_integer(spec)
    if pid is None or pid < 0:
        shell.error(f"wait: `{spec}': not a pid or valid job spec")
        return 1
    status = shell.jobs.wait_pid(pid)
    if status is None:
        shell.error(f"wait: pid {pid} is not a child of this shell")
        return 127
    if target is not None:
        shell.assign(target, str(pid))
    return status


@builtin("disown", "ahr")
def disown(shell: Shell, options: Options, args: list[str]) -> int:
    """disown [-h] [-ar] [jobspec ... | pid ...]
    Forget jobs, so that the shell's end doesn't concern them.

    Options:
      -a  all    -r  only running ones
      -h  don't forget, but spare them the hangup
    """
    table = shell.jobs
    table.refresh()
    status = 0
    chosen: list[Job] = []
    if args:
        for spec in args:
            pid = parse_integer(spec)
            job = table.by_pid(pid) if pid is not None else None
            if job is None:
                job = _pick(shell, "disown", spec)
            if job is None:
                status = 1
            else:
                chosen.append(job)
    elif "a" in options or "r" in options:
        chosen = list(table.jobs.values())
    else:
        job = _pick(shell, "disown", "")
        if job is None:
            return 1
        chosen = [job]
    for job in chosen:
        if "r" in options and (job.done or job.stopped):
            continue
        if "h" in options:
            job.no_hangup = True
        else:
            job.disowned = True
            table.remove(job)
    return status


@builtin("kill")
def kill(shell: Shell, args: list[str]) -> int:
    """kill [-s sigspec | -n signum | -sigspec] pid | jobspec ... or kill -l [sigspec]
    Send a signal (TERM) to processes or jobs.

    Options:
      -s NAME, -n NUMBER, -NAME, -NUMBER  which signal
      -l  list the signals, or translate between names and numbers
    """
    if not args:
        raise Usage
    number = int(Signal.TERM)
    first = args[0]
    if first in ("-l", "-L"):
        return _list_signals(shell, args[1:])
    if first in ("-s", "-n"):
        if len(args) < 2:
            shell.error(f"kill: {first}: option requires an argument")
            return 1
        spec, args = args[1], args[2:]
    elif first == "--":
        spec, args = "", args[1:]
    elif first.startswith("-") and len(first) > 1:
        spec, args = first[1:], args[1:]
        if spec[0] in "sn" and parse_signal(spec) is None and len(spec) > 1 and parse_signal(spec[1:]) is not None:
            spec = spec[1:]
    else:
        spec = ""
    if spec:
        found = parse_signal(spec) if not (shell.posix and spec.upper().startswith("SIG")) else None
        if found is None:
            shell.error(f"kill: {spec}: invalid signal specification")
            return 1
        number = found
        if args and args[0] == "--":
            args = args[1:]
    if not args:
        raise Usage
    status = 1
    for target in args:
        if _kill_one(shell, target, number):
            status = 0
    if shell.interactive:
        shell.process.kernel.hub.pause()  # what was killed can end before the next prompt tells of jobs
    return status


def _kill_one(shell: Shell, target: str, number: int) -> bool:
    if target.startswith("%"):
        job = _pick(shell, "kill", target)
        if job is None:
            return False
        pids = [-job.pgid] if job.pgid and shell.options["monitor"] else [p.pid for p in job.processes]
        pids_continue = pids if job.stopped and number in (Signal.TERM, Signal.HUP) else []
        done = False
        for pid in pids:
            done = _send(shell, pid, number, target) or done
        for pid in pids_continue:
            _send(shell, pid, Signal.CONT, target)
        return done
    pid_number = parse_integer(target)
    if pid_number is None and not target:
        shell.error("kill: `': not a pid or valid job spec")
        return False
    if pid_number is None:
        shell.error(f"kill: {target}: arguments must be process or job IDs")
        return False
    return _send(shell, pid_number, number, target)


def _send(shell: Shell, pid: int, number: int, target: str) -> bool:
    try:
        shell.process.kill(pid, number)
    except SysError as error:
        shown = f"({pid}) - " if not target.startswith("%") else f"{target}: "
        shell.error(f"kill: {shown}{error.reason}")
        return False
    return True


def _list_signals(shell: Shell, args: list[str]) -> int:
    if not args:
        shell.write(" ".join(signal_names()) + "\n" if shell.posix else signal_table())
        return 0
    status = 0
    for spec in args:
        number = parse_integer(spec)
        if number is not None:
            number = number - 128 if number > 128 else number
            name = "EXIT" if number == 0 else signal_name(number)
            if name.isdecimal() or number < 0:
                shell.error(f"kill: {spec}: invalid signal specification")
                status = 1
            else:
                shell.write(f"{name}\n")
            continue
        found = parse_signal(spec)
        if found is None:
            shell.error(f"kill: {spec}: invalid signal specification")
            status = 1
        else:
            shell.write(f"{found}\n")
    return status


@builtin("suspend", "f")
def suspend(shell: Shell, options: Options, _args: list[str]) -> int:
    """suspend [-f]
    Stop this shell until it is continued; -f even if it is a login shell.
    """
    if not shell.options["monitor"]:
        shell.error("suspend: cannot suspend: no job control")
        return 1
    if shell.login and "f" not in options:
        shell.error("suspend: cannot suspend a login shell")
        return 1
    shell.process.raise_signal(Signal.STOP)
    return 0
