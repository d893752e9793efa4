"""Compares two files or two directories and says what GNU diff says about them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from fnmatch import fnmatchcase

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errno import ENOENT
from belljar.abi.errors import SysError
from belljar.abi.records import Stat
from belljar.bin._kit.kinds import kind_name
from belljar.bin.diff.sides import Comparison, Ignoring, Side, compared_lines, mark_trivial, split_lines
from belljar.kernel.process import Process
from belljar.libc.line_diff import find_changes

Renderer = Callable[[Comparison], Iterator[bytes]]


@dataclass(frozen=True, slots=True)
class Plan:
    """The command line's options of comparison and output."""

    render: Renderer
    ignoring: Ignoring = field(default_factory=Ignoring)
    brief: bool = False
    report_identical: bool = False
    recursive: bool = False
    new_file: bool = False
    new_file_first: bool = False
    """--unidirectional-new-file: only files missing from the first directory count as empty."""
    text: bool = False
    follow: bool = True
    excluded: tuple[str, ...] = ()
    start: str = ""
    fold_names: bool = False
    labels: tuple[str, ...] = ()
    tabsize: int = 8
    paginate: bool = False
    switches: str = ""
    """The options, as the line before each file of a directory shows them."""
    shows_equal: bool = False
    """Whether equal files have output too (-y, -D, --line-format)."""
    needs_newline: bool = False
    """Whether the output can't say that a file doesn't end in a newline (-e, -f): that is trouble."""
    horizon: int = 0
    """How many common lines at the ends of files a change may be moved into."""


class Trouble(Exception):
    """One of the two can't be read; the message has been given."""


