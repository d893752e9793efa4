"""`sandbox.containers`, in both fronts: containers inside a sandbox, run by its own `container` command."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Final, TypedDict, Unpack

from msgspec import DecodeError, Struct, field, json

from belljar.abi.paths import fsencode
from belljar.api.errors import ContainerError, printable
from belljar.api.offers import Offers
from belljar.api.operations import Run, Steps, ask
from belljar.api.owner_host import refuse_copy
from belljar.api.request import check_command, check_environment
from belljar.api.results import ExecResult

if TYPE_CHECKING:
    from belljar.abi.clock import Clock
    from belljar.api.async_process import AsyncProcess
    from belljar.api.command import ExecOptions, SpawnOptions
    from belljar.api.image import Image
    from belljar.api.process import Process
    from belljar.store.store import Store

_WAIT_SLICE: Final = 2
_TIMED_OUT: Final = 124

RunSteps = Callable[[Steps[Any]], Any]


class State(Struct, frozen=True):
    status: str = field(name="Status")
    """ "created", "running" or "exited"."""
    exit_code: int = field(name="ExitCode")
    pid: int = field(name="Pid")
    """Of its init, as the sandbox numbers it; 0 if it does not run."""
    limit: str = field(name="Limit")
    """The limit that ended it, if one did."""


class ContainerInfo(Struct, frozen=True):
    """How a container is."""

    id: str = field(name="Id")
    name: str = field(name="Name")
    image: str = field(name="Image")
    command: list[str] = field(name="Command")
    state: State = field(name="State")
    address: str = field(name="IPAddress")

    @property
    def running(self) -> bool:
        return self.state.status == "running"


def _ready() -> Steps[None]:
    """Have the programs that the commands below are, whatever the sandbox's image is."""
    yield from ask("", "containers_ready")


def _container(*args: str) -> Steps[str]:
    """Run `container`; gives what it prints. ContainerError."""
    result: ExecResult = yield Run(["sudo", "container", *args])
    if not result.ok:
        said = result.stderr.strip().removeprefix("container: ") or f"exit code {result.exit_code}"
        raise ContainerError(printable(said))
    return result.stdout


class ContainerOptions(TypedDict, total=False):
    """The arguments of `containers.run`."""

    name: str | None
    env: Mapping[str, str] | None
    cwd: str | None
    user: str | None
    hostname: str | None
    volumes: Mapping[str, str] | None
    """Directories of the sandbox by path, or volumes by name, and where they appear: {"/workspace": "/src:ro"}."""
    ports: Mapping[int, int] | None
    """Ports of the sandbox, and those of the container that they lead to."""
    memory: int | None
    """Bytes that a program in an interpreter may use."""
    pids: int | None
    network: bool
    """Whether it has more than its own loopback."""
    remove: bool
    """Whether it is removed when it has ended."""


def run_args(
    image: str,
    cmd: str | list[str] | None,
    *,
    name: str | None = None,
    env: Mapping[str, str] | None = None,
    cwd: str | None = None,
    user: str | None = None,
    hostname: str | None = None,
    volumes: Mapping[str, str] | None = None,
    ports: Mapping[int, int] | None = None,
    memory: int | None = None,
    pids: int | None = None,
    network: bool = True,
    remove: bool = False,
) -> list[str]:
    """The words of `container run -d` for these arguments. TypeError, ValueError."""
    words = ["run", "-d"]
    for option, text in (("--name", name), ("-w", cwd), ("-u", user), ("-h", hostname)):
        if text is not None:
            if not text or text.startswith("-"):
                raise ValueError(f"{option.strip('-')}={text!r}: it must be a text that does not begin with '-'")
            words += [option, text]
    for key, value in check_environment(env).items():
        words += ["-e", f"{key}={value}"]
    for source, target in (volumes or {}).items():
        words += ["-v", f"{source}:{target}"]
    for outside, inside in (ports or {}).items():
        words += ["-p", f"{int(outside)}:{int(inside)}"]
    words += ["--memory", f"{int(memory)}b"] if memory else []
    words += ["--pids", str(int(pids))] if pids else []
    words += [] if network else ["--network", "none"]
    words += ["--rm"] if remove else []
    return [*words, image, *([] if cmd is None else check_command(cmd))]


