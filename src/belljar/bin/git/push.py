"""`git push`: commits and refs to another repository."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.paths import fsencode
from belljar.bin._kit import flag
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.hooks import run_hook
from belljar.bin.git.repository.merging import ancestors
from belljar.bin.git.repository.refs import ZERO
from belljar.bin.git.repository.remote import Remote, Update
from belljar.bin.git.repository.remotes import open_remote, remotes
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import full_name, resolve
from belljar.bin.git.repository.tracking import configure_upstream
from belljar.bin.git.repository.web_remote import without_secrets


@dataclass(frozen=True, slots=True)
class Options:
    upstream: bool = flag("-u", "--set-upstream", "set upstream")
    force: bool = flag("-f", "--force", "--force-with-lease", "force updates")
    all: bool = flag("--all", "push all branches")
    tags: bool = flag("--tags", "push tags")
    delete: bool = flag("-d", "--delete", "delete refs")
    quiet: bool = flag("-q", "--quiet", "be quiet")
    dry_run: bool = flag("-n", "--dry-run", "dry run")
    no_verify: bool = flag("--no-verify", "bypass the pre-push hook")
    verify: bool = flag("--verify", "(as by default)")


def push(repo: Repository, args: list[str]) -> int:
    options, words = read_options(Options, args)
    known = remotes(repo)
    current = (repo.refs.branch() or "").removeprefix("refs/heads/")
    name = words[0] if words else repo.config(f"branch.{current}.remote") or ("origin" if "origin" in known else "")
    if not name:
        raise GitError(
            "No configured push destination.\nEither specify the URL from the command-line or configure a remote "
            "repository using\n\n    git remote add <name> <url>\n\nand then push using the remote name\n\n"
            "    git push <name>\n"
        )
    if (
        not words[1:]
        and not options.all
        and not options.tags
        and repo.upstream(current) is None
        and not options.upstream
    ):
        raise GitError(
            f"The current branch {current} has no upstream branch.\n"
            "To push the current branch and set the remote as upstream, use\n\n"
            f"    git push --set-upstream {name} {current}\n\n"
            "To have this happen automatically for branches without a tracking\n"
            "upstream, see 'push.autoSetupRemote' in 'git help config'.\n"
        )
    url = known.get(name, name)
    target = open_remote(repo.process, url, repo.config_all)
    repo.others.append(target)
    specs = words[1:] or ([] if options.all or options.tags else [current])
    wanted: list[tuple[str, str, bool]] = []
    for spec in specs:
        force = options.force or spec.startswith("+")
        source_name, colon, target_name = spec.lstrip("+").partition(":")
        if options.delete:
            source_name, target_name = "", source_name
        wanted.append((source_name, target_name if colon or options.delete else source_name, force))
    if options.all:
        heads = [ref.removeprefix("refs/heads/") for ref in repo.refs.under("refs/heads/")]
        wanted += [(head, head, options.force) for head in heads]
    if options.tags:
        wanted += [(r, r, options.force) for r in repo.refs.under("refs/tags/")]
    rows: list[str] = []
    failed = False
    tracked = name if name in known else ""
    planned = [_plan(repo, target, url, *item) for item in wanted]
    updates = [plan.update for plan in planned if plan.update is not None]
    if not options.no_verify and not _may_push(repo, name, url, planned, wanted):
        repo.process.error(f"error: failed to push some refs to '{without_secrets(url)}'\n")
        return 1
    refused = target.send(repo, updates) if updates and not options.dry_run else {}
    for plan, (source_name, target_name, _) in zip(planned, wanted, strict=True):
        row = plan.row
        if plan.update is not None and plan.update.ref in refused:
            row = f" ! [remote rejected] {plan.shown} ({refused[plan.update.ref]})\n"
        good = not row.startswith(" !")
        failed = failed or not good
        rows += [row] if row else []
        if good and plan.update is not None and tracked and not options.dry_run:
            _track(repo, tracked, plan.update)
        if good and options.upstream and source_name:
            configure_upstream(repo, source_name, name, target_name)
    if not rows:
        repo.process.error("Everything up-to-date\n")
    elif not options.quiet or failed:
        repo.process.error(f"To {without_secrets(url)}\n" + "".join(rows))
    if options.upstream and not failed and not options.quiet:
        for source_name, target_name, _ in wanted:
            repo.process.print(f"branch '{source_name}' set up to track '{name}/{target_name}'.")
    if failed:
        repo.process.error(f"error: failed to push some refs to '{without_secrets(url)}'\n" + _hint(rows))
        return 1
    return 0


def _may_push(repo: Repository, name: str, url: str, planned: list[_Plan], wanted: list[tuple[str, str, bool]]) -> bool:
    """Run the pre-push hook on the refs that would change; return whether it allows the push."""
    lines = []
    for plan, (source, _, _) in zip(planned, wanted, strict=True):
        if (update := plan.update) is not None:
            local = full_name(repo, source) if update.new is not None else "(delete)"
            new, old = (update.new or ZERO).decode(), (update.old or ZERO).decode()
            lines.append(f"{local} {new} {update.ref} {old}\n")
    return not run_hook(repo, "pre-push", name, url, given=fsencode("".join(lines)), to_stdout=True)


def _hint(rows: list[str]) -> str:
    """Return the advice for a rejected push."""
    if any("(fetch first)" in row for row in rows):
        return _FETCH_FIRST
    return _BEHIND if any("(non-fast-forward)" in row for row in rows) else ""


_FETCH_FIRST = """\
hint: Updates were rejected because the remote contains work that you do
hint: not have locally. This is usually caused by another repository pushing
hint: to the same ref. You may want to first integrate the remote changes
hint: (e.g., 'git pull ...') before pushing again.
hint: See the 'Note about fast-forwards' in 'git push --help' for details.
"""
_BEHIND = """\
hint: Updates were rejected because the tip of your current branch is behind
hint: its remote counterpart. Integrate the remote changes (e.g.
hint: 'git pull ...') before pushing again.
hint: See the 'Note about fast-forwards' in 'git push --help' for details.
"""


@dataclass(frozen=True, slots=True)
class _Plan:
    """A push's update of one ref, and its status line."""

    row: str
    shown: str = ""
    update: Update | None = None


