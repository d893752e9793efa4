"""Forking a live worker, from the owner's side: a connection for the branch, the permit, and the branch's handle."""

from __future__ import annotations

import socket

from belljar.forking.owner.hello_host import NoHello, accept_hello, expect_hello
from belljar.forking.owner.socket_host import HandleSocket
from belljar.owner.handle_host import CgroupUnavailable, WorkerHandle, WorkerUnavailable


class Branching:
    """One branch in the making. End it with `accept` or with `abandon`."""

    def __init__(self, origin: WorkerHandle) -> None:
        self._origin = origin
        self._ours, theirs = socket.socketpair()
        for end in (self._ours, theirs):
            end.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
        expect_hello(self._ours)
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
        """Wait for the branch's HELLO; return its handle. Raises WorkerUnavailable."""
        self._ours.settimeout(seconds)
        try:
            pid, pidfd = accept_hello(self._ours, self._origin.family)
        except (OSError, NoHello) as error:
            raise WorkerUnavailable(f"the branch did not report: {error}") from error
        self._ours.settimeout(None)
        connection = HandleSocket(fileno=self._ours.detach())
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
        """Abort the fork; kill any stray child."""
        self._ours.close()
        self._theirs.close()
        self._origin.family.finish(made=False)
