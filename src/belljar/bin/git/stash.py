"""`git stash`: changes put away as commits, and brought back."""

from __future__ import annotations

from dulwich.objects import Blob

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import parse, read_options
from belljar.bin.git.checkout import checkout
from belljar.bin.git.repository.diff_output import DiffOptions, show_pairs, wants_form
from belljar.bin.git.repository.diffs import compare
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.ignores import find_untracked
from belljar.bin.git.repository.merging import apply_merge, merge_trees
from belljar.bin.git.repository.pathspec import match_paths
from belljar.bin.git.repository.repo import Repository, mode_of
from belljar.bin.git.repository.revisions import find_commit
from belljar.bin.git.repository.status import compute_status
from belljar.bin.git.repository.status_text import long_status
from belljar.bin.git.repository.store import Flat
from belljar.bin.git.repository.text import commit_subject
from belljar.bin.git.repository.work import changed_files, refusal, remove_file, stat_of, write_file


def stash(repo: Repository, args: list[str]) -> int:
    verb = args[0] if args and not args[0].startswith("-") else "push"
    rest = args[1:] if args and not args[0].startswith("-") else args
    match verb:
        case "push" | "save":
            return _push(repo, rest, saving=verb == "save")
        case "list":
            for number, (_, _, _, message) in enumerate(reversed(repo.refs.read_log("refs/stash"))):
                repo.process.print(f"stash@{{{number}}}: {message}")
            return 0
        case "pop" | "apply":
            return _apply(repo, rest, drop=verb == "pop")
        case "drop":
            return _drop(repo, _number(rest), quiet="-q" in rest)
        case "branch":
            return _branch(repo, rest)
        case "create":
            if (made := create_stash(repo, " ".join(rest))) is not None:
                repo.process.print(made.decode())
            return 0
        case "store":
            return _store(repo, rest)
        case "clear":
            repo.refs.delete("refs/stash")
            return 0
        case "show":
            sha = _entry(repo, _number(rest))
            parent = bytes(repo.store.commit(sha).parents[0])
            extra = {"-u": "both", "--include-untracked": "both", "--only-untracked": "only"}
            which = next((extra[word] for word in reversed(rest) if word in extra), "")
            parsed = parse(DiffOptions, [word for word in rest if word not in extra and not _is_entry(word)])
            options = DiffOptions(**parsed.values)
            parents = repo.store.commit(sha).parents
            old, new = ({}, {}) if which == "only" else (repo.tree_of(parent), repo.tree_of(sha))
            if which and len(parents) > 2:
                new = {**new, **repo.tree_of(bytes(parents[2]))}
            if not wants_form(options):
                options = DiffOptions(**{**parsed.values, "stat": ""})
            show_pairs(repo, compare(repo, old, new), options)
            return 0
    raise GitError(f"subcommand wasn't specified; 'push' can't be assumed due to unexpected token '{verb}'")


def _is_entry(word: str) -> bool:
    return word.startswith("stash@{") or word.isdecimal()


def _number(args: list[str]) -> int:
    for arg in args:
        digits = arg.removeprefix("stash@{").rstrip("}")
        if digits.isdecimal():
            return int(digits[:18])
    return 0


def _entry(repo: Repository, number: int) -> bytes:
    entries = repo.refs.read_log("refs/stash")
    if not entries:
        raise GitError("No stash entries found.", 1, "")
    if number >= len(entries):
        raise GitError(f"log for 'stash' only has {len(entries)} entries")
    return entries[-1 - number][1]


@dataclass(frozen=True, slots=True)
class PushOptions:
    message: str | None = value("-m", "--message", "stash message", metavar="MESSAGE")
    untracked: bool = flag("-u", "--include-untracked", "include untracked files")
    keep: bool = flag("-k", "--keep-index", "keep index")
    no_keep: bool = flag("--no-keep-index", "don't keep it (as by default)")
    staged: bool = flag("-S", "--staged", "stash only what is staged")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    all: bool = flag("-a", "--all", "include ignored files")


