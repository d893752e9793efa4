"""A repository: its folder, configuration, index, identity and clock, and what names in it mean."""

from __future__ import annotations

import re
import struct
from email.utils import mktime_tz, parsedate_tz
from hashlib import sha1
from io import BytesIO
from typing import Protocol

from dulwich.index import ConflictedIndexEntry, IndexEntry, read_index_dict_with_version, write_index_dict
from dulwich.objects import Commit, ObjectID, Tree

from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode, normalise
from belljar.abi.records import NANO, Stat
from belljar.bin._kit.clock import zone_of
from belljar.bin._kit.dates import BadDate, parse_date
from belljar.bin.git.repository.config import config_paths, config_values, read_config
from belljar.bin.git.repository.errors import GitError
from belljar.bin.git.repository.refs import Refs
from belljar.bin.git.repository.store import EXECUTABLE, FILE_MODE, LINK, SUBMODULE, Flat, Store
from belljar.kernel.process import Process
from belljar.libc.zones import localtime

Index = dict[str, IndexEntry | ConflictedIndexEntry]
_WHO = """{kind} identity unknown

*** Please tell me who you are.

Run

  git config --global user.email "you@example.com"
  git config --global user.name "Your Name"

to set your account's default identity.
Omit --global to set the identity only in this repository.

"""


def find_repository(process: Process, start: str) -> tuple[str, str] | None:
    """The work tree and the .git folder above a directory."""
    current = start.rstrip("/") or "/"
    while True:
        folder = f"{current.rstrip('/')}/.git"
        try:
            stat = process.fs.stat(folder)
            if stat.is_dir:
                process.fs.stat(folder + "/HEAD")
                return current, folder
            if stat.is_regular:
                text = process.read_file(folder).decode("utf-8", "replace").strip()
                if text.startswith("gitdir: "):
                    return current, normalise(text[8:] if text[8:9] == "/" else f"{current}/{text[8:]}")
        except SysError:
            pass
        if _is_bare(process, current):
            return "", current
        if current == "/":
            return None
        current = current.rpartition("/")[0] or "/"


def _is_bare(process: Process, path: str) -> bool:
    try:
        for name in ("HEAD", "objects", "refs"):
            process.fs.stat(f"{path}/{name}")
    except SysError:
        return False
    return True


def _common(process: Process, git: str) -> str:
    if "/worktrees/" not in git:
        return git
    text = (process.try_read(f"{git}/commondir") or b"").decode("utf-8", "surrogateescape").strip()
    return normalise(text if text.startswith("/") else f"{git}/{text}")


class Closing(Protocol):
    """Something to be closed."""

    def close(self) -> None: ...


def index_time(nanoseconds: int) -> tuple[int, int]:
    """Seconds and nanoseconds as the index keeps them: 32 bits of each."""
    seconds, rest = divmod(nanoseconds, NANO)
    return seconds & 0xFFFFFFFF, rest


