"""What `service`, `systemctl` and `journalctl` have in common."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError
from belljar.kernel.process import Process
from belljar.kernel.services.log import read_log
from belljar.kernel.services.supervisor import Status, Supervisor
from belljar.kernel.services.unit import UnitError
from belljar.libc.numbers import parse_integer

NOT_RUNNING: Final = 3
UNKNOWN: Final = 4
"""Exit statuses, as those of `systemctl status`."""
_FOLLOW_SECONDS: Final = 0.1


def supervisor(process: Process) -> Supervisor:
    """UsageError where no init runs."""
    found = process.space.services
    if found is None:
        raise UsageError("no init runs here", hint=False)
    return found


def act(process: Process, name: str, action: Callable[[str], object]) -> int:
    """Do something with a service; 0, or the exit status of what was wrong, which is said."""
    try:
        action(name)
    except SysError as error:
        process.warn(f"{name}: {'no such service' if error.name == 'ENOENT' else error.reason}")
        return UNKNOWN if error.name == "ENOENT" else 1
    except UnitError as error:
        process.warn(f"{name}: {error}")
        return 1
    return 0


def find(process: Process, name: str) -> Status | None:
    """How a service is; None if there is none, which is said."""
    found: list[Status] = []
    act(process, name, lambda name: found.append(supervisor(process).status(name)))
    return found[0] if found else None


def print_log(process: Process, name: str, lines: int | None, *, follow: bool) -> int:
    """A service's output; with `follow` what comes, too, for ever."""
    paths: list[str] = []
    if status := act(process, name, lambda name: paths.append(supervisor(process).log_path(name))):
        return status
    view = process.space.table[1].fs
    shown = read_log(view, paths[0], lines)
    process.stdout.write(shown)
    seen = read_log(view, paths[0])
    while follow:
        process.stdout.flush()
        process.sleep(_FOLLOW_SECONDS)
        now = read_log(view, paths[0])
        if now != seen:
            # A log that was set aside begins anew: what is still known of it tells where we are.
            new = now[len(seen) :] if now.startswith(seen) else now[now.rfind(seen[-4096:]) + len(seen[-4096:]) :]
            process.stdout.write(new)
            seen = now
    return 0


def lines_of(text: str | None) -> int | None:
    """A number of lines; UsageError."""
    if text is None or text == "all":
        return None
    number = parse_integer(text)
    if number is None or number < 0:
        raise UsageError(f"{text!r} is not a number of lines", hint=False)
    return number
