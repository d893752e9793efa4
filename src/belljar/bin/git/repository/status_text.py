"""A status in words and in letters, as `status`, `commit` and `stash` show it."""

from __future__ import annotations

from dulwich.index import ConflictedIndexEntry

from belljar.abi.errors import SysError
from belljar.bin.git.repository.diffs import compare, quote_path
from belljar.bin.git.repository.merge_state import read_state
from belljar.bin.git.repository.pathspec import from_here
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import detached_text
from belljar.bin.git.repository.sparse import is_left_out
from belljar.bin.git.repository.status import Status
from belljar.bin.git.repository.text import text_of
from belljar.bin.git.repository.tracking import divergence, tracking_text

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


def staged_pairs(repo: Repository, found: Status) -> list[tuple[str, str, str]]:
    """Letter, old name, new name; renames recognised."""
    head, index = repo.head_tree(), repo.staged()
    old = {path: head[path] for path in found.staged if path in head}
    new = {path: index[path] for path in found.staged if path in index}
    return [
        (pair.letter[0], str(pair.old) if pair.old is not None else pair.path, pair.path)
        for pair in compare(repo, old, new)
    ]


def short_status(repo: Repository, found: Status, *, branch: bool, end: str = "\n", machine: bool = False) -> str:
    """`machine`: names are from the top of the work tree, wherever we are."""

    def shown(path: str) -> str:
        return quote_path(path if machine or end == "\0" else from_here(repo, path))

    rows: dict[str, str] = {}
    for letter, old, new in staged_pairs(repo, found):
        name = f"{shown(old)} -> {shown(new)}" if letter == "R" and end == "\n" else shown(new)
        rows[new] = f"{letter}{found.changed.get(new, ' ')} {name}"
    for path, letter in found.changed.items():
        if path not in rows:
            rows[path] = f" {letter} {shown(path)}"
    for path, entry in found.unmerged.items():
        rows[path] = f"{conflict_kind(entry)[0]} {shown(path)}"
    out = [rows[path] for path in sorted(rows)]
    out += [f"?? {shown(path)}" for path in found.untracked] + [f"!! {shown(p)}" for p in found.ignored]
    if branch:
        out.insert(0, _branch_line(repo))
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


_STAGED_WORDS = {"A": "new file", "M": "modified", "D": "deleted", "T": "typechange", "R": "renamed"}


def long_status(repo: Repository, found: Status, *, hidden: bool = False, committing: bool = False) -> str:
    """`hidden`: untracked files were not looked for; `committing`: `git commit` says it."""
    out: list[str] = []
    branch = repo.refs.branch()
    head = repo.head()
    if (rebasing := _rebasing(repo, unmerged=bool(found.unmerged))) is not None:
        out.append(rebasing)
    elif branch is None:
        out.append(f"{detached_text(repo)}\n")
    else:
        out.append(f"On branch {branch.removeprefix('refs/heads/')}\n")
        out.append(tracking_text(repo, branch.removeprefix("refs/heads/")))
    merging = read_state(repo, "MERGE_HEAD") is not None
    picking = read_state(repo, "CHERRY_PICK_HEAD")
    todo = read_state(repo, "sequencer/todo")
    if merging and found.unmerged:
        out.append('You have unmerged paths.\n  (fix conflicts and run "git commit")\n')
        out.append('  (use "git merge --abort" to abort the merge)\n\n')
    elif merging:
        out.append('All conflicts fixed but you are still merging.\n  (use "git commit" to conclude merge)\n\n')
    else:
        reverting = read_state(repo, "REVERT_HEAD")
        if picking is not None or (todo or "").startswith("pick"):
            out.append(_sequence(picking, todo, "cherry-pick", "cherry-picking", unmerged=bool(found.unmerged)))
        elif reverting is not None or todo is not None:
            out.append(_sequence(reverting, todo, "revert", "reverting", unmerged=bool(found.unmerged)))
    if (started := read_state(repo, "BISECT_START")) is not None:
        out.append(f"You are currently bisecting, started from branch '{started}'.\n")
        out.append('  (use "git bisect reset" to get back to the original branch)\n\n')
    out.append(_sparse(repo))
    if head is None:
        out.append(f"\n{'Initial commit' if committing else 'No commits yet'}\n\n")
    unstage = (
        '(use "git rm --cached <file>..." to unstage)'
        if head is None
        else '(use "git restore --staged <file>..." to unstage)'
    )
    if found.staged:
        out.append("Changes to be committed:\n" + ("" if merging or picking is not None else f"  {unstage}\n"))
        for letter, old, new in staged_pairs(repo, found):
            name = f"{_shown(repo, old)} -> {_shown(repo, new)}" if letter == "R" else _shown(repo, new)
            out.append(f"\t{_STAGED_WORDS[letter] + ':':<12}{name}\n")
        out.append("\n")
    if found.unmerged:
        kinds = {conflict_kind(entry)[0] for entry in found.unmerged.values()}
        verb = "add/rm" if kinds & {"UD", "DU", "DD"} else "add"
        out.append("Unmerged paths:\n")
        if not merging and picking is None:
            out.append(f"  {unstage}\n")
        if verb == "add/rm":
            out.append('  (use "git add/rm <file>..." as appropriate to mark resolution)\n')
        else:
            out.append('  (use "git add <file>..." to mark resolution)\n')
        for path, entry in found.unmerged.items():
            out.append(f"\t{conflict_kind(entry)[1] + ':':<17}{_shown(repo, path)}\n")
        out.append("\n")
    if found.changed:
        verb = "add/rm" if "D" in found.changed.values() else "add"
        out.append(f'Changes not staged for commit:\n  (use "git {verb} <file>..." to update what will be committed)\n')
        out.append('  (use "git restore <file>..." to discard changes in working directory)\n')
        for path, letter in found.changed.items():
            out.append(f"\t{_STAGED_WORDS[letter] + ':':<12}{_shown(repo, path)}\n")
        out.append("\n")
    if found.untracked:
        out.append('Untracked files:\n  (use "git add <file>..." to include in what will be committed)\n')
        out += [f"\t{_shown(repo, path)}\n" for path in found.untracked]
        out.append("\n")
    if found.ignored:
        out.append('Ignored files:\n  (use "git add -f <file>..." to include in what will be committed)\n')
        out += [f"\t{_shown(repo, path)}\n" for path in found.ignored]
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


def _shown(repo: Repository, path: str) -> str:
    return quote_path(from_here(repo, path))


def _sparse(repo: Repository) -> str:
    if not repo.config_bool("core.sparseCheckout") or not repo.index:
        return ""
    out = sum(map(is_left_out, repo.index.values()))
    return f"You are in a sparse checkout with {100 - out * 100 // len(repo.index)}% of tracked files present.\n\n"


def _sequence(commit: str | None, todo: str | None, name: str, doing: str, *, unmerged: bool) -> str:
    """A cherry-pick or revert that is under way."""
    if commit is not None and todo is None:
        text = f"You are currently {doing} commit {commit[:7]}.\n"
        go_on = "all conflicts fixed: run"
    else:
        text = f"{name.capitalize()} currently in progress.\n"
        go_on = "run"
    if unmerged:
        text += f'  (fix conflicts and run "git {name} --continue")\n'
    else:
        text += f'  ({go_on} "git {name} --continue"{" to continue" if go_on == "run" else ""})\n'
    text += f'  (use "git {name} --skip" to skip this patch)\n'
    return text + f'  (use "git {name} --abort" to cancel the {name} operation)\n\n'


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
