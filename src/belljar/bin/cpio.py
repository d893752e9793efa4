"""cpio - copy files to and from archives

Usage: cpio -o [-0vL] [-H newc|odc] [-F ARCHIVE] < NAMES > ARCHIVE
  or:  cpio -i [-dmuvt] [-F ARCHIVE] [PATTERN]... < ARCHIVE
  or:  cpio -p [-0dmuv] DIRECTORY < NAMES

Extraction stays in the directory: absolute names and `..` lose what would lead out.
"""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_EXCL, O_WRONLY, S_IFDIR, S_IFIFO, S_IFLNK, S_IFMT, S_IFREG
from belljar.abi.records import NANO, Stat
from belljar.bin._kit import UsageError, choice, flag, utility, value
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.modes import render_mode
from belljar.bin._kit.users import Accounts
from belljar.bin.tar.names import safe_prefix
from belljar.kernel.process import Process
from belljar.libc.pattern import compile_pattern
from belljar.libc.tar_stream import Source, UnexpectedEnd

_NEWC = ("ino", "mode", "uid", "gid", "nlink", "mtime", "size", "dmaj", "dmin", "rmaj", "rmin", "namesize", "check")


@dataclass(frozen=True, slots=True)
class Options:
    mode: str | None = choice(
        {"-o": "out", "--create": "out", "-i": "in", "--extract": "in", "-p": "pass", "--pass-through": "pass"},
        "-o create, -i extract, -p copy",
    )
    list: bool = flag("-t", "--list", "print a table of contents")
    directories: bool = flag("-d", "--make-directories", "create leading directories where needed")
    times: bool = flag("-m", "--preserve-modification-time", "retain previous modification times")
    unconditional: bool = flag("-u", "--unconditional", "replace all files unconditionally")
    verbose: bool = flag("-v", "--verbose", "list the files processed")
    null: bool = flag("-0", "--null", "names are ended by NUL")
    follow: bool = flag("-L", "--dereference", "follow symbolic links")
    quiet: bool = flag("--quiet", "do not print the number of blocks copied")
    form: str = value("-H", "--format", "newc or odc", metavar="FORMAT", default="bin")
    portable: bool = flag("-c", "use the old portable format")
    file: str = value("-F", "--file", "use this archive", metavar="ARCHIVE", default="-")
    absolute: bool = flag("--absolute-filenames", "do not strip leading / from names")
    relative: bool = flag("--no-absolute-filenames", "(always)")
    block: bool = flag("-B", "(accepted)")
    link: bool = flag("-l", "--link", "link files instead of copying (-p)")


@dataclass(slots=True)
class _Entry:
    name: str
    mode: int
    uid: int
    gid: int
    nlink: int
    mtime: int
    size: int
    ino: int = 0


