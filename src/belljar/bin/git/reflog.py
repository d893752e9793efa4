"""`git reflog`: where a ref pointed before."""

from __future__ import annotations

from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.arguments import attach_numbers
from belljar.bin.git.repository.formats import Formatter
from belljar.bin.git.repository.log_options import LogOptions
from belljar.bin.git.repository.repo import Repository


def reflog(repo: Repository, args: list[str]) -> int:
    words = [arg for arg in attach_numbers(args) if arg != "show"]
    if words[:1] and words[0] in ("expire", "delete", "exists"):
        return 0 if words[0] == "exists" and repo.refs.read_log(words[-1]) else int(words[0] == "exists")
    options, operands = read_options(LogOptions, words)
    name = operands[0] if operands else "HEAD"
    ref = name if name in ("HEAD", "stash") or name.startswith("refs/") else f"refs/heads/{name}"
    limit = int(options.number[:9]) if options.number and options.number.isdecimal() else None
    entries = list(reversed(repo.refs.read_log("refs/stash" if ref == "stash" else ref)))
    for number, (_, new, _, message) in enumerate(entries[:limit]):
        if options.form is not None:
            text = options.form.removeprefix("format:").removeprefix("tformat:")
            text = text.replace("%gd", f"{name}@{{{number}}}").replace("%gs", message)
            repo.process.print(Formatter(repo, text, options.date).show(new))
        else:
            repo.process.print(f"{new[:7].decode()} {name}@{{{number}}}: {message}")
    return 0
