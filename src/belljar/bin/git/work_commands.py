"""git's commands on the work tree and the index: init, add, rm, mv, status, commit, restore, reset, clean, stash ..."""

from __future__ import annotations

import re
from contextlib import suppress

from dulwich.index import ConflictedIndexEntry, IndexEntry
from dulwich.objects import Blob

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import choice, count, flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin.git.diffs import compare, mode_lines, quote_path, stat_text
from belljar.bin.git.errors import GitError
from belljar.bin.git.history import subject_of, text_of
from belljar.bin.git.merging import ancestors
from belljar.bin.git.repo import Repository, mode_of
from belljar.bin.git.store import Flat
from belljar.bin.git.work import (
    Ignores,
    Status,
    changed_files,
    check_out,
    compute_status,
    differs,
    find_untracked,
    match_paths,
    relative,
    remove_file,
    stat_of,
    write_file,
)
from belljar.kernel.process import Process

_HINT = """\
hint: Using 'master' as the name for the initial branch. This default branch name
hint: is subject to change. To configure the initial branch name to use in all
hint: of your new repositories, which will suppress this warning, call:
hint: {empty}
hint: \tgit config --global init.defaultBranch <name>
hint: {empty}
hint: Names commonly chosen instead of 'master' are 'main', 'trunk' and
hint: 'development'. The just-created branch can be renamed via this command:
hint: {empty}
hint: \tgit branch -m <name>
"""


@dataclass(frozen=True, slots=True)
class InitOptions:
    quiet: bool = flag("-q", "--quiet", "be quiet")
    bare: bool = flag("--bare", "create a bare repository")
    branch: str | None = value("-b", "--initial-branch", "the initial branch", metavar="NAME")


def init(process: Process, args: list[str], settings: list[tuple[str, str]]) -> int:
    parsed = parse(InitOptions, args)
    options = InitOptions(**parsed.values)
    path = process.absolute(parsed.operands[0]) if parsed.operands else process.fs.getcwd()
    existed = make_repository(process, path, settings, bare=options.bare, branch=options.branch, quiet=options.quiet)
    if not options.quiet:
        folder = path if options.bare else f"{path.rstrip('/')}/.git"
        verb = "Reinitialized existing" if existed else "Initialized empty"
        process.print(f"{verb} Git repository in {folder}/")
    return 0


def make_repository(
    process: Process, path: str, settings: list[tuple[str, str]], *, bare: bool, branch: str | None, quiet: bool
) -> bool:
    """Lay out a repository; True if there was one."""
    folder = path if bare else f"{path.rstrip('/')}/.git"
    make_folders(process, folder)
    existed = True
    try:
        process.fs.stat(f"{folder}/HEAD")
    except SysError:
        existed = False
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags", "info", "hooks", "branches"):
        make_folders(process, f"{folder}/{name}")
    if existed:
        return True
    repo = Repository(process, "" if bare else path, folder, settings)
    first = branch or repo.config("init.defaultBranch")
    if first is None and not quiet:
        process.error(_HINT.format(empty=""))
    name = first or "master"
    process.write_file(f"{folder}/HEAD", f"ref: refs/heads/{name}\n".encode())
    text = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n"
    text += f"\tbare = {'true' if bare else 'false'}\n" + ("" if bare else "\tlogallrefupdates = true\n")
    process.write_file(f"{folder}/config", text.encode())
    process.write_file(
        f"{folder}/description", b"Unnamed repository; edit this file 'description' to name the repository.\n"
    )
    process.write_file(f"{folder}/info/exclude", b"# git ls-files --others --exclude-from=.git/info/exclude\n")
    return False


def make_folders(process: Process, path: str) -> None:
    try:
        process.fs.stat(path)
    except SysError:
        above = path.rstrip("/").rpartition("/")[0]
        if above:
            make_folders(process, above)
        process.fs.mkdir(path)


# add, rm, mv


@dataclass(frozen=True, slots=True)
class AddOptions:
    all: bool = flag("-A", "--all", "--no-ignore-removal", "add changes from all tracked and untracked files")
    update: bool = flag("-u", "--update", "update tracked files")
    force: bool = flag("-f", "--force", "allow adding otherwise ignored files")
    dry_run: bool = flag("-n", "--dry-run", "dry run")
    verbose: bool = flag("-v", "--verbose", "be verbose")
    intent: bool = flag("-N", "--intent-to-add", "record only the fact that the path will be added later")


def add(repo: Repository, args: list[str]) -> int:
    parsed = parse(AddOptions, args)
    options, specs = AddOptions(**parsed.values), parsed.operands
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


def stage(repo: Repository, path: str) -> None:
    """Put a file's present contents into the index."""
    stat = stat_of(repo, path)
    assert stat is not None
    blob = Blob.from_string(repo.read_work(path, stat))
    for folder in [p for p in repo.index if p.startswith(path + "/")]:
        del repo.index[folder]
    repo.index[path] = repo.entry(stat, mode_of(stat), repo.store.add(blob))


