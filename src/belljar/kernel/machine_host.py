"""The real clock, the real entropy, and a wait for the hub: by epoll, or by what else there is."""

import os
import select
import selectors
import sys
import time
from collections.abc import Callable
from typing import Final, Protocol

from belljar.kernel.machine import Machine, SeededEntropy, StoppedClock

LONGEST: Final = 2e6
"""Seconds of one wait: epoll takes at most 24 days. Whoever waits longer looks again."""


class HostClock:
    """The host's own time."""

    monotonic = staticmethod(time.monotonic)
    time_ns = staticmethod(time.time_ns)


class HostEntropy:
    """The host's random number generator."""

    random_bytes = staticmethod(os.urandom)


class DescriptorPoller(Protocol):
    """Waits for file descriptors of the host and calls back those who watch them."""

    def watch(self, fd: int, callback: Callable[[], None], *, writable: bool = False, edge: bool = False) -> None:
        """Call `callback` on the hub's loop whenever `fd` is ready. Replaces an earlier watch of the same fd.

        `edge`: only when it becomes ready, so that it need not be read at once.
        """

    def unwatch(self, fd: int) -> None: ...

    def wait(self, timeout: float | None) -> bool: ...

    def renew(self) -> None:
        """After fork(2): the same watches, apart from the origin's."""

    def leave(self) -> None:
        """After fork(2), in the origin: the branch has it all, and this begins anew."""

    def descriptors(self) -> set[int]:
        """The descriptors it uses itself."""


if sys.platform == "linux":

    class EpollPoller:
        """Waits for file descriptors of the host and calls back those who watch them.

        An epoll object is shared across fork(2): a branch must call `renew` before it waits, or the two would
        take each other's events.
        """

        def __init__(self) -> None:
            self._epoll = select.epoll()
            self._watched: dict[int, tuple[int, Callable[[], None]]] = {}

        def watch(self, fd: int, callback: Callable[[], None], *, writable: bool = False, edge: bool = False) -> None:
            """Call `callback` on the hub's loop whenever `fd` is ready. Replaces an earlier watch of the same fd.

            `edge`: only when it becomes ready, so that it need not be read at once.
            """
            events = select.EPOLLIN | (select.EPOLLOUT if writable else 0) | (select.EPOLLET if edge else 0)
            if fd in self._watched:
                self._epoll.modify(fd, events)
            else:
                self._epoll.register(fd, events)
            self._watched[fd] = (events, callback)

        def unwatch(self, fd: int) -> None:
            if self._watched.pop(fd, None) is not None:
                self._epoll.unregister(fd)

        def wait(self, timeout: float | None) -> bool:
            if not self._watched:
                if timeout is None:
                    return False
                if timeout > 0:
                    time.sleep(timeout)
                return True
            for fd, _events in self._epoll.poll(None if timeout is None else min(timeout, LONGEST)):
                watcher = self._watched.get(fd)
                if watcher is not None:
                    watcher[1]()
            return True

        def renew(self) -> None:
            """After fork(2): a fresh epoll object with the same watches."""
            self._epoll.close()
            self._epoll = select.epoll()
            for fd, (events, _callback) in self._watched.items():
                self._epoll.register(fd, events)

        def leave(self) -> None:
            """After fork(2), in the origin: the branch has it all, and this begins anew."""
            self._epoll.close()
            self._epoll = select.epoll()
            self._watched = {}

        def descriptors(self) -> set[int]:
            return {self._epoll.fileno()}

        def close(self) -> None:
            self._epoll.close()


class SelectorPoller:
    """The same where there is no epoll, and without edges: only a worker's connection is watched there."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()

    def watch(self, fd: int, callback: Callable[[], None], *, writable: bool = False, edge: bool = False) -> None:
        assert not edge
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if writable else 0)
        if fd in self._selector.get_map():
            self._selector.modify(fd, events, callback)
        else:
            self._selector.register(fd, events, callback)

    def unwatch(self, fd: int) -> None:
        if fd in self._selector.get_map():
            self._selector.unregister(fd)

    def wait(self, timeout: float | None) -> bool:
        if not self._selector.get_map():
            if timeout is None:
                return False
            if timeout > 0:
                time.sleep(timeout)
            return True
        for key, _events in self._selector.select(None if timeout is None else min(timeout, LONGEST)):
            key.data()
        return True

    def renew(self) -> None:
        raise OSError("a sandbox is forked on Linux only")

    leave = renew

    def descriptors(self) -> set[int]:
        return set()

    def close(self) -> None:
        self._selector.close()


def host_poller() -> DescriptorPoller:
    if sys.platform == "linux":
        return EpollPoller()
    else:  # mypy looks at one branch for each system
        return SelectorPoller()


def host_machine() -> Machine:
    """The machine we really run on."""
    return Machine(
        clock=HostClock(),
        poller=host_poller(),
        entropy=HostEntropy(),
        cores=os.cpu_count() or 1,
        memory_bytes=_memory_bytes(),
    )


def replay_machine() -> Machine:
    """A machine whose time, entropy and size are the same everywhere, though it waits for what happens on this one."""
    return Machine(clock=StoppedClock(time.monotonic), poller=host_poller(), entropy=SeededEntropy(0), replays=True)


def _memory_bytes() -> int:
    """Physical memory of the host."""
    if sys.platform == "win32":
        return 8 << 30
    return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
