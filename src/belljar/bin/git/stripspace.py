"""`git stripspace`: a message without needless white space."""

from __future__ import annotations

from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import input_lines, strip_space


def stripspace(repo: Repository, args: list[str]) -> int:
    text = strip_space("\n".join(input_lines(repo)), comments="-s" in args or "--strip-comments" in args)
    if "-c" in args or "--comment-lines" in args:
        text = "".join(f"# {line}".rstrip() + "\n" for line in text.splitlines())
    repo.process.print(text, end="")
    return 0
