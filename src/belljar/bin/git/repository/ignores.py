"""Ignored files: .gitignore rules, and the untracked files that they leave."""

from __future__ import annotations

from dulwich.ignore import IgnoreFilter

from belljar.abi.errors import SysError
from belljar.bin.git.repository.pathspec import folders_above
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.work import stat_of


class Ignores:
    """.gitignore files, .git/info/exclude and core.excludesFile."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._filters: dict[str, IgnoreFilter | None] = {}
        self._base = [self._load(f"{repo.common}/info/exclude")]
        name = repo.config("core.excludesFile")
        if name:
            self._base.append(self._load(name.replace("~", repo.process.env.get("HOME", ""), 1)))

    def _load(self, path: str) -> IgnoreFilter | None:
        try:
            lines = self._repo.process.read_file(path).split(b"\n")
        except SysError:
            return None
        return IgnoreFilter([line.rstrip(b"\r") for line in lines if line.strip() and not line.startswith(b"#")])

    def ignored(self, path: str, *, directory: bool) -> bool:
        """Whether a path is, its own folder not being so."""
        folder = path.rpartition("/")[0]
        while True:
            if folder not in self._filters:
                name = f"{folder}/.gitignore" if folder else ".gitignore"
                self._filters[folder] = self._load(self._repo.path(name))
            found = self._filters[folder]
            if found is not None:
                relative = path[len(folder) + 1 :] if folder else path
                said = found.is_ignored(relative + "/" if directory else relative)
                if said is not None:
                    return said
            if not folder:
                break
            folder = folder.rpartition("/")[0]
        for base in self._base:
            said = base.is_ignored(path + "/" if directory else path) if base is not None else None
            if said is not None:
                return said
        return False

    def source(self, path: str, *, directory: bool) -> tuple[str, int, str] | None:
        """The file, line and pattern that decide about a path, or about a folder that it is in."""
        for above in folders_above(path):
            found = self._source(above, directory=True)
            if found is not None and not found[2].startswith("!"):
                return found
        return self._source(path, directory=directory)

    def _source(self, path: str, *, directory: bool) -> tuple[str, int, str] | None:
        folders = [*reversed(folders_above(path)), ""]
        files = [(f"{folder}/.gitignore" if folder else ".gitignore", folder) for folder in folders]
        name = self._repo.config("core.excludesFile")
        files.append((".git/info/exclude", ""))
        if name:
            files.append((name.replace("~", self._repo.process.env.get("HOME", ""), 1), ""))
        for file, folder in files:
            try:
                lines = self._repo.process.read_file(file if file.startswith("/") else self._repo.path(file)).split(
                    b"\n"
                )
            except SysError:
                continue
            below = path[len(folder) + 1 :] if folder else path
            for number in range(len(lines), 0, -1):
                line = lines[number - 1].rstrip(b"\r")
                if not line.strip() or line.startswith(b"#"):
                    continue
                self._repo.process.budget.charge()
                said = IgnoreFilter([line.removeprefix(b"!")]).is_ignored(below + "/" if directory else below)
                if said is not None:
                    return file, number, line.decode("utf-8", "surrogateescape")
        return None


def find_untracked(repo: Repository, *, everything: bool, ignored: bool) -> tuple[list[str], list[str]]:
    """Untracked files, whole folders as `name/` unless everything is wanted; and the ignored ones."""
    ignores = Ignores(repo)
    tracked = set(repo.index)
    folders = {folder for path in tracked for folder in folders_above(path)}
    found: list[str] = []
    hidden: list[str] = []

    def visit(folder: str) -> list[str]:
        """The untracked files of a folder."""
        inside: list[str] = []
        entries = repo.process.fs.readdir(repo.path(folder).rstrip("/") or "/")
        for entry in sorted(entries, key=lambda e: e.name):
            repo.process.budget.charge(2)
            path = f"{folder}/{entry.name}" if folder else entry.name
            if entry.name == ".git":
                continue
            if entry.is_dir and path in tracked:
                continue  # a submodule
            if entry.is_dir:
                if path not in folders and ignores.ignored(path, directory=True):
                    hidden.append(path + "/")
                    continue
                if path in folders or everything:
                    inside += visit(path)
                elif (below := visit(path)) or _is_repository(repo, path):
                    inside.append(path + "/")
                    del below
            elif path not in tracked:
                if ignores.ignored(path, directory=False):
                    hidden.append(path)
                else:
                    inside.append(path)
        return inside

    repo.process.enter()
    try:
        found = visit("")
    finally:
        repo.process.leave()
    return sorted(found), sorted(hidden) if ignored else []


def _is_repository(repo: Repository, path: str) -> bool:
    return stat_of(repo, path + "/.git") is not None
