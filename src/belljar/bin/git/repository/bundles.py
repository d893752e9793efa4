"""Files of `git bundle`: read, and fetched from like any other repository."""

from __future__ import annotations

import re

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.remote import Remote, Update
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import text_of
from belljar.kernel.process import Process

_MAGIC = b"# v2 git bundle\n"


@dataclass(frozen=True, slots=True)
class Bundle:
    requires: list[bytes]
    """Commits that have to be there already."""
    refs: dict[str, bytes]
    pack: bytes


def is_bundle(process: Process, path: str) -> bool:
    try:
        return process.fs.stat(path).is_regular and process.read_file(path).startswith(_MAGIC)
    except SysError:
        return False


def read_bundle(process: Process, path: str) -> Bundle:
    try:
        data = process.read_file(path)
    except SysError as error:
        raise GitError(f"could not open '{path}': {error.reason}", 1, "error: ") from None
    head, blank, pack = data.partition(b"\n\n")
    if not data.startswith(_MAGIC) or not blank:
        raise GitError(f"'{path}' does not look like a v2 or v3 bundle file", 1, "error: ")
    requires: list[bytes] = []
    refs: dict[str, bytes] = {}
    for line in head.split(b"\n")[1:]:
        if match := re.match(rb"-([0-9a-f]{40})", line):
            requires.append(match[1])
        elif match := re.match(rb"([0-9a-f]{40}) (.+)", line):
            refs[text_of(match[2])] = match[1]
    return Bundle(requires, refs, pack)


class BundleRemote(Remote):
    """A bundle as a repository to fetch from."""

    def __init__(self, process: Process, path: str) -> None:
        self.where = path
        self._bundle = read_bundle(process, path)

    def refs(self) -> dict[str, bytes]:
        return {ref: sha for ref, sha in self._bundle.refs.items() if ref != "HEAD"}

    def branch(self) -> str | None:
        head = self._bundle.refs.get("HEAD")
        heads = [ref for ref, sha in self._bundle.refs.items() if ref.startswith("refs/heads/") and sha == head]
        usual = [ref for ref in heads if ref in ("refs/heads/main", "refs/heads/master")]
        return next(iter([*usual, *heads]), None)

    def bring(self, repo: Repository, tips: list[bytes], depth: int | None = None) -> None:
        missing = [sha for sha in self._bundle.requires if sha not in repo.store]
        if missing:
            listed = "\n".join(f"error: {sha.decode()} " for sha in missing)
            raise GitError(f"Repository lacks these prerequisite commits:\n{listed}", 1, "error: ")
        repo.store.add_pack(self._bundle.pack)

    def send(self, repo: Repository, updates: list[Update]) -> dict[str, str]:
        raise GitError(f"'{self.where}' is a bundle, which can't be pushed to")

    def close(self) -> None:
        """Do nothing: no connection is open."""
