"""Advisory whole-file locks (flock): held by an open file description, gone when it is."""

from __future__ import annotations

from weakref import WeakKeyDictionary

from belljar.kernel.fiber import WaitQueue
from belljar.kernel.process import Process
from belljar.kernel.vfs.openfile import OpenFile
from belljar.kernel.vfs.server import Node


class _Lock:
    __slots__ = ("exclusive", "holders", "waiters")

    def __init__(self, waiters: WaitQueue) -> None:
        self.holders: list[OpenFile] = []
        self.exclusive = False
        self.waiters = waiters

    def free_for(self, file: OpenFile, *, exclusive: bool) -> bool:
        others = [holder for holder in self.holders if holder is not file]
        return not others or not (exclusive or self.exclusive)


_locks: WeakKeyDictionary[Node, _Lock] = WeakKeyDictionary()


def lock_file(process: Process, file: OpenFile, *, exclusive: bool, timeout: float | None) -> bool:
    """Wait for the lock (None: as long as it takes); whether it was had. EINTR."""
    node, hub = file.place.node, process.kernel.hub
    lock = _locks.get(node)
    if lock is None:
        lock = _locks[node] = _Lock(WaitQueue(hub))
    fiber = hub.current
    assert fiber is not None
    process.interrupted = False
    until = None if timeout is None else hub.clock.monotonic() + timeout
    timer = None if until is None else hub.call_at(until, lambda: hub.unpark(fiber))
    try:
        while not lock.free_for(file, exclusive=exclusive):
            if until is not None and hub.clock.monotonic() >= until:
                return False
            lock.waiters.wait()
            process.check_interrupted()
    finally:
        if timer is not None:
            timer.cancel()
    if file not in lock.holders:
        lock.holders.append(file)
        before = file.on_release

        def release() -> None:
            unlock_file(file)
            if before is not None:
                before()

        file.on_release = release
    lock.exclusive = exclusive
    return True


def unlock_file(file: OpenFile) -> None:
    lock = _locks.get(file.place.node)
    if lock is not None and file in lock.holders:
        lock.holders.remove(file)
        lock.waiters.wake_all()
