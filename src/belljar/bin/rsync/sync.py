"""rsync's work: compare two trees, say what differs, and make the second like the first."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_EXCL, O_RDONLY, O_WRONLY, PERMISSIONS, S_IFIFO
from belljar.abi.paths import fsdecode, normalise
from belljar.abi.records import NANO, Stat
from belljar.bin._copy import copy_data, preserve_attributes
from belljar.bin._kit import UsageError
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.modes import parse_mode, render_mode
from belljar.bin._remove import Remover
from belljar.bin.rsync.filters import Rules
from belljar.kernel.process import Process

if TYPE_CHECKING:
    from belljar.bin.rsync import Options


@dataclass(slots=True)
class _Totals:
    files: int = 0
    kinds: dict[str, int] = field(default_factory=dict)
    created_kinds: dict[str, int] = field(default_factory=dict)
    size: int = 0
    sent_files: int = 0
    sent_size: int = 0
    deleted: int = 0
    names: int = 0


class Sync:
    def __init__(self, process: Process, options: Options, rules: Rules) -> None:
        self._process = process
        self._fs = process.fs
        self._options = options
        self._rules = rules
        archive = options.archive
        self._recursive = options.recursive or archive
        self._links = (options.links or archive) and not options.no_links
        self._specials = options.devices or archive
        self._preserve = frozenset(
            name
            for name, wanted in (
                ("mode", (options.perms or archive) and not options.no_perms),
                ("timestamps", (options.times or archive) and not options.no_times),
                ("ownership", (options.owner or options.group or archive) and not options.no_owner),
            )
            if wanted
        )
        self._speaks = options.verbose and not options.quiet
        self._hard: dict[tuple[int, int], str] = {}
        self._totals = _Totals()
        self._home_made: list[str] = []
        self._most = _size(options.max_size, "max")
        self._least = _size(options.min_size, "min")
        self._base = ""
        """The destination, when files below it are looked for in others (--link-dest)."""
        self.status = 0

    # The whole.

    def list_only(self, sources: list[str]) -> int:
        """List what would be copied, without a destination."""
        zone = zone_of(self._process.env)
        for source in sources:
            try:
                stat = self._fs.stat(source, follow=False)
                names = [(source.rstrip("/").rpartition("/")[2] or ".", stat)]
                if stat.is_dir and (self._recursive or source.endswith("/")):
                    names = [(".", stat)]
                    names += [
                        (entry.name, self._fs.stat(f"{source}/{entry.name}", follow=False))
                        for entry in sorted(self._fs.readdir(source), key=lambda entry: entry.name)
                    ]
            except SysError as error:
                self._missing(source, error)
                continue
            for name, found in names:
                when = format_time("%Y/%m/%d %H:%M:%S", found.mtime, zone)
                self._process.print(f"{render_mode(found.mode)} {found.size:>14,} {when} {name}")
        return self.status

    def run(self, sources: list[str], target: str) -> int:
        options = self._options
        start = self._process.kernel.hub.clock.monotonic()
        if self._speaks:
            self._process.print("sending incremental file list")
        prepared = self._prepare(sources, target)
        if prepared is None:
            return 3
        self._base = target.rstrip("/") or "/"
        if options.files_from is not None:
            self._listed(sources[0], target)
        else:
            for source in sources:
                self._source(source, target, into=prepared)
        if self._speaks or options.stats:
            self._report(self._process.kernel.hub.clock.monotonic() - start)
        return self.status

    def _prepare(self, sources: list[str], target: str) -> bool | None:
        """Whether sources go into the destination as a directory; None if it can't be one."""
        try:
            if self._fs.stat(target).is_dir:
                return True
            if len(sources) > 1 or target.endswith("/"):
                self._error("ERROR: destination must be a directory when copying more than 1 file")
                return None
            return False
        except SysError as error:
            if error.name != "ENOENT":
                path = self._process.absolute(target) + ("/" if target.endswith("/") else "")
                self._error(f'[Receiver] ERROR: cannot stat destination "{path}": {error.reason} ({error.errno})')
                return None
        only = sources[0]
        try:
            single = len(sources) == 1 and not self._fs.stat(only).is_dir and not target.endswith("/")
        except SysError:
            single = False
        if single and not self._options.relative:
            return False
        if not self._options.dry_run and not self._make_target(target):
            return None
        if self._speaks or self._options.itemize:
            self._process.print(f"created directory {target.rstrip('/')}")
        return True

    def _make_target(self, target: str) -> bool:
        try:
            if self._options.mkpath:
                self._fs.makedirs(target.rstrip("/").rpartition("/")[0])
            self._fs.mkdir(target.rstrip("/"))
        except SysError as error:
            path = self._process.absolute(target)
            self._error(f'[Receiver] mkdir "{path}" failed: {error.reason} ({error.errno})')
            return False
        self._home_made.append(target.rstrip("/"))
        return True

    def _source(self, source: str, target: str, *, into: bool) -> None:
        contents = source.endswith("/") or source.rpartition("/")[2] in (".", "..")
        name = "" if contents else source.rpartition("/")[2]
        if self._options.relative:
            name = source.strip("/")
        try:
            stat = self._fs.stat(source, follow=contents or self._options.copy_links)
        except SysError as error:
            if contents and source.endswith("/"):
                path = self._process.absolute(source)
                self._error(f'[sender] change_dir "{path}" failed: {error.reason} ({error.errno})')
                self.status = 23
            else:
                self._missing(source, error)
            return
        if stat.is_dir and not self._recursive:
            self._process.print(f"skipping directory {name or '.'}")
            return
        base = target.rstrip("/") or "/"
        path = f"{base}/{name}" if into and name else base
        if self._options.relative and "/" in name:
            self._implied(source, name, base)
        self._entry(source.rstrip("/") or "/", path, name or "", stat, top=True)

    def _listed(self, source: str, target: str) -> None:
        """The files that --files-from names, with the directories above them."""
        end = b"\0" if self._options.from0 else b"\n"
        try:
            data = self._process.read_file(str(self._options.files_from))
        except SysError as error:
            self._error(f"failed to open files-from file {self._options.files_from}: {error.reason}")
            self.status = 11
            return
        base = target.rstrip("/") or "/"
        for raw in data.split(end):
            name = fsdecode(raw).strip("/")
            if not name or (name.startswith(("#", ";")) and not self._options.from0):
                continue
            path = f"{source.rstrip('/')}/{name}"
            if ".." in name.split("/"):
                name = normalise("/" + name).strip("/")
            try:
                stat = self._fs.stat(path, follow=self._options.copy_links)
            except SysError as error:
                self._missing(path, error)
                continue
            self._implied(path, name, base)
            if stat.is_dir and not self._options.recursive:
                if not self._fs.exists(f"{base}/{name}") and self._changes("cd+++++++++", name + "/"):
                    self._fs.mkdir(f"{base}/{name}", stat.mode & 0o777 | 0o700)
                continue
            self._entry(path, f"{base}/{name}", name, stat)

    def _implied(self, source: str, name: str, base: str) -> None:
        """The directories above a source that --relative sends along."""
        parts = name.split("/")
        for end in range(1, len(parts)):
            above = "/".join(parts[:end])
            made = f"{base}/{above}"
            if not self._fs.exists(made):
                self._tell("cd+++++++++", above + "/")
                if not self._options.dry_run:
                    self._fs.mkdir(made)

    # Files.

    def _entry(self, source: str, target: str, name: str, stat: Stat, *, top: bool = False) -> None:
        self._process.budget.charge()
        self._totals.files += 1
        kind = "dir" if stat.is_dir else "link" if stat.is_symlink else "reg" if stat.is_regular else "special"
        self._totals.kinds[kind] = self._totals.kinds.get(kind, 0) + 1
        old = self._fs.try_stat(target, follow=False)
        try:
            if stat.is_dir:
                self._directory(source, target, name, stat, old)
            elif stat.is_symlink:
                self._symlink(source, target, name, stat, old)
            elif stat.is_regular:
                self._file(source, target, name, stat, old)
            elif self._specials and stat.kind == S_IFIFO:
                if old is None and self._changes(f"cS{'+' * 9}", name):
                    self._fs.mknod(target, S_IFIFO | stat.mode & PERMISSIONS)
            else:
                self._process.print(f'skipping non-regular file "{name}"')
        except SysError as error:
            path = self._process.absolute(error.path or target)
            self._error(f'"{path}": {error.reason} ({error.errno})')
            self.status = 23

    def _changes(self, code: str, name: str, tail: str = "") -> bool:
        """Say that something changes; whether it may really."""
        if code.endswith("+"):
            kind = {"d": "dir", "L": "link", "f": "reg"}.get(code[1], "special")
            self._totals.created_kinds[kind] = self._totals.created_kinds.get(kind, 0) + 1
        self._tell(code, name, tail)
        return not self._options.dry_run

    def _directory(self, source: str, target: str, name: str, stat: Stat, old: Stat | None) -> None:
        options = self._options
        shown = (name or ".") + "/"
        fresh = old is None or target in self._home_made
        if old is not None and not old.is_dir and not (old.is_symlink and self._fs.exists(target)):
            if not options.dry_run:
                self._fs.unlink(target)
            old, fresh = None, True
        if old is None:
            if options.existing:
                return
            if self._changes("cd+++++++++", shown):
                self._fs.mkdir(target, stat.mode & 0o777 | 0o700)
        elif fresh:
            self._changes("cd+++++++++", shown)
        elif "timestamps" in self._preserve and old.mtime // NANO != stat.mtime // NANO:
            self._tell(".d..t......", shown)
        names = self._children(source, name)
        if options.delete or options.delete_excluded:
            self._delete(target, name, set(names))
        for child in names:
            inner = f"{name}/{child}" if name else child
            self._entry(f"{source.rstrip('/')}/{child}", f"{target}/{child}", inner, names[child])
        if not options.dry_run and self._preserve:
            preserve_attributes(self._process, target, stat, self._preserve)
        if not options.dry_run and options.chmod is not None:
            self._fs.chmod(target, _changed_mode(options.chmod, stat.mode, directory=True))

    def _children(self, source: str, name: str) -> dict[str, Stat]:
        """Return the entries that the rules include: files first, then directories, by name."""
        try:
            entries = self._fs.readdir(source)
        except SysError as error:
            path = self._process.absolute(source)
            self._error(f'[sender] opendir "{path}" failed: {error.reason} ({error.errno})')
            self.status = 23
            return {}
        self._process.budget.charge(len(entries))
        found: dict[str, Stat] = {}
        for entry in entries:
            path = f"{source.rstrip('/')}/{entry.name}"
            try:
                stat = self._fs.stat(path, follow=self._options.copy_links)
            except SysError as error:
                self._missing(path, error)
                continue
            inner = f"{name}/{entry.name}" if name else entry.name
            if not self._rules.excludes(inner, directory=stat.is_dir):
                found[entry.name] = stat
        return dict(sorted(found.items(), key=lambda item: (item[1].is_dir, item[0])))

    def _delete(self, target: str, name: str, keep: set[str]) -> None:
        try:
            entries = self._fs.readdir(target)
        except SysError:
            return
        for entry in sorted(entries, key=lambda e: (e.is_dir, e.name), reverse=True):
            inner = f"{name}/{entry.name}" if name else entry.name
            if entry.name in keep:
                continue
            if self._rules.excludes(inner, directory=entry.is_dir) and not self._options.delete_excluded:
                continue
            self._delete_tree(f"{target}/{entry.name}", inner, directory=entry.is_dir)

    def _delete_tree(self, path: str, name: str, *, directory: bool) -> None:
        """Delete and report from the bottom up, as rsync does."""
        self._process.budget.charge()
        self._totals.deleted += 1
        if directory:
            for entry in sorted(self._fs.readdir(path), key=lambda e: (e.is_dir, e.name), reverse=True):
                self._delete_tree(f"{path}/{entry.name}", f"{name}/{entry.name}", directory=entry.is_dir)
        if self._options.itemize:
            self._process.print(f"*deleting   {name}{'/' if directory else ''}")
        elif self._speaks:
            self._process.print(f"deleting {name}{'/' if directory else ''}")
        if not self._options.dry_run and self._options.backup and not directory:
            self._keep_old(path)
        elif not self._options.dry_run:
            remover = Remover(self._process, recursive=True, force=True)
            remover.remove(path)

    def _symlink(self, source: str, target: str, name: str, stat: Stat, old: Stat | None) -> None:
        self._totals.size += stat.size
        if not self._links:
            self._process.print(f'skipping non-regular file "{name}"')
            return
        if old is None and self._options.existing:
            return
        content = self._fs.readlink(source)
        if old is not None and old.is_symlink and self._fs.readlink(target) == content:
            return
        code = "cL+++++++++" if old is None else "cLc.t......"
        if not self._changes(code, name, f" -> {content}"):
            return
        if old is not None:
            self._fs.unlink(target)
        self._fs.symlink(content, target)
        if self._preserve:
            preserve_attributes(self._process, target, stat, self._preserve)
        if self._options.remove_source:
            self._fs.unlink(source)

    def _file(self, source: str, target: str, name: str, stat: Stat, old: Stat | None) -> None:
        options = self._options
        self._totals.size += stat.size
        if old is None and options.existing:
            return
        if (self._most is not None and stat.size > self._most) or (self._least or 0) > stat.size:
            return
        if old is not None and (options.ignore_existing or (options.update and old.mtime > stat.mtime)):
            return
        if old is not None and old.is_regular and self._same(source, target, stat, old):
            if not options.dry_run and self._preserve and self._differs(stat, old):
                self._tell(f".f...{'p' if 'mode' in self._preserve else '.'}.....", name)
                preserve_attributes(self._process, target, stat, self._preserve)
            return
        if old is None and self._found_elsewhere(source, target, name, stat):
            return
        if old is None:
            code = ">f+++++++++"
        else:
            size = "s" if old.size != stat.size else "."
            code = f">f.{size}{'t' if 'timestamps' in self._preserve else 'T'}......"
        self._totals.sent_files += 1
        self._totals.sent_size += stat.size
        if self._changes(code, name):
            self._copy(source, target, stat, old)
            if options.remove_source:
                self._fs.unlink(source)
        if options.progress or options.partial_progress:
            self._process.print(f"{stat.size:>15,} 100%    0.00kB/s    0:00:00 (xfr#{self._totals.sent_files})")

    def _found_elsewhere(self, source: str, target: str, name: str, stat: Stat) -> bool:
        """Whether the same file in one of the other directories stands for it."""
        options = self._options
        below = target[len(self._base) :].lstrip("/") or name
        for folders, way in ((options.link_dest, "link"), (options.compare_dest, "skip"), (options.copy_dest, "copy")):
            for folder in folders:
                path = f"{folder if folder.startswith('/') else f'{self._base}/{folder}'}/{below}"
                try:
                    other = self._fs.stat(path, follow=False)
                    if not other.is_regular or not self._same(source, path, stat, other) or self._differs(stat, other):
                        continue
                except SysError:
                    continue
                if way == "link" and not options.dry_run:
                    self._fs.link(path, target)
                elif way == "copy" and not options.dry_run:
                    self._copy(path, target, stat, None)
                return True
        return False

    def _keep_old(self, target: str) -> None:
        """Make a backup of a file that is about to be replaced or deleted."""
        options = self._options
        suffix = options.suffix if options.suffix is not None else "" if options.backup_dir else "~"
        if options.backup_dir is None:
            self._fs.rename(target, target + suffix)
            return
        below = target[len(self._base) :].lstrip("/") or target.rpartition("/")[2]
        folder = options.backup_dir if options.backup_dir.startswith("/") else f"{self._base}/{options.backup_dir}"
        place = f"{folder.rstrip('/')}/{below}{suffix}"
        self._fs.makedirs(place.rpartition("/")[0])
        self._fs.rename(target, place)

    def _same(self, source: str, target: str, stat: Stat, old: Stat) -> bool:
        options = self._options
        if options.ignore_times or old.size != stat.size:
            return False
        if options.checksum:
            return self._process.read_file(source) == self._process.read_file(target)
        return options.size_only or old.mtime // NANO == stat.mtime // NANO

    def _differs(self, stat: Stat, old: Stat) -> bool:
        return "mode" in self._preserve and stat.mode != old.mode

    def _copy(self, source: str, target: str, stat: Stat, old: Stat | None) -> None:
        """Copy to a temporary file and rename it, so that nobody sees half of it."""
        process, fs = self._process, self._fs
        key = (stat.dev, stat.ino)
        if self._options.hard_links and key in self._hard:
            if old is not None:
                fs.unlink(target)
            fs.link(self._hard[key], target)
            return
        if old is not None and old.is_dir:
            fs.rmdir(target)
        head, slash, base = target.rpartition("/")
        random = process.kernel.machine.entropy.random_bytes(3).hex()
        temporary = f"{head}{slash}.{base[:200]}.{random}"
        reader = process.open(source, O_RDONLY | O_CLOEXEC)
        try:
            writer = process.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, stat.mode & 0o777)
            try:
                copy_data(process, reader, writer, stat)
            finally:
                process.close(writer)
        finally:
            process.close(reader)
        if old is not None and old.is_regular and "mode" not in self._preserve:
            fs.chmod(temporary, old.mode & PERMISSIONS)
        preserve_attributes(process, temporary, stat, self._preserve)
        if self._options.chmod is not None:
            fs.chmod(temporary, _changed_mode(self._options.chmod, fs.stat(temporary).mode, directory=False))
        if old is not None and old.is_regular and (self._options.backup or self._options.backup_dir is not None):
            self._keep_old(target)
        fs.rename(temporary, target)
        if stat.nlink > 1:
            self._hard[key] = target

    # Words.

    def _tell(self, code: str, name: str, tail: str = "") -> None:
        self._totals.names += len(name)
        if self._options.quiet:
            return
        if self._options.out_format is not None:
            text = self._options.out_format.replace("%n", name).replace("%i", code).replace("%L", tail)
            self._process.print(text)
        elif self._options.itemize:
            self._process.print(f"{code} {name}{tail}")
        elif self._speaks and (code[0] != "." or name.endswith("/")):
            self._process.print(name + tail)

    def _report(self, seconds: float) -> None:
        totals = self._totals
        sent = totals.sent_size + totals.names + 60 * totals.files
        received = 19 + 19 * totals.sent_files
        if self._options.stats:
            self._process.print(
                f"\nNumber of files: {_counts(totals.kinds)}\n"
                f"Number of created files: {_counts(totals.created_kinds)}\n"
                f"Number of deleted files: {totals.deleted:,}\n"
                f"Number of regular files transferred: {totals.sent_files:,}\n"
                f"Total file size: {totals.size:,} bytes\nTotal transferred file size: {totals.sent_size:,} bytes"
            )
        rate = (sent + received) / max(0.5, seconds)
        dry = " (DRY RUN)" if self._options.dry_run else ""
        self._process.print(
            f"\nsent {sent:,} bytes  received {received:,} bytes  {rate:,.2f} bytes/sec\n"
            f"total size is {totals.size:,}  speedup is {totals.size / (sent + received):,.2f}{dry}"
        )

    def _missing(self, source: str, error: SysError) -> None:
        path = self._process.absolute(source)
        self._error(f'[sender] link_stat "{path}" failed: {error.reason} ({error.errno})')
        self.status = 23

    def _error(self, text: str) -> None:
        self._process.stdout.flush()
        self._process.error(f"rsync: {text}\n")


