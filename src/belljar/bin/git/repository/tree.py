"""A tree's entries, one by one."""

from __future__ import annotations

from dulwich.objects import Tree

from belljar.abi.dataclass import dataclass
from belljar.bin.git.repository.diffs import quote_path
from belljar.bin.git.repository.store import DIRECTORY, SUBMODULE
from belljar.bin.git.repository.text import text_of


@dataclass(frozen=True, slots=True)
class Row:
    """An entry of a tree."""

    mode: int
    sha: bytes
    path: str

    @property
    def kind(self) -> str:
        return {DIRECTORY: "tree", SUBMODULE: "commit"}.get(self.mode, "blob")

    def text(self, size: str = "") -> str:
        return f"{self.mode:06o} {self.kind} {self.sha.decode()}{size}\t{quote_path(self.path)}"


def rows(tree: Tree, prefix: str = "") -> list[Row]:
    return [Row(e.mode or 0, bytes(e.sha or b""), prefix + text_of(e.path or b"")) for e in tree.iteritems()]
