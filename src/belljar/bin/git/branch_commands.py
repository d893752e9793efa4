"""git's commands on branches: branch, checkout, switch, merge, cherry-pick, revert, tag."""

from __future__ import annotations

from contextlib import suppress

from dulwich.objects import Commit, ObjectID, Tag

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import choice, count, flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin.git.diffs import compare, mode_lines, stat_text
from belljar.bin.git.errors import GitError
from belljar.bin.git.formats import Formatter
from belljar.bin.git.history import subject_of, text_of, walk
from belljar.bin.git.merging import Merged, ancestors, apply_merge, merge_base, merge_trees
from belljar.bin.git.ref_list import Ref, attach_values, format_ref, limit_refs, sort_refs
from belljar.bin.git.refs import check_name
from belljar.bin.git.repo import Repository, read_config, write_config
from belljar.bin.git.store import Flat
from belljar.bin.git.work import changed_files, check_out, relative, stat_of
from belljar.bin.git.work_commands import divergence, edit_message, restore_paths, show_summary, tracking_text
from belljar.shell.pattern import compile_pattern


@dataclass(frozen=True, slots=True)
class BranchOptions:
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
    contains: str | None = value("--contains", "only branches that contain the commit", metavar="COMMIT", bare="HEAD")
    no_contains: str | None = value("--no-contains", "only branches that do not", metavar="COMMIT", bare="HEAD")
    points_at: str | None = value("--points-at", "only branches of the object", metavar="OBJECT", bare="HEAD")
    sort: tuple[str, ...] = many("--sort", "sort by", metavar="KEY")
    color: str | None = value("--color", "(no colours here)", metavar="WHEN", bare="always")
    no_color: bool = flag("--no-color", "no colours")
    merged: str | None = value("--merged", "only branches that are merged", metavar="COMMIT", bare="HEAD")
    no_merged: str | None = value("--no-merged", "only branches that are not merged", metavar="COMMIT", bare="HEAD")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    track: str | None = value("-t", "--track", "set upstream", metavar="MODE", bare="direct")
    no_track: bool = flag("--no-track", "don't set upstream")
    form: str | None = value("--format", "how to show branches", metavar="FORMAT")


def branch(repo: Repository, args: list[str]) -> int:
    parsed = parse(BranchOptions, attach_values(args))
    options, names = BranchOptions(**parsed.values), parsed.operands
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
    refs = limit_refs(
        repo, refs, contains=options.contains, no_contains=options.no_contains, merged=options.merged,
        no_merged=options.no_merged, points_at=options.points_at,
    )  # fmt: skip
    if options.sort:
        refs = sort_refs(repo, refs, options.sort)
    found = [(ref.name, _branch_name(ref.name, prefix), ref.sha) for ref in refs]
    head = repo.head()
    rows: list[tuple[str, str, bytes, str]] = []
    if current is None and head is not None and not options.remotes and not patterns:
        rows.append(("*", f"(HEAD detached at {head[:7].decode()})", head, ""))
    rows += [("*" if ref == current else " ", shown, sha, ref) for ref, shown, sha in found]
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
        subject = subject_of(text_of(repo.store.commit(sha).message))
        track = ""
        upstream = repo.upstream(shown) if ref.startswith("refs/heads/") else None
        if upstream is not None:
            ahead, behind = divergence(repo, upstream) if ref == current else (0, 0)
            state = ", ".join([f"ahead {ahead}"] * bool(ahead) + [f"behind {behind}"] * bool(behind))
            if options.verbose > 1:
                name = upstream.removeprefix("refs/remotes/").removeprefix("refs/heads/")
                track = f"[{name}{': ' + state if state else ''}] "
            elif state:
                track = f"[{state}] "
        repo.process.print(f"{mark} {shown:<{width}} {sha[:7].decode()} {track}{subject}")


def _branch_name(ref: str, prefix: str) -> str:
    return ref.removeprefix("refs/heads/") if ref.startswith("refs/heads/") else ref.removeprefix(prefix)


def create_branch(repo: Repository, name: str, start: str, *, force: bool = False) -> bytes:
    if not check_name(name) or name == "HEAD":
        raise GitError(f"'{name}' is not a valid branch name")
    if repo.refs.get(f"refs/heads/{name}") is not None and not force:
        raise GitError(f"a branch named '{name}' already exists")
    try:
        sha = bytes(repo.store.commit(repo.resolve(start)).id)
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
        if ref == repo.refs.branch():
            repo.process.error(f"error: Cannot delete branch '{name}' checked out at '{repo.work}'\n")
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


def configure_upstream(repo: Repository, name: str, remote: str, branch_name: str) -> None:
    path = f"{repo.git}/config"
    config = read_config(repo.process, path)
    section = (b"branch", name.encode())
    config.set(section, b"remote", remote.encode())
    config.set(section, b"merge", f"refs/heads/{branch_name}".encode())
    write_config(repo.process, path, config)


