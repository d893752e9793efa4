"""Starts a native sandbox: its root, its control group, its plan, its launcher; and ends all of it."""

from __future__ import annotations

import fcntl
import os
import platform
import signal
import socket
import stat
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import lru_cache
from typing import Final

from msgspec import Struct

from belljar.abi.base import environment
from belljar.abi.errno import EINVAL, ENOSPC, EPERM
from belljar.abi.limits import Limits
from belljar.abi.wire import Failure, Ready, WireError, WorkerMessage, worker_frames
from belljar.fuse.session import Account as FileAccount
from belljar.lockdown.bpf import MACHINES
from belljar.lockdown.polling_host import readable
from belljar.lockdown.seal_host import landlock_rules
from belljar.lockdown.sockets_host import receive_descriptors
from belljar.lockdown.standard_host import open_standard_descriptors
from belljar.native.accounts import Account, choose_account
from belljar.native.agent_build_host import AgentUnavailable, agent_program
from belljar.native.mounts_host import OwnersMounts, device_for
from belljar.native.network_host import NativeNetwork, explain_rules, find_in_root
from belljar.native.plan import AGENT_PROCESSES, Ground, Ids, Inside, directories_of, encode_plan
from belljar.native.roots import ID_COUNT, Root, RootSource
from belljar.native.roots_host import prepare_root
from belljar.net.network import Network
from belljar.owner.cgroup_host import Cgroup
from belljar.owner.handle_host import CgroupUnavailable, SlowWorker, WorkerUnavailable
from belljar.owner.launch_host import inheritable_descriptors

ID_BASE: Final = 0x70000000
"""The first of the host's ids that sandboxes of a privileged owner have: a range that nobody else uses."""
START_SECONDS: Final = 30.0
END_SECONDS: Final = 5.0
"""How long the launcher may take to end everything by itself."""
_CONNECTION, _DESCRIPTORS = 3, 4
_ABOVE: Final = 16
"""Where our ends are while these numbers are given to the launcher."""
_READ: Final = 64 << 10
_SIGNALS: Final = [each for each in range(1, 32) if each not in (signal.SIGKILL, signal.SIGSTOP)]
"""Those that programs use; what a process ignores, its children would."""
_CAP_SETGID, _CAP_SETUID, _CAP_SYS_ADMIN = 6, 7, 21
_SWITCHES: Final = (
    ("/proc/sys/user/max_user_namespaces", "0", "sysctl -w user.max_user_namespaces=15000"),
    ("/proc/sys/kernel/unprivileged_userns_clone", "0", "sysctl -w kernel.unprivileged_userns_clone=1"),
    (
        "/proc/sys/kernel/apparmor_restrict_unprivileged_userns",
        "1",
        "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0",
    ),
)
"""Settings of a machine that forbid user namespaces, the value that does, and what allows them."""


class Request(Struct, frozen=True):
    """A sandbox to start."""

    source: RootSource
    user: str
    """A name, or `uid[:gid]`."""
    hostname: str
    cwd: str
    limits: Limits
    name: str
    network: Network | None
    env: dict[str, str]
    """Variables of the image and of the owner."""
    needs_cgroup: bool = False
    directories: tuple[str, ...] = ()
    """Further directories of the root, to mount something on."""
    read_only: bool = False
    """Whether nobody may write to the root."""


