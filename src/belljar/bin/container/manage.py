"""container start, stop, restart, kill, rm, prune, wait, logs and inspect."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.signals import Signal
from belljar.bin._kit import UsageError, flag, value
from belljar.bin._kit.options import read_options
from belljar.bin._services import lines_of
from belljar.bin.container.show import NoOptions, describe, to_json
from belljar.kernel.containers import Contained, Containers
from belljar.kernel.process import Process
from belljar.libc.numbers import parse_integer

_STOP_SECONDS_MAX: Final = 3600
_FOLLOW_SECONDS: Final = 0.1


@dataclass(frozen=True, slots=True)
class StartOptions:
    attach: bool = flag("-a", "--attach", "(accepted, ignored)")


@dataclass(frozen=True, slots=True)
class StopOptions:
    seconds: str = value("-t", "--time", "--timeout", "seconds before it is killed", metavar="N", default="10")


@dataclass(frozen=True, slots=True)
class KillOptions:
    signal: str = value("-s", "--signal", "the signal", metavar="SIGNAL", default="KILL")


@dataclass(frozen=True, slots=True)
class RemoveOptions:
    force: bool = flag("-f", "--force", "end it first if it runs")
    volumes: bool = flag("-v", "--volumes", "(volumes stay)")


@dataclass(frozen=True, slots=True)
class LogOptions:
    follow: bool = flag("-f", "--follow", "go on with what comes, until it ends")
    lines: str | None = value("-n", "--tail", "--lines", "the last so many lines", metavar="LINES")


@dataclass(frozen=True, slots=True)
class InspectOptions:
    format: str = value("-f", "--format", "(only JSON is written)", metavar="FORMAT", default="")


def _each(process: Process, containers: Containers, names: list[str], act: Callable[[Contained], object]) -> int:
    """Do something with each; those that can't be found or done are named."""
    if not names:
        raise UsageError("the name of a container is needed", hint=False)
    status = 0
    for name in names:
        try:
            act(containers.find(name))
            process.print(name)
        except (SysError, UsageError) as error:
            why = error.why or error.reason if isinstance(error, SysError) else str(error)
            process.warn(why if name in why else f"{name}: {why}")
            status = 1
    return status


def start(process: Process, containers: Containers, args: list[str]) -> int:
    _, names = read_options(StartOptions, args)

    def act(contained: Contained) -> None:
        if contained.state != "running":
            containers.start(process, contained, None)

    return _each(process, containers, names, act)


def stop(process: Process, containers: Containers, args: list[str]) -> int:
    options, names = read_options(StopOptions, args)
    return _each(process, containers, names, lambda each: containers.stop(each, _seconds(options.seconds)))


def restart(process: Process, containers: Containers, args: list[str]) -> int:
    options, names = read_options(StopOptions, args)

    def act(contained: Contained) -> None:
        containers.stop(contained, _seconds(options.seconds))
        containers.start(process, contained, None)

    return _each(process, containers, names, act)


def kill(process: Process, containers: Containers, args: list[str]) -> int:
    options, names = read_options(KillOptions, args)
    word = options.signal.upper().removeprefix("SIG")
    number = Signal[word] if word in Signal.__members__ else parse_integer(word) or 0
    if not 0 < number <= 64:
        raise UsageError(f"invalid signal: {options.signal}", hint=False)

    def act(contained: Contained) -> None:
        if contained.state != "running":
            raise UsageError(f"the container {contained.name} is not running", hint=False)
        containers.signal(contained, number)

    return _each(process, containers, names, act)


def remove(process: Process, containers: Containers, args: list[str]) -> int:
    options, names = read_options(RemoveOptions, args)

    def act(contained: Contained) -> None:
        if contained.state == "running":
            if not options.force:
                raise UsageError(f"the container {contained.name} is running: stop it first, or use rm -f", hint=False)
            containers.kill(contained)
            containers.wait(contained)
        containers.remove(contained)

    return _each(process, containers, names, act)


def prune(process: Process, containers: Containers, args: list[str]) -> int:
    for each in containers.list():
        if each.state != "running":
            containers.remove(each)
            process.print(each.name)
    return 0


def wait(process: Process, containers: Containers, args: list[str]) -> int:
    _, names = read_options(NoOptions, args)
    for name in names:
        contained = containers.find(name)
        containers.wait(contained)
        process.print(str(contained.status.shell if contained.status is not None else 0))
    return 0


def logs(process: Process, containers: Containers, args: list[str]) -> int:
    options, names = read_options(LogOptions, args)
    if len(names) != 1:
        raise UsageError("the name of one container is needed", hint=False)
    contained = containers.find(names[0])
    process.stdout.write(containers.read_log(contained, lines_of(options.lines)))
    seen = len(containers.read_log(contained, None))
    while options.follow and contained.state == "running":
        process.stdout.flush()
        containers.wait(contained, _FOLLOW_SECONDS)
        now = containers.read_log(contained, None)
        process.stdout.write(now[seen if seen <= len(now) else 0 :])
        seen = len(now)
    return 0


def inspect(process: Process, containers: Containers, args: list[str]) -> int:
    options, names = read_options(InspectOptions, args)
    if options.format:
        raise UsageError("--format: only JSON is written; use jq", hint=False)
    now = process.kernel.now()
    process.print(to_json([describe(containers.find(name), now) for name in names], 2))
    return 0


def _seconds(text: str) -> float:
    seconds = parse_integer(text)
    if seconds is None or not 0 <= seconds <= _STOP_SECONDS_MAX:
        raise UsageError(f"-t {text}: it must be a number of seconds, at most {_STOP_SECONDS_MAX}", hint=False)
    return float(seconds)
