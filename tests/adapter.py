"""Runs a command in a session inside this process: what the spec tests and the conformance suites drive.

`run` has the shape that `suites/run.py --adapter tests/adapter.py` expects: a fresh sandbox for each case.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from functools import cache
from typing import Final

from belljar.abi.errors import SysError
from belljar.abi.limits import Limits
from belljar.abi.paths import dirname, fsencode
from belljar.bin._kit.discovery import find, names
from belljar.kernel.cpu_guard_host import CpuGuard
from belljar.kernel.machine import Machine
from belljar.kernel.machine_host import host_machine
from belljar.worker.session import Result, Session

RECURSION: Final = 100_000
sys.setrecursionlimit(RECURSION)  # already here: hypothesis objects to a limit that changes inside an example

FileValue = bytes | str | tuple[str] | tuple[str, str] | tuple[bytes, int]
"""Contents, contents and mode, `("dir",)`, or `("link", target)`."""


@cache
def _host() -> Machine:
    """One machine for all sessions: each would hold an epoll descriptor until it is collected."""
    return host_machine()


def new_session(
    env: Mapping[str, str] | None = None, limits: Limits | None = None, machine: Machine | None = None
) -> Session:
    sys.setrecursionlimit(RECURSION)
    return Session(machine or _host(), programs=find, names=names(), env=env, limits=limits)


def put(session: Session, path: str, value: object) -> None:
    """Make a file, `("dir",)`, or `("link", target)`, with the directories above it."""
    process, fs = session.kernel.init, session.kernel.init.fs.fork()
    fs.credentials = session.credentials
    fs.umask = 0o022
    original, process.fs = process.fs, fs
    try:
        _make_directories(session, dirname(path))
        match value:
            case ("dir",):
                _make_directories(session, path)
            case ("link", str(target)):
                fs.symlink(target, path)
            case (bytes(data), int(mode)):
                process.write_file(path, data)
                fs.chmod(path, mode)
            case bytes(data):
                process.write_file(path, data)
            case str(text):
                process.write_file(path, fsencode(text))
            case _:
                raise TypeError(f"{path}: not a file value: {value!r}")
    finally:
        process.fs = original


def _make_directories(session: Session, path: str) -> None:
    fs = session.kernel.init.fs
    parts = path.strip("/").split("/")
    for end in range(1, len(parts) + 1):
        try:
            fs.mkdir("/" + "/".join(parts[:end]))
        except SysError as error:
            if error.name != "EEXIST":
                raise


def run_command(
    session: Session,
    command: list[str],
    *,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    merge: bool = False,
) -> Result:
    guard = CpuGuard(session.kernel.hub)
    guard.start()
    try:
        return session.exec(command, stdin=stdin, env=env, cwd=cwd, merge_stderr=merge)
    finally:
        guard.stop()


def run(
    script: str,
    env: Mapping[str, str],
    files: Mapping[str, FileValue],
    stdin: bytes,
    cwd: str = "/tmp/w",
    feed: str = "c",
    argv: tuple[str, ...] = (),
    args: tuple[str, ...] = (),
    merge: bool = False,
    timeout: float = 60,
) -> tuple[bytes, bytes, int]:
    session = new_session(env, Limits(wall_seconds=timeout))
    for path, value in files.items():
        put(session, path, value)
    command = ["bash", *argv]
    if feed == "stdin":
        stdin = fsencode(script)
        command += ["-s", *args] if args else []
    elif feed == "file":
        put(session, cwd + "/.script.sh", fsencode(script))
        command += [cwd + "/.script.sh", *args]
    else:
        command += ["-c", script, *(["sh", *args] if args else [])]
    result = run_command(session, command, stdin=stdin, cwd=cwd, merge=merge)
    return result.stdout, result.stderr, result.status
