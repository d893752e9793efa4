"""A process in user and mount namespaces of its own, where FUSE is mounted and used. It ends with the test process."""

import array
import ctypes
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, cast

from belljar.fuse.mount_host import mount_device
from belljar.fuse.serve_host import DEADLINE_SECONDS, Served
from belljar.fuse.session import Session
from belljar.kernel.fs.hostdir_host import HostDirServer
from belljar.kernel.fs.remote import Export, Message, RemoteServer
from belljar.kernel.vfs.server import FileServer
from tests.kernel.real_files import Answer, Helper, leave_descriptors, receive, send

CLONE_NEWNS, CLONE_NEWUSER = 0x20000, 0x10000000
MS_REC_PRIVATE = 0x44000
MNT_DETACH = 2


class Inside(Helper):
    """The calls that the process makes for the tests."""

    def __init__(self, directory: Path, descriptors: socket.socket) -> None:
        super().__init__(directory)
        self._descriptors = descriptors
        self._exports: list[Export] = []
        self._processes: dict[int, subprocess.Popen[bytes]] = {}

    def do_tmpfs(self, path: str) -> None:
        os.makedirs(path, exist_ok=True)
        self._mount(b"none", path, b"tmpfs", b"mode=755")

    def _mount(self, source: bytes, path: str, kind: bytes, options: bytes) -> None:
        if self._libc.mount(source, os.fsencode(path), kind, 0, options):
            raise OSError(ctypes.get_errno(), "mount")

    def do_fuse(self, path: str, read_only: bool) -> None:
        """Mount, and send the device out."""
        os.makedirs(path, exist_ok=True)
        fd = os.open("/dev/fuse", os.O_RDWR | os.O_CLOEXEC)
        mount_device(fd, path, "test", read_only=read_only, options=",default_permissions,allow_other")
        rights = (socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [fd]))
        self._descriptors.sendmsg([b"."], [rights])
        os.close(fd)

    def do_unmount(self, path: str) -> None:
        if self._libc.umount2(os.fsencode(path), MNT_DETACH):
            raise OSError(ctypes.get_errno(), "umount")

    def do_enter(self, path: str) -> None:
        """Make a directory the place of the calls that follow."""
        os.close(self._outside)
        self._outside = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        os.fchdir(self._outside)

    def do_run(self, command: str, seconds: float) -> Answer:
        """Run a shell's command; gives its status and output."""
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", command], stdout=-1, stderr=-2, stdin=subprocess.DEVNULL, timeout=seconds, check=False
            )
        except subprocess.TimeoutExpired:
            return [-1, b"timeout"]
        return [done.returncode, done.stdout]

    def do_spawn(self, command: str) -> int:
        process = subprocess.Popen(["/bin/sh", "-c", command], stdout=-1, stderr=-2, stdin=subprocess.DEVNULL)
        self._processes[process.pid] = process
        return process.pid

    def do_wait(self, pid: int, seconds: float) -> Answer:
        process = self._processes.pop(pid)
        try:
            output, _ = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            return [-1, b"timeout"]
        return [process.returncode, output]

    def do_export(self, path: str) -> int:
        """Serve a directory of this namespace to the tests."""
        self._exports.append(Export(HostDirServer(path, read_only=False, trust=True)))
        return len(self._exports) - 1

    def do_file(self, number: int, message: dict[str, object]) -> Answer:
        return self._exports[number].serve(message)


class Namespace:
    """The tests' end of that process."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        ours, theirs = socket.socketpair()
        self._descriptors, sent = socket.socketpair()
        self._pid = os.fork()
        if self._pid == 0:
            # Whoever runs the tests in the background may have had ^C ignored, and programs inherit that.
            signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                leave_descriptors(theirs.fileno(), sent.fileno())
                _isolate(theirs)
                Inside(directory, sent).serve(theirs)
            finally:
                os._exit(0)
        theirs.close()
        sent.close()
        self._socket = ours
        error = receive(ours)
        if error:
            self.close()
            raise OSError(error, os.strerror(error))
        for name in ("uid_map", "gid_map"):
            # Root maps all users; anybody else only themselves, as root.
            lines = "0 0 4294967295" if os.geteuid() == 0 else f"0 {os.geteuid() if name[0] == 'u' else os.getegid()} 1"
            if os.geteuid() != 0:
                Path(f"/proc/{self._pid}/setgroups").write_text("deny")
            Path(f"/proc/{self._pid}/{name}").write_text(lines)
        send(ours, None)
        receive(ours)

    def call(self, operation: str, *arguments: object) -> Answer:
        """The value, or the name of an errno as "!ENOENT"."""
        send(self._socket, [operation, list(arguments)])
        return receive(self._socket)

    def run(self, command: str, seconds: float = 60) -> str:
        """Output of a command that must succeed."""
        status, output = self.call("run", command, seconds)
        assert status == 0, output.decode(errors="replace")
        text: str = output.decode()
        return text

    def fuse(self, path: str, *, read_only: bool = False) -> int:
        """Mount; gives the device."""
        failed = self.call("fuse", path, read_only)
        assert failed is None, failed
        _, ancillary, _, _ = self._descriptors.recvmsg(1, socket.CMSG_SPACE(4))
        fds = array.array("i", ancillary[0][2])
        os.set_inheritable(fds[0], False)
        return fds[0]

    def close(self) -> None:
        self._socket.close()
        self._descriptors.close()
        os.waitpid(self._pid, 0)


def _isolate(connection: socket.socket) -> None:
    """Enter new namespaces; the parent maps the users. Tells the errno of what is not allowed here."""
    libc = ctypes.CDLL(None, use_errno=True)
    number = ctypes.get_errno() if libc.unshare(CLONE_NEWUSER | CLONE_NEWNS) else 0
    send(connection, number)
    receive(connection)
    os.setgid(0) if os.geteuid() == 0 else None
    libc.mount(b"none", b"/", None, MS_REC_PRIVATE, None)
    send(connection, None)


@cache
def can_mount() -> bool:
    """Whether this machine lets us mount FUSE in a user namespace."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        return False
    try:
        Namespace(Path("/")).close()
    except OSError:
        return False
    return True


@contextmanager
def served(
    namespace: Namespace, server: FileServer, path: str, *, seconds: float = DEADLINE_SECONDS, **options: Any
) -> Iterator[Served]:
    """A server mounted at a path of a namespace."""
    fd = namespace.fuse(path, read_only=options.get("read_only", False))
    mounted = Served(fd, Session(server, time.time_ns, **options), seconds=seconds)
    try:
        yield mounted
    finally:
        namespace.call("unmount", path)
        mounted.close()


@cache
def _shared() -> Namespace:
    """A namespace for all of a process; it ends when that does."""
    return Namespace(Path("/"))


class Shown(RemoteServer):
    """A server as a real mount of it shows it, until it is closed."""

    def __init__(self, server: FileServer, place: str, *, private: bool) -> None:
        self._namespace, self._place = _shared(), place
        self._mounted = Served(self._namespace.fuse(place), Session(server, time.time_ns, private=private))
        number = self._namespace.call("export", place)
        super().__init__(lambda message: cast("Message", self._namespace.call("file", number, message)))

    def close(self) -> None:
        self._namespace.call("unmount", self._place)
        self._mounted.close()
