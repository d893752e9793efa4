"""Services for the owner: calls that are begun, and asked for until they are done, since any of them may take long."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from belljar.abi.errors import SysError
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.wire import Plain, WireError
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.services.log import read_log
from belljar.kernel.services.supervisor import Status
from belljar.kernel.services.unit import UnitError
from belljar.worker.session import Session

_TURN_SECONDS: Final = 0.25
"""Seconds that an owner who asks waits for an answer at most."""
_UNDER_WAY_MAX: Final = 256


class ServiceCalls:
    def __init__(self, session: Session) -> None:
        self._session = session
        self._hub = session.kernel.hub
        self._next = 1
        self._under_way: dict[int, Plain] = {}
        """Actions by number: None, then what they gave, or why they failed."""
        self._done = WaitQueue(self._hub)
        self.table: Final[dict[str, Callable[..., Plain]]] = {
            "services_boot": session.services.boot,
            "services": lambda: [_fields(each) for each in session.services.list()],
            "service_log": self._log,
            "service_begin": self._begin,
            "service_end": self._end,
        }

    def _log(self, name: bytes, lines: int) -> Plain:
        path = self._session.services.log_path(fsdecode(name))
        return read_log(self._session.kernel.init.fs, path, None if lines < 0 else lines)

    def _begin(self, action: str, name: bytes, seconds: float) -> Plain:
        """Begin an action; gives the number to ask for its end by."""
        services, text = self._session.services, fsdecode(name)
        actions: dict[str, Callable[[], object]] = {
            "start": lambda: services.start(text),
            "stop": lambda: services.stop(text),
            "restart": lambda: services.restart(text),
            "wait": lambda: services.wait(text, seconds),
            "shutdown": lambda: services.shutdown(seconds),
        }
        if action not in actions or len(self._under_way) >= _UNDER_WAY_MAX:
            raise WireError(f"no action {action!r}, or too many")
        number, self._next = self._next, self._next + 1
        self._under_way[number] = None

        def run() -> None:
            try:
                actions[action]()
                found: Plain = _fields(services.status(text)) if text else True
            except SysError as error:
                found = error.errno
            except UnitError as error:
                found = fsencode(str(error))
            self._under_way[number] = found
            self._done.wake_all()

        self._hub.spawn(run)
        return number

    def _end(self, number: int) -> Plain:
        """What an action gave: a status, an errno, or a text that says what is wrong; None if it is not done yet."""
        if number not in self._under_way:
            raise WireError("no such action")
        timer = self._hub.call_later(_TURN_SECONDS, self._done.wake_all)
        while self._under_way[number] is None and timer.callback is not None:
            self._done.wait()
        timer.cancel()
        found = self._under_way[number]
        if found is not None:
            del self._under_way[number]
        return found


def _fields(status: Status) -> list[Plain]:
    texts = status.why, status.description, status.command
    return [
        fsencode(status.name),
        status.state,
        status.pid,
        status.ready,
        status.restarts,
        [fsencode(text) for text in texts],
        [fsencode(need) for need in status.needs],
    ]