def _unset_upstream(repo: Repository, name: str) -> None:
    path = f"{repo.git}/config"
    config = read_config(repo.process, path)
    with suppress(KeyError):
        del config[(b"branch", name.encode())]
    write_config(repo.process, path, config)


# checkout and switch


@dataclass(frozen=True, slots=True)
class CheckoutOptions:
    create: str | None = value("-b", "create and checkout a new branch", metavar="BRANCH")
    reset: str | None = value("-B", "create or reset and checkout a branch", metavar="BRANCH")
    orphan: str | None = value("--orphan", "new unparented branch", metavar="BRANCH")
    force: bool = flag("-f", "--force", "throw away local modifications")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    detach: bool = flag("--detach", "detach HEAD")
    track: str | None = value("-t", "--track", "set upstream", metavar="MODE", bare="direct")
    side: str | None = choice({"--ours": "ours", "--theirs": "theirs"}, "check out a side of a conflict")


@dataclass(frozen=True, slots=True)
class SwitchOptions:
    create: str | None = value("-c", "--create", "create and switch to a new branch", metavar="BRANCH")
    reset: str | None = value("-C", "--force-create", "create or reset and switch to a branch", metavar="BRANCH")
    orphan: str | None = value("--orphan", "new unparented branch", metavar="BRANCH")
    force: bool = flag("-f", "--force", "--discard-changes", "throw away local modifications")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    detach: bool = flag("-d", "--detach", "detach HEAD")
    track: str | None = value("-t", "--track", "set upstream", metavar="MODE", bare="direct")


def checkout(repo: Repository, args: list[str]) -> int:
    parsed = parse(CheckoutOptions, args)
    options, operands = CheckoutOptions(**parsed.values), parsed.operands
    new = options.create or options.reset
    if new is not None:
        return _switch_new(repo, new, operands[0] if operands else "HEAD", options)
    if options.orphan is not None:
        return _orphan(repo, options.orphan)
    separated = "--" in args
    paths = args[args.index("--") + 1 :] if separated else []
    before = operands[: len(operands) - len(paths)] if separated else operands
    if separated and paths:
        tree = repo.tree_of(repo.revision(before[0])) if before else None
        return _restore(repo, paths, tree, options, quiet=True)
    if not before:
        return _switch(repo, "HEAD", options, detach=True) if options.detach else 0
    if len(before) > 1:
        if _known(repo, before[0]):
            return _restore(repo, before[1:], repo.tree_of(repo.revision(before[0])), options)
        return _restore(repo, before, None, options)
    name = before[0]
    if _known(repo, name):
        return _switch(repo, name, options, detach=options.detach)
    if _guess(repo, name):
        return _switch_new(repo, name, _guess(repo, name) or "", options)
    return _restore(repo, before, None, options)


def _restore(
    repo: Repository, paths: list[str], tree: Flat | None, options: CheckoutOptions, *, quiet: bool = False
) -> int:
    from belljar.bin.git.work import match_paths

    changed = set(changed_files(repo)) | set(repo.conflicts())
    restore_paths(repo, paths, tree, index=tree is not None, work=True, side=options.side)
    if options.quiet or quiet:
        return 0
    if tree is None:
        number = len(changed & set(match_paths(repo, paths, list(repo.index))))
        repo.process.error(f"Updated {number} path{'s' if number != 1 else ''} from the index\n")
    else:
        number = len(set(match_paths(repo, paths, list(tree))))
        repo.process.error(f"Updated {number} path{'s' if number != 1 else ''} from {_tree_name(repo, tree)}\n")
    return 0


def _tree_name(repo: Repository, tree: Flat) -> str:
    return repo.store.unflatten(tree)[:7].decode()


def switch(repo: Repository, args: list[str]) -> int:
    parsed = parse(SwitchOptions, args)
    options, operands = SwitchOptions(**parsed.values), parsed.operands
    new = options.create or options.reset
    if new is not None:
        return _switch_new(repo, new, operands[0] if operands else "HEAD", options)
    if options.orphan is not None:
        return _orphan(repo, options.orphan)
    if not operands:
        raise GitError("missing branch or commit argument")
    name = operands[0]
    if name == "-":
        name = repo.previous_branch() or name
    if repo.refs.get(f"refs/heads/{name}") is None and not options.detach:
        guessed = _guess(repo, name)
        if guessed:
            return _switch_new(repo, name, guessed, options)
        if _known(repo, name):
            raise GitError(
                f"a branch is expected, got commit '{name}'\n"
                "hint: If you want to detach HEAD at the commit, try again with the --detach option."
            )
        raise GitError(f"invalid reference: {name}")
    return _switch(repo, name, options, detach=options.detach)


