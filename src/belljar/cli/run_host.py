"""`belljar run`: one command or script in a fresh sandbox; exit code = the command's."""

from __future__ import annotations

import os
import stat
import sys
import threading
from contextlib import suppress
from typing import TYPE_CHECKING, Any, BinaryIO, Final

from belljar.cli.options import (
    add_restore_options,
    add_sandbox_options,
    is_overlay,
    make_sandbox,
    sandbox_arguments,
    store_at,
)
from belljar.cli.screen_host import close_quietly, complain
from belljar.cli.start_host import Start

if TYPE_CHECKING:
    import argparse

    from belljar.api.process import Process, Stdin, Stream
    from belljar.api.sandbox import Sandbox

INTERPRETERS: Final = {".sh": "bash", ".bash": "bash", ".py": "python3", ".js": "node", ".mjs": "node", ".cjs": "node"}
_READ: Final = 64 << 10


def add_to(subcommands: argparse._SubParsersAction[argparse.ArgumentParser], start: Start | None) -> None:
    parser = subcommands.add_parser(
        "run",
        help="run a command or a script",
        description="Run a bash command, or a script file of this machine, in a fresh sandbox. "
        "The exit code is the command's; 124 if it was stopped by --timeout, 125 if there could be no sandbox.",
    )
    parser.add_argument(
        "what",
        metavar="COMMAND|SCRIPT",
        help="text for bash, or the path of a script: by its #! line, or its suffix (.sh, .py, .js)",
    )
    parser.add_argument(
        "args",
        nargs="*",
        default=[],
        metavar="ARG",
        help="arguments of a script, or of a command that is one word, else $1, $2 ...; after -- they may begin with -",
    )
    parser.add_argument(
        "--timeout", "-t", type=seconds, metavar="SECONDS", help="end it after this long (exit code 124)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as one JSON object")
    parser.add_argument(
        "--diff", metavar="FILE", help="write what it changed in directories mounted as overlay, as a diff"
    )
    parser.add_argument(
        "--snapshot",
        metavar="LABEL",
        help="keep the sandbox under this label when the command has ended, however it did",
    )
    add_sandbox_options(parser)
    add_restore_options(parser)
    parser.set_defaults(run=lambda arguments: run(parser, arguments, start))


def run(parser: argparse.ArgumentParser, arguments: argparse.Namespace, start: Start | None) -> int:
    from dataclasses import replace

    from belljar.api.clock_host import HOST_CLOCK

    settings = sandbox_arguments(parser, arguments)
    overlays = [path for path, text in zip(settings["mounts"], arguments.mount, strict=True) if is_overlay(text)]
    if arguments.diff is not None and not overlays:
        parser.error("--diff: there is no --mount SOURCE:PATH:overlay whose changes it could show")
    if arguments.timeout is not None:
        if not arguments.timeout > 0:
            parser.error(f"--timeout {arguments.timeout:g}: must be more than 0 seconds")
        try:
            settings["limits"] = replace(settings["limits"], wall_seconds=arguments.timeout)
        except ValueError as error:
            parser.error(f"--timeout {arguments.timeout:g}: {error}")
    if not (settings["files"] or settings["mounts"]):
        check_script(parser, arguments.what)
    command = parse_command(parser, arguments.what, arguments.args, settings["files"])

    from belljar.api.command import PIPE
    from belljar.owner.supervisor_host import shared

    if arguments.snapshot is not None:
        check_snapshot(arguments.snapshot, arguments.store)
    shared.source = start
    stdin = own_input()
    try:
        sandbox = make_sandbox(settings)
    except (ValueError, TypeError) as error:
        parser.error(str(error))
    with sandbox:
        began = HOST_CLOCK.monotonic()
        process = sandbox.spawn(command, stdin=stdin)
        if stdin is None or stdin == PIPE:
            threading.Thread(target=pass_on, args=(process.stdin,), daemon=True).start()
        shown = collect(process) if arguments.json else show(process)
        code = process.wait()
        assert code is not None
        timed_out = arguments.timeout is not None and process.limit == "wall_seconds"
        code = 124 if timed_out else code
        if arguments.diff is not None:
            text = "".join(sandbox.changes(path).diff() for path in overlays)
            with open(arguments.diff, "w", encoding="utf-8", errors="surrogateescape", newline="") as file:
                file.write(text)
        kept = keep(sandbox, arguments.snapshot, arguments.store)
    if arguments.json:
        import json

        result: dict[str, Any] = {
            **shown,
            "exit_code": code,
            "duration_ms": round((HOST_CLOCK.monotonic() - began) * 1e3, 3),
            "timed_out": timed_out,
            "truncated": process.truncated,
            "limit": process.limit,
            **kept,
        }
        sys.stdout.write(json.dumps(result) + "\n")
    return code


