"""git's own command line: global options, finding the repository, and the command."""

from __future__ import annotations

from collections.abc import Callable

from dulwich.objects import Blob

from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError
from belljar.bin.git import branch_commands as branches
from belljar.bin.git import history_commands as history
from belljar.bin.git import remote_commands as remotes
from belljar.bin.git import work_commands as work
from belljar.bin.git.errors import GitError
from belljar.bin.git.repo import Repository, find_repository
from belljar.kernel.process import Process

Command = Callable[[Repository, list[str]], int]


def _apply(repo: Repository, args: list[str]) -> int:
    """`git apply`: what patch makes of a diff, without a word when it fits."""
    names = [arg for arg in args if not arg.startswith("-")]
    check = "--check" in args
    reverse = ["-R"] if "-R" in args or "--reverse" in args else []
    dry = ["--dry-run"] if check else []
    home = repo.process.fs.cwd
    files = [repo.process.absolute(name) if name != "-" else "-" for name in names] or ["-"]
    try:
        repo.process.fs.chdir(repo.work)
        for name in files:
            source = [] if name == "-" else ["-i", name]
            command = ["patch", "-p1", "-s", "-f", "--no-backup-if-mismatch", *reverse, *dry, *source]
            status = repo.process.run(command, stdout=repo.process.fds[2])
            if status.shell:
                raise GitError("patch failed", 1, "error: ")
    except SysError as error:
        raise GitError(f"can't apply: {error}", 1, "error: ") from None
    finally:
        repo.process.fs.cwd = home
    if "--index" in args or "--cached" in args:
        return work.add(repo, ["-A"])
    return 0


def _hash_object(repo: Repository, args: list[str]) -> int:
    for name in [arg for arg in args if not arg.startswith("-")] or ["-"]:
        blob = Blob.from_string(repo.process.read_file(name))
        if "-w" in args:
            repo.store.add(blob)
        repo.process.print(bytes(blob.id).decode())
    return 0


