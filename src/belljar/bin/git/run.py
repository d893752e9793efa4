"""git's own command line: global options, finding the repository, and the command."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError
from belljar.bin.git import branch_commands as branches
from belljar.bin.git import describe, patches
from belljar.bin.git import history_commands as history
from belljar.bin.git import object_commands as objects
from belljar.bin.git import remote_commands as remotes
from belljar.bin.git import work_commands as work
from belljar.bin.git.archive import archive
from belljar.bin.git.bisect import bisect
from belljar.bin.git.blame import blame
from belljar.bin.git.config_command import config
from belljar.bin.git.errors import GitError
from belljar.bin.git.grep import grep
from belljar.bin.git.rebase import rebase
from belljar.bin.git.ref_list import for_each_ref
from belljar.bin.git.repo import Repository, find_repository
from belljar.bin.git.stash import stash
from belljar.kernel.process import Process

Command = Callable[[Repository, list[str]], int]


COMMANDS: dict[str, Command] = {
    "add": work.add, "stage": work.add, "rm": work.rm, "mv": work.mv, "status": work.status, "commit": work.commit,
    "restore": work.restore, "reset": work.reset, "clean": work.clean, "stash": stash, "diff": history.diff,
    "log": history.log, "show": history.show, "rev-parse": history.rev_parse, "grep": grep,
    "reflog": history.reflog, "merge-base": history.merge_base_command, "rev-list": history.rev_list,
    "whatchanged": history.whatchanged, "cherry": history.cherry, "blame": blame, "annotate": blame,
    "shortlog": describe.shortlog, "describe": describe.describe, "name-rev": describe.name_rev,
    "branch": branches.branch, "checkout": branches.checkout, "switch": branches.switch, "merge": branches.merge,
    "cherry-pick": branches.cherry_pick, "revert": branches.revert, "tag": branches.tag, "rebase": rebase,
    "remote": remotes.remote, "fetch": remotes.fetch, "pull": remotes.pull, "push": remotes.push,
    "apply": patches.apply, "format-patch": patches.format_patch, "am": patches.am, "archive": archive,
    "bisect": bisect, "for-each-ref": for_each_ref, "cat-file": objects.cat_file, "hash-object": objects.hash_object,
    "ls-tree": objects.ls_tree, "ls-files": objects.ls_files, "mktree": objects.mktree,
    "write-tree": objects.write_tree, "read-tree": objects.read_tree, "commit-tree": objects.commit_tree,
    "merge-tree": objects.merge_tree, "count-objects": objects.count_objects, "gc": objects.collect,
    "prune": objects.collect, "fsck": objects.fsck, "check-ignore": objects.check_ignore,
    "update-index": objects.update_index, "update-ref": objects.update_ref, "symbolic-ref": objects.symbolic_ref,
    "show-ref": objects.show_ref, "check-ref-format": objects.check_ref_format, "diff-tree": objects.diff_tree,
    "diff-index": objects.diff_index, "diff-files": objects.diff_files_command, "var": objects.var,
    "stripspace": objects.stripspace, "submodule": objects.submodule,
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
    if args[:1] == ["--help"]:
        process.print(doc.rstrip())
        return 0
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
        return config(process, repo, args)
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
            return history.diff(Repository(process, "", "/.no-repository", settings), args)
        raise GitError("not a git repository (or any of the parent directories): .git")
    if not repo.work and name in _NEEDS_WORK:
        raise GitError("this operation must be run in a work tree")
    return COMMANDS[name](repo, args)