def _counts(kinds: dict[str, int]) -> str:
    """`5 (reg: 2, dir: 2, link: 1)`"""
    parts = ", ".join(f"{kind}: {kinds[kind]:,}" for kind in ("reg", "dir", "link", "special") if kinds.get(kind))
    return f"{sum(kinds.values()):,}" + (f" ({parts})" if parts else "")


def _size(text: str | None, which: str) -> int | None:
    """`10`, `1.5k`, `2MB`, `3M-1`"""
    if text is None:
        return None
    match = re.fullmatch(r"([0-9]{1,15}(?:\.[0-9]{1,6})?)([bBkKmMgGtT]?)(i?[bB])?([-+]1)?", text)
    if match is None:
        raise UsageError(f"--{which}-size={text} is invalid", hint=False)
    base = 1000 if match[3] in ("B", "b") and match[2].lower() != "b" else 1024
    power = " kmgt".index(match[2].lower()) if match[2] and match[2].lower() != "b" else 0
    return int(float(match[1]) * base**power) + int(match[4] or 0)


def _changed_mode(text: str, mode: int, *, directory: bool) -> int:
    """A mode after --chmod, whose items may be for directories (D755) or files (Fu+x) alone."""
    for item in text.split(","):
        if item[:1] in ("D", "F"):
            if (item[0] == "D") is not directory:
                continue
            item = item[1:]
        change = parse_mode(item)
        if change is None:
            raise UsageError(f"Invalid argument passed to --chmod ({text})", hint=False)
        mode = change.apply(mode, 0o022, directory=directory)
    return mode & PERMISSIONS
