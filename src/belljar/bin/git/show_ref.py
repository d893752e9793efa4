"""`git show-ref`: refs and their objects."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import flag, value
from belljar.bin._kit.options import read_options
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.repo import Repository


@dataclass(frozen=True, slots=True)
class Options:
    heads: bool = flag("--heads", "only branches")
    tags: bool = flag("--tags", "only tags")
    verify: bool = flag("--verify", "names must be whole")
    quiet: bool = flag("-q", "--quiet", "only a status")
    head: bool = flag("--head", "HEAD, too")
    dereference: bool = flag("-d", "--dereference", "what tags point to, too")
    short: str | None = value("-s", "--hash", "only objects", metavar="N", bare="40")


def show_ref(repo: Repository, args: list[str]) -> int:
    options, operands = read_options(Options, args)
    refs = dict(repo.refs.under("refs/"))
    head = repo.head()
    if head is not None and (options.head or "HEAD" in operands):
        refs = {"HEAD": head, **refs}
    found = False
    digits = int(options.short[:3]) if options.short and options.short.isdecimal() else 40
    if options.verify:
        for name in operands:
            if name not in refs:
                if options.quiet:
                    return 1
                raise GitError(f"'{name}' - not a valid ref")
    for ref, sha in refs.items():
        names = operands
        if names and not any(ref == name or (not options.verify and ref.endswith("/" + name)) for name in names):
            continue
        kinds = [prefix for given, prefix in ((options.heads, "refs/heads/"), (options.tags, "refs/tags/")) if given]
        if kinds and not ref.startswith(tuple(kinds)):
            continue
        found = True
        if options.quiet:
            continue
        rows = [(sha, ref)]
        if options.dereference and repo.store.get(sha).type_name == b"tag":
            rows.append((bytes(repo.store.commit(sha).id), ref + "^{}"))
        for item, label in rows:
            repo.process.print(item.decode()[:digits] if options.short is not None else f"{item.decode()} {label}")
    return 0 if found else 1