def _known(repo: Repository, name: str) -> bool:
    if name == "-":
        return repo.previous_branch() is not None
    try:
        repo.store.commit(repo.resolve(name))
    except (KeyError, GitError):
        return False
    return True


def _guess(repo: Repository, name: str) -> str | None:
    """A remote-tracking branch of that name, if just one remote has it."""
    found = [ref for ref in repo.refs.under("refs/remotes/") if ref.split("/", 3)[-1] == name]
    return found[0].removeprefix("refs/remotes/") if len(found) == 1 else None


def _switch_new(repo: Repository, name: str, start: str, options: CheckoutOptions | SwitchOptions) -> int:
    if not check_name(name):
        raise GitError(f"'{name}' is not a valid branch name")
    if repo.head() is None and start == "HEAD":
        repo.refs.write("HEAD", f"ref: refs/heads/{name}")
        if not options.quiet:
            repo.process.error(f"Switched to a new branch '{name}'\n")
        return 0
    existed = repo.refs.get(f"refs/heads/{name}") is not None
    if existed and not options.reset:
        raise GitError(f"a branch named '{name}' already exists")
    try:
        sha = bytes(repo.store.commit(repo.resolve(start)).id)
    except KeyError:
        raise GitError(f"'{start}' is not a commit and a branch '{name}' cannot be created from it") from None
    _move(repo, sha, force=options.force)
    old = _here(repo)
    repo.refs.set(f"refs/heads/{name}", sha, f"branch: Created from {start}", repo.signature())
    head = repo.head() or sha
    repo.refs.write("HEAD", f"ref: refs/heads/{name}")
    repo.refs.log("HEAD", head, sha, f"checkout: moving from {old} to {name}", repo.signature())
    if not options.quiet:
        repo.process.error(
            f"Switched to and reset branch '{name}'\n" if existed else f"Switched to a new branch '{name}'\n"
        )
    if repo.refs.get(f"refs/remotes/{start}") is not None:
        remote, _, short = start.partition("/")
        configure_upstream(repo, name, remote, short)
        if not options.quiet:
            repo.process.print(f"branch '{name}' set up to track '{start}'.")
    return 0


def _orphan(repo: Repository, name: str) -> int:
    repo.refs.write("HEAD", f"ref: refs/heads/{name}")
    repo.process.error(f"Switched to a new branch '{name}'\n")
    return 0


def _here(repo: Repository) -> str:
    current = repo.refs.branch()
    return current.removeprefix("refs/heads/") if current else (repo.head() or b"").decode()


def _move(repo: Repository, sha: bytes, *, force: bool) -> None:
    check_out(repo, repo.head_tree(), repo.tree_of(sha), force=force)


def _switch(repo: Repository, name: str, options: CheckoutOptions | SwitchOptions, *, detach: bool) -> int:
    process = repo.process
    if name == "-":
        name = repo.previous_branch() or name
    if repo.conflicts() and not options.force:
        listed = "".join(f"{path}: needs merge\n" for path in repo.conflicts())
        raise GitError(f"{listed}error: you need to resolve your current index first", 1, "")
    sha = repo.revision(name)
    ref = f"refs/heads/{name}"
    on_branch = repo.refs.get(ref) is not None and not detach
    old, head = _here(repo), repo.head()
    detached = repo.refs.branch() is None
    _move(repo, sha, force=options.force)
    kept = changed_files(repo)
    staged, tree = repo.staged(), repo.tree_of(sha)
    for path in staged.keys() | tree.keys():
        if staged.get(path) != tree.get(path):
            kept[path] = "A" if path not in tree else "D" if path not in staged else "M"
    for path, letter in sorted(kept.items()):
        if not options.quiet:
            process.print(f"{letter}\t{path}")
    if on_branch and repo.refs.branch() == ref:
        process.error(f"Already on '{name}'\n") if not options.quiet else None
        process.print(tracking_text(repo, name).rstrip("\n"), end="\n" if tracking_text(repo, name) else "")
        return 0
    repo.refs.write("HEAD", f"ref: {ref}" if on_branch else sha.decode())
    repo.refs.log("HEAD", head or sha, sha, f"checkout: moving from {old} to {name}", repo.signature())
    if options.quiet:
        return 0
    if detached and head is not None and head != sha:
        subject = subject_of(text_of(repo.store.commit(head).message))
        process.error(f"Previous HEAD position was {head[:7].decode()} {subject}\n")
    if on_branch:
        process.error(f"Switched to branch '{name}'\n")
        text = tracking_text(repo, name)
        process.print(text.rstrip("\n"), end="\n" if text else "")
    else:
        if not detached and not isinstance(options, SwitchOptions) and not detach:
            process.error(_DETACHED.format(name=name))
        subject = subject_of(text_of(repo.store.commit(sha).message))
        process.error(f"HEAD is now at {sha[:7].decode()} {subject}\n")
    return 0


