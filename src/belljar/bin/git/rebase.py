"""`git rebase`: commits put anew on another one, in the order and the manner that a list says."""

from __future__ import annotations

from contextlib import suppress

from dulwich.objects import Commit

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin.git.repository.changes import patch_id
from belljar.bin.git.repository.editor import REMARKS, edit_message, run_editor
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.hooks import run_hook, tell_checkout
from belljar.bin.git.repository.merge_state import forget_merge, read_state, remove_state
from belljar.bin.git.repository.merging import chosen_side, merge_base
from belljar.bin.git.repository.rebase_list import Step, edit_steps, move_fixups, parse_lines, parse_steps, write_steps
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, resolve
from belljar.bin.git.repository.sequencer import apply_commit
from belljar.bin.git.repository.summary import show_summary
from belljar.bin.git.repository.text import add_trailer, commit_subject, subject_of, text_of
from belljar.bin.git.repository.work import changed_files, check_out
from belljar.bin.git.show import show
from belljar.bin.git.stash import apply_stash, create_stash
from belljar.bin.git.switch import switch


@dataclass(frozen=True, slots=True)
class RebaseOptions:
    action: str | None = choice(
        {"--abort": "abort", "--continue": "continue", "--skip": "skip", "--quit": "quit", "--edit-todo": "edit",
         "--show-current-patch": "show"}, "go on",
    )  # fmt: skip
    onto: str | None = value("--onto", "rebase onto another commit", metavar="NEWBASE")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    interactive: bool = flag("-i", "--interactive", "let the list be edited")
    autosquash: bool = flag("--autosquash", "move fixup! and squash! commits to what they mend")
    no_autosquash: bool = flag("--no-autosquash", "don't")
    commands: tuple[str, ...] = many("-x", "--exec", "run a command after each commit", metavar="COMMAND")
    reapply: bool = flag("--reapply-cherry-picks", "keep commits whose change is there already")
    force: bool = flag("-f", "--force-rebase", "--no-ff", "make the commits anew in any case")
    keep_empty: bool = flag("--keep-empty", "--no-keep-empty", "--empty", "(commits that are empty are kept)")
    no_verify: bool = flag("--no-verify", "bypass the pre-rebase hook")
    root: bool = flag("--root", "rebase all commits of the branch, down to the first")
    favour: tuple[str, ...] = many("-X", "--strategy-option", "ours, theirs", metavar="OPTION")
    strategy: str | None = value("-s", "--strategy", "ort, recursive or resolve", metavar="STRATEGY")
    autostash: bool | None = choice({"--autostash": True, "--no-autostash": False}, "put local changes aside meanwhile")
    keep_base: bool = flag("--keep-base", "onto where the branch began")
    signoff: bool = flag("--signoff", "add a Signed-off-by trailer")
    same_date: bool = flag("--committer-date-is-author-date", "commits keep the time of their author")
    merges: str | None = value("-r", "--rebase-merges", "keep merges", metavar="MODE", bare="no-rebase-cousins")
    no_merges: bool = flag("--no-rebase-merges", "leave merges out (as by default)")
    stat: bool = flag(
        "-n", "--no-stat", "--stat", "--verify", "--no-gpg-sign", "-v", "--verbose", "-m", "--merge", "--apply",
        "--fork-point", "--no-fork-point", "--ff", "--no-update-refs", "--no-reapply-cherry-picks", "(accepted)",
    )  # fmt: skip


