"""`git var`: what git takes from its surroundings."""

from __future__ import annotations

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import date, text_of


def var(repo: Repository, args: list[str]) -> int:
    for name in [arg for arg in args if not arg.startswith("-")]:
        match name:
            case "GIT_AUTHOR_IDENT" | "GIT_COMMITTER_IDENT":
                kind = name.split("_")[1]
                when = date(*repo.now(kind), "raw")
                repo.process.print(f"{text_of(repo.identity(kind))} {when}")
            case "GIT_EDITOR":
                editor = repo.process.env.get("GIT_EDITOR") or repo.config("core.editor") or "vi"
                repo.process.print(repo.process.env.get("EDITOR", editor) if editor == "vi" else editor)
            case "GIT_PAGER":
                repo.process.print(repo.process.env.get("GIT_PAGER") or "pager")
            case "GIT_DEFAULT_BRANCH":
                repo.process.print(repo.config("init.defaultBranch") or "master")
            case _:
                raise GitError("usage: git var (-l | <variable>)", 129, "")
    return 0
