"""The work tree: what of it differs from the index, what is ignored, and how a tree is checked out into it."""

from __future__ import annotations

from contextlib import suppress

from dulwich.ignore import IgnoreFilter
from dulwich.index import ConflictedIndexEntry, IndexEntry
from dulwich.objects import Blob

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.abi.records import NANO, Stat
from belljar.bin.git.errors import GitError
from belljar.bin.git.repo import Repository, mode_of
from belljar.bin.git.store import EXECUTABLE, LINK, Flat


class Ignores:
    """.gitignore files, .git/info/exclude and core.excludesFile."""

    def __init__(self, repo: Repository) -> None:
        self._repo = repo
        self._filters: dict[str, IgnoreFilter | None] = {}
        self._base = [self._load(f"{repo.git}/info/exclude")]
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
        for above in _above(path):
            found = self._source(above, directory=True)
            if found is not None and not found[2].startswith("!"):
                return found
        return self._source(path, directory=directory)

    def _source(self, path: str, *, directory: bool) -> tuple[str, int, str] | None:
        folders = [*reversed(_above(path)), ""]
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


@dataclass(slots=True)
class Status:
    staged: dict[str, str] = field(default_factory=dict)
    """Path to A, M, D, T."""
    changed: dict[str, str] = field(default_factory=dict)
    unmerged: dict[str, ConflictedIndexEntry] = field(default_factory=dict)
    untracked: list[str] = field(default_factory=list)
    ignored: list[str] = field(default_factory=list)


def compute_status(repo: Repository, *, untracked: str = "normal", ignored: bool = False) -> Status:
    status = Status(unmerged=repo.conflicts())
    head, index = repo.head_tree(), repo.staged()
    for path in index.keys() - head.keys():
        status.staged[path] = "A"
    for path in head.keys() - index.keys():
        if path not in status.unmerged:
            status.staged[path] = "D"
    for path in index.keys() & head.keys():
        if index[path] != head[path]:
            status.staged[path] = "M" if index[path][0] >> 12 == head[path][0] >> 12 else "T"
    status.staged = dict(sorted(status.staged.items()))
    status.changed = changed_files(repo)
    if untracked != "no" and repo.work:
        status.untracked, status.ignored = find_untracked(repo, everything=untracked == "all", ignored=ignored)
    return status


def changed_files(repo: Repository) -> dict[str, str]:
    """What in the work tree differs from the index: M, D, T."""
    found: dict[str, str] = {}
    for path, entry in sorted(repo.index.items()):
        if isinstance(entry, ConflictedIndexEntry):
            continue
        repo.process.budget.charge(2)
        stat = stat_of(repo, path)
        if stat is None or stat.is_dir:
            found[path] = "D"
        elif mode_of(stat) >> 12 != entry.mode >> 12:
            found[path] = "T"
        elif differs(repo, path, entry, stat):
            found[path] = "M"
    return found


def stat_of(repo: Repository, path: str) -> Stat | None:
    try:
        return repo.process.fs.stat(repo.path(path), follow=False)
    except SysError:
        return None


def differs(repo: Repository, path: str, entry: IndexEntry, stat: Stat) -> bool:
    if mode_of(stat) != entry.mode:
        return True
    same = entry.size == stat.size & 0xFFFFFFFF and entry.mtime == divmod(stat.mtime, NANO)
    # The same clock tick may hide a change: only times well in the past are trusted.
    settled = repo.process.kernel.now() - stat.mtime > 2 * NANO
    if same and settled and entry.ino and entry.ino == stat.ino & 0xFFFFFFFF:
        return False
    return hash_blob(repo.read_work(path, stat)) != bytes(entry.sha)


def hash_blob(data: bytes) -> bytes:
    return bytes(Blob.from_string(data).id)


def find_untracked(repo: Repository, *, everything: bool, ignored: bool) -> tuple[list[str], list[str]]:
    """Untracked files, whole folders as `name/` unless everything is wanted; and the ignored ones."""
    ignores = Ignores(repo)
    tracked = set(repo.index)
    folders = {folder for path in tracked for folder in _above(path)}
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


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:end]) for end in range(1, len(parts))]


# Changing the work tree.


def write_file(repo: Repository, path: str, mode: int, data: bytes) -> Stat:
    """Put a file there, in place of what is; parents are made."""
    full = repo.path(path)
    fs = repo.process.fs
    if ".git" in [part.lower() for part in path.split("/")] or ".." in path.split("/"):
        raise GitError(f"invalid path '{path}'")
    make_parents(repo, path)
    with suppress(SysError):
        fs.unlink(full)
    if mode == LINK:
        fs.symlink(data.decode("utf-8", "surrogateescape"), full)
    else:
        repo.process.write_file(full, data, 0o777 if mode == EXECUTABLE else 0o666)
    return fs.stat(full, follow=False)