_DETACHED = """Note: switching to '{name}'.

You are in 'detached HEAD' state. You can look around, make experimental
changes and commit them, and you can discard any commits you make in this
state without impacting any branches by switching back to a branch.

If you want to create a new branch to retain commits you create, you may
do so (now or later) by using -c with the switch command. Example:

  git switch -c <new-branch-name>

Or undo this operation with:

  git switch -

Turn off this advice by setting config variable advice.detachedHead to false

"""


# merge


@dataclass(frozen=True, slots=True)
class MergeOptions:
    ff: str = choice({"--ff": "ff", "--no-ff": "no-ff", "--ff-only": "only"}, "fast-forward", default="ff")
    message: tuple[str, ...] = many("-m", "merge commit message", metavar="MESSAGE")
    squash: bool = flag("--squash", "create a single commit instead of doing a merge")
    action: str | None = choice({"--abort": "abort", "--continue": "continue", "--quit": "quit"}, "end a merge")
    no_commit: bool = flag("--no-commit", "don't commit")
    no_edit: bool = flag("--no-edit", "accept the message")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    no_stat: bool = flag("-n", "--no-stat", "don't show a diffstat")
    unrelated: bool = flag("--allow-unrelated-histories", "allow merging unrelated histories")
    strategy: str = value("-s", "--strategy", "ort, recursive, resolve or ours", metavar="STRATEGY", default="ort")
    favour: tuple[str, ...] = many("-X", "--strategy-option", "ours, theirs", metavar="OPTION")
    stat: bool = flag("--stat", "--commit", "--edit", "-e", "(as by default)")
    log: str | None = value("--log", "list the commits in the message", metavar="N", bare="20")
    file: str | None = value("-F", "--file", "read the message from a file", metavar="FILE")
    verify: bool = flag("--no-verify", "--verify", "--no-gpg-sign", "--signoff", "(no hooks, no keys here)")


def merge(repo: Repository, args: list[str]) -> int:
    parsed = parse(MergeOptions, args)
    options = MergeOptions(**parsed.values)
    if options.action == "abort":
        return _merge_abort(repo)
    if options.action == "continue":
        from belljar.bin.git.work_commands import commit

        return commit(repo, [])
    if repo.conflicts():
        raise GitError(
            "Merging is not possible because you have unmerged files.\n"
            "hint: Fix them up in the work tree, and then use 'git add/rm <file>'\n"
            "hint: as appropriate to mark resolution and make a commit.\n"
            "fatal: Exiting because of an unresolved conflict.",
            128,
            "error: ",
        )
    if options.strategy not in ("ort", "recursive", "resolve", "ours"):
        raise GitError(f"the merge strategy '{options.strategy}' is not there: ort, recursive, resolve or ours", 1)
    for word in options.favour:
        if word not in ("ours", "theirs", "patience", "diff-algorithm=histogram", "no-renames", "find-renames"):
            raise GitError(f"unknown strategy option: -X{word}")
    names = parsed.operands
    if len(names) > 1:
        raise GitError("merging several branches at once (octopus) is not there: merge one after the other", 128)
    if not names:
        current = (repo.refs.branch() or "").removeprefix("refs/heads/")
        upstream = repo.upstream(current)
        if upstream is None:
            raise GitError("No remote for the current branch.")
        names = [upstream.removeprefix("refs/remotes/")]
    try:
        other = bytes(repo.store.commit(repo.resolve(names[0])).id)
    except KeyError:
        raise GitError(f"merge: {names[0]} - not something we can merge", 1, "") from None
    kind = "branch" if repo.refs.get(f"refs/heads/{names[0]}") is not None else "commit"
    if repo.refs.get(f"refs/remotes/{names[0]}") is not None:
        kind = "remote-tracking branch"
    elif repo.refs.get(f"refs/tags/{names[0]}") is not None:
        kind = "tag"
    return merge_commit(repo, other, names[0], f"{kind} '{names[0]}'", options)