@dataclass(frozen=True, slots=True)
class RmOptions:
    cached: bool = flag("--cached", "only remove from the index")
    force: bool = flag("-f", "--force", "override the up-to-date check")
    recursive: bool = flag("-r", "allow recursive removal")
    quiet: bool = flag("-q", "--quiet", "do not list removed files")
    dry_run: bool = flag("-n", "--dry-run", "dry run")
    ignore: bool = flag("--ignore-unmatch", "exit with a zero status even if nothing matched")


def rm(repo: Repository, args: list[str]) -> int:
    parsed = parse(RmOptions, args)
    options = RmOptions(**parsed.values)
    if not parsed.operands:
        raise GitError("No pathspec was given. Which files should I remove?")
    chosen: list[str] = []
    for spec in parsed.operands:
        found = match_paths(repo, [spec], list(repo.index))
        name = relative(repo, spec)
        if not found:
            if options.ignore:
                continue
            raise GitError(f"pathspec '{spec}' did not match any files")
        if name not in found and not options.recursive and not any(char in spec for char in "*?["):
            raise GitError(f"not removing '{spec}' recursively without -r")
        chosen += found
    head = repo.head_tree()
    if not options.force:
        _check_removal(repo, chosen, head, cached=options.cached)
    for path in sorted(set(chosen)):
        if not options.quiet:
            repo.process.print(f"rm '{path}'")
        if options.dry_run:
            continue
        del repo.index[path]
        if not options.cached:
            remove_file(repo, path)
    if not options.dry_run:
        repo.write_index()
    return 0


def _check_removal(repo: Repository, chosen: list[str], head: Flat, *, cached: bool) -> None:
    both, staged, local = [], [], []
    for path in chosen:
        entry, stat = repo.index[path], stat_of(repo, path)
        if not isinstance(entry, IndexEntry) or stat is None:
            continue
        in_head = head.get(path) == (entry.mode, bytes(entry.sha))
        dirty = differs(repo, path, entry, stat)
        if dirty and not in_head:
            both.append(path)
        elif not cached and not in_head:
            staged.append(path)
        elif not cached and dirty:
            local.append(path)
    for names, what, hint in (
        (both, "staged content different from both the\nfile and the HEAD", "use -f to force removal"),
        (staged, "changes staged in the index", "use --cached to keep the file, or -f to force removal"),
        (local, "local modifications", "use --cached to keep the file, or -f to force removal"),
    ):
        if names:
            have = "file has" if len(names) == 1 else "files have"
            listed = "".join(f"    {name}\n" for name in names)
            raise GitError(f"the following {have} {what}:\n{listed}({hint})", 1, "error: ")


