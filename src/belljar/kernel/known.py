"""What paths led to when they were last followed, for as long as nothing on the way changes.

Every command is found by a walk through PATH and the head of a file. The walk is remembered together with what it
depends on: the directories looked into (their servers count the changes of nodes they were asked to watch), the mount
table, the root and the user. What lies on a server that can't watch is looked up each time.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from belljar.kernel.vfs.server import Changes

if TYPE_CHECKING:
    from belljar.kernel.vfs.credentials import Credentials
    from belljar.kernel.vfs.namespace import Mount, Place
    from belljar.kernel.vfs.server import Node
    from belljar.kernel.vfs.view import View

MOST: Final = 1024
"""More than a session uses; a guest that makes up names can't fill the memory."""


class _Entry(NamedTuple):
    value: Any
    changes: int
    tops: dict[Node, dict[Mount, Mount]]
    root: Place
    credentials: Credentials


class Known:
    """Results by key, each as seen by one kind of viewer."""

    __slots__ = ("_entries", "changes")

    def __init__(self) -> None:
        self.changes = Changes()
        self._entries: dict[Hashable, _Entry] = {}

    def get(self, view: View, key: Hashable) -> Any:
        """The remembered value, if it still holds for this viewer; else None."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        value, changes, tops, root, credentials = entry
        if (
            changes == self.changes.count
            and tops is view.namespace.tops
            and root is view.root
            and credentials is view.credentials
        ):
            return value
        return None

    def put(self, view: View, key: Hashable, value: object, visited: Sequence[Place]) -> None:
        """Remember `value`, found by looking at these places."""
        for mount, node in visited:
            if mount.members or mount.server.changes is not self.changes or not mount.server.watch(node):
                return
        if len(self._entries) >= MOST:
            self._entries.clear()
        self._entries[key] = _Entry(value, self.changes.count, view.namespace.tops, view.root, view.credentials)

    def forget(self) -> None:
        self._entries.clear()
