"""git's own command line: global options, finding the repository, and the command."""

from __future__ import annotations

from collections.abc import Callable
from difflib import get_close_matches

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin._kit import UsageError
from belljar.bin.git.add import add
from belljar.bin.git.am import am
from belljar.bin.git.apply import apply
from belljar.bin.git.archive import archive
from belljar.bin.git.bisect import bisect
from belljar.bin.git.blame import blame
from belljar.bin.git.branch import branch
from belljar.bin.git.bundle import bundle
from belljar.bin.git.cat_file import cat_file
from belljar.bin.git.check_attr import check_attr
from belljar.bin.git.check_ignore import check_ignore
from belljar.bin.git.check_ref_format import check_ref_format
from belljar.bin.git.checkout import checkout
from belljar.bin.git.cherry import cherry
from belljar.bin.git.cherry_pick import cherry_pick
from belljar.bin.git.clean import clean
from belljar.bin.git.clone import clone
from belljar.bin.git.commit import commit
from belljar.bin.git.commit_tree import commit_tree
from belljar.bin.git.config import config
from belljar.bin.git.count_objects import count_objects
from belljar.bin.git.credential import credential
from belljar.bin.git.describe import describe
from belljar.bin.git.diff import diff
from belljar.bin.git.diff_index import diff_files, diff_index
from belljar.bin.git.diff_tree import diff_tree
from belljar.bin.git.fetch import fetch
from belljar.bin.git.for_each_ref import for_each_ref
from belljar.bin.git.format_patch import format_patch
from belljar.bin.git.fsck import fsck
from belljar.bin.git.gc import collect
from belljar.bin.git.grep import grep
from belljar.bin.git.hash_object import hash_object
from belljar.bin.git.hook import hook
from belljar.bin.git.init import init
from belljar.bin.git.interpret_trailers import interpret_trailers
from belljar.bin.git.log import log, whatchanged
from belljar.bin.git.ls_files import ls_files
from belljar.bin.git.ls_remote import ls_remote
from belljar.bin.git.ls_tree import ls_tree
from belljar.bin.git.merge import merge
from belljar.bin.git.merge_base import merge_base_command
from belljar.bin.git.merge_file import merge_file
from belljar.bin.git.merge_tree import merge_tree
from belljar.bin.git.mktree import mktree
from belljar.bin.git.mv import mv
from belljar.bin.git.name_rev import name_rev
from belljar.bin.git.notes import notes
from belljar.bin.git.pack_refs import pack_refs
from belljar.bin.git.pull import pull
from belljar.bin.git.push import push
from belljar.bin.git.range_diff import range_diff
from belljar.bin.git.read_tree import read_tree
from belljar.bin.git.rebase import rebase
from belljar.bin.git.reflog import reflog
from belljar.bin.git.remote import remote
from belljar.bin.git.repository.config import settings_from
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository, find_repository
from belljar.bin.git.reset import reset
from belljar.bin.git.restore import restore
from belljar.bin.git.rev_list import rev_list
from belljar.bin.git.rev_parse import rev_parse
from belljar.bin.git.revert import revert
from belljar.bin.git.rm import rm
from belljar.bin.git.shortlog import shortlog
from belljar.bin.git.show import show
from belljar.bin.git.show_ref import show_ref
from belljar.bin.git.sparse_checkout import sparse_checkout
from belljar.bin.git.stash import stash
from belljar.bin.git.status import status
from belljar.bin.git.stripspace import stripspace
from belljar.bin.git.submodule import submodule
from belljar.bin.git.switch import switch
from belljar.bin.git.symbolic_ref import symbolic_ref
from belljar.bin.git.tag import tag
from belljar.bin.git.update_index import update_index
from belljar.bin.git.update_ref import update_ref
from belljar.bin.git.var import var
from belljar.bin.git.worktree import worktree
from belljar.bin.git.write_tree import write_tree
from belljar.kernel.process import Process

Command = Callable[[Repository, list[str]], int]

COMMANDS: dict[str, Command] = {
    "add": add, "am": am, "annotate": blame, "apply": apply, "archive": archive, "bisect": bisect, "blame": blame,
    "branch": branch, "bundle": bundle, "cat-file": cat_file, "check-attr": check_attr, "check-ignore": check_ignore,
    "check-ref-format": check_ref_format,
    "checkout": checkout, "cherry": cherry, "cherry-pick": cherry_pick, "clean": clean, "commit": commit,
    "commit-tree": commit_tree, "count-objects": count_objects, "describe": describe, "diff": diff,
    "diff-files": diff_files, "diff-index": diff_index, "diff-tree": diff_tree, "fetch": fetch,
    "for-each-ref": for_each_ref, "format-patch": format_patch, "fsck": fsck, "gc": collect, "grep": grep,
    "hash-object": hash_object, "hook": hook,
    "interpret-trailers": interpret_trailers, "log": log, "ls-files": ls_files, "ls-tree": ls_tree, "merge": merge,
    "merge-base": merge_base_command, "merge-file": merge_file,
    "merge-tree": merge_tree, "mktree": mktree, "mv": mv, "name-rev": name_rev,
    "maintenance": collect, "notes": notes, "pack-refs": pack_refs, "prune": collect, "repack": collect,
    "rerere": collect, "pull": pull, "push": push, "range-diff": range_diff,
    "read-tree": read_tree, "rebase": rebase,
    "reflog": reflog, "remote": remote, "reset": reset, "restore": restore, "rev-list": rev_list,
    "rev-parse": rev_parse, "revert": revert, "rm": rm, "shortlog": shortlog, "show": show, "show-ref": show_ref,
    "sparse-checkout": sparse_checkout,
    "stage": add, "stash": stash, "status": status, "stripspace": stripspace, "submodule": submodule, "switch": switch,
    "symbolic-ref": symbolic_ref, "tag": tag, "update-index": update_index, "update-ref": update_ref, "var": var,
    "whatchanged": whatchanged, "worktree": worktree, "write-tree": write_tree,
}  # fmt: skip
_ANYWHERE = frozenset("apply check-ref-format hash-object interpret-trailers merge-file stripspace".split())
_NEEDS_WORK = frozenset("add rm mv status commit restore clean stash checkout switch merge pull rebase".split())


