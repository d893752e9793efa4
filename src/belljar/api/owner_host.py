"""A sandbox and its interpreters belong to the process that made them: a forked child has no part in them."""

from __future__ import annotations

import os
from typing import NoReturn, Protocol
from weakref import WeakSet

from belljar.api.errors import SandboxClosed

_FORKED = "this {} belongs to the process that this one was forked from, and lives on there: make one in each process"


class Owned(Protocol):
    """Something that talks to a process of ours."""

    def disown(self, error: SandboxClosed) -> None:
        """In a forked child, on its only thread: close the descriptors, and raise `error` from every later call."""


class Owner:
    """The process that something was made in."""

    __slots__ = ("_pid", "_what")

    def __init__(self, what: str) -> None:
        self._what = what
        self._pid = os.getpid()

    def check(self) -> None:
        """SandboxClosed in any other process."""
        if os.getpid() != self._pid:
            raise forked_error(self._what)


def forked_error(what: str) -> SandboxClosed:
    return SandboxClosed(_FORKED.format(what))


class OwnedByProcess:
    """The connections of this process. Two processes on one connection would take each other's answers."""

    def __init__(self) -> None:
        self._things: WeakSet[Owned] = WeakSet()
        self._registered = False

    def add(self, thing: Owned) -> None:
        self._things.add(thing)
        if not self._registered and hasattr(os, "register_at_fork"):
            self._registered = True
            os.register_at_fork(after_in_child=self._disown)

    def _disown(self) -> None:
        things, self._things = list(self._things), WeakSet()
        for thing in things:
            thing.disown(forked_error("sandbox"))


owned = OwnedByProcess()


def refuse_copy(self: object) -> NoReturn:
    """As a class's `__reduce__`: neither `copy` nor `pickle` can make another of what stands for a live process."""
    raise TypeError(
        f"a {type(self).__name__} can't be copied or pickled: it stands for a live process of this one. "
        "fork() makes a live copy of a sandbox; make a new one in another process."
    )
