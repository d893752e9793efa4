"""`git merge`: another branch's history into this one."""

from __future__ import annotations

from collections.abc import Iterable

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, flag, many, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.commit import commit
from belljar.bin.git.repository.diffs import compare, mode_lines, stat_text
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.formats import Formatter
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.hooks import edit_by_hook, run_hook
from belljar.bin.git.repository.merge_state import check_clean, check_merged, forget_merge, read_state, reset_merge
from belljar.bin.git.repository.merging import Merged, apply_merge, chosen_side, merge_base, merge_trees
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import resolve
from belljar.bin.git.repository.text import commit_subject, text_of
from belljar.bin.git.repository.work import check_out


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
    no_verify: bool = flag("--no-verify", "bypass the pre-merge-commit and commit-msg hooks")
    verify: bool = flag("--verify", "--no-gpg-sign", "--signoff", "(accepted)")


def merge(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(MergeOptions, args)
    if options.action == "abort":
        return _merge_abort(repo)
    if options.action == "continue":
        return commit(repo, [])
    check_merged(repo, "Merging")
    if options.strategy not in ("ort", "recursive", "resolve", "ours"):
        raise GitError(f"the merge strategy '{options.strategy}' is not there: ort, recursive, resolve or ours", 1)
    names = operands
    if len(names) > 1:
        raise GitError("merging several branches at once (octopus) is not there: merge one after the other", 128)
    if not names:
        current = (repo.refs.branch() or "").removeprefix("refs/heads/")
        upstream = repo.upstream(current)
        if upstream is None:
            raise GitError("No remote for the current branch.")
        names = [upstream.removeprefix("refs/remotes/")]
    try:
        other = bytes(repo.store.commit(resolve(repo, names[0])).id)
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
        if not options.quiet:
            process.print("Already up to date.")
        return 0
    process.write_file(f"{repo.git}/ORIG_HEAD", head + b"\n")
    if options.squash and options.ff == "no-ff":
        raise GitError("options '--squash' and '--no-ff.' cannot be used together")
    if base == head and options.ff != "no-ff":
        if not options.quiet:
            process.print(f"Updating {head[:7].decode()}..{other[:7].decode()}")
        check_out(repo, repo.tree_of(head), repo.tree_of(other), what="merge")
        if not options.quiet:
            process.print("Fast-forward")
        if options.squash:
            process.print("Squash commit -- not updating HEAD")
            process.write_file(f"{repo.git}/SQUASH_MSG", _squash_message(repo, head, other))
        else:
            repo.refs.set("HEAD", other, f"merge {name}: Fast-forward", repo.signature())
        if not options.quiet:
            _show_stat(repo, head, other, options)
        run_hook(repo, "post-merge", "1" if options.squash else "0")
        return 0
    if options.ff == "only":
        raise GitError("Not possible to fast-forward, aborting.")
    ours, theirs = repo.tree_of(head), repo.tree_of(other)
    if options.strategy == "ours":
        merged = Merged(files=dict(ours))
    else:
        favour = chosen_side(options.favour)
        old = repo.tree_of(base) if base else {}
        base_name = base[:7].decode() if base else "empty tree"
        merged = merge_trees(repo, old, ours, theirs, "HEAD", name, base_name=base_name, favour=favour)
    try:
        check_clean(repo, ours, merged.files, set(merged.conflicts))
    except GitError as error:
        raise GitError(f"{error.message}\nMerge with strategy {options.strategy} failed.", 2, "") from None
    current = repo.refs.branch()
    branch_name = current.removeprefix("refs/heads/") if current else "HEAD"
    default = f"Merge {what}" + ("" if branch_name in ("master", "main") else f" into {branch_name}")
    message = "\n\n".join(options.message) if options.message else default
    if options.file is not None:
        message = text_of(process.read_file(options.file)).rstrip("\n")
    if options.log is not None:
        subjects = [commit_subject(repo, sha) for sha in walk(repo, [other], [head])]
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
        run_hook(repo, "post-merge", "1")
        return 0
    if merged.conflicts or options.no_commit:
        _keep_state(repo, other, message, merged.conflicts, options)
        if merged.conflicts:
            process.print("Automatic merge failed; fix conflicts and then commit the result.")
            return 1
        process.stdout.flush()
        process.error("Automatic merge went well; stopped before committing as requested\n")
        return 0
    checked = _checked_message(repo, message, options)
    if checked is None:
        _keep_state(repo, other, message, (), options)
        process.error("Not committing merge; use 'git commit' to complete the merge.\n")
        return 1
    files = repo.staged()  # a hook may have added to them
    sha = repo.make_commit(repo.store.unflatten(files), [head, other], checked)
    made = f"Merge made by the '{'ort' if options.strategy == 'recursive' else options.strategy}' strategy."
    repo.refs.set("HEAD", sha, f"merge {name}: {made}", repo.signature())
    if not options.quiet:
        process.print(made)
        _show_stat(repo, head, sha, options)
    run_hook(repo, "post-merge", "0")
    return 0


def _checked_message(repo: Repository, message: str, options: MergeOptions) -> str | None:
    """The message as hooks leave it; None if one of them refuses the merge."""
    if not options.no_verify and (refused := run_hook(repo, "pre-merge-commit", committing=True)) is not None:
        if refused:
            return None
        repo.forget_index()
    text = edit_by_hook(repo, "prepare-commit-msg", "MERGE_MSG", message + "\n", "merge")
    if text is not None and not options.no_verify:
        text = edit_by_hook(repo, "commit-msg", "MERGE_MSG", text)
    forget_merge(repo)
    return text


def _keep_state(repo: Repository, other: bytes, message: str, conflicts: Iterable[str], options: MergeOptions) -> None:
    """Write the files that `git commit` needs to conclude a merge."""
    process = repo.process
    process.write_file(f"{repo.git}/MERGE_HEAD", other + b"\n")
    process.write_file(f"{repo.git}/MERGE_MODE", b"no-ff" if options.ff == "no-ff" else b"")
    listed = "".join(f"#\t{path}\n" for path in conflicts)
    text = message + "\n" + (f"\n# Conflicts:\n{listed}" if listed else "")
    process.write_file(f"{repo.git}/MERGE_MSG", fsencode(text))


def _squash_message(repo: Repository, head: bytes, other: bytes) -> bytes:
    """Return the default message of a squashed merge: the log of its commits."""
    formatter = Formatter(repo)
    commits = [formatter.show(sha) for sha in walk(repo, [other], [head])]
    text = "Squashed commit of the following:\n\n" + "\n\n".join(commits) + "\n"
    return fsencode(text)


def _show_stat(repo: Repository, old: bytes, new: bytes, options: MergeOptions) -> None:
    if options.no_stat:
        return
    pairs = compare(repo, repo.tree_of(old), repo.tree_of(new))
    repo.process.print(stat_text(repo.process, pairs) + mode_lines(pairs), end="")


def _merge_abort(repo: Repository) -> int:
    if read_state(repo, "MERGE_HEAD") is None:
        raise GitError("There is no merge to abort (MERGE_HEAD missing).")
    reset_merge(repo, repo.head_tree())
    forget_merge(repo)
    return 0
