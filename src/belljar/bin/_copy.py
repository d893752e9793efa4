"""Copying files and whole trees, as cp does; mv, install and rsync share it."""

from __future__ import annotations

from typing import Literal

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EEXIST, EISDIR, ELOOP, ENOENT, ENOTDIR, ENXIO, EPERM
from belljar.abi.errors import SysError
from belljar.abi.flags import (
    O_CLOEXEC,
    O_CREAT,
    O_EXCL,
    O_NOFOLLOW,
    O_RDONLY,
    O_TRUNC,
    O_WRONLY,
    PERMISSIONS,
    S_IFIFO,
    S_IFLNK,
    S_IFSOCK,
    SEEK_DATA,
    SEEK_HOLE,
    SEEK_SET,
    W_OK,
)
from belljar.abi.records import Stat
from belljar.bin._backup import Backup
from belljar.bin._kit.asking import ask
from belljar.bin._kit.modes import render_mode
from belljar.bin._kit.quoting import quote_if_odd, quote_name
from belljar.kernel.process import CHUNK, Process

Follow = Literal["never", "operands", "always"]
Sparse = Literal["auto", "always", "never"]


@dataclass(frozen=True, slots=True)
class Rules:
    """How to copy."""

    backup: Backup
    recursive: bool = False
    follow: Follow = "always"
    preserve: frozenset[str] = frozenset()
    """A subset of mode, ownership, timestamps, links."""
    default_modes: bool = False
    """New files get the mode of any new file, not that of their source."""
    force: bool = False
    existing: Literal["overwrite", "ask", "keep", "fail"] = "overwrite"
    update: bool = False
    link: Literal["", "hard", "symbolic"] = ""
    remove_destination: bool = False
    verbose: bool = False
    one_file_system: bool = False
    attributes_only: bool = False
    copy_contents: bool = False
    sparse: Sparse = "auto"
    verb: str = ""
    """First word of -v's message: none for cp, "copied" for mv."""


