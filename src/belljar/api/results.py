"""Results of calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, Self

from belljar.abi.flags import S_IFDIR, S_IFLNK, S_IFMT, S_IFREG
from belljar.abi.paths import fsdecode
from belljar.api.errors import ExecError, FileError

Kind = Literal["file", "directory", "symlink", "other"]
_KINDS: Final[dict[int, Kind]] = {S_IFREG: "file", S_IFDIR: "directory", S_IFLNK: "symlink"}


def decode(data: bytes) -> str:
    """Guest output as text: what is not UTF-8 becomes U+FFFD (use the `_bytes` twin where that matters)."""
    return data.decode("utf-8", "replace")


@dataclass(frozen=True, slots=True)
class ExecResult:
    """How a command ended and what it said."""

    stdout_bytes: bytes
    stderr_bytes: bytes
    exit_code: int
    duration_ms: float
    timed_out: bool = False
    truncated: bool = False
    limit: str | None = None
    """The budget that stopped it (a field of `Limits`), else None."""

    @property
    def ok(self) -> bool:
        """Whether it ended by itself, with exit code 0."""
        return self.exit_code == 0 and self.limit is None

    @property
    def stdout(self) -> str:
        return decode(self.stdout_bytes)

    @property
    def stderr(self) -> str:
        return decode(self.stderr_bytes)

    def check(self) -> Self:
        """Itself if the command exited with 0; else raises `ExecError`."""
        if self.exit_code != 0:
            raise ExecError(self)
        return self


@dataclass(frozen=True, slots=True)
class Entry:
    """A file's metadata; `mtime` in seconds."""

    name: str
    path: str
    kind: Kind
    size: int
    mode: int
    mtime: float
    uid: int
    gid: int

    @property
    def is_dir(self) -> bool:
        return self.kind == "directory"

    @classmethod
    def from_fields(cls, name: str, path: str, mode: int, size: int, mtime: int, uid: int, gid: int, *_: int) -> Self:
        return cls(name, path, _KINDS.get(mode & S_IFMT, "other"), size, mode & 0o7777, mtime / 1e9, uid, gid)


@dataclass(frozen=True, slots=True)
class FileResult:
    """One file of a batch: `error` is None if it worked."""

    path: str
    error: FileError | None = None

    @property
    def ok(self) -> bool:
        return self.error is None


@dataclass(frozen=True, slots=True)
class GrepMatch:
    path: str
    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Info:
    """Description of a sandbox."""

    id: str
    tier: str
    isolation: tuple[str, ...]
    """The layers that hold around this sandbox."""
    image: str
    created: float
    js: str = ""
    """The engine of its JavaScript: "v8", or "quickjs" and, in parentheses, why; "none" and why if nothing does."""
    missing: tuple[str, ...] = ()
    """The layers that do not hold: this system has none of that kind, or, of `cgroup`, nobody required it."""


def split_grep(output: bytes) -> list[GrepMatch]:
    """Reads what `grep -nZ` prints: path, NUL, line number, colon, text."""
    found: list[GrepMatch] = []
    for record in output.splitlines():
        path, nul, rest = record.partition(b"\0")
        number, colon, text = rest.partition(b":")
        if nul and colon and number.isdigit():
            found.append(GrepMatch(fsdecode(path), int(number), decode(text)))
    return found
