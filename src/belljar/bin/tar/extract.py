"""tar -x: members into files, none of them outside the directory.

Names lose what could climb out. A symlink whose target is absolute or has `..` in it is first made as an empty file,
and becomes a link only after everything else was written, so that no later member can be written through it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EEXIST, EISDIR, ENOENT, ENOTEMPTY
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_EXCL, O_NOFOLLOW, O_TRUNC, O_WRONLY, S_IFBLK, S_IFCHR, S_IFIFO
from belljar.abi.paths import dirname
from belljar.bin._kit.quoting import quote
from belljar.bin.tar.listing import Listing
from belljar.bin.tar.names import climbs
from belljar.bin.tar.run import Run
from belljar.libc.tar_header import BLOCK_DEVICE, CHARACTER, FIFO, HARD_LINK, SYMLINK, Member
from belljar.libc.tar_stream import Reader, UnexpectedEnd


@dataclass(slots=True)
class _Delayed:
    """A link that waits behind a placeholder."""

    name: str
    member: Member
    ino: int
    ctime: int


class Extractor:
    def __init__(self, run: Run, reader: Reader) -> None:
        self.run = run
        self._reader = reader
        self._fs = run.process.fs
        self._listing = Listing(run.process, run.settings)
        settings = run.settings
        root = self._fs.credentials.uid == 0
        self._exact_modes = settings.on("preserve-permissions", "same-permissions") or (
            root and not settings.on("no-same-permissions")
        )
        self._owners = settings.on("same-owner") or (root and not settings.on("no-same-owner"))
        self._directories: list[tuple[str, Member, bool]] = []
        self._delayed: dict[str, _Delayed] = {}
        self._to_stdout = settings.on("to-stdout")
        self._keep = settings.on("keep-old-files")
        self._skip = settings.on("skip-old-files")
        self._overwrite = settings.on("overwrite")

    def extract(self, member: Member) -> None:
        run = self.run
        name = run.extracted_name(member)
        if name is None:
            return
        if ".." in member.name.split("/") and not run.settings.on("absolute-names"):
            run.fail(f"{self._listing.quoted(member.name)}: Member name contains '..'")
            return
        if self._to_stdout:
            if member.is_regular:
                for piece in self._data(member):
                    run.process.stdout.write(piece)
            return
        verbose = run.settings.verbose
        if verbose == 1:
            self._listing.show(self._listing.quoted(name if run.settings.on("show-transformed-names") else member.name))
        elif verbose:
            self._listing.long(member)
        try:
            self._make(name, member)
        except UnexpectedEnd:
            run.warn("Unexpected EOF in archive")
            raise
        except SysError as error:
            run.fail(f"{self._listing.quoted(name)}: {self._what(member)}: {error.reason}")

    def _what(self, member: Member) -> str:
        if member.is_dir:
            return "Cannot mkdir"
        if member.kind == SYMLINK:
            return f"Cannot create symlink to {quote(member.link, self.run.process.env)}"
        if member.kind == HARD_LINK:
            return f"Cannot hard link to {quote(self.run.links_name(member), self.run.process.env)}"
        if member.kind in (CHARACTER, BLOCK_DEVICE):
            return "Cannot mknod"
        if member.kind == FIFO:
            return "Cannot mkfifo"
        return "Cannot open"

    def _make(self, name: str, member: Member) -> None:
        if member.is_dir:
            self._directory(name, member)
            return
        if self.run.settings.on("keep-newer-files") and self._is_newer(name, member):
            return
        if member.kind == HARD_LINK:
            self._hard_link(name, member)
        elif member.kind == SYMLINK:
            self._symlink(name, member)
        elif member.kind in (CHARACTER, BLOCK_DEVICE, FIFO):
            kind = {CHARACTER: S_IFCHR, BLOCK_DEVICE: S_IFBLK, FIFO: S_IFIFO}[member.kind]
            self._retry(name, lambda: self._fs.mknod(name, kind | member.mode & 0o777))
            self._attributes(name, member)
        else:
            self._file(name, member)

    def _is_newer(self, name: str, member: Member) -> bool:
        if (stat := self._fs.try_stat(name, follow=False)) is None:
            return False
        if stat.mtime < member.mtime:
            return False
        self.run.warn(f"Current {quote(name, self.run.process.env)} is newer or same age")
        return True

    def _retry(self, name: str, make: object) -> bool:
        """Make an entry; what is in its way goes first, and the directories above are made. False if kept."""
        assert callable(make)
        if self.run.settings.on("unlink-first"):
            with suppress(SysError):
                self._fs.unlink(name)
        for attempt in range(3):
            try:
                make()
                return True
            except SysError as error:
                if error.errno == EEXIST and attempt < 2:
                    if self._skip:
                        return False
                    if self._keep:
                        raise
                    self._clear(name)
                elif error.errno == ENOENT and attempt < 2:
                    self._make_parents(name)
                else:
                    raise
        return True

    def _clear(self, name: str) -> None:
        self._delayed.pop(name, None)
        try:
            self._fs.unlink(name)
        except SysError as error:
            if error.errno != EISDIR:
                raise
            if self.run.settings.on("recursive-unlink"):
                remove_tree(self.run, name)
                return
            try:
                self._fs.rmdir(name)
            except SysError as failed:
                raise SysError(EEXIST if failed.errno == ENOTEMPTY else failed.errno) from None

    def _make_parents(self, name: str) -> None:
        above = dirname(name.rstrip("/"))
        missing: list[str] = []
        while above not in (".", "/", ""):
            try:
                self._fs.stat(above)
                break
            except SysError as error:
                if error.errno != ENOENT:
                    raise
            missing.append(above)
            above = dirname(above)
        for path in reversed(missing):
            self._fs.mkdir(path, 0o777)

    def _directory(self, name: str, member: Member) -> None:
        path = name.rstrip("/") or "."
        made = True
        try:
            self._fs.mkdir(path, 0o700 | member.mode & 0o777)
        except SysError as error:
            if error.errno == ENOENT:
                self._make_parents(path)
                self._fs.mkdir(path, 0o700 | member.mode & 0o777)
            elif error.errno != EEXIST:
                raise
            else:
                made = False
                stat = self._fs.stat(path, follow=path == "." or self.run.settings.on("keep-directory-symlink"))
                if not stat.is_dir:
                    if self._keep or self._skip:
                        raise
                    self._clear(path)
                    self._fs.mkdir(path, 0o700 | member.mode & 0o777)
                    made = True
                elif self.run.settings.on("no-overwrite-dir"):
                    return
        self._directories.append((path, member, made))

    def _file(self, name: str, member: Member) -> None:
        process = self.run.process
        fds: list[int] = []
        flags = O_WRONLY | O_CREAT | O_CLOEXEC | (O_TRUNC | O_NOFOLLOW if self._overwrite else O_EXCL)
        if not self._retry(name, lambda: fds.append(process.open(name, flags, 0o600))):
            return
        fd = fds[0]
        try:
            if member.sparse is None:
                for piece in self._reader.data():
                    process.write_all(fd, piece)
            else:
                self._sparse(fd, member)
        finally:
            process.close(fd)
        self._attributes(name, member)

    def _sparse(self, fd: int, member: Member) -> None:
        process = self.run.process
        assert member.sparse is not None
        data = _Bytes(self._reader.data())
        for offset, size in member.sparse:
            process.budget.charge()
            process.seek(fd, offset)
            for piece in data.take(size):
                process.write_all(fd, piece)
        process.fds[fd].truncate(member.real_size)

    def _data(self, member: Member) -> Iterator[bytes]:
        """A member's contents, holes as zeros."""
        if member.sparse is None:
            yield from self._reader.data()
            return
        data = _Bytes(self._reader.data())
        position = 0
        for offset, size in [*member.sparse, (member.real_size, 0)]:
            while position < offset:
                hole = min(offset - position, 1 << 18)
                self.run.process.budget.charge(1 + (hole >> 10))
                yield b"\0" * hole
                position += hole
            yield from data.take(size)
            position += size

    def _attributes(self, name: str, member: Member) -> None:
        fs = self._fs
        if self._owners:
            self._chown(name, member)
        mode = member.mode if self._exact_modes else member.mode & 0o777 & ~fs.umask
        fs.chmod(name, mode)
        if not self.run.settings.on("touch"):
            fs.utimens(name, self.run.process.kernel.now(), member.mtime)

    def _chown(self, name: str, member: Member, *, follow: bool = True) -> None:
        accounts, numeric = self.run.accounts, self.run.settings.on("numeric-owner")
        uid = accounts.user(member.user) if member.user and not numeric else None
        gid = accounts.group(member.group) if member.group and not numeric else None
        try:
            self._fs.chown(
                name, uid if uid is not None else member.uid, gid if gid is not None else member.gid, follow=follow
            )
        except SysError as error:
            owner = f"uid {member.uid}, gid {member.gid}"
            self.run.fail(f"{name}: Cannot change ownership to {owner}: {error.reason}")

    def _hard_link(self, name: str, member: Member) -> None:
        target = self.run.links_name(member)
        waiting = self._delayed.get(target)
        if waiting is not None:
            # A second name of a link that is not there yet: it waits too.
            self._placeholder(name, waiting.member)
            return
        if name == target:
            return
        with suppress(SysError):
            here, there = self._fs.stat(name, follow=False), self._fs.stat(target, follow=False)
            if (here.dev, here.ino) == (there.dev, there.ino):
                return
        self._retry(name, lambda: self._fs.link(target, name))

    def _symlink(self, name: str, member: Member) -> None:
        member.link = self.run.changed(member.link, "s")
        if climbs(member.link) and not self.run.settings.on("absolute-names"):
            self._placeholder(name, member)
            return
        if self._retry(name, lambda: self._fs.symlink(member.link, name)):
            self._link_attributes(name, member)

    def _link_attributes(self, name: str, member: Member) -> None:
        if self._owners:
            self._chown(name, member, follow=False)
        if not self.run.settings.on("touch"):
            with suppress(SysError):
                self._fs.utimens(name, self.run.process.kernel.now(), member.mtime, follow=False)

    def _placeholder(self, name: str, member: Member) -> None:
        process = self.run.process
        if not self._retry(name, lambda: process.close(process.open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0))):
            return
        stat = self._fs.stat(name, follow=False)
        self._delayed[name] = _Delayed(name, member, stat.ino, stat.ctime)

    def finish(self) -> None:
        """Do delayed work: links that lead out, then directories' modes and times, inner ones first."""
        for delayed in self._delayed.values():
            self.run.process.budget.charge()
            try:
                stat = self._fs.stat(delayed.name, follow=False)
                if (stat.ino, stat.size) != (delayed.ino, 0) or not stat.is_regular:
                    continue
                self._fs.unlink(delayed.name)
                self._fs.symlink(delayed.member.link, delayed.name)
                self._link_attributes(delayed.name, delayed.member)
            except SysError as error:
                self.run.fail(f"{delayed.name}: {self._what(delayed.member)}: {error.reason}")
        self._delayed.clear()
        for path, member, made in reversed(self._directories):
            try:
                stat = self._fs.stat(path, follow=False)
                if not stat.is_dir:
                    continue
                if self._owners:
                    self._chown(path, member)
                # A directory that was there keeps its mode unless modes are to be kept exactly.
                if made or self._exact_modes or self.run.settings.on("overwrite", "overwrite-dir"):
                    self._fs.chmod(path, member.mode if self._exact_modes else member.mode & 0o777 & ~self._fs.umask)
                if not self.run.settings.on("touch"):
                    self._fs.utimens(path, self.run.process.kernel.now(), member.mtime)
            except SysError as error:
                self.run.fail(f"{path}: Cannot utime: {error.reason}")


class _Bytes:
    """Pieces taken in the amounts that a map says."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._rest = b""

    def take(self, size: int) -> Iterator[bytes]:
        while size:
            if not self._rest:
                self._rest = next(self._pieces, b"")
                if not self._rest:
                    return
            piece = self._rest[:size]
            self._rest = self._rest[size:]
            size -= len(piece)
            yield piece


def remove_tree(run: Run, path: str) -> None:
    fs = run.process.fs
    stack = [(path, False)]
    while stack:
        current, emptied = stack.pop()
        run.process.budget.charge()
        if emptied:
            fs.rmdir(current)
        elif fs.stat(current, follow=False).is_dir:
            stack.append((current, True))
            stack += [(f"{current}/{entry.name}", False) for entry in fs.readdir(current)]
        else:
            fs.unlink(current)