def _push(repo: Repository, args: list[str], *, saving: bool) -> int:
    options, operands = read_options(PushOptions, args)
    message = options.message or (" ".join(operands) if saving and operands else None)
    specs = [] if saving else operands
    head = repo.head()
    if head is None:
        raise GitError("You do not have the initial commit yet", 1, "")
    if repo.conflicts():
        for path in repo.conflicts():
            repo.process.print(f"{path}: needs merge")
        return 1
    index, head_tree = repo.staged(), repo.head_tree()
    changed = {} if options.staged else changed_files(repo)
    staged = {path for path in index.keys() | head_tree.keys() if index.get(path) != head_tree.get(path)}
    extra: list[str] = []
    if options.untracked or options.all:
        found, hidden = find_untracked(repo, everything=True, ignored=options.all)
        extra = found + hidden
    if specs:
        known = [*index, *head_tree, *extra]
        for spec in specs:
            if not match_paths(repo, [spec], known):
                raise GitError(
                    f"pathspec ':(,prefix:0){spec}' did not match any file(s) known to git\n"
                    "Did you forget to 'git add'?",
                    1,
                    "error: ",
                )
        named = set(match_paths(repo, specs, known))
        changed = {path: letter for path, letter in changed.items() if path in named}
        staged &= named
        extra = [path for path in extra if path in named]
    if not staged and not changed and not extra:
        if not options.quiet:
            repo.process.print("No local changes to save")
        return 0
    sha, title = _make(repo, head, message, Parts(staged, changed, extra, whole=not specs))
    repo.refs.set("refs/stash", sha, title, repo.signature())
    repo.refs.log("HEAD", head, head, "reset: moving to HEAD", repo.signature())
    touched = staged | changed.keys()
    after = index if options.keep else head_tree
    _put_back(repo, touched, after)
    for path in extra:
        remove_file(repo, path)
    if not options.quiet:
        repo.process.print(f"Saved working directory and index state {title}")
    return 0


@dataclass(frozen=True, slots=True)
class Parts:
    """The contents of a stash."""

    staged: set[str]
    changed: dict[str, str]
    extra: list[str]
    whole: bool
    """Whether nothing was left out by paths."""


def create_stash(repo: Repository, message: str | None = None) -> bytes | None:
    """The commit of a stash of all tracked changes, which stay as they are; None if there are none."""
    head = repo.head()
    index, head_tree = repo.staged(), repo.head_tree()
    staged = {path for path in index.keys() | head_tree.keys() if index.get(path) != head_tree.get(path)}
    changed = changed_files(repo)
    if head is None or not (staged or changed):
        return None
    return _make(repo, head, message or None, Parts(staged, changed, [], whole=True))[0]


def _store(repo: Repository, args: list[str]) -> int:
    parsed = parse(PushOptions, args)
    if len(parsed.operands) != 1:
        raise GitError('"git stash store" requires one <commit> argument', 1, "")
    sha = find_commit(repo, parsed.operands[0])
    title = PushOptions(**parsed.values).message or 'Created via "git stash store".'
    repo.refs.set("refs/stash", sha, title, repo.signature())
    return 0


def _make(repo: Repository, head: bytes, message: str | None, parts: Parts) -> tuple[bytes, str]:
    """Write the commits of a stash; its name and title."""
    staged, changed, extra = parts.staged, parts.changed, parts.extra
    index, head_tree = repo.staged(), repo.head_tree()
    branch = repo.refs.branch()
    name = branch.removeprefix("refs/heads/") if branch else "(no branch)"
    base = f"{name}: {head[:7].decode()} {commit_subject(repo, head)}"
    kept_index = {path: e for path, e in index.items() if path in staged or path in head_tree}
    if not parts.whole:
        # What is not named is in the stash as it is in HEAD.
        kept_index = {path: e for path, e in head_tree.items() if path not in staged}
        kept_index |= {path: index[path] for path in staged if path in index}
    work = dict(kept_index)
    for path, letter in changed.items():
        stat = stat_of(repo, path)
        if letter == "D" or stat is None:
            work.pop(path, None)
        else:
            work[path] = (mode_of(stat), repo.store.add(Blob.from_string(repo.read_work(path, stat))))
    parents = [head, repo.make_commit(repo.store.unflatten(kept_index), [head], f"index on {base}\n")]
    if extra:
        files: Flat = {}
        for path in extra:
            stat = stat_of(repo, path)
            assert stat is not None
            files[path] = (mode_of(stat), repo.store.add(Blob.from_string(repo.read_work(path, stat))))
        parents.append(repo.make_commit(repo.store.unflatten(files), [], f"untracked files on {base}\n"))
    title = f"On {name}: {message}" if message else f"WIP on {base}"
    sha = repo.make_commit(repo.store.unflatten(work), parents, title)
    return sha, title


