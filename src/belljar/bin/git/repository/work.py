"""The work tree: what of it differs from the index, and how a tree is checked out into it."""

from __future__ import annotations

from contextlib import suppress

from dulwich.index import FLAG_VALID, ConflictedIndexEntry, IndexEntry
from dulwich.objects import Blob

from belljar.abi.errors import SysError
from belljar.abi.records import NANO, Stat
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import folders_above
from belljar.bin.git.repository.repo import Repository, find_repository, index_time, mode_of
from belljar.bin.git.repository.sparse import Sparse, is_left_out
from belljar.bin.git.repository.store import EXECUTABLE, LINK, SUBMODULE, Flat


def changed_files(repo: Repository) -> dict[str, str]:
    """Return the files of the work tree that differ from the index: M, D, T."""
    found: dict[str, str] = {}
    for path, entry in sorted(repo.index.items()):
        if isinstance(entry, ConflictedIndexEntry):
            continue
        repo.process.budget.charge(2)
        stat = stat_of(repo, path)
        if entry.flags & FLAG_VALID or is_left_out(entry):
            continue  # said to be unchanged, or not there by intent
        if entry.mode == SUBMODULE and stat is not None and stat.is_dir:
            if submodule_head(repo, path) not in (None, bytes(entry.sha)):
                found[path] = "M"
        elif stat is None or stat.is_dir:
            found[path] = "D"
        elif mode_of(stat) >> 12 != entry.mode >> 12:
            found[path] = "T"
        elif differs(repo, path, entry, stat):
            found[path] = "M"
    return found


def submodule_head(repo: Repository, path: str) -> bytes | None:
    """The commit that a submodule is at; None if it is not cloned."""
    folder = repo.path(path)
    found = find_repository(repo.process, folder)
    if found is None or found[0] != folder:
        return None
    return Repository(repo.process, *found).head()


def stat_of(repo: Repository, path: str) -> Stat | None:
    return repo.process.fs.try_stat(repo.path(path), follow=False)


def differs(repo: Repository, path: str, entry: IndexEntry, stat: Stat) -> bool:
    if entry.mode == SUBMODULE:
        return not stat.is_dir
    if mode_of(stat) != entry.mode:
        return True
    same = entry.size == stat.size & 0xFFFFFFFF and entry.mtime == index_time(stat.mtime)
    # The same clock tick may hide a change: only times well in the past are trusted.
    settled = repo.process.kernel.now() - stat.mtime > 2 * NANO
    if same and settled and entry.ino and entry.ino == stat.ino & 0xFFFFFFFF:
        return False
    return hash_blob(repo.read_work(path, stat)) != bytes(entry.sha)


def hash_blob(data: bytes) -> bytes:
    return bytes(Blob.from_string(data).id)


def write_file(repo: Repository, path: str, mode: int, data: bytes) -> Stat:
    """Put a file there, in place of what is; parents are made."""
    full = repo.path(path)
    fs = repo.process.fs
    if ".git" in [part.lower() for part in path.split("/")] or ".." in path.split("/"):
        raise GitError(f"invalid path '{path}'")
    make_parents(repo, path)
    if mode == SUBMODULE:
        with suppress(SysError):
            fs.mkdir(full)  # what belongs into it is another repository's
        return fs.stat(full, follow=False)
    with suppress(SysError):
        fs.unlink(full)
    if mode == LINK:
        fs.symlink(data.decode("utf-8", "surrogateescape"), full)
    else:
        repo.process.write_file(full, data, 0o777 if mode == EXECUTABLE else 0o666)
    return fs.stat(full, follow=False)


def make_parents(repo: Repository, path: str) -> None:
    fs = repo.process.fs
    for folder in folders_above(path):
        if (stat := fs.try_stat(repo.path(folder), follow=False)) is None:
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
        try:
            fs.rmdir(repo.path(path))  # an empty place of a submodule
        except SysError:
            return
    for folder in reversed(folders_above(path)):
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
        clean = clean or (stat is None and is_left_out(entry))
        if staged != old.get(path) or (not clean and stat is not None):
            blocked.append(path)
    if blocked or strangers:
        raise refusal(blocked, strangers, what)
    for path in plan:
        if path not in new:
            if path in index or path in old:
                remove_file(repo, path)
            index.pop(path, None)
    sparse = Sparse(repo)
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
        index[path] = check_out_entry(repo, path, mode, sha, sparse)
    repo.write_index()


def check_out_entry(repo: Repository, path: str, mode: int, sha: bytes, sparse: Sparse) -> IndexEntry:
    """Write a file as an object has it, unless a sparse checkout leaves it out; its entry for the index."""
    if not sparse.wants(path):
        remove_file(repo, path)
        entry = repo.bare_entry(mode, sha)
        entry.set_skip_worktree(True)
        return entry
    return repo.entry(write_file(repo, path, mode, repo.contents((mode, sha))), mode, sha)


def _work_entry(repo: Repository, path: str, stat: Stat) -> tuple[int, bytes]:
    return mode_of(stat), hash_blob(repo.read_work(path, stat))


def refusal(blocked: list[str], strangers: list[str], what: str) -> GitError:
    """Make the error for local changes or untracked files that would be overwritten."""
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
    return GitError(text + "Aborting", 1, "")


def stage(repo: Repository, path: str, mode: int | None = None) -> None:
    """Put a file's present contents into the index."""
    stat = stat_of(repo, path)
    assert stat is not None
    known = repo.index.get(path)
    if stat.is_dir and isinstance(known, IndexEntry) and known.mode == SUBMODULE:
        repo.index[path] = repo.bare_entry(SUBMODULE, submodule_head(repo, path) or bytes(known.sha))
        return
    blob = Blob.from_string(repo.read_work(path, stat))
    for folder in [p for p in repo.index if p.startswith(path + "/")]:
        del repo.index[folder]
    repo.index[path] = repo.entry(stat, mode_of(stat) if mode is None else mode, repo.store.add(blob))


def restage(repo: Repository, path: str) -> None:
    """Make a path's entry in the index follow the work tree, where the file may be gone."""
    stat = stat_of(repo, path)
    entry = repo.index.get(path)
    link = isinstance(entry, IndexEntry) and entry.mode == SUBMODULE
    if stat is None or (stat.is_dir and not link):
        del repo.index[path]
    else:
        stage(repo, path)


def work_files(repo: Repository) -> tuple[Flat, dict[str, bytes]]:
    """The tracked files as the work tree has them, and the contents of those that no object holds."""
    files = repo.staged()
    contents: dict[str, bytes] = {}
    for path, letter in changed_files(repo).items():
        stat = stat_of(repo, path)
        if letter == "D" or stat is None:
            del files[path]
            continue
        if files[path][0] == SUBMODULE and stat.is_dir:
            head = submodule_head(repo, path) or files[path][1]
            contents[path], files[path] = repo.contents((SUBMODULE, head)), (SUBMODULE, head)
            continue
        contents[path] = repo.read_work(path, stat)
        files[path] = (mode_of(stat), hash_blob(contents[path]))
    return files, contents
