"""One sandbox's life inside its process: a kernel with the base files, and the commands run in it.

No host contact: machine, limits and programs come in as arguments, so the same session runs sealed in a worker, in a
test on virtual time, or (one day) in a browser.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from typing import Final
from weakref import WeakSet

from msgspec import Struct

from belljar.abi.base import AGENT_NAME, HOSTNAME, WORKSPACE, environment
from belljar.abi.errno import EBUSY, ENOSYS
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CREAT, O_EXCL, O_WRONLY
from belljar.abi.limits import Limits
from belljar.abi.paths import basename, fsdecode
from belljar.abi.records import Owner
from belljar.abi.termios import WinSize
from belljar.engines.worker.wasm_loader import load_binary
from belljar.kernel.containers import ContainerImage, Containers
from belljar.kernel.engines import Companion
from belljar.kernel.fs.dev import DevServer
from belljar.kernel.fs.memory import MemoryServer
from belljar.kernel.fs.proc import ProcServer
from belljar.kernel.fs.quota import Quota
from belljar.kernel.fs.srv import SrvServer
from belljar.kernel.kernel import Kernel
from belljar.kernel.loader import Program, program_file, search_path
from belljar.kernel.machine import Machine, SeededEntropy, never_backwards
from belljar.kernel.process import Process
from belljar.kernel.services.supervisor import Supervisor
from belljar.kernel.vfs.credentials import Credentials
from belljar.kernel.vfs.namespace import Mount, Place
from belljar.kernel.vfs.server import FileServer
from belljar.net.guest.container import ContainerNetwork
from belljar.net.guest.local import Bridge, LocalNetwork
from belljar.net.guest.netfs import NetServer
from belljar.net.guest.uplink import Uplink
from belljar.net.guest.webfs import WebServer
from belljar.worker.base import (
    AGENT_CREDENTIALS,
    TOOL_FILES,
    make_directories,
    populate,
    rename_agent,
    tool_files,
)
from belljar.worker.streams import Streams
from belljar.worker.task import OnOutput, Task

BASE_IMAGE: Final = "base"
BASE_BYTES: Final = 1 << 30
BASE_FILES: Final = 1 << 20
"""Bounds of the base files of containers, which are ours: not of the sandbox's quota."""


class Result(Struct):
    """The result of a command."""

    stdout: bytes
    stderr: bytes
    status: int
    limit: str | None = None
    """The budget that stopped it, if one did."""


