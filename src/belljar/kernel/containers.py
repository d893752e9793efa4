"""The containers of one pid space: by name, from images, with volumes, ports, limits and logs of their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Literal

from msgspec import Struct

from belljar.abi.container_state import CONTAINERS_MAX
from belljar.abi.errno import EEXIST, EINVAL, ENOENT, ENOSPC
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_NOFOLLOW, O_RDONLY, O_TRUNC, O_WRONLY
from belljar.abi.limits import Limits
from belljar.abi.paths import join, normalise
from belljar.abi.signals import Signal
from belljar.kernel.budget import Budget
from belljar.kernel.container import Container, Network, Settle, Volume
from belljar.kernel.fiber import WaitQueue
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.overlay import OverlayServer
from belljar.kernel.loader import run_program
from belljar.kernel.pids import Session
from belljar.kernel.pipe import Outlet
from belljar.kernel.services.log import Log, read_log
from belljar.kernel.services.supervisor import Supervisor
from belljar.kernel.services.unit_files import read_account, unit_names
from belljar.kernel.status import ExitStatus
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Mount, Namespace
from belljar.kernel.vfs.view import View

if TYPE_CHECKING:
    from belljar.kernel.process import Body, Process
    from belljar.kernel.vfs.openfile import OpenFile
    from belljar.kernel.vfs.server import FileServer

IMAGES_MAX: Final = 100
LOGS: Final = "/var/log/containers"
VOLUMES: Final = "/var/lib/containers/volumes"
_HOSTS: Final = "127.0.0.1\tlocalhost\n::1\tlocalhost\n"

State = Literal["created", "running", "exited"]
Images = Mapping[str, Callable[[], "ContainerImage"]]
MakeNetwork = Callable[[str, Callable[[], str], bool], Network]
"""Gives a container of a name and host name its network; without a way out and to others if the last is False."""


class ContainerImage(Struct, frozen=True):
    """Files, never written to and shared by all containers, and how programs are started on them."""

    tree: FileServer
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = "/"
    user: str = "root"
    command: tuple[str, ...] = ()
    digest: str = ""


class VolumeRequest(Struct, frozen=True):
    """`source` is a path outside, or the name of a volume."""

    source: str
    target: str
    read_only: bool = False


class Request(Struct, frozen=True):
    """A container that is asked for."""

    image: str
    argv: tuple[str, ...] = ()
    name: str = ""
    hostname: str = ""
    env: tuple[tuple[str, str], ...] = ()
    cwd: str = ""
    user: str = ""
    volumes: tuple[VolumeRequest, ...] = ()
    ports: tuple[tuple[int, int], ...] = ()
    """Ports outside, and inside."""
    memory: int = 0
    """Bytes of a program in an interpreter of its own, of /dev/shm, and of any one value; 0: as many as outside."""
    pids: int = 0
    remove: bool = False
    connected: bool = True
    read_only: bool = False


class Contained:
    """One container, from its creation to its removal."""

    def __init__(
        self,
        number: str,
        name: str,
        request: Request,
        image: ContainerImage,
        root: OverlayServer,
        layer: MemoryServer,
    ) -> None:
        """`layer` is the writable part of `root`."""
        self.id = number
        self.name = name
        self.request = request
        self.image = image
        self.root = root
        self.layer = layer
        self.box: Container | None = None
        self.main: Process | None = None
        self.log: Log | None = None
        self.network: Network | None = None
        self.created = self.started = self.ended = 0
        """Nanoseconds since 1970."""
        self.status: ExitStatus | None = None
        self.limit = ""
        """The limit that ended it, if one did."""
        self.payer: Budget | None = None
        """The budget of whoever waits for it, out of which its own was taken."""
        self.removed = False

    @property
    def state(self) -> State:
        if self.box is not None and self.box.init.status is None:
            return "running"
        return "created" if self.status is None else "exited"

    @property
    def argv(self) -> list[str]:
        return list(self.request.argv or self.image.command)


class Containers:
    """Created, started, looked into, ended and removed by root of the pid space."""

    def __init__(self, init: Process, images: Images, make_network: MakeNetwork) -> None:
        self._init = init
        self.images = images
        self._make_network = make_network
        self._kernel = init.kernel
        self._changed = WaitQueue(self._kernel.hub)
        self._all: dict[str, Contained] = {}

    def list(self) -> list[Contained]:
        """The newest first."""
        return list(reversed(self._all.values()))

    def find(self, name: str) -> Contained:
        """By name, id or the beginning of an id that is no other's. ENOENT."""
        if name in self._all:
            return self._all[name]
        found = [each for each in self._all.values() if name and each.id.startswith(name)]
        if len(found) != 1:
            raise SysError(ENOENT, name, why="no such container")
        return found[0]

    def create(self, creator: Process, request: Request) -> Contained:
        """ENOENT (image), EEXIST (name), ENOSPC (too many), EINVAL (no command)."""
        make = self.images.get(request.image)
        if make is None:
            raise SysError(ENOENT, request.image)
        if len(self._all) >= CONTAINERS_MAX:
            raise SysError(ENOSPC)
        kernel = self._kernel
        number = kernel.machine.entropy.random_bytes(6).hex()
        name = request.name or f"box-{number[:6]}"
        if name in self._all:
            raise SysError(EEXIST, name)
        image = make()
        creator.budget.charge(50)
        layer = MemoryServer(kernel.now, kernel.quota)
        root = OverlayServer(image.tree, layer, kernel.now)
        contained = Contained(number, name, request, image, root, layer)
        if not contained.argv:
            raise SysError(EINVAL, request.image)
        contained.created = kernel.now()
        self._all[name] = contained
        return contained

    def adopt(self, contained: Contained) -> None:
        """Have one of a snapshot, which does not run; what it wrote is in its log already. EEXIST, ENOSPC."""
        if len(self._all) >= CONTAINERS_MAX:
            raise SysError(ENOSPC)
        if contained.name in self._all or any(each.id == contained.id for each in self._all.values()):
            raise SysError(EEXIST, contained.name)
        contained.log = Log(self._init.fs, self.log_path(contained))
        self._all[contained.name] = contained

    def start(self, creator: Process, contained: Contained, files: dict[int, OpenFile] | None) -> None:
        """Start it with these standard streams, within what is left of the creator's budget; or, without, in the
        background, with a budget of its own. EPERM, EADDRINUSE, and the errors of volumes and of the user.
        """
        request, kernel, hub = contained.request, self._kernel, self._kernel.hub
        detached = files is None
        volumes = [self._volume(creator, volume) for volume in request.volumes]
        hostname = request.hostname or contained.id
        network = self._make_network(contained.name, lambda: hostname, request.connected)
        try:
            for outside, inside in request.ports:
                network.publish(outside, inside)
            budget = Budget(self._limits(creator, request, detached=detached), hub)
            if files is None:
                contained.log = self.open_log(contained)
                output = kernel.open_outlet(self._init, Outlet(hub, contained.log.write))
                files = {0: self._init.fs.open("/dev/null", O_RDONLY), 1: output, 2: output}
            view = _prepared(contained.root, kernel.now, creator, hostname, network.address)
            user, home = read_account(view, request.user or contained.image.user)
            env = {**dict(contained.image.env), "HOSTNAME": hostname, "HOME": home, **dict(request.env)}
            contained.status, contained.limit = None, ""
            contained.network = network
            contained.started = kernel.now()
            cwd = request.cwd or contained.image.cwd
            if request.cwd:
                view.makedirs(request.cwd, 0o755)
            contained.box = Container(
                creator,
                contained.root,
                partial(self._run_init, contained=contained, user=user),
                ["init"],
                hostname=hostname,
                env=env,
                cwd=cwd,
                read_only=request.read_only,
                volumes=volumes,
                network=network,
                settle=Settle(self._init, budget, files, partial(self._ended, contained)),
                shared_bytes=request.memory or None,
            )
        except BaseException:
            network.close()
            raise
        contained.payer = None if detached else creator.budget
        if detached:
            budget.renew_periodically()
        else:
            budget.timer = hub.call_at(budget.deadline, partial(self._out_of_time, budget))

    def _limits(self, creator: Process, request: Request, *, detached: bool) -> Limits:
        limits = self._kernel.limits if detached else creator.budget.limits
        spent = creator.budget
        left: dict[str, Any] = {}
        if not detached:
            now = self._kernel.hub.clock.monotonic()
            left = {
                "steps": max(1, limits.steps - spent.steps),
                "cpu_seconds": max(0.001, limits.cpu_seconds - spent.cpu),
                "wall_seconds": min(limits.wall_seconds, max(0.001, spent.deadline - now)),
            }
        if request.pids:
            left["processes"] = request.pids + 1  # init is ours
        if request.memory:
            left["memory_bytes"] = left["expansion_bytes"] = request.memory
        return limits.lowered(left) if left else limits

    def _volume(self, creator: Process, volume: VolumeRequest) -> Volume:
        """ENOENT, EINVAL."""
        if not volume.target.startswith("/") or normalise(volume.target) == "/":
            raise SysError(EINVAL, volume.target)
        if "/" in volume.source or volume.source in (".", ".."):
            source = join(creator.fs.getcwd(), volume.source)
        else:
            source = join(VOLUMES, volume.source)
            self._init.fs.makedirs(source, 0o755)
        place = creator.fs.resolve(source)
        return Volume(place.mount, place.node, normalise(volume.target), volume.read_only)

    def _run_init(self, me: Process, contained: Contained, user: Credentials) -> int:
        """pid 1: starts the services of the image and the container's program, and reaps until that has ended."""
        me.space.containers = Containers(me, self.images, self._make_network)
        sockets = me.space.tcp_sockets or self._kernel.tcp_sockets
        services = Supervisor(me, partial(_start_child, me), sockets, lambda: (me.env, user))
        me.space.services = services
        if unit_names(me.fs):
            me.add_fiber(services.boot)
        argv = contained.argv
        main = contained.main = _start_child(
            me, partial(run_program, argv=argv, who="container"), argv, me.env, user, files={}
        )
        while main.status is None:
            me.wait()
        return main.status.shell

    def _ended(self, contained: Contained, init: Process) -> None:
        contained.status = init.status
        budget, payer = init.budget, contained.payer
        if budget.spent is not None:
            contained.limit = budget.spent.limit
        if payer is not None:
            payer.steps += budget.earlier + budget.steps
            payer.cpu += budget.cpu
        contained.ended = self._kernel.now()
        if contained.network is not None:
            contained.network.close()
        if contained.log is not None:
            contained.log.close()
            if contained.request.remove and contained.payer is None:
                self.remove(contained)
        if contained.box is not None:
            contained.box.shared_memory.clear()
        if init.space.containers is not None:
            for inner in init.space.containers.list():
                init.space.containers.remove(inner)
        if contained.removed:
            contained.layer.clear()
        self._changed.wake_all()

    def _out_of_time(self, budget: Budget) -> None:
        budget.spend("wall_seconds")
        self._kernel.kill_budget(budget)

    def wait(self, contained: Contained, seconds: float | None = None) -> bool:
        """Wait for its end; whether it has come."""
        hub = self._kernel.hub
        until = None if seconds is None else hub.clock.monotonic() + seconds
        timer = None if until is None else hub.call_at(until, self._changed.wake_all)
        try:
            while contained.state == "running":
                if until is not None and hub.clock.monotonic() >= until:
                    return False
                self._changed.wait()
        finally:
            if timer is not None:
                timer.cancel()
        return True

    def signal(self, contained: Contained, number: int) -> None:
        """Signal its program; KILL ends all of it."""
        if contained.box is None or contained.state != "running":
            return
        if number == Signal.KILL:
            contained.box.init.deliver(number)
        elif contained.main is not None:
            contained.main.deliver(number)

    def kill(self, contained: Contained) -> None:
        """End all of it, now."""
        self.signal(contained, Signal.KILL)

    def stop(self, contained: Contained, seconds: float) -> None:
        """SIGTERM, and after so long SIGKILL."""
        self.signal(contained, Signal.TERM)
        if not self.wait(contained, seconds):
            self.signal(contained, Signal.KILL)
            self.wait(contained)

    def remove(self, contained: Contained) -> None:
        """Forget one that has ended or is about to. Its files go, and with them what they take of the quota."""
        self._all.pop(contained.name, None)
        contained.removed = True
        if contained.state != "running":
            contained.layer.clear()
        if contained.log is not None:
            contained.log.remove()

    def read_log(self, contained: Contained, lines: int | None) -> bytes:
        return read_log(self._init.fs, self.log_path(contained), lines)

    def open_log(self, contained: Contained) -> Log:
        log = Log(self._init.fs, self.log_path(contained))
        if contained.log is None:
            log.remove()  # of a container of that name in the sandbox that this one was restored from
        return log

    def log_path(self, contained: Contained) -> str:
        return f"{LOGS}/{contained.name}.log"


