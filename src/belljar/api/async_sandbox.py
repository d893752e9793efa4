"""The asynchronous front: `AsyncSandbox`, the same as `Sandbox`, awaited."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import closing
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal, Self, Unpack, overload

from belljar.abi.limits import Limits
from belljar.api import operations
from belljar.api.async_interpreter import AsyncInterpreter
from belljar.api.async_js import AsyncJsInterpreter
from belljar.api.async_link_host import AsyncLink, take_worker_async
from belljar.api.async_process import AsyncProcess, AsyncTerminal
from belljar.api.command import (
    ExecOptions,
    SpawnOptions,
    background_input,
    check_size,
    one_input,
    run_exec,
    spawn_limits,
    start_from,
)
from belljar.api.core import Conversation, OnChunk, Relay
from belljar.api.errors import SandboxClosed, SandboxCreationError, SandboxError, SnapshotError
from belljar.api.events import Events
from belljar.api.files import AsyncFiles
from belljar.api.forking import OnSplit, check_count
from belljar.api.mounts import Mount
from belljar.api.network_host import NetworkAccess
from belljar.api.operations import Steps, T
from belljar.api.owner_host import owned, refuse_copy
from belljar.api.request import START_SECONDS, AnyPath, Data, check_environment
from belljar.api.results import ExecResult, Info
from belljar.api.settings import BASE, MACHINE_OPTIONS, RestoreOptions, SandboxOptions, Settings
from belljar.api.stepper import finish_async
from belljar.api.usage_host import usage
from belljar.api.workers import branch_settings, find_image, serve_programs

if TYPE_CHECKING:
    from belljar.api.containers import AsyncContainers
    from belljar.api.durable import Cores, Durable
    from belljar.api.js_core import JsProcesses
    from belljar.api.ports_host import AsyncPort, Connection, LoopbackListener
    from belljar.api.review import Applied, Changes
    from belljar.api.services import AsyncServices
    from belljar.api.shown_host import Shown
    from belljar.api.snapshot import Snapshot
    from belljar.api.state import State
    from belljar.net.broker.gate_host import Gate
    from belljar.ninep.serve_host import Exported
    from belljar.store.store import Store


class LaterInfo:
    """Awaitable of `await sandbox.info`; `await sandbox.info()` is the same."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        self._sandbox = sandbox

    def __call__(self) -> Self:
        return self

    def __await__(self) -> Generator[Any, None, Info]:
        return self._sandbox._tell().__await__()


