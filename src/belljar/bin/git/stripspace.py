"""`git stripspace`: a message without needless white space."""

from __future__ import annotations

from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import input_lines


def stripspace(repo: Repository, args: list[str]) -> int:
    lines = [line.rstrip() for line in input_lines(repo)]
    if "-s" in args or "--strip-comments" in args:
        lines = [line for line in lines if not line.startswith("#")]
    out: list[str] = []
    for line in lines:
        if line or (out and out[-1]):
            out.append(line)
    while out and not out[-1]:
        out.pop()
    mark = "# " if "-c" in args or "--comment-lines" in args else ""
    repo.process.print("".join(f"{mark}{line}".rstrip() + "\n" for line in out), end="")
    return 0