def rebase(repo: Repository, args: list[str]) -> int:
    parsed = parse(RebaseOptions, args)
    options = RebaseOptions(**parsed.values)
    state = f"{repo.git}/rebase-merge"
    if options.action is not None:
        return _resume(repo, state, options.action)
    if options.merges is not None and not options.no_merges:
        raise GitError("--rebase-merges is not there: without it, merges are left out of the new line", 1, "error: ")
    chosen_side(options.favour)
    autostash = repo.config_bool("rebase.autostash") if options.autostash is None else options.autostash
    _check_ready(repo, state, local_changes=autostash)
    current = repo.refs.branch()
    operands = ["", *parsed.operands] if options.root else parsed.operands
    if not operands:
        upstream_name = (repo.upstream((current or "").removeprefix("refs/heads/")) or "").removeprefix("refs/remotes/")
        if not upstream_name:
            repo.process.print(_NO_UPSTREAM.format(name=(current or "<branch>").removeprefix("refs/heads/")))
            return 1
        operands = [upstream_name]
    if len(operands) > 1:
        switch(repo, ["-q", operands[1]])
        current = repo.refs.branch()
    if (head := repo.head()) is None:
        raise GitError("Could not resolve HEAD to a commit")
    span = _span(repo, head, operands[0], options)
    name = (current or "HEAD").removeprefix("refs/heads/")
    listed = options.interactive or options.autosquash or bool(options.commands)
    if merge_base(repo, head, span.onto) == span.onto == span.fork and not listed:
        anew = options.force or options.signoff or options.same_date
        if not options.quiet and not options.root:
            text = "up to date, rebase forced" if anew else "up to date"
            repo.process.print(f"Current branch {name} is {text}.")
        if not anew:
            return 0
    steps = _steps(repo, head, span.upstream, options)
    if not options.no_verify and run_hook(repo, "pre-rebase", operands[0] or "--root", *operands[1:2]):
        raise GitError("The pre-rebase hook refused to rebase.", 1)
    stashed = create_stash(repo, "autostash") if autostash else None
    if stashed is not None:
        repo.process.print(f"Created autostash: {stashed[:7].decode()}")
        check_out(repo, repo.head_tree(), repo.head_tree(), force=True)
    if options.interactive:
        try:
            steps = edit_steps(repo, state, steps, head, span.upstream or span.onto, span.onto)
            if not steps:
                raise GitError("nothing to do", 1, "error: ")
        except GitError:
            if stashed is not None:
                _unstash(repo, stashed)
            raise
    anew = options.force or options.signoff or options.same_date
    onto, done = span.onto, []
    while steps and steps[0].verb == "pick" and not anew:
        sha = bytes(repo.store.commit(resolve(repo, steps[0].text.partition(" ")[0])).id)
        if [bytes(parent) for parent in repo.store.commit(sha).parents] != [onto]:
            break
        onto = sha
        done.append(steps.pop(0))
    check_out(repo, repo.head_tree(), repo.tree_of(onto))
    repo.process.write_file(f"{repo.git}/ORIG_HEAD", head + b"\n")
    repo.refs.write("HEAD", onto.decode())
    start = operands[0] or onto.decode()
    repo.refs.log("HEAD", head, onto, f"rebase (start): checkout {options.onto or start}", repo.signature())
    tell_checkout(repo, head, onto)
    with suppress(SysError):
        repo.process.fs.mkdir(state)
    for file, text in (
        ("head-name", current or "detached HEAD"), ("onto", span.onto.decode()), ("orig-head", head.decode()),
        ("end", str(len(steps) + len(done))), ("quiet", "yes" if options.quiet else ""),
        ("anew", "yes" if anew else ""), ("favour", " ".join(options.favour)),
        ("signoff", "yes" if options.signoff else ""), ("cdate_is_adate", "yes" if options.same_date else ""),
        ("autostash", stashed.decode() if stashed is not None else ""),
        ("squash-onto", span.onto.decode() if span.empty else ""),
    ):  # fmt: skip
        repo.process.write_file(f"{state}/{file}", fsencode(f"{text}\n"))
    repo.process.write_file(f"{state}/done", fsencode("".join(f"{step.line()}\n" for step in done)))
    write_steps(repo, state, steps)
    return _run(repo, state)


@dataclass(frozen=True, slots=True)
class Span:
    """The commits to rebase, and their new base."""

    upstream: bytes | None
    """Commits reachable from here are not rebased; None with --root."""
    fork: bytes | None
    """The fork point of the branch."""
    onto: bytes
    empty: bool = False
    """Whether `onto` is an empty commit that only stands for nothing."""


def _span(repo: Repository, head: bytes, upstream_name: str, options: RebaseOptions) -> Span:
    if options.root:
        if options.onto is None:
            return Span(None, None, repo.make_commit(repo.store.unflatten({}), [], ""), empty=True)
        onto = find_commit(repo, options.onto)
        return Span(onto, None, onto)
    try:
        upstream = bytes(repo.store.commit(resolve(repo, upstream_name)).id)
    except KeyError:
        raise GitError(f"invalid upstream '{upstream_name}'") from None
    fork = merge_base(repo, head, upstream)
    if options.keep_base:
        if fork is None:
            raise GitError(f"'{upstream_name}': need exactly one merge base with branch")
        return Span(upstream, fork, fork)
    onto = find_commit(repo, options.onto) if options.onto else upstream
    return Span(upstream, fork, onto)