def merge_commit(repo: Repository, other: bytes, name: str, what: str, options: MergeOptions) -> int:
    process = repo.process
    head = repo.head()
    if head is None:
        check_out(repo, {}, repo.tree_of(other), what="merge")
        repo.refs.set("HEAD", other, f"initial pull: {name}", repo.signature())
        return 0
    base = merge_base(repo, head, other)
    if base is None and not options.unrelated:
        raise GitError("refusing to merge unrelated histories")
    if base == other:
        process.print("Already up to date.")
        return 0
    process.write_file(f"{repo.git}/ORIG_HEAD", head + b"\n")
    if base == head and options.ff != "no-ff" and not options.squash:
        if not options.quiet:
            process.print(f"Updating {head[:7].decode()}..{other[:7].decode()}")
        check_out(repo, repo.tree_of(head), repo.tree_of(other), what="merge")
        repo.refs.set("HEAD", other, f"merge {name}: Fast-forward", repo.signature())
        if not options.quiet:
            process.print("Fast-forward")
            _show_stat(repo, head, other, options)
        return 0
    if options.ff == "only":
        raise GitError(
            "Not possible to fast-forward, aborting.\n".rstrip("\n"),
        )
    ours, theirs = repo.tree_of(head), repo.tree_of(other)
    if options.strategy == "ours":
        merged = Merged(files=dict(ours))
    else:
        favour = next((word for word in reversed(options.favour) if word in ("ours", "theirs")), "")
        old = repo.tree_of(base) if base else {}
        base_name = base[:7].decode() if base else "empty tree"
        merged = merge_trees(repo, old, ours, theirs, "HEAD", name, base_name=base_name, favour=favour)
    try:
        _check_clean(repo, ours, merged.files, set(merged.conflicts))
    except GitError as error:
        raise GitError(f"{error.message}\nMerge with strategy {options.strategy} failed.", 2, "") from None
    current = repo.refs.branch()
    branch_name = current.removeprefix("refs/heads/") if current else "HEAD"
    default = f"Merge {what}" + ("" if branch_name in ("master", "main") else f" into {branch_name}")
    message = "\n\n".join(options.message) if options.message else default
    if options.file is not None:
        message = text_of(process.read_file(options.file)).rstrip("\n")
    if options.log is not None:
        subjects = [subject_of(text_of(repo.store.commit(sha).message)) for sha in walk(repo, [other], [head])]
        limit = int(options.log[:6]) if options.log.isdecimal() else 20
        message += f"\n\n* {name}:\n" + "\n".join(f"  {subject}" for subject in subjects[:limit])
    apply_merge(repo, ours, merged)
    for line in merged.messages:
        process.print(line)
    if options.squash:
        process.print("Squash commit -- not updating HEAD")
        process.stdout.flush()
        process.write_file(f"{repo.git}/SQUASH_MSG", _squash_message(repo, head, other))
        if merged.conflicts:
            process.print("Automatic merge failed; fix conflicts and then commit the result.")
            return 1
        process.error("Automatic merge went well; stopped before committing as requested\n")
        return 0
    if merged.conflicts or options.no_commit:
        process.write_file(f"{repo.git}/MERGE_HEAD", other + b"\n")
        process.write_file(f"{repo.git}/MERGE_MODE", b"no-ff" if options.ff == "no-ff" else b"")
        listed = "".join(f"#\t{path}\n" for path in merged.conflicts)
        text = message + "\n" + (f"\n# Conflicts:\n{listed}" if listed else "")
        process.write_file(f"{repo.git}/MERGE_MSG", text.encode("utf-8", "surrogateescape"))
        if merged.conflicts:
            process.print("Automatic merge failed; fix conflicts and then commit the result.")
            return 1
        process.stdout.flush()
        process.error("Automatic merge went well; stopped before committing as requested\n")
        return 0
    sha = repo.make_commit(repo.store.unflatten(merged.files), [head, other], message + "\n")
    made = f"Merge made by the '{'ort' if options.strategy == 'recursive' else options.strategy}' strategy."
    repo.refs.set("HEAD", sha, f"merge {name}: {made}", repo.signature())
    if not options.quiet:
        process.print(made)
        _show_stat(repo, head, sha, options)
    return 0


def _squash_message(repo: Repository, head: bytes, other: bytes) -> bytes:
    """What git proposes for a squashed merge: the log of what it brings."""
    formatter = Formatter(repo)
    commits = [formatter.show(sha) for sha in walk(repo, [other], [head])]
    text = "Squashed commit of the following:\n\n" + "\n\n".join(commits) + "\n"
    return text.encode("utf-8", "surrogateescape")


def _show_stat(repo: Repository, old: bytes, new: bytes, options: MergeOptions) -> None:
    if options.no_stat:
        return
    pairs = compare(repo, repo.tree_of(old), repo.tree_of(new))
    repo.process.print(stat_text(repo.process, pairs) + mode_lines(pairs), end="")