def make_parents(repo: Repository, path: str) -> None:
    fs = repo.process.fs
    for folder in _above(path):
        try:
            stat = fs.stat(repo.path(folder), follow=False)
        except SysError:
            fs.mkdir(repo.path(folder))
            continue
        if not stat.is_dir:
            # A link or file where a folder belongs is replaced, never followed.
            fs.unlink(repo.path(folder))
            fs.mkdir(repo.path(folder))


def remove_file(repo: Repository, path: str) -> None:
    """A file, and folders that it leaves empty."""
    fs = repo.process.fs
    try:
        fs.unlink(repo.path(path))
    except SysError:
        return
    for folder in reversed(_above(path)):
        try:
            fs.rmdir(repo.path(folder))
        except SysError:
            return


def check_out(repo: Repository, old: Flat, new: Flat, *, force: bool = False, what: str = "checkout") -> None:
    """Move index and work tree from one tree to another; local changes stay, or stop it if they are in the way."""
    index = repo.index
    blocked: list[str] = []
    strangers: list[str] = []
    plan: list[str] = [path for path in old.keys() | new.keys() if old.get(path) != new.get(path)]
    if force:
        plan = sorted(old.keys() | new.keys() | set(index))
    for path in sorted(plan):
        repo.process.budget.charge(2)
        if force:
            continue
        entry = index.get(path)
        staged = (entry.mode, bytes(entry.sha)) if isinstance(entry, IndexEntry) else None
        stat = stat_of(repo, path)
        if staged is None and old.get(path) is None:
            if stat is not None and not stat.is_dir and new.get(path) != _work_entry(repo, path, stat):
                strangers.append(path)
            continue
        if staged == new.get(path):
            continue
        clean = isinstance(entry, IndexEntry) and stat is not None and not differs(repo, path, entry, stat)
        if staged != old.get(path) or (not clean and stat is not None):
            blocked.append(path)
    if blocked or strangers:
        _refuse(repo, blocked, strangers, what)
    for path in plan:
        if path not in new:
            if path in index or path in old:
                remove_file(repo, path)
            index.pop(path, None)
    for path in sorted(plan):
        if path not in new:
            continue
        mode, sha = new[path]
        entry = index.get(path)
        if isinstance(entry, IndexEntry) and (entry.mode, bytes(entry.sha)) == (mode, sha):
            stat = stat_of(repo, path)
            if stat is not None and not differs(repo, path, entry, stat):
                continue
            if not force:
                continue
        index[path] = repo.entry(write_file(repo, path, mode, repo.store.blob(sha)), mode, sha)
    repo.write_index()


def _work_entry(repo: Repository, path: str, stat: Stat) -> tuple[int, bytes]:
    return mode_of(stat), hash_blob(repo.read_work(path, stat))


def _refuse(repo: Repository, blocked: list[str], strangers: list[str], what: str) -> None:
    doing = {"checkout": "switch branches", "merge": "merge"}.get(what, what)
    text = ""
    if blocked:
        text += f"error: Your local changes to the following files would be overwritten by {what}:\n"
        text += "".join(f"\t{path}\n" for path in blocked)
        text += f"Please commit your changes or stash them before you {doing}.\n"
    if strangers:
        text += f"error: The following untracked working tree files would be overwritten by {what}:\n"
        text += "".join(f"\t{path}\n" for path in strangers)
        text += f"Please move or remove them before you {doing}.\n"
    raise GitError(text + "Aborting", 1, "")


def match_paths(repo: Repository, specs: list[str], names: list[str]) -> list[str]:
    """The names that pathspecs mean: a file, all below a folder, or a pattern."""
    from belljar.shell.pattern import compile_pattern

    wanted = [relative(repo, spec) for spec in specs]
    found = []
    for name in names:
        for spec in wanted:
            repo.process.budget.charge()
            if spec in ("", name) or name.startswith(spec.rstrip("/") + "/"):
                found.append(name)
                break
            if any(char in spec for char in "*?[") and compile_pattern(spec).matches(name):
                found.append(name)
                break
    return found


def relative(repo: Repository, spec: str) -> str:
    """A path as the index has it: from the top of the work tree."""
    if spec.startswith(":/"):
        return spec[2:]
    full = repo.process.absolute(spec)
    top = repo.work.rstrip("/")
    if full == (top or "/"):
        return ""
    if not full.startswith(top + "/"):
        raise GitError(f"{spec}: '{spec}' is outside repository at '{repo.work}'")
    return full[len(top) + 1 :]
