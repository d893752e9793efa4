"""Sparse checkouts: which tracked files are in the work tree, by the patterns of .git/info/sparse-checkout."""

from __future__ import annotations

from dulwich.ignore import Pattern
from dulwich.index import IndexEntry

from belljar.abi.paths import fsencode
from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.text import text_of


def read_patterns(repo: Repository) -> list[str]:
    text = text_of(repo.process.try_read(f"{repo.git}/info/sparse-checkout") or b"")
    return [line for line in text.split("\n") if line.strip() and not line.startswith("#")]


class Sparse:
    """The files that are wanted; all of them unless core.sparseCheckout is set."""

    def __init__(self, repo: Repository) -> None:
        self.enabled = repo.config_bool("core.sparseCheckout")
        lines = read_patterns(repo) if self.enabled else []
        self._patterns = [(Pattern(fsencode(line.removeprefix("!"))), not line.startswith("!")) for line in lines]

    def wants(self, path: str) -> bool:
        if not self.enabled:
            return True
        name = path
        while name:
            data = fsencode(name if name == path else name + "/")
            for pattern, included in reversed(self._patterns):
                if pattern.match(data):
                    return included
            name = name.rpartition("/")[0]
        return False


def cone_patterns(folders: list[str]) -> list[str]:
    """The patterns of a cone: the files at the top and beside each folder, and all below the folders."""
    inside = {folder.strip("/") for folder in folders if folder.strip("/")}
    inside = {folder for folder in inside if not any(folder.startswith(f"{other}/") for other in inside)}
    above = {
        "/".join(parts[:end]) for folder in inside for parts in [folder.split("/")] for end in range(1, len(parts))
    }
    lines = ["/*", "!/*/"]
    for folder in sorted(above):
        lines += [f"/{folder}/", f"!/{folder}/*/"]
    return [*lines, *(f"/{folder}/" for folder in sorted(inside))]


def cone_folders(patterns: list[str]) -> list[str]:
    """The folders of a cone's patterns."""
    above = {line[2:-3] for line in patterns if line.startswith("!/") and line.endswith("/*/")}
    named = [line.strip("/") for line in patterns if line.startswith("/") and line.endswith("/")]
    return sorted(name for name in named if name not in above)


def is_left_out(entry: object) -> bool:
    """Whether an entry of the index is of a file that is not in the work tree by intent."""
    return isinstance(entry, IndexEntry) and entry.skip_worktree