def _prepared(root: FileServer, now: Callable[[], int], creator: Process, hostname: str, address: str) -> View:
    """A view of the container's files alone, in which it has its name."""
    view = View(
        Namespace(Mount(root, root.root, None)),
        Credentials(),
        open_fifo=creator.fs.open_fifo,
        now=now,
        lookup_cache=creator.fs.lookup_cache,
    )
    for path, text in (
        ("/etc/hostname", f"{hostname}\n"),
        ("/etc/hosts", _HOSTS + (f"{address}\t{hostname}\n" if address else "")),
    ):
        with suppress(SysError):  # an image without /etc
            file = view.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW, 0o644).retain()
            try:
                file.write(text.encode())
            finally:
                file.release()
    return view


def _start_child(
    init: Process,
    body: Body,
    argv: list[str],
    env: Mapping[str, str] | None = None,
    credentials: Credentials | None = None,
    cwd: str | None = None,
    files: dict[int, OpenFile] | None = None,
    on_exit: Callable[[Process], None] | None = None,
) -> Process:
    """A child of a container's init with a session of its own; its descriptors are init's but for `files`."""
    child = init.kernel.fork(init, argv)
    child.pgid = child.pid
    child.session = Session(child.pid)
    child.env = init.env if env is None else env
    try:
        if cwd is not None:
            child.fs.chdir(cwd)
        for fd, file in (files or {}).items():
            child.fds.put(fd, file)
    except SysError:
        init.kernel.finish(child, ExitStatus(1))
        raise
    if credentials is not None:
        child.fs.credentials = credentials
    child.on_exit = on_exit
    child.start_fiber(body)
    return child