class NativeWorker(SlowWorker):
    """The launcher of a sandbox, which ends with it; and the connection to its pid 1."""

    __slots__ = ("account", "descriptors", "ids", "mounts", "network", "release_root", "served", "sockets", "upper")

    ENDING_SECONDS = 2 * END_SECONDS

    def __init__(self, pid: int, pidfd: int, connection: socket.socket, descriptors: socket.socket) -> None:
        super().__init__(pid, pidfd, connection)
        self.descriptors = descriptors
        """Where descriptors come out that pid 1 was asked for."""
        self.release_root: Callable[[], None] = _nothing
        self.mounts: OwnersMounts | None = None
        self.network: NativeNetwork | None = None
        self.upper = -1
        """The directory that has all changes of the root."""
        self.ids = Ids(0, 0, None)
        self.account = Account("", 0, 0, "/")
        self.sockets: list[socket.socket] = []
        """Those that the plan had pid 1 make."""
        self.served: list[socket.socket] = []
        """Those of them that the proxy has now."""

    def pids(self) -> list[int]:
        """All inside; the launcher's own use is next to nothing."""
        return descendants(self.pid)

    def guests(self) -> list[int]:
        """As `pids`, without pid 1."""
        return self.pids()[1:]

    def clear_away(self, pidfd: int) -> None:
        """Close the connection, at which the launcher kills and reaps everything inside; wait for it."""
        if sys.platform != "linux":
            return
        if self.mounts is not None:
            self.mounts.close()  # a program that waits for a file can't be killed
        end_launcher(pidfd, self.connection)
        self.family.remove(self.pid)
        if self.cgroup is not None:
            self.cgroup.remove(END_SECONDS)  # the launcher did so, unless it was killed
        self._close_descriptors()
        for each in self.sockets:
            each.close()
        self.release_root()

    def release(self) -> None:
        super().release()
        self._close_descriptors()
        for each in (*self.sockets, *self.served):
            each.close()

    def _close_descriptors(self) -> None:
        self.descriptors.close()
        upper, self.upper = self.upper, -1
        if upper >= 0:
            os.close(upper)


def _nothing() -> None:
    return


def descendants(pid: int) -> list[int]:
    """Processes that come from one, as far as this kernel tells."""
    found: list[int] = []
    open_pids = [pid]
    while open_pids:
        with suppress(OSError), open(f"/proc/{(parent := open_pids.pop())}/task/{parent}/children") as file:
            children = [int(each) for each in file.read().split()]
            found += children
            open_pids += children
    return found


def launch(request: Request) -> NativeWorker:
    """Start a sandbox, sealed and proved. WorkerUnavailable, ImageError, CgroupUnavailable if it needs one."""
    if sys.platform != "linux" or platform.machine() not in MACHINES:
        raise WorkerUnavailable(f"the native tier needs Linux on {' or '.join(MACHINES)}")
    try:
        program = str(agent_program())
    except AgentUnavailable as error:
        raise WorkerUnavailable(str(error)) from error
    ids = owner_ids()
    with device_for(ids.base) as device:
        return _launch(request, program, ids, device)


def _launch(request: Request, program: str, ids: Ids, device: str) -> NativeWorker:
    worker = _start(program)  # it comes up while the plan is made
    try:
        root = prepare_root(request.source, ids.base)
        worker.release_root = root.release
        cgroup = worker.cgroup = _make_cgroup(request)
        network = NativeNetwork(request.network, request.name, root.lowers)
        account, files = _accounts(request, root)
        plan = encode_plan(
            Ground(
                machine=MACHINES[platform.machine()],
                ids=ids,
                landlock=landlock_rules(),
                lowers=root.lowers,
                binds=root.binds,
                cgroups=[] if cgroup is None else cgroup.directories,
                device=device,
            ),
            Inside(
                account=account,
                hostname=request.hostname,
                cwd=request.cwd,
                limits=request.limits,
                bounded=cgroup is not None,
                files=[*files.items(), *network.files.items()],
                network=network.steps(),
                directories=request.directories,
                read_only=request.read_only,
                kept=_kept(root, ids, directories_of(account, request.cwd)) if request.source.kept else {},
            ),
        )
        _send_plan(worker, plan)
    except BaseException:
        worker.kill()
        raise
    worker.ids, worker.account = ids, account
    worker.env = _environment(account, request, network)
    worker.network = network
    worker.mounts = OwnersMounts(worker.descriptors, FileAccount(account.uid, account.gid, only=ids.base is None))
    return worker