def check_snapshot(label: str, location: str | None) -> None:
    """Find out before the command runs whether there can be a snapshot at its end. SnapshotError, StoreError."""
    from belljar.store.default_host import default_store
    from belljar.store.snapshot import LABEL, check_label

    (store_at(location) or default_store()).get(LABEL + check_label(label))


def keep(sandbox: Sandbox, label: str | None, location: str | None) -> dict[str, Any]:
    """Make the snapshot that was asked for, and say what is not in it."""
    if label is None:
        return {}
    snapshot = sandbox.snapshot(label, store_at(location))
    for lost in snapshot.lost:
        complain(f"belljar: not in the snapshot: {lost}")
    return {"snapshot": snapshot.ref}


def seconds(text: str) -> float:
    """The value of an option. ValueError."""
    from argparse import ArgumentTypeError

    try:
        return float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is no number of seconds") from None


def is_word(text: str) -> bool:
    return bool(text) and all(c.isalnum() or c in "_./+@%-" for c in text)


def check_script(parser: argparse.ArgumentParser, what: str) -> None:
    """End with an error for what can only be a script of this machine, and is not there."""
    if os.path.splitext(what)[1] in INTERPRETERS and is_word(what) and not os.path.exists(what):
        parser.error(f"{what}: no such file on this machine")


def parse_command(
    parser: argparse.ArgumentParser, what: str, args: list[str], files: dict[str, tuple[bytes, int]]
) -> list[str]:
    """Return argv. A script is added to `files`: a file that has a suffix we know or is given as a path."""
    name = os.path.basename(what)
    suffix = os.path.splitext(name)[1]
    if not (os.path.isfile(what) and (suffix in INTERPRETERS or "/" in what)):
        # `run ls /tmp`: text that is one word has no use for $1, and whoever writes this means the command's arguments.
        words = args and is_word(what)
        return ["bash", "-c", '"$@"', "bash", what, *args] if words else ["bash", "-c", what, "bash", *args]
    try:
        with open(what, "rb") as file:
            script = file.read()
    except OSError as error:
        parser.error(f"{what}: {error.strerror}")
    path = f"/tmp/{name}"
    files[path] = (script, 0o755)
    if script.startswith(b"#!"):
        return [path, *args]
    return [INTERPRETERS.get(suffix, "bash"), path, *args]


def own_input() -> bytes | int | None:
    """Return our stdin as `spawn` takes it: all of a short file, a pipe or a terminal to be copied, or nothing."""
    from belljar.api.command import DEVNULL, PIPE

    try:
        found = os.fstat(0)
    except OSError:
        return DEVNULL  # closed
    if stat.S_ISREG(found.st_mode) and found.st_size <= _READ:
        return os.read(0, _READ)
    if not stat.S_ISCHR(found.st_mode):
        return PIPE
    return DEVNULL if found.st_rdev == os.stat(os.devnull).st_rdev else None


def pass_on(stdin: Stdin) -> None:
    """Copy our stdin to the command, no faster than it is read; on a thread that may never end."""
    from belljar.api.errors import SandboxError

    try:
        while data := os.read(0, _READ):
            stdin.send(data)
        stdin.close()
    except (SandboxError, OSError):
        return  # the command is gone


def show(process: Process[bytes]) -> dict[str, str]:
    """Copy stdout and stderr to ours, as they come."""
    errors = threading.Thread(target=_copy_aside, args=(process.stderr, sys.stderr.buffer), daemon=True)
    errors.start()
    _copy(process.stdout, sys.stdout.buffer)
    errors.join()
    return {}


def collect(process: Process[bytes]) -> dict[str, str]:
    """Read stdout and stderr to their ends."""
    parts: list[bytes] = []
    errors = threading.Thread(target=lambda: parts.append(process.stderr.read()), daemon=True)
    errors.start()
    out = process.stdout.read()
    errors.join()
    return {"stdout": out.decode("utf-8", "replace"), "stderr": b"".join(parts).decode("utf-8", "replace")}


def _copy(stream: Stream[bytes], to: BinaryIO) -> None:
    for data in stream:
        try:
            to.write(data)
            to.flush()
        except BrokenPipeError:
            raise
        except OSError as error:
            close_quietly()
            raise SystemExit(f"belljar: can't write the output: {error.strerror}") from error


def _copy_aside(stream: Stream[bytes], to: BinaryIO) -> None:
    """Copy on a thread of its own, ignoring errors of the sandbox: the main thread gets them too."""
    from belljar.api.errors import SandboxError

    with suppress(BrokenPipeError, SandboxError):
        _copy(stream, to)
