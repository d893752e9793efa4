"""`git branch`: branches listed, made, renamed, deleted, and what they follow."""

from __future__ import annotations

from contextlib import suppress

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, count, flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.config import read_config, write_config
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.merge_state import read_state
from belljar.bin.git.repository.merging import ancestors
from belljar.bin.git.repository.ref_list import ListOptions, Ref, attach_values, format_ref, limit_refs, sort_refs
from belljar.bin.git.repository.refs import check_name
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import detached_text, resolve
from belljar.bin.git.repository.text import commit_subject
from belljar.bin.git.repository.tracking import configure_upstream, divergence
from belljar.bin.git.repository.worktrees import checked_out, list_worktrees
from belljar.libc.pattern import compile_pattern


@dataclass(frozen=True, slots=True)
class BranchOptions(ListOptions):
    delete: str | None = choice({"-d": "safe", "--delete": "safe", "-D": "force"}, "delete branches")
    move: str | None = choice({"-m": "safe", "--move": "safe", "-M": "force"}, "rename a branch")
    copy: bool = flag("-c", "--copy", "copy a branch")
    all: bool = flag("-a", "--all", "list remote-tracking and local branches")
    remotes: bool = flag("-r", "--remotes", "act on remote-tracking branches")
    verbose: int = count("-v", "--verbose", "show commit")
    force: bool = flag("-f", "--force", "force")
    list: bool = flag("-l", "--list", "list branches")
    current: bool = flag("--show-current", "show current branch name")
    upstream: str | None = value("-u", "--set-upstream-to", "change the upstream", metavar="UPSTREAM")
    unset: bool = flag("--unset-upstream", "unset the upstream")
    color: str | None = value("--color", "(no colours here)", metavar="WHEN", bare="always")
    no_color: bool = flag("--no-color", "no colours")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    track: str | None = value("-t", "--track", "set upstream", metavar="MODE", bare="direct")
    no_track: bool = flag("--no-track", "don't set upstream")


def branch(repo: Repository, args: list[str]) -> int:
    options, names = read_options(BranchOptions, attach_values(args))
    process, refs = repo.process, repo.refs
    current = refs.branch()
    here = current.removeprefix("refs/heads/") if current else ""
    if options.current:
        if here:
            process.print(here)
        return 0
    if options.upstream is not None:
        set_upstream(repo, names[0] if names else here, options.upstream)
        return 0
    if options.unset:
        _unset_upstream(repo, names[0] if names else here)
        return 0
    if options.delete is not None:
        return _delete(repo, names, force=options.delete == "force" or options.force, remote=options.remotes)
    if options.move is not None or options.copy:
        if not names:
            raise GitError("branch name required")
        old, new = (names[0], names[1]) if len(names) > 1 else (here, names[0])
        return _rename(repo, old, new, force=options.move == "force" or options.force, keep=options.copy)
    if names and not options.list:
        start = names[1] if len(names) > 1 else "HEAD"
        create_branch(repo, names[0], start, force=options.force)
        if len(names) > 1 and not options.no_track and refs.get(f"refs/remotes/{start}") is not None:
            set_upstream(repo, names[0], start)
        return 0
    _list_branches(repo, options, names, current)
    return 0


def _list_branches(repo: Repository, options: BranchOptions, patterns: list[str], current: str | None) -> None:
    refs: list[Ref] = []
    if not options.remotes:
        refs += [Ref(name, sha) for name, sha in repo.refs.under("refs/heads/").items()]
    if options.remotes or options.all:
        refs += [Ref(name, sha) for name, sha in repo.refs.under("refs/remotes/").items()]
    prefix = "refs/" if options.all else "refs/remotes/"
    if patterns:
        refs = [
            ref for ref in refs if any(compile_pattern(p).matches(_branch_name(ref.name, prefix)) for p in patterns)
        ]
    refs = limit_refs(repo, refs, options)
    if options.sort:
        refs = sort_refs(repo, refs, options.sort)
    found = [(ref.name, _branch_name(ref.name, prefix), ref.sha) for ref in refs]
    head = repo.head()
    rows: list[tuple[str, str, bytes, str]] = []
    if current is None and head is not None and not options.remotes and not patterns:
        rows.append(("*", f"({_no_branch(repo)})", head, ""))
    elsewhere = {tree.branch for tree in list_worktrees(repo)}
    rows += [
        ("*" if ref == current else "+" if ref in elsewhere else " ", shown, sha, ref) for ref, shown, sha in found
    ]
    if options.form is not None:
        for item in refs:
            repo.process.print(format_ref(repo, item, options.form))
        return
    width = max((len(row[1]) for row in rows), default=0)
    for mark, shown, sha, ref in rows:
        if not options.verbose:
            target = repo.refs.raw(ref) or "" if ref.endswith("/HEAD") else ""
            arrow = f" -> {target[5:].removeprefix('refs/remotes/')}" if target.startswith("ref: ") else ""
            repo.process.print(f"{mark} {shown}{arrow}")
            continue
        subject = commit_subject(repo, sha)
        track = ""
        upstream = repo.upstream(shown) if ref.startswith("refs/heads/") else None
        if upstream is not None:
            ahead, behind = divergence(repo, upstream, sha)
            state = ", ".join([f"ahead {ahead}"] * bool(ahead) + [f"behind {behind}"] * bool(behind))
            if repo.refs.get(upstream) is None:
                state = "gone"
            if options.verbose > 1:
                name = upstream.removeprefix("refs/remotes/").removeprefix("refs/heads/")
                track = f"[{name}{': ' + state if state else ''}] "
            elif state:
                track = f"[{state}] "
        repo.process.print(f"{mark} {shown:<{width}} {sha[:7].decode()} {track}{subject}")