def _check_clean(repo: Repository, ours: Flat, new: Flat, conflicts: set[str]) -> None:
    """Local changes must not be in the way of a merge."""
    touched = {path for path in ours.keys() | new.keys() if ours.get(path) != new.get(path)} | conflicts
    staged = repo.staged()
    dirty = {path for path in staged.keys() | ours.keys() if staged.get(path) != ours.get(path)}
    blocked = sorted(touched & (set(changed_files(repo)) | dirty))
    if blocked:
        listed = "".join(f"\t{path}\n" for path in blocked)
        raise GitError(
            f"error: Your local changes to the following files would be overwritten by merge:\n{listed}"
            "Please commit your changes or stash them before you merge.\nAborting",
            1,
            "",
        )
    strangers = sorted(p for p in touched - ours.keys() if p not in repo.index and stat_of(repo, p) is not None)
    if strangers:
        listed = "".join(f"\t{path}\n" for path in strangers)
        raise GitError(
            f"error: The following untracked working tree files would be overwritten by merge:\n{listed}"
            "Please move or remove them before you merge.\nAborting",
            1,
            "",
        )


def _merge_abort(repo: Repository) -> int:
    try:
        repo.process.fs.stat(f"{repo.git}/MERGE_HEAD")
    except SysError:
        raise GitError("There is no merge to abort (MERGE_HEAD missing).") from None
    check_out(repo, repo.head_tree(), repo.head_tree(), force=True)
    forget_merge(repo)
    return 0


def forget_merge(repo: Repository) -> None:
    for name in ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD"):
        with suppress(SysError):
            repo.process.fs.unlink(f"{repo.git}/{name}")


# cherry-pick, revert


def apply_commit(
    repo: Repository,
    sha: bytes,
    *,
    reverse: bool = False,
    mainline: str | None = None,
    quiet: bool = False,
    what: str = "cherry-pick",
) -> list[str]:
    """Put one commit's change on top of HEAD, in the index and the work tree; the paths in conflict."""
    commit = repo.store.commit(sha)
    against = 0
    if mainline is not None:
        if not mainline.isdecimal() or int(mainline[:4]) < 1:
            raise GitError("-m option expects a number greater than zero", 129, "error: ")
        against = int(mainline[:4]) - 1
        if len(commit.parents) < 2:
            reason = f"mainline was specified but commit {sha.decode()} is not a merge."
            raise GitError(f"{reason}\nfatal: {what} failed", 128, "error: ")
        if against >= len(commit.parents):
            reason = f"commit {sha.decode()} does not have parent {against + 1}"
            raise GitError(f"{reason}\nfatal: {what} failed", 128, "error: ")
    elif len(commit.parents) > 1:
        reason = f"commit {sha.decode()} is a merge but no -m option was given."
        raise GitError(f"{reason}\nfatal: {what} failed", 128, "error: ")
    parent = repo.tree_of(bytes(commit.parents[against])) if commit.parents else {}
    mine = repo.tree_of(sha)
    base, theirs = (mine, parent) if reverse else (parent, mine)
    subject = subject_of(text_of(commit.message))
    label = f"{sha[:7].decode()} ({subject})"
    before = f"parent of {label}" if commit.parents else "(empty tree)"
    label, other = (before, label) if reverse else (label, before)
    ours = repo.head_tree()
    merged = merge_trees(repo, base, ours, theirs, "HEAD", label, base_name=other)
    _check_clean(repo, ours, merged.files, set(merged.conflicts))
    apply_merge(repo, ours, merged)
    for line in merged.messages:
        if not quiet or merged.conflicts:
            repo.process.print(line)
    return list(merged.conflicts)


@dataclass(frozen=True, slots=True)
class PickOptions:
    action: str | None = choice(
        {"--abort": "abort", "--continue": "continue", "--skip": "skip", "--quit": "quit"}, "go on"
    )
    no_commit: bool = flag("-n", "--no-commit", "don't commit")
    record: bool = flag("-x", "append the name of the commit")
    no_edit: bool = flag("--no-edit", "accept the message")
    edit: bool = flag("-e", "--edit", "(accepted)")
    mainline: str | None = value("-m", "--mainline", "parent number of a merge", metavar="N")


def cherry_pick(repo: Repository, args: list[str]) -> int:
    parsed = parse(PickOptions, args)
    options = PickOptions(**parsed.values)
    if options.action is not None:
        return _resume(repo, options.action, "CHERRY_PICK_HEAD", "cherry-pick")
    for sha in _picks(repo, parsed.operands):
        commit = repo.store.commit(sha)
        conflicts = apply_commit(repo, sha, mainline=options.mainline)
        message = text_of(commit.message)
        if options.record:
            message = message.rstrip("\n") + f"\n\n(cherry picked from commit {sha.decode()})\n"
        if conflicts:
            repo.process.write_file(f"{repo.git}/CHERRY_PICK_HEAD", sha + b"\n")
            repo.process.write_file(f"{repo.git}/MERGE_MSG", message.encode("utf-8", "surrogateescape"))
            subject = subject_of(message)
            raise GitError(
                f"error: could not apply {sha[:7].decode()}... {subject}\n"
                "hint: After resolving the conflicts, mark them with\n"
                'hint: "git add/rm <pathspec>", then run\n'
                'hint: "git cherry-pick --continue".\n'
                'hint: You can instead skip this commit with "git cherry-pick --skip".\n'
                'hint: To abort and get back to the state before "git cherry-pick",\n'
                'hint: run "git cherry-pick --abort".',
                1,
                "",
            )
        if options.no_commit:
            continue
        if repo.staged() == repo.head_tree():
            raise GitError(
                "The previous cherry-pick is now empty, possibly due to conflict resolution.\n"
                "If you wish to commit it anyway, use:\n\n    git commit --allow-empty\n\n"
                "Otherwise, please use 'git cherry-pick --skip'",
                1,
                "",
            )
        commit_again(repo, commit, message, "cherry-pick")
        show_summary(repo, repo.head() or b"", dated=True)
    return 0


