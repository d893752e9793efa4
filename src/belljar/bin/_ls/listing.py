"""Lists operands and directories, and prints them in one of the formats."""

from __future__ import annotations

from collections.abc import Iterable

from belljar.abi.errno import ENOENT
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFBLK, S_IFCHR, S_IFDIR, S_IFIFO, S_IFLNK, S_IFREG, S_IFSOCK
from belljar.abi.records import NANO, Stat
from belljar.bin._kit.choices import BadChoice
from belljar.bin._kit.clock import format_time, zone_of
from belljar.bin._kit.modes import kind_letter, render_mode
from belljar.bin._kit.quoting import quote, quote_if_odd, quote_name
from belljar.bin._kit.users import Accounts
from belljar.bin._ls.colors import BadColors, Colors, wants_color
from belljar.bin._ls.columns import across, down, separated
from belljar.bin._ls.entries import Entry, arrange, render_name, visible
from belljar.bin._ls.options import Options, Settings, make_settings
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Place
from belljar.libc.width import display_width

_INDICATORS = {S_IFDIR: "/", S_IFLNK: "@", S_IFIFO: "|", S_IFSOCK: "="}
_HALF_YEAR = 31556952 // 2 * NANO
_MINUTE = 60 * NANO
_COARSE = ("%b %e  %Y", "%b %e %H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d ", "%m-%d %H:%M")


def run(process: Process, options: Options, operands: list[str], program: str) -> int:
    """One of ls, dir and vdir: they differ in their defaults."""
    try:
        settings = make_settings(process, options, program)
    except BadChoice as error:
        # Unlike any other wrong option, a wrong word ends with 1.
        process.warn(str(error))
        process.error(f"Try '{process.name} --help' for more information.\n")
        return 1
    listing = Listing(process, settings)
    listing.operands(operands)
    return listing.status


