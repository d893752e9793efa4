"""Makes this process believe, as far as belljar can tell, that it runs on macOS or Windows.

What these systems lack is taken away: any use of it fails. What Windows has instead is put in its place. It is a
stand-in: it shows that nothing of Linux is needed, not that everything works there.
"""

from __future__ import annotations

import _socket
import asyncio
import importlib
import os
import select
import selectors
import signal
import socket
import struct
import subprocess
import sys
import threading
from typing import Any

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
LINUX_ONLY = {
    "belljar.lockdown.seal_host",
    "belljar.lockdown.privileges_host",
    "belljar.lockdown.forks_host",
    "belljar.forking.owner.copies_host",
    "belljar.forking.owner.hello_host",
    "belljar.forking.server.copied_host",
    "belljar.forking.server.judge_host",
    "belljar.forking.server.server_host",
    "belljar.engines.artefact_host",
    "belljar.engines.compile_host",
    "belljar.engines.owner.js_build_host",
    "belljar.engines.python.library_host",
    "belljar.engines.python.template_host",
    "belljar.engines.wasm.template_host",
    "belljar.kernel.fs.hostdir_host",
    "belljar.kernel.fs.openat2_host",
    "belljar.owner.branch_host",
    "belljar.zygote.zygote_host",
    "belljar.owner.cgroup_host",
    "belljar.engines.owner.wasm_natives_host",
    "belljar.engines.owner.wasm_start_host",
    "belljar.engines.quickjs.guest_host",
    "belljar.engines.quickjs.template_host",
    "belljar.engines.quickjs.url_host",
    "belljar.engines.quickjs.wire_host",
    "belljar.engines.wasi.linker_host",
}
"""Modules that are never imported elsewhere; `tools/mypy_elsewhere.ini` leaves them out for that reason."""

_NOT_LINUX = {
    os: "pidfd_open memfd_create sched_getaffinity setns unshare O_PATH",
    select: "epoll EPOLLIN EPOLLOUT EPOLLET",
    signal: "pidfd_send_signal",
    socket: "SO_PASSCRED SCM_CREDENTIALS SOCK_NONBLOCK SOCK_CLOEXEC",
}
_NOT_WINDOWS = {
    os: "fork register_at_fork geteuid getuid getegid sysconf pread pwrite fchmod set_blocking setsid getsid getpgid "
    "killpg O_CLOEXEC O_NOFOLLOW O_DIRECTORY wait4 uname",
    select: "poll POLLIN",
    signal: "setitimer ITIMER_PROF SIGPROF SIGALRM SIGCHLD SIGKILL SIGPIPE SIGHUP pthread_kill",
    socket: "AF_UNIX CMSG_LEN CMSG_SPACE SCM_RIGHTS send_fds recv_fds MSG_DONTWAIT",
}
_NO_MODULES = {"darwin": (), "win32": ("fcntl", "resource", "termios", "tty", "pty", "grp", "pwd")}


class _Missing:
    """Finds that some modules do not exist."""

    def __init__(self, names: tuple[str, ...]) -> None:
        self._names = frozenset(names)

    def find_spec(self, name: str, _path: object = None, _target: object = None) -> None:
        if name in self._names or name in LINUX_ONLY:
            raise ImportError(f"there is no {name} on this system")


class _Proactor(asyncio.SelectorEventLoop):
    """As the loop of Windows: it receives and sends, and does not tell when something is ready."""

    def add_reader(self, *_: Any) -> None:  # type: ignore[override]
        raise NotImplementedError

    add_writer = add_reader  # type: ignore[assignment]


class _Policy(asyncio.DefaultEventLoopPolicy):
    _loop_factory = _Proactor