def _picks(repo: Repository, names: list[str], *, newest_first: bool = False) -> list[bytes]:
    """Commits by name or range, in the order in which they are taken."""
    picks: list[bytes] = []
    for name in names:
        if ".." in name:
            left, _, right = name.partition("..")
            found = list(walk(repo, [repo.revision(right or "HEAD")], [repo.revision(left)]))
            picks += found if newest_first else reversed(found)
            continue
        try:
            picks.append(bytes(repo.store.commit(repo.resolve(name)).id))
        except KeyError:
            raise GitError(f"bad revision '{name}'") from None
    return picks


def commit_again(repo: Repository, commit: Commit, message: str, what: str) -> bytes:
    head = repo.head()
    assert head is not None
    sha = repo.make_commit(
        repo.store.unflatten(repo.staged()),
        [head],
        message,
        commit.author,
        (commit.author_time, commit.author_timezone),
    )
    repo.refs.set("HEAD", sha, f"{what}: {subject_of(message)}", repo.signature())
    return sha


def _resume(repo: Repository, action: str, marker: str, what: str) -> int:
    try:
        sha = repo.process.read_file(f"{repo.git}/{marker}").strip()
    except SysError:
        raise GitError(f"no cherry-pick or revert in progress\nfatal: {what} failed", 128, "error: ") from None
    if action in ("abort", "skip"):
        check_out(repo, repo.head_tree(), repo.head_tree(), force=True)
        forget_merge(repo)
        return 0
    if repo.conflicts():
        raise GitError(
            "Committing is not possible because you have unmerged files.\n"
            "hint: Fix them up in the work tree, and then use 'git add/rm <file>'\n"
            "hint: as appropriate to mark resolution and make a commit.\n"
            "fatal: Exiting because of an unresolved conflict.",
            128,
            "error: ",
        )
    message = text_of(repo.process.read_file(f"{repo.git}/MERGE_MSG"))
    commit_again(repo, repo.store.commit(sha), message, what)
    forget_merge(repo)
    show_summary(repo, repo.head() or b"", dated=True)
    return 0


def revert(repo: Repository, args: list[str]) -> int:
    parsed = parse(PickOptions, args)
    options = PickOptions(**parsed.values)
    if options.action is not None:
        return _resume(repo, options.action, "REVERT_HEAD", "revert")
    for sha in _picks(repo, parsed.operands, newest_first=True):
        commit = repo.store.commit(sha)
        subject = subject_of(text_of(commit.message))
        conflicts = apply_commit(repo, sha, reverse=True, mainline=options.mainline, what="revert")
        message = f'Revert "{subject}"\n\nThis reverts commit {sha.decode()}.\n'
        if options.mainline is not None:
            kept = commit.parents[int(options.mainline[:4]) - 1].decode()
            message = message.removesuffix(".\n") + f", reversing\nchanges made to {kept}.\n"
        if conflicts:
            repo.process.write_file(f"{repo.git}/REVERT_HEAD", sha + b"\n")
            repo.process.write_file(f"{repo.git}/MERGE_MSG", message.encode("utf-8", "surrogateescape"))
            raise GitError(
                f"error: could not revert {sha[:7].decode()}... {subject}\n"
                "hint: After resolving the conflicts, mark them with\n"
                'hint: "git add/rm <pathspec>", then run\nhint: "git revert --continue".\n'
                'hint: You can instead skip this commit with "git revert --skip".\n'
                'hint: To abort and get back to the state before "git revert",\nhint: run "git revert --abort".',
                1,
                "",
            )
        if options.no_commit:
            continue
        head = repo.head()
        assert head is not None
        made = repo.make_commit(repo.store.unflatten(repo.staged()), [head], message)
        repo.refs.set("HEAD", made, f"revert: {subject_of(message)}", repo.signature())
        show_summary(repo, made, dated=True)
    return 0


# tag