_NO_UPSTREAM = """\
There is no tracking information for the current branch.
Please specify which branch you want to rebase against.
See git-rebase(1) for details.

    git rebase '<branch>'

If you wish to set tracking information for this branch you can do so with:

    git branch --set-upstream-to=<remote>/<branch> {name}
"""


def _check_ready(repo: Repository, state: str, *, local_changes: bool) -> None:
    with suppress(SysError):
        repo.process.fs.stat(f"{state}/git-rebase-todo")
        raise GitError(
            'It seems that there is already a rebase-merge directory: finish it ("git rebase --continue") '
            'or give it up ("git rebase --abort")'
        )
    if local_changes and not repo.conflicts():
        return
    reason = "You have unstaged changes." if changed_files(repo) else "Your index contains uncommitted changes."
    if changed_files(repo) or repo.staged() != repo.head_tree():
        raise GitError(f"cannot rebase: {reason}\nerror: Please commit or stash them.", 1, "error: ")


def _steps(repo: Repository, head: bytes, upstream: bytes | None, options: RebaseOptions) -> list[Step]:
    todo = [sha for sha in reversed(list(walk(repo, [head], [upstream] if upstream else [])))
            if len(repo.store.commit(sha).parents) < 2]  # fmt: skip
    if not options.reapply and upstream is not None:
        known = {patch_id(repo, sha) for sha in walk(repo, [upstream], [head])}
        skipped = [sha for sha in todo if patch_id(repo, sha) in known]
        todo = [sha for sha in todo if sha not in skipped]
        for sha in skipped:
            repo.process.error(f"warning: skipped previously applied commit {sha[:7].decode()}\n")
        if skipped:
            repo.process.error(
                "hint: use --reapply-cherry-picks to include skipped commits\n"
                'hint: Disable this message with "git config advice.skippedCherryPicks false"\n'
            )
    steps = [Step("pick", f"{sha[:7].decode()} {commit_subject(repo, sha)}") for sha in todo]
    if (options.autosquash or repo.config_bool("rebase.autosquash")) and not options.no_autosquash:
        steps = move_fixups(steps)
    out: list[Step] = []
    for number, step in enumerate(steps):
        out.append(step)
        last = number + 1 == len(steps) or steps[number + 1].verb not in ("fixup", "squash")
        out += [Step("exec", command) for command in options.commands if last]
    return out


def _run(repo: Repository, state: str) -> int:
    process = repo.process
    quiet = process.read_file(f"{state}/quiet").strip() == b"yes"
    anew = process.read_file(f"{state}/anew").strip() == b"yes"
    steps = parse_lines(text_of(process.read_file(f"{state}/git-rebase-todo")))
    while steps:
        step = steps.pop(0)
        write_steps(repo, state, steps)
        done = process.read_file(f"{state}/done") + fsencode(step.line()) + b"\n"
        process.write_file(f"{state}/done", done)
        if not quiet:
            process.stdout.flush()
            process.error(f"Rebasing ({done.count(10)}/{text_of(process.read_file(f'{state}/end')).strip()})\r")
        follows = bool(steps) and steps[0].verb in ("fixup", "squash")
        if not _take(repo, state, step, follows=follows, anew=anew):
            return 0
    return _finish(repo, state, quiet=quiet)