class Copier:
    """Copies what it is given and says what it could not."""

    def __init__(self, process: Process, rules: Rules) -> None:
        self._process = process
        self._fs = process.fs
        self._rules = rules
        self._links: dict[tuple[int, int], str] = {}
        """Copies of files with several links, so that these become links too."""
        self._made: set[tuple[int, int]] = set()
        """Directories made by this copy: never copied again, though they may lie inside the source."""
        self._written: set[str] = set()
        self._operand = ("", "")

    def copy(self, source: str, target: str) -> bool:
        """Copy one operand to a path. Whether all of it went well."""
        self._operand = (source, target)
        return self._copy(source, target, operand=True, device=None, parents=())

    def _copy(
        self, source: str, target: str, *, operand: bool, device: int | None, parents: tuple[tuple[int, int], ...]
    ) -> bool:
        rules, fs = self._rules, self._fs
        self._process.budget.charge()
        follow = rules.follow == "always" or (operand and rules.follow == "operands")
        try:
            stat = fs.stat(source, follow=follow)
        except SysError as error:
            return self._fail(f"cannot stat {quote_name(source)}: {error.reason}")
        if stat.is_dir and not rules.recursive:
            return self._fail(f"-r not specified; omitting directory {quote_name(source)}")
        try:
            old = self._look(target, stat)
        except SysError as error:
            return self._fail(f"cannot stat {quote_name(target)}: {error.reason}")
        saved = ""
        if old is not None:
            verdict = self._check_existing(source, target, stat, old, follow=follow, operand=operand)
            if isinstance(verdict, bool):
                return verdict
            if verdict:
                old, saved = None, "" if verdict == "removed" else verdict
        if stat.is_dir:
            return self._directory(source, target, stat, old, saved, operand, device, parents)
        if rules.verbose:
            self._say(source, target, saved)
        if operand:
            self._written.add(target)
        return self._file(source, target, stat, old)

    def _look(self, target: str, stat: Stat) -> Stat | None:
        """Stat the destination: through a symlink if the copy would be written through it."""
        try:
            return self._fs.stat(target, follow=not self._replaces_links(stat))
        except SysError as error:
            if error.errno == ENOENT or (error.errno == ELOOP and self._rules.force):
                return None
            raise

    def _replaces_links(self, stat: Stat) -> bool:
        """Whether a symlink at the destination is itself replaced."""
        rules = self._rules
        return (
            (stat.is_symlink or rules.remove_destination or bool(rules.link) or rules.backup.enabled)
            and not stat.is_dir
        ) or bool(rules.verb)

    # What is at the destination already.

    def _check_existing(
        self, source: str, target: str, stat: Stat, old: Stat, *, follow: bool, operand: bool
    ) -> bool | str:
        """Return the result if the copy ends here, else how the old file went: "removed", its backup's name, or ""."""
        rules = self._rules
        if (stat.dev, stat.ino) == (old.dev, old.ino) or self._same_link(source, stat, target):
            if rules.link == "hard":
                return True
            if not self._may_be_same(source, target, old):
                return self._fail(f"{quote_name(source)} and {quote_name(target)} are the same file")
        if rules.update and not stat.is_dir and old.mtime >= stat.mtime:
            return True
        if rules.existing == "fail":
            return self._fail(f"not replacing {quote_name(target)}")
        if not stat.is_dir:
            if rules.existing == "keep":
                return True
            if rules.existing == "ask" and not ask(self._process, self.question(target, old)):
                return True
            if old.is_dir:
                return self._fail(f"cannot overwrite directory {quote_name(target)} with non-directory")
            if operand and target in self._written and not rules.backup.enabled:
                what = f"will not overwrite just-created {quote_name(target)} with {quote_name(source)}"
                return self._fail(what)
        elif not old.is_dir:
            if rules.existing == "keep":
                return True
            shown = f"{quote_name(target)} with directory {quote_name(source)}"
            return self._fail(f"cannot overwrite non-directory {shown}")
        return "" if stat.is_dir else self._put_away(source, target, stat, old)

    def _put_away(self, source: str, target: str, stat: Stat, old: Stat) -> bool | str:
        rules = self._rules
        try:
            if rules.backup.enabled:
                if rules.backup.name(self._process, target) == source:
                    shown = f"{quote_name(target)} might destroy source;  {quote_name(source)}"
                    return self._fail(f"backing up {shown} not copied")
                return rules.backup.save(self._process, target)
            several = "links" in rules.preserve and old.nlink > 1
            odd = rules.follow == "never" and not stat.is_regular
            if rules.remove_destination or ((several or odd) and not rules.link) or (rules.link and rules.force):
                self._unlink(target)
                return "removed"
        except SysError as error:
            return self._fail(f"cannot remove {quote_name(target)}: {error.reason}")
        return ""

    def _unlink(self, target: str) -> None:
        self._fs.unlink(target)
        if self._rules.verbose:
            self._process.print(f"removed {quote_name(target)}")

    def question(self, target: str, old: Stat) -> str:
        """Return the prompt before a file is overwritten."""
        try:
            self._fs.access(target, W_OK)
        except SysError:
            mode = f"{old.mode & PERMISSIONS:04o} ({render_mode(old.mode)[1:]})"
            if self._rules.force or self._rules.remove_destination or self._rules.verb:
                return f"replace {quote_name(target)}, overriding mode {mode}"
            return f"unwritable {quote_name(target)} (mode {mode}); try anyway"
        return f"overwrite {quote_name(target)}"

    def _same_link(self, source: str, stat: Stat, target: str) -> bool:
        """Whether the destination is a symlink to the source, so that writing through it would empty the source."""
        if stat.is_symlink or self._rules.remove_destination or self._rules.backup.enabled or self._rules.link:
            return False
        if (there := self._fs.try_stat(target)) is None:
            return False
        return (there.dev, there.ino) == (stat.dev, stat.ino)

    def _may_be_same(self, source: str, target: str, old: Stat) -> bool:
        """One file by two names can be copied onto itself if the old name goes first."""
        rules = self._rules
        if not (rules.remove_destination or rules.backup.enabled or (rules.force and old.nlink > 1)):
            return False
        return not self._same_name(source, target)

    def _same_name(self, a: str, b: str) -> bool:
        try:
            return self._process.absolute(a) == self._process.absolute(b)
        except SysError:
            return a == b

    # Directories.

    def _directory(
        self,
        source: str,
        target: str,
        stat: Stat,
        old: Stat | None,
        saved: str,
        operand: bool,
        device: int | None,
        parents: tuple[tuple[int, int], ...],
    ) -> bool:
        rules, fs = self._rules, self._fs
        identity = (stat.dev, stat.ino)
        if identity in parents:
            return self._fail(f"cannot copy cyclic symbolic link {quote_name(source)}")
        if identity in self._made:
            shown = ", into itself, ".join(map(quote_name, self._operand))
            return self._fail(f"cannot copy a directory, {shown}")
        if device is not None and rules.one_file_system and stat.dev != device:
            return True
        mode = stat.mode & PERMISSIONS if not rules.default_modes else 0o777
        fixed = False
        if old is None:
            try:
                fs.mkdir(target, mode & 0o777 | 0o700)
                made = fs.stat(target)
            except SysError as error:
                return self._fail(f"cannot create directory {quote_name(target)}: {error.reason}")
            self._made.add((made.dev, made.ino))
            fixed = made.mode & 0o777 != mode & ~fs.umask & 0o777
            if rules.verbose:
                self._say(source, target, saved, what="created directory" if rules.verb else "")
        status = True
        try:
            entries = fs.readdir(source)
        except SysError as error:
            status = self._fail(f"cannot access {quote_name(source)}: {error.reason}")
            entries = []
        inner = (*parents, identity)
        base = source if source.endswith("/") else source + "/"
        into = target if target.endswith("/") else target + "/"
        for entry in entries:
            copied = self._copy(
                base + entry.name, into + entry.name, operand=False, device=device or stat.dev, parents=inner
            )
            status = copied and status
        status = self._attributes(target, stat, new=old is None) and status
        if fixed and "mode" not in rules.preserve:
            fs.chmod(target, mode & ~fs.umask & 0o777)
        return status

    # Files.

    def _file(self, source: str, target: str, stat: Stat, old: Stat | None) -> bool:
        rules = self._rules
        if rules.link == "symbolic":
            return self._symlink_to(source, target)
        key = (stat.dev, stat.ino)
        if rules.link == "hard" or ("links" in rules.preserve and key in self._links):
            return self._hard_link(source if rules.link == "hard" else self._links[key], target)
        if "links" in rules.preserve and stat.nlink > 1:
            self._links[key] = target
        try:
            if stat.is_symlink:
                return self._symlink(source, target, stat)
            if stat.is_regular or not rules.recursive or rules.copy_contents:
                return self._regular(source, target, stat, old)
            if stat.kind in (S_IFIFO, S_IFSOCK):
                self._fs.mknod(target, stat.kind | stat.mode & PERMISSIONS)
            else:
                raise SysError(EPERM)
        except SysError as error:
            what = {S_IFLNK: "symbolic link", S_IFIFO: "fifo"}.get(stat.kind, "special file")
            return self._fail(f"cannot create {what} {quote_name(target)}: {error.reason}")
        return self._attributes(target, stat, new=True)

    def _symlink_to(self, source: str, target: str) -> bool:
        if not source.startswith("/") and "/" in target.removeprefix("./"):
            return self._fail(f"{quote_if_odd(target)}: can make relative symbolic links only in current directory")
        try:
            self._fs.symlink(source, target)
        except SysError as error:
            shown = f"{quote_name(target)} to {quote_name(source)}"
            return self._fail(f"cannot create symbolic link {shown}: {error.reason}")
        return True

    def _hard_link(self, source: str, target: str) -> bool:
        try:
            try:
                self._fs.link(source, target, follow=self._rules.follow == "always")
            except SysError as error:
                if error.errno != EEXIST or self._rules.link == "hard":
                    raise
                self._fs.unlink(target)
                self._fs.link(source, target)
        except SysError as error:
            shown = f"{quote_name(target)} to {quote_name(source)}"
            return self._fail(f"cannot create hard link {shown}: {error.reason}")
        return True

    def _symlink(self, source: str, target: str, stat: Stat) -> bool:
        content = self._fs.readlink(source)
        try:
            self._fs.symlink(content, target)
        except SysError as error:
            if error.errno != EEXIST or not self._rules.force:
                raise
            self._fs.unlink(target)
            self._fs.symlink(content, target)
        return self._attributes(target, stat, new=True)

    def _regular(self, source: str, target: str, stat: Stat, old: Stat | None) -> bool:
        process, rules = self._process, self._rules
        if old is None and self._dangles(target):
            return self._fail(f"not writing through dangling symlink {quote_name(target)}")
        try:
            reader = process.open(source, O_RDONLY | O_CLOEXEC | (O_NOFOLLOW if rules.follow == "never" else 0))
        except SysError as error:
            return self._fail(f"cannot open {quote_name(source)} for reading: {error.reason}")
        try:
            try:
                writer = self._open_target(target, stat, old)
            except SysError as error:
                reason = error.reason
                if error.errno == EISDIR and target.endswith("/"):
                    reason = SysError(ENOTDIR).reason
                return self._fail(f"cannot create regular file {quote_name(target)}: {reason}")
            try:
                if not rules.attributes_only:
                    copy_data(process, reader, writer, stat, rules.sparse)
            except SysError as error:
                return self._fail(f"error writing {quote_name(target)}: {error.reason}")
            finally:
                process.close(writer)
        finally:
            process.close(reader)
        return self._attributes(target, stat, new=old is None)

    def _open_target(self, target: str, stat: Stat, old: Stat | None) -> int:
        process, rules = self._process, self._rules
        mode = 0o666 if rules.default_modes else stat.mode & 0o777
        truncate = 0 if rules.attributes_only else O_TRUNC
        if old is not None:
            try:
                return process.open(target, O_WRONLY | truncate | O_CLOEXEC)
            except SysError:
                if not rules.force:
                    raise
                self._unlink(target)
        return process.open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode)

    def _dangles(self, target: str) -> bool:
        try:
            return self._fs.stat(target, follow=False).is_symlink and "POSIXLY_CORRECT" not in self._process.env
        except SysError:
            return False

    def _attributes(self, target: str, stat: Stat, *, new: bool) -> bool:
        """Times, owner and mode, in the order in which none undoes another."""
        preserve = self._rules.preserve
        if not preserve:
            return True
        return preserve_attributes(self._process, target, stat, preserve)

    def _say(self, source: str, target: str, saved: str, what: str = "") -> None:
        text = f"{quote_name(source)} -> {quote_name(target)}"
        if saved:
            text += f" (backup: {quote_name(saved)})"
        if what:
            text = f"{what} {quote_name(target)}"
        elif self._rules.verb:
            text = f"{self._rules.verb} {text}"
        self._process.print(text)

    def _fail(self, message: str) -> bool:
        self._process.warn(message)
        return False