class Comparer:
    """Exit statuses: 0 the same, 1 different, 2 trouble."""

    def __init__(self, process: Process, plan: Plan) -> None:
        self.process = process
        self.plan = plan

    def compare(self, first: str, second: str) -> int:
        """Two operands of the command line."""
        stats = [self._stat(name) for name in (first, second)]
        if first != "-" and second != "-":
            if _is_dir(stats[0]) and not _is_dir(stats[1]) and stats[1] is not None:
                first = _join(first, second.rstrip("/").rpartition("/")[2])
                stats[0] = self._stat(first)
            elif _is_dir(stats[1]) and not _is_dir(stats[0]) and stats[0] is not None:
                second = _join(second, first.rstrip("/").rpartition("/")[2])
                stats[1] = self._stat(second)
        missing = [stat is None for stat in stats]
        if any(missing):
            allowed = self.plan.new_file or (self.plan.new_file_first and missing == [True, False])
            if all(missing) or not allowed:
                for name, gone in zip((first, second), missing, strict=True):
                    if gone:
                        self._explain(name)
                return 2
        return self._pair(first, second, stats[0], stats[1], top=True)

    def _stat(self, name: str) -> Stat | None:
        try:
            return self.process.fstat(0) if name == "-" else self.process.fs.stat(name, follow=self.plan.follow)
        except SysError:
            return None

    def _explain(self, name: str) -> None:
        try:
            self.process.fs.stat(name)
        except SysError as error:
            self.process.warn(f"{name}: {error.reason}")

    def _pair(self, first: str, second: str, a: Stat | None, b: Stat | None, *, top: bool) -> int:
        plan = self.plan
        if _is_dir(a or b) and _is_dir(b or a):
            if top or plan.recursive:
                return self.directories(first, second, a, b, self.plan.start if top else "")
            self.process.print(f"Common subdirectories: {first} and {second}")
            return 0
        if a is not None and b is not None and (a.is_dir != b.is_dir or (not top and a.kind != b.kind)):
            first, second = self._names(first, second)
            self.process.print(f"File {first} is a {kind_name(a)} while file {second} is a {kind_name(b)}")
            return 1
        if not plan.follow and a is not None and b is not None and a.is_symlink and b.is_symlink:
            return self._symlinks(first, second)
        if a is not None and b is not None and (a.dev, a.ino) == (b.dev, b.ino) and not plan.shows_equal:
            return self._same(first, second)
        try:
            return self.files(first, second, a, b, top=top)
        except Trouble:
            return 2

    def _symlinks(self, first: str, second: str) -> int:
        if self.process.fs.readlink(first) == self.process.fs.readlink(second):
            return 0
        self.process.print(f"Symbolic links {first} and {second} differ")
        return 1

    def _same(self, first: str, second: str) -> int:
        if self.plan.report_identical:
            self.process.print(f"Files {first} and {second} are identical")
        return 0

    # Files.

    def files(self, first: str, second: str, a: Stat | None, b: Stat | None, *, top: bool) -> int:
        plan = self.plan
        if plan.brief and plan.ignoring.none and a is not None and b is not None and "-" not in (first, second):
            if self._equal_bytes(first, second, a, b):
                return self._same(first, second)
            self.process.print(f"Files {first} and {second} differ")
            return 1
        sides = (self._read(first, a), self._read(second, b))
        for side, label in zip(sides, plan.labels, strict=False):
            side.label = label
        equal = sides[0].data == sides[1].data
        if equal and not plan.shows_equal:
            return self._same(first, second)
        if not plan.text and (sides[0].looks_binary or sides[1].looks_binary):
            if equal:
                return self._same(first, second)
            what = "Files" if plan.brief else "Binary files"
            self.process.print(f"{what} {_shown(sides[0])} and {_shown(sides[1])} differ")
            return 1
        comparison = self.compare_sides(sides)
        if all(change.trivial for change in comparison.changes) and not plan.needs_newline:
            if plan.shows_equal:
                self._write(plan.render(comparison))
            return self._same(first, second)
        if plan.brief:
            self.process.print(f"Files {_shown(sides[0])} and {_shown(sides[1])} differ")
            return 1
        if not top:
            self.process.print(f"diff{plan.switches} {' '.join(self._names(first, second))}")
        self._write(plan.render(comparison))
        if plan.needs_newline and not all(comparison.complete):
            self.process.stdout.flush()
            for side, whole in zip(sides, comparison.complete, strict=True):
                if not whole:
                    self.process.warn(f"{_shown(side)}: No newline at end of file\n")
            return 2
        return 1

    def _names(self, first: str, second: str) -> tuple[str, str]:
        """As they are shown: by their labels if there are any."""
        labels = self.plan.labels
        return (labels[0] if labels else first, labels[1] if len(labels) > 1 else second)

    def _write(self, pieces: Iterator[bytes]) -> None:
        for piece in pieces:
            self.process.budget.charge()
            self.process.stdout.write(piece)

    def compare_sides(self, sides: tuple[Side, Side]) -> Comparison:
        ignoring, tabsize = self.plan.ignoring, self.plan.tabsize
        if ignoring.carriage_return:
            for side in sides:
                side.data = side.data.replace(b"\r\n", b"\n")
        self.process.budget.charge_size(2 * (len(sides[0].data) + len(sides[1].data)))
        first, complete_a = split_lines(sides[0].data)
        second, complete_b = split_lines(sides[1].data)
        changes = find_changes(
            compared_lines(first, complete_a or self.plan.needs_newline, ignoring, tabsize),
            compared_lines(second, complete_b or self.plan.needs_newline, ignoring, tabsize),
            self.process.budget.charge,
            self.plan.horizon,
        )
        comparison = Comparison(sides, (first, second), (complete_a, complete_b), changes)
        mark_trivial(comparison, ignoring)
        return comparison

    def _read(self, name: str, stat: Stat | None) -> Side:
        if stat is None:
            return Side(name, None)
        try:
            return Side(name, stat, self.process.read_file(name))
        except SysError as error:
            self.process.warn(f"{name}: {error.reason}")
            raise Trouble from error

    def _equal_bytes(self, first: str, second: str, a: Stat, b: Stat) -> bool:
        """Piece by piece: a large file is never held."""
        if a.is_regular and b.is_regular and a.size != b.size:
            return False
        try:
            ones, others = self.process.chunks(first), self.process.chunks(second)
            left = right = b""
            while True:
                left = left or next(ones, b"")
                right = right or next(others, b"")
                size = min(len(left), len(right))
                if size == 0:
                    return left == right
                self.process.budget.charge(size // 65536 + 1)
                if left[:size] != right[:size]:
                    return False
                left, right = left[size:], right[size:]
        except SysError as error:
            self.process.warn(f"{error.path or first}: {error.reason}")
            raise Trouble from error

    # Directories.

    def directories(self, first: str, second: str, a: Stat | None, b: Stat | None, start: str = "") -> int:
        names: dict[str, list[str | None]] = {}
        for index, (directory, stat) in enumerate(((first, a), (second, b))):
            if stat is None:
                continue
            try:
                entries = self.process.fs.readdir(directory)
            except SysError as error:
                self.process.warn(f"{directory}: {error.reason}")
                return 2
            for entry in entries:
                name = entry.name
                if name in (".", "..") or any(fnmatchcase(name, pattern) for pattern in self.plan.excluded):
                    continue
                key = name.lower() if self.plan.fold_names else name
                names.setdefault(key, [None, None])[index] = name
        status = 0
        for key in sorted(names, key=lambda text: text.encode("utf-8", "surrogateescape")):
            self.process.budget.charge()
            if start and key < start:
                continue
            left, right = names[key]
            status = max(status, self._entry(first, second, left, right))
        return status

    def _entry(self, first: str, second: str, left: str | None, right: str | None) -> int:
        plan = self.plan
        if left is None or right is None:
            wanted = plan.new_file or (left is None and plan.new_file_first)
            if not wanted:
                self.process.print(f"Only in {second if left is None else first}: {left or right}")
                return 1
        name_a, name_b = _join(first, left or right or ""), _join(second, right or left or "")
        a = self._stat(name_a) if left is not None else None
        b = self._stat(name_b) if right is not None else None
        troubled = False
        for name, present, stat in ((name_a, left, a), (name_b, right, b)):
            if present is not None and stat is None:
                self.process.warn(f"{name}: {SysError(ENOENT).reason}")
                troubled = True
        if troubled:
            return 2
        if _is_dir(a or b) and not plan.recursive and (a is None or b is None):
            self.process.print(f"Only in {second if a is None else first}: {left or right}")
            return 1
        return self._pair(name_a, name_b, a, b, top=False)


def _is_dir(stat: Stat | None) -> bool:
    return stat is not None and stat.is_dir


def _join(directory: str, name: str) -> str:
    return directory + name if directory.endswith("/") else f"{directory}/{name}"


def _shown(side: Side) -> str:
    return side.label if side.label is not None else side.name