def _take(repo: Repository, state: str, step: Step, *, follows: bool, anew: bool) -> bool:
    """Do one step; False if the user is to go on by hand. `follows`: what comes next melds into this one."""
    process = repo.process
    if step.verb == "drop":
        return True
    if step.verb == "break":
        process.stdout.flush()
        process.error("\n")
        head = repo.head() or b""
        process.print(f"Stopped at {head[:7].decode()}...  {commit_subject(repo, head)}")
        return False
    if step.verb == "exec":
        process.stdout.flush()
        process.error(f"{_CLEAR}Executing: {step.text}\n")
        if process.run(["/bin/sh", "-c", step.text]).shell:
            raise GitError(
                f"execution failed: {step.text}\nYou can fix the problem, and then run\n\n  git rebase --continue\n\n",
                1,
                "warning: ",
            )
        return True
    sha = bytes(repo.store.commit(resolve(repo, step.text.partition(" ")[0])).id)
    commit = repo.store.commit(sha)
    message = text_of(commit.message)
    reason = f"rebase ({step.verb}): {subject_of(message)}"
    meld = step.verb in ("fixup", "squash")
    squash_onto = read_state(repo, "rebase-merge/squash-onto") or ""
    first = bool(squash_onto) and repo.head() == squash_onto.encode()
    parent = bytes(commit.parents[0]) if commit.parents else squash_onto.encode()
    if parent == repo.head() and not meld and not anew:
        check_out(repo, repo.head_tree(), repo.tree_of(sha))
        repo.refs.set("HEAD", sha, reason, repo.signature())
    else:
        favour = chosen_side((read_state(repo, "rebase-merge/favour") or "").split())
        if apply_commit(repo, sha, quiet=True, what="rebase", favour=favour):
            process.write_file(f"{state}/stopped-sha", sha + b"\n")
            process.write_file(f"{repo.git}/MERGE_MSG", commit.message)
            raise GitError(_STUCK.format(name=sha[:7].decode(), subject=subject_of(message)), 1, "")
        if meld:
            _meld(repo, step, message, follows=follows, state=state)
        elif first or repo.staged() != repo.head_tree() or _was_empty(repo, commit):
            _commit_step(repo, commit, message, f"rebase ({step.verb})", root=first)
        else:
            process.error(f"dropping {sha.decode()} {subject_of(message)} -- patch contents already upstream\n")
            return True
    if step.verb == "reword":
        show_summary(repo, _amend(repo, edit_message(repo, message + REMARKS)), dated=True)
    if step.verb == "edit":
        process.stdout.flush()
        process.error(
            f"{_CLEAR}Stopped at {sha[:7].decode()}...  {subject_of(message)}\nYou can amend the commit now, with\n\n"
            "  git commit --amend \n\nOnce you are satisfied with your changes, run\n\n  git rebase --continue\n"
        )
        return False
    return True


def _was_empty(repo: Repository, commit: Commit) -> bool:
    """Whether a commit changed nothing to begin with: then it is kept."""
    parent = repo.tree_of(bytes(commit.parents[0])) if commit.parents else {}
    return parent == repo.tree_of(bytes(commit.id))


def _commit_step(repo: Repository, commit: Commit, message: str, what: str, *, root: bool = False) -> bytes:
    """Commit the index in place of a commit; `root`: as the first of all."""
    if read_state(repo, "rebase-merge/signoff"):
        message = add_trailer(message, f"Signed-off-by: {text_of(repo.identity('COMMITTER'))}")
    when = None
    if read_state(repo, "rebase-merge/cdate_is_adate"):
        when = (commit.author_time, commit.author_timezone)
    head = repo.head()
    made = repo.make_commit(
        repo.store.unflatten(repo.staged()),
        [head] if head is not None and not root else [],
        message,
        commit.author,
        (commit.author_time, commit.author_timezone),
        when,
    )
    repo.refs.set("HEAD", made, f"{what}: {subject_of(message)}", repo.signature())
    return made


def _unstash(repo: Repository, stashed: bytes) -> None:
    """Bring local changes back; what does not fit stays in the list of stashes."""
    if apply_stash(repo, stashed) == 0:
        repo.process.error("Applied autostash.\n")
        return
    repo.refs.set("refs/stash", stashed, "autostash", repo.signature())
    repo.process.error(
        "Applying autostash resulted in conflicts.\nYour changes are safe in the stash.\n"
        'You can run "git stash pop" or "git stash drop" at any time.\n'
    )


_CLEAR = f"\r{' ' * 80}\r"
"""Over the line that counts the steps."""
_STUCK = """\
error: could not apply {name}... {subject}
hint: Resolve all conflicts manually, mark them as resolved with
hint: "git add/rm <conflicted_files>", then run "git rebase --continue".
hint: You can instead skip this commit: run "git rebase --skip".
hint: To abort and get back to the state before "git rebase", run "git rebase --abort".
Could not apply {name}... {subject}"""


