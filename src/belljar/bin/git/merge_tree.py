"""`git merge-tree`: what a merge would give, written as a tree and nothing else."""

from __future__ import annotations

from dulwich.objects import Blob

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import choice, flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.diffs import hunks, quote_path
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.merging import Names, merge_base, merge_texts, merge_trees
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, find_object


@dataclass(frozen=True, slots=True)
class Options:
    write: bool = flag("--write-tree", "do a real merge (as by default with two commits)")
    trivial: bool = flag("--trivial-merge", "only show what each side did to each file")
    messages: bool | None = choice({"--messages": True, "--no-messages": False}, "say what happened")
    null: bool = flag("-z", "separate with NUL")
    names: bool = flag("--name-only", "list only the names of files in conflict")
    unrelated: bool = flag("--allow-unrelated-histories", "allow merging unrelated histories")


def merge_tree(repo: Repository, args: list[str]) -> int:
    options, names = read_options(Options, args)
    if len(names) == 3 and not options.write:
        return _show_sides(repo, names)
    if len(names) != 2 or options.trivial:
        raise GitError("usage: git merge-tree [--write-tree] [<options>] <branch1> <branch2>", 129, "")
    first, second = (find_commit(repo, name) for name in names)
    base = merge_base(repo, first, second)
    if base is None and not options.unrelated:
        raise GitError("refusing to merge unrelated histories")
    merged = merge_trees(repo, repo.tree_of(base), repo.tree_of(first), repo.tree_of(second), names[0], names[1])
    files = dict(merged.files)
    for path, (_, data, mode) in merged.conflicts.items():
        files[path] = (mode, repo.store.add(Blob.from_string(data or b"")))
    end = "\0" if options.null else "\n"
    repo.process.print(repo.store.unflatten(files).decode(), end=end)
    for path, (entry, _, _) in merged.conflicts.items():
        shown = path if options.null else quote_path(path)
        if options.names:
            repo.process.print(shown, end=end)
            continue
        for stage, side in ((1, entry.ancestor), (2, entry.this), (3, entry.other)):
            if side is not None:
                repo.process.print(f"{side.mode:06o} {side.sha.decode()} {stage}\t{shown}", end=end)
    wanted = bool(merged.conflicts) if options.messages is None else options.messages
    if wanted:
        repo.process.print(end + "".join(line + end for line in merged.messages), end="")
    return int(bool(merged.conflicts))


def _show_sides(repo: Repository, names: list[str]) -> int:
    """The old form, of three trees: each file that the second side changed, and how it would be merged."""
    base, ours, theirs = (repo.tree_at(find_object(repo, name)) for name in names)
    for path in sorted(base.keys() | ours.keys() | theirs.keys()):
        repo.process.budget.charge()
        b, o, t = base.get(path), ours.get(path), theirs.get(path)
        if o == t or b == t:
            continue
        before, mine, other = (repo.contents(side) if side is not None else b"" for side in (b, o, t))
        if b == o and b is not None and t is not None:
            rows, merged = [("result", t), ("our", o)], other
            title = "merged"
        else:
            rows = [("base", b), ("our", o), ("their", t)]
            merged = merge_texts(repo.process, before, mine, other, Names(".our", ".their"))[0]
            if t is None or o is None:
                merged = mine if t is None and b != o else other if o is None else b""
            title = _title(b is not None, o is not None, t is not None)
        repo.process.print(title)
        for word, side in rows:
            if side is not None:
                repo.process.print(f"  {word:<6} {side[0]:06o} {side[1].decode()} {path}")
        repo.process.stdout.write(hunks(repo.process, mine, merged))
    return 0


def _title(base: bool, ours: bool, theirs: bool) -> str:
    if not base:
        return "added in both" if ours and theirs else "added in remote" if theirs else "added in local"
    return "changed in both" if ours and theirs else "removed in local" if theirs else "removed in remote"