@utility("cpio", Options, usage_status=2)
def main(process: Process, options: Options, operands: list[str]) -> int:
    mode = options.mode or ("in" if options.list else None)
    if mode is None:
        process.warn("You must specify one of -oipt options.")
        process.error("Try 'cpio --help' or 'cpio --usage' for more information.\n")
        return 2
    run = Cpio(process, options)
    if mode == "out":
        run.create()
    elif mode == "in":
        run.extract(operands)
    else:
        if len(operands) != 1:
            raise UsageError("must specify a destination directory" if not operands else "Too many arguments")
        run.copy(operands[0])
    process.stdout.flush()
    if not options.quiet and not run.fatal:
        blocks = -(-run.total // 512)
        process.error(f"{blocks} block{'s' if blocks != 1 else ''}\n")
    return run.status


class Cpio:
    def __init__(self, process: Process, options: Options) -> None:
        self._process = process
        self._options = options
        self.total = 0
        self.status = 0
        self.fatal = False
        self._form = "odc" if options.portable else options.form
        if self._form not in ("newc", "odc", "bin", "crc"):
            raise UsageError(f"invalid archive format '{self._form}'; valid formats are: newc odc")

    def _fail(self, text: str) -> None:
        self._process.stdout.flush()
        self._process.warn(text)
        self.status = 2

    def _names(self) -> Iterator[str]:
        text = self._process.read_file("-").decode("utf-8", "surrogateescape")
        return iter([name for name in text.split("\0" if self._options.null else "\n") if name])

    # Writing.

    def create(self) -> None:
        process = self._process
        fd = 1
        if self._options.file != "-":
            fd = process.open(self._options.file, O_WRONLY | O_CREAT | 0o1000)
        number = 0
        for name in self._names():
            process.budget.charge(2)
            try:
                stat = process.fs.stat(name, follow=self._options.follow)
            except SysError as error:
                self._fail(f"{name}: Cannot stat: {error.reason}")
                continue
            number += 1
            if self._options.verbose:
                process.error(name + "\n")
            link = process.fs.readlink(name).encode("utf-8", "surrogateescape") if stat.is_symlink else b""
            size = len(link) if link else stat.size if stat.is_regular else 0
            self._write(fd, self._header(name, stat, size, number))
            if link:
                self._write(fd, self._padded(link))
            elif stat.is_regular and size:
                for chunk in process.chunks(name):
                    self._write(fd, chunk)
                self._write(fd, b"\0" * (-size % self._unit))
        end = Stat(0, 0, 0, 1, 0, 0, 0, 0, 0, 0)
        self._write(fd, self._header("TRAILER!!!", end, 0, 0))
        self._write(fd, b"\0" * (-self.total % 512))

    @property
    def _unit(self) -> int:
        return 4 if self._form in ("newc", "crc") else 1

    def _padded(self, data: bytes) -> bytes:
        return data + b"\0" * (-len(data) % self._unit)

    def _write(self, fd: int, data: bytes) -> None:
        self.total += len(data)
        self._process.budget.charge(len(data) >> 12)
        if fd == 1:
            self._process.stdout.write(data)
        else:
            self._process.write_all(fd, data)

    def _header(self, name: str, stat: Stat, size: int, number: int) -> bytes:
        raw = name.encode("utf-8", "surrogateescape") + b"\0"
        seconds = stat.mtime // NANO
        if self._form in ("newc", "crc"):
            fields = (number, stat.mode, stat.uid, stat.gid, stat.nlink, seconds, size, 0, 0, 0, 0, len(raw), 0)
            head = b"070701" + b"".join(b"%08X" % (field & 0xFFFFFFFF) for field in fields)
            return self._padded(head + raw)
        octal = b"070707%06o%06o%06o%06o%06o%06o%06o%011o%06o%011o"
        return octal % (
            0, number & 0o777777, stat.mode, stat.uid & 0o777777, stat.gid & 0o777777, stat.nlink & 0o777777, 0,
            seconds & 0o77777777777, len(raw), size,
        ) + raw  # fmt: skip

    # Reading.

    def _entries(self, source: Source) -> Iterator[_Entry]:
        while True:
            magic = source.read(6)
            if magic in (b"070701", b"070702"):
                data = source.read(104)
                try:
                    fields = dict(zip(_NEWC, (int(data[i : i + 8], 16) for i in range(0, 104, 8)), strict=True))
                except ValueError:
                    self._fail("premature end of archive")
                    self.fatal = True
                    return
                length, unit, head = fields["namesize"], 4, 110
            elif magic == b"070707":
                data = source.read(70)
                try:
                    numbers = [
                        int(data[a:b], 8)
                        for a, b in ((6, 12), (12, 18), (18, 24), (24, 30), (30, 36), (42, 53), (53, 59), (59, 70))
                    ]
                except ValueError:
                    self._fail("premature end of archive")
                    self.fatal = True
                    return
                names = ("ino", "mode", "uid", "gid", "nlink", "mtime", "namesize", "size")
                fields = dict(zip(names, numbers, strict=True))
                length, unit, head = fields["namesize"], 1, 76
            else:
                self._fail("premature end of archive")
                self.fatal = True
                return
            if length > 8192:
                self._fail("premature end of archive")
                self.fatal = True
                return
            raw = source.read(length + -(head + length) % unit)
            name = raw[:length].split(b"\0")[0].decode("utf-8", "surrogateescape")
            if name == "TRAILER!!!":
                return
            entry = _Entry(
                name,
                fields["mode"],
                fields["uid"],
                fields["gid"],
                fields["nlink"],
                fields["mtime"],
                fields["size"],
                fields["ino"],
            )
            self._left = entry.size
            yield entry
            for _ in source.pieces(self._left):
                self._process.budget.charge()
            self._left = 0
            source.read(-entry.size % unit)

    _left = 0

    def _data(self, source: Source) -> Iterator[bytes]:
        for piece in source.pieces(self._left):
            self._left -= len(piece)
            self._process.budget.charge(1 + (len(piece) >> 12))
            yield piece

    def extract(self, patterns: list[str]) -> None:
        process = self._process
        source = Source(process.chunks(self._options.file))
        compiled = [compile_pattern(text) for text in patterns]
        self._accounts = Accounts(process)
        links: list[tuple[str, str]] = []
        try:
            for entry in self._entries(source):
                process.budget.charge(2)
                if compiled and not any(pattern.matches(entry.name) for pattern in compiled):
                    continue
                if self._options.list:
                    process.print(self._long(entry) if self._options.verbose else entry.name)
                    continue
                self._make(entry, source, links)
        except UnexpectedEnd:
            self._fail("premature end of archive")
            self.fatal = True
        for name, target in links:
            try:
                process.fs.symlink(target, name)
            except SysError as error:
                self._fail(f"{name}: Cannot symlink to `{target}': {error.reason}")
        self.total = -(-source.position // 512) * 512

    def _long(self, entry: _Entry) -> str:
        user = self._accounts.user_name(entry.uid) or str(entry.uid)
        group = self._accounts.group_name(entry.gid) or str(entry.gid)
        when = format_time("%b %e %H:%M", entry.mtime * NANO, zone_of(self._process.env))
        old = abs(self._process.kernel.now() // NANO - entry.mtime) > 15778476
        when = format_time("%b %e  %Y", entry.mtime * NANO, zone_of(self._process.env)) if old else when
        return f"{render_mode(entry.mode)} {entry.nlink:3d} {user:<8} {group:<8} {entry.size:8d} {when} {entry.name}"

    def _make(self, entry: _Entry, source: Source, links: list[tuple[str, str]]) -> None:
        process, fs = self._process, self._process.fs
        prefix = "" if self._options.absolute else safe_prefix(entry.name)
        if prefix:
            process.warn(f"Removing leading `{prefix}' from member names")
        name = entry.name[len(prefix) :] or "."
        kind = entry.mode & S_IFMT
        old = fs.try_stat(name, follow=False)
        if old is not None and not old.is_dir and not self._options.unconditional and old.mtime // NANO >= entry.mtime:
            process.warn(f"{name} not created: newer or same age version exists")
            if self._options.verbose:
                process.error(name + "\n")
            return
        try:
            if self._options.directories and "/" in name.rstrip("/"):
                fs.makedirs(name.rstrip("/").rpartition("/")[0])
            if kind == S_IFDIR:
                if old is None:
                    fs.mkdir(name)
                fs.chmod(name, entry.mode & 0o777)
            elif kind == S_IFLNK:
                if old is not None:
                    fs.unlink(name)
                # Links are made last: nothing can be written through one that the archive brought.
                links.append((name, b"".join(self._data(source)).decode("utf-8", "surrogateescape")))
            elif kind == S_IFIFO:
                fs.mknod(name, entry.mode)
            elif kind == S_IFREG:
                if old is not None:
                    fs.unlink(name)
                fd = process.open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
                try:
                    for piece in self._data(source):
                        process.write_all(fd, piece)
                finally:
                    process.close(fd)
                fs.chmod(name, entry.mode & 0o777)
                if self._options.times:
                    fs.utimens(name, entry.mtime * NANO, entry.mtime * NANO)
            else:
                fs.mknod(name, entry.mode)
        except SysError as error:
            self._fail(f"{name}: Cannot open: {error.reason}")
            return
        if self._options.verbose:
            process.error(name + "\n")

    # -p

    def copy(self, directory: str) -> None:
        process, fs = self._process, self._process.fs
        for name in self._names():
            target = f"{directory.rstrip('/')}/{name.lstrip('/')}"
            try:
                stat = fs.stat(name, follow=self._options.follow)
            except SysError as error:
                self._fail(f"{name}: Cannot stat: {error.reason}")
                continue
            try:
                old = fs.stat(target, follow=False)
                if not old.is_dir and not self._options.unconditional and old.mtime >= stat.mtime:
                    process.warn(f"{target} not created: newer or same age version exists")
                    continue
                if not old.is_dir:
                    fs.unlink(target)
            except SysError:
                old = None
            try:
                if self._options.directories:
                    fs.makedirs(target.rpartition("/")[0])
                self._copy_one(name, target, stat, exists=old is not None)
            except SysError as error:
                self._fail(f"{target}: Cannot open: {error.reason}")
                continue
            if self._options.verbose:
                process.error(target + "\n")

    def _copy_one(self, name: str, target: str, stat: Stat, *, exists: bool) -> None:
        process, fs = self._process, self._process.fs
        if stat.is_dir:
            if not exists:
                fs.mkdir(target)
            fs.chmod(target, stat.mode & 0o777)
        elif stat.is_symlink:
            fs.symlink(fs.readlink(name), target)
        elif self._options.link:
            fs.link(name, target)
        else:
            fd = process.open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
            try:
                for chunk in process.chunks(name):
                    self.total += len(chunk)
                    process.write_all(fd, chunk)
            finally:
                process.close(fd)
            fs.chmod(target, stat.mode & 0o777)
            if self._options.times:
                fs.utimens(target, stat.atime, stat.mtime)
