"""`git rebase`: commits put anew on another one, in the order and the manner that a list says."""

from __future__ import annotations

from contextlib import suppress

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.bin._kit import choice, flag, many, value
from belljar.bin._kit.options import parse
from belljar.bin.git.repository.changes import patch_id
from belljar.bin.git.repository.editor import REMARKS, edit_message
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.history import walk
from belljar.bin.git.repository.hooks import run_hook, tell_checkout
from belljar.bin.git.repository.merge_state import forget_merge, remove_state
from belljar.bin.git.repository.merging import merge_base
from belljar.bin.git.repository.rebase_list import Step, edit_steps, move_fixups, parse_lines, write_steps
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, resolve
from belljar.bin.git.repository.sequencer import apply_commit, commit_again
from belljar.bin.git.repository.summary import show_summary
from belljar.bin.git.repository.text import commit_subject, subject_of, text_of
from belljar.bin.git.repository.work import changed_files, check_out
from belljar.bin.git.switch import switch


@dataclass(frozen=True, slots=True)
class RebaseOptions:
    action: str | None = choice(
        {"--abort": "abort", "--continue": "continue", "--skip": "skip", "--quit": "quit"}, "go on"
    )
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
    stat: bool = flag("-n", "--no-stat", "--stat", "--verify", "--no-gpg-sign", "-v", "(accepted)")


def rebase(repo: Repository, args: list[str]) -> int:
    parsed = parse(RebaseOptions, args)
    options = RebaseOptions(**parsed.values)
    state = f"{repo.git}/rebase-merge"
    if options.action is not None:
        return _resume(repo, state, options.action)
    _check_ready(repo, state)
    current = repo.refs.branch()
    if parsed.operands:
        upstream_name = parsed.operands[0]
    else:
        upstream_name = (repo.upstream((current or "").removeprefix("refs/heads/")) or "").removeprefix("refs/remotes/")
        if not upstream_name:
            raise GitError("There is no tracking information for the current branch.", 1, "")
    if len(parsed.operands) > 1:
        switch(repo, ["-q", parsed.operands[1]])
        current = repo.refs.branch()
    try:
        upstream = bytes(repo.store.commit(resolve(repo, upstream_name)).id)
    except KeyError:
        raise GitError(f"invalid upstream '{upstream_name}'") from None
    onto = find_commit(repo, options.onto) if options.onto else upstream
    if (head := repo.head()) is None:
        raise GitError("Could not resolve HEAD to a commit")
    name = (current or "HEAD").removeprefix("refs/heads/")
    listed = options.interactive or options.autosquash or bool(options.commands)
    if merge_base(repo, head, upstream) == upstream and onto == upstream and not listed and not options.force:
        if not options.quiet:
            repo.process.print(f"Current branch {name} is up to date.")
        return 0
    steps = _steps(repo, head, upstream, options)
    if options.interactive:
        steps = edit_steps(repo, state, steps, head, upstream, onto)
        if not steps:
            raise GitError("nothing to do", 1, "error: ")
    if not options.no_verify and run_hook(repo, "pre-rebase", upstream_name, *parsed.operands[1:2]):
        raise GitError("The pre-rebase hook refused to rebase.", 1)
    check_out(repo, repo.head_tree(), repo.tree_of(onto))
    repo.refs.write("HEAD", onto.decode())
    repo.refs.log("HEAD", head, onto, f"rebase (start): checkout {upstream_name}", repo.signature())
    tell_checkout(repo, head, onto)
    with suppress(SysError):
        repo.process.fs.mkdir(state)
    for file, text in (
        ("head-name", current or "detached HEAD"), ("onto", onto.decode()), ("orig-head", head.decode()),
        ("end", str(len(steps))), ("quiet", "yes" if options.quiet else ""),
        ("anew", "yes" if options.force else ""),
    ):  # fmt: skip
        repo.process.write_file(f"{state}/{file}", fsencode(f"{text}\n"))
    repo.process.write_file(f"{state}/done", b"")
    write_steps(repo, state, steps)
    return _run(repo, state)


def _check_ready(repo: Repository, state: str) -> None:
    with suppress(SysError):
        repo.process.fs.stat(f"{state}/git-rebase-todo")
        raise GitError(
            'It seems that there is already a rebase-merge directory: finish it ("git rebase --continue") '
            'or give it up ("git rebase --abort")'
        )
    reason = "You have unstaged changes." if changed_files(repo) else "Your index contains uncommitted changes."
    if changed_files(repo) or repo.staged() != repo.head_tree():
        raise GitError(f"cannot rebase: {reason}\nerror: Please commit or stash them.", 1, "error: ")


def _steps(repo: Repository, head: bytes, upstream: bytes, options: RebaseOptions) -> list[Step]:
    todo = [sha for sha in reversed(list(walk(repo, [head], [upstream]))) if len(repo.store.commit(sha).parents) < 2]
    if not options.reapply:
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
        process.error(f"Executing: {step.text}\n")
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
    if commit.parents and bytes(commit.parents[0]) == repo.head() and not meld and not anew:
        check_out(repo, repo.head_tree(), repo.tree_of(sha))
        repo.refs.set("HEAD", sha, reason, repo.signature())
    else:
        if apply_commit(repo, sha, quiet=True):
            process.write_file(f"{state}/stopped-sha", sha + b"\n")
            process.write_file(f"{repo.git}/MERGE_MSG", commit.message)
            raise GitError(_STUCK.format(name=sha[:7].decode(), subject=subject_of(message)), 1, "")
        if meld:
            _meld(repo, step, message, follows=follows, state=state)
        elif repo.staged() != repo.head_tree():
            commit_again(repo, commit, message, f"rebase ({step.verb})")
        else:
            process.error(f"dropping {sha.decode()} {subject_of(message)} -- patch contents already upstream\n")
            return True
    if step.verb == "reword":
        show_summary(repo, _amend(repo, edit_message(repo, message + REMARKS)), dated=True)
    if step.verb == "edit":
        process.stdout.flush()
        process.error(
            f"Stopped at {sha[:7].decode()}...  {subject_of(message)}\nYou can amend the commit now, with\n\n"
            "  git commit --amend \n\nOnce you are satisfied with your changes, run\n\n  git rebase --continue\n"
        )
        return False
    return True


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
    remove_state(repo, state)
    forget_merge(repo)
    if not quiet:
        process.stdout.flush()
        process.error(f"\r{' ' * 80}\rSuccessfully rebased and updated {name}.\n")
    return 0


def _resume(repo: Repository, state: str, action: str) -> int:
    process = repo.process
    try:
        process.fs.stat(state)
    except SysError:
        raise GitError("No rebase in progress?") from None
    if action in ("abort", "quit"):
        if action == "abort":
            head = process.read_file(f"{state}/orig-head").strip()
            name = text_of(process.read_file(f"{state}/head-name")).strip()
            check_out(repo, repo.head_tree(), repo.tree_of(head), force=True)
            repo.refs.write("HEAD", f"ref: {name}" if name.startswith("refs/") else head.decode())
        remove_state(repo, state)
        forget_merge(repo)
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
    if last.verb in ("fixup", "squash"):
        _meld(repo, last, text_of(commit.message), follows=False, state=state)
        return
    show_summary(repo, commit_again(repo, commit, text_of(commit.message), "rebase (continue)"))
