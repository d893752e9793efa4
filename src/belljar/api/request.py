"""Checks and conversions of arguments and answers, for both fronts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import asdict, replace
from typing import Any, Final, Protocol

from belljar.abi.limits import Limits
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.wire import Boot, Failure
from belljar.api.core import Pending, Running
from belljar.api.errors import ENDED, FileError, SandboxError, printable
from belljar.api.results import ExecResult

TIMEOUT_EXIT: Final = 124
GRACE: Final = 5.0
"""Seconds past a command's wall-clock limit after which the host stops believing in the worker. On a crowded machine an
honest one may not run for a second or two."""
STOPPED: Final = "the sandbox stopped answering past its time limit and was ended. Make a new sandbox."
NOT_TAKEN: Final = (
    "the sandbox did not take what it was sent within the time limit: its worker is stopped, or too busy to read. It "
    "was ended. Make a new sandbox."
)
START_SECONDS: Final = 30.0
"""How long a worker may take to report that it is locked."""

COMMAND_MAX: Final = 8 << 20
"""Characters of a command's arguments, or of an environment; Linux takes a quarter of that."""

Data = str | bytes | bytearray | memoryview
FileContents = Data | tuple[Data, int]


class PathLike(Protocol):
    """As `os.PathLike`: a path of pathlib, say."""

    def __fspath__(self) -> str: ...


AnyPath = str | PathLike
"""A path in the sandbox."""


def check_path(path: object, what: str = "a path in the sandbox") -> str:
    """TypeError for what is no path."""
    if not isinstance(path, str) and hasattr(path, "__fspath__"):
        path = path.__fspath__()
    if not isinstance(path, str):
        raise TypeError(f"{what} is a str, or a path of pathlib, not {type(path).__name__}")
    return path


def check_mode(mode: object) -> int:
    """TypeError, ValueError for what is no file mode."""
    if isinstance(mode, bool) or not isinstance(mode, int):
        raise TypeError(f"a file's mode is an int such as 0o755, not {mode!r}")
    if not 0 <= mode <= 0o7777:
        raise ValueError(f"a file's mode is an int such as 0o755, not {mode:#o}")
    return mode


def to_bytes(data: object, what: str = "input") -> bytes:
    """Text or bytes, as bytes. TypeError for anything else."""
    if isinstance(data, str):
        return fsencode(data)
    if isinstance(data, bytes | bytearray | memoryview):
        return bytes(data)
    raise TypeError(f"{what} must be str or bytes, not {type(data).__name__}")


def check_mapping(what: str, given: object) -> Mapping[Any, Any]:
    """None is an empty one. TypeError."""
    if given is None:
        return {}
    if not isinstance(given, Mapping):
        raise TypeError(f"{what} must be a dict, not {type(given).__name__}")
    return given


def check_environment(env: object) -> dict[str, str]:
    """A copy. TypeError, ValueError for what no environment can hold."""
    given = check_mapping("env", env)
    for name, value in given.items():
        if not isinstance(name, str) or not isinstance(value, str):
            raise TypeError(f"env must map str to str; {name!r} maps to {value!r}")
        if not name or "=" in name or "\0" in name + value:
            raise ValueError(f"env name {name!r}: empty, or with '=' or a NUL, or a NUL in its value")
    if sum(len(name) + len(value) for name, value in given.items()) > COMMAND_MAX:
        raise ValueError("env is too large: write long values to a file")
    return dict(given)


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
    if len(text) > COMMAND_MAX:
        raise ValueError(f"a command of {len(text)} characters is too long: write it to a file, or to its stdin")
    return argv


def check_contents(path: object, value: object) -> tuple[bytes, int | None]:
    """TypeError, ValueError for what no file can hold."""
    what = f"files[{path!r}]"
    match value:
        case str() | bytes() | bytearray() | memoryview():
            return to_bytes(value, what), None
        case (data, mode):
            return to_bytes(data, what), check_mode(mode)
    raise TypeError(f"{what} must be str, bytes or (bytes, mode), not {type(value).__name__}")


def limits_for_exec(base: Limits, given: Limits | None, timeout: float | None) -> tuple[dict[str, int | float], Limits]:
    """The limits to send, and those that then hold: never more than the sandbox's own. TypeError, ValueError."""
    if given is not None and not isinstance(given, Limits):
        raise TypeError(f"limits must be Limits(...), not {type(given).__name__}")
    effective = base if given is None else base.merged(given)
    if timeout is not None:
        if isinstance(timeout, bool) or not isinstance(timeout, int | float):
            raise TypeError(f"timeout must be a number of seconds, not {type(timeout).__name__}")
        if not timeout > 0:
            raise ValueError(f"timeout must be positive seconds, not {timeout!r}")
        effective = replace(effective, wall_seconds=min(timeout, effective.wall_seconds))
    return (asdict(effective) if effective is not base else {}), effective


def boot_message(env: dict[str, str], cwd: str, user: str, hostname: str, limits: Limits, seed: bytes = b"") -> Boot:
    return Boot(
        {k.encode("utf-8", "surrogateescape"): v.encode("utf-8", "surrogateescape") for k, v in env.items()},
        cwd.encode("utf-8", "surrogateescape"),
        user.encode(),
        hostname.encode(),
        asdict(limits) if limits != Limits() else {},
        seed,
    )


def exec_result(
    running: Running, parts: Mapping[int, Iterable[bytes | bytearray]], duration: float, timeout: float | None
) -> ExecResult:
    exited = running.exited
    assert exited is not None
    timed_out = timeout is not None and exited.limit == "wall_seconds"
    code = TIMEOUT_EXIT if timed_out else 128 + exited.signal if exited.signal else exited.code
    return ExecResult(
        b"".join(parts[1]),
        b"".join(parts[2]),
        code,
        duration * 1e3,
        timed_out,
        exited.truncated,
        exited.limit,
    )


def raise_failure(pending: Pending, path: str = "") -> None:
    """Turn a failed answer into the exception for it."""
    error = pending.error
    if isinstance(error, ENDED):
        raise error
    if isinstance(error, Failure):
        if error.errno:
            raise FileError(error.errno, fsdecode(error.path) if error.path is not None else path)
        raise SandboxError(f"the sandbox refused the request: {printable(error.message.decode('utf-8', 'replace'))}")