def add_image(image: Image | str, name: str | None, store: Store | None, offers: Offers) -> Steps[str]:
    """Let containers be made of an image; gives the name it has inside. ImageError."""
    from belljar.api.image import Image, account_of, find_built
    from belljar.image.record import config_of
    from belljar.store.snapshot import ref_of
    from belljar.store.store import Objects
    from belljar.store.stored_tree import StoredTree

    if not isinstance(image, Image | str):
        raise TypeError(f"an image is an Image that was built, its name or its digest, not {image!r}")
    built = image.built if isinstance(image, Image) else find_built(image, store)
    called = name or built.name or ref_of(built.digest)[:19]
    number = offers.export(StoredTree(Objects(built.store), built.record.trees[0], offers.store_failed), True)
    record = built.record
    yield from ask(
        called,
        "container_image",
        called.encode(),
        [b"stored", number],
        [list(pair) for pair in record.env],
        record.cwd,
        account_of(record).encode(),
        [fsencode(word) for word in config_of(record).command or []],
        ref_of(built.digest),
    )
    return called


def run(image: Image | str, store: Store | None, offers: Offers, words: Callable[[str], list[str]]) -> Steps[str]:
    """Start a container; gives its id. An image that is not inside is added first. ContainerError, ImageError."""
    called = image if isinstance(image, str) else ""
    if called not in (yield from _images()).split():
        called = yield from add_image(image, called or None, store, offers)
    return (yield from _container(*words(called))).strip()


def infos() -> Steps[list[ContainerInfo]]:
    yield from _ready()
    return _parse((yield from _container("ps", "-a", "--json")))


def info(name: str) -> Steps[ContainerInfo]:
    """ContainerError if there is none of that name."""
    yield from _ready()
    (found,) = _parse((yield from _container("inspect", "--", name)))
    return found


def _parse(text: str) -> list[ContainerInfo]:
    try:
        return json.decode(text, type=list[ContainerInfo])
    except DecodeError as error:
        raise ContainerError(f"the sandbox says nothing sensible of its containers: {error}") from None


def wait(name: str, timeout: float | None, clock: Clock) -> Steps[int]:
    """Wait for its end; gives its exit code. ContainerError if it goes on after `timeout` seconds."""
    until = None if timeout is None else clock.monotonic() + timeout
    while True:
        left = _WAIT_SLICE if until is None else min(_WAIT_SLICE, until - clock.monotonic())
        if left <= 0:
            raise ContainerError(f"the container {name!r} still runs after {timeout:g} s")
        result: ExecResult = yield Run(["sudo", "timeout", f"{left:.3f}", "container", "wait", "--", name])
        if result.exit_code == 0 and result.stdout.strip().isdecimal():
            return int(result.stdout)
        if result.exit_code != _TIMED_OUT:
            raise ContainerError(printable(result.stderr.strip().removeprefix("container: ")))


def exec_argv(name: str, cmd: str | list[str], options: dict[str, Any]) -> list[str]:
    """The command line that runs a command in a container; takes `cwd` and `env` out of the options."""
    words = ["sudo", "container", "exec"]
    if (cwd := options.pop("cwd", None)) is not None:
        words += ["-w", str(cwd)]
    for key, value in check_environment(options.pop("env", None)).items():
        words += ["-e", f"{key}={value}"]
    return [*words, "--", name, *check_command(cmd)]