def tag(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        annotate: bool = flag("-a", "--annotate", "annotated tag, needs a message")
        message: tuple[str, ...] = many("-m", "--message", "tag message", metavar="MESSAGE")
        delete: bool = flag("-d", "--delete", "delete tags")
        list: bool = flag("-l", "--list", "list tag names")
        force: bool = flag("-f", "--force", "replace the tag if exists")
        lines: str | None = value("-n", "print lines of each message", metavar="N", bare="1")
        sort: tuple[str, ...] = many("--sort", "sort by", metavar="KEY")
        contains: str | None = value("--contains", "tags that contain the commit", metavar="COMMIT", bare="HEAD")
        no_contains: str | None = value("--no-contains", "tags that do not", metavar="COMMIT", bare="HEAD")
        merged: str | None = value("--merged", "tags that the commit reaches", metavar="COMMIT", bare="HEAD")
        no_merged: str | None = value("--no-merged", "tags that it does not", metavar="COMMIT", bare="HEAD")
        points: str | None = value("--points-at", "tags of the object", metavar="OBJECT", bare="HEAD")
        file: str | None = value("-F", "--file", "read the message from a file", metavar="FILE")
        form: str | None = value("--format", "how to show tags", metavar="FORMAT")
        sign: bool = flag("-s", "--sign", "sign the tag")

    parsed = parse(Options, attach_values(args))
    options, names = Options(**parsed.values), parsed.operands
    if options.delete:
        status = 0
        for name in names:
            sha = repo.refs.get(f"refs/tags/{name}")
            if sha is None:
                repo.process.error(f"error: tag '{name}' not found.\n")
                status = 1
                continue
            repo.refs.delete(f"refs/tags/{name}")
            repo.process.print(f"Deleted tag '{name}' (was {sha[:7].decode()})")
        return status
    limits = (options.contains, options.no_contains, options.merged, options.no_merged, options.points)
    if not names or options.list or options.lines or any(limit is not None for limit in limits):
        refs = [Ref(name, sha) for name, sha in repo.refs.under("refs/tags/").items()]
        if names:
            refs = [
                r for r in refs if any(compile_pattern(p).matches(r.name.removeprefix("refs/tags/")) for p in names)
            ]
        refs = limit_refs(
            repo, refs, contains=options.contains, no_contains=options.no_contains, merged=options.merged,
            no_merged=options.no_merged, points_at=options.points,
        )  # fmt: skip
        return _list_tags(repo, sort_refs(repo, refs, options.sort), options.lines, options.form)
    if options.sign:
        raise GitError("there are no keys here to sign with: gpg failed to sign the data", 128, "error: ")
    name = names[0]
    if not check_name(name):
        raise GitError(f"'{name}' is not a valid tag name.")
    if repo.refs.get(f"refs/tags/{name}") is not None and not options.force:
        raise GitError(f"tag '{name}' already exists")
    try:
        sha = repo.resolve(names[1] if len(names) > 1 else "HEAD")
    except KeyError:
        raise GitError(f"Failed to resolve '{names[1] if len(names) > 1 else 'HEAD'}' as a valid ref.") from None
    if options.annotate or options.message or options.file is not None:
        if options.file is not None:
            text = text_of(repo.process.read_file(options.file))
        else:
            text = "\n\n".join(options.message) if options.message else edit_message(repo)
        item = Tag()
        item.name = name.encode("utf-8", "surrogateescape")
        item.object = (type(repo.store.get(sha)), ObjectID(sha))
        item.tagger = repo.identity("COMMITTER")
        item.tag_time, item.tag_timezone = repo.now("COMMITTER")
        item.message = (text.strip("\n") + "\n").encode("utf-8", "surrogateescape")
        sha = repo.store.add(item)
    before = repo.refs.get(f"refs/tags/{name}")
    repo.refs.write(f"refs/tags/{name}", sha.decode())
    if before is not None and before != sha:
        repo.process.print(f"Updated tag '{name}' (was {before[:7].decode()})")
    return 0


def _list_tags(repo: Repository, refs: list[Ref], lines: str | None, form: str | None) -> int:
    for ref in refs:
        name = ref.name.removeprefix("refs/tags/")
        if form is not None:
            repo.process.print(format_ref(repo, ref, form))
            continue
        if lines is None:
            repo.process.print(name)
            continue
        item = repo.store.get(ref.sha)
        message = text_of((item.message if isinstance(item, (Tag, Commit)) else b"") or b"")
        wanted = int(lines[:9]) if lines.isdecimal() else 1
        first, *rest = message.rstrip("\n").split("\n")[: max(1, wanted)] if wanted > 1 else [subject_of(message)]
        repo.process.print("\n".join([f"{name:<15} {first}", *(f"    {line}" for line in rest)]))
    return 0


def path_exists(repo: Repository, name: str) -> bool:
    return stat_of(repo, relative(repo, name)) is not None
