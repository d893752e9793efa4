"""`sandbox.services`, in both fronts: the programs that the sandbox keeps running."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from belljar.abi.errno import ENOENT
from belljar.abi.paths import fsdecode, fsencode
from belljar.api.errors import ENDED, FileError, ServiceError, printable
from belljar.api.operations import Steps, ask, check_answer
from belljar.api.owner_host import refuse_copy
from belljar.api.results import decode
from belljar.api.settings import UNITS

if TYPE_CHECKING:
    from belljar.api.stepper import Link, Waits

WAIT_SECONDS: Final = 60.0
SHUTDOWN_SECONDS: Final = 10.0
"""Seconds that all services of a sandbox that is closed have to end; then they are killed."""
_ASK_SECONDS: Final = 10.0
"""Seconds in which a worker that has services must answer. On a busy machine it may not run for one or two, and
services that are not told to stop lose what they have not written."""
_GRACE_SECONDS: Final = 2.0
_LOG_LINES: Final = 5
_ENDED: Final = ("stopped", "done", "failed")
"""States in which waiting is of no use."""


class _Fields(Struct, array_like=True):
    """A status as a worker sends it."""

    name: bytes
    state: str
    pid: int
    ready: bool
    restarts: int
    texts: tuple[bytes, bytes, bytes]
    needs: list[bytes]


class ServiceStatus(Struct, frozen=True):
    """How a service is. `str()` of it is what `service status` says."""

    name: str
    state: str
    """ "stopped", "waiting" (for what it needs), "starting", "running", "restarting", "done" or "failed"."""
    pid: int
    ready: bool
    restarts: int
    why: str
    description: str
    command: str
    needs: tuple[str, ...]

    @property
    def running(self) -> bool:
        """Whether it has a process, ready or not."""
        return self.state in ("starting", "running")

    def __str__(self) -> str:
        if self.running:
            return f"running (pid {self.pid})" + ("" if self.ready else ", not ready yet")
        return f"{self.state} ({self.why})" if self.why else self.state


def _status(fields: Any) -> ServiceStatus:
    told = check_answer(fields, _Fields)
    why, description, command = (printable(fsdecode(text)) for text in told.texts)
    needs = tuple(fsdecode(need) for need in told.needs)
    name, state = printable(fsdecode(told.name)), printable(told.state)
    return ServiceStatus(name, state, told.pid, told.ready, told.restarts, why, description, command, needs)


def boot() -> Steps[int]:
    """Start what is to be started with the sandbox; gives how many services that are."""
    return check_answer((yield from ask("", "services_boot")), int)


def list_services() -> Steps[list[ServiceStatus]]:
    return [_status(each) for each in check_answer((yield from ask("", "services")), list[Any])]


def act(action: str, name: str, seconds: float = WAIT_SECONDS) -> Steps[ServiceStatus]:
    """ServiceError."""
    if not isinstance(name, str):
        raise TypeError(f"a service is named by a str, not {name!r}")
    number = check_answer((yield from ask(name, "service_begin", action, fsencode(name), seconds)), int)
    while (found := (yield from ask(name, "service_end", number))) is None:
        pass
    if isinstance(found, list):
        return _status(found)
    if isinstance(found, bytes):
        raise ServiceError(f"{name}: {printable(fsdecode(found))}")
    raise (yield from _missing(name, check_answer(found, int)))


def _missing(name: str, errno: int) -> Steps[ServiceError]:
    if errno != ENOENT:
        return ServiceError(str(FileError(errno, name)))
    known = ", ".join(each.name for each in (yield from list_services()))
    others = f"there are {known}" if known else f"describe it in {UNITS}/{printable(name)}.toml"
    return ServiceError(f"there is no service {printable(name)!r}: {others}")


def wait(name: str, timeout: float) -> Steps[ServiceStatus]:
    """Wait until it is ready. ServiceError, with the end of its log."""
    status = yield from act("wait", name, timeout)
    if not status.ready:
        end = (yield from logs(name, _LOG_LINES)).strip()
        said = f"; its log ends:\n{end}" if end else ""
        late = "" if status.state in _ENDED else f" after {timeout:g} s"
        raise ServiceError(f"the service {name!r} is not ready{late}: {status}{said}")
    return status


def logs(name: str, lines: int | None) -> Steps[str]:
    """ServiceError."""
    try:
        answer = yield from ask(name, "service_log", fsencode(name), -1 if lines is None else lines)
    except FileError as error:
        raise (yield from _missing(name, error.errno)) from None
    return decode(check_answer(answer, bytes))


def shut_down(link: Link) -> Waits[None]:
    """Have services stopped, before the sandbox is closed. A worker that does not answer is not waited for."""

    def call(seconds: float, name: str, *arguments: Any) -> Waits[Any]:
        pending, frame = link.conversation.call(name, *arguments)
        link.send(frame)
        done = yield link.wait_until(lambda: pending.done, link.clock.monotonic() + seconds)
        return pending.value if done and pending.error is None else None

    try:
        found = yield from call(_ASK_SECONDS, "services")
        if not isinstance(found, list) or not any(_status(each).state not in ("stopped", "done") for each in found):
            return
        number = yield from call(_ASK_SECONDS, "service_begin", "shutdown", b"", SHUTDOWN_SECONDS)
        until = link.clock.monotonic() + SHUTDOWN_SECONDS + _GRACE_SECONDS
        while isinstance(number, int) and link.clock.monotonic() < until:
            if (yield from call(_GRACE_SECONDS, "service_end", number)) is not None:
                return
    except ENDED:
        return  # it ends anyway


class Services:
    """Services of a sandbox: programs that are started with it, and started again when they fail.

    >>> sandbox.services.wait("web")
    >>> print(sandbox.services.logs("web"))
    """

    __reduce__ = refuse_copy

    def __init__(self, run: Callable[[Steps[Any]], Any]) -> None:
        self._run = run

    def list(self) -> list[ServiceStatus]:
        found: list[ServiceStatus] = self._run(list_services())
        return found

    def wait(self, name: str, timeout: float = WAIT_SECONDS) -> ServiceStatus:
        """Wait until a service is ready (or has done its work). ServiceError if it is not, with the end of its log."""
        status: ServiceStatus = self._run(wait(name, timeout))
        return status

    def start(self, name: str) -> ServiceStatus:
        """Start a service, and those it needs, by what their files say now. Does not wait for it. ServiceError."""
        status: ServiceStatus = self._run(act("start", name))
        return status

    def stop(self, name: str) -> ServiceStatus:
        """Stop a service and wait for its end. ServiceError."""
        status: ServiceStatus = self._run(act("stop", name))
        return status

    def restart(self, name: str) -> ServiceStatus:
        """Stop it, read its file anew, and start it. ServiceError."""
        status: ServiceStatus = self._run(act("restart", name))
        return status

    def logs(self, name: str, lines: int | None = None) -> str:
        """What it has written, or the last so many lines. ServiceError."""
        return str(self._run(logs(name, lines)))


class AsyncServices:
    """As `Services`, awaited."""

    __reduce__ = refuse_copy

    def __init__(self, run: Callable[[Steps[Any]], Awaitable[Any]]) -> None:
        self._run = run

    async def list(self) -> list[ServiceStatus]:
        found: list[ServiceStatus] = await self._run(list_services())
        return found

    async def wait(self, name: str, timeout: float = WAIT_SECONDS) -> ServiceStatus:
        """See `Services.wait`."""
        status: ServiceStatus = await self._run(wait(name, timeout))
        return status

    async def start(self, name: str) -> ServiceStatus:
        """See `Services.start`."""
        status: ServiceStatus = await self._run(act("start", name))
        return status

    async def stop(self, name: str) -> ServiceStatus:
        """See `Services.stop`."""
        status: ServiceStatus = await self._run(act("stop", name))
        return status

    async def restart(self, name: str) -> ServiceStatus:
        """See `Services.restart`."""
        status: ServiceStatus = await self._run(act("restart", name))
        return status

    async def logs(self, name: str, lines: int | None = None) -> str:
        """See `Services.logs`."""
        return str(await self._run(logs(name, lines)))
