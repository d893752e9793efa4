"""How tar shows members: names quoted, and the long form of -tv."""

from __future__ import annotations

from belljar.abi.flags import S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.locale import is_utf8
from belljar.bin._kit.modes import render_mode
from belljar.bin.tar.options import Settings
from belljar.kernel.process import Process
from belljar.libc.quotearg import c_escape
from belljar.libc.tar_header import BLOCK_DEVICE, CHARACTER, FIFO, HARD_LINK, SYMLINK, Member

_KINDS = {SYMLINK: S_IFLNK, CHARACTER: S_IFCHR, BLOCK_DEVICE: S_IFBLK, FIFO: S_IFIFO}


class Listing:
    """Prints members as they pass; the columns of the long form grow with what was seen so far."""

    def __init__(self, process: Process, settings: Settings, *, to_stderr: bool = False) -> None:
        self._process = process
        self._numeric = settings.on("numeric-owner")
        self._full_time = settings.on("full-time")
        self._zone = zone_of({"TZ": "UTC0"} if settings.on("utc") else process.env)
        self._utf8 = is_utf8(process.env)
        self._width = 19
        self._to_stderr = to_stderr

    def show(self, text: str) -> None:
        if self._to_stderr:
            self._process.error(text + "\n")
        else:
            self._process.print(text)

    def quoted(self, name: str) -> str:
        return c_escape(name, utf8=self._utf8)

    def short(self, member: Member) -> None:
        self.show(self.quoted(member.name))

    def long(self, member: Member) -> None:
        kind = S_IFDIR if member.is_dir else _KINDS.get(member.kind, S_IFREG)
        mode = render_mode(kind | member.mode)
        if member.kind == HARD_LINK:
            mode = "h" + mode[1:]
        user = member.user if member.user and not self._numeric else str(member.uid)
        group = member.group if member.group and not self._numeric else str(member.gid)
        device = member.kind in (CHARACTER, BLOCK_DEVICE)
        size = f"{member.major},{member.minor}" if device else str(member.full_size)
        taken = len(user) + len(group) + len(size) + 2
        self._width = max(self._width, taken)
        gap = " " * (self._width - taken + 1)
        template = "%Y-%m-%d %H:%M:%S" if self._full_time else "%Y-%m-%d %H:%M"
        when = format_time(template, member.mtime, self._zone)
        name = self.quoted(member.name)
        if member.kind == SYMLINK:
            name += " -> " + self.quoted(member.link)
        elif member.kind == HARD_LINK:
            name += " link to " + self.quoted(member.link)
        self.show(f"{mode} {user}/{group}{gap}{size} {when} {name}")
