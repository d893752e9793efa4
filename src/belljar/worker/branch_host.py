"""Forking a live worker, from the owner's side: a connection for the branch, the permit, and who came of it."""

from __future__ import annotations

import os
import socket
import struct
from typing import Final

from belljar.abi.wire import HELLO
from belljar.worker.handle_host import CgroupUnavailable, WorkerHandle, WorkerUnavailable

_CREDENTIALS: Final = struct.Struct("=iII")
"""struct ucred: pid, uid, gid."""


class Branching:
    """One branch in the making. End it with `accept` or with `abandon`."""

    def __init__(self, origin: WorkerHandle) -> None:
        self._origin = origin
        self._ours, theirs = socket.socketpair()
        for end in (self._ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        self._ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 1)
        theirs.setblocking(False)
        self._theirs = theirs
        origin.family.expect()

    def fileno(self) -> int:
        """Readable when there is something to accept."""
        return self._ours.fileno()

    def permit(self) -> int:
        """Have the zygote let the worker fork; gives the descriptor for the branch, which is the caller's to close."""
        try:
            if self._origin.zygote is None:
                raise WorkerUnavailable("it was not made by a zygote of this process, which would let it fork")
            self._origin.zygote.permit(self._origin.family.pid, self._origin.pid)
        except OSError as error:
            raise WorkerUnavailable(f"its zygote, which must let it fork, is gone ({error})") from error
        return self._theirs.detach()

    def accept(self, seconds: float) -> WorkerHandle:
        """The branch, once it says hello: the kernel tells which process did. Raises WorkerUnavailable."""
        self._ours.settimeout(seconds)
        try:
            data, notes, _flags, _address = self._ours.recvmsg(1, socket.CMSG_SPACE(_CREDENTIALS.size))
        except OSError as error:
            raise WorkerUnavailable(f"the branch did not report: {error}") from error
        if data != HELLO or not notes or notes[0][1] != socket.SCM_CREDENTIALS:
            raise WorkerUnavailable("the branch ended at once; is there memory for it?")
        pid: int = _CREDENTIALS.unpack(notes[0][2])[0]
        try:
            pidfd = os.pidfd_open(pid)
        except OSError as error:
            raise WorkerUnavailable(f"the branch is gone: {error}") from error
        if not self._origin.family.has(pid):
            os.close(pidfd)
            raise WorkerUnavailable(f"process {pid} says it is the branch, and is not")
        self._ours.setsockopt(socket.SOL_SOCKET, socket.SO_PASSCRED, 0)
        self._ours.settimeout(None)
        connection = socket.socket(fileno=self._ours.detach())
        branch = WorkerHandle(pid, pidfd, connection, self._origin.zygote, self._origin.family)
        if self._origin.cgroup is not None:
            try:
                branch.confine(self._origin.cgroup.memory_bytes)
            except CgroupUnavailable as error:
                branch.kill()
                raise WorkerUnavailable(str(error)) from error
        self._origin.family.finish(made=True)
        return branch

    def abandon(self) -> None:
        """It did not work: whoever came of it is ended."""
        self._ours.close()
        self._theirs.close()
        self._origin.family.finish(made=False)
