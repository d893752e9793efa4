"""envd's service process.Process: commands and terminals, their input, their signals, and who listens to them."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from posixpath import normpath
from typing import Any, Final

from msgspec import Struct
from starlette.requests import Request

from belljar.abi.clock import Clock
from belljar.abi.errno import ENOENT, ENOTDIR
from belljar.api.errors import FileError
from belljar.server.connect import read_message, read_single, read_stream
from belljar.server.errors import RpcError
from belljar.server.guest import Guest, Job, Patience, run_as
from belljar.server.paths import parse_user, resolve
from belljar.server.records import Held

_INPUT_SECONDS: Final = 60.0
"""How long a process may leave input unread before the call fails."""
_JOBS_MAX: Final = 1000
_SIGNALS: Final = {"SIGNAL_SIGKILL": "KILL", "SIGNAL_SIGTERM": "TERM", 9: "KILL", 15: "TERM"}

Stream = tuple[AsyncGenerator[dict[str, Any], None], Callable[[], object]]
"""Events for a client, and what to do when it listens no more."""


class Config(Struct, frozen=True):
    cmd: str = ""
    args: list[str] = []
    envs: dict[str, str] = {}
    cwd: str | None = None


class Size(Struct, frozen=True):
    cols: int = 80
    rows: int = 24


class Pty(Struct, frozen=True):
    size: Size = Size()


class Start(Struct, frozen=True):
    process: Config = Config()
    pty: Pty | None = None
    tag: str | None = None
    stdin: bool | None = None


class Selector(Struct, frozen=True):
    pid: int | None = None
    tag: str | None = None


class Selected(Struct, frozen=True):
    process: Selector = Selector()


class Update(Selected, frozen=True):
    pty: Pty | None = None


class Input(Struct, frozen=True):
    stdin: bytes | None = None
    pty: bytes | None = None


class SendInput(Selected, frozen=True):
    input: Input = Input()


class Data(Struct, frozen=True):
    input: Input = Input()


class StreamInput(Struct, frozen=True):
    start: Selected | None = None
    data: Data | None = None
    keepalive: dict[str, Any] | None = None


class SendSignal(Selected, frozen=True):
    signal: str | int = 0


def timeout_of(request: Request) -> float | None:
    """Seconds of the header Connect-Timeout-Ms; None: no limit. RpcError."""
    text = request.headers.get("connect-timeout-ms", "")
    if not text:
        return None
    if not (text.isascii() and text.isdigit() and len(text) <= 10):
        raise RpcError("invalid_argument", "invalid Connect-Timeout-Ms")
    return int(text) / 1e3 or None


def patience_of(request: Request, clock: Clock) -> Patience:
    """How long the client of a stream waits. RpcError."""
    text, seconds = request.headers.get("keepalive-ping-interval", ""), timeout_of(request)
    wanted = text.isascii() and text.isdigit() and 0 < len(text) < 6 and int(text) > 0
    until = None if seconds is None else clock.monotonic() + seconds
    return Patience(clock, float(text) if wanted else None, until)


def _find(guest: Guest, selector: Selector, *, ended: bool = False) -> Job:
    return guest.find(selector.pid, selector.tag, ended=ended)


async def start(request: Request, held: Held, guest: Guest, patience: Patience) -> Stream:
    """Start a process; the stream of its events. It goes on if the client goes away, until its timeout. RpcError."""
    wish = await read_single(request, Start)
    try:
        user = parse_user(request, held.record.user)
    except ValueError as error:
        raise RpcError("unauthenticated", str(error)) from None
    config = wish.process
    if not config.cmd:
        raise RpcError("invalid_argument", "no command")
    if len(guest.jobs) >= _JOBS_MAX:
        raise RpcError("resource_exhausted", f"more than {_JOBS_MAX} processes")
    argv = [config.cmd, *config.args]
    try:
        cwd = normpath(resolve(config.cwd or held.record.cwd, user))
        if user == "root":
            await guest.sandbox.files.stat(cwd)
            argv, cwd = run_as(user, argv, cwd)
        size = None if wish.pty is None else (wish.pty.size.rows or 24, wish.pty.size.cols or 80)
        shown: dict[str, Any] = {"cmd": config.cmd, "args": config.args, "envs": config.envs}
        job, queue = await guest.spawn(
            shown if config.cwd is None else {**shown, "cwd": config.cwd},
            argv,
            env=config.envs,
            cwd=cwd,
            stdin=wish.stdin is not False,
            size=size,
            tag=wish.tag,
            timeout=timeout_of(request),
        )
    except (ValueError, TypeError) as error:
        raise RpcError("invalid_argument", str(error)) from None
    except FileError as error:
        if error.errno in (ENOENT, ENOTDIR):
            raise RpcError("invalid_argument", f"cwd '{cwd}' does not exist") from None
        raise RpcError("invalid_argument", f"error starting process '{config.cmd}': {error}") from None
    return job.events(patience, queue), lambda: job.leave(queue)


async def connect(request: Request, held: Held, guest: Guest, patience: Patience) -> Stream:
    """The stream of a process that runs, or has ended a moment ago. RpcError."""
    wish = await read_single(request, Selected)
    job = _find(guest, wish.process, ended=True)
    queue = job.listen()
    return job.events(patience, queue), lambda: job.leave(queue)


async def list_processes(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    found = []
    for job in guest.jobs.values():
        shown = {"config": job.config, "pid": job.pid}
        found.append(shown if job.tag is None else {**shown, "tag": job.tag})
    return {"processes": found}


async def _write(job: Job, given: Input) -> None:
    """Give a process input, as fast as it takes it. RpcError."""
    data = given.stdin if given.stdin is not None else given.pty
    if data is None:
        raise RpcError("unimplemented", "invalid input type <nil>")
    if given.stdin is not None and job.terminal is not None:
        raise RpcError("internal", "tty assigned to process, input should be written to the pty, not the stdin")
    if given.stdin is None and job.terminal is None:
        raise RpcError("internal", "tty not assigned to process, input should be written to the stdin, not the tty")
    if not job.stdin and job.terminal is None:
        raise RpcError("internal", "error writing to stdin: stdin not enabled or closed")
    try:
        async with job.clock.timeout(_INPUT_SECONDS):
            await job.process.stdin.send(data)
    except TimeoutError:
        raise RpcError("deadline_exceeded", "the process does not read its input") from None


async def send_input(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, SendInput)
    await _write(_find(guest, wish.process), wish.input)
    return {}


async def stream_input(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    """Input as it comes; the client's next piece is read when the process has taken the last."""
    job: Job | None = None
    async for message in read_stream(request, StreamInput):
        if message.start is not None:
            job = _find(guest, message.start.process)
        elif message.data is not None:
            if job is None:
                raise RpcError("invalid_argument", "the first message names the process")
            await _write(job, message.data.input)
    return {}


