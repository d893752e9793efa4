"""The synchronous front: `Sandbox`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing, nullcontext
from functools import cached_property
from typing import TYPE_CHECKING, Literal, Self, Unpack, overload

from belljar.abi.limits import Limits
from belljar.api import operations
from belljar.api.await_host import exclusive
from belljar.api.clock_host import repeat
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
from belljar.api.core import Conversation
from belljar.api.errors import SandboxCreationError, SandboxError, SnapshotError
from belljar.api.files import Files
from belljar.api.forking import check_count
from belljar.api.link_host import Link
from belljar.api.mounts import Mount
from belljar.api.network_host import NetworkAccess
from belljar.api.operations import Steps, T
from belljar.api.owner_host import owned, refuse_copy
from belljar.api.process import Process, Terminal
from belljar.api.request import START_SECONDS, AnyPath, Data, check_environment
from belljar.api.results import ExecResult, Info
from belljar.api.settings import BASE, RestoreOptions, SandboxOptions, Settings
from belljar.api.stepper import finish
from belljar.api.usage_host import usage
from belljar.api.workers import branch_settings, serve_programs, take_worker

if TYPE_CHECKING:
    from belljar.api.containers import Containers
    from belljar.api.durable import Cores, Durable
    from belljar.api.interpreter import Interpreter
    from belljar.api.interpreter_core import InterpreterCore
    from belljar.api.js import JsInterpreter
    from belljar.api.js_core import JsCore, JsProcesses
    from belljar.api.ports_host import Connection, Exposed, Port
    from belljar.api.review import Applied, Changes
    from belljar.api.saved import Language
    from belljar.api.services import Services
    from belljar.api.shown_host import Shown
    from belljar.api.snapshot import Snapshot
    from belljar.api.state import State
    from belljar.ninep.serve_host import Exported
    from belljar.store.store import Store

OnOutput = Callable[[bytes], object]


def _nothing() -> None:
    return


class Sandbox:
    """A sealed Unix for an agent: no host files, no network, bounded in time, memory and output.

    >>> with Sandbox() as sandbox:
    ...     sandbox.exec("echo hello | tr a-z A-Z").stdout
    'HELLO\\n'

    All arguments may be left out: `files` and `mounts` by their paths inside, `env`, `cwd` ("/workspace"), `user`
    ("agent"), `hostname` ("belljar"), `limits=Limits(...)`, `network=Network.allow(...)`, `tools` (functions of yours,
    as commands), `node_modules` (a project of yours, for `node`), `require` (isolation layers that must hold), `name`,
    `on_event` (told of what happens), `tier` ("virtual"), `native` (programs that run natively), `image`, `store`
    (where snapshots are kept), `checkpoint` ("exec", or seconds: keep it under its name without being asked).
    """

    def __init__(self, **options: Unpack[SandboxOptions]) -> None:
        if options.get("tier") == "native":
            from belljar.api.native import native_settings

            self._begin(native_settings(options), None)
        elif options.get("tier") == "microvm":
            from belljar.api.microvm import machine_settings

            self._begin(machine_settings(options), None)
        elif options.get("native"):
            from belljar.api.companion import with_companion

            settings, state = with_companion(options)
            if state is None:
                self._begin(settings, None)
            else:
                self._begin_from_image(settings, state)
        elif options.get("image") in (None, BASE):
            self._begin(Settings.check(options), None)
        else:
            from belljar.api.image import from_image

            self._begin_from_image(*from_image(options))

    def _begin_from_image(self, settings: Settings, state: State) -> None:
        """As `_begin`, with a branch of a warm sandbox of the image if there is one."""
        from belljar.api.templates_host import templates

        def make() -> Sandbox:
            template = Sandbox.__new__(Sandbox)
            template._begin(settings.plain(), state.branch())
            return template

        ready = None
        if not settings.require and settings.checkpoint is None and state.origin is not None:
            origin = state.origin
            ready = templates.take((origin.digest, id(origin.objects.backend), settings.boot_key()), make)
        if ready is None:
            self._begin(settings, state)
            return
        self._assemble(settings, *ready)
        try:
            self._watch_events()
            self._run(operations.set_up(settings, self._link.offers))
            self._boot_services(stored=True)
            self._serve_offers()
        except BaseException:
            self.close()
            raise

    def _begin(self, settings: Settings, state: State | None) -> None:
        """Take a worker and make it the sandbox that was asked for, from a snapshot if there is a state."""
        self._assemble(settings, self._open_link(settings), state)
        try:
            self._boot()
            if settings.require:
                settings.check_layers(self._layers())
            self._watch_events()
            if settings.runs_programs:
                serve_programs(self._link, settings)
            if state is None and settings.checkpoint is None:
                self._run(operations.set_up(settings, self._link.offers))
            else:
                self._run(self._durable.set_up())
                self._durable.load_variables()
            self._boot_services(stored=state is not None)
            self._serve_offers()
            if isinstance(settings.checkpoint, float):
                self._stop_keeping = repeat(settings.checkpoint, self, Sandbox._keep)
        except BaseException:
            self.close()
            raise

    def _open_link(self, settings: Settings) -> Link:
        return Link(take_worker(settings), Conversation(clock=settings.clock), settings.limits, settings.clock)

    def _boot(self) -> None:
        self._link.send(self._conversation.message(self._settings.boot(self._link.worker.env)))

    def _sibling(self) -> Self:
        """A sandbox at the same place, still to be made."""
        return type(self).__new__(type(self))

    @cached_property
    def python(self) -> Interpreter:
        """Python in this sandbox; loaded when first used."""
        from belljar.api.interpreter import Interpreter

        settings = self._settings
        return Interpreter(lambda: self._link, settings.python(), settings.limits, tools=settings.functions())

    @cached_property
    def js(self) -> JsInterpreter:
        """JavaScript in this sandbox; loaded when first used."""
        from belljar.api.js import JsInterpreter

        settings, link = self._settings, self._link
        access = link.offers.network
        js = JsInterpreter(
            tools=settings.functions(),
            output_bytes=settings.limits.output_bytes,
            network=None if access is None else lambda: access.gate(link.conversation.observe),
            processes=self._js_processes(),
            clock=link.clock,
        )
        if self._link.closed:
            js.close()
        return js

    @property
    def services(self) -> Services:
        """Programs that the sandbox keeps running, as files in its /etc/init say."""
        from belljar.api.services import Services

        self._settings.check_possible("services")
        self._link.serve_in_background()  # what they are started with may be asked for at any time
        return Services(self._run)

    @property
    def containers(self) -> Containers:
        """Containers inside the sandbox, with files, processes, network and limits of their own."""
        from belljar.api.containers import Containers

        self._settings.check_possible("containers")
        link = self._link
        return Containers(
            self._run, self.exec, self.spawn, link.offers, self._settings.store, link.clock, link.serve_in_background
        )

    def _js_processes(self) -> JsProcesses | None:
        return None  # this machine's own

    @cached_property
    def _durable(self) -> Durable:
        from belljar.api.durable import Durable  # few sandboxes are kept
        from belljar.api.state import State

        state = self._state if self._state is not None else State()
        return Durable(self._settings, state, exclusive(), lambda: self._link, self.exec, self._cores)

    def _assemble(self, settings: Settings, link: Link, state: State | None) -> None:
        self._settings = settings
        self._link = link
        settings.offer_companion(link)
        self._state = state
        self._stop_keeping = _nothing
        self._exposed: list[Exposed] = []
        self._shown: list[Shown | Exported] = []
        self._applied: Applied = set()
        owned.add(link)
        self.files = Files(self._run, lambda: self._link)
        if settings.network is not None:
            link.offers.network = NetworkAccess(settings.network, settings.name)

    def _watch_events(self) -> None:
        if self._settings.on_event is not None:
            from belljar.api.events import Events

            events = Events(self._settings.name, self._settings.on_event, self._conversation, self._link.clock)
            self._link.send(events.watch_files())

    def _boot_services(self, *, stored: bool) -> None:
        if self._settings.may_have_services(stored=stored):
            from belljar.api import services  # few sandboxes have any

            if self._run(services.boot()):
                self._conversation.left = True
                self._link.serve_in_background()

    def _serve_offers(self) -> None:
        if self._link.offers or self._settings.on_event is not None:
            self._link.serve_in_background()

    @property
    def _conversation(self) -> Conversation:
        return self._link.conversation

    def _layers(self) -> list[str]:
        """The layers the worker reported when it was locked."""
        deadline = self._link.clock.monotonic() + START_SECONDS
        if not self._link.wait_until(lambda: self._conversation.ready is not None, deadline):
            raise SandboxCreationError("the sandbox's worker did not report in time. Try again; see `belljar doctor`.")
        return self._link.layers

    @property
    def name(self) -> str:
        """Its name, or a random id."""
        return self._settings.name

    @property
    def closed(self) -> bool:
        """Whether it has ended: you closed it, or its worker is gone."""
        return self._link.closed

    @property
    def info(self) -> Info:
        """id, tier, the isolation layers that hold, image, created."""
        return self._settings.info(self._layers())

    # Commands.

    @overload
    def exec(
        self, cmd: str | list[str], *, background: Literal[False] = False, **options: Unpack[ExecOptions]
    ) -> ExecResult: ...

    @overload
    def exec(
        self, cmd: str | list[str], *, background: Literal[True], **options: Unpack[ExecOptions]
    ) -> Process[bytes]: ...

    def exec(
        self,
        cmd: str | list[str],
        *,
        cwd: AnyPath | None = None,
        env: Mapping[str, str] | None = None,
        stdin: Data | None = None,
        timeout: float | None = None,
        limits: Limits | None = None,
        on_stdout: OnOutput | None = None,
        on_stderr: OnOutput | None = None,
        merge_stderr: bool = False,
        check: bool = False,
        input: Data | None = None,
        background: bool = False,
    ) -> ExecResult | Process[bytes]:
        """Run a command to its end. A str runs in bash, a list is argv. Never raises for what the command did.

        Each has a shell of its own: files stay, `cd` and variables do not (`cwd=` and `env=` are for that). After
        `timeout` seconds its processes are killed and the exit code is 124; the sandbox stays usable. `on_stdout` and
        `on_stderr` hear what it says as it comes, on this thread; what they raise ends it, and is raised here.
        `check` raises ExecError unless it succeeds; `input` is another name for `stdin`.

        `background` gives a `Process` at once. Unlike with `spawn`, its output does not wait for a reader: a server may
        be left alone. `process.result()` is what `exec` would have given.
        """
        stdin = one_input(stdin, input)
        if background:
            stdin = background_input(stdin, check=check, heard=on_stdout is not None or on_stderr is not None)
            cwd, allowed = start_from(self._settings.cwd, cwd), spawn_limits(self._settings.limits, limits, timeout)
            return Process(
                self._link,
                cmd,
                env=env or {},
                cwd=cwd,
                stdin=stdin,
                limits=allowed,
                merge=merge_stderr,
                background=True,
                timeout=timeout,
            )
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
        waits = run_exec(self._link, self._settings.limits, self._settings.cwd, cmd, arguments)
        result = None
        try:
            result = finish(waits)
        finally:
            if self._settings.checkpoint == "exec" and not self._link.closed:
                try:
                    self._keep()
                except SnapshotError as error:
                    error.result = result
                    raise
        return result

    @overload
    def spawn(
        self, cmd: str | list[str], *, text: Literal[False] = False, **options: Unpack[SpawnOptions]
    ) -> Process[bytes]: ...

    @overload
    def spawn(self, cmd: str | list[str], *, text: Literal[True], **options: Unpack[SpawnOptions]) -> Process[str]: ...

    def spawn(
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
    ) -> Process[bytes] | Process[str]:
        """Start a command and talk to it while it runs. Its streams wait when you do not read them.

        `stdin` is all its input, or `subprocess.PIPE` or `subprocess.DEVNULL`. By default it is open for
        `process.stdin.write`, but not a pipe: a program that reads a pipe unasked (`rg`) does not wait for it. After
        `timeout` seconds it is killed. With `text` its output is str, and iterating over it gives lines.
        """
        return Process(
            self._link,
            cmd,
            env=env or {},
            cwd=start_from(self._settings.cwd, cwd),
            stdin=stdin,
            limits=spawn_limits(self._settings.limits, limits, timeout),
            merge=merge_stderr,
            text=text,
            timeout=timeout,
        )

    def pty(
        self,
        cmd: str | list[str] = "exec bash -il",
        *,
        cwd: AnyPath | None = None,
        env: Mapping[str, str] | None = None,
        rows: int = 24,
        cols: int = 80,
    ) -> Terminal:
        """Start a command on a terminal of its own."""
        environment = {"TERM": "xterm-256color", **check_environment(env)}
        cwd, limits = start_from(self._settings.cwd, cwd), self._settings.limits
        size = check_size(rows, cols)
        return Terminal(Process(self._link, cmd, env=environment, cwd=cwd, stdin=None, limits=limits, size=size))

    # Everything else.

    def _run(self, steps: Steps[T]) -> T:
        """Run an operation to its end."""
        return finish(operations.run_operation(self._link, steps, self.exec))

    @overload
    def fork(self, count: Literal[1] = 1, *, durable: bool = False) -> Self: ...

    @overload
    def fork(self, count: int, *, durable: bool = False) -> Self | list[Self]: ...

    def fork(self, count: int = 1, *, durable: bool = False) -> Self | list[Self]:
        """An independent branch of everything, live: files, mounts, the processes that run, and the variables of
        `python` and `js`. A list if `count` > 1.

        Branches share memory until they write to it, draw their own random numbers, and outlive their origin. What was
        started here goes on in a branch too, where its output is dropped. An interpreter is copied between its runs: of
        one that is at work there is no copy, and the branch's says so.

        With `durable`, and on the native tier, they are new sandboxes from one snapshot: files and variables, but no
        processes. On the microvm tier mounted trees are mounted anew, as they were given, and connections are cut.

        >>> sandbox.files.write("state", "common")
        >>> branch = sandbox.fork()
        >>> branch.exec("echo mine > state"), sandbox.files.read("state")
        """
        check_count(count)
        branches: list[Self] = []
        point = None
        try:
            if durable:
                point = finish(self._durable.snapshot(None, None))
            elif self._settings.machine is not None:
                self._fork_machine(count, branches)
            elif self._settings.runs_programs:
                point = finish(self._durable.branch())
            while len(branches) < count:
                branch = self._sibling()
                if point is not None:
                    branch._begin(branch_settings(self._settings, point), point.start())
                    branches.append(branch)
                    continue
                self._fork_into(branch)
                branches.append(branch)
                branch._watch_events()
                branch._serve_offers()
        except BaseException:
            for branch in branches:
                branch.close()
            raise
        return branches[0] if count == 1 else branches

    def _fork_machine(self, count: int, branches: list[Self]) -> None:
        """The machine at one moment, as many; the interpreters that were used."""
        from belljar.api import machine_fork

        python = self.python.quiesced() if "python" in self.__dict__ else nullcontext()
        with self._durable.lock, python as state, closing(finish(machine_fork.save_machine(self._link))) as saved:
            trees = machine_fork.mounted_trees(self._link)
            for _ in range(count):
                settings = machine_fork.branch_settings(self._settings, saved)
                kept = () if state is None else state.jobs
                link = finish(machine_fork.branch_link(self._link, settings, saved, kept))
                branch = self._sibling()
                branch._assemble(settings, link, self._durable.state.branch())
                branches.append(branch)
                branch._watch_events()
                serve_programs(link, settings)
                branch._run(machine_fork.set_up_branch(settings, trees, link.offers))
                if state is not None:
                    branch.python.adopt(state)
                if "js" in self.__dict__:
                    self.js.branch_into(branch.js)
                branch._serve_offers()

    def _fork_into(self, branch: Self) -> None:
        """The worker, and the interpreters that were used."""
        kept = self._durable.state.branch() if "_durable" in self.__dict__ else None
        if "python" in self.__dict__:
            with self.python.quiesced() as state:
                branch._assemble(self._settings.branch(), self._link.fork(state.jobs), kept)
                branch.python.adopt(state)
        else:
            branch._assemble(self._settings.branch(), self._link.fork(), kept)
        if "js" in self.__dict__:
            self.js.branch_into(branch.js)

    def snapshot(self, label: str | None = None, store: Store | None = None) -> Snapshot:
        """Keep all files, and the variables of `python` and `js`, as they are at this moment; commands go on.

        It costs what has changed since the last one. Processes are not kept, nor files without a name: `lost` of the
        snapshot names these. SnapshotError if nothing was kept.

        >>> before = sandbox.snapshot("before")
        >>> sandbox.exec("rm -r src")
        >>> Sandbox.restore("before").exec("ls src")
        """
        from belljar.api.snapshot import Snapshot

        point = finish(self._durable.snapshot(label, store))
        return Snapshot(point.objects.backend, point.digest, point.record)

    @classmethod
    def restore(cls, snapshot: Snapshot | str, store: Store | None = None, **options: Unpack[RestoreOptions]) -> Self:
        """A new sandbox from a snapshot, a label, a ref or the first digits of one; files are read when needed.

        Environment, cwd, user, hostname and limits are the snapshot's unless they are given. Trees of yours that were
        mounted are not in it: give them again. SnapshotError.
        """
        from belljar.api.durable import restored

        sandbox = cls.__new__(cls)
        sandbox._begin(*restored(snapshot, store, options))
        return sandbox

    def pause(self) -> str:
        """Keep everything and close; gives the ref for `resume`. If it has a `name`, that will do as well."""
        self._stop_services()
        try:
            ref = finish(self._durable.pause())
        except SandboxError:
            self._boot_services(stored=True)
            raise
        self.close()
        return ref

    @classmethod
    def resume(cls, snapshot: Snapshot | str, store: Store | None = None, **options: Unpack[RestoreOptions]) -> Self:
        """Go on with a paused sandbox, by its ref, or with a named one from its last checkpoint. As `restore`.

        By its name it goes on under that name, and is kept as before unless another `checkpoint` is given.
        """
        from belljar.api.durable import restored

        sandbox = cls.__new__(cls)
        sandbox._begin(*restored(snapshot, store, options, by_name=True))
        return sandbox

    def _keep(self) -> None:
        finish(self._durable.checkpoint())

    def _cores(self) -> Cores:
        """The interpreters that were used, or are to have variables from the beginning."""
        found: dict[Language, InterpreterCore | JsCore] = {}
        origin = self._durable.state.origin
        begins = set() if origin is None else {each.language for each in origin.record.variables}
        if "python" in self.__dict__ or "python" in begins:
            found["python"] = self.python.core
        if "js" in self.__dict__ or "javascript" in begins:
            found["javascript"] = self.js.core
        return found

    def mount(self, path: AnyPath, mount: Mount) -> None:
        """Make a tree appear at `path`, for every command started from now on."""
        self._run(operations.mount(path, mount, self._link.offers))
        if self._link.offers:
            self._link.serve_in_background()

    def changes(self, path: AnyPath) -> Changes:
        """Changes below a directory of an overlay: a list, a diff to read, and `apply` to a directory of yours.

        >>> with Sandbox(mounts={"/repo": Mount.overlay(Mount.host("./repo"))}) as sandbox:
        ...     sandbox.exec("echo more >> notes", cwd="/repo")
        ...     print(sandbox.changes("/repo").diff())
        """
        from belljar.api import review

        changes: Changes = self._run(review.changes(path, self._applied, self._link.offers))
        return changes

    def unmount(self, path: AnyPath) -> None:
        self._run(operations.unmount(path, self._link.offers))

    def mount_on(self, directory: AnyPath, path: AnyPath = "/") -> Shown:
        """Show the sandbox's files at a directory of this machine, read-only and as they are at each moment, for you
        alone; until the result is closed, or the sandbox is. FileError, MountError (a SandboxError).

        >>> with sandbox.mount_on("./shown", "/workspace"):
        ...     subprocess.run(["diff", "-r", "shown", "project"])
        """
        from belljar.api.shown_host import Shown

        shown = Shown(self._run, directory, path, self._settings)
        self._shown.append(shown)
        return shown

    def export(self, socket: AnyPath, path: AnyPath = "/") -> Exported:
        """Serve the sandbox's files by 9P2000.L on a Unix socket of this machine, read-only and as they are at each
        moment, to you alone; until the result is closed, or the sandbox is. FileError, ExportError (a SandboxError).

        >>> with sandbox.export("/tmp/files.sock", "/workspace"):
        ...     subprocess.run(["diodcat", "-s", "/tmp/files.sock", "report.txt"])
        """
        from belljar.api.exported_host import export_tree

        exported = export_tree(self._run, socket, path, self._settings)
        self._shown.append(exported)
        return exported

    def port(self, number: int) -> Port:
        """A port on which a program inside listens: `.get("/")` and the like for web servers, `.connect()` for bytes.

        >>> server = sandbox.spawn("python3 -m http.server 8000")
        >>> sandbox.port(8000).wait().get("/").status
        200
        """
        from belljar.api.ports_host import Port, check_port

        return Port(self._open_port, check_port(number), self._link.clock)

    def expose(self, port: int, host_port: int = 0) -> tuple[str, int]:
        """Let this machine's own programs reach a port of the sandbox: a listener on loopback, closed with the sandbox.

        `host_port` 0 is any that is free. Gives its host and port. OSError if it is taken.
        """
        from belljar.api.ports_host import Exposed, check_port

        number = check_port(port)
        exposed = Exposed(host_port, lambda: self._open_port(number))
        self._exposed.append(exposed)
        return exposed.address

    def _open_port(self, port: int) -> Connection:
        from belljar.api.ports_host import open_port

        ours = finish(open_port(self._link, port))
        self._link.serve_in_background()
        return ours

    def stats(self) -> dict[str, float]:
        """How it is now: `processes`, `files` and their `bytes`, `uptime`; of its own process and the interpreters that
        are live beside it, `cpu` seconds and resident `memory` in bytes, what it shares with other sandboxes included;
        and what passed through the network so far."""
        told = self._run(operations.stats())
        return {**told, **usage(self._link.pids()), **self._link.offers.network_stats()}

    def close(self) -> None:
        """Stop services, end every process and release everything. Idempotent."""
        self._stop_keeping()
        self._stop_services()
        self._let_go()

    def _stop_services(self) -> None:
        if self._conversation.left and not self._settings.runs_programs and not self._link.closed:
            from belljar.api import services

            finish(services.shut_down(self._link))

    def _let_go(self) -> None:
        while self._shown:
            self._shown.pop().close()
        self._link.close()
        while self._exposed:
            self._exposed.pop().close()
        if "js" in self.__dict__:
            self.js.close()

    __reduce__ = refuse_copy

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __del__(self) -> None:
        link = getattr(self, "_link", None)
        if link is not None:
            self._stop_keeping()
            self._let_go()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._settings.name}{' (closed)' if self.closed else ''}>"
