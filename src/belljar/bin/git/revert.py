"""`git revert`: what commits changed, undone on top of HEAD."""

from __future__ import annotations

from belljar.abi.paths import fsencode
from belljar.bin._kit.options import parse
from belljar.bin.git.cherry_pick import PickOptions, apply_commit, picks, resume
from belljar.bin.git.commit import show_summary
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.hooks import edit_by_hook, run_hook
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import subject_of, text_of


def revert(repo: Repository, args: list[str]) -> int:
    parsed = parse(PickOptions, args)
    options = PickOptions(**parsed.values)
    if options.action is not None:
        return resume(repo, options.action, "REVERT_HEAD", "revert")
    for sha in picks(repo, parsed.operands, newest_first=True):
        commit = repo.store.commit(sha)
        subject = subject_of(text_of(commit.message))
        conflicts = apply_commit(repo, sha, reverse=True, mainline=options.mainline, what="revert")
        message = f'Revert "{subject}"\n\nThis reverts commit {sha.decode()}.\n'
        if options.mainline is not None:
            kept = commit.parents[int(options.mainline[:4]) - 1].decode()
            message = message.removesuffix(".\n") + f", reversing\nchanges made to {kept}.\n"
        if conflicts:
            repo.process.write_file(f"{repo.git}/REVERT_HEAD", sha + b"\n")
            repo.process.write_file(f"{repo.git}/MERGE_MSG", fsencode(message))
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
        prepared = edit_by_hook(repo, "prepare-commit-msg", "COMMIT_EDITMSG", message, "message")
        if prepared is None:
            return 1
        message = prepared
        head = repo.head()
        made = repo.make_commit(repo.store.unflatten(repo.staged()), [head] if head is not None else [], message)
        repo.refs.set("HEAD", made, f"revert: {subject_of(message)}", repo.signature())
        run_hook(repo, "post-commit", committing=True)
        show_summary(repo, made, dated=True)
    return 0
