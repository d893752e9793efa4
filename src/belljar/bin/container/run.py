"""container run, create and exec."""

from __future__ import annotations

import re
from typing import Final

from belljar.abi.container_state import CONTAINER_NAME
from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EADDRINUSE
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.bin._kit import UsageError, flag, many, value
from belljar.bin._kit.options import parse
from belljar.kernel.containers import Contained, Containers, Request, VolumeRequest
from belljar.kernel.loader import run_program
from belljar.kernel.pipe import Outlet
from belljar.kernel.process import Process
from belljar.kernel.services.log import Log
from belljar.kernel.services.unit_files import read_account
from belljar.kernel.vfs.openfile import OpenFile
from belljar.libc.numbers import parse_integer

_SIZE: Final = re.compile(r"(\d{1,12})([bkmg]?)b?", re.I)
_UNITS: Final = {"": 1, "b": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
MEMORY_LEAST: Final = 6 << 20
_PIDS_MAX: Final = 1 << 22


@dataclass(frozen=True, slots=True)
class RunOptions:
    detach: bool = flag("-d", "--detach", "run in the background and print its id")
    interactive: bool = flag("-i", "--interactive", "give it our standard input")
    tty: bool = flag("-t", "--tty", "(our terminal is its terminal, if we have one)")
    remove: bool = flag("--rm", "remove it when it has ended")
    name: str = value("--name", "its name", metavar="NAME", default="")
    env: tuple[str, ...] = many("-e", "--env", "set a variable, or pass ours on", metavar="VAR[=VALUE]")
    env_file: tuple[str, ...] = many("--env-file", "read variables from a file", metavar="FILE")
    volumes: tuple[str, ...] = many("-v", "--volume", "mount a directory of ours", metavar="SOURCE:TARGET[:ro]")
    mounts: tuple[str, ...] = many(
        "--mount", "the same in other words", metavar="type=bind,source=DIR,target=DIR[,readonly]"
    )
    cwd: str = value("-w", "--workdir", "working directory", metavar="DIR", default="")
    user: str = value("-u", "--user", "whom it runs as", metavar="USER", default="")
    ports: tuple[str, ...] = many("-p", "--publish", "let a port of ours lead to one of its", metavar="OUTSIDE:INSIDE")
    hostname: str = value("-h", "--hostname", "its host name", metavar="NAME", default="")
    entrypoint: str = value("--entrypoint", "the program, before the command", metavar="PROGRAM", default="")
    memory: str = value("-m", "--memory", "memory of a program in an interpreter", metavar="SIZE", default="")
    pids: str = value("--pids", "--pids-limit", "processes at one moment", metavar="N", default="")
    network: str = value("--network", "--net", "none: only its own loopback", metavar="NAME", default="bridge")
    read_only: bool = flag("--read-only", "its files can't be changed")
    init: bool = flag("--init", "(it always has an init)")
    restart: str = value("--restart", "only no: services are what is started again", metavar="POLICY", default="no")
    pull: str = value("--pull", "(nothing is pulled)", metavar="WHEN", default="")
    platform: str = value("--platform", "(there is one)", metavar="NAME", default="")
    quiet: bool = flag("-q", "--quiet", "(nothing is pulled)")


@dataclass(frozen=True, slots=True)
class ExecOptions:
    detach: bool = flag("-d", "--detach", "run in the background")
    interactive: bool = flag("-i", "--interactive", "(our standard input is its)")
    tty: bool = flag("-t", "--tty", "(our terminal is its terminal, if we have one)")
    env: tuple[str, ...] = many("-e", "--env", "set a variable, or pass ours on", metavar="VAR[=VALUE]")
    cwd: str = value("-w", "--workdir", "working directory", metavar="DIR", default="")
    user: str = value("-u", "--user", "whom it runs as", metavar="USER", default="")


def run_container(process: Process, containers: Containers, args: list[str]) -> int:
    parsed = parse(RunOptions, args, "first-operand-ends")
    options = RunOptions(**parsed.values)
    contained = _create(process, containers, options, parsed.operands)
    try:
        if options.detach:
            containers.start(process, contained, None)
            process.print(contained.id)
            return 0
        return _run_here(process, containers, contained, options)
    except SysError as error:
        containers.remove(contained)
        if error.errno == EADDRINUSE:
            raise UsageError("a port that is to be published is in use", hint=False) from None
        raise
    except UsageError:
        containers.remove(contained)
        raise


def create(process: Process, containers: Containers, args: list[str]) -> int:
    parsed = parse(RunOptions, args, "first-operand-ends")
    process.print(_create(process, containers, RunOptions(**parsed.values), parsed.operands).id)
    return 0


def _create(process: Process, containers: Containers, options: RunOptions, operands: list[str]) -> Contained:
    if not operands:
        raise UsageError("an image is needed: `images` lists those there are", hint=False)
    image, *command = operands
    image = image.removesuffix(":latest")
    if image not in containers.images:
        known = ", ".join(sorted(containers.images))
        raise UsageError(
            f"no image '{image}' in here, and none is pulled: there are {known}; the sandbox's owner adds others",
            hint=False,
        )
    if options.name and not CONTAINER_NAME.fullmatch(options.name):
        raise UsageError(f"'{options.name}' is no name of a container: use letters, digits, _ . and -", hint=False)
    if options.restart not in ("no", ""):
        raise UsageError("--restart: only no; describe a service in /etc/init of the image instead", hint=False)
    if options.network not in ("none", "bridge", "default"):
        raise UsageError(f"--network {options.network}: there is bridge, and none", hint=False)
    request = Request(
        image,
        tuple(([options.entrypoint] if options.entrypoint else []) + command),
        options.name,
        options.hostname,
        tuple(_environment(process, options.env, options.env_file).items()),
        options.cwd,
        options.user,
        (*(_volume(text) for text in options.volumes), *(_mount(text) for text in options.mounts)),
        tuple(_port(text) for text in options.ports),
        _memory(options.memory),
        _number("--pids", options.pids),
        options.remove,
        options.network != "none",
        options.read_only,
    )
    if options.cwd and not options.cwd.startswith("/"):
        raise UsageError(f"-w {options.cwd}: it must be an absolute path", hint=False)
    try:
        return containers.create(process, request)
    except SysError as error:
        match error.name:
            case "EEXIST":
                why = f"the name '{options.name}' is in use by another container: remove it, or choose another name"
            case "EINVAL":
                why = f"the image {image} has no command of its own: give one"
            case "ENOSPC":
                why = "there are too many containers: remove some (prune)"
            case _:
                raise
        raise UsageError(why, hint=False) from None


def _run_here(process: Process, containers: Containers, contained: Contained, options: RunOptions) -> int:
    """Run it in the foreground: its output is ours, and whoever ends us ends it."""
    kernel, fs = process.kernel, process.fs
    null = fs.open("/dev/null", O_RDONLY)
    files = {0: process.fds.get(0) or null if options.interactive else null}
    for fd in (1, 2):
        file = process.fds.get(fd)
        if file is None:
            continue
        if not options.remove:
            contained.log = contained.log or containers.open_log(contained)
            file = kernel.open_outlet(process, Outlet(kernel.hub, _tee(contained.log, file)))
        files[fd] = file
    process.stdout.flush()
    containers.start(process, contained, files)
    try:
        containers.wait(contained)
    finally:
        containers.kill(contained)
        if options.remove:
            containers.remove(contained)
    process.budget.check()
    if contained.limit:
        process.warn(f"{contained.name}: it reached its limit {contained.limit} and was stopped")
    return contained.status.shell if contained.status is not None else 137


class _tee:
    """Writes to a log and to a file."""

    def __init__(self, log: Log, file: OpenFile) -> None:
        self._log = log
        self._file = file

    def __call__(self, data: bytes) -> None:
        self._log.write(data)
        rest = data
        while rest:
            rest = rest[self._file.write(rest) :]


def execute(process: Process, containers: Containers, args: list[str]) -> int:
    parsed = parse(ExecOptions, args, "first-operand-ends")
    options, operands = ExecOptions(**parsed.values), parsed.operands
    if len(operands) < 2:
        raise UsageError("a container and a command are needed", hint=False)
    contained, argv = containers.find(operands[0]), operands[1:]
    box = contained.box
    if box is None or contained.state != "running":
        raise UsageError(f"the container {contained.name} is not running", hint=False)
    view = box.init.fs
    user, home = read_account(view, options.user or contained.request.user or contained.image.user)
    env = {**box.init.env, "HOME": home, **_environment(process, options.env, ())}
    process.stdout.flush()
    cwd = options.cwd or contained.request.cwd or contained.image.cwd
    child = box.run(process, lambda me: run_program(me, argv, "container"), argv, env=env, credentials=user, cwd=cwd)
    if options.detach:
        return 0
    return process.wait_for(child).shell


def _environment(process: Process, given: tuple[str, ...], files: tuple[str, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    lines = [line for file in files for line in process.read_file(file).decode("utf-8", "surrogateescape").splitlines()]
    for word in (*(line for line in lines if line.strip() and not line.lstrip().startswith("#")), *given):
        name, equals, text = word.partition("=")
        if not name:
            raise UsageError(f"-e {word}: a variable has a name", hint=False)
        if equals:
            found[name] = text
        elif name in process.env:
            found[name] = process.env[name]
    return found


def _volume(text: str) -> VolumeRequest:
    source, *rest = text.split(":")
    if not rest or len(rest) > 2 or not source or not rest[0].startswith("/") or rest[1:] not in ([], ["ro"], ["rw"]):
        raise UsageError(f"-v {text}: write SOURCE:/TARGET or SOURCE:/TARGET:ro", hint=False)
    return VolumeRequest(source, rest[0], rest[1:] == ["ro"])


def _mount(text: str) -> VolumeRequest:
    given = dict(word.partition("=")[::2] for word in text.split(","))
    source = given.pop("source", "") or given.pop("src", "")
    target = given.pop("target", "") or given.pop("destination", "") or given.pop("dst", "")
    kind = given.pop("type", "volume")
    flags = [given.pop(name) for name in ("readonly", "ro") if name in given]
    known = kind in ("bind", "volume") and (kind == "volume" or "/" in source)
    if given or not known or not source or not target.startswith("/") or not set(flags) <= {"", "true", "1"}:
        raise UsageError(
            f"--mount {text}: write type=bind,source=/DIR,target=/DIR or type=volume,source=NAME,target=/DIR, "
            "and ,readonly if it is",
            hint=False,
        )
    return VolumeRequest(source, target, bool(flags))


def _port(text: str) -> tuple[int, int]:
    words = text.removesuffix("/tcp").split(":")
    outside, inside = (parse_integer(word) or 0 for word in (words[-2:] if len(words) > 1 else words * 2))
    if len(words) > 3 or not 0 < outside < 65536 or not 0 < inside < 65536:
        raise UsageError(f"-p {text}: write OUTSIDE:INSIDE, two ports of TCP", hint=False)
    return outside, inside


def _memory(text: str) -> int:
    if not text:
        return 0
    match = _SIZE.fullmatch(text)
    size = int(match[1]) * _UNITS[match[2].lower()] if match else 0
    if size < MEMORY_LEAST:
        raise UsageError(f"--memory {text}: write a size such as 64m, of 6m at least", hint=False)
    return size


def _number(option: str, text: str) -> int:
    if text in ("", "-1", "0"):
        return 0
    number = parse_integer(text)
    if number is None or not 0 < number <= _PIDS_MAX:
        raise UsageError(f"{option} {text}: it must be a number, at most {_PIDS_MAX}", hint=False)
    return number
