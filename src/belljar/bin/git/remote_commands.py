"""git on other repositories, in the sandbox's files or on the web: clone, remote, fetch, pull, push; configuration."""

from __future__ import annotations

import re
from contextlib import suppress

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import parse
from belljar.bin.git.branch_commands import MergeOptions, configure_upstream, merge_commit
from belljar.bin.git.errors import GitError
from belljar.bin.git.merging import ancestors
from belljar.bin.git.rebase import rebase
from belljar.bin.git.remote import LocalRemote, Remote, Update, open_local
from belljar.bin.git.repo import Repository, config_values, read_config, write_config
from belljar.bin.git.web_remote import Settings, WebRemote, without_secrets
from belljar.bin.git.work import check_out
from belljar.bin.git.work_commands import make_repository
from belljar.kernel.process import Process
from belljar.shell.pattern import compile_pattern

_FETCH = "+refs/heads/*:refs/remotes/{name}/*"


def is_web(url: str) -> bool:
    return re.match(r"https?://", url, re.I) is not None


def open_remote(process: Process, url: str, settings: Settings) -> Remote:
    """What a URL or path leads to."""
    if is_web(url):
        return WebRemote(process, url, settings)
    path = url.removeprefix("file://")
    if "://" in path or (":" in path and "/" not in path.partition(":")[0]):
        raise GitError(
            f"unable to access '{url}': git in this sandbox reaches repositories in its own files, and over https"
        )
    return open_local(process, url)


