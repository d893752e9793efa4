"""systemctl - the common verbs of systemd's, for the services of this sandbox

Usage: systemctl start|stop|restart|status|is-active|is-failed|is-enabled|enable|disable|cat UNIT...
       systemctl list-units | list-unit-files | daemon-reload

There is no systemd: services are described by /etc/init/NAME.toml, and `service` is their own command. The ending
.service of a unit's name may be left out.
"""

from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.bin._kit import UsageError, flag, many, utility, value
from belljar.bin._services import NOT_RUNNING, UNKNOWN, act, find, print_log, supervisor
from belljar.kernel.process import Process
from belljar.kernel.services.supervisor import Status
from belljar.kernel.services.unit import SUFFIX, UNITS

_ACTIVE = {"running": "active", "starting": "activating", "restarting": "activating", "waiting": "activating"}
_LINES = 10


@dataclass(frozen=True, slots=True)
class Options:
    now: bool = flag("--now", "of enable and disable: start or stop, too")
    quiet: bool = flag("-q", "--quiet", "print nothing")
    pager: bool = flag("--no-pager", "(there is none)")
    full: bool = flag("-l", "--full", "(nothing is shortened)")
    all: bool = flag("-a", "--all", "(all are listed)")
    kind: tuple[str, ...] = many("-t", "--type", "(there are services only)", metavar="TYPE")
    signal: str = value("-s", "--signal", "of kill: the signal", metavar="SIGNAL", default="TERM")
    system: bool = flag("--system", "(there is one init)")
    user: bool = flag("--user", "(there is one init)")


@utility("systemctl", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    verb, *names = operands or ["list-units"]
    names = [name.removesuffix(".service") for name in names]
    if verb in ("list-units", "list-unit-files"):
        return _list(process)
    if verb in ("daemon-reload", "daemon-reexec"):
        return 0  # descriptions are read when they are needed
    services = supervisor(process)
    verbs: dict[str, Callable[[str], int]] = {
        "start": lambda name: act(process, name, services.start),
        "stop": lambda name: act(process, name, services.stop),
        "status": lambda name: _status(process, name),
        "is-active": lambda name: _is(process, options, name, lambda s: (_active(s), _active(s) == "active")),
        "is-failed": lambda name: _is(process, options, name, lambda s: (_active(s), s.state == "failed")),
        "is-enabled": lambda name: _is_enabled(process, options, name),
        "enable": lambda name: _enable(process, options, name, on=True),
        "disable": lambda name: _enable(process, options, name, on=False),
        "cat": lambda name: _cat(process, name),
        "kill": lambda name: act(process, name, lambda name: services.signal(name, _signal(options.signal))),
    }
    for each in ("restart", "reload", "try-restart", "reload-or-restart"):
        verbs[each] = lambda name: act(process, name, services.restart)
    if verb not in verbs:
        raise UsageError(f"Unknown command verb {verb}. There is no systemd here: see systemctl --help", hint=False)
    if not names:
        raise UsageError("Too few arguments.", hint=False)
    return max(verbs[verb](name) for name in names)


def _list(process: Process) -> int:
    found = supervisor(process).list()
    width = max((len(each.name) + 8 for each in found), default=4)
    process.print(f"  {'UNIT':<{width}} LOAD   ACTIVE     SUB        DESCRIPTION")
    for each in found:
        process.print(f"  {each.name + '.service':<{width}} loaded {_active(each):<10} {each.state:<10} {_title(each)}")
    process.print(f"\n{len(found)} loaded units listed.")
    return 0


def _active(status: Status) -> str:
    return _ACTIVE.get(status.state, "failed" if status.state == "failed" else "inactive")


def _title(status: Status) -> str:
    return status.description or status.command


def _status(process: Process, name: str) -> int:
    found = find(process, name)
    if found is None:
        return UNKNOWN
    dot = "●" if found.runs else "○"
    process.print(f"{dot} {name}.service - {_title(found)}")
    process.print(f"     Loaded: loaded ({UNITS}/{name}{SUFFIX})")
    process.print(f"     Active: {_active(found)} ({found}) for {found.since:.0f}s")
    if found.pid:
        process.print(f"   Main PID: {found.pid}")
    if found.restarts:
        process.print(f"   Restarts: {found.restarts}")
    process.print("")
    print_log(process, name, _LINES, follow=False)
    return 0 if found.runs else NOT_RUNNING


def _is(process: Process, options: Options, name: str, tell: Callable[[Status], tuple[str, bool]]) -> int:
    try:
        word, holds = tell(supervisor(process).status(name))
    except SysError:
        word, holds = "inactive", False
    if not options.quiet:
        process.print(word)
    return 0 if holds else NOT_RUNNING


def _is_enabled(process: Process, options: Options, name: str) -> int:
    text = process.try_read(f"{UNITS}/{name}{SUFFIX}")
    if text is None:
        process.warn(f"{name}: no such service")
        return UNKNOWN
    enabled = _enabled_line(fsdecode(text))[0]
    if not options.quiet:
        process.print("enabled" if enabled else "disabled")
    return 0 if enabled else 1


def _enable(process: Process, options: Options, name: str, *, on: bool) -> int:
    """Write `enabled` into the service's file: the rest of it stays as it is."""
    path = f"{UNITS}/{name}{SUFFIX}"
    data = process.try_read(path)
    if data is None:
        process.warn(f"{name}: no such service")
        return UNKNOWN
    enabled, lines = _enabled_line(fsdecode(data))
    if enabled != on:
        lines.insert(0, f"enabled = {'true' if on else 'false'}\n")
        process.write_file(path, fsencode("".join(lines)))
    if not options.now:
        return 0
    return act(process, name, supervisor(process).start if on else supervisor(process).stop)


def _enabled_line(text: str) -> tuple[bool, list[str]]:
    """Whether a description says that it is enabled, and its lines without the one that does."""
    lines = text.splitlines(keepends=True)
    top = next((number for number, line in enumerate(lines) if line.lstrip().startswith("[")), len(lines))
    said = [n for n in range(top) if lines[n].partition("=")[0].strip() == "enabled"]
    enabled = not any(lines[n].partition("=")[2].strip().startswith("false") for n in said)
    return enabled, [line for number, line in enumerate(lines) if number not in said]


def _cat(process: Process, name: str) -> int:
    path = f"{UNITS}/{name}{SUFFIX}"
    data = process.try_read(path)
    if data is None:
        process.warn(f"{name}: no such service")
        return UNKNOWN
    process.print(f"# {path}")
    process.stdout.write(data)
    return 0


def _signal(text: str) -> int:
    from belljar.abi.signals import Signal

    name = text.upper().removeprefix("SIG")
    if name.isdecimal() and len(name) < 3 and 0 < int(name) <= 64:
        return int(name)
    if name not in Signal.__members__:
        raise UsageError(f"Failed to parse signal string {text}.", hint=False)
    return Signal[name]
