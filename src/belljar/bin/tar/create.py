"""tar -c, -r, -u: files into members."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_RDONLY, S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK
from belljar.abi.records import NANO, Stat
from belljar.bin._kit import UsageError
from belljar.bin._kit.dates import BadDate, parse_date
from belljar.bin._kit.modes import parse_mode
from belljar.bin._kit.quoting import quote
from belljar.bin.tar.listing import Listing
from belljar.bin.tar.run import Run, change_directory, operand_names
from belljar.bin.tar.stream import Sink
from belljar.libc.tar_header import BLOCK, DIRECTORY, FIFO, HARD_LINK, REGULAR, SYMLINK, Member, encode


class Creator:
    """Writes members for files to a sink."""

    def __init__(self, run: Run, sink: Sink, archive: tuple[int, int] | None) -> None:
        self.run = run
        self.sink = sink
        self._fs = run.process.fs
        settings = run.settings
        self._settings = settings
        self._archive = archive
        """Device and inode of the archive itself, which is not dumped."""
        self._links: dict[tuple[int, int], str] = {}
        self._listing = Listing(run.process, settings, to_stderr=settings.file == "-")
        # A file named twice is a link to itself, too.
        names = [operand for operand in settings.operands if operand.kind != "directory"]
        self._single = 1 if len(names) == 1 and names[0].kind == "name" and not settings.on("dereference") else 0
        self._follow = settings.on("dereference")
        self._device: int | None = None
        self._owner = self._who("owner", run.accounts.user)
        self._group = self._who("group", run.accounts.group)
        self._mtime = self._when("mtime")
        self._newer = self._when("newer") or self._when("newer-mtime") or self._when("after-date")
        self._mode = parse_mode(settings.values["mode"]) if "mode" in settings.values else None
        if "mode" in settings.values and self._mode is None:
            raise UsageError("Invalid mode given on option", hint=False)
        self.newest: dict[str, int] | None = None
        """For -u: the times of the members that are there."""

    def _who(self, option: str, number: Callable[[str], int | None]) -> tuple[str, int] | None:
        text = self._settings.values.get(option)
        if text is None:
            return None
        name, colon, digits = text.partition(":")
        if colon:
            return name, int(digits[:18]) if digits.isdecimal() else 0
        if name.isdecimal():
            return "", int(name[:18])
        return name, number(name) or 0

    def _when(self, option: str) -> int | None:
        text = self._settings.values.get(option)
        if text is None:
            return None
        if text.startswith(("/", ".")):
            try:
                return self._fs.stat(text).mtime
            except SysError as error:
                self.run.fatal(f"{text}: Cannot stat: {error.reason}")
        process = self.run.process
        try:
            return parse_date(text, process.kernel.now(), process.env)
        except BadDate:
            self.run.fatal(f"Substituting the epoch for unknown date format {quote(text, process.env)}")

    def add_all(self) -> None:
        for kind, text in operand_names(self.run):
            if kind == "directory":
                change_directory(self.run, text)
            else:
                self.add(text)

    def add(self, path: str) -> None:
        """A file, and what is below it."""
        stack = [path]
        self._device = None
        while stack:
            current = stack.pop()
            self.run.process.budget.charge(2)
            below = self._one(current, top=current is path)
            stack += reversed(below)

    def _one(self, path: str, *, top: bool) -> list[str]:
        run = self.run
        if run.excluded(path):
            return []
        try:
            stat = self._fs.stat(path, follow=self._follow)
        except SysError as error:
            run.fail(f"{self._listing.quoted(path)}: Cannot stat: {error.reason}")
            return []
        if self._archive == (stat.dev, stat.ino):
            run.warn(f"{path}: file is the archive; not dumped")
            return []
        if self._newer is not None and stat.mtime < self._newer and not stat.is_dir:
            return []
        if stat.is_dir:
            return self._directory(path, stat, top=top)
        if self.newest is not None and stat.mtime // NANO <= self.newest.get(run.changed(path), -1):
            return []
        member = self._member(path, stat)
        key = (stat.dev, stat.ino)
        if stat.nlink > self._single and not run.settings.on("hard-dereference"):
            if key in self._links:
                member.kind, member.link = HARD_LINK, self._links[key]
                self._write(member)
                self._removed(path)
                return []
            self._links[key] = member.name
        match stat.kind:
            case _ if stat.kind == S_IFREG:
                member.size = stat.size
                self._file(path, member)
            case _ if stat.kind == S_IFLNK:
                member.kind = SYMLINK
                member.link = run.changed(self._fs.readlink(path), "s")
                self._write(member)
            case _ if stat.kind == S_IFIFO:
                member.kind = FIFO
                self._write(member)
            case _ if stat.kind in (S_IFCHR, S_IFBLK):
                member.kind = b"3" if stat.kind == S_IFCHR else b"4"
                member.major, member.minor = stat.rdev >> 8, stat.rdev & 0xFF
                self._write(member)
            case _ if stat.kind == S_IFSOCK:
                run.warn(f"{path}: socket ignored")
                return []
        self._removed(path)
        return []

    def _removed(self, path: str) -> None:
        if self._settings.on("remove-files"):
            try:
                self._fs.unlink(path)
            except SysError as error:
                self.run.fail(f"{path}: Cannot unlink: {error.reason}")

    def _directory(self, path: str, stat: Stat, *, top: bool) -> list[str]:
        if self._device is None:
            self._device = stat.dev
        base = path if path.endswith("/") else path + "/"
        try:
            entries = self._fs.readdir(path)
        except SysError as error:
            self.run.fail(f"{self._listing.quoted(path)}: Cannot open: {error.reason}")
            return []
        if self.newest is None or stat.mtime // NANO > self.newest.get(self.run.changed(base), -1):
            member = self._member(base, stat)
            member.kind = DIRECTORY
            self._write(member)
        if not self._settings.recursive or (self._settings.on("one-file-system") and stat.dev != self._device):
            return []
        names = [entry.name for entry in entries]
        if self._settings.values.get("sort", "none") == "name":
            names.sort()
        return [base + name for name in names]

    def _member(self, path: str, stat: Stat) -> Member:
        run, accounts = self.run, self.run.accounts
        member = Member(run.safe(run.changed(path)), REGULAR, stat.mode & 0o7777, stat.uid, stat.gid)
        if member.name.endswith("/") != path.endswith("/") and path.endswith("/"):
            member.name += "/"
        member.mtime = stat.mtime if self._settings.format == "posix" else stat.mtime // NANO * NANO
        if not run.settings.on("numeric-owner"):
            member.user = accounts.user_name(stat.uid) or ""
            member.group = accounts.group_name(stat.gid) or ""
        if self._owner is not None:
            member.user, member.uid = self._owner
        if self._group is not None:
            member.group, member.gid = self._group
        if self._mtime is not None and not (run.settings.on("clamp-mtime") and member.mtime <= self._mtime):
            member.mtime = self._mtime
        if self._mode is not None:
            member.mode = self._mode.apply(member.mode, self._fs.umask, directory=stat.kind == S_IFDIR)
        return member

    def _write(self, member: Member) -> bool:
        try:
            header = encode(member, self._settings.format)
        except ValueError as error:
            self.run.fail(f"{member.name}: {error}")
            return False
        if self._settings.verbose == 1:
            self._listing.short(member)
        elif self._settings.verbose:
            self._listing.long(member)
        self.sink.write(header)
        return True

    def _file(self, path: str, member: Member) -> None:
        process = self.run.process
        try:
            fd = process.open(path, O_RDONLY | O_CLOEXEC)
        except SysError as error:
            self.run.fail(f"{self._listing.quoted(path)}: Cannot open: {error.reason}")
            return
        try:
            if not self._write(member):
                return
            left = member.size
            while left:
                data = process.read(fd, min(left, 1 << 18))
                if not data:
                    self.run.warn(f"{path}: File shrank by {left} bytes; padding with zeros")
                    self.run.differ()
                    data = b"\0" * min(left, 1 << 18)
                process.budget.charge(len(data) >> 12)
                self.sink.write(data)
                left -= len(data)
            if padding := -member.size % BLOCK:
                self.sink.write(b"\0" * padding)
        finally:
            process.close(fd)