def mv(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        force: bool = flag("-f", "--force", "force move/rename even if target exists")
        skip: bool = flag("-k", "skip move/rename errors")
        verbose: bool = flag("-v", "--verbose", "be verbose")
        dry_run: bool = flag("-n", "--dry-run", "dry run")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    if len(parsed.operands) < 2:
        raise GitError("usage: git mv [<options>] <source>... <destination>", 129, "")
    *sources, destination = parsed.operands
    target = relative(repo, destination)
    stat = stat_of(repo, target) if target else None
    into = not target or (stat is not None and stat.is_dir)
    for source in sources:
        name = relative(repo, source)
        new = f"{target}/{name.rpartition('/')[2]}".lstrip("/") if into else target
        moved = [path for path in repo.index if path == name or path.startswith(name + "/")]
        if stat_of(repo, name) is None:
            raise GitError(f"bad source, source={name}, destination={new}")
        if not moved:
            raise GitError(f"not under version control, source={name}, destination={new}")
        if stat_of(repo, new) is not None and not options.force:
            raise GitError(f"destination exists, source={name}, destination={new}")
        if options.verbose or options.dry_run:
            repo.process.print(f"Renaming {name} to {new}")
        if options.dry_run:
            continue
        repo.process.fs.rename(repo.path(name), repo.path(new))
        for path in moved:
            repo.index[new + path[len(name) :]] = repo.index.pop(path)
    repo.write_index()
    return 0


# status


@dataclass(frozen=True, slots=True)
class StatusOptions:
    short: bool = flag("-s", "--short", "show status concisely")
    branch: bool = flag("-b", "--branch", "show branch information")
    porcelain: str | None = value("--porcelain", "machine-readable output", metavar="VERSION", bare="v1")
    untracked: str = value(
        "-u", "--untracked-files", "show untracked files", metavar="MODE", default="normal", bare="all"
    )
    ignored: str | None = value("--ignored", "show ignored files", metavar="MODE", bare="traditional")
    null: bool = flag("-z", "terminate entries with NUL")
    long: bool = flag("--long", "show status in long format")


def status(repo: Repository, args: list[str]) -> int:
    parsed = parse(StatusOptions, args)
    options = StatusOptions(**parsed.values)
    found = compute_status(repo, untracked=options.untracked, ignored=options.ignored is not None)
    if parsed.operands:
        for table in (found.staged, found.changed, found.unmerged):
            keep = set(match_paths(repo, parsed.operands, list(table)))
            for path in [path for path in table if path not in keep]:
                del table[path]
        found.untracked = match_paths(repo, parsed.operands, found.untracked)
    if options.porcelain in ("v2", "2"):
        text = machine_status(repo, found, branch=options.branch, end="\0" if options.null else "\n")
        repo.process.stdout.write(text.encode("utf-8", "surrogateescape"))
    elif options.short or options.porcelain is not None or options.null:
        repo.process.stdout.write(
            short_status(repo, found, branch=options.branch, end="\0" if options.null else "\n").encode(
                "utf-8", "surrogateescape"
            )
        )
    else:
        repo.process.print(long_status(repo, found, hidden=options.untracked == "no"), end="")
    return 0


_CONFLICTS = {
    (True, True, True): ("UU", "both modified"),
    (False, True, True): ("AA", "both added"),
    (True, False, True): ("DU", "deleted by us"),
    (True, True, False): ("UD", "deleted by them"),
    (False, True, False): ("AU", "added by us"),
    (False, False, True): ("UA", "added by them"),
    (True, False, False): ("DD", "both deleted"),
}


def conflict_kind(entry: ConflictedIndexEntry) -> tuple[str, str]:
    return _CONFLICTS[(entry.ancestor is not None, entry.this is not None, entry.other is not None)]


def _staged_pairs(repo: Repository, found: Status) -> list[tuple[str, str, str]]:
    """Letter, old name, new name; renames recognised."""
    head, index = repo.head_tree(), repo.staged()
    old = {path: head[path] for path in found.staged if path in head}
    new = {path: index[path] for path in found.staged if path in index}
    return [
        (pair.letter[0], str(pair.old) if pair.old is not None else pair.path, pair.path)
        for pair in compare(repo, old, new)
    ]


def short_status(repo: Repository, found: Status, *, branch: bool, end: str = "\n") -> str:
    rows: dict[str, str] = {}
    for letter, old, new in _staged_pairs(repo, found):
        name = f"{quote_path(old)} -> {quote_path(new)}" if letter == "R" and end == "\n" else quote_path(new)
        rows[new] = f"{letter}{found.changed.get(new, ' ')} {name}"
    for path, letter in found.changed.items():
        if path not in rows:
            rows[path] = f" {letter} {quote_path(path)}"
    for path, entry in found.unmerged.items():
        rows[path] = f"{conflict_kind(entry)[0]} {quote_path(path)}"
    out = [rows[path] for path in sorted(rows)]
    out += [f"?? {quote_path(path)}" for path in found.untracked] + [f"!! {quote_path(p)}" for p in found.ignored]
    if branch:
        out.insert(0, _branch_line(repo))
    return "".join(line + end for line in out)


def machine_status(repo: Repository, found: Status, *, branch: bool, end: str) -> str:
    """--porcelain=v2: modes and objects of each side."""
    out: list[str] = []
    if branch:
        head, name = repo.head(), repo.refs.branch()
        out.append(f"# branch.oid {head.decode() if head else '(initial)'}")
        out.append(f"# branch.head {name.removeprefix('refs/heads/') if name else '(detached)'}")
        upstream = repo.upstream(name.removeprefix("refs/heads/")) if name else None
        if upstream is not None:
            out.append(f"# branch.upstream {upstream.removeprefix('refs/remotes/')}")
            if repo.refs.get(upstream) is not None:
                ahead, behind = divergence(repo, upstream)
                out.append(f"# branch.ab +{ahead} -{behind}")
    tree, index = repo.head_tree(), repo.staged()
    absent = (0, b"0" * 40)
    rows: dict[str, str] = {}
    renames = {new: (letter, old) for letter, old, new in _staged_pairs(repo, found)}
    for path in renames.keys() | found.changed.keys():
        letter, old = renames.get(path, (".", path))
        stat = stat_of(repo, path)
        worktree = mode_of(stat) if stat is not None else 0
        before, now = tree.get(old, absent), index.get(path, absent)
        shown = quote_path(path) if end == "\n" else path
        sides = f"N... {before[0]:06o} {now[0]:06o} {worktree if path in index else 0:06o}"
        objects = f"{before[1].decode()} {now[1].decode()}"
        state = f"{letter}{found.changed.get(path, '.')}"
        if letter == "R":
            score = next(p.similarity for p in compare(repo, {old: before}, {path: now}))
            gap = "\t" if end == "\n" else "\0"
            was = quote_path(old) if end == "\n" else old
            rows[path] = f"2 {state} {sides} {objects} R{score} {shown}{gap}{was}"
        else:
            rows[path] = f"1 {state} {sides} {objects} {shown}"
    for path, entry in found.unmerged.items():
        stat = stat_of(repo, path)
        items = (entry.ancestor, entry.this, entry.other)
        modes = " ".join(f"{item.mode if item else 0:06o}" for item in items)
        names = " ".join((bytes(item.sha) if item else b"0" * 40).decode() for item in items)
        worktree = mode_of(stat) if stat is not None else 0
        rows[path] = f"u {conflict_kind(entry)[0]} N... {modes} {worktree:06o} {names} {quote_path(path)}"
    kinds = ("1", "2", "u")
    out += [rows[path] for path in sorted(rows, key=lambda path: (rows[path][0] == kinds[2], path))]
    out += [f"? {quote_path(path)}" for path in found.untracked] + [f"! {quote_path(p)}" for p in found.ignored]
    return "".join(line + end for line in out)


def _branch_line(repo: Repository) -> str:
    name = repo.refs.branch()
    if name is None:
        return "## HEAD (no branch)"
    short = name.removeprefix("refs/heads/")
    if repo.head() is None:
        return f"## No commits yet on {short}"
    upstream = repo.upstream(short)
    if upstream is None:
        return f"## {short}"
    text = f"## {short}...{upstream.removeprefix('refs/remotes/')}"
    ahead, behind = divergence(repo, upstream)
    parts = [f"ahead {ahead}"] * bool(ahead) + [f"behind {behind}"] * bool(behind)
    return f"{text} [{', '.join(parts)}]" if parts else text


def divergence(repo: Repository, upstream: str) -> tuple[int, int]:
    """How many commits we have that it has not, and the other way."""
    head, other = repo.head(), repo.refs.get(upstream)
    if head is None or other is None:
        return 0, 0
    ours, theirs = ancestors(repo, head), ancestors(repo, other)
    return len(ours - theirs), len(theirs - ours)


_STAGED_WORDS = {"A": "new file", "M": "modified", "D": "deleted", "T": "typechange", "R": "renamed"}


def long_status(repo: Repository, found: Status, *, hidden: bool = False) -> str:
    """`hidden`: untracked files were not looked for."""
    out: list[str] = []
    branch = repo.refs.branch()
    head = repo.head()
    if (rebasing := _rebasing(repo, unmerged=bool(found.unmerged))) is not None:
        out.append(rebasing)
    elif branch is None:
        out.append(f"HEAD detached at {head[:7].decode() if head else ''}\n")
    else:
        out.append(f"On branch {branch.removeprefix('refs/heads/')}\n")
        out.append(_tracking(repo, branch.removeprefix("refs/heads/")))
    merging = _exists(repo, "MERGE_HEAD")
    picking = _exists(repo, "CHERRY_PICK_HEAD")
    if merging and found.unmerged:
        out.append('You have unmerged paths.\n  (fix conflicts and run "git commit")\n')
        out.append('  (use "git merge --abort" to abort the merge)\n\n')
    elif merging:
        out.append('All conflicts fixed but you are still merging.\n  (use "git commit" to conclude merge)\n\n')
    elif picking:
        sha = repo.process.read_file(f"{repo.git}/CHERRY_PICK_HEAD").decode()[:7]
        out.append(f"You are currently cherry-picking commit {sha}.\n")
        if found.unmerged:
            out.append('  (fix conflicts and run "git cherry-pick --continue")\n')
        else:
            out.append('  (all conflicts fixed: run "git cherry-pick --continue")\n')
        out.append('  (use "git cherry-pick --skip" to skip this patch)\n')
        out.append('  (use "git cherry-pick --abort" to cancel the cherry-pick operation)\n\n')
    if head is None:
        out.append("\nNo commits yet\n\n")
    unstage = (
        '(use "git rm --cached <file>..." to unstage)'
        if head is None
        else '(use "git restore --staged <file>..." to unstage)'
    )
    if found.staged:
        out.append("Changes to be committed:\n" + ("" if merging else f"  {unstage}\n"))
        for letter, old, new in _staged_pairs(repo, found):
            name = f"{quote_path(old)} -> {quote_path(new)}" if letter == "R" else quote_path(new)
            out.append(f"\t{_STAGED_WORDS[letter] + ':':<12}{name}\n")
        out.append("\n")
    if found.unmerged:
        kinds = {conflict_kind(entry)[0] for entry in found.unmerged.values()}
        verb = "add/rm" if kinds & {"UD", "DU", "DD"} else "add"
        out.append("Unmerged paths:\n")
        if not merging and not picking:
            out.append(f"  {unstage}\n")
        if verb == "add/rm":
            out.append('  (use "git add/rm <file>..." as appropriate to mark resolution)\n')
        else:
            out.append('  (use "git add <file>..." to mark resolution)\n')
        for path, entry in found.unmerged.items():
            out.append(f"\t{conflict_kind(entry)[1] + ':':<17}{quote_path(path)}\n")
        out.append("\n")
    if found.changed:
        verb = "add/rm" if "D" in found.changed.values() else "add"
        out.append(f'Changes not staged for commit:\n  (use "git {verb} <file>..." to update what will be committed)\n')
        out.append('  (use "git restore <file>..." to discard changes in working directory)\n')
        for path, letter in found.changed.items():
            out.append(f"\t{_STAGED_WORDS[letter] + ':':<12}{quote_path(path)}\n")
        out.append("\n")
    if found.untracked:
        out.append('Untracked files:\n  (use "git add <file>..." to include in what will be committed)\n')
        out += [f"\t{quote_path(path)}\n" for path in found.untracked]
        out.append("\n")
    if found.ignored:
        out.append('Ignored files:\n  (use "git add -f <file>..." to include in what will be committed)\n')
        out += [f"\t{quote_path(path)}\n" for path in found.ignored]
        out.append("\n")
    if not found.staged:
        if found.changed or found.unmerged:
            out.append('no changes added to commit (use "git add" and/or "git commit -a")\n')
        elif found.untracked:
            out.append('nothing added to commit but untracked files present (use "git add" to track)\n')
        elif head is None:
            out.append('nothing to commit (create/copy files and use "git add" to track)\n')
        elif not merging and hidden:
            out.append("nothing to commit (use -u to show untracked files)\n")
        elif not merging:
            out.append("nothing to commit, working tree clean\n")
    return "".join(out)


def _rebasing(repo: Repository, *, unmerged: bool) -> str | None:
    state = f"{repo.git}/rebase-merge"
    try:
        onto, name, done, todo = (
            text_of(repo.process.read_file(f"{state}/{file}")).strip()
            for file in ("onto", "head-name", "done", "git-rebase-todo")
        )
    except SysError:
        return None
    out = [f"interactive rebase in progress; onto {onto[:7]}\n"]
    made, left = [line for line in done.split("\n") if line], [line for line in todo.split("\n") if line]
    if made:
        s = "" if len(made) == 1 else "s"
        out.append(f"Last command{s} done ({len(made)} command{s} done):\n")
        out += [f"   {line}\n" for line in made[-2:]]
        if len(made) > 2:
            out.append("  (see more in file .git/rebase-merge/done)\n")
    if left:
        s = "" if len(left) == 1 else "s"
        out.append(f"Next command{s} to do ({len(left)} remaining command{s}):\n")
        out += [f"   {line}\n" for line in left[:2]]
        out.append('  (use "git rebase --edit-todo" to view and edit)\n')
    else:
        out.append("No commands remaining.\n")
    branch = name.removeprefix("refs/heads/")
    if made and made[-1].startswith("edit ") and not unmerged:
        out.append(f"You are currently editing a commit while rebasing branch '{branch}' on '{onto[:7]}'.\n")
        out.append('  (use "git commit --amend" to amend the current commit)\n')
        out.append('  (use "git rebase --continue" once you are satisfied with your changes)\n\n')
        return "".join(out)
    out.append(f"You are currently rebasing branch '{branch}' on '{onto[:7]}'.\n")
    if unmerged:
        out.append('  (fix conflicts and then run "git rebase --continue")\n')
        out.append('  (use "git rebase --skip" to skip this patch)\n')
        out.append('  (use "git rebase --abort" to check out the original branch)\n\n')
    else:
        out.append('  (all conflicts fixed: run "git rebase --continue")\n\n')
    return "".join(out)


def _tracking(repo: Repository, branch: str) -> str:
    upstream = repo.upstream(branch)
    if upstream is None or repo.head() is None:
        return ""
    name = upstream.removeprefix("refs/remotes/")
    if repo.refs.get(upstream) is None:
        return (
            f"Your branch is based on '{name}', but the upstream is gone.\n"
            '  (use "git branch --unset-upstream" to fixup)\n\n'
        )
    ahead, behind = divergence(repo, upstream)
    if not ahead and not behind:
        return f"Your branch is up to date with '{name}'.\n\n"
    if not behind:
        return (
            f"Your branch is ahead of '{name}' by {ahead} commit{'s' if ahead > 1 else ''}.\n"
            '  (use "git push" to publish your local commits)\n\n'
        )
    if not ahead:
        return (
            f"Your branch is behind '{name}' by {behind} commit{'s' if behind > 1 else ''}, "
            "and can be fast-forwarded.\n"
            '  (use "git pull" to update your local branch)\n\n'
        )
    return (
        f"Your branch and '{name}' have diverged,\n"
        f"and have {ahead} and {behind} different commits each, respectively.\n"
        '  (use "git pull" to merge the remote branch into yours)\n\n'
    )


tracking_text = _tracking


def _exists(repo: Repository, name: str) -> bool:
    try:
        repo.process.fs.stat(f"{repo.git}/{name}")
    except SysError:
        return False
    return True


# commit


@dataclass(frozen=True, slots=True)
class CommitOptions:
    message: tuple[str, ...] = many("-m", "--message", "commit message", metavar="MESSAGE")
    file: str | None = value("-F", "--file", "read message from file", metavar="FILE")
    all: bool = flag("-a", "--all", "commit all changed files")
    amend: bool = flag("--amend", "amend previous commit")
    allow_empty: bool = flag("--allow-empty", "ok to record an empty change")
    allow_empty_message: bool = flag("--allow-empty-message", "ok to record a change with an empty message")
    no_edit: bool = flag("--no-edit", "use the message as it is")
    quiet: bool = flag("-q", "--quiet", "suppress summary after successful commit")
    no_verify: bool = flag("-n", "--no-verify", "bypass hooks (there are none)")
    author: str | None = value("--author", "override author for commit", metavar="AUTHOR")
    date: str | None = value("--date", "override date for commit", metavar="DATE")
    reuse: str | None = value("-C", "--reuse-message", "reuse message from specified commit", metavar="COMMIT")
    signoff: bool = flag("-s", "--signoff", "add a Signed-off-by trailer")
    dry_run: bool = flag("--dry-run", "show what would be committed")
    verbose: int = count("-v", "--verbose", "(accepted)")
    fixup: str | None = value("--fixup", "a commit that mends another one, for rebase --autosquash", metavar="COMMIT")
    squash: str | None = value("--squash", "a commit that melds into another one", metavar="COMMIT")
    include: bool = flag("-i", "--include", "named files as well as what is staged")
    only: bool = flag("-o", "--only", "named files alone (as by default)")
    porcelain: bool = flag("--porcelain", "--short", "show what would be committed, for machines")
    trailers: tuple[str, ...] = many("--trailer", "add a trailer", metavar="TOKEN=VALUE")
    edit: bool = flag("-e", "--edit", "edit the message in any case")
    gpg: bool = flag("--no-gpg-sign", "--no-status", "--status", "--cleanup", "(accepted)")
    reset_author: bool = flag("--reset-author", "the commit is authored by me now")


def commit(repo: Repository, args: list[str]) -> int:
    parsed = parse(CommitOptions, args)
    options = CommitOptions(**parsed.values)
    process = repo.process
    if options.all:
        for path, letter in changed_files(repo).items():
            if letter == "D":
                del repo.index[path]
            else:
                stage(repo, path)
        for path in list(repo.conflicts()):
            if stat_of(repo, path) is None:
                del repo.index[path]
            else:
                stage(repo, path)
        repo.write_index()
    before_staging = dict(repo.index)
    named: list[str] = []
    for spec in parsed.operands:
        names = match_paths(repo, [spec], list(repo.index))
        named += names
        if not names:
            raise GitError(f"pathspec '{spec}' did not match any file(s) known to git", 1, "error: ")
        for path in names:
            if stat_of(repo, path) is None:
                del repo.index[path]
            else:
                stage(repo, path)
        repo.write_index()
    if repo.conflicts():
        for path in repo.conflicts():
            process.print(f"U\t{path}")
        raise GitError(
            "Committing is not possible because you have unmerged files.\n"
            "hint: Fix them up in the work tree, and then use 'git add/rm <file>'\n"
            "hint: as appropriate to mark resolution and make a commit.\n"
            "fatal: Exiting because of an unresolved conflict.",
            128,
            "error: ",
        )
    head = repo.head()
    merge_head = _read(repo, "MERGE_HEAD")
    picked = _read(repo, "CHERRY_PICK_HEAD")
    parents = [head] if head is not None else []
    author, author_time = None, None
    if options.amend:
        if head is None:
            raise GitError("You have nothing to amend.")
        old = repo.store.commit(head)
        parents = [bytes(parent) for parent in old.parents]
        if not options.reset_author:
            author, author_time = old.author, (old.author_time, old.author_timezone)
    elif picked:
        old = repo.store.commit(picked.encode())
        author, author_time = old.author, (old.author_time, old.author_timezone)
    if merge_head:
        parents += [line.encode() for line in merge_head.split()]
    if options.author is not None:
        author = options.author.encode("utf-8", "surrogateescape")
        author_time = author_time or repo.now("AUTHOR")
    if options.date is not None:
        author_time = repo.parse_date(options.date)
    index = repo.staged()
    if named and not options.include:
        if merge_head:
            raise GitError("cannot do a partial commit during a merge.")
        alone = {path: index[path] for path in named if path in index}
        index = {path: e for path, e in repo.head_tree().items() if path not in named} | alone
    before = repo.tree_of(parents[0]) if parents else {}
    if options.porcelain:
        text = short_status(repo, compute_status(repo), branch=False)
        process.stdout.write(text.encode("utf-8", "surrogateescape"))
        _unstage(repo, before_staging)
        return 0 if index != before else 1
    if index == before and not options.allow_empty and not options.amend and not merge_head:
        found = compute_status(repo)
        process.print(long_status(repo, found), end="")
        return 1
    if options.dry_run:
        process.print(long_status(repo, compute_status(repo)), end="")
        _unstage(repo, before_staging)
        return 0
    message = _message(repo, options, head)
    who = repo.identity("AUTHOR") if author is None else author
    sha = repo.make_commit(repo.store.unflatten(index), parents, message, who, author_time)
    subject = subject_of(message)
    kind = "commit (amend)" if options.amend else "commit (merge)" if merge_head else "commit"
    if head is None:
        kind = "commit (initial)"
    repo.refs.set("HEAD", sha, f"{kind}: {subject}", repo.signature())
    for name in ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD"):
        with suppress(SysError):
            process.fs.unlink(f"{repo.git}/{name}")
    if not options.quiet:
        show_summary(repo, sha, dated=options.amend and not options.reset_author, root=head is None)
    return 0


def _unstage(repo: Repository, before: dict[str, IndexEntry | ConflictedIndexEntry]) -> None:
    """Nothing was committed: the index is as it was."""
    repo.index.clear()
    repo.index.update(before)
    repo.write_index()


def show_summary(repo: Repository, sha: bytes, *, dated: bool = False, root: bool = False) -> None:
    made = repo.store.commit(sha)
    branch = repo.refs.branch()
    name = branch.removeprefix("refs/heads/") if branch else "detached HEAD"
    first = " (root-commit)" if root else ""
    repo.process.print(f"[{name}{first} {sha[:7].decode()}] {subject_of(text_of(made.message))}")
    if made.author != made.committer:
        repo.process.print(f" Author: {text_of(made.author)}")
    if dated or (made.author_time, made.author_timezone) != (made.commit_time, made.commit_timezone):
        from belljar.bin.git.history import date

        repo.process.print(f" Date: {date(made.author_time, made.author_timezone)}")
    if len(made.parents) < 2:
        pairs = compare(repo, repo.tree_of(made.parents[0]) if made.parents else {}, repo.tree_of(sha))
        repo.process.print(stat_text(repo.process, pairs, summary_only=True) + mode_lines(pairs), end="")


def _read(repo: Repository, name: str) -> str:
    try:
        return text_of(repo.process.read_file(f"{repo.git}/{name}")).strip()
    except SysError:
        return ""


def _message(repo: Repository, options: CommitOptions, head: bytes | None) -> str:
    if options.fixup is not None or options.squash is not None:
        word, name = ("fixup", options.fixup) if options.fixup is not None else ("squash", str(options.squash))
        target = repo.store.commit(repo.revision(str(name).removeprefix("amend:").removeprefix("reword:")))
        text = "\n\n".join([f"{word}! {subject_of(text_of(target.message))}", *options.message])
    elif options.message:
        text = "\n\n".join(options.message)
    elif options.file is not None:
        text = text_of(repo.process.read_file(options.file))
    elif options.reuse is not None:
        text = text_of(repo.store.commit(repo.revision(options.reuse)).message)
    elif merge := _read(repo, "MERGE_MSG"):
        # Without an editor nobody takes the remarks for such, and they stay.
        kept = (line for line in merge.split("\n") if options.no_edit or not line.startswith("#"))
        text = "\n".join(kept)
    elif options.amend and head is not None:
        text = text_of(repo.store.commit(head).message)
    else:
        text = edit_message(repo)
    lines = [line.rstrip() for line in text.split("\n")]
    text = "\n".join(lines).strip("\n")
    while "\n\n\n" in text:
        text = text.replace("\n\n\n", "\n\n")
    for trailer in options.trailers:
        token, _, content = re.sub(r"\s*[=:]\s*", "=", trailer, count=1).partition("=")
        apart = "\n" if re.search(r"\n\n(?:[\w-]+: [^\n]*\n?)+\Z", text) else "\n\n"
        text += f"{apart}{token}: {content}"
    if not text.strip() and not options.allow_empty_message:
        raise GitError("Aborting commit due to empty commit message.", 1, "")
    if options.signoff:
        text += f"\n\nSigned-off-by: {text_of(repo.identity('COMMITTER'))}"
    return text + "\n" if text else ""


def edit_message(repo: Repository, initial: str = "") -> str:
    """What the user's editor makes of a message."""
    path = f"{repo.git}/COMMIT_EDITMSG"
    text = f"{initial}\n# Please enter the commit message for your changes.\n"
    repo.process.write_file(path, text.encode("utf-8", "surrogateescape"))
    run_editor(repo, path)
    return "\n".join(line for line in text_of(repo.process.read_file(path)).split("\n") if not line.startswith("#"))


def run_editor(repo: Repository, path: str, editor: str | None = None) -> None:
    """Have a file edited, by this program or the one that the environment and the settings name."""
    env = repo.process.env
    editor = editor or env.get("GIT_EDITOR") or repo.config("core.editor") or env.get("VISUAL") or env.get("EDITOR")
    if not editor:
        raise GitError(
            "Terminal is dumb, but EDITOR unset\nPlease supply the message using either -m or -F option.", 1, "error: "
        )
    repo.process.stdout.flush()
    if editor == ":":
        return
    if repo.process.run(["/bin/sh", "-c", f'{editor} "$@"', editor, path]).shell:
        raise GitError(f"There was a problem with the editor '{editor}'.", 1, "error: ")


# restore, reset, clean


@dataclass(frozen=True, slots=True)
class RestoreOptions:
    staged: bool = flag("-S", "--staged", "restore the index")
    worktree: bool = flag("-W", "--worktree", "restore the working tree")
    source: str | None = value("-s", "--source", "which tree-ish to check out from", metavar="TREE")
    side: str | None = choice(
        {"--ours": "ours", "--theirs": "theirs", "-2": "ours", "-3": "theirs"}, "check out a side"
    )
    quiet: bool = flag("-q", "--quiet", "be quiet")


def restore(repo: Repository, args: list[str]) -> int:
    parsed = parse(RestoreOptions, args)
    options = RestoreOptions(**parsed.values)
    if not parsed.operands:
        raise GitError("you must specify path(s) to restore")
    source = options.source or ("HEAD" if options.staged else None)
    tree = (
        repo.tree_of(repo.revision(source)) if source and (source != "HEAD" or repo.head()) else {} if source else None
    )
    return restore_paths(
        repo,
        parsed.operands,
        tree,
        index=options.staged,
        work=options.worktree or not options.staged,
        side=options.side,
    )


def restore_paths(
    repo: Repository, specs: list[str], tree: Flat | None, *, index: bool, work: bool, side: str | None = None
) -> int:
    """Files from a tree, or from the index, back into the index and the work tree. The number of files."""
    known = list(dict.fromkeys([*repo.index, *(tree or {})]))
    chosen: list[str] = []
    for spec in specs:
        found = match_paths(repo, [spec], known)
        if not found:
            raise GitError(f"pathspec '{spec}' did not match any file(s) known to git", 1, "error: ")
        chosen += found
    for path in sorted(set(chosen)):
        entry = repo.index.get(path)
        if tree is not None:
            wanted = tree.get(path)
        elif isinstance(entry, ConflictedIndexEntry):
            picked = entry.this if side == "ours" else entry.other if side == "theirs" else None
            if picked is None:
                raise GitError(f"path '{path}' is unmerged", 1, "error: ")
            wanted = (picked.mode, bytes(picked.sha))
        else:
            wanted = (entry.mode, bytes(entry.sha)) if entry is not None else None
        if index:
            if wanted is None:
                repo.index.pop(path, None)
            elif not isinstance(entry, IndexEntry) or (entry.mode, bytes(entry.sha)) != wanted:
                repo.index[path] = repo.bare_entry(*wanted)
        if work:
            if wanted is None:
                remove_file(repo, path)
                continue
            stat = write_file(repo, path, wanted[0], repo.store.blob(wanted[1]))
            now = repo.index.get(path)
            if isinstance(now, IndexEntry) and (now.mode, bytes(now.sha)) == wanted:
                repo.index[path] = repo.entry(stat, *wanted)
    repo.write_index()
    return 0


@dataclass(frozen=True, slots=True)
class ResetOptions:
    mode: str = choice(
        {"--soft": "soft", "--mixed": "mixed", "--hard": "hard", "--merge": "merge", "--keep": "keep"},
        "what is reset",
        default="mixed",
    )
    quiet: bool = flag("-q", "--quiet", "be quiet")


def reset(repo: Repository, args: list[str]) -> int:
    separator = args.index("--") if "--" in args else None
    parsed = parse(ResetOptions, args)
    options, operands = ResetOptions(**parsed.values), parsed.operands
    revision, paths = "HEAD", operands
    behind = len(args) - separator - 1 if separator is not None else 0
    if len(operands) > behind:
        try:
            repo.resolve(operands[0])
            revision, paths = operands[0], operands[1:]
        except KeyError:
            known = operands[0] in repo.index or stat_of(repo, relative(repo, operands[0])) is not None
            if separator is not None or not known:
                repo.revision(operands[0])
    if paths:
        tree = repo.tree_of(repo.revision(revision)) if repo.head() is not None else {}
        restore_paths(repo, paths, tree, index=True, work=False)
        _unstaged(repo, quiet=options.quiet)
        return 0
    if repo.head() is None and revision == "HEAD":
        repo.index.clear()
        repo.write_index()
        return 0
    sha = repo.revision(revision)
    old = repo.head()
    tree = repo.tree_of(sha)
    if options.mode == "hard" or (options.mode == "merge" and repo.conflicts()):
        check_out(repo, repo.head_tree(), tree, force=True)
        for name in ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD"):
            with suppress(SysError):
                repo.process.fs.unlink(f"{repo.git}/{name}")
    elif options.mode in ("keep", "merge"):
        check_out(repo, repo.head_tree(), tree, what="reset")
    elif options.mode == "mixed":
        index = repo.index
        for path in list(index):
            if path not in tree:
                del index[path]
        for path, wanted in tree.items():
            entry = index.get(path)
            if not isinstance(entry, IndexEntry) or (entry.mode, bytes(entry.sha)) != wanted:
                index[path] = repo.bare_entry(*wanted)
        repo.write_index()
        with suppress(SysError):
            repo.process.fs.unlink(f"{repo.git}/MERGE_HEAD")
    if old is not None:
        repo.process.write_file(f"{repo.git}/ORIG_HEAD", old + b"\n")
    repo.refs.set("HEAD", sha, f"reset: moving to {revision}", repo.signature())
    if options.mode == "hard" and not options.quiet:
        subject = subject_of(text_of(repo.store.commit(sha).message))
        repo.process.print(f"HEAD is now at {sha[:7].decode()} {subject}")
    elif options.mode == "mixed":
        _unstaged(repo, quiet=options.quiet)
    return 0


def _unstaged(repo: Repository, *, quiet: bool) -> None:
    changed = changed_files(repo)
    if changed and not quiet:
        repo.process.print("Unstaged changes after reset:")
        for path, letter in changed.items():
            repo.process.print(f"{letter}\t{path}")


def clean(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        force: int = count("-f", "--force", "force")
        dry_run: bool = flag("-n", "--dry-run", "dry run")
        directories: bool = flag("-d", "remove whole directories")
        ignored: bool = flag("-x", "remove ignored files, too")
        only_ignored: bool = flag("-X", "remove only ignored files")
        quiet: bool = flag("-q", "--quiet", "be quiet")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    if not options.force and not options.dry_run:
        raise GitError("clean.requireForce defaults to true and neither -i, -n, nor -f given; refusing to clean")
    untracked, hidden = find_untracked(repo, everything=False, ignored=True)
    names = hidden if options.only_ignored else sorted(untracked + hidden) if options.ignored else untracked
    if parsed.operands:
        names = match_paths(repo, parsed.operands, names)
    for name in names:
        if name.endswith("/") and not options.directories:
            continue
        if not options.quiet or options.dry_run:
            repo.process.print(f"{'Would remove' if options.dry_run else 'Removing'} {quote_path(name)}")
        if not options.dry_run:
            _remove_tree(repo, name.rstrip("/"))
    return 0


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