class Session:
    """A kernel, its files, and `exec`."""

    def __init__(
        self,
        machine: Machine,
        *,
        programs: Callable[[str], Program | None],
        names: Iterable[str],
        tools: Iterable[str] = (),
        limits: Limits | None = None,
        env: Mapping[str, str] | None = None,
        cwd: str = WORKSPACE,
        hostname: str = HOSTNAME,
        credentials: Credentials = AGENT_CREDENTIALS,
    ) -> None:
        limits = limits if limits is not None else Limits()
        quota = Quota(limits.file_bytes, limits.files)
        now = never_backwards(machine.clock.time_ns)
        root = MemoryServer(now, quota)
        populate(root, hostname, names)
        self.root: FileServer = root
        self.root_over = -1
        """The owner's export that the root is an overlay of; -1: none."""
        self._added: dict[str, Program] = {}
        self.make_companion: Callable[[], Companion] | None = None
        """Gives the way to native programs, where there can be any."""
        self._idle: list[Streams] = []
        """Pipes that wait for the next command."""
        self.kernel = Kernel(
            machine,
            root,
            limits=limits,
            quota=quota,
            programs=lambda name: self._added.get(name) or programs(name),
            hostname=hostname,
            binary_loader=load_binary,
            now=now,
        )
        self.credentials = credentials
        self.cwd = cwd
        self.env = {**environment(hostname), **(env or {})}
        self._bridge = Bridge()
        self.ports = LocalNetwork(self.kernel.hub, lambda: self.kernel.hostname, self._bridge)
        """The servers inside, and the connections to them."""
        self._uplinks: WeakSet[Uplink] = WeakSet()
        """Those of containers."""
        self.uplink = Uplink(self.kernel.hub, self.ports)
        """The way to the owner's network broker; leads nowhere until it is given one."""
        network = NetServer(self.uplink, self.kernel.now)
        self.kernel.tcp_sockets = network.tcp_sockets
        self.shared_memory = MemoryServer(now, quota, mode=0o1777)
        self._system = (
            (DevServer(self.kernel), "/dev"),
            (self.shared_memory, "/dev/shm"),
            (ProcServer(self.kernel, self.kernel.init.space), "/proc"),
            (SrvServer(self.kernel), "/mnt/srv"),
            (network, "/net"),
            (WebServer(self.uplink, self.kernel.now), "/mnt/web"),
        )
        """The kernel's own file systems and where they are."""
        self._tools = tool_files(now, tools)
        """Files of prepared tools, in front of /usr/bin: they are the machine's, and part of no snapshot or image."""
        for server in (*(server for server, _ in self._system), *filter(None, [self._tools])):
            self.kernel.register(server)
        self._mount_system()
        self.services = Supervisor(
            self.kernel.init, self.kernel.start, network.tcp_sockets, lambda: (self.env, self.credentials)
        )
        self.kernel.init.space.services = self.services
        self.images: dict[str, Callable[[], ContainerImage]] = {BASE_IMAGE: self.base_image}
        """The images that containers can be made of."""
        self._base: ContainerImage | None = None
        self._names = names
        self.containers = Containers(self.kernel.init, self.images, self._container_network)
        self.kernel.init.space.containers = self.containers

    def _mount_system(self, *, make: bool = False) -> None:
        """Mount the kernel's own file systems; with `make`, in a root that may lack their directories."""
        fs = self.kernel.init.fs
        for server, path in self._system:  # one after the other: /dev/shm is a directory of /dev's server
            if make:
                make_directories(fs, path)
            fs.mount(server, path, source=server.kind)
        if self._tools is not None:
            if make:
                make_directories(fs, TOOL_FILES)
            fs.mount(self._tools, TOOL_FILES, order="before", creates=False, read_only=True, source="tools")

    def base_image(self) -> ContainerImage:
        """The files that sandboxes begin with, for containers: made once, and shared by sandboxes if it is in time."""
        if self._base is None:
            tree = MemoryServer(self.kernel.now, Quota(BASE_BYTES, BASE_FILES))
            populate(tree, HOSTNAME, self._names)
            path = environment(HOSTNAME)["PATH"]
            self._base = ContainerImage(tree, (("PATH", path), ("LANG", "C.UTF-8")), command=("bash",))
        return self._base

    def _container_network(self, name: str, hostname: Callable[[], str], connected: bool) -> ContainerNetwork:
        network = ContainerNetwork(self.uplink, self._bridge, name, hostname, self.kernel.now, connected=connected)
        self._uplinks.add(network.uplink)
        return network

    def add_container_programs(self) -> None:
        """Have the programs that containers are run by, whatever the image is."""
        init = self.kernel.init
        for name in ("container", "sudo", "timeout"):
            try:
                search_path(init, name, self.env.get("PATH"))
            except SysError:
                make_directories(init.fs, "/usr/local/bin")
                init.write_file(f"/usr/local/bin/{name}", program_file(name), 0o755)
                self.kernel.lookup_cache.clear()

    def hang_up(self) -> None:
        """End every connection to the outside, as a branch of a sandbox must."""
        for uplink in (self.uplink, *self._uplinks):
            uplink.hang_up()

    def replace_root(self, root: FileServer, over: int, user: str) -> None:
        """Have another root before anything was started. Its files are those of a sandbox whose `user` is given.

        `over` is the owner's export that it is an overlay of.
        """
        kernel, fs = self.kernel, self.kernel.init.fs
        if len(kernel.init.space.table) > 1:
            raise SysError(EBUSY, "/")
        kernel.quota.bytes_used = kernel.quota.files_used = 0
        kernel.register(root)
        kernel.lookup_cache.clear()
        fs.namespace.root = fs.root = fs.cwd = Place(Mount(root, root.root, None, source=root.kind), root.root)
        fs.namespace.tops = {}
        self._mount_system(make=True)
        self.root, self.root_over = root, over
        mine = self.env.get("USER", AGENT_NAME)
        old = AGENT_NAME if user == "root" else user
        if old != mine != "root":
            rename_agent(kernel.init, mine, old)

    def reconfigure(self, *, env: Mapping[str, str], cwd: str, user: str, hostname: str, limits: Limits) -> None:
        """Turn a session made in advance into the one that was asked for."""
        if user != AGENT_NAME:
            self._become(user)
        given = {**self.env, "HOSTNAME": hostname, **env}
        if given != self.env:  # else it stays the same object, and the first shell begins as the warm-up's did
            self.env = given
        self.cwd = cwd
        self.kernel.configure(hostname, limits)

    def replay(self, seed: bytes) -> None:
        """Before anything was started: have the same commands do the same in every session with this seed."""
        kernel = self.kernel
        assert isinstance(kernel.machine.entropy, SeededEntropy), "not the worker of a replay"
        kernel.machine.entropy.seed(seed)
        kernel.init.space.restart()

    def _become(self, user: str) -> None:
        """Have commands run as root, or as an account of another name."""
        home = "/root" if user == "root" else f"/home/{user}"
        if user == "root":
            self.credentials = Credentials()
        else:
            rename_agent(self.kernel.init, user)
        self.env = {**self.env, "HOME": home, "USER": user, "LOGNAME": user}

    def owner_rights(self) -> Credentials:
        """All rights, and what is made with them belongs to whom commands run as."""
        return Credentials(creates_as=Owner(self.credentials.uid, self.credentials.gid))

    def add_program(self, name: str, program: Program) -> None:
        """A further command, in /usr/local/bin."""
        self._added[name] = program
        self.kernel.outer_programs.add(name)
        self.kernel.lookup_cache.clear()
        init = self.kernel.init
        path = f"/usr/local/bin/{name}"
        init.write_file(path, program_file(name), 0o755)

    def add_native(self, names: list[bytes], places: list[bytes], every: bool) -> None:
        """Have programs of these names run natively, and those in these files, as far as there is none of ours; with
        `every`, ELF files too.
        """
        from belljar.engines.worker.native import load_native, main  # few sandboxes have any

        if self.make_companion is None:
            raise SysError(ENOSYS)
        kernel = self.kernel
        granted = [fsdecode(name) for name in names]
        self._added |= dict.fromkeys(granted, main)
        self._drop_tools(granted)
        files = [f"/usr/bin/{name}" for name in granted]
        for path in map(fsdecode, places):
            if kernel.programs(basename(path)) is None:
                self._added[basename(path)] = main
                files.append(path)
        self._drop_tools(map(basename, files))
        for path in files:
            with suppress(SysError):  # the image has that file, or not even the directory
                kernel.init.write_file(path, program_file(basename(path)), 0o755, O_WRONLY | O_CREAT | O_EXCL)
        kernel.outer_programs |= self._added.keys()
        kernel.companion = self.make_companion()
        kernel.elf_loader = load_native if every else None
        kernel.lookup_cache.clear()

    def _drop_tools(self, names: Iterable[str]) -> None:
        """Real programs take the places of tools that have their names."""
        if self._tools is None:
            return
        for name in names:
            with suppress(SysError):
                self._tools.unlink(self._tools.root, name)

    def start(
        self,
        command: str | list[str],
        *,
        on_output: OnOutput,
        on_end: Callable[[Task], None],
        stdin: bytes | None = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        limits: Limits | None = None,
        merge_stderr: bool = False,
        terminal: WinSize | None = None,
        control: bool = False,
        forks: Process | None = None,
        follows: bool = False,
    ) -> Task:
        """Set a command going. A str runs in bash; a list is argv.

        With `follows`, more input is given to the task later. `stdin` None: /dev/null, or a socket if more follows.
        """
        task = Task(self.kernel, on_output, on_end, self._idle)
        task.start(
            ["bash", "-c", command] if isinstance(command, str) else list(command),
            env={**self.env, **env} if env else self.env,
            cwd=self.cwd if cwd is None else cwd,
            credentials=self.credentials,
            limits=limits,
            stdin=stdin,
            merge_stderr=merge_stderr,
            terminal=terminal,
            control=control,
            forks=forks,
            follows=follows,
        )
        return task

    def exec(
        self,
        command: str | list[str],
        *,
        stdin: bytes = b"",
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        limits: Limits | None = None,
        merge_stderr: bool = False,
    ) -> Result:
        """Run a command to its end on this very thread and collect its output: for tests and tools."""
        parts: dict[int, list[bytes]] = {1: [], 2: []}
        ended: list[Task] = []
        task = self.start(
            command,
            on_output=lambda stream, data: parts[stream].append(data),
            on_end=ended.append,
            stdin=stdin,
            env=env,
            cwd=cwd,
            limits=limits,
            merge_stderr=merge_stderr,
        )
        self.kernel.hub.run(lambda: bool(ended))
        return Result(b"".join(parts[1]), b"".join(parts[2]), task.status.shell, task.limit)
