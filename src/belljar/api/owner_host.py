"""A sandbox belongs to the process that made it: a child that is forked of that has no part in it."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING
from weakref import WeakSet

from belljar.api.errors import SandboxClosed

if TYPE_CHECKING:
    from belljar.api.async_link_host import AsyncLink
    from belljar.api.link_host import Link


class Owned:
    """The sandboxes of this process. Two processes on one connection would take each other's answers."""

    def __init__(self) -> None:
        self._links: WeakSet[Link | AsyncLink] = WeakSet()
        self._heeded = False

    def add(self, link: Link | AsyncLink) -> None:
        self._links.add(link)
        if not self._heeded and hasattr(os, "register_at_fork"):
            self._heeded = True
            os.register_at_fork(after_in_child=self._disown)

    def _disown(self) -> None:
        for link in list(self._links):
            if link._gone is None:
                link._gone = SandboxClosed(
                    "this sandbox belongs to the process that this one was forked of, and lives on there: "
                    "make one in each process"
                )
                link._worker.release()
        self._links.clear()


owned = Owned()
