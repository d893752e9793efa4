"""Notes: texts about objects that are kept beside them, in a tree of a ref of their own."""

from __future__ import annotations

import re

from dulwich.objects import Blob

from belljar.bin.git.repository.repo import Repository
from belljar.bin.git.repository.store import FILE_MODE, Flat
from belljar.bin.git.repository.text import text_of

DEFAULT = "refs/notes/commits"


def default_ref(repo: Repository) -> str:
    return repo.process.env.get("GIT_NOTES_REF") or repo.config("core.notesRef") or DEFAULT


def full_ref(name: str) -> str:
    """`other` means refs/notes/other."""
    if name.startswith("refs/notes/"):
        return name
    return f"refs/{name}" if name.startswith("notes/") else f"refs/notes/{name}"


class Notes:
    """The notes of one ref, by the objects they are about."""

    def __init__(self, repo: Repository, ref: str) -> None:
        self._repo = repo
        self.ref = ref
        self._others: Flat = {}
        """Entries of the tree that are no notes."""
        self.blobs: dict[bytes, bytes] = {}
        tip = repo.refs.get(ref)
        for path, (mode, sha) in (repo.tree_of(tip) if tip is not None else {}).items():
            name = path.replace("/", "")
            if re.fullmatch(r"[0-9a-f]{40}", name):
                self.blobs[name.encode()] = sha
            else:
                self._others[path] = (mode, sha)

    @property
    def title(self) -> str:
        return "Notes:" if self.ref == DEFAULT else f"Notes ({self.ref.removeprefix('refs/notes/')}):"

    def text(self, about: bytes) -> str | None:
        blob = self.blobs.get(about)
        return text_of(self._repo.store.blob(blob)) if blob is not None else None

    def put(self, about: bytes, data: bytes) -> None:
        self.blobs[about] = self._repo.store.add(Blob.from_string(data))

    def commit(self, message: str) -> None:
        """Keep the notes as they are now."""
        repo = self._repo
        files = self._others | {about.decode(): (FILE_MODE, blob) for about, blob in self.blobs.items()}
        tip = repo.refs.get(self.ref)
        sha = repo.make_commit(repo.store.unflatten(files), [tip] if tip is not None else [], f"{message}\n")
        repo.refs.set(self.ref, sha, f"notes: {message}", repo.signature())
