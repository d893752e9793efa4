"""Branches, tags and HEAD: files below .git, packed-refs, and the logs of where they pointed."""

from __future__ import annotations

import re
from contextlib import suppress

from belljar.abi.errors import SysError
from belljar.abi.flags import O_APPEND, O_CREAT, O_WRONLY
from belljar.abi.paths import fsencode
from belljar.bin.git.repository.errors import GitError
from belljar.kernel.process import Process

ZERO = b"0" * 40
_BAD = re.compile(r"\.\.|[\x00-\x20~^:?*\[\\\x7f]|@\{|//|^/|/$|\.$|\.lock(/|$)|^@$|(^|/)\.|^-")
_LOGGED = re.compile(rb"[0-9a-f]{40} [0-9a-f]{40} ")


def check_name(name: str) -> bool:
    return bool(name) and not _BAD.search(name)


class Refs:
    """A repository's refs; HEAD and others not below `refs` are each work tree's own."""

    def __init__(self, process: Process, directory: str, common: str) -> None:
        self._process = process
        self._directory = directory
        self._common = common

    def _folder(self, name: str) -> str:
        shared = name.startswith("refs") and not name.startswith(("refs/bisect", "refs/worktree"))
        return self._common if shared else self._directory

    def raw(self, name: str) -> str | None:
        """Return the contents of a ref's file."""
        try:
            return self._process.read_file(f"{self._folder(name)}/{name}").decode("utf-8", "surrogateescape").strip()
        except SysError:
            packed = self._packed().get(name)
            return packed.decode() if packed else None

    def _packed(self) -> dict[str, bytes]:
        text = (self._process.try_read(f"{self._common}/packed-refs") or b"").decode("utf-8", "surrogateescape")
        found = {}
        for line in text.splitlines():
            sha, _, name = line.partition(" ")
            if re.fullmatch("[0-9a-f]{40}", sha):
                found[name] = fsencode(sha)
        return found

    def get(self, name: str) -> bytes | None:
        """The object a ref points to, through symbolic ones."""
        for _ in range(6):
            text = self.raw(name)
            if text is None:
                return None
            if text.startswith("ref: "):
                name = text[5:].strip()
                continue
            return fsencode(text) if re.fullmatch(r"[0-9a-f]{40}", text) else None
        return None

    def branch(self) -> str | None:
        """The branch HEAD is on, in full; None if it is detached."""
        text = self.raw("HEAD")
        return text[5:].strip() if text is not None and text.startswith("ref: ") else None

    def under(self, prefix: str) -> dict[str, bytes]:
        found = {name: sha for name, sha in self._packed().items() if name.startswith(prefix)}
        stack = [prefix.rstrip("/")]
        while stack:
            folder = stack.pop()
            try:
                entries = self._process.fs.readdir(f"{self._folder(folder)}/{folder}")
            except SysError:
                continue
            for entry in entries:
                self._process.budget.charge()
                path = f"{folder}/{entry.name}"
                if entry.is_dir:
                    stack.append(path)
                else:
                    sha = self.get(path)
                    if sha is not None:
                        found[path] = sha
        return dict(sorted(found.items()))

    def write(self, name: str, text: str) -> None:
        path = f"{self._folder(name)}/{name}"
        self._process.fs.makedirs(path.rpartition("/")[0])
        try:
            self._process.write_file(path, fsencode(text) + b"\n")
        except SysError as error:
            raise GitError(f"cannot lock ref '{name}': {error.reason}") from None

    def set(self, name: str, sha: bytes, message: str, who: bytes) -> None:
        """Point a ref somewhere, and log it; HEAD's log too if HEAD is on it."""
        target = name
        if name == "HEAD":
            target = self.branch() or "HEAD"
        old = self.get(target) or ZERO
        self.write(target, sha.decode())
        for log in {target, "HEAD"} if target in ("HEAD", self.branch()) else {target}:
            self.log(log, old, sha, message, who)

    def log(self, name: str, old: bytes, new: bytes, message: str, who: bytes) -> None:
        if not name.startswith(("refs/heads/", "refs/remotes/", "refs/notes/")) and name not in ("HEAD", "refs/stash"):
            return
        path = f"{self._folder(name)}/logs/{name}"
        self._process.fs.makedirs(path.rpartition("/")[0])
        line = old + b" " + new + b" " + who + b"\t" + fsencode(message) + b"\n"
        self._process.write_file(path, line, flags=O_WRONLY | O_CREAT | O_APPEND)

    def read_log(self, name: str) -> list[tuple[bytes, bytes, bytes, str]]:
        """Old, new, who, message; the newest last."""
        data = self._process.try_read(f"{self._folder(name)}/logs/{name}") or b""
        found = []
        for line in data.splitlines():
            if not _LOGGED.match(line):
                continue
            head, _, message = line.partition(b"\t")
            found.append((head[:40], head[41:81], head[82:], message.decode("utf-8", "surrogateescape")))
        return found

    def write_log(self, name: str, entries: list[tuple[bytes, bytes, bytes, str]]) -> None:
        text = b"".join(
            old + b" " + new + b" " + who + b"\t" + fsencode(message) + b"\n" for old, new, who, message in entries
        )
        self._process.write_file(f"{self._folder(name)}/logs/{name}", text)

    def delete(self, name: str) -> None:
        folder = self._folder(name)
        for path in (f"{folder}/{name}", f"{folder}/logs/{name}"):
            try:
                self._process.fs.unlink(path)
            except SysError:
                continue
            self._prune(path.rpartition("/")[0])
        packed = self._packed()
        if name in packed:
            del packed[name]
            text = "# pack-refs with: peeled fully-peeled sorted \n" + "".join(
                f"{sha.decode()} {ref}\n" for ref, sha in sorted(packed.items())
            )
            self._process.write_file(f"{self._common}/packed-refs", fsencode(text))

    def pack(self, *, everything: bool) -> None:
        """Put refs into packed-refs; tags only unless everything is asked for."""
        refs = {**self._packed()}
        for name, sha in self.under("refs/" if everything else "refs/tags/").items():
            text = self.raw(name)
            if text is not None and not text.startswith("ref: "):
                refs[name] = sha
                with suppress(SysError):
                    self._process.fs.unlink(f"{self._folder(name)}/{name}")
        rows = "".join(f"{sha.decode()} {ref}\n" for ref, sha in sorted(refs.items()))
        header = "# pack-refs with: peeled fully-peeled sorted \n"
        self._process.write_file(f"{self._common}/packed-refs", fsencode(header + rows))

    def _prune(self, folder: str) -> None:
        """Folders that a name with slashes leaves empty."""
        while folder.count("/") > self._common.count("/") + 2:
            try:
                self._process.fs.rmdir(folder)
            except SysError:
                return
            folder = folder.rpartition("/")[0]