def _symbolic_ref(repo: Repository, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    if len(words) == 2:
        repo.refs.write(words[0], f"ref: {words[1]}")
        return 0
    branch = repo.refs.branch()
    if branch is None:
        if "-q" in args:
            return 1
        raise GitError(f"ref {words[0] if words else 'HEAD'} is not a symbolic ref")
    repo.process.print(branch.removeprefix("refs/heads/") if "--short" in args else branch)
    return 0


def _show_ref(repo: Repository, args: list[str]) -> int:
    names = [arg for arg in args if not arg.startswith("-")]
    found = False
    for ref, sha in repo.refs.under("refs/").items():
        if names and not any(ref == name or ref.endswith("/" + name) for name in names):
            continue
        if ("--heads" in args and not ref.startswith("refs/heads/")) or (
            "--tags" in args and not ref.startswith("refs/tags/")
        ):
            continue
        found = True
        if "-q" not in args:
            repo.process.print(f"{sha.decode()} {ref}")
    return 0 if found else 1


COMMANDS: dict[str, Command] = {
    "add": work.add, "stage": work.add, "rm": work.rm, "mv": work.mv, "status": work.status, "commit": work.commit,
    "restore": work.restore, "reset": work.reset, "clean": work.clean, "stash": work.stash, "diff": history.diff,
    "log": history.log, "show": history.show, "rev-parse": history.rev_parse, "ls-files": history.ls_files,
    "blame": history.blame, "annotate": history.blame, "grep": history.grep, "reflog": history.reflog,
    "cat-file": history.cat_file, "merge-base": history.merge_base_command, "rev-list": history.rev_list,
    "shortlog": history.shortlog, "describe": history.describe, "ls-tree": history.ls_tree, "branch": branches.branch,
    "checkout": branches.checkout, "switch": branches.switch, "merge": branches.merge,
    "cherry-pick": branches.cherry_pick, "revert": branches.revert, "rebase": branches.rebase, "tag": branches.tag,
    "remote": remotes.remote, "fetch": remotes.fetch, "pull": remotes.pull, "push": remotes.push, "apply": _apply,
    "hash-object": _hash_object, "symbolic-ref": _symbolic_ref, "show-ref": _show_ref,
}  # fmt: skip
_NEEDS_WORK = frozenset("add rm mv status commit restore clean stash checkout switch merge pull rebase".split())


def run(process: Process, args: list[str], doc: str) -> int:
    settings: list[tuple[str, str]] = []
    folder = process.env.get("GIT_DIR")
    home = process.fs.cwd
    index = 0
    try:
        while index < len(args) and args[index].startswith("-"):
            arg = args[index]
            index += 1
            if arg in ("-C", "-c", "--git-dir", "--work-tree") and index < len(args):
                value = args[index]
                index += 1
                if arg == "-C":
                    process.fs.chdir(value)
                elif arg == "-c":
                    name, equals, text = value.partition("=")
                    settings.append((name, text if equals else "true"))
                elif arg == "--git-dir":
                    folder = value
            elif arg.startswith("--git-dir="):
                folder = arg[10:]
            elif arg == "--version" or arg == "-v":
                process.print("git version 2.39.5")
                return 0
            elif arg in ("--help", "-h"):
                process.print(doc.rstrip())
                return 0
            elif arg not in (
                "--no-pager",
                "-p",
                "-P",
                "--paginate",
                "--no-optional-locks",
                "--literal-pathspecs",
                "--bare",
            ):
                process.error(f"unknown option: {arg}\n{doc}")
                return 129
        if index >= len(args):
            process.print(doc.rstrip())
            return 1
        return _command(process, args[index], args[index + 1 :], settings, folder, doc)
    except GitError as error:
        process.stdout.flush()
        process.error(f"{error.prefix}{error.message}\n")
        return error.status
    except UsageError as error:
        process.stdout.flush()
        text = str(error)
        if "unrecognized option" in text:
            text = f"unknown option `{text.split(chr(39))[1].lstrip('-')}'"
        elif "invalid option" in text:
            text = f"unknown switch `{text.split(chr(39))[1]}'"
        process.error(f"error: {text}\nusage: git {args[index]} [<options>]\n")
        return 129
    except SysError as error:
        process.stdout.flush()
        process.error(f"fatal: {error}\n")
        return 128
    finally:
        process.fs.cwd = home


def _command(
    process: Process, name: str, args: list[str], settings: list[tuple[str, str]], folder: str | None, doc: str
) -> int:
    if name in ("version", "help"):
        process.print("git version 2.39.5" if name == "version" else doc.rstrip())
        return 0
    if name == "init":
        return work.init(process, args, settings)
    if name == "clone":
        return remotes.clone(process, args, settings)
    if folder is not None:
        full = process.absolute(folder)
        found: tuple[str, str] | None = (full.removesuffix("/.git") if full.endswith("/.git") else "", full)
    else:
        found = find_repository(process, process.fs.getcwd())
    repo = Repository(process, *found, settings) if found is not None else None
    try:
        return _in_repository(process, repo, name, args, settings, folder, doc)
    finally:
        if repo is not None:
            repo.close()


def _in_repository(
    process: Process,
    repo: Repository | None,
    name: str,
    args: list[str],
    settings: list[tuple[str, str]],
    folder: str | None,
    doc: str,
) -> int:
    if name == "config":
        return remotes.config(process, repo, args)
    if name == "ls-remote":
        return remotes.ls_remote(process, repo, args, settings)
    alias = repo.config(f"alias.{name}") if repo is not None and name not in COMMANDS else None
    if alias is not None:
        if alias.startswith("!"):
            return process.run(["/bin/sh", "-c", f'{alias[1:]} "$@"', alias[1:], *args]).shell
        words = alias.split()
        process.enter()
        try:
            return _command(process, words[0], [*words[1:], *args], settings, folder, doc)
        finally:
            process.leave()
    if name not in COMMANDS:
        process.error(f"git: '{name}' is not a git command. See 'git --help'.\n")
        return 1
    if repo is None:
        if name == "diff" and "--no-index" in args:
            return process.run(["diff", "-u", *[arg for arg in args if arg != "--no-index"]]).shell
        raise GitError("not a git repository (or any of the parent directories): .git")
    if not repo.work and name in _NEEDS_WORK:
        raise GitError("this operation must be run in a work tree")
    return COMMANDS[name](repo, args)