@dataclass(frozen=True, slots=True)
class Before:
    """Options before the subcommand."""

    settings: list[tuple[str, str]]
    folder: str | None
    """The repository's directory, if given."""
    work: str | None
    """The top of the work tree, if it is elsewhere."""
    doc: str


def run(process: Process, args: list[str], doc: str) -> int:
    settings = settings_from(process)
    folder, work = process.env.get("GIT_DIR"), process.env.get("GIT_WORK_TREE")
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
                    try:
                        process.fs.chdir(value)
                    except SysError as error:
                        raise GitError(f"cannot change to '{value}': {error.reason}") from None
                elif arg == "-c":
                    name, equals, text = value.partition("=")
                    settings.append((name, text if equals else "true"))
                elif arg == "--git-dir":
                    folder = value
                else:
                    work = value
            elif arg.startswith("--git-dir="):
                folder = arg[10:]
            elif arg.startswith("--work-tree="):
                work = arg[12:]
            elif arg == "--version" or arg == "-v":
                process.print("git version 2.39.5")
                return 0
            elif arg == "--exec-path":
                process.print("/usr/lib/git-core")
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
        return _command(process, args[index], args[index + 1 :], Before(settings, folder, work, doc))
    except GitError as error:
        process.stdout.flush()
        process.error(f"{error.prefix}{error.message}\n")
        return error.status
    except UsageError as error:
        process.stdout.flush()
        text = str(error)
        if "unrecognized option" in text and args[index] in ("log", "show", "rev-list", "shortlog", "whatchanged"):
            process.error(f"fatal: unrecognized argument: {text.split(chr(39))[1]}\n")
            return 128
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


def _command(process: Process, name: str, args: list[str], before: Before) -> int:
    if args[:1] == ["--help"]:
        process.print(before.doc.rstrip())
        return 0
    if name in ("version", "help"):
        process.print("git version 2.39.5" if name == "version" else before.doc.rstrip())
        return 0
    if name == "init":
        return init(process, args, before.settings)
    if name == "clone":
        return clone(process, args, before.settings)
    if before.folder is not None:
        full = process.absolute(before.folder)
        if not process.fs.exists(f"{full}/HEAD"):
            raise GitError(f"not a git repository: '{before.folder}'")
        found: tuple[str, str] | None = (full.removesuffix("/.git") if full.endswith("/.git") else "", full)
    else:
        found = find_repository(process, process.fs.getcwd())
    if found is not None and before.work is not None:
        found = (process.absolute(before.work), found[1])
        if not f"{process.fs.getcwd().rstrip('/')}/".startswith(f"{found[0].rstrip('/')}/"):
            process.fs.chdir(found[0])  # paths are from there, then
    repo = Repository(process, *found, before.settings) if found is not None else None
    try:
        return _in_repository(process, repo, name, args, before)
    finally:
        if repo is not None:
            repo.close()


def _in_repository(process: Process, repo: Repository | None, name: str, args: list[str], before: Before) -> int:
    if name == "config":
        return config(process, repo, args)
    if name == "ls-remote":
        return ls_remote(process, repo, args, before.settings)
    if name == "credential":
        return credential(process, repo, args, before.settings)
    alias = repo.config(f"alias.{name}") if repo is not None and name not in COMMANDS else None
    if alias is not None:
        if alias.startswith("!"):
            return process.run(["/bin/sh", "-c", f'{alias[1:]} "$@"', alias[1:], *args]).shell
        words = alias.split()
        process.enter()
        try:
            return _command(process, words[0], [*words[1:], *args], before)
        finally:
            process.leave()
    if name not in COMMANDS:
        process.error(f"git: '{name}' is not a git command. See 'git --help'.\n")
        if close := get_close_matches(name, [*COMMANDS, "clone", "config", "credential", "init", "ls-remote"], 1):
            process.error(f"\nThe most similar command is\n\t{close[0]}\n")
        return 1
    if repo is None:
        if name == "diff" and sum(not arg.startswith("-") for arg in args) == 2 and "--no-index" not in args:
            args = ["--no-index", *args]
        if name in _ANYWHERE or (name == "diff" and "--no-index" in args):
            work = process.fs.getcwd() if name == "apply" else ""
            return COMMANDS[name](Repository(process, work, "/.no-repository", before.settings), args)
        raise GitError("not a git repository (or any of the parent directories): .git")
    if not repo.work and name in _NEEDS_WORK:
        raise GitError("this operation must be run in a work tree")
    return COMMANDS[name](repo, args)
