"""`git pull`: fetch, then merge or rebase."""

from __future__ import annotations

from belljar.bin.git.fetch import fetch_from
from belljar.bin.git.merge import MergeOptions, merge_commit
from belljar.bin.git.rebase import rebase
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.merging import ancestors
from belljar.bin.git.repository.remotes import remotes, shown_url
from belljar.bin.git.repository.repo import Repository


def pull(repo: Repository, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    flags = [arg for arg in args if arg.startswith("-")]
    current = (repo.refs.branch() or "").removeprefix("refs/heads/")
    configured = repo.config(f"branch.{current}.remote")
    name = words[0] if words else configured or "origin"
    merge_ref = repo.config(f"branch.{current}.merge") if not words or name == configured else None
    if len(words) < 2 and merge_ref is None:
        raise GitError(
            "There is no tracking information for the current branch.\n"
            "Please specify which branch you want to merge with.\nSee git-pull(1) for details.\n\n"
            "    git pull <remote> <branch>\n\n"
            "If you wish to set tracking information for this branch you can do so with:\n\n"
            f"    git branch --set-upstream-to={configured or '<remote>'}/<branch> {current}\n",
            1,
            "",
        )
    wanted = words[1] if len(words) > 1 else (merge_ref or "").removeprefix("refs/heads/")
    quiet = "-q" in flags or "--quiet" in flags
    heads = fetch_from(repo, name, [wanted] if len(words) > 1 else [], quiet=quiet)
    url = remotes(repo).get(name, name)
    tip = heads.get(f"refs/heads/{wanted}")
    if tip is None:
        raise GitError(f"couldn't find remote ref {wanted}")
    rebasing = "--rebase" in flags or "-r" in flags or repo.config_bool("pull.rebase")
    head = repo.head()
    if rebasing and head is not None:
        if tip in ancestors(repo, head):
            if not quiet:
                repo.process.print("Already up to date.")
            return 0
        return rebase(repo, [*(flag for flag in flags if flag in ("--autostash", "-q", "--quiet")), tip.decode()])
    if head is not None and tip not in ancestors(repo, head) and head not in ancestors(repo, tip):
        chosen = "--no-rebase" in flags or "--no-ff" in flags or "--ff" in flags
        if not chosen and repo.config("pull.rebase") is None and repo.config("pull.ff") is None:
            if "--ff-only" in flags:
                raise GitError("Not possible to fast-forward, aborting.")
            repo.process.error(_DIVERGENT.format(empty=""))
            raise GitError("Need to specify how to reconcile divergent branches.")
    ff = "no-ff" if "--no-ff" in flags else "only" if "--ff-only" in flags else "ff"
    what = f"branch '{wanted}' of {shown_url(url)}"
    return merge_commit(
        repo,
        tip,
        tip.decode(),
        what,
        MergeOptions(ff=ff, quiet=quiet, unrelated="--allow-unrelated-histories" in flags, squash="--squash" in flags),
    )


_DIVERGENT = """\
hint: You have divergent branches and need to specify how to reconcile them.
hint: You can do so by running one of the following commands sometime before
hint: your next pull:
hint: {empty}
hint:   git config pull.rebase false  # merge
hint:   git config pull.rebase true   # rebase
hint:   git config pull.ff only       # fast-forward only
hint: {empty}
hint: You can replace "git config" with "git config --global" to set a default
hint: preference for all repositories. You can also pass --rebase, --no-rebase,
hint: or --ff-only on the command line to override the configured default per
hint: invocation.
"""
