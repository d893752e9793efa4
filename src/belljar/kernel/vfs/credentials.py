"""User and groups of a process, and the permissions that a file's mode bits grant them."""

from msgspec import Struct

from belljar.abi.flags import PERMISSIONS, S_IFDIR, S_IFMT, S_IFREG, S_ISGID, S_ISUID, S_ISVTX, S_IXGRP, S_IXUGO, X_OK
from belljar.abi.records import Owner
from belljar.kernel.vfs.server import Node


class Credentials(Struct, frozen=True):
    """A user, its group and its other groups. uid 0 is the sandbox's root, without any rights outside."""

    uid: int = 0
    gid: int = 0
    groups: frozenset[int] = frozenset()
    creates_as: Owner | None = None
    """Owner of new files, if not this user: the sandbox's owner creates files for the agent."""

    @property
    def owner(self) -> Owner:
        return self.creates_as if self.creates_as is not None else Owner(self.uid, self.gid)

    def may(self, node: Node, want: int) -> bool:
        """Whether all of `want` (R_OK | W_OK | X_OK) is granted by the mode bits."""
        mode = node.mode
        if self.uid == 0:
            # Root may execute a file only if somebody may.
            return not want & X_OK or bool(mode & S_IXUGO) or mode & S_IFMT == S_IFDIR
        if node.uid == self.uid:
            mode >>= 6
        elif node.gid == self.gid or node.gid in self.groups:
            mode >>= 3
        return mode & want == want

    def owns(self, node: Node) -> bool:
        return self.uid == 0 or self.uid == node.uid

    def in_group(self, gid: int) -> bool:
        return gid == self.gid or gid in self.groups

    def may_remove(self, directory: Node, node: Node) -> bool:
        """The sticky-bit rule: there, only the file's or the directory's owner may remove or rename."""
        return not directory.mode & S_ISVTX or self.uid in (0, node.uid, directory.uid)

    def mode_after_write(self, node: Node) -> int | None:
        """A write by anyone but root takes set-id bits away: the new permission bits, or None to leave them."""
        mode = node.mode
        if self.uid == 0 or not mode & (S_ISUID | S_ISGID) or mode & S_IFMT != S_IFREG:
            return None
        dropped = mode & S_ISUID
        if mode & S_ISGID and (mode & S_IXGRP or not self.in_group(node.gid)):
            dropped |= S_ISGID
        return mode & PERMISSIONS & ~dropped if dropped else None
