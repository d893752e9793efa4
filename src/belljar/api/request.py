"""What both fronts make of their arguments, and of a worker's answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any, Final

from belljar.abi.limits import Limits
from belljar.abi.paths import fsdecode
from belljar.abi.wire import Boot, Failure
from belljar.api.core import Pending, Running
from belljar.api.errors import FileError, SandboxError, printable
from belljar.api.results import ExecResult

TIMEOUT_EXIT: Final = 124
GRACE: Final = 2.0
"""Seconds past a command's wall-clock limit after which the host stops believing in the worker."""
STOPPED: Final = "the sandbox stopped answering past its time limit and was ended. Make a new sandbox."
START_SECONDS: Final = 30.0
"""How long a worker may take to report that it is locked."""

FileContents = str | bytes | tuple[bytes, int]


def check_environment(env: Mapping[Any, Any] | None) -> dict[str, str]:
    """A copy. TypeError, ValueError for what no environment can hold."""
    for name, value in (env or {}).items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"env must map str to str; {name!r} maps to {value!r}")
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"env name {name!r}: empty, or with '=' or a NUL, or a NUL in its value")
    return dict(env or {})


def check_command(command: object) -> list[str]:
    """argv: a str runs in bash."""
    if isinstance(command, str):
        argv = ["bash", "-c", command]
        text = command
    elif isinstance(command, list | tuple) and command and all(isinstance(arg, str) for arg in command):
        argv = list(command)
        text = "".join(argv)
    else:
        raise TypeError(f"a command is a str (run by bash) or a non-empty list of str (argv), not {command!r}")
    if "\0" in text:
        raise ValueError("a command can't hold a NUL character")
    return argv


def check_contents(path: str, value: FileContents) -> tuple[bytes, int | None]:
    match value:
        case bytes():
            return value, None
        case str():
            return value.encode(), None
        case (bytes(data), int(mode)):
            return data, mode
    raise TypeError(f"files[{path!r}] must be str, bytes or (bytes, mode), not {type(value).__name__}")


def limits_for_exec(base: Limits, given: Limits | None, timeout: float | None) -> tuple[dict[str, int | float], Limits]:
    """What to send, and what then holds: never more than the sandbox's own."""
    effective = base if given is None else base.narrowed(given)
    if timeout is not None:
        if not timeout > 0:
            raise ValueError(f"timeout must be positive seconds, not {timeout!r}")
        effective = effective.narrowed(Limits(**{**asdict(effective), "wall_seconds": timeout}))
    return (asdict(effective) if effective is not base else {}), effective


def boot_message(env: dict[str, str], cwd: str, user: str, hostname: str, limits: Limits) -> Boot:
    return Boot(
        {k.encode("utf-8", "surrogateescape"): v.encode("utf-8", "surrogateescape") for k, v in env.items()},
        cwd.encode("utf-8", "surrogateescape"),
        user.encode(),
        hostname.encode(),
        asdict(limits) if limits != Limits() else {},
    )


def exec_result(running: Running, duration: float, timeout: float | None) -> ExecResult:
    exited = running.exited
    assert exited is not None
    timed_out = timeout is not None and exited.limit == "wall_seconds"
    code = TIMEOUT_EXIT if timed_out else 128 + exited.signal if exited.signal else exited.code
    return ExecResult(
        b"".join(running.parts[1]),
        b"".join(running.parts[2]),
        code,
        duration * 1e3,
        timed_out,
        exited.truncated,
        exited.limit,
    )


def raise_failure(pending: Pending, path: str = "") -> None:
    """Turn a failed answer into the exception for it."""
    error = pending.error
    if isinstance(error, SandboxError):
        raise error
    if isinstance(error, Failure):
        if error.errno:
            raise FileError(error.errno, fsdecode(error.path) if error.path is not None else path)
        raise SandboxError(f"the sandbox refused the request: {printable(error.message.decode('utf-8', 'replace'))}")
