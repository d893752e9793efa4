"""container ps and images."""

from __future__ import annotations

import json
import shlex
from collections.abc import Sequence
from typing import Any

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import replace_undecodable
from belljar.bin._kit import UsageError, flag
from belljar.bin._kit.options import read_options
from belljar.kernel.containers import Contained, Containers
from belljar.kernel.process import Process


@dataclass(frozen=True, slots=True)
class PsOptions:
    all: bool = flag("-a", "--all", "those that do not run, too")
    quiet: bool = flag("-q", "--quiet", "ids only")
    full: bool = flag("--no-trunc", "(nothing is shortened)")
    json: bool = flag("--json", "as JSON, all that there is to say")


@dataclass(frozen=True, slots=True)
class NoOptions:
    pass


@dataclass(frozen=True, slots=True)
class ImageOptions:
    quiet: bool = flag("-q", "--quiet", "names only")
    json: bool = flag("--json", "as JSON")


def ps(process: Process, containers: Containers, args: list[str]) -> int:
    options, _ = read_options(PsOptions, args)
    found = [each for each in containers.list() if options.all or each.state == "running"]
    now = process.kernel.now()
    if options.json:
        process.print(to_json([describe(each, now) for each in found]))
    elif options.quiet:
        for each in found:
            process.print(each.id)
    else:
        rows = [("CONTAINER ID", "IMAGE", "COMMAND", "STATUS", "PORTS", "NAMES")]
        rows += [
            (
                each.id,
                each.request.image,
                _short(json.dumps(shlex.join(each.argv), ensure_ascii=False)),
                _status(each, now),
                ", ".join(f"{outside}->{inside}/tcp" for outside, inside in each.request.ports),
                each.name,
            )
            for each in found
        ]
        _print_table(process, rows)
    return 0


def top(process: Process, containers: Containers, args: list[str]) -> int:
    """The processes of a container, by the numbers they have outside."""
    _, names = read_options(NoOptions, args)
    box = containers.find(names[0]).box if len(names) == 1 else None
    if box is None or box.init.status is not None:
        raise UsageError("the name of one container that runs is needed", hint=False)
    rows = [("PID", "COMMAND")]
    rows += [
        (str(each.pids.get(process.space, 0)), shlex.join(each.argv))
        for _, each in sorted(box.space.table.items())
        if each.status is None
    ]
    _print_table(process, rows)
    return 0


def port(process: Process, containers: Containers, args: list[str]) -> int:
    _, names = read_options(NoOptions, args)
    if len(names) != 1:
        raise UsageError("the name of one container is needed", hint=False)
    for outside, inside in containers.find(names[0]).request.ports:
        process.print(f"{inside}/tcp -> 127.0.0.1:{outside}")
    return 0


def images(process: Process, containers: Containers, args: list[str]) -> int:
    options, _ = read_options(ImageOptions, args)
    names = sorted(containers.images)
    if options.json:
        process.print(json.dumps(names))
    elif options.quiet:
        for name in names:
            process.print(name)
    else:
        rows = [("IMAGE", "DIGEST")]
        _print_table(process, rows + [(name, containers.images[name]().digest[:19] or "(built in)") for name in names])
    return 0


def to_json(value: object, indent: int | None = None) -> str:
    """JSON without lone surrogates: bytes that are not UTF-8 become U+FFFD."""
    return replace_undecodable(json.dumps(value, indent=indent, ensure_ascii=False))


def describe(each: Contained, now: int) -> dict[str, Any]:
    """What there is to say of a container."""
    request, box = each.request, each.box
    running = each.state == "running" and box is not None
    return {
        "Id": each.id,
        "Name": each.name,
        "Image": request.image,
        "Command": each.argv,
        "State": {
            "Status": each.state,
            "Running": running,
            "Pid": box.init.pids.get(box.space.parent, 0) if running and box is not None and box.space.parent else 0,
            "ExitCode": each.status.shell if each.status is not None else 0,
            "Limit": each.limit,
        },
        "Env": [f"{name}={text}" for name, text in request.env],
        "WorkingDir": request.cwd or each.image.cwd,
        "User": request.user or each.image.user,
        "Mounts": [
            {"Source": volume.source, "Destination": volume.target, "RW": not volume.read_only}
            for volume in request.volumes
        ],
        "Ports": {str(inside): outside for outside, inside in request.ports},
        "IPAddress": each.network.address if running and each.network is not None else "",
        "Memory": request.memory,
        "PidsLimit": request.pids,
        "Age": round((now - each.created) / 1e9, 3),
    }


def _status(each: Contained, now: int) -> str:
    match each.state:
        case "running":
            return f"Up {_age((now - each.started) / 1e9)}"
        case "exited":
            code = each.status.shell if each.status is not None else 0
            return f"Exited ({code}) {_age((now - each.ended) / 1e9)} ago"
    return "Created"


def _age(seconds: float) -> str:
    for size, name in ((86400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= 2 * size:
            return f"{seconds // size:.0f} {name}"
    return f"{seconds:.0f} seconds" if seconds >= 1 else "Less than a second"


def _short(text: str) -> str:
    return text if len(text) <= 40 else text[:37] + '..."'


def _print_table(process: Process, rows: Sequence[tuple[str, ...]]) -> None:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for row in rows:
        process.print("   ".join(f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True)).rstrip())
