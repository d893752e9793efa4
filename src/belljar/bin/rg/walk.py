"""The files rg looks at: a tree without what is hidden, ignored or of another type."""

from __future__ import annotations

from collections.abc import Iterator

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.flags import S_IFDIR, S_IFLNK, S_IFREG
from belljar.abi.paths import fsdecode
from belljar.bin.rg.ignore import Rules
from belljar.kernel.process import Process

_FILES = (".gitignore", ".ignore", ".rgignore")


@dataclass(frozen=True, slots=True)
class Filter:
    """The command line's selection of files."""

    hidden: bool = False
    use_ignore: bool = True
    follow: bool = False
    max_depth: int | None = None
    overrides: Rules | None = None  # -g, inverted: a plain glob includes
    only_overrides: bool = False  # is there a glob that includes?
    types: Rules | None = None
    not_types: Rules | None = None
    extra: list[Rules] = field(default_factory=list)  # --ignore-file

    def accepts(self, path: str, name: str, *, directory: bool) -> bool | None:
        """False: excluded; True: included by a glob, whatever else is said; None: no glob is about it."""
        if self.overrides is not None:
            verdict = self.overrides.decide(path, directory=directory)
            if verdict is not None:
                return not verdict
            if self.only_overrides and not directory:
                return False
        if not directory:
            if self.types is not None and self.types.decide(name, directory=False) is None:
                return False
            if self.not_types is not None and self.not_types.decide(name, directory=False) is not None:
                return False
        return None


@dataclass(frozen=True, slots=True)
class Scope:
    """The ignore files of one directory and those above it."""

    base: str  # the directory's path
    rules: tuple[tuple[str, Rules], ...]  # (base, rules), nearest first


class Walker:
    def __init__(self, process: Process, filter_: Filter) -> None:
        self.process = process
        self.filter = filter_
        self.home = process.fs.getcwd().rstrip("/")
        self.failed = False

    def walk(self, root: str, shown: str) -> Iterator[str]:
        """Regular files below `root`, in order; their names start with `shown`."""
        scope = self.parents(root)
        yield from self.directory(root, shown, "", scope, 1, frozenset())

    def parents(self, root: str) -> Scope:
        """The rules that hold at `root` because of the directories above it."""
        if not self.filter.use_ignore:
            return Scope(root, ())
        path = root if root.startswith("/") else f"{self.process.fs.getcwd()}/{root}"
        parts = [part for part in path.split("/") if part not in ("", ".")]
        scope = Scope("/", ())
        in_repository = self.in_repository("/" + "/".join(parts))
        for count in range(len(parts)):
            directory = "/" + "/".join(parts[:count])
            scope = self.enter(directory, directory, scope, in_repository)
        return scope

    def in_repository(self, path: str) -> bool:
        """Git's own ignore files count only inside a repository."""
        while True:
            if not self.process.fs.exists(f"{path.rstrip('/')}/.git"):
                if path in ("", "/"):
                    return False
                path = path.rpartition("/")[0] or "/"
                continue
            return True

    def enter(self, directory: str, absolute: str, scope: Scope, in_repository: bool) -> Scope:
        rules = scope.rules
        for name in _FILES:
            if name == ".gitignore" and not in_repository:
                continue
            if (data := self.process.try_read(f"{directory.rstrip('/')}/{name}")) is not None:
                rules = ((absolute.rstrip("/"), Rules(fsdecode(data).split("\n"))), *rules)
        return Scope(absolute, rules)

    def directory(
        self, path: str, shown: str, relative: str, scope: Scope, depth: int, above: frozenset[tuple[int, int]]
    ) -> Iterator[str]:
        process = self.process
        if self.filter.max_depth is not None and depth > self.filter.max_depth:
            return
        absolute = path if path.startswith("/") else f"{process.fs.getcwd().rstrip('/')}/{path}"
        absolute = absolute.replace("/./", "/").removesuffix("/.").rstrip("/")
        try:
            stat = process.fs.stat(path)
            if (stat.dev, stat.ino) in above:
                return
            entries = sorted(process.fs.readdir(path))
        except SysError as error:
            self.report(path, error)
            return
        above |= {(stat.dev, stat.ino)}
        process.budget.charge(len(entries) + 1)
        if self.filter.use_ignore:
            scope = self.enter(path, absolute, scope, self.in_repository(absolute))
        for entry in entries:
            if entry.name in (".", ".."):
                continue
            inner = f"{path.rstrip('/')}/{entry.name}" if path != "." else entry.name
            kind = entry.kind
            if kind == S_IFLNK:
                if not self.filter.follow:
                    continue
                try:
                    kind = process.fs.stat(inner).kind
                except SysError as error:
                    self.report(inner, error)
                    continue
            directory = kind == S_IFDIR
            if not directory and kind != S_IFREG:
                continue
            below = f"{relative}{entry.name}"
            if not self.accepts(below, f"{absolute}/{entry.name}", entry.name, scope, directory=directory):
                continue
            if directory:
                yield from self.directory(inner, f"{shown}{entry.name}/", below + "/", scope, depth + 1, above)
            else:
                yield shown + entry.name

    def accepts(self, relative: str, absolute: str, name: str, scope: Scope, *, directory: bool) -> bool:
        home = self.home
        from_home = absolute[len(home) + 1 :] if absolute.startswith(home + "/") else relative
        verdict = self.filter.accepts(from_home, name, directory=directory)
        if verdict is not None:
            return verdict
        if not self.filter.hidden and name.startswith("."):
            return False
        for rules in self.filter.extra:
            found = rules.decide(relative, directory=directory)
            if found is not None:
                return not found
        for base, rules in scope.rules:
            found = rules.decide(absolute[len(base) + 1 :], directory=directory)
            if found is not None:
                return not found
        return True

    def report(self, path: str, error: SysError) -> None:
        self.failed = True
        self.process.error(f"rg: {path}: {error.reason} (os error {error.errno})\n")
