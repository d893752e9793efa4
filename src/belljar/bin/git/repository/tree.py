"""A tree's entries, one by one."""

from __future__ import annotations

import re

from dulwich.objects import Tree

from belljar.abi.dataclass import dataclass
from belljar.bin.git.repository.diffs import quote_path
from belljar.bin.git.repository.errors import GitError
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


def parse_mode(text: str) -> int:
    if not re.fullmatch("[0-7]{1,6}", text):
        raise GitError(f"invalid mode: '{text}'")
    return int(text, 8)


def parse_name(text: str) -> bytes:
    """An object's whole name."""
    if not re.fullmatch("[0-9a-f]{40}", text):
        raise GitError(f"invalid object name: '{text}'")
    return text.encode()