class Container:
    """A container of a sandbox."""

    __reduce__ = refuse_copy

    def __init__(
        self, name: str, run: RunSteps, exec: Callable[..., Any], spawn: Callable[..., Any], clock: Clock
    ) -> None:
        self.name = name
        self._clock = clock
        self._run = run
        self._exec = exec
        self._spawn = spawn

    def info(self) -> ContainerInfo:
        """How it is. ContainerError if it was removed."""
        found: ContainerInfo = self._run(info(self.name))
        return found

    def exec(self, cmd: str | list[str], **options: Unpack[ExecOptions]) -> ExecResult:
        """Run a command in it, as `sandbox.exec` does outside."""
        given: dict[str, Any] = dict(options)
        result: ExecResult = self._exec(exec_argv(self.name, cmd, given), **given)
        return result

    def spawn(self, cmd: str | list[str], **options: Unpack[SpawnOptions]) -> Process[bytes]:
        """Start a command in it, as `sandbox.spawn` does outside."""
        given: dict[str, Any] = dict(options)
        started: Process[bytes] = self._spawn(exec_argv(self.name, cmd, given), **given)
        return started

    def logs(self, lines: int | None = None) -> str:
        """What it has written, or the last so many lines."""
        return str(self._run(_container("logs", *([] if lines is None else ["-n", str(int(lines))]), "--", self.name)))

    def wait(self, timeout: float | None = None) -> int:
        """Wait for its end; gives its exit code. ContainerError if it goes on after `timeout` seconds."""
        return int(self._run(wait(self.name, timeout, self._clock)))

    def stop(self, timeout: int = 10) -> None:
        """SIGTERM for its program; after `timeout` seconds it is killed."""
        self._run(_container("stop", "-t", str(int(timeout)), "--", self.name))

    def start(self) -> None:
        """Start it again, in the background, with its files as they are."""
        self._run(_container("start", "--", self.name))

    def kill(self, signal: str = "KILL") -> None:
        self._run(_container("kill", "-s", signal, "--", self.name))

    def remove(self, force: bool = False) -> None:
        """Forget it and its files; with `force` even if it runs."""
        self._run(_container("rm", *(["-f"] if force else []), "--", self.name))

    def __repr__(self) -> str:
        return f"<Container {self.name}>"


class Containers:
    """Containers inside a sandbox.

    >>> box = sandbox.containers.run("base", "echo hi > /tmp/a; sleep 60", name="box")
    >>> box.exec("cat /tmp/a").stdout
    'hi\\n'
    """

    __reduce__ = refuse_copy

    def __init__(
        self,
        run: RunSteps,
        exec: Callable[..., Any],
        spawn: Callable[..., Any],
        offers: Offers,
        store: Store | None,
        clock: Clock,
        serve: Callable[[], None],
    ) -> None:
        self._run = run
        self._exec = exec
        self._spawn = spawn
        self._offers = offers
        self._store = store
        self._clock = clock
        self._serve = serve

    def _container(self, name: str) -> Container:
        return Container(name, self._run, self._exec, self._spawn, self._clock)

    def run(
        self, image: Image | str, cmd: str | list[str] | None = None, **options: Unpack[ContainerOptions]
    ) -> Container:
        """Start a container in the background. `image` is a name inside (`images()`), or an Image or the name of one in
        the store, which is then added. ContainerError, ImageError.
        """
        steps = run(image, self._store, self._offers, lambda called: run_args(called, cmd, **options))
        started = str(self._run(steps))
        self._serve()
        return self._container(options.get("name") or started)

    def add(self, image: Image | str, name: str | None = None) -> str:
        """Let containers be made of an image of yours, from inside too; gives the name it has there. ImageError."""
        called = str(self._run(add_image(image, name, self._store, self._offers)))
        self._serve()
        return called

    def images(self) -> list[str]:
        return str(self._run(_images())).split()

    def list(self) -> list[ContainerInfo]:
        """Those that run and those that have ended, the newest first."""
        found: list[ContainerInfo] = self._run(infos())
        return found

    def get(self, name: str) -> Container:
        """By name or id. ContainerError."""
        found: ContainerInfo = self._run(info(name))
        return self._container(found.name)