def _plan(repo: Repository, target: Remote, url: str, source_name: str, target_name: str, force: bool) -> _Plan:
    said = source_name
    if source_name == "HEAD":
        source_name = (repo.refs.branch() or "").removeprefix("refs/heads/")
        target_name = source_name if target_name == "HEAD" else target_name
    tag = repo.refs.get(f"refs/tags/{source_name}") is not None and repo.refs.get(f"refs/heads/{source_name}") is None
    ref = target_name if target_name.startswith("refs/") else f"refs/{'tags' if tag else 'heads'}/{target_name}"
    short = ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
    shown = f"{said.removeprefix('refs/tags/').removeprefix('refs/heads/')} -> {short}"
    old = target.refs().get(ref)
    if not source_name:
        if old is None:
            reason = f"unable to delete '{short}': remote ref does not exist"
            raise GitError(f"{reason}\nerror: failed to push some refs to '{url}'", 1, "error: ")
        return _Plan(f" - [deleted]         {short}\n", short, Update(ref, old, None))
    try:
        sha = resolve(repo, source_name)
    except KeyError:
        where = url if "://" in url else target.where
        raise GitError(
            f"error: src refspec {source_name} does not match any\nerror: failed to push some refs to '{where}'", 1, ""
        ) from None
    if old == sha:
        return _Plan("")
    update = Update(ref, old, sha)
    if reason := target.refusal(update):
        return _Plan(f" ! [remote rejected] {shown} ({reason})\n")
    have = old is None or old in repo.store
    forward = old is None or (have and not tag and old in ancestors(repo, bytes(repo.store.commit(sha).id)))
    if not forward and not force:
        return _Plan(f" ! [rejected]        {shown} ({'non-fast-forward' if have else 'fetch first'})\n")
    if old is None:
        kind = "[new tag]" if ref.startswith("refs/tags/") else "[new branch]"
        return _Plan(f" * {kind:<17} {shown}\n", shown, update)
    between = f"{old[:7].decode()}..{sha[:7].decode()}"
    if forward:
        return _Plan(f"   {between}  {shown}\n", shown, update)
    return _Plan(f" + {between.replace('..', '...')} {shown} (forced update)\n", shown, update)


def _track(repo: Repository, name: str, update: Update) -> None:
    """Our picture of the other side's branch follows what was pushed."""
    if not update.ref.startswith("refs/heads/"):
        return
    tracked = f"refs/remotes/{name}/{update.ref.removeprefix('refs/heads/')}"
    if update.new is None:
        repo.refs.delete(tracked)
    else:
        repo.refs.set(tracked, update.new, "update by push", repo.signature())
