"""`git update-index`: single files in the index."""

from __future__ import annotations

from dulwich.index import FLAG_VALID, IndexEntry

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.tree import parse_mode, parse_name
from belljar.bin.git.repository.work import changed_files, stage, stat_of


def update_index(repo: Repository, args: list[str]) -> int:
    """`git update-index`: --add, --remove, --refresh, --chmod and --cacheinfo for single files."""
    add = remove = force = False
    mode: int | None = None
    status = 0
    marking: str | None = None
    words = list(args)
    while words:
        word = words.pop(0)
        match word:
            case "--add":
                add = True
            case "--remove":
                remove = True
            case "--force-remove":
                force = True
            case "-q" | "--":
                continue
            case "--refresh" | "--really-refresh":
                status = _refresh(repo, quiet="-q" in args)
            case "--assume-unchanged" | "--no-assume-unchanged" | "--skip-worktree" | "--no-skip-worktree":
                marking = word
            case "--chmod=+x" | "--chmod=-x":
                mode = 0o100755 if word.endswith("+x") else 0o100644
            case "--cacheinfo":
                parts = words.pop(0).split(",") if words and "," in words[0] else [words.pop(0) for _ in words[:3]]
                if len(parts) != 3:
                    raise GitError("option 'cacheinfo' expects <mode>,<sha1>,<path>", 129, "error: ")
                repo.index[parts[2]] = repo.bare_entry(parse_mode(parts[0]), parse_name(parts[1]))
            case _ if word.startswith("-"):
                raise GitError(f"unknown option `{word.lstrip('-')}'", 129, "error: ")
            case _ if marking is not None:
                _mark(repo, relative(repo, word), marking)
            case _:
                _update_one(repo, relative(repo, word), mode, add=add, remove=remove, force=force)
    repo.write_index()
    return status


def _refresh(repo: Repository, *, quiet: bool) -> int:
    """Note the times of files that are as they were; 1 if some are not."""
    changed = changed_files(repo)
    for path in changed:
        if not quiet:
            repo.process.print(f"{path}: needs update")
    return int(bool(changed))


def _mark(repo: Repository, path: str, marking: str) -> None:
    entry = repo.index.get(path)
    if not isinstance(entry, IndexEntry):
        raise GitError(f"Unable to mark file {path}")
    if "skip" in marking:
        entry.set_skip_worktree(not marking.startswith("--no-"))
    elif marking.startswith("--no-"):
        entry.flags &= ~FLAG_VALID
    else:
        entry.flags |= FLAG_VALID


def _update_one(repo: Repository, path: str, mode: int | None, *, add: bool, remove: bool, force: bool) -> None:
    stat = stat_of(repo, path)
    if force or (stat is None and remove):
        repo.index.pop(path, None)
        return
    if stat is None or (path not in repo.index and not add):
        reason = (
            "does not exist and --remove not passed"
            if stat is None
            else "cannot add to the index - missing --add option?"
        )
        raise GitError(f"{path}: {reason}\nfatal: Unable to process path {path}", 128, "error: ")
    stage(repo, path, mode)
