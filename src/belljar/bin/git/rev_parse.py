"""`git rev-parse`: names as objects, and where the repository is."""

from __future__ import annotations

import re

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.pathspec import relative
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.revisions import find_commit, full_name, resolve


def rev_parse(repo: Repository, args: list[str]) -> int:
    process = repo.process
    short = abbreviated = verify = quiet = symbolic = names_ref = pending_path = False
    for arg in args:
        match arg:
            case "--show-toplevel":
                process.print(repo.work or repo.git)
            case "--git-dir":
                here = process.fs.getcwd()
                process.print(
                    ".git" if repo.git == here.rstrip("/") + "/.git" else repo.git if repo.git != here else "."
                )
            case "--absolute-git-dir":
                process.print(repo.git)
            case "--is-inside-work-tree":
                process.print("true" if repo.work else "false")
            case "--is-bare-repository":
                process.print("false" if repo.work else "true")
            case "--is-inside-git-dir":
                process.print("true" if process.fs.getcwd().startswith(repo.git) else "false")
            case "--show-prefix":
                prefix = relative(repo, ".")
                process.print(prefix + "/" if prefix else "")
            case "--show-cdup":
                prefix = relative(repo, ".")
                process.print("../" * (prefix.count("/") + 1) if prefix else "")
            case "--abbrev-ref":
                abbreviated = True
            case "--verify":
                verify = True
            case "-q" | "--quiet":
                quiet = True
            case _ if arg == "--short" or arg.startswith("--short="):
                short = True
            case "--all" | "--branches" | "--tags" | "--remotes":
                folder = {"--all": "", "--branches": "heads/", "--tags": "tags/", "--remotes": "remotes/"}[arg]
                for ref, sha in repo.refs.under(f"refs/{folder}").items():
                    process.print(re.sub(r"^refs/(heads|tags|remotes)/", "", ref) if symbolic else sha.decode())
            case "--symbolic":
                symbolic = True
            case "--symbolic-full-name":
                names_ref = True
            case "--local-env-vars" | "--git-common-dir" | "--show-superproject-working-tree":
                if arg == "--git-common-dir":
                    process.print(".git" if repo.common == process.fs.getcwd().rstrip("/") + "/.git" else repo.common)
            case "--show-object-format":
                process.print("sha1")
            case "--is-shallow-repository":
                process.print("true" if repo.store.shallow else "false")
            case "--git-path":
                pending_path = True
            case _ if pending_path:
                process.print(f".git/{arg}")
                pending_path = False
            case "--" | "--revs-only" | "--no-flags" | "--flags" | "--no-revs" | "--end-of-options":
                continue
            case _ if arg.startswith("-"):
                process.print(arg)
            case _:
                try:
                    sha = resolve(repo, arg)
                except KeyError:
                    if verify:
                        if quiet:
                            return 1
                        raise GitError("Needed a single revision") from None
                    process.print(arg)
                    find_commit(repo, arg)
                    raise
                if names_ref and not abbreviated:
                    process.print(full_name(repo, arg))
                elif abbreviated:
                    named = full_name(repo, arg) if arg in ("HEAD", "@") or "@{u" in arg else arg
                    process.print(re.sub(r"^refs/(heads|tags|remotes)/", "", named))
                else:
                    process.print(sha.decode()[:7] if short else sha.decode())
    return 0