class Listing:
    def __init__(self, process: Process, settings: Settings) -> None:
        self._process = process
        self._fs = process.fs
        self._settings = settings
        self._accounts = Accounts(process)
        self._zone = zone_of(process.env)
        self._now = process.kernel.now()
        self._colors = self._read_colors() if settings.color else None
        behind = self._colors is not None and self._colors.looks_behind_links(long=settings.format == "long")
        self._behind_links = behind or settings.directories_first or settings.indicators in ("file-type", "classify")
        self._colored = False
        self._printed = False
        self._times: dict[tuple[str, int], str] = {}
        self.status = 0

    def _read_colors(self) -> Colors | None:
        if not wants_color(self._process.env):
            return None
        try:
            return Colors(self._process.env)
        except BadColors as error:
            if str(error):
                self._process.warn(f"unrecognized prefix: {quote(str(error), self._process.env)}")
            self._process.warn("unparsable value for LS_COLORS environment variable")
            return None

    # Operands.

    def operands(self, paths: list[str]) -> None:
        settings = self._settings
        files: list[Entry] = []
        for path in paths or ["."]:
            self._process.budget.charge()
            entry = self._operand(path)
            if entry is not None:
                files.append(entry)
        arrange(settings, files)
        listed: list[Entry] = []
        if not settings.directory:
            listed = [entry for entry in files if self._lists(entry)]
            files = [entry for entry in files if not self._lists(entry)]
        if files:
            self._print_entries(files, listed)
        directories = [entry.name for entry in listed]
        header = len(paths) > 1 or settings.recursive
        for path in directories:
            self._directory(path, header=header, operand=True, parents=())

    def _operand(self, path: str) -> Entry | None:
        settings = self._settings
        follow = settings.follow
        try:
            if follow in ("always", "operands"):
                try:
                    stat = self._fs.stat(path)
                except SysError as error:
                    if error.errno != ENOENT or follow == "always":
                        raise
                    stat = self._fs.stat(path, follow=False)
            else:
                stat = self._fs.stat(path, follow=False)
                wants = follow == "directories" or (
                    follow is None
                    and not settings.directory
                    and settings.format != "long"
                    and settings.indicators != "classify"
                )
                if stat.is_symlink and wants:
                    stat = self._referent(path, stat)
        except SysError as error:
            self._fail(f"cannot access {quote_name(path)}: {error.reason}", 2)
            return None
        entry = Entry(path, stat.kind, stat)
        self._follow_link(entry, path)
        return entry

    def _referent(self, path: str, stat: Stat) -> Stat:
        """Return the directory that a symlink leads to."""
        if (target := self._fs.try_stat(path)) is None:
            return stat
        return target if target.is_dir else stat

    def _lists(self, entry: Entry) -> bool:
        return entry.kind == S_IFDIR

    # Directories.

    def _directory(self, path: str, *, header: bool, operand: bool, parents: tuple[Place, ...]) -> None:
        settings, fs = self._settings, self._fs
        try:
            place = fs.resolve(path)
            names = fs.readdir(path)
        except SysError as error:
            self._fail(f"cannot open directory {quote_name(path)}: {error.reason}", 2 if operand else 1)
            return
        if place in parents:
            self._fail(f"{quote_if_odd(path)}: not listing already-listed directory", 2)
            return
        self._process.budget.charge(len(names) + 1)
        if header:
            shown = render_name(settings, path)
            self._write(("\n" if self._printed else "") + shown + ":\n")
        self._printed = True
        entries = self._read(place, path, visible(settings, names))
        arrange(settings, entries)
        if settings.format == "long" or settings.show_blocks:
            total = sum(entry.stat.blocks for entry in entries if entry.stat) * 512
            self._write(f"total {settings.blocks.show(total)}{settings.end}")
        if entries:
            self._print_entries(entries)
        if settings.recursive:
            base = path if path.endswith("/") else path + "/"
            for entry in entries:
                if entry.is_dir and entry.name not in (".", ".."):
                    self._directory(base + entry.name, header=True, operand=False, parents=(*parents, place))

    def _read(self, place: Place, path: str, names: Iterable[object]) -> list[Entry]:
        """Make the entries for a directory's names."""
        settings, fs = self._settings, self._fs
        home, fs.cwd = fs.cwd, place
        entries: list[Entry] = []
        base = path if path.endswith("/") else path + "/"
        try:
            listed = [(entry.name, entry.kind) for entry in names]  # type: ignore[attr-defined]
            if settings.all == "all":
                listed = [(".", S_IFDIR), ("..", S_IFDIR), *listed]
            if not settings.needs_stat and settings.follow != "always" and not settings.inode:
                entries = [Entry(name, kind) for name, kind in listed]
                if settings.directories_first:
                    for entry in entries:
                        self._follow_link(entry, entry.name)
                return entries
            for name, _ in listed:
                self._process.budget.charge()
                try:
                    stat = fs.stat(name, follow=settings.follow == "always")
                except SysError as error:
                    if settings.needs_stat or settings.inode:
                        self._fail(
                            f"cannot access {quote_name((base if base != './' else '') + name)}: {error.reason}", 1
                        )
                    entries.append(Entry(name, 0, None))
                    continue
                entry = Entry(name, stat.kind, stat)
                self._follow_link(entry, name)
                entries.append(entry)
        finally:
            fs.cwd = home
        return entries

    def _follow_link(self, entry: Entry, path: str) -> None:
        settings = self._settings
        if entry.kind != S_IFLNK:
            return
        if settings.format == "long":
            try:
                entry.target = self._fs.readlink(path)
            except SysError as error:
                self._fail(f"cannot read symbolic link {quote_name(path)}: {error.reason}", 1)
        if self._behind_links:
            try:
                entry.target_stat = self._fs.stat(path)
            except SysError:
                entry.ok = False

    # Printing.

    def _print_entries(self, entries: list[Entry], unseen: list[Entry] | None = None) -> None:
        """`unseen` are operands that are listed later; columns are wide enough for them, too."""
        settings = self._settings
        self._printed = True
        for entry in entries:
            entry.shown = render_name(settings, entry.name)
            entry.quoted = entry.shown != entry.name and entry.shown[:1] in "'\""
        if settings.quoting in ("shell", "shell-escape", "c-maybe") and settings.format in ("long", "many", "across"):
            aligned = settings.format == "long" or settings.width
            if aligned and any(entry.quoted for entry in entries):
                for entry in entries:
                    if not entry.quoted:
                        entry.shown = " " + entry.shown
        if settings.format == "long":
            self._print_long(entries, unseen or [])
            return
        inodes, blocks = self._prefix_widths(entries)
        cells: list[str] = []
        widths: list[int] = []
        for entry in entries:
            prefix = self._prefix(entry, inodes, blocks)
            tail = self._indicator(entry.kind, entry.stat)
            widths.append(len(prefix) + display_width(entry.shown) + len(tail))
            cells.append(prefix + self._paint(entry, len(prefix)) + tail)
        self._write(self._lay_out(cells, widths))

    def _lay_out(self, cells: list[str], widths: list[int]) -> str:
        settings = self._settings
        end = settings.end
        match settings.format:
            case "one":
                return end.join(cells) + end
            case "commas":
                lines = separated(cells, widths, settings.width, ",")
            case _ if settings.width == 0:
                lines = separated(cells, widths, 0, " ")
            case "across":
                lines = across(cells, widths, settings.width, settings.tab)
            case _:
                lines = down(cells, widths, settings.width, settings.tab)
        return end.join(lines) + end

    def _prefix_widths(self, entries: list[Entry]) -> tuple[int, int]:
        settings = self._settings
        inodes = blocks = 0
        if settings.format in ("commas", "one") and settings.format == "commas":
            return 0, 0
        if settings.inode:
            inodes = max(len(self._inode(entry)) for entry in entries)
        if settings.show_blocks:
            blocks = max(len(self._blocks(entry)) for entry in entries)
        return inodes, blocks

    def _prefix(self, entry: Entry, inodes: int, blocks: int) -> str:
        settings = self._settings
        text = f"{self._inode(entry):>{inodes}} " if settings.inode else ""
        return text + (f"{self._blocks(entry):>{blocks}} " if settings.show_blocks else "")

    def _inode(self, entry: Entry) -> str:
        return str(entry.stat.ino) if entry.stat else "?"

    def _blocks(self, entry: Entry) -> str:
        return self._settings.blocks.show(entry.stat.blocks * 512) if entry.stat else "?"

    def _indicator(self, kind: int, stat: Stat | None) -> str:
        style = self._settings.indicators
        if style == "none":
            return ""
        if style == "slash":
            return "/" if kind == S_IFDIR else ""
        if style == "classify" and kind == S_IFREG and stat is not None and stat.mode & 0o111:
            return "*"
        return _INDICATORS.get(kind, "")

    def _paint(self, entry: Entry, column: int) -> str:
        colors = self._colors
        if colors is None:
            return entry.shown
        stat, kind = entry.stat, entry.kind
        if kind == S_IFLNK and colors.as_target and entry.target_stat is not None:
            stat, kind = entry.target_stat, entry.target_stat.kind
        return self._wrap(entry.shown, colors.code(entry.name, stat, kind, ok=entry.ok), column)

    def _wrap(self, text: str, code: str | None, column: int) -> str:
        """The name between its colour and the end of it; the first one of all is led by an end, to start afresh."""
        colors = self._colors
        if colors is None or code is None:
            return text
        before = "" if self._colored else colors.stop
        self._colored = True
        blank = " " if text[:1] == " " and len(text) > 1 else ""
        text = text[len(blank) :]
        line = self._settings.width
        width = display_width(text)
        wraps = line and column // line != (column + width - 1) // line
        return f"{blank}{before}{colors.start(code)}{text}{colors.stop}{colors.clear_line if wraps else ''}"

    # The long format.

    def _print_long(self, entries: list[Entry], unseen: list[Entry]) -> None:
        settings = self._settings
        rows = [self._long_fields(entry) for entry in entries]
        every = [*rows, *(self._long_fields(entry) for entry in unseen)]
        widths = [max(map(display_width, column)) for column in zip(*every, strict=True)]
        out: list[str] = []
        for entry, fields in zip(entries, rows, strict=True):
            inode, blocks, mode, links, owner, group, author, size, when = (
                (field.ljust(width + len(field) - display_width(field)) if left else field.rjust(width))
                for field, width, left in zip(fields, widths, _LEFT, strict=True)
            )
            parts = [inode] if settings.inode else []
            if settings.show_blocks:
                parts.append(blocks)
            parts += [mode, links]
            parts += [owner] if settings.owner else []
            parts += [group] if settings.group else []
            parts += [author] if settings.author else []
            head = " ".join([*parts, size, when]) + " "
            out.append(head + self._long_name(entry, display_width(head)))
        self._write(settings.end.join(out) + settings.end)

    def _long_fields(self, entry: Entry) -> tuple[str, ...]:
        settings, stat = self._settings, entry.stat
        if stat is None:
            return ("?", "?", kind_letter(entry.kind) + "?" * 9, "?", "?", "?", "?", "?", "?")
        if stat.kind in (S_IFCHR, S_IFBLK):
            size = f"{stat.rdev >> 8 & 0xFFF}, {stat.rdev & 0xFF | stat.rdev >> 12 & 0xFFF00}"
        else:
            size = settings.sizes.show(stat.size)
        owner = self._owner(stat.uid)
        return (
            str(stat.ino),
            settings.blocks.show(stat.blocks * 512),
            render_mode(stat.mode),
            str(stat.nlink),
            owner,
            self._group(stat.gid),
            owner,
            size,
            self._time(stat),
        )

    def _owner(self, uid: int) -> str:
        return (None if self._settings.numeric else self._accounts.user_name(uid)) or str(uid)

    def _group(self, gid: int) -> str:
        return (None if self._settings.numeric else self._accounts.group_name(gid)) or str(gid)

    def _time(self, stat: Stat) -> str:
        ns: int = getattr(stat, self._settings.time if self._settings.time != "birth" else "mtime")
        old, recent = self._settings.time_styles
        if ns > self._now:
            self._now = self._process.kernel.now()  # it may have been made since
        template = recent if self._now - _HALF_YEAR < ns <= self._now else old
        # Most files of a directory share their minute, and most formats show no more.
        key = (template, ns // _MINUTE if template in _COARSE else ns)
        found = self._times.get(key)
        if found is None:
            found = self._times[key] = format_time(template, ns, self._zone)
        return found

    def _long_name(self, entry: Entry, column: int) -> str:
        text = self._paint(entry, column)
        if entry.kind != S_IFLNK or entry.target is None:
            return text + self._indicator(entry.kind, entry.stat)
        shown = render_name(self._settings, entry.target)
        target = entry.target_stat
        if self._colors is not None:
            column += display_width(entry.shown) + 4
            if target is not None:
                code = self._colors.code(entry.target, target, target.kind)
            else:
                code = self._colors.missing()
            shown = self._wrap(shown, code, column)
        tail = self._indicator(target.kind, target) if target is not None else ""
        return f"{text} -> {shown}{tail}"

    def _write(self, text: str) -> None:
        self._process.print(text, end="")

    def _fail(self, message: str, status: int) -> None:
        self._process.stdout.flush()
        self._process.warn(message)
        self.status = max(self.status, status)


_LEFT = (False, False, True, False, True, True, True, False, False)
