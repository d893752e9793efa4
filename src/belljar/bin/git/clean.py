"""`git clean`: untracked files removed."""

from __future__ import annotations

from dulwich.ignore import IgnoreFilter

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import count, flag, many
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.diffs import quote_path
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.ignores import Ignores
from belljar.bin.git.repository.pathspec import Spec, folders_above, from_here, parse_spec, relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.work import stat_of


@dataclass(frozen=True, slots=True)
class Options:
    force: int = count("-f", "--force", "force")
    dry_run: bool = flag("-n", "--dry-run", "dry run")
    directories: bool = flag("-d", "remove whole directories")
    ignored: bool = flag("-x", "remove ignored files, too")
    only_ignored: bool = flag("-X", "remove only ignored files")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    exclude: tuple[str, ...] = many("-e", "--exclude", "leave these out, too", metavar="PATTERN")


def clean(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    if not options.force and not options.dry_run and repo.config_bool("clean.requireForce", True):
        raise GitError("clean.requireForce defaults to true and neither -i, -n, nor -f given; refusing to clean")
    if options.ignored and options.only_ignored:
        raise GitError("options '-x' and '-X' cannot be used together")
    specs = [parse_spec(repo, operand) for operand in operands] or [Spec(relative(repo, "."))]
    for name in sorted(_Search(repo, options, specs, named=bool(operands)).visit("")[0]):
        if not options.quiet or options.dry_run:
            words = "Would remove" if options.dry_run else "Removing"
            repo.process.print(f"{words} {quote_path(from_here(repo, name))}")
        if not options.dry_run:
            _remove_tree(repo, name.rstrip("/"))
    return 0


class _Search:
    """Finds what may go; a directory of which everything may go is one item."""

    def __init__(self, repo: Repository, options: Options, specs: list[Spec], *, named: bool) -> None:
        self._repo = repo
        self._options = options
        self._specs = specs
        self._named = named
        self._ignores = Ignores(repo)
        self._excluded = IgnoreFilter([fsencode(pattern) for pattern in options.exclude])
        self._tracked = set(repo.index)
        self._folders = {folder for path in self._tracked for folder in folders_above(path)}

    def visit(self, folder: str) -> tuple[list[str], bool]:
        """Return the paths in a folder that may be removed, and whether that is all of it."""
        items: list[str] = []
        whole = True
        for entry in self._repo.process.fs.readdir(self._repo.path(folder).rstrip("/") or "/"):
            self._repo.process.budget.charge(2)
            path = f"{folder}/{entry.name}" if folder else entry.name
            found, goes = ([], False) if path == ".git" else self._folder(path) if entry.is_dir else self._file(path)
            items += found
            whole = whole and goes
        return items, whole

    def _file(self, path: str) -> tuple[list[str], bool]:
        goes = path not in self._tracked and self._chosen(path, directory=False) and self._is_named(path)
        return ([path], True) if goes else ([], False)

    def _folder(self, path: str) -> tuple[list[str], bool]:
        if path in self._tracked:
            return [], False  # a submodule
        if path in self._folders:
            return self.visit(path)[0], False
        named = self._is_named(path)
        if not named and not any(spec.path.startswith(path + "/") for spec in self._specs):
            return [], False
        if stat_of(self._repo, f"{path}/.git") is not None and self._options.force < 2:
            return [], False
        if named and not self._options.directories and not (self._named and any(s.path for s in self._specs)):
            return [], False
        if self._options.only_ignored and self._ignored(path, directory=True):
            return [f"{path}/"], True
        if not self._options.only_ignored and not self._chosen(path, directory=True):
            return [], False
        items, whole = self.visit(path)
        whole = whole and named and not self._options.only_ignored
        return ([f"{path}/"], True) if whole else (items, False)

    def _is_named(self, path: str) -> bool:
        return any(spec.matches(path) for spec in self._specs if not spec.exclude) and not any(
            spec.matches(path) for spec in self._specs if spec.exclude
        )

    def _chosen(self, path: str, *, directory: bool) -> bool:
        if self._excluded.is_ignored(path + "/" if directory else path):
            return False
        if self._options.ignored:
            return True
        return self._ignored(path, directory=directory) is self._options.only_ignored

    def _ignored(self, path: str, *, directory: bool) -> bool:
        above = folders_above(path) if self._options.only_ignored else []
        return self._ignores.ignored(path, directory=directory) or any(
            self._ignores.ignored(folder, directory=True) for folder in above
        )


def _remove_tree(repo: Repository, path: str) -> None:
    stat = stat_of(repo, path)
    if stat is None:
        return
    repo.process.budget.charge()
    full = repo.path(path)
    if not stat.is_dir:
        repo.process.fs.unlink(full)
        return
    for entry in repo.process.fs.readdir(full):
        _remove_tree(repo, f"{path}/{entry.name}")
    repo.process.fs.rmdir(full)
