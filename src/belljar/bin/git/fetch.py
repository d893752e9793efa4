"""`git fetch`: what another repository has that this one has not."""

from __future__ import annotations

from belljar.abi.paths import fsencode
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.merging import ancestors
from belljar.bin.git.repository.remote import Remote
from belljar.bin.git.repository.remotes import open_remote, parse_depth, remotes, shown_url
from belljar.bin.git.repository.repo import Repository


def fetch(repo: Repository, args: list[str]) -> int:
    depth, args = _take_depth(args)
    words = [arg for arg in args if not arg.startswith("-")]
    known = remotes(repo)
    quiet = "-q" in args or "--quiet" in args
    if "--all" in args:
        for name in known:
            fetch_from(repo, name, [], prune="--prune" in args or "-p" in args, depth=depth, quiet=quiet)
        return 0
    current = (repo.refs.branch() or "").removeprefix("refs/heads/")
    name = words[0] if words else repo.config(f"branch.{current}.remote") or "origin"
    if name not in known and not words:
        return 0
    fetch_from(repo, name, words[1:], prune="--prune" in args or "-p" in args, depth=depth, quiet=quiet)
    return 0


def _take_depth(args: list[str]) -> tuple[int | None, list[str]]:
    """`--depth N`, `--depth=N` and `--unshallow`, and the arguments without them."""
    depth: int | None = None
    rest: list[str] = []
    following = iter(args)
    for arg in following:
        if arg == "--depth":
            depth = parse_depth(next(following, ""))
        elif arg.startswith("--depth="):
            depth = parse_depth(arg[8:])
        elif arg == "--unshallow":
            depth = 0x7FFFFFFF  # git's own number for all of it
        else:
            rest.append(arg)
    return depth, rest


def _fetch_into(repo: Repository, source: Remote, pairs: list[str], url: str, *, quiet: bool) -> None:
    """Fetch `there:here`: refs of the other side into refs that are named."""
    refs = source.refs()
    rows: list[str] = []
    for pair in pairs:
        force = pair.startswith("+")
        there, _, here = pair.lstrip("+").partition(":")
        names = (there, f"refs/{there}", f"refs/heads/{there}", f"refs/tags/{there}")
        found = next((name for name in names if name in refs), None)
        if found is None:
            raise GitError(f"couldn't find remote ref {there}")
        local = (
            here if here.startswith("refs/") else f"refs/{'tags' if found.startswith('refs/tags/') else 'heads'}/{here}"
        )
        source.bring(repo, [refs[found]])
        old = repo.refs.get(local)
        if local == repo.refs.branch() and repo.work:
            raise GitError(f"refusing to fetch into branch '{local}' checked out at '{repo.work}'")
        short = found.removeprefix("refs/heads/").removeprefix("refs/tags/")
        shown = local.removeprefix("refs/heads/").removeprefix("refs/tags/")
        if old is not None and old != refs[found] and not force and old not in ancestors(repo, refs[found]):
            raise GitError(f"From {url}\n ! [rejected]        {short} -> {shown}  (non-fast-forward)", 1, "")
        repo.refs.set(local, refs[found], f"fetch {pair}: storing head", repo.signature())
        if old is None:
            kind = "[new tag]" if found.startswith("refs/tags/") else "[new branch]"
            rows.append(f" * {kind:<17} {short:<10} -> {shown}\n")
        elif old != refs[found]:
            rows.append(f"   {old[:7].decode()}..{refs[found][:7].decode()}  {short:<10} -> {shown}\n")
    if rows and not quiet:
        repo.process.error(f"From {url}\n{''.join(rows)}")


def fetch_from(
    repo: Repository, name: str, branches: list[str], *, prune: bool = False, depth: int | None = None,
    quiet: bool = False,
) -> dict[str, bytes]:  # fmt: skip
    """Bring remote-tracking branches up to date and say what changed; the branches of the other side."""
    url = remotes(repo).get(name, name)
    source = open_remote(repo.process, url, repo.config_all)
    repo.others.append(source)
    heads, tags = source.under("refs/heads/"), source.under("refs/tags/")
    if pairs := [branch for branch in branches if ":" in branch]:
        _fetch_into(repo, source, pairs, shown_url(url), quiet=quiet)
        branches = [branch for branch in branches if ":" not in branch]
        if not branches:
            return heads
    chosen = {ref: sha for ref, sha in heads.items() if not branches or ref.removeprefix("refs/heads/") in branches}
    for wanted in branches:
        if f"refs/heads/{wanted}" not in heads and f"refs/tags/{wanted}" not in tags:
            raise GitError(f"couldn't find remote ref {wanted}")
    source.bring(repo, [*chosen.values(), *([] if branches else tags.values())], depth)
    rows: list[tuple[str, str, str, str]] = []
    is_remote = name in remotes(repo)
    tracked = f"refs/remotes/{name}/"
    for ref, sha in chosen.items():
        short = ref.removeprefix("refs/heads/")
        if not is_remote:
            rows.append(("*", "branch", short, "FETCH_HEAD"))
            continue
        local = tracked + short
        old = repo.refs.get(local)
        if old == sha:
            if branches:
                rows.append(("*", "branch", short, "FETCH_HEAD"))
            continue
        if branches:
            rows.append(("*", "branch", short, "FETCH_HEAD"))
        if old is None:
            rows.append(("*", "[new branch]", short, f"{name}/{short}"))
        elif old in ancestors(repo, sha):
            rows.append((" ", f"{old[:7].decode()}..{sha[:7].decode()}", short, f"{name}/{short}"))
        else:
            rows.append(("+", f"{old[:7].decode()}...{sha[:7].decode()}", short, f"{name}/{short}  (forced update)"))
        repo.refs.set(local, sha, f"fetch {name}: storing head", repo.signature())
    for ref, sha in tags.items():
        if repo.refs.get(ref) is None and sha in repo.store:
            short = ref.removeprefix("refs/tags/")
            repo.refs.write(ref, sha.decode())
            rows.append(("*", "[new tag]", short, short))
    if prune and is_remote:
        for ref in repo.refs.under(tracked):
            short = ref.removeprefix(tracked)
            if short != "HEAD" and f"refs/heads/{short}" not in heads:
                repo.refs.delete(ref)
                rows.append(("-", "[deleted]", "(none)", f"{name}/{short}"))
    current = (repo.refs.branch() or "").removeprefix("refs/heads/")
    text = ""
    for ref, sha in chosen.items():
        short = ref.removeprefix("refs/heads/")
        merging = "" if short == (branches[0] if branches else current) else "not-for-merge"
        text += f"{sha.decode()}\t{merging}\tbranch '{short}' of {shown_url(url)}\n"
    repo.process.write_file(f"{repo.git}/FETCH_HEAD", fsencode(text))
    if rows and not quiet:
        width = max(10, *(len(row[2]) for row in rows))
        repo.process.error(f"From {shown_url(url)}\n")
        for mark, what, short, local in rows:
            repo.process.error(f" {mark} {what:<17} {short:<{width}} -> {local}\n")
    return heads