async def close_stdin(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    job = _find(guest, (await read_message(request, Selected)).process)
    if job.terminal is not None:
        raise RpcError("unknown", "error closing stdin: cannot close stdin for PTY process, send Ctrl+D (0x04) instead")
    job.stdin = False
    await job.process.stdin.close()
    return {}


async def send_signal(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, SendSignal)
    job = _find(guest, wish.process)
    name = _SIGNALS.get(wish.signal)
    if name is None:
        raise RpcError("unimplemented", f"invalid signal: {str(wish.signal)[:40]}")
    if name == "KILL":
        job.kill_now()
    else:
        await job.process.kill(name)
    return {}


async def update(request: Request, held: Held, guest: Guest) -> dict[str, Any]:
    wish = await read_message(request, Update)
    job = _find(guest, wish.process)
    if wish.pty is not None:
        if job.terminal is None:
            raise RpcError("internal", "error resizing tty: tty not assigned to process")
        try:
            await job.terminal.resize(wish.pty.size.rows, wish.pty.size.cols)
        except ValueError as error:
            raise RpcError("invalid_argument", str(error)) from None
    return {}


UNARY: Final = {
    "List": list_processes,
    "SendInput": send_input,
    "CloseStdin": close_stdin,
    "SendSignal": send_signal,
    "Update": update,
}