class Repository:
    def __init__(self, process: Process, work: str, git: str, settings: list[tuple[str, str]] | None = None) -> None:
        self.process = process
        self.work = work
        self.git = git
        self.common = _common(process, git)
        """The folder of what all work trees of the repository share; `git` holds what this one has for itself."""
        self.store = Store(process, f"{self.common}/objects")
        self.refs = Refs(process, git, self.common)
        self.settings = settings or []
        self._index: Index | None = None
        self.others: list[Closing] = []
        """Remotes that were opened for it; closed with it."""

    def close(self) -> None:
        self.store.close()
        for other in self.others:
            other.close()

    # Configuration.

    def config_files(self) -> list[str]:
        return [path for _, path in config_paths(self.process, self.common)]

    def config(self, key: str) -> str | None:
        values = self.config_all(key)
        return values[-1] if values else None

    def config_all(self, key: str) -> list[str]:
        found: list[str] = []
        for path in self.config_files():
            found += config_values(read_config(self.process, path), key)
        return found + [text for name, text in self.settings if name.lower() == key.lower()]

    def config_bool(self, key: str, default: bool = False) -> bool:
        text = self.config(key)
        return default if text is None else text.lower() in ("true", "yes", "on", "1", "")

    # Who and when.

    def identity(self, kind: str) -> bytes:
        """`Name <email>` for AUTHOR or COMMITTER; or git's complaint that nobody said who that is."""
        name, email = self._names(kind)
        if not email or not name:
            self.process.error(_WHO.format(kind=kind.capitalize()))
            missing = "unable to auto-detect email address" if not email else "empty ident name not allowed"
            raise GitError(missing)
        return fsencode(f"{_clean(name)} <{_clean(email)}>")

    def _names(self, kind: str) -> tuple[str | None, str | None]:
        env = self.process.env
        name = env.get(f"GIT_{kind}_NAME") or self.config(f"{kind.lower()}.name") or self.config("user.name")
        email = (
            env.get(f"GIT_{kind}_EMAIL")
            or self.config(f"{kind.lower()}.email")
            or self.config("user.email")
            or env.get("EMAIL")
        )
        return name, email

    def now(self, kind: str) -> tuple[int, int]:
        """Seconds and the zone's offset."""
        text = self.process.env.get(f"GIT_{kind}_DATE")
        if text:
            return self.parse_date(text)
        seconds = self.process.kernel.now() // NANO
        return seconds, localtime(seconds, zone_of(self.process.env)).offset

    def parse_date(self, text: str) -> tuple[int, int]:
        match = re.fullmatch(r"@?(\d+)(?:\s+([-+])(\d\d)(\d\d))?", text.strip())
        if match and (text.startswith("@") or match[2] or len(match[1]) > 8):
            offset = (int(match[3]) * 3600 + int(match[4]) * 60) * (-1 if match[2] == "-" else 1) if match[2] else 0
            return int(match[1][:15]), offset
        try:
            found: int | None = parse_date(text, self.process.kernel.now(), self.process.env)
        except BadDate:
            found = None
        if found is not None:
            zone = re.search(r"([-+])(\d\d):?(\d\d)\s*$", text)
            seconds = found // NANO
            if zone and ":" in text:
                return seconds, (int(zone[2]) * 3600 + int(zone[3]) * 60) * (-1 if zone[1] == "-" else 1)
            if text.rstrip().endswith("Z"):
                return seconds, 0
            return seconds, localtime(seconds, zone_of(self.process.env)).offset
        parsed = parsedate_tz(text)
        if parsed is None:
            raise GitError(f"invalid date format: {text}")
        return int(mktime_tz(parsed)), parsed[9] or 0

    def signature(self) -> bytes:
        """The committer as logs show it."""
        seconds, offset = self.now("COMMITTER")
        sign = "-" if offset < 0 else "+"
        zone = f"{sign}{abs(offset) // 3600:02d}{abs(offset) % 3600 // 60:02d}"
        name, email = self._names("COMMITTER")
        who = fsencode(f"{_clean(name or 'unknown')} <{_clean(email or 'unknown')}>")
        return who + f" {seconds} {zone}".encode()

    # The index.

    @property
    def index(self) -> Index:
        if self._index is None:
            self._index = {}
            data = self.process.try_read(f"{self.git}/index") or b""
            if data:
                try:
                    entries, _, _ = read_index_dict_with_version(BytesIO(data))
                except (ValueError, AssertionError, KeyError, IndexError, struct.error):
                    raise GitError("index file corrupt") from None
                self._index = {path.decode("utf-8", "surrogateescape"): entry for path, entry in entries.items()}
        return self._index

    def forget_index(self) -> None:
        """Another program may have changed it: it is read again."""
        self._index = None

    def write_index(self) -> None:
        out = BytesIO()
        entries = {fsencode(path): entry for path, entry in self.index.items()}
        write_index_dict(out, entries)
        data = out.getvalue()
        # Git's format ends in a checksum of what precedes it.
        self.process.write_file(f"{self.git}/index", data + sha1(data).digest())  # noqa: S324

    def staged(self) -> Flat:
        """The index as a flat tree, without what is in conflict."""
        return {
            path: (entry.mode, bytes(entry.sha))
            for path, entry in sorted(self.index.items(), key=lambda item: fsencode(item[0]))
            if isinstance(entry, IndexEntry)
        }

    def conflicts(self) -> dict[str, ConflictedIndexEntry]:
        return {path: e for path, e in sorted(self.index.items()) if isinstance(e, ConflictedIndexEntry)}

    def entry(self, stat: Stat, mode: int, sha: bytes) -> IndexEntry:
        return IndexEntry(
            index_time(stat.ctime), index_time(stat.mtime), stat.dev & 0xFFFFFFFF, stat.ino & 0xFFFFFFFF, mode,
            stat.uid, stat.gid, stat.size & 0xFFFFFFFF, ObjectID(sha),
        )  # fmt: skip

    def bare_entry(self, mode: int, sha: bytes) -> IndexEntry:
        return IndexEntry((0, 0), (0, 0), 0, 0, mode, 0, 0, 0, ObjectID(sha))

    # Commits.

    def head(self) -> bytes | None:
        return self.refs.get("HEAD")

    def head_tree(self) -> Flat:
        head = self.head()
        return self.tree_of(head) if head is not None else {}

    def tree_of(self, commit: bytes | None) -> Flat:
        if commit is None:
            return {}
        return self.store.flatten(bytes(self.store.commit(commit).tree))

    def make_commit(
        self,
        tree: bytes,
        parents: list[bytes],
        message: str,
        author: bytes | None = None,
        author_time: tuple[int, int] | None = None,
        commit_time: tuple[int, int] | None = None,
    ) -> bytes:
        commit = Commit()
        commit.tree = ObjectID(tree)
        commit.parents = [ObjectID(parent) for parent in parents]
        commit.author = author or self.identity("AUTHOR")
        commit.committer = self.identity("COMMITTER")
        commit.author_time, commit.author_timezone = author_time or self.now("AUTHOR")
        commit.commit_time, commit.commit_timezone = commit_time or self.now("COMMITTER")
        commit.message = fsencode(message)
        return self.store.add(commit)

    def upstream(self, branch: str) -> str | None:
        """The remote-tracking ref a branch follows."""
        remote, merge = self.config(f"branch.{branch}.remote"), self.config(f"branch.{branch}.merge")
        if not remote or not merge:
            return None
        if remote == ".":
            return merge
        return f"refs/remotes/{remote}/{merge.removeprefix('refs/heads/')}"

    def tree_at(self, sha: bytes) -> Flat:
        """The files of a tree, or of a commit or tag's."""
        if isinstance(self.store.get(sha), Tree):
            return self.store.flatten(sha)
        return self.tree_of(bytes(self.store.commit(sha).id))

    def contents(self, entry: tuple[int, bytes]) -> bytes:
        """Return the contents of a tree's file; of a submodule, its `Subproject commit` line."""
        mode, sha = entry
        return b"Subproject commit " + sha + b"\n" if mode == SUBMODULE else self.store.blob(sha)

    # Files.

    def path(self, name: str) -> str:
        return f"{self.work.rstrip('/')}/{name}"

    def read_work(self, name: str, stat: Stat) -> bytes:
        if stat.is_symlink:
            return fsencode(self.process.fs.readlink(self.path(name)))
        return self.process.read_file(self.path(name))


def mode_of(stat: Stat) -> int:
    if stat.is_symlink:
        return LINK
    return EXECUTABLE if stat.mode & 0o100 else FILE_MODE


def _clean(text: str) -> str:
    return re.sub(r"[<>\n]", "", text).strip(" .,:;\"'\\")