def clone(process: Process, args: list[str], settings: list[tuple[str, str]]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        quiet: bool = flag("-q", "--quiet", "be quiet")
        bare: bool = flag("--bare", "create a bare repository")
        branch: str | None = value("-b", "--branch", "checkout a branch", metavar="BRANCH")
        origin: str = value("-o", "--origin", "name of the remote", metavar="NAME", default="origin")
        depth: str | None = value("--depth", "create a shallow clone of that depth (over https)", metavar="N")
        single: bool = flag("--single-branch", "clone only one branch, HEAD or --branch")
        no_single: bool = flag("--no-single-branch", "clone all branches, with --depth too")
        no_tags: bool = flag("--no-tags", "don't clone any tags")
        recurse: bool = flag("--recurse-submodules", "--recursive", "(submodules are left alone)")
        filter: str | None = value("--filter", "(everything is copied)", metavar="ARGS")
        no_checkout: bool = flag("-n", "--no-checkout", "don't create a checkout")
        local: bool = flag("-l", "--local", "(always)")
        no_hardlinks: bool = flag("--no-hardlinks", "(always)")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    if not parsed.operands:
        raise GitError("You must specify a repository to clone.")
    url = parsed.operands[0]
    depth = _depth(options.depth)
    try:
        source = open_remote(process, url, lambda key: _user_config(process, settings, key))
    except GitError as error:
        if "://" in url or "does not appear" not in error.message:
            raise
        raise GitError(f"repository '{url}' does not exist") from None
    base = url.rstrip("/").removesuffix("/.git").rpartition("/")[2].removesuffix(".git")
    name = parsed.operands[1] if len(parsed.operands) > 1 else base + (".git" if options.bare else "")
    path = process.absolute(name)
    with suppress(SysError):
        if process.fs.readdir(path):
            raise GitError(f"destination path '{name}' already exists and is not an empty directory.")
    if not options.quiet:
        process.error(f"Cloning into {'bare repository ' if options.bare else ''}'{name}'...\n")
    branch = source.branch()
    wanted = options.branch or (branch or "refs/heads/master").removeprefix("refs/heads/")
    heads, tags = source.under("refs/heads/"), {} if options.no_tags else source.under("refs/tags/")
    if options.branch and f"refs/heads/{wanted}" not in heads and f"refs/tags/{wanted}" not in tags:
        raise GitError(f"Remote branch {wanted} not found in upstream {options.origin}")
    if options.single or (depth is not None and not options.no_single):
        heads = {ref: sha for ref, sha in heads.items() if ref == f"refs/heads/{wanted}"}
        tags = {ref: sha for ref, sha in tags.items() if ref == f"refs/tags/{wanted}"}
    make_repository(process, path, settings, bare=options.bare, branch=wanted, quiet=True)
    folder = path if options.bare else f"{path}/.git"
    repo = Repository(process, "" if options.bare else path, folder, settings)
    try:
        source.bring(repo, [*heads.values(), *tags.values()], depth)
    except GitError:
        process.run(["rm", "-rf", "--", path])  # a half-made clone is of no use
        raise
    finally:
        source.close()
    config = read_config(process, f"{folder}/config")
    section = (b"remote", options.origin.encode())
    absolute = url if "://" in url or url.startswith("/") else f"{process.fs.getcwd().rstrip('/')}/{url}"
    config.set(section, b"url", absolute.encode())
    if not options.bare:
        config.set(section, b"fetch", _FETCH.format(name=options.origin).encode())
    write_config(process, f"{folder}/config", config)
    for ref, sha in tags.items():
        repo.refs.write(ref, sha.decode())
    if options.bare:
        for ref, sha in heads.items():
            repo.refs.write(ref, sha.decode())
        if not options.quiet and isinstance(source, LocalRemote):
            process.error("done.\n")
        return 0
    for ref, sha in heads.items():
        repo.refs.write(f"refs/remotes/{options.origin}/{ref.removeprefix('refs/heads/')}", sha.decode())
    if not heads:
        process.error("warning: You appear to have cloned an empty repository.\n")
        return 0
    if branch in heads:
        short = (branch or "").removeprefix("refs/heads/")
        repo.refs.write(f"refs/remotes/{options.origin}/HEAD", f"ref: refs/remotes/{options.origin}/{short}")
    tip = heads.get(f"refs/heads/{wanted}")
    if tip is None and f"refs/tags/{wanted}" in tags:
        tip = bytes(repo.store.commit(tags[f"refs/tags/{wanted}"]).id)
        repo.refs.write("HEAD", tip.decode())
    elif tip is None:
        return 0
    else:
        repo.refs.set("HEAD", tip, f"clone: from {absolute}", repo.signature())
        configure_upstream(repo, wanted, options.origin, wanted)
    if not options.no_checkout:
        check_out(repo, {}, repo.tree_of(tip))
    if not options.quiet and isinstance(source, LocalRemote):
        process.error("done.\n")
    return 0


def _depth(text: str | None) -> int | None:
    if text is None:
        return None
    if not re.fullmatch(r"[1-9]\d{0,8}", text):
        raise GitError(f"depth {text} is not a positive number")
    return int(text)


def _user_config(process: Process, settings: list[tuple[str, str]], key: str) -> list[str]:
    """What is configured outside any repository."""
    home = process.env.get("HOME", "/")
    found: list[str] = []
    for path in ("/etc/gitconfig", f"{home}/.config/git/config", f"{home}/.gitconfig"):
        found += config_values(read_config(process, path), key)
    return found + [text for name, text in settings if name.lower() == key.lower()]


def ls_remote(process: Process, repo: Repository | None, args: list[str], settings: list[tuple[str, str]]) -> int:
    """What another repository has: `git ls-remote [--heads] [--tags] [URL [PATTERN...]]`."""
    words = [arg for arg in args if not arg.startswith("-")]
    known = remotes(repo) if repo is not None else {}
    name = words[0] if words else "origin"
    if not words and name not in known:
        raise GitError("No remote configured to list refs from.")
    url = known.get(name, name)
    source = open_remote(process, url, repo.config_all if repo else lambda key: _user_config(process, settings, key))
    try:
        found = source.all_refs() if isinstance(source, WebRemote) else source.refs()
        branch = source.branch()
    finally:
        source.close()
    head = found.get("HEAD") or found.get(branch or "")
    listed = ({"HEAD": head} if head else {}) | {ref: sha for ref, sha in sorted(found.items()) if ref != "HEAD"}
    heads, tags = "--heads" in args or "-h" in args or "--branches" in args, "--tags" in args or "-t" in args
    matched = False
    for ref, sha in listed.items():
        if (heads or tags) and not (
            (heads and ref.startswith("refs/heads/")) or (tags and ref.startswith("refs/tags/"))
        ):
            continue
        if words[1:] and not any(compile_pattern(f"*/{pattern}").matches(f"/{ref}") for pattern in words[1:]):
            continue
        if "--symref" in args and ref == "HEAD" and branch:
            process.print(f"ref: {branch}\tHEAD")
        process.print(f"{sha.decode()}\t{ref}")
        matched = True
    return 2 if "--exit-code" in args and not matched else 0


def remotes(repo: Repository) -> dict[str, str]:
    config = read_config(repo.process, f"{repo.git}/config")
    found = {}
    for section in config.sections():
        if section[0] == b"remote" and len(section) > 1:
            urls = config_values(config, f"remote.{section[1].decode()}.url")
            found[section[1].decode()] = urls[0] if urls else ""
    return dict(sorted(found.items()))


def remote(repo: Repository, args: list[str]) -> int:
    path = f"{repo.git}/config"
    words = [arg for arg in args if not arg.startswith("-")]
    verbose = "-v" in args or "--verbose" in args
    known = remotes(repo)
    if not words:
        for name, url in known.items():
            if verbose:
                repo.process.print(f"{name}\t{url} (fetch)\n{name}\t{url} (push)")
            else:
                repo.process.print(name)
        return 0
    verb, rest = words[0], words[1:]
    config = read_config(repo.process, path)
    if verb == "add":
        if len(rest) != 2:
            raise GitError("usage: git remote add [<options>] <name> <url>", 129, "")
        if rest[0] in known:
            raise GitError(f"remote {rest[0]} already exists.", 3, "error: ")
        config.set((b"remote", rest[0].encode()), b"url", rest[1].encode())
        config.set((b"remote", rest[0].encode()), b"fetch", _FETCH.format(name=rest[0]).encode())
        write_config(repo.process, path, config)
        return 0
    if verb not in ("remove", "rm", "rename", "set-url", "get-url", "show", "prune", "update"):
        raise GitError(f"error: Unknown subcommand: {verb}", 129, "")
    name = rest[0] if rest else ""
    if name not in known and verb not in ("show", "update"):
        raise GitError(f"No such remote: '{name}'" if verb != "get-url" else f"No such remote '{name}'", 2, "error: ")
    match verb:
        case "get-url":
            repo.process.print(known[name])
        case "set-url":
            config.set((b"remote", name.encode()), b"url", rest[1].encode())
            write_config(repo.process, path, config)
        case "remove" | "rm":
            del config[(b"remote", name.encode())]
            for section in list(config.sections()):
                if section[0] == b"branch" and config_values(config, f"branch.{section[1].decode()}.remote") == [name]:
                    del config[section]
            write_config(repo.process, path, config)
            for ref in repo.refs.under(f"refs/remotes/{name}/"):
                repo.refs.delete(ref)
        case "rename":
            new = rest[1]
            config.set((b"remote", new.encode()), b"url", known[name].encode())
            config.set((b"remote", new.encode()), b"fetch", _FETCH.format(name=new).encode())
            del config[(b"remote", name.encode())]
            write_config(repo.process, path, config)
            for ref, sha in repo.refs.under(f"refs/remotes/{name}/").items():
                repo.refs.write(ref.replace(f"refs/remotes/{name}/", f"refs/remotes/{new}/", 1), sha.decode())
                repo.refs.delete(ref)
        case "show":
            for shown in rest or known:
                repo.process.print(
                    f"* remote {shown}\n  Fetch URL: {known.get(shown)}\n  Push  URL: {known.get(shown)}"
                )
    return 0


def shown_url(url: str) -> str:
    """Where something was fetched from, as messages and merges say it."""
    return without_secrets(url).rstrip("/").removesuffix(".git")


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
            depth = _depth(next(following, ""))
        elif arg.startswith("--depth="):
            depth = _depth(arg[8:])
        elif arg == "--unshallow":
            depth = 0x7FFFFFFF  # git's own number for all of it
        else:
            rest.append(arg)
    return depth, rest


def fetch_from(
    repo: Repository, name: str, branches: list[str], *, prune: bool = False, depth: int | None = None,
    quiet: bool = False,
) -> dict[str, bytes]:  # fmt: skip
    """Bring remote-tracking branches up to date and say what changed; the branches of the other side."""
    url = remotes(repo).get(name, name)
    source = open_remote(repo.process, url, repo.config_all)
    repo.others.append(source)
    heads, tags = source.under("refs/heads/"), source.under("refs/tags/")
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
    repo.process.write_file(f"{repo.git}/FETCH_HEAD", text.encode())
    if rows and not quiet:
        width = max(10, *(len(row[2]) for row in rows))
        repo.process.error(f"From {shown_url(url)}\n")
        for mark, what, short, local in rows:
            repo.process.error(f" {mark} {what:<17} {short:<{width}} -> {local}\n")
    return heads


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
        return rebase(repo, [tip.decode()])
    if head is not None and tip not in ancestors(repo, head) and head not in ancestors(repo, tip):
        chosen = "--no-rebase" in flags or "--no-ff" in flags or "--ff" in flags
        if not chosen and repo.config("pull.rebase") is None and repo.config("pull.ff") is None:
            if "--ff-only" in flags:
                raise GitError("Not possible to fast-forward, aborting.")
            repo.process.error(_DIVERGENT.format(empty=""))
            raise GitError("Need to specify how to reconcile divergent branches.")
    ff = "no-ff" if "--no-ff" in flags else "only" if "--ff-only" in flags else "ff"
    what = f"branch '{wanted}' of {shown_url(url)}"
    return merge_commit(repo, tip, tip.decode(), what, MergeOptions(ff=ff, quiet="-q" in flags or "--quiet" in flags))


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


def push(repo: Repository, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        upstream: bool = flag("-u", "--set-upstream", "set upstream")
        force: bool = flag("-f", "--force", "--force-with-lease", "force updates")
        all: bool = flag("--all", "push all branches")
        tags: bool = flag("--tags", "push tags")
        delete: bool = flag("-d", "--delete", "delete refs")
        quiet: bool = flag("-q", "--quiet", "be quiet")
        dry_run: bool = flag("-n", "--dry-run", "dry run")

    parsed = parse(Options, args)
    options, words = Options(**parsed.values), parsed.operands
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


def _hint(rows: list[str]) -> str:
    """What to do about a push that was refused."""
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
    """What a push will do to one ref, and the line that says so."""

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
            raise GitError(f"unable to delete '{short}': remote ref does not exist", 1, "error: ")
        return _Plan(f" - [deleted]         {short}\n", short, Update(ref, old, None))
    try:
        sha = repo.resolve(source_name)
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


# config
