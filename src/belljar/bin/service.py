"""service - start, stop and look at services

Usage: service list
       service status|start|stop|restart|wait NAME...
       service logs [-f] [-n LINES] NAME

A service is described by /etc/init/NAME.toml. `service NAME COMMAND` is understood as well. `status` ends with 0 if the
service runs, with 3 if it does not, and with 4 if there is none of that name.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, flag, utility, value
from belljar.bin._services import NOT_RUNNING, UNKNOWN, act, find, lines_of, print_log, supervisor
from belljar.kernel.process import Process
from belljar.kernel.services.supervisor import Status

_VERBS = ("status", "start", "stop", "restart", "reload", "force-reload", "wait", "logs")
_WAIT_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class Options:
    all: bool = flag("--status-all", "as `service list`")
    follow: bool = flag("-f", "--follow", "of logs: go on with what comes")
    lines: str | None = value("-n", "--lines", "of logs: the last so many lines", metavar="LINES")


@utility("service", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if options.all or operands in (["list"], ["ls"]):
        _print_table(process, supervisor(process).list())
        return 0
    if len(operands) == 2 and operands[0] not in _VERBS and operands[1] in _VERBS:
        operands.reverse()
    verb, *names = operands or [""]
    if verb not in _VERBS or not names:
        raise UsageError(f"{verb}: no such command" if verb else "a command is needed")
    return max(_run(process, options, verb, name) for name in names)


def _run(process: Process, options: Options, verb: str, name: str) -> int:
    services = supervisor(process)
    match verb:
        case "start":
            return act(process, name, services.start)
        case "stop":
            return act(process, name, services.stop)
        case "restart" | "reload" | "force-reload":
            return act(process, name, services.restart)
        case "logs":
            return print_log(process, name, lines_of(options.lines), follow=options.follow)
        case "wait":
            if status := act(process, name, lambda name: services.wait(name, _WAIT_SECONDS)):
                return status
            found = services.status(name)
            if not found.ready:
                process.warn(f"{name}: {found}")
            return 0 if found.ready else NOT_RUNNING
    known = find(process, name)
    if known is None:
        return UNKNOWN
    process.print(f"{name}: {known}")
    return 0 if known.runs else NOT_RUNNING


def _print_table(process: Process, found: list[Status]) -> None:
    width = max((len(each.name) for each in found), default=0)
    for each in found:
        times = "once" if each.restarts == 1 else f"{each.restarts} times"
        restarts = f", restarted {times}" if each.restarts else ""
        process.print(f"{each.name:<{width}}  {each}{restarts}")
