"""`git add`: files' present contents into the index."""

from __future__ import annotations

from dulwich.index import IndexEntry

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.diffs import compare
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.ignores import Ignores, find_untracked
from belljar.bin.git.repository.pathspec import match_paths, relative, restrict
from belljar.bin.git.repository.picking import STAGE, Picker, put_into_index
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.store import SUBMODULE
from belljar.bin.git.repository.work import differs, stage, stat_of, work_files


@dataclass(frozen=True, slots=True)
class AddOptions:
    all: bool = flag("-A", "--all", "--no-ignore-removal", "add changes from all tracked and untracked files")
    update: bool = flag("-u", "--update", "update tracked files")
    force: bool = flag("-f", "--force", "allow adding otherwise ignored files")
    dry_run: bool = flag("-n", "--dry-run", "dry run")
    verbose: bool = flag("-v", "--verbose", "be verbose")
    patch: bool = flag("-p", "--patch", "choose hunks")
    intent: bool = flag("-N", "--intent-to-add", "record only the fact that the path will be added later")


def add(repo: Repository, args: list[str]) -> int:
    options, specs = read_options(AddOptions, args)
    if options.patch:
        return stage_hunks(repo, specs)
    if not specs:
        if not (options.all or options.update):
            repo.process.error(
                "Nothing specified, nothing added.\nhint: Maybe you wanted to say 'git add .'?\n"
                'hint: Turn this message off by running\nhint: "git config advice.addEmptyPathspec false"\n'
            )
            return 0
        specs = [":/"]
    tracked = list(repo.index)
    untracked = [] if options.update else find_untracked(repo, everything=True, ignored=False)[0]
    ignores = Ignores(repo)
    chosen: list[str] = []
    refused: list[str] = []
    for spec in specs:
        found = match_paths(repo, [spec], tracked) + match_paths(repo, [spec], untracked)
        name = relative(repo, spec)
        stat = stat_of(repo, name) if name else None
        if not found and stat is not None:
            if _is_ignored(ignores, name, stat.is_dir):
                if options.force:
                    found = _all_below(repo, name) if stat.is_dir else [name]
                else:
                    refused.append(name)
            elif not stat.is_dir:
                found = [name]
        elif not found and name:
            raise GitError(f"pathspec '{spec}' did not match any files")
        chosen += found
    for path in sorted(set(chosen)):
        stat = stat_of(repo, path)
        entry = repo.index.get(path)
        link = isinstance(entry, IndexEntry) and entry.mode == SUBMODULE
        if stat is not None and stat.is_dir and link:
            stage(repo, path)
            continue
        if stat is None or stat.is_dir:
            if entry is not None:
                del repo.index[path]
                if options.verbose:
                    repo.process.print(f"remove '{path}'")
            continue
        if isinstance(entry, IndexEntry) and not differs(repo, path, entry, stat):
            continue
        if options.verbose or options.dry_run:
            repo.process.print(f"add '{path}'")
        if not options.dry_run:
            stage(repo, path)
    repo.write_index()
    if refused:
        repo.process.error(
            "The following paths are ignored by one of your .gitignore files:\n"
            + "".join(f"{name}\n" for name in refused)
            + "hint: Use -f if you really want to add them.\nhint: Turn this message off by running\n"
            'hint: "git config advice.addIgnoredFile false"\n'
        )
        return 1
    return 0


def stage_hunks(repo: Repository, specs: list[str]) -> int:
    """`add -p`: hunks of the work tree into the index."""
    new, contents = work_files(repo)
    old, new = restrict(repo, specs, repo.staged(), new)
    return put_into_index(repo, Picker(repo, STAGE).pick(compare(repo, old, new, contents, renames=False)))


def _is_ignored(ignores: Ignores, path: str, directory: bool) -> bool:
    parts = path.split("/")
    return any(
        ignores.ignored("/".join(parts[:end]), directory=directory or end < len(parts))
        for end in range(1, len(parts) + 1)
    )


def _all_below(repo: Repository, folder: str) -> list[str]:
    found: list[str] = []
    for entry in repo.process.fs.readdir(repo.path(folder)):
        repo.process.budget.charge()
        path = f"{folder.rstrip('/')}/{entry.name}"
        found += _all_below(repo, path) if entry.is_dir else [path]
    return found