def _images() -> Steps[str]:
    yield from _ready()
    return (yield from _container("images", "-q"))


class AsyncContainer:
    """As `Container`, awaited."""

    __reduce__ = refuse_copy

    def __init__(
        self,
        name: str,
        run: Callable[[Steps[Any]], Awaitable[Any]],
        exec: Callable[..., Any],
        spawn: Callable[..., Any],
        clock: Clock,
    ) -> None:
        self.name = name
        self._clock = clock
        self._run = run
        self._exec = exec
        self._spawn = spawn

    async def info(self) -> ContainerInfo:
        """See `Container.info`."""
        found: ContainerInfo = await self._run(info(self.name))
        return found

    async def exec(self, cmd: str | list[str], **options: Unpack[ExecOptions]) -> ExecResult:
        """See `Container.exec`."""
        given: dict[str, Any] = dict(options)
        result: ExecResult = await self._exec(exec_argv(self.name, cmd, given), **given)
        return result

    async def spawn(self, cmd: str | list[str], **options: Unpack[SpawnOptions]) -> AsyncProcess[bytes]:
        """See `Container.spawn`."""
        given: dict[str, Any] = dict(options)
        started: AsyncProcess[bytes] = await self._spawn(exec_argv(self.name, cmd, given), **given)
        return started

    async def logs(self, lines: int | None = None) -> str:
        """See `Container.logs`."""
        count = [] if lines is None else ["-n", str(int(lines))]
        return str(await self._run(_container("logs", *count, "--", self.name)))

    async def wait(self, timeout: float | None = None) -> int:
        """See `Container.wait`."""
        return int(await self._run(wait(self.name, timeout, self._clock)))

    async def stop(self, timeout: int = 10) -> None:
        """See `Container.stop`."""
        await self._run(_container("stop", "-t", str(int(timeout)), "--", self.name))

    async def start(self) -> None:
        """See `Container.start`."""
        await self._run(_container("start", "--", self.name))

    async def kill(self, signal: str = "KILL") -> None:
        await self._run(_container("kill", "-s", signal, "--", self.name))

    async def remove(self, force: bool = False) -> None:
        """See `Container.remove`."""
        await self._run(_container("rm", *(["-f"] if force else []), "--", self.name))

    def __repr__(self) -> str:
        return f"<AsyncContainer {self.name}>"


class AsyncContainers:
    """As `Containers`, awaited."""

    __reduce__ = refuse_copy

    def __init__(
        self,
        run: Callable[[Steps[Any]], Awaitable[Any]],
        exec: Callable[..., Any],
        spawn: Callable[..., Any],
        offers: Offers,
        store: Store | None,
        clock: Clock,
    ) -> None:
        self._clock = clock
        self._run = run
        self._exec = exec
        self._spawn = spawn
        self._offers = offers
        self._store = store

    def _container(self, name: str) -> AsyncContainer:
        return AsyncContainer(name, self._run, self._exec, self._spawn, self._clock)

    async def run(
        self, image: Image | str, cmd: str | list[str] | None = None, **options: Unpack[ContainerOptions]
    ) -> AsyncContainer:
        """See `Containers.run`."""
        steps = run(image, self._store, self._offers, lambda called: run_args(called, cmd, **options))
        started = str(await self._run(steps))
        return self._container(options.get("name") or started)

    async def add(self, image: Image | str, name: str | None = None) -> str:
        """See `Containers.add`."""
        return str(await self._run(add_image(image, name, self._store, self._offers)))

    async def images(self) -> list[str]:
        return str(await self._run(_images())).split()

    async def list(self) -> list[ContainerInfo]:
        """See `Containers.list`."""
        found: list[ContainerInfo] = await self._run(infos())
        return found

    async def get(self, name: str) -> AsyncContainer:
        """See `Containers.get`."""
        found: ContainerInfo = await self._run(info(name))
        return self._container(found.name)