def _put_back(repo: Repository, paths: set[str], tree: Flat) -> None:
    """Files and their entries in the index as a tree has them."""
    for path in sorted(paths):
        repo.process.budget.charge()
        if path not in tree:
            remove_file(repo, path)
            repo.index.pop(path, None)
            continue
        mode, sha = tree[path]
        repo.index[path] = repo.entry(write_file(repo, path, mode, repo.contents((mode, sha))), mode, sha)
    repo.write_index()


def _branch(repo: Repository, args: list[str]) -> int:
    """A branch from where the stash was made, with the stash on it."""
    if not args:
        raise GitError("No branch name specified", 1, "")
    sha = _entry(repo, _number(args[1:]))
    start = bytes(repo.store.commit(sha).parents[0])
    checkout(repo, ["-b", args[0], start.decode()])
    return _apply(repo, [*args[1:], "--index"], drop=True)


def _apply(repo: Repository, args: list[str], *, drop: bool) -> int:
    number = _number(args)
    named = next((arg for arg in args if len(arg) >= 7 and not arg.startswith(("-", "stash@"))), None)
    sha = find_commit(repo, named) if named is not None and not named.isdecimal() else _entry(repo, number)
    status = apply_stash(repo, sha, index="--index" in args)
    quiet = "-q" in args or "--quiet" in args
    if status is None:
        repo.process.print(long_status(repo, compute_status(repo)), end="")
        if drop:
            repo.process.print("The stash entry is kept in case you need it again.")
        return 1
    if not quiet:
        repo.process.print(long_status(repo, compute_status(repo)), end="")
    if status:
        if drop:
            repo.process.print("The stash entry is kept in case you need it again.")
        return 1
    return _drop(repo, number, quiet=quiet) if drop else 0


def apply_stash(repo: Repository, sha: bytes, *, index: bool = False) -> int | None:
    """Put a stash back: 1 with conflicts, None if local changes are in the way. `index`: staged changes, too."""
    saved = repo.store.commit(sha)
    base = repo.tree_of(bytes(saved.parents[0]))
    ours = repo.staged()
    merged = merge_trees(repo, base, ours, repo.tree_of(sha), "Updated upstream", "Stashed changes")
    blocked = [p for p in changed_files(repo) if p in merged.conflicts or merged.files.get(p) != ours.get(p)]
    if blocked:
        repo.process.error(refusal(blocked, [], "merge").message + "\n")
        return None
    if len(saved.parents) > 2 and not merged.conflicts and repo.tree_of(sha) == base:
        repo.process.print("Already up to date.")
    before = dict(repo.index)
    apply_merge(repo, ours, merged)
    for line in merged.messages:
        repo.process.print(line)
    if not merged.conflicts:
        # What was only in the work tree is so again; new files stay staged.
        entries = repo.index
        for path in list(entries):
            if path in before:
                entries[path] = before[path]
        for path, entry in before.items():
            entries.setdefault(path, entry)
        if index:
            kept = repo.tree_of(bytes(saved.parents[1]))
            for path in kept.keys() | base.keys():
                if kept.get(path) == base.get(path):
                    continue
                if path in kept:
                    entries[path] = repo.bare_entry(*kept[path])
                else:
                    entries.pop(path, None)
        repo.write_index()
    if len(saved.parents) > 2:
        for path, (mode, blob) in repo.tree_of(bytes(saved.parents[2])).items():
            write_file(repo, path, mode, repo.store.blob(blob))
    return int(bool(merged.conflicts))


def _drop(repo: Repository, number: int, *, quiet: bool = False) -> int:
    sha = _entry(repo, number)
    entries = repo.refs.read_log("refs/stash")
    del entries[-1 - number]
    if entries:
        repo.refs.write("refs/stash", entries[-1][1].decode())
        repo.refs.write_log("refs/stash", entries)
    else:
        repo.refs.delete("refs/stash")
    if not quiet:
        repo.process.print(f"Dropped refs/stash@{{{number}}} ({sha.decode()})")
    return 0
