"""init: starts services in order, watches them, starts them again with back-off, and stops them in order."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from functools import partial
from math import inf
from typing import TYPE_CHECKING, Final, Literal, Protocol

from msgspec import Struct

from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.abi.limits import explain_limit
from belljar.abi.paths import fsencode
from belljar.abi.records import NANO
from belljar.abi.signals import Signal
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.fs.proc_net import LISTEN, TcpSocket
from belljar.kernel.loader import run_program
from belljar.kernel.pipe import Outlet
from belljar.kernel.services.log import Log
from belljar.kernel.services.unit import Ready, Unit, UnitError, start_order
from belljar.kernel.services.unit_files import read_account, read_unit, read_units, unit_names
from belljar.kernel.vfs.credentials import Credentials

if TYPE_CHECKING:
    from belljar.kernel.process import Body, Process
    from belljar.kernel.status import ExitStatus
    from belljar.kernel.vfs.openfile import OpenFile

FIRST_DELAY: Final = 0.1
LONGEST_DELAY: Final = 30.0
"""Seconds before a service that ended is started again: doubled each time, up to the longest."""
STEADY_SECONDS: Final = 10.0
"""A service that ran this long starts over with the first delay."""
_LOOKS: Final = (0.01, 0.5)
"""Seconds between looks whether a service is ready: the first, doubled up to the last."""
_READY_COMMAND_SECONDS: Final = 10.0

State = Literal["stopped", "waiting", "starting", "running", "restarting", "done", "failed"]


class Start(Protocol):
    """Starts a process of init's."""

    def __call__(
        self,
        body: Body,
        argv: list[str],
        *,
        env: Mapping[str, str] | None = None,
        credentials: Credentials | None = None,
        cwd: str = "/",
        files: dict[int, OpenFile] | None = None,
        on_exit: Callable[[Process], None] | None = None,
    ) -> Process: ...


class Status(Struct, frozen=True):
    """How a service is."""

    name: str
    state: State
    pid: int = 0
    ready: bool = False
    restarts: int = 0
    why: str = ""
    description: str = ""
    command: str = ""
    needs: tuple[str, ...] = ()
    since: float = 0.0
    """Seconds that it has been so."""

    @property
    def runs(self) -> bool:
        return self.state in ("starting", "running")

    def __str__(self) -> str:
        said = f" ({self.why})" if self.why else ""
        match self.state:
            case "starting":
                return f"running (pid {self.pid}), not ready yet"
            case "running":
                return f"running (pid {self.pid})"
        return self.state + said


class Service:
    """One service that is or was looked after."""

    def __init__(self, unit: Unit, log: Log, now: float) -> None:
        self.unit = unit
        self.log = log
        self.state: State = "stopped"
        self.why = ""
        self.since = now
        self.process: Process | None = None
        self.restarts = 0
        self.wanted = False
        self.watched = False
        """Whether a fiber looks after it."""

    @property
    def satisfied(self) -> bool:
        """Whether those that need it may start."""
        return self.state in ("running", "done")

    def is_unwanted(self) -> bool:
        """Whether it was stopped."""
        return not self.wanted


