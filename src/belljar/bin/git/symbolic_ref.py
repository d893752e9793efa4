"""`git symbolic-ref`: the ref that a ref stands for."""

from __future__ import annotations

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository


def symbolic_ref(repo: Repository, args: list[str]) -> int:
    words = [arg for arg in args if not arg.startswith("-")]
    if len(words) == 2:
        repo.refs.write(words[0], f"ref: {words[1]}")
        return 0
    name = words[0] if words else "HEAD"
    text = repo.refs.raw(name) or ""
    if not text.startswith("ref: "):
        if "-q" in args:
            return 1
        raise GitError(f"ref {name} is not a symbolic ref")
    target = text[5:].strip()
    repo.process.print(
        target.removeprefix("refs/heads/").removeprefix("refs/remotes/") if "--short" in args else target
    )
    return 0
