"""Cache of path lookups, valid until something on the way changes.

Every command is found by a search through PATH and the first bytes of a file. The result is stored with what it
depends on: the directories searched (their servers count changes of the nodes they were asked to watch), the mount
table, the root and the user. Lookups on a server that can't watch are not cached.
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

ENTRIES_MAX: Final = 1024
"""More than a session uses; a guest that invents names can't fill the memory."""


class _Entry(NamedTuple):
    value: Any
    changes: int
    tops: dict[Node, dict[Mount, Mount]]
    root: Place
    credentials: Credentials


class LookupCache:
    """Results by key, each valid for one root, user and mount table."""

    __slots__ = ("_entries", "changes")

    def __init__(self) -> None:
        self.changes = Changes()
        self._entries: dict[Hashable, _Entry] = {}

    def get(self, view: View, key: Hashable) -> Any:
        """The cached value, if it is still valid for this view; else None."""
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
        """Cache `value`, found by looking at these places; unless a server there can't watch them."""
        for mount, node in visited:
            if mount.members or mount.server.changes is not self.changes or not mount.server.watch(node):
                return
        if len(self._entries) >= ENTRIES_MAX:
            self._entries.clear()
        self._entries[key] = _Entry(value, self.changes.count, view.namespace.tops, view.root, view.credentials)

    def clear(self) -> None:
        self._entries.clear()
