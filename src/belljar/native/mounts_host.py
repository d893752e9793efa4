"""The owner's trees in a native sandbox: FUSE devices that pid 1 sends out, and who serves them."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from belljar.abi.errors import Refused
from belljar.fuse.serve_host import Device, Served, check_device
from belljar.fuse.session import Account, Session
from belljar.kernel.vfs.server import FileServer
from belljar.lockdown.sockets_host import receive_descriptors
from belljar.native.device_relay_host import DeviceRelay

DEVICE: Final = "/dev/fuse"
_SECONDS: Final = 10.0
_SEARCHABLE: Final = ("/var/tmp", "/tmp", "/run")
_OTHERS: Final = stat.S_IROTH | stat.S_IWOTH


@contextmanager
def device_for(uid: int | None, device: str = DEVICE) -> Iterator[str]:
    """The path of a device (FUSE's) that a sandbox whose root is this user of the host may open; None: it is our own
    user.

    Some machines leave such devices to root. A root's sandbox then has a node of its own, for as long as it starts.
    """
    open_to = uid is None or _is_open_to_all(device)
    made = "" if uid is None or open_to else next(filter(None, (_make_node(p, device, uid) for p in _SEARCHABLE)), "")
    try:
        yield made or device
    finally:
        if made:
            shutil.rmtree(os.path.dirname(made), ignore_errors=True)


def _is_open_to_all(device: str) -> bool:
    try:
        return os.stat(device).st_mode & _OTHERS == _OTHERS
    except OSError:
        return True  # there is none that could be copied


def _make_node(place: str, device: str, uid: int) -> str:
    """Its path; "" where no device can be used."""
    directory = ""
    try:
        directory = tempfile.mkdtemp(prefix="belljar-", dir=place)
        path = os.path.join(directory, os.path.basename(device))
        os.chmod(directory, 0o711)  # noqa: S103 - to be searched on the way to the node, which is that user's alone
        os.mknod(path, stat.S_IFCHR | 0o600, os.stat(device).st_rdev)
        os.close(os.open(path, os.O_RDWR | os.O_CLOEXEC))
        os.chown(path, uid, uid)
    except OSError:
        if directory:
            shutil.rmtree(directory, ignore_errors=True)
        return ""
    return path


class OwnersMounts:
    """What is mounted in one sandbox."""

    def __init__(self, descriptors: socket.socket, account: Account) -> None:
        self._descriptors = descriptors
        self._account = account
        self._lock = threading.Lock()
        self._received: dict[int, int] = {}
        """Devices that came before anybody asked for them."""
        self._next = 0
        self._served: dict[str, list[Served]] = {}
        self._relays: list[DeviceRelay] = []
        """Devices that are served elsewhere."""
        self._guards: dict[int, threading.Lock] = {}
        """For each server, by identity: it may be mounted twice."""

    def serve(
        self,
        number: int,
        path: str,
        server: FileServer,
        *,
        private: bool,
        valid: Callable[[], float] | None,
        read_only: bool,
        report: Callable[[BaseException], None],
        refused: Callable[[Refused], None] | None,
        charge: Callable[[Callable[[], bool]], bool],
    ) -> None:
        """Serve the device of that number. OSError, ValueError."""
        session = Session(
            server,
            time.time_ns,
            private=private,
            valid=valid,
            read_only=read_only,
            account=self._account,
            report=report,
            refused=refused,
        )
        with self._lock:
            device = self._take(number)
            self._served.setdefault(path, []).append(Served(device, session, self.guard(server), charge=charge))

    def relay(self, number: int) -> socket.socket:
        """Have the device of that number served by whoever has the socket. OSError, ValueError."""
        with self._lock:
            device = self._take(number, 0.0)  # it came before its number was told
            assert isinstance(device, int)
            self._relays = [each for each in self._relays if not each.ended]
            self._relays.append(relay := DeviceRelay(device))
        return relay.connection

    def guard(self, server: FileServer) -> threading.Lock:
        """What is held while a server is at work."""
        return self._guards.setdefault(id(server), threading.Lock())

    def _take(self, number: int, seconds: float = _SECONDS) -> Device | int:
        while number not in self._received:
            self._descriptors.settimeout(seconds)
            data, fds = receive_descriptors(self._descriptors, 1, 1)
            if not data or len(fds) != 1:
                raise OSError("the sandbox sent no device")
            self._received[self._next] = fds[0]
            self._next += 1
        fd = self._received.pop(number)
        os.set_inheritable(fd, False)
        try:
            check_device(fd)
        except ValueError:
            os.close(fd)
            raise
        return fd

    def new_epoch(self) -> None:
        """Have all names looked up anew that programs use from now on."""
        for pile in list(self._served.values()):
            for served in list(pile):
                served.new_epoch()
        for relay in list(self._relays):
            relay.new_epoch()

    def drop(self, path: str) -> None:
        """It is unmounted."""
        with self._lock:
            served = self._served.get(path)
            last = served.pop() if served else None
        if last is not None:
            last.close()

    def close(self) -> None:
        """End all: what a program waits for fails, so that it can end. Idempotent."""
        with self._lock:
            served = [each for pile in self._served.values() for each in pile]
            self._served.clear()
            received, self._received = self._received, {}
            relays, self._relays = self._relays, []
        for fd in received.values():
            os.close(fd)
        for relay in relays:
            relay.close()
        for each in served:
            each.begin_closing()
        for each in served:
            each.close()