def _send_plan(worker: NativeWorker, plan: bytes) -> None:
    """Have it executed; take what comes out. WorkerUnavailable."""
    try:
        worker.connection.sendall(plan)
        worker.greeting = receive_ready(worker.connection)
        worker.upper, *sockets = receive_made(worker.descriptors)
        worker.sockets = [socket.socket(fileno=fd) for fd in sockets]
    except (OSError, WireError) as error:
        raise WorkerUnavailable(f"the launcher ended while it started: {error}") from error


def _make_cgroup(request: Request) -> Cgroup | None:
    limits = request.limits
    try:
        # Files in memory count as memory: a full disk is ENOSPC, and no reason to kill.
        return Cgroup(
            limits.memory_bytes + limits.file_bytes, processes=limits.processes + AGENT_PROCESSES, ends_all=False
        )
    except CgroupUnavailable:
        if request.needs_cgroup:
            raise
        return None


def _accounts(request: Request, root: Root) -> tuple[Account, dict[str, bytes]]:
    find = _find_accounts if request.source.directory else _find_accounts_once  # a directory may change
    account, passwd, group = find(request.user, tuple(root.lowers))
    own = {"/etc/passwd": passwd.encode(), "/etc/group": group.encode()}
    return account, own | host_files(request.hostname)


def host_files(hostname: str) -> dict[str, bytes]:
    """The files by which a system knows its own name."""
    short = hostname.split(".")[0]
    names = hostname if short == hostname else f"{hostname} {short}"
    return {
        "/etc/hostname": f"{hostname}\n".encode(),
        "/etc/hosts": f"127.0.0.1 localhost\n::1 localhost\n127.0.1.1 {names}\n".encode(),
    }


def _find_accounts(user: str, lowers: tuple[str, ...]) -> tuple[Account, str, str]:
    """The account of a user, and the two files that have it."""
    found = {name: find_in_root(lowers, f"etc/{name}") for name in ("passwd", "group")}
    passwd, group = ("" if each is None else each[1].decode("utf-8", "replace") for each in found.values())
    return choose_account(user, passwd, group)


_find_accounts_once: Final = lru_cache(16)(_find_accounts)


def _kept(root: Root, ids: Ids, paths: Sequence[str]) -> dict[str, tuple[int, int, int]]:
    """Mode, user and group of those directories that a root has, as the sandbox sees them."""
    found: dict[str, tuple[int, int, int]] = {}
    for path in paths:
        place = os.path.join(root.lowers[0], path)
        with suppress(OSError):
            if os.path.realpath(place) == place and stat.S_ISDIR((status := os.lstat(place)).st_mode):
                owner = (-1, -1) if ids.base is None else (status.st_uid - ids.base, status.st_gid - ids.base)
                found[path] = (stat.S_IMODE(status.st_mode), *owner)
    return found


def _environment(account: Account, request: Request, network: NativeNetwork) -> dict[str, str]:
    own = {"HOME": account.home, "USER": account.name, "LOGNAME": account.name}
    return {**environment(request.hostname), **own, **network.environment, **request.env}


def owner_ids() -> Ids:
    """Who this process is, and whether it may map a range of ids."""
    uid, gid = os.geteuid(), os.getegid()
    may_map = uid == 0 and _has_capabilities() and all(_is_mapped(f"/proc/self/{name}_map") for name in ("uid", "gid"))
    return Ids(uid, gid, ID_BASE if may_map else None)


def _has_capabilities() -> bool:
    needed = sum(1 << number for number in (_CAP_SETGID, _CAP_SETUID, _CAP_SYS_ADMIN))
    with open("/proc/self/status") as file:
        held = next((int(line.split()[1], 16) for line in file if line.startswith("CapEff:")), 0)
    return held & needed == needed


def _is_mapped(path: str) -> bool:
    with open(path) as file:
        ranges = [tuple(map(int, line.split())) for line in file]
    return any(first <= ID_BASE and first + count >= ID_BASE + ID_COUNT for first, _, count in ranges)