class AsyncSandbox:
    """A sandbox for asyncio programs.

    >>> async with AsyncSandbox() as sandbox:
    ...     (await sandbox.exec("echo hi")).stdout
    'hi\\n'
    """

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        tier = options.get("tier")
        if options.get("image", BASE) not in (None, BASE) or tier in ("native", "microvm") or options.get("native"):
            self._from_image = options.copy()
            for name in ("image", "tier", "native", *(MACHINE_OPTIONS if tier == "microvm" else ())):
                options.pop(name, None)  # type: ignore[misc]
        self._assemble(Settings.check(options), None)

    _from_image: SandboxOptions | None = None
    """The arguments of a sandbox whose image is still to be found."""

    def _assemble(self, settings: Settings, link: AsyncLink | None, state: State | None = None) -> None:
        self._settings = settings
        self._state = state
        self._keeper: asyncio.Task[None] | None = None
        self._started = link
        self._starting = asyncio.Lock()
        self._closed = False
        self._exposed: list[LoopbackListener] = []
        self._shown: list[Shown | Exported] = []
        self._applied: Applied = set()
        limits, functions = self._settings.limits, self._settings.functions()
        self.python = AsyncInterpreter(lambda: self._link, settings.python(), limits, tools=functions)
        network = None if settings.network is None else self._gate
        self.js = AsyncJsInterpreter(
            tools=functions,
            output_bytes=limits.output_bytes,
            network=network,
            processes=self._js_processes(),
            clock=settings.clock,
        )
        self.files = AsyncFiles(self._run, lambda: self._link)

    async def start(self) -> Self:
        """Make the sandbox; `async with` does this for you. Nothing more if that was done. SandboxClosed."""
        async with self._starting:
            if self._started is None and not self._closed:
                self._started = await self._start()
            if self._closed:
                await self.close()  # it may have been closed meanwhile
                raise SandboxClosed("the sandbox was closed: make a new one")
        return self

    async def _start(self) -> AsyncLink:
        if self._from_image is not None:
            self._settings, self._state = await asyncio.to_thread(find_image, self._from_image)
            self.python.core.engine = self._settings.python()
        settings = self._settings
        self._started = link = await self._open_link(settings)
        owned.add(link)
        self._open_ways()
        try:
            self._boot(link)
            if settings.require:
                settings.check_layers(await self._layers())
            self._watch_events()
            if settings.runs_programs:
                serve_programs(link, settings)
            if self._state is None and settings.checkpoint is None:
                await self._run(operations.set_up(settings, link.offers))
            else:
                await self._run(self._durable.set_up())
                await asyncio.to_thread(self._durable.load_variables)
            await self._boot_services(link, stored=self._state is not None)
            if isinstance(settings.checkpoint, float):
                self._keeper = asyncio.create_task(self._keep_repeatedly(settings.checkpoint))
        except BaseException:
            link.close()
            self._started = None
            raise
        return link

    @property
    def services(self) -> AsyncServices:
        """See `Sandbox.services`."""
        from belljar.api.services import AsyncServices

        self._settings.check_possible("services")
        return AsyncServices(self._run)

    @property
    def containers(self) -> AsyncContainers:
        """See `Sandbox.containers`."""
        from belljar.api.containers import AsyncContainers

        self._settings.check_possible("containers")
        link = self._link
        return AsyncContainers(self._run, self.exec, self.spawn, link.offers, self._settings.store, link.clock)

    async def _open_link(self, settings: Settings) -> AsyncLink:
        worker = await take_worker_async(settings)
        return AsyncLink(worker, Conversation(clock=settings.clock), settings.limits, settings.clock)

    def _boot(self, link: AsyncLink) -> None:
        link.send(link.conversation.message(self._settings.boot(link.worker.env)))

    def _js_processes(self) -> JsProcesses | None:
        return None  # this machine's own

    def _sibling(self) -> Self:
        """A sandbox at the same place, still to be made."""
        return type(self).__new__(type(self))

    @cached_property
    def _durable(self) -> Durable:
        from belljar.api.durable import Durable  # few sandboxes are kept
        from belljar.api.state import State

        state = self._state if self._state is not None else State()
        return Durable(self._settings, state, asyncio.Lock(), lambda: self._link, self.exec, self._cores)

    def _cores(self) -> Cores:
        return {"python": self.python.core, "javascript": self.js.core}

    async def _keep(self) -> None:
        await finish_async(self._durable.checkpoint())

    async def _keep_repeatedly(self, seconds: float) -> None:
        while True:
            await self._settings.clock.sleep(seconds)
            try:
                await self._keep()
            except SandboxError as error:
                logging.getLogger("belljar").error("a checkpoint failed: %s", error)

    def _open_ways(self) -> None:
        """The ways out of the worker: its companion and its network, if it has any."""
        settings = self._settings
        settings.offer_companion(self._link)
        if settings.network is not None:
            self._link.offers.network = NetworkAccess(settings.network, settings.name, asyncio.get_running_loop())

    def _gate(self) -> Gate:
        link = self._started  # whatever thread asks
        assert link is not None
        assert link.offers.network is not None
        return link.offers.network.gate(link.conversation.observe)

    def _watch_events(self) -> None:
        link, settings = self._link, self._settings
        if settings.on_event is not None:
            events = Events(settings.name, settings.on_event, link.conversation, link.clock, awaited=True)
            link.send(events.watch_files())

    @property
    def _link(self) -> AsyncLink:
        if self._started is None:
            raise SandboxClosed("the sandbox was not started: use `async with AsyncSandbox()` or `await .start()`")
        self._started.check_loop()
        return self._started

    async def _tell(self) -> Info:
        return self._settings.info(await self._layers())

    async def _layers(self) -> list[str]:
        link = self._link
        deadline = link.clock.monotonic() + START_SECONDS
        if not await link.wait_until(lambda: link.conversation.ready is not None, deadline):
            raise SandboxCreationError("the sandbox's worker did not report in time. Try again; see `belljar doctor`.")
        return self._link.layers

    @property
    def name(self) -> str:
        """Its name, or a random id."""
        return self._settings.name

    @property
    def closed(self) -> bool:
        """Whether it has ended: you closed it, or its worker is gone."""
        return self._closed or (self._started is not None and self._started.closed)

    @property
    def info(self) -> LaterInfo:
        """`await sandbox.info`: id, tier, the isolation layers that hold, image, created."""
        return LaterInfo(self)

    @overload
    async def exec(
        self, cmd: str | list[str], *, background: Literal[False] = False, **options: Unpack[ExecOptions]
    ) -> ExecResult: ...

    @overload
    async def exec(
        self, cmd: str | list[str], *, background: Literal[True], **options: Unpack[ExecOptions]
    ) -> AsyncProcess[bytes]: ...

    async def exec(
        self,
        cmd: str | list[str],
        *,
        cwd: AnyPath | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Data | None = None,
        timeout: float | None = None,
        limits: Limits | None = None,
        on_stdout: OnChunk | None = None,
        on_stderr: OnChunk | None = None,
        merge_stderr: bool = False,
        check: bool = False,
        input: Data | None = None,
        background: bool = False,
    ) -> ExecResult | AsyncProcess[bytes]:
        """Run a command to its end. Cancelling kills its processes; the sandbox stays usable.

        See `Sandbox.exec`. `on_stdout` and `on_stderr` may be async here.
        """
        link = self._link
        stdin = one_input(stdin, input)
        if background:
            stdin = background_input(stdin, check=check, heard=on_stdout is not None or on_stderr is not None)
            process = AsyncProcess[bytes](link, background=True, timeout=timeout)
            cwd, allowed = start_from(self._settings.cwd, cwd), spawn_limits(self._settings.limits, limits, timeout)
            await process.start(cmd, env or {}, cwd, stdin, allowed, None, merge=merge_stderr)
            return process
        arguments = {
            "cwd": start_from(self._settings.cwd, cwd),
            "env": env,
            "stdin": stdin,
            "timeout": timeout,
            "limits": limits,
            "on_stdout": on_stdout,
            "on_stderr": on_stderr,
            "merge_stderr": merge_stderr,
            "check": check,
        }
        waits = run_exec(link, self._settings.limits, self._settings.cwd, cmd, arguments, awaited=True)
        result = None
        try:
            result = await finish_async(waits)
        finally:
            if self._settings.checkpoint == "exec" and not link.closed:
                try:
                    await self._keep()
                except SnapshotError as error:
                    error.result = result
                    raise
        return result

    @overload
    async def spawn(
        self, cmd: str | list[str], *, text: Literal[False] = False, **options: Unpack[SpawnOptions]
    ) -> AsyncProcess[bytes]: ...

    @overload
    async def spawn(
        self, cmd: str | list[str], *, text: Literal[True], **options: Unpack[SpawnOptions]
    ) -> AsyncProcess[str]: ...

    async def spawn(
        self,
        cmd: str | list[str],
        *,
        cwd: AnyPath | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Data | int | None = None,
        timeout: float | None = None,
        limits: Limits | None = None,
        merge_stderr: bool = False,
        text: bool = False,
    ) -> AsyncProcess[bytes] | AsyncProcess[str]:
        """Start a command and talk to it while it runs. See `Sandbox.spawn`."""
        process = AsyncProcess[Any](self._link, text=text, timeout=timeout)
        cwd = start_from(self._settings.cwd, cwd)
        limits = spawn_limits(self._settings.limits, limits, timeout)
        await process.start(cmd, env or {}, cwd, stdin, limits, None, merge=merge_stderr)
        return process

    async def pty(
        self,
        cmd: str | list[str] = "exec bash -il",
        *,
        cwd: AnyPath | None = None,
        env: Mapping[str, str] | None = None,
        rows: int = 24,
        cols: int = 80,
    ) -> AsyncTerminal:
        """Start a command on a terminal of its own."""
        process = AsyncProcess[bytes](self._link)
        environment = {"TERM": "xterm-256color", **check_environment(env)}
        cwd, size = start_from(self._settings.cwd, cwd), check_size(rows, cols)
        await process.start(cmd, environment, cwd, None, self._settings.limits, size)
        return AsyncTerminal(process)

    async def _run(self, steps: Steps[T]) -> T:
        return await finish_async(operations.run_operation(self._link, steps, self.exec))

    @overload
    async def fork(self, count: Literal[1] = 1, *, durable: bool = False) -> Self: ...

    @overload
    async def fork(self, count: int, *, durable: bool = False) -> Self | list[Self]: ...

    async def fork(self, count: int = 1, *, durable: bool = False) -> Self | list[Self]:
        """An independent branch of everything, live; a list if `count` > 1. Started already; close it when done.

        See `Sandbox.fork`.
        """
        check_count(count)
        branches: list[Self] = []
        point = None
        try:
            if durable:
                point = await finish_async(self._durable.snapshot(None, None))
            elif self._settings.machine is not None:
                await self._fork_machine(count, branches)
            elif self._settings.runs_programs:
                point = await finish_async(self._durable.branch())
            while len(branches) < count:
                if point is not None:
                    branch = self._sibling()
                    branch._assemble(branch_settings(self._settings, point), None, point.start())
                    branches.append(await branch.start())
                else:
                    branches.append(await self.fork_once())
        except BaseException:
            for branch in branches:
                await branch.close()
            raise
        return branches[0] if count == 1 else branches

    async def _fork_machine(self, count: int, branches: list[Self]) -> None:
        """The machine at one moment, as many; the interpreters that were used."""
        from belljar.api import machine_fork

        async with self._durable.lock, self.python.quiesced() as state:
            with closing(await finish_async(machine_fork.save_machine(self._link))) as saved:
                trees = machine_fork.mounted_trees(self._link)
                for _ in range(count):
                    settings = machine_fork.branch_settings(self._settings, saved)
                    link = await finish_async(machine_fork.branch_link(self._link, settings, saved, state.jobs))
                    owned.add(link)
                    branch = self._sibling()
                    branch._assemble(settings, link, self._durable.state.branch())
                    branches.append(branch)
                    branch._open_ways()
                    branch._watch_events()
                    serve_programs(link, settings)
                    await branch._run(machine_fork.set_up_branch(settings, trees, link.offers))
                    branch.python.adopt(state)
                    await self.js.branch_into(branch.js)

    async def fork_once(self, interpreters: Sequence[int] = (), on_split: OnSplit | None = None) -> Self:
        """One live branch. A server's clients have `interpreters` of their own, and are told when it splits."""
        branch = self._sibling()
        kept = self._durable.state.branch() if "_durable" in self.__dict__ else None
        async with self.python.quiesced() as state:
            link = await self._link.fork([*state.jobs, *interpreters], on_split)
            owned.add(link)
            branch._assemble(self._settings.branch(), link, kept)
            branch._open_ways()
            branch.python.adopt(state)
        try:
            await self.js.branch_into(branch.js)
            branch._watch_events()
        except BaseException:
            await branch.close()
            raise
        return branch

    def relayed(self, make: Callable[[], Relay]) -> tuple[AsyncLink, Relay, Settings]:
        """For a server: the link, the relay of clients, which is made for the first of them, and the settings."""
        link = self._link
        if link.conversation.relay is None:
            link.conversation.relay = make()
            link.conversation.relay.use(link.send)
        return link, link.conversation.relay, self._settings

    async def snapshot(self, label: str | None = None, store: Store | None = None) -> Snapshot:
        """See `Sandbox.snapshot`."""
        from belljar.api.snapshot import Snapshot

        point = await finish_async(self._durable.snapshot(label, store))
        return Snapshot(point.objects.backend, point.digest, point.record)

    @classmethod
    async def restore(
        cls, snapshot: Snapshot | str, store: Store | None = None, **options: Unpack[RestoreOptions]
    ) -> Self:
        """A new sandbox from a snapshot, started already. See `Sandbox.restore`."""
        return await cls._restore(snapshot, store, options, by_name=False)

    @classmethod
    async def resume(
        cls, snapshot: Snapshot | str, store: Store | None = None, **options: Unpack[RestoreOptions]
    ) -> Self:
        """Go on with a paused or a named sandbox. See `Sandbox.resume`."""
        return await cls._restore(snapshot, store, options, by_name=True)

    @classmethod
    async def _restore(
        cls, snapshot: Snapshot | str, store: Store | None, options: RestoreOptions, *, by_name: bool
    ) -> Self:
        from belljar.api.durable import restored

        settings, state = await asyncio.to_thread(restored, snapshot, store, options, by_name=by_name)
        sandbox = cls.__new__(cls)
        sandbox._assemble(settings, None, state)
        return await sandbox.start()

    async def _boot_services(self, link: AsyncLink, *, stored: bool) -> None:
        if self._settings.may_have_services(stored=stored):
            from belljar.api import services  # few sandboxes have any

            link.conversation.left = await self._run(services.boot()) > 0

    async def _stop_services(self) -> None:
        link = self._started
        if link is not None and link.conversation.left and not self._settings.runs_programs and not link.closed:
            from belljar.api import services

            await finish_async(services.shut_down(link))

    async def pause(self) -> str:
        """Keep everything and close; gives the ref for `resume`. See `Sandbox.pause`."""
        await self._stop_services()
        try:
            ref = await finish_async(self._durable.pause())
        except SandboxError:
            await self._boot_services(self._link, stored=True)
            raise
        await self.close()
        return ref

    async def mount(self, path: AnyPath, mount: Mount) -> None:
        await self._run(operations.mount(path, mount, self._link.offers))

    async def changes(self, path: AnyPath) -> Changes:
        """Changes below a directory of an overlay: a list, a diff to read, and `apply` to a directory of yours.

        It is all here by then: `diff` and `apply` are not awaited. `apply` writes files; use a thread if they are many.
        """
        from belljar.api import review

        changes: Changes = await self._run(review.changes(path, self._applied, self._link.offers))
        return changes

    async def unmount(self, path: AnyPath) -> None:
        await self._run(operations.unmount(path, self._link.offers))

    async def stats(self) -> dict[str, float]:
        """See `Sandbox.stats`."""
        told = await self._run(operations.stats())
        return {**told, **usage(self._link.pids()), **self._link.offers.network_stats()}

    async def mount_on(self, directory: AnyPath, path: AnyPath = "/") -> Shown:
        """Show the sandbox's files at a directory of this machine. See `Sandbox.mount_on`. Your event loop serves it:
        look at it from other threads or processes only.
        """
        from belljar.api.shown_host import Shown

        loop = asyncio.get_running_loop()

        def run(steps: Steps[T]) -> T:
            return asyncio.run_coroutine_threadsafe(self._run(steps), loop).result()

        shown = await asyncio.to_thread(Shown, run, directory, path, self._settings)
        self._shown.append(shown)
        return shown

    async def export(self, socket: AnyPath, path: AnyPath = "/") -> Exported:
        """Serve the sandbox's files by 9P on a Unix socket. See `Sandbox.export`, and `mount_on` for who may use it."""
        from belljar.api.exported_host import export_tree

        loop = asyncio.get_running_loop()

        def run(steps: Steps[T]) -> T:
            return asyncio.run_coroutine_threadsafe(self._run(steps), loop).result()

        exported = await asyncio.to_thread(export_tree, run, socket, path, self._settings)
        self._shown.append(exported)
        return exported

    def port(self, number: int) -> AsyncPort:
        """A port on which a program inside listens. See `Sandbox.port`."""
        from belljar.api.ports_host import AsyncPort, check_port

        return AsyncPort(self._open_port, check_port(number))

    async def expose(self, port: int, host_port: int = 0) -> tuple[str, int]:
        """Let this machine's own programs reach a port of the sandbox. See `Sandbox.expose`."""
        from belljar.api.ports_host import LoopbackListener, check_port

        number = check_port(port)
        listener = LoopbackListener(lambda: self._open_port(number))
        address = await listener.start(host_port)
        self._exposed.append(listener)
        return address

    async def _open_port(self, port: int) -> Connection:
        from belljar.api.ports_host import open_port

        ours = await finish_async(open_port(self._link, port))
        ours.setblocking(False)
        return ours

    async def close(self) -> None:
        """Stop services, end every process and release everything. Idempotent."""
        self._closed = True
        if self._keeper is not None:
            self._keeper.cancel()
        await self._stop_services()
        while self._exposed:
            await self._exposed.pop().close()
        while self._shown:
            await asyncio.to_thread(self._shown.pop().close)
        await self.js.close()
        if self._started is not None:
            self._started.close()

    __reduce__ = refuse_copy

    async def __aenter__(self) -> Self:
        return await self.start()

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __del__(self) -> None:
        link = getattr(self, "_started", None)
        if link is not None:
            link.let_go()

    def __repr__(self) -> str:
        state = " (closed)" if self.closed else "" if self._started else " (not started)"
        return f"<{type(self).__name__} {self._settings.name}{state}>"
