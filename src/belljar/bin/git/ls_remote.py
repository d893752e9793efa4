"""`git ls-remote`: what another repository has."""

from __future__ import annotations

from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.remotes import open_remote, remotes, user_config
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.web_remote import WebRemote
from belljar.kernel.process import Process
from belljar.libc.pattern import compile_pattern


def ls_remote(process: Process, repo: Repository | None, args: list[str], settings: list[tuple[str, str]]) -> int:
    """List another repository's refs: `git ls-remote [--heads] [--tags] [URL [PATTERN...]]`."""
    words = [arg for arg in args if not arg.startswith("-")]
    known = remotes(repo) if repo is not None else {}
    name = words[0] if words else "origin"
    if not words and name not in known:
        raise GitError("No remote configured to list refs from.")
    url = known.get(name, name)
    source = open_remote(process, url, repo.config_all if repo else lambda key: user_config(process, settings, key))
    try:
        found = source.all_refs() if isinstance(source, WebRemote) else source.refs()
        branch = source.branch()
    except BaseException:
        source.close()
        raise
    try:
        head = found.get("HEAD") or found.get(branch or "")
        listed = ({"HEAD": head} if head else {}) | {ref: sha for ref, sha in sorted(found.items()) if ref != "HEAD"}
        heads, tags = "--heads" in args or "-h" in args or "--branches" in args, "--tags" in args or "-t" in args
        matched = False
        for ref, sha in listed.items():
            if (heads or tags) and not (
                (heads and ref.startswith("refs/heads/")) or (tags and ref.startswith("refs/tags/"))
            ):
                continue
            if words[1:] and not any(compile_pattern(f"*/{pattern}").matches(f"/{ref}") for pattern in words[1:]):
                continue
            if "--symref" in args and ref == "HEAD" and branch:
                process.print(f"ref: {branch}\tHEAD")
            process.print(f"{sha.decode()}\t{ref}")
            if (peeled := source.peeled(sha)) is not None and ref.startswith("refs/tags/") and "--refs" not in args:
                process.print(f"{peeled.decode()}\t{ref}^{{}}")
            matched = True
        return 2 if "--exit-code" in args and not matched else 0
    finally:
        source.close()