def _meld(repo: Repository, step: Step, message: str, *, follows: bool, state: str) -> None:
    """Make the last commit hold this one's change, too; its message is edited once, with the last of a row."""
    head = repo.head() or b""
    text = text_of(repo.store.commit(head).message).rstrip("\n")
    edit = False
    path = f"{state}/melding"
    with suppress(SysError):
        repo.process.fs.stat(path)
        edit = True
    if step.verb == "squash":
        text += "\n\n" + message.strip("\n")
        repo.process.write_file(path, b"")
        edit = True
    if edit and not follows:
        text = edit_message(repo, f"{text}\n{REMARKS}")
        with suppress(SysError):
            repo.process.fs.unlink(path)
    made = _amend(repo, text)
    if not follows and step.verb == "squash":
        show_summary(repo, made, dated=True)


def _amend(repo: Repository, message: str) -> bytes:
    """The last commit again, with the index as it is and another message."""
    head = repo.head() or b""
    commit = repo.store.commit(head)
    made = repo.make_commit(
        repo.store.unflatten(repo.staged()),
        [bytes(parent) for parent in commit.parents],
        message.strip("\n") + "\n",
        commit.author,
        (commit.author_time, commit.author_timezone),
    )
    repo.refs.set("HEAD", made, f"rebase: {subject_of(message)}", repo.signature())
    return made


def _finish(repo: Repository, state: str, *, quiet: bool) -> int:
    process = repo.process
    name = text_of(process.read_file(f"{state}/head-name")).strip()
    if (done := repo.head()) is None:
        raise GitError("Could not resolve HEAD to a commit")
    if name.startswith("refs/"):
        old = repo.refs.get(name) or done
        repo.refs.write(name, done.decode())
        repo.refs.log(name, old, done, f"rebase (finish): {name} onto {done.decode()}", repo.signature())
        repo.refs.write("HEAD", f"ref: {name}")
        repo.refs.log("HEAD", done, done, f"rebase (finish): returning to {name}", repo.signature())
    stashed = read_state(repo, "rebase-merge/autostash")
    remove_state(repo, state)
    forget_merge(repo)
    process.stdout.flush()
    if stashed:
        _unstash(repo, stashed.encode())
    if not quiet:
        process.error(f"{_CLEAR}Successfully rebased and updated {name}.\n")
    return 0


def _resume(repo: Repository, state: str, action: str) -> int:
    process = repo.process
    if not process.fs.exists(state):
        raise GitError("No rebase in progress?")
    if action == "show":
        stopped = read_state(repo, "rebase-merge/stopped-sha")
        return show(repo, [stopped or "HEAD"])
    if action == "edit":
        run_editor(repo, f"{state}/git-rebase-todo", process.env.get("GIT_SEQUENCE_EDITOR"))
        write_steps(repo, state, parse_steps(repo, text_of(process.read_file(f"{state}/git-rebase-todo"))))
        return 0
    if action in ("abort", "quit"):
        stashed = read_state(repo, "rebase-merge/autostash")
        if action == "abort":
            head = process.read_file(f"{state}/orig-head").strip()
            name = text_of(process.read_file(f"{state}/head-name")).strip()
            check_out(repo, repo.head_tree(), repo.tree_of(head), force=True)
            repo.refs.write("HEAD", f"ref: {name}" if name.startswith("refs/") else head.decode())
        remove_state(repo, state)
        forget_merge(repo)
        if stashed:
            _unstash(repo, stashed.encode())
        return 0
    if action == "skip":
        check_out(repo, repo.head_tree(), repo.head_tree(), force=True)
        forget_merge(repo)
        return _run(repo, state)
    if repo.conflicts():
        listed = "".join(f"{path}: needs merge\n" for path in repo.conflicts())
        raise GitError(
            f"{listed}You must edit all merge conflicts and then\nmark them as resolved using git add", 1, ""
        )
    if repo.staged() != repo.head_tree():
        _conclude(repo, state)
    forget_merge(repo)
    return _run(repo, state)


def _conclude(repo: Repository, state: str) -> None:
    """Commit what the user resolved, or added to a commit that he stopped at."""
    last = parse_lines(text_of(repo.process.read_file(f"{state}/done")))[-1]
    try:
        sha = repo.process.read_file(f"{state}/stopped-sha").strip()
        repo.process.fs.unlink(f"{state}/stopped-sha")
    except SysError:
        _amend(repo, text_of(repo.store.commit(repo.head() or b"").message))
        return
    commit = repo.store.commit(sha)
    message = text_of(commit.message)
    if last.verb in ("fixup", "squash"):
        _meld(repo, last, text_of(commit.message), follows=False, state=state)
        return
    show_summary(repo, _commit_step(repo, commit, message, "rebase (continue)"))