def _start(program: str) -> NativeWorker:
    """The launcher, with our ends of its two sockets."""
    open_standard_descriptors()
    ours, theirs = socket.socketpair()
    received, sent = socket.socketpair()
    moved: list[int] = []
    try:
        for end in (ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        moved = [fcntl.fcntl(end.fileno(), fcntl.F_DUPFD_CLOEXEC, _ABOVE) for end in (theirs, sent)]
        pid = spawn_launcher(program, dict(zip((_CONNECTION, _DESCRIPTORS), moved, strict=True)))
    except OSError as error:
        ours.close()
        received.close()
        raise WorkerUnavailable(f"the launcher did not start: {error}") from error
    finally:
        for fd in moved:
            os.close(fd)
        theirs.close()
        sent.close()
    return NativeWorker(pid, os.pidfd_open(pid), ours, received)


def end_launcher(pidfd: int, connection: socket.socket) -> None:
    """Shut the connection down, at which the launcher kills and reaps everything inside; wait, and close `pidfd`."""
    if sys.platform != "linux":
        raise NotImplementedError
    with suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    if not readable(pidfd, END_SECONDS):
        with suppress(ProcessLookupError):
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    with suppress(ChildProcessError):
        os.waitid(os.P_PIDFD, pidfd, os.WEXITED)
    os.close(pidfd)


def spawn_launcher(program: str, given: dict[int, int]) -> int:
    """Start the launcher with descriptors of ours as these numbers; gives its pid. OSError."""
    actions: list[tuple[int, ...] | tuple[int, int, str, int, int]] = [
        (os.POSIX_SPAWN_OPEN, fd, os.devnull, os.O_RDWR, 0) for fd in range(3)
    ]
    actions += [(os.POSIX_SPAWN_CLOSE, fd) for fd in inheritable_descriptors() if fd > 2]
    actions += [(os.POSIX_SPAWN_DUP2, fd, number) for number, fd in given.items()]
    name = "belljar-agent"  # not its path, which guests would see
    return os.posix_spawn(program, [name], {}, file_actions=actions, setsid=True, setsigmask=[], setsigdef=_SIGNALS)


def receive_ready(connection: socket.socket) -> bytes:
    """The frame that says so. Raises WorkerUnavailable with the reason if it says otherwise."""
    frames = worker_frames()
    data = b""
    connection.settimeout(START_SECONDS)
    while True:
        piece = connection.recv(_READ)
        if not piece:
            raise WorkerUnavailable("the launcher ended before the sandbox was ready" + explain_refusal())
        data += piece
        for message in frames.feed(piece):
            _check_ready(message)
            connection.settimeout(None)
            return data


def _check_ready(message: WorkerMessage) -> None:
    if isinstance(message, Failure):
        said = message.message.decode("utf-8", "replace")
        denied = message.errno in (EPERM, EINVAL, ENOSPC)
        raise WorkerUnavailable(said + (explain_refusal() if denied else "") + explain_rules(said))
    if not isinstance(message, Ready):
        raise WireError("the first frame says neither that it is ready nor why not")


def explain_refusal() -> str:
    """Say which settings of this machine forbid user namespaces, and what to do; "" if none is known to."""
    advice: list[str] = []
    for path, value, remedy in _SWITCHES:
        with suppress(OSError), open(path) as file:
            if file.read().strip() == value:
                advice.append(f"{os.path.relpath(path, '/proc/sys').replace('/', '.')} is {value}: as root, {remedy}")
    return "".join(f"\n{line}" for line in advice)


def receive_made(descriptors: socket.socket) -> list[int]:
    """Descriptors that the plan had pid 1 make and send, before it was ready: that of its changes first."""
    descriptors.setblocking(False)
    found: list[int] = []
    with suppress(BlockingIOError):
        while True:
            data, fds = receive_descriptors(descriptors, 1, 1)
            found += fds
            if not data:
                break
    return found