def pretend(platform: str) -> None:
    """From here on. Call it before anything of belljar is imported."""
    assert not any(name.startswith("belljar") for name in sys.modules), "too late"
    for name in (
        "multiprocessing.util",
        "concurrent.futures.thread",
        "logging",
        "random",
        "tempfile",
        "sqlite3",
        "ssl",
    ):
        importlib.import_module(name)  # what the system's own library would do without is not our business
    if platform == "win32":
        _be_windows()
    for names in (_NOT_LINUX, _NOT_WINDOWS) if platform == "win32" else (_NOT_LINUX,):
        for module, gone in names.items():
            for name in gone.split():
                module.__dict__.pop(name, None)
    chosen = selectors.SelectSelector if platform == "win32" else selectors.PollSelector
    setattr(selectors, "DefaultSelector", chosen)  # noqa: B010 - a class, to mypy
    for name in _NO_MODULES[platform]:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, _Missing(_NO_MODULES[platform]))
    sys.platform = platform


def _be_windows() -> None:
    """Pairs of sockets are TCP, processes get them by `share`, and only by that."""
    unix, make, rights, space = socket.AF_UNIX, socket.socket, socket.SCM_RIGHTS, socket.CMSG_LEN(4)
    sendmsg, recvmsg = _socket.socket.sendmsg, _socket.socket.recvmsg

    def pair(*_: object) -> tuple[socket.socket, socket.socket]:
        with make(socket.AF_INET, socket.SOCK_STREAM) as listener:
            listener.bind(("127.0.0.1", 0))
            listener.listen()
            ours = make(socket.AF_INET, socket.SOCK_STREAM)
            ours.connect(listener.getsockname())
            theirs, _ = listener.accept()
            return ours, theirs

    def share(self: socket.socket, _pid: int) -> bytes:
        address = b"\0belljar-test-" + os.urandom(16).hex().encode()
        shared = self.dup()
        listener = make(unix, socket.SOCK_STREAM)
        listener.bind(address)
        listener.listen()

        def hand_over() -> None:
            with shared, listener:
                connection, _ = listener.accept()
                with connection:
                    sendmsg(connection, [b"x"], [(socket.SOL_SOCKET, rights, struct.pack("i", shared.fileno()))])

        threading.Thread(target=hand_over, daemon=True).start()
        return address

    def fromshare(data: bytes) -> socket.socket:
        with make(unix, socket.SOCK_STREAM) as connection:
            connection.connect(data)
            _, notes, _, _ = recvmsg(connection, 1, space)
            return make(fileno=struct.unpack("i", notes[0][2])[0])

    def setsockopt(self: socket.socket, level: int, option: int, value: Any) -> None:
        if option == socket.SO_SNDTIMEO:
            value = struct.pack("@ll", struct.unpack("@I", value)[0] // 1000, 0)  # milliseconds there
        super(socket.socket, self).setsockopt(level, option, value)

    def refuse(*_: object, **__: object) -> None:
        raise AttributeError("not on Windows")

    class Popen(subprocess.Popen[bytes]):
        def __init__(self, *args: Any, pass_fds: Any = (), start_new_session: bool = False, **options: Any) -> None:
            if pass_fds or start_new_session:
                raise ValueError("not supported on Windows")
            super().__init__(*args, **options)

        def kill(self) -> None:
            self.send_signal(9)

    socket.socketpair = pair  # type: ignore[assignment]
    socket.fromshare = fromshare  # type: ignore[attr-defined]
    socket.socket.share = share  # type: ignore[attr-defined]
    socket.socket.setsockopt = setsockopt  # type: ignore[method-assign, assignment]
    socket.socket.recvmsg = socket.socket.sendmsg = refuse  # type: ignore[method-assign, assignment]
    subprocess.Popen = Popen  # type: ignore[misc, assignment]
    subprocess.CREATE_NO_WINDOW = subprocess.CREATE_NEW_PROCESS_GROUP = 0  # type: ignore[attr-defined]
    asyncio.set_event_loop_policy(_Policy())


def prelude(platform: str) -> str:
    """What a worker of such a process runs first."""
    first = f"import sys; sys.path.insert(0, {ROOT!r}); "
    return first + f"from tests.worker import elsewhere; elsewhere.pretend({platform!r}); "