def preserve_attributes(process: Process, target: str, stat: Stat, preserve: frozenset[str]) -> bool:
    """Give a file another's times, owner and mode, as far as asked; an owner that may not be given is let go."""
    fs = process.fs
    follow = not stat.is_symlink
    try:
        if "ownership" in preserve:
            try:
                fs.chown(target, stat.uid, stat.gid, follow=follow)
            except SysError as error:
                if error.errno != EPERM:
                    raise
        if "mode" in preserve and follow:
            fs.chmod(target, stat.mode & PERMISSIONS)
        if "timestamps" in preserve:
            fs.utimens(target, stat.atime, stat.mtime, follow=follow)
    except SysError as error:
        process.warn(f"preserving attributes of {quote_name(target)}: {error.reason}")
        return False
    return True


def copy_data(process: Process, reader: int, writer: int, stat: Stat, sparse: Sparse = "auto") -> None:
    """The contents from one descriptor to another. Holes stay holes, so that a huge empty file costs nothing."""
    if stat.is_regular and sparse != "never" and stat.blocks * 512 < stat.size and process.fstat(writer).is_regular:
        _copy_sparse(process, reader, writer, stat.size)
        return
    zeros = bytes(4096)
    end = 0
    while data := process.read(reader, CHUNK):
        end += len(data)
        if sparse == "always" and not data.strip(b"\0"):
            process.seek(writer, len(data), 1)
        elif sparse == "always" and zeros in data:
            for start in range(0, len(data), 4096):
                block = data[start : start + 4096]
                if block == zeros[: len(block)]:
                    process.seek(writer, len(block), 1)
                else:
                    process.write_all(writer, block)
        else:
            process.write_all(writer, data)
    if sparse == "always":
        process.fds[writer].truncate(end)


def _copy_sparse(process: Process, reader: int, writer: int, size: int) -> None:
    position = 0
    while position < size:
        try:
            start = process.seek(reader, position, SEEK_DATA)
        except SysError as error:
            if error.errno != ENXIO:
                raise
            break
        end = process.seek(reader, start, SEEK_HOLE)
        process.seek(reader, start, SEEK_SET)
        process.seek(writer, start, SEEK_SET)
        position = start
        while position < end:
            data = process.read(reader, min(CHUNK, end - position))
            if not data:
                return
            process.write_all(writer, data)
            position += len(data)
    process.fds[writer].truncate(size)