def _no_branch(repo: Repository) -> str:
    if (name := read_state(repo, "rebase-merge/head-name")) is not None:
        return f"no branch, rebasing {name.removeprefix('refs/heads/')}"
    if (start := read_state(repo, "BISECT_START")) is not None:
        return f"no branch, bisect started on {start}"
    return detached_text(repo)


def _branch_name(ref: str, prefix: str) -> str:
    return ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else ref.removeprefix(prefix)


def create_branch(repo: Repository, name: str, start: str, *, force: bool = False) -> bytes:
    if not check_name(name) or name == "HEAD":
        raise GitError(f"'{name}' is not a valid branch name")
    if repo.refs.get(f"refs/heads/{name}") is not None and not force:
        raise GitError(f"a branch named '{name}' already exists")
    try:
        sha = bytes(repo.store.commit(resolve(repo, start)).id)
    except KeyError:
        raise GitError(f"not a valid object name: '{start}'") from None
    repo.refs.set(f"refs/heads/{name}", sha, f"branch: Created from {start}", repo.signature())
    return sha


def _delete(repo: Repository, names: list[str], *, force: bool, remote: bool) -> int:
    status = 0
    prefix = "refs/remotes/" if remote else "refs/heads/"
    for name in names:
        ref = prefix + name
        sha = repo.refs.get(ref)
        if sha is None:
            repo.process.error(f"error: branch '{name}' not found.\n")
            status = 1
            continue
        place = repo.work if ref == repo.refs.branch() else checked_out(repo, ref)
        if place is not None:
            repo.process.error(f"error: Cannot delete branch '{name}' checked out at '{place}'\n")
            status = 1
            continue
        head = repo.head()
        if not force and not remote and (head is None or sha not in ancestors(repo, head)):
            repo.process.error(
                f"error: The branch '{name}' is not fully merged.\n"
                f"If you are sure you want to delete it, run 'git branch -D {name}'.\n"
            )
            status = 1
            continue
        repo.refs.delete(ref)
        kind = "remote-tracking branch" if remote else "branch"
        repo.process.print(f"Deleted {kind} {name} (was {sha[:7].decode()}).")
    return status


def _rename(repo: Repository, old: str, new: str, *, force: bool, keep: bool) -> int:
    if not check_name(new):
        raise GitError(f"'{new}' is not a valid branch name")
    sha = repo.refs.get(f"refs/heads/{old}")
    current = repo.refs.branch() == f"refs/heads/{old}"
    if sha is None and not current:
        raise GitError(f"no branch named '{old}'")
    if repo.refs.get(f"refs/heads/{new}") is not None and not force and old != new:
        raise GitError(f"a branch named '{new}' already exists")
    if sha is not None:
        log = repo.refs.read_log(f"refs/heads/{old}")
        if not keep:
            repo.refs.delete(f"refs/heads/{old}")
        repo.refs.write(f"refs/heads/{new}", sha.decode())
        verb = "copied" if keep else "renamed"
        repo.refs.log(
            f"refs/heads/{new}", sha, sha, f"Branch: {verb} refs/heads/{old} to refs/heads/{new}", repo.signature()
        )
        repo.refs.write_log(f"refs/heads/{new}", log + repo.refs.read_log(f"refs/heads/{new}"))
    if current and not keep:
        repo.refs.write("HEAD", f"ref: refs/heads/{new}")
    return 0


def set_upstream(repo: Repository, name: str, upstream: str) -> None:
    remote, _, short = upstream.partition("/")
    local = repo.refs.get(f"refs/remotes/{upstream}") is None
    if local and repo.refs.get(f"refs/heads/{upstream}") is None:
        raise GitError(f"the requested upstream branch '{upstream}' does not exist")
    configure_upstream(repo, name, "." if local else remote, upstream if local else short)
    repo.process.print(f"branch '{name}' set up to track '{upstream}'.")


def _unset_upstream(repo: Repository, name: str) -> None:
    path = f"{repo.common}/config"
    config = read_config(repo.process, path)
    with suppress(KeyError):
        del config[(b"branch", fsencode(name))]
    write_config(repo.process, path, config)
