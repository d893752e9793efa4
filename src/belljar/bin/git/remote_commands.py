"""git's commands on other repositories, all in the sandbox's files: clone, remote, fetch, pull, push; config."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from dulwich.config import ConfigFile
from dulwich.objects import Commit, Tag, Tree

from belljar.abi.errors import SysError
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import parse
from belljar.bin.git.branch_commands import MergeOptions, configure_upstream, merge_commit, rebase
from belljar.bin.git.errors import GitError
from belljar.bin.git.merging import ancestors
from belljar.bin.git.repo import Repository, config_values, find_repository, read_config, split_key, write_config
from belljar.bin.git.work import check_out
from belljar.bin.git.work_commands import make_repository
from belljar.kernel.process import Process

_FETCH = "+refs/heads/*:refs/remotes/{name}/*"


def open_remote(process: Process, url: str) -> Repository:
    """The repository at a path."""
    path = url.removeprefix("file://")
    if "://" in path or (":" in path and "/" not in path.partition(":")[0]):
        raise GitError(f"unable to access '{url}': git in this sandbox only reaches repositories in its own files")
    full = process.absolute(path)
    for candidate in (full, full + ".git"):
        try:
            process.fs.stat(candidate)
        except SysError:
            continue
        found = find_repository(process, candidate)
        if found is not None and found[1] in (candidate, f"{candidate}/.git"):
            return Repository(process, *found)
    raise GitError(
        f"'{url}' does not appear to be a git repository\nfatal: Could not read from remote repository.\n\n"
        "Please make sure you have the correct access rights\nand the repository exists."
    )


def copy_objects(source: Repository, target: Repository, tips: list[bytes]) -> None:
    """Everything that tips reach and the target does not have."""
    stack = list(tips)
    seen: set[bytes] = set()
    while stack:
        sha = stack.pop()
        if sha in seen or sha in target.store:
            continue
        seen.add(sha)
        source.process.budget.charge(4)
        item = source.store.get(sha)
        if isinstance(item, Commit):
            stack += [bytes(item.tree), *[bytes(parent) for parent in item.parents]]
        elif isinstance(item, Tag):
            stack.append(bytes(item.object[1]))
        elif isinstance(item, Tree):
            stack += [bytes(e.sha) for e in item.iteritems() if e.mode != 0o160000]
        target.store.add(item)


def clone(process: Process, args: list[str], settings: list[tuple[str, str]]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        quiet: bool = flag("-q", "--quiet", "be quiet")
        bare: bool = flag("--bare", "create a bare repository")
        branch: str | None = value("-b", "--branch", "checkout a branch", metavar="BRANCH")
        origin: str = value("-o", "--origin", "name of the remote", metavar="NAME", default="origin")
        depth: str | None = value("--depth", "(all history is copied)", metavar="N")
        single: bool = flag("--single-branch", "(accepted)")
        no_checkout: bool = flag("-n", "--no-checkout", "don't create a checkout")
        local: bool = flag("-l", "--local", "(always)")
        no_hardlinks: bool = flag("--no-hardlinks", "(always)")

    parsed = parse(Options, args)
    options = Options(**parsed.values)
    if not parsed.operands:
        raise GitError("You must specify a repository to clone.")
    url = parsed.operands[0]
    try:
        source = open_remote(process, url)
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
    branch = source.refs.branch()
    wanted = options.branch or (branch or "refs/heads/master").removeprefix("refs/heads/")
    make_repository(process, path, settings, bare=options.bare, branch=wanted, quiet=True)
    folder = path if options.bare else f"{path}/.git"
    repo = Repository(process, "" if options.bare else path, folder, settings)
    heads, tags = source.refs.under("refs/heads/"), source.refs.under("refs/tags/")
    try:
        copy_objects(source, repo, [*heads.values(), *tags.values()])
    finally:
        source.close()
    config = read_config(process, f"{folder}/config")
    section = (b"remote", options.origin.encode())
    absolute = url if "://" in url else source.work or source.git
    config.set(section, b"url", absolute.encode())
    if not options.bare:
        config.set(section, b"fetch", _FETCH.format(name=options.origin).encode())
    write_config(process, f"{folder}/config", config)
    for ref, sha in tags.items():
        repo.refs.write(ref, sha.decode())
    if options.bare:
        for ref, sha in heads.items():
            repo.refs.write(ref, sha.decode())
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
    if tip is None:
        if options.branch:
            raise GitError(f"Remote branch {wanted} not found in upstream {options.origin}")
        return 0
    repo.refs.set("HEAD", tip, f"clone: from {absolute}", repo.signature())
    configure_upstream(repo, wanted, options.origin, wanted)
    if not options.no_checkout:
        check_out(repo, {}, repo.tree_of(tip))
    if not options.quiet:
        process.error("done.\n")
    return 0


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


def fetch(repo: Repository, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    known = remotes(repo)
    if "--all" in args:
        for name in known:
            fetch_from(repo, name, [], prune="--prune" in args or "-p" in args)
        return 0
    current = (repo.refs.branch() or "").removeprefix("refs/heads/")
    name = words[0] if words else repo.config(f"branch.{current}.remote") or "origin"
    if name not in known and not words:
        return 0
    fetch_from(repo, name, words[1:], prune="--prune" in args or "-p" in args)
    return 0


def fetch_from(repo: Repository, name: str, branches: list[str], *, prune: bool = False) -> list[bytes]:
    """Bring remote-tracking branches up to date and say what changed; the tips that were fetched."""
    url = remotes(repo).get(name, name)
    source = open_remote(repo.process, url)
    repo.others.append(source)
    heads, tags = source.refs.under("refs/heads/"), source.refs.under("refs/tags/")
    chosen = {ref: sha for ref, sha in heads.items() if not branches or ref.removeprefix("refs/heads/") in branches}
    for wanted in branches:
        if f"refs/heads/{wanted}" not in heads and f"refs/tags/{wanted}" not in tags:
            raise GitError(f"couldn't find remote ref {wanted}")
    copy_objects(source, repo, [*chosen.values(), *tags.values()])
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
        if repo.refs.get(ref) is None:
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
        text += f"{sha.decode()}\t{merging}\tbranch '{short}' of {url}\n"
    repo.process.write_file(f"{repo.git}/FETCH_HEAD", text.encode())
    if rows:
        width = max(10, *(len(row[2]) for row in rows))
        repo.process.error(f"From {url}\n")
        for mark, what, short, local in rows:
            repo.process.error(f" {mark} {what:<17} {short:<{width}} -> {local}\n")
    return list(chosen.values())


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
    fetch_from(repo, name, [wanted] if len(words) > 1 else [])
    url = remotes(repo).get(name, name)
    source = open_remote(repo.process, url)
    repo.others.append(source)
    tip = source.refs.get(f"refs/heads/{wanted}")
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
    what = f"branch '{wanted}' of {url}"
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
    target = open_remote(repo.process, url)
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
    for source_name, target_name, force in wanted:
        row, good = _push_one(repo, target, name if name in known else "", source_name, target_name, force)
        failed = failed or not good
        rows += [row] if row else []
        if good and options.upstream and source_name:
            configure_upstream(repo, source_name, name, target_name)
    if not rows:
        repo.process.error("Everything up-to-date\n")
    elif not options.quiet or failed:
        repo.process.error(f"To {url}\n" + "".join(rows))
    if options.upstream and not failed and not options.quiet:
        for source_name, target_name, _ in wanted:
            repo.process.print(f"branch '{source_name}' set up to track '{name}/{target_name}'.")
    if failed:
        repo.process.error(
            f"error: failed to push some refs to '{url}'\n"
            "hint: Updates were rejected because the tip of your current branch is behind\n"
            "hint: its remote counterpart. Integrate the remote changes (e.g.\n"
            "hint: 'git pull ...') before pushing again.\n"
            "hint: See the 'Note about fast-forwards' in 'git push --help' for details.\n"
        )
        return 1
    return 0


def _push_one(
    repo: Repository, target: Repository, name: str, source_name: str, target_name: str, force: bool
) -> tuple[str, bool]:
    """One ref to the other side; the line to show, and whether it went."""
    if source_name == "HEAD":
        source_name = (repo.refs.branch() or "").removeprefix("refs/heads/")
        target_name = source_name if target_name == "HEAD" else target_name
    tag = repo.refs.get(f"refs/tags/{source_name}") is not None and repo.refs.get(f"refs/heads/{source_name}") is None
    ref = target_name if target_name.startswith("refs/") else f"refs/{'tags' if tag else 'heads'}/{target_name}"
    short = ref.removeprefix("refs/heads/").removeprefix("refs/tags/")
    shown = source_name.removeprefix("refs/tags/").removeprefix("refs/heads/")
    old = target.refs.get(ref)
    tracked = f"refs/remotes/{name}/{short}"
    if not source_name:
        if old is None:
            raise GitError(f"unable to delete '{short}': remote ref does not exist", 1, "error: ")
        target.refs.delete(ref)
        repo.refs.delete(tracked)
        return f" - [deleted]         {short}\n", True
    try:
        sha = repo.resolve(source_name)
    except KeyError:
        raise GitError(
            f"error: src refspec {source_name} does not match any\n"
            f"error: failed to push some refs to '{target.work or target.git}'",
            1,
            "",
        ) from None
    if old == sha:
        return "", True
    if target.work and target.refs.branch() == ref and old is not None:
        text = f" ! [remote rejected] {shown} -> {short} (branch is currently checked out)\n"
        return text, False
    copied = old is None or old in repo.store
    forward = old is None or (copied and not tag and old in ancestors(repo, bytes(repo.store.commit(sha).id)))
    if not forward and not force:
        reason = "non-fast-forward" if copied else "fetch first"
        return f" ! [rejected]        {shown} -> {short} ({reason})\n", False
    copy_objects(repo, target, [sha])
    target.refs.write(ref, sha.decode())
    if name and not tag:
        repo.refs.set(tracked, sha, "update by push", repo.signature())
    if old is None:
        kind = "[new tag]" if ref.startswith("refs/tags/") else "[new branch]"
        return f" * {kind:<17} {shown} -> {short}\n", True
    if forward:
        return f"   {old[:7].decode()}..{sha[:7].decode()}  {shown} -> {short}\n", True
    return f" + {old[:7].decode()}...{sha[:7].decode()} {shown} -> {short} (forced update)\n", True


# config


def config(process: Process, repo: Repository | None, args: list[str]) -> int:
    @dataclass(frozen=True, slots=True)
    class Options:
        everyone: bool = flag("--global", "use the user's file")
        system: bool = flag("--system", "use the system's file")
        local: bool = flag("--local", "use the repository's file")
        file: str | None = value("-f", "--file", "use a file", metavar="FILE")
        list: bool = flag("-l", "--list", "list all")
        get: bool = flag("--get", "get a value")
        get_all: bool = flag("--get-all", "get all values")
        unset: bool = flag("--unset", "remove a variable")
        unset_all: bool = flag("--unset-all", "remove all of a variable")
        add: bool = flag("--add", "add a new value")
        kind: bool = flag("--bool", "value is true or false")
        remove: bool = flag("--remove-section", "remove a section")

    parsed = parse(Options, args)
    options, words = Options(**parsed.values), parsed.operands
    home = process.env.get("HOME", "/")
    if options.file is not None:
        path: str | None = options.file
    elif options.everyone:
        path = f"{home}/.gitconfig"
    elif options.system:
        path = "/etc/gitconfig"
    else:
        path = f"{repo.git}/config" if repo is not None else None
    explicit = options.file is not None or options.everyone or options.system or options.local
    if explicit and path is not None:
        paths = [path]
    else:
        paths = repo.config_files() if repo is not None else [f"{home}/.config/git/config", f"{home}/.gitconfig"]
    if options.list:
        for each in paths:
            loaded = read_config(process, each)
            for section in loaded.sections():
                for item, data in loaded.items(section):
                    name = b".".join([*section, item.lower()])
                    process.print(f"{name.decode()}={data.decode('utf-8', 'surrogateescape')}")
        return 0
    if not words:
        raise GitError("usage: git config [<options>]", 129, "")
    key = words[0]
    if "." not in key:
        raise GitError(f"key does not contain a section: {key}", 1, "error: ")
    if options.unset or options.unset_all or options.remove:
        assert path is not None
        loaded = read_config(process, path)
        return _unset(process, path, loaded, key)
    if len(words) == 1 or options.get or options.get_all:
        values: list[str] = []
        for each in paths:
            values += config_values(read_config(process, each), key)
        if not explicit and repo is not None:
            values += [text for name, text in repo.settings if name.lower() == key.lower()]
        if not values:
            return 1
        for text in values if options.get_all else values[-1:]:
            process.print(text)
        return 0
    if path is None:
        raise GitError("not in a git directory")
    loaded = read_config(process, path)
    section, name_bytes = split_key(key)
    if options.add:
        loaded.add(section, name_bytes, words[1].encode("utf-8", "surrogateescape"))
    else:
        loaded.set(section, name_bytes, words[1].encode("utf-8", "surrogateescape"))
    write_config(process, path, loaded)
    return 0


def _unset(process: Process, path: str, loaded: ConfigFile, key: str) -> int:
    section, name = split_key(key)
    if not config_values(loaded, key):
        return 5
    values = [(k, v) for k, v in loaded.items(section) if k.lower() != name.lower()]
    del loaded[section]
    for k, v in values:
        loaded.add(section, k, v)
    write_config(process, path, loaded)
    return 0
