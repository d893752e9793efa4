"""The commands of `container`, by name; what Docker has and we have not says so."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches
from typing import Final

from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError
from belljar.bin.container.manage import inspect, kill, logs, prune, remove, restart, start, stop, wait
from belljar.bin.container.run import create, execute, run_container
from belljar.bin.container.show import images, port, ps, top
from belljar.kernel.containers import Containers
from belljar.kernel.process import Process
from belljar.kernel.services.unit import UnitError

Command = Callable[[Process, Containers, list[str]], int]

COMMANDS: Final[dict[str, Command]] = {
    "run": run_container, "create": create, "exec": execute, "ps": ps, "ls": ps, "list": ps, "images": images,
    "inspect": inspect, "logs": logs, "wait": wait, "start": start, "stop": stop, "restart": restart, "kill": kill,
    "rm": remove, "prune": prune, "top": top, "port": port,
}  # fmt: skip
_GIVEN: Final = "images are given by the sandbox's owner, by sandbox.containers.add(image)"
ABSENT: Final = {
    **dict.fromkeys(("pull", "push", "login", "logout", "search", "tag", "load", "save", "import", "rmi"), _GIVEN),
    **dict.fromkeys(("build", "buildx", "commit", "builder"), f"recipes are built outside, by Image(); {_GIVEN}"),
    **dict.fromkeys(
        ("compose", "stack", "swarm", "service"), "start containers one by one; they reach each other by their names"
    ),
    **dict.fromkeys(
        ("network",), "containers are on one network, and reach each other by name; --network none: on none"
    ),
    "volume": "a volume is a directory, or the name of one that is made by `run -v NAME:/path`",
    "attach": "use logs -f, or exec",
    "system": "`prune` removes containers that do not run",
    "stats": "use top, or exec with ps",
    "cp": "share a directory by `run -v`, or use exec with tar",
}


def run(process: Process, args: list[str], help_text: str) -> int:
    if args[:1] in (["container"], ["image"]):  # docker container run, docker image ls
        args = ["images"] if args[:2] in (["image", "ls"], ["image", "list"]) else args[1:]
    word, *rest = args or ["--help"]
    if word in ("--help", "-h", "help"):
        process.stdout.write(help_text.encode())
        return 0
    if word in ("--version", "-v", "version", "info"):
        process.print(f"{process.name} (belljar: containers of this sandbox, no Docker)")
        return 0
    if word in ABSENT:
        raise UsageError(f"{word}: not in here ({process.name} is belljar's own): {ABSENT[word]}", hint=False)
    command = COMMANDS.get(word)
    if command is None:
        close = get_close_matches(word, COMMANDS, 1)
        raise UsageError(f"{word}: no such command" + (f"; did you mean {close[0]}?" if close else ""))
    containers = process.space.containers
    if containers is None:
        raise UsageError("no init runs here", hint=False)
    if process.fs.credentials.uid != 0:
        raise UsageError(f"it takes the sandbox's root: sudo {process.name} {word} ...", hint=False)
    try:
        return command(process, containers, rest)
    except UnitError as error:
        raise UsageError(str(error), hint=False) from None
    except SysError as error:
        why = error.why or error.reason
        raise UsageError(f"{error.path}: {why}" if error.path else why, hint=False) from None