class Supervisor:
    """The services of one pid space. What may wait must be called in a fiber."""

    def __init__(
        self,
        init: Process,
        start: Start,
        sockets: Callable[[], list[TcpSocket]],
        defaults: Callable[[], tuple[Mapping[str, str], Credentials]],
    ) -> None:
        """`defaults` are the environment and the rights of a service that says nothing else."""
        self._init = init
        self._start = start
        self._sockets = sockets
        self._defaults = defaults
        self._hub = init.kernel.hub
        self._changed = WaitQueue(self._hub)
        self._services: dict[str, Service] = {}
        self._order: list[str] = []
        """Names in the order they were started."""
        self._log = Log(init.fs, "/var/log/init.log")
        self._ending = False

    # What owners and `service` call.

    def boot(self) -> int:
        """Start every service that is enabled; gives how many there are. Does not wait for them."""
        units, broken = read_units(self._init.fs)
        order, refused = start_order(units, [name for name, unit in units.items() if unit.enabled])
        for name, why in {**broken, **refused}.items():
            if name in units or name in broken:
                self._refuse(name, units.get(name), why)
        for name in order:
            self._begin(units[name])
        return len(order)

    def names(self) -> list[str]:
        return sorted({*unit_names(self._init.fs), *self._services})

    def status(self, name: str) -> Status:
        """ENOENT."""
        service = self._services.get(name)
        if service is None:
            try:
                unit = read_unit(self._init.fs, name)
            except UnitError as error:
                return Status(name, "failed", why=str(error))
            return Status(name, "stopped", description=unit.description, command=unit.command, needs=unit.needs)
        unit, process = service.unit, service.process
        return Status(
            name,
            service.state,
            0 if process is None or process.status is not None else process.pids[self._init.space],
            service.satisfied,
            service.restarts,
            service.why,
            unit.description,
            unit.command,
            unit.needs,
            self._now() - service.since,
        )

    def list(self) -> list[Status]:
        return [self.status(name) for name in self.names()]

    def start(self, name: str) -> None:
        """Start a service and those it needs, by what their files say now. Does not wait until it, or what it needs,
        is ready. ENOENT, UnitError.
        """
        read_unit(self._init.fs, name)
        units, broken = read_units(self._init.fs)
        order, refused = start_order(units, [name])
        for each in (name, *units[name].needs):
            if each in broken:
                raise UnitError(broken[each])
        if name in refused:
            raise UnitError(refused[name])
        for each in order:
            known = self._services.get(each)
            if known is None or not known.wanted or known.state in ("done", "failed"):
                self._begin(units[each])
        service = self._services[name]
        self._wait(lambda: service.state != "waiting" or bool(service.why))

    def stop(self, name: str) -> None:
        """Stop a service and wait for its end. ENOENT."""
        service = self._services.get(name)
        if service is None:
            read_unit(self._init.fs, name)
            return
        service.wanted = False
        self._changed.wake_all()
        process = service.process
        if process is not None and process.status is None:
            self._signal(process, Signal.TERM)
            if not self._wait(lambda: process.status is not None, service.unit.stop_seconds):
                self._note(name, "did not end in time: killed")
                self._kill(process)
        self._wait(lambda: not service.watched, service.unit.stop_seconds)

    def forget(self, name: str) -> None:
        """Stop a service whose file is gone, and know nothing of it any more."""
        if name in self._services:
            self.stop(name)
            del self._services[name]
            self._order.remove(name)

    def restart(self, name: str) -> None:
        """ENOENT, UnitError: then it goes on as it was."""
        read_unit(self._init.fs, name)
        self.stop(name)
        self.start(name)

    def wait(self, name: str, seconds: float) -> Status:
        """Wait until a service is ready, or done, or will never be. ENOENT."""
        self.status(name)
        service = self._services.get(name)
        if service is not None:
            self._wait(lambda: service.satisfied or service.state in ("failed", "stopped"), seconds)
        return self.status(name)

    def log_path(self, name: str) -> str:
        """ENOENT."""
        if name not in self._services:
            read_unit(self._init.fs, name)
        return _log_path(name)

    def signal(self, name: str, number: int) -> None:
        """Signal a service's processes. ENOENT."""
        self.log_path(name)
        service = self._services.get(name)
        if service is not None and service.process is not None and service.process.status is None:
            self._signal(service.process, number)

    def shutdown(self, seconds: float) -> int:
        """Stop every service, each before those it needs; kill what is left after so long. Gives how many ran."""
        self._ending = True
        until = self._now() + seconds
        running = [name for name in reversed(self._order) if self._services[name].wanted]
        for name in running:
            service = self._services[name]
            process = service.process
            if self._now() < until:
                self.stop(name)
            elif process is not None:
                service.wanted = False
                self._kill(process)
        self._log.close()
        self._ending = False
        return len(running)

    # Looking after one.

    def _begin(self, unit: Unit) -> None:
        old = self._services.get(unit.name)
        if old is not None and old.watched:
            self._wait(lambda: not old.watched, unit.stop_seconds)
        service = Service(unit, Log(self._init.fs, _log_path(unit.name)) if old is None else old.log, self._now())
        service.wanted = service.watched = True
        service.state = "waiting"
        self._services[unit.name] = service
        if unit.name in self._order:
            self._order.remove(unit.name)
        self._order.append(unit.name)
        look_after = partial(self._look_after, service)
        if self._init is self._init.kernel.init:
            self._hub.spawn(look_after)
        else:
            self._init.add_fiber(look_after)  # it ends with its container

    def _refuse(self, name: str, unit: Unit | None, why: str) -> None:
        service = Service(unit or Unit(name, ()), Log(self._init.fs, _log_path(name)), self._now())
        self._services[name] = service
        self._set(service, "failed", why)

    def _look_after(self, service: Service) -> None:
        try:
            if self._wait_for_needs(service):
                self._keep_running(service)
        except (SysError, UnitError) as error:
            self._set(service, "failed", error.reason if isinstance(error, SysError) else str(error))
        finally:
            service.watched = False
            service.log.close()
            self._changed.wake_all()

    def _wait_for_needs(self, service: Service) -> bool:
        """Whether the service may start."""
        needs = [self._services[name] for name in service.unit.needs if name in self._services]
        for need in needs:
            service.why = f"for {need.unit.name}"
            self._wait(lambda: need.satisfied or need.state in ("failed", "stopped") or not service.wanted)  # noqa: B023
            if not need.satisfied and service.wanted:
                self._set(service, "failed", f"it needs {need.unit.name}, which is {need.state}")
                return False
        if not service.wanted:
            self._set(service, "stopped")
        return service.wanted

    def _keep_running(self, service: Service) -> None:
        delay, unit = FIRST_DELAY, service.unit
        while not service.is_unwanted():
            began = self._now()
            failed, how = self._run_once(service)
            if service.is_unwanted():
                self._set(service, "stopped", log=f"stopped ({how})")
                return
            if unit.restart == "never" or (unit.restart == "on-failure" and not failed):
                self._set(service, "failed" if failed else "done", how, log=how)
                return
            delay = FIRST_DELAY if self._now() - began >= STEADY_SECONDS else delay
            self._set(service, "restarting", f"in {delay:g} s; {how}", log=f"{how}; again in {delay:g} s")
            self._wait(service.is_unwanted, delay)
            delay = min(2 * delay, LONGEST_DELAY)
            service.restarts += 1
        self._set(service, "stopped")

    def _run_once(self, service: Service) -> tuple[bool, str]:
        """Start it and wait for its end: whether that was a failure, and how it ended."""
        process = service.process = self._launch(service)
        state: State = "running" if service.unit.ready is None else "starting"
        self._set(service, state, log=f"started, pid {process.pids[self._init.space]}")
        late = self._wait_until_ready(service, process)
        status, spent = self._wait_for_end(process), process.budget.spent
        self._kill(process)  # what it left behind
        how = late or _describe(status, explain_limit(spent.limit, spent.allowed) if spent is not None else "")
        return bool(status.code or status.signal or late), how

    def _wait_for_end(self, process: Process) -> ExitStatus:
        self._wait(lambda: process.status is not None)
        assert process.status is not None
        return process.status

    def _launch(self, service: Service) -> Process:
        kernel, unit = self._init.kernel, service.unit
        outlet = Outlet(kernel.hub, service.log.write)
        output = kernel.open_outlet(self._init, outlet)
        process = self._start_as(unit, unit.argv, {0: self._init.fs.open("/dev/null", O_RDONLY), 1: output, 2: output})
        if process.budget is not self._init.budget:
            process.budget.renew_periodically()
        return process

    def _start_as(self, unit: Unit, argv: Iterable[str], files: dict[int, OpenFile] | None = None) -> Process:
        env, credentials = self._defaults()
        env = dict(env)
        if unit.user is not None:
            credentials, home = read_account(self._init.fs, unit.user)
            env |= {"HOME": home, "USER": unit.user, "LOGNAME": unit.user}
        env |= dict(unit.env)
        words = list(argv)
        return self._start(
            partial(run_program, argv=words, who="init"),
            words,
            env=env,
            credentials=credentials,
            cwd=unit.cwd,
            files=files,
            on_exit=lambda _process: self._changed.wake_all(),
        )

    def _wait_until_ready(self, service: Service, process: Process) -> str:
        """Wait until the service is ready, or has ended; why it was stopped if it took too long."""
        unit = service.unit
        if unit.ready is None or unit.ready.kind == "done":
            return ""
        until, look = self._now() + unit.ready_seconds, _LOOKS[0]
        while process.status is None and service.wanted:
            if self._is_ready(unit, unit.ready):
                self._set(service, "running", log="ready")
                return ""
            if self._now() >= until:
                self._kill(process)
                return f"not ready ({unit.ready}) after {unit.ready_seconds:g} s"
            self._wait(lambda: process.status is not None or not service.wanted, look)
            look = min(2 * look, _LOOKS[1])
        return ""

    def _is_ready(self, unit: Unit, ready: Ready) -> bool:
        if ready.kind == "port":
            return any(each.state == LISTEN and each.local[1] == ready.port for each in self._sockets())
        if ready.kind == "file":
            try:
                self._init.fs.stat(ready.text)
            except SysError:
                return False
            return True
        null = self._init.fs.open("/dev/null", 2)
        probe = self._start_as(unit, ("bash", "-c", ready.text), {0: null, 1: null, 2: null})
        if not self._wait(lambda: probe.status is not None, _READY_COMMAND_SECONDS):
            self._kill(probe)
        return probe.status is not None and probe.status.code == 0 and not probe.status.signal

    def _signal(self, process: Process, number: int) -> None:
        self._init.kernel.signal_group(process.pgid, number, space=process.space)

    def _kill(self, process: Process) -> None:
        """Kill all that a service started."""
        if process.budget is not self._init.budget:
            self._init.kernel.kill_budget(process.budget)
        else:
            self._signal(process, Signal.KILL)

    def _set(self, service: Service, state: State, why: str = "", *, log: str = "") -> None:
        service.state, service.why, service.since = state, why, self._now()
        if state not in ("starting", "running"):
            service.process = None
        if log or state == "failed":
            self._note(service.unit.name, log or f"failed: {why}")
        self._changed.wake_all()

    def _note(self, name: str, text: str) -> None:
        time = datetime.fromtimestamp(self._init.kernel.now() // NANO, UTC)
        self._log.write(fsencode(f"{time:%Y-%m-%dT%H:%M:%SZ} {name}: {text}\n"))

    # Waiting.

    def _now(self) -> float:
        return self._hub.clock.monotonic()

    def _wait(self, holds: Callable[[], bool], seconds: float = inf) -> bool:
        """Wait until something holds; whether it does."""
        until = self._now() + seconds
        timer = self._hub.call_at(until, self._changed.wake_all) if seconds != inf else None
        try:
            while not holds():
                if self._now() >= until:
                    return False
                self._changed.wait()
        finally:
            if timer is not None:
                timer.cancel()
        return True


def _log_path(name: str) -> str:
    return f"/var/log/{name}.log"


def _describe(status: ExitStatus, limit: str) -> str:
    if limit:
        return limit.strip()
    return f"killed by {Signal(status.signal).name}" if status.signal else f"exit code {status.code}"
