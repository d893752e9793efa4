"""The lines of -ls."""

from __future__ import annotations

from belljar.abi.flags import S_IFBLK, S_IFCHR
from belljar.abi.records import NANO
from belljar.bin._kit.clock import format_time
from belljar.bin._kit.modes import render_mode
from belljar.bin._tree import Visit
from belljar.bin.find.search import Search
from belljar.libc.quotearg import c_escape

_HALF_YEAR = 31556952 // 2 * NANO


class Detailer:
    """Columns grow with what they have to hold, and stay so."""

    def __init__(self, search: Search) -> None:
        self._search = search
        self._widths = {"inode": 9, "blocks": 6, "links": 3, "owner": 8, "group": 8, "size": 8}

    def line(self, visit: Visit) -> str:
        stat, accounts = visit.stat, self._search.accounts
        if stat.kind in (S_IFCHR, S_IFBLK):
            size = f"{stat.rdev >> 8 & 0xFFF:>3}, {stat.rdev & 0xFF | stat.rdev >> 12 & 0xFFF00:>3}"
        else:
            size = str(stat.size)
        parts = [
            self._right("inode", str(stat.ino)),
            self._right("blocks", str(-(-stat.blocks // 2))),
            render_mode(stat.mode),
            self._right("links", str(stat.nlink)),
            self._left("owner", accounts.user_name(stat.uid) or str(stat.uid)),
            self._left("group", accounts.group_name(stat.gid) or str(stat.gid)),
            self._right("size", size),
            self._time(stat.mtime),
            c_escape(visit.path, also=' "'),
        ]
        if stat.is_symlink:
            target = visit.place.mount.server.readlink(visit.place.node)
            parts += ["->", c_escape(target, also=' "')]
        return " ".join(parts)

    def _right(self, column: str, text: str) -> str:
        self._widths[column] = max(self._widths[column], len(text))
        return text.rjust(self._widths[column])

    def _left(self, column: str, text: str) -> str:
        self._widths[column] = max(self._widths[column], len(text))
        return text.ljust(self._widths[column])

    def _time(self, ns: int) -> str:
        now = self._search.now
        recent = now - _HALF_YEAR < ns <= now + 3600 * NANO
        return format_time("%b %e %H:%M" if recent else "%b %e  %Y", ns, self._search.zone)
