"""Changes of the sandbox's files that are done all or not at all.

What is to be put in place is staged first, in full, in a directory of its own. Then a journal says what will be moved
where, and it is moved. Whoever finds a journal undoes what it says: a `pkg` that was killed in between, or the next
one. With the journal's renaming the change is made; what was replaced is then removed. The times of directories that
were there before stay what they were, so that installing and removing leaves no trace.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from contextlib import suppress
from typing import Any, Final

from belljar.abi.dataclass import dataclass, field
from belljar.abi.errors import SysError
from belljar.bin._kit.cstack import parse_json
from belljar.bin._remove import Remover
from belljar.bin.pkg.database import CACHE, CATALOGS, INSTALLED, STATE
from belljar.kernel.process import Process
from belljar.packages.errors import PackageError

PLACE: Final = f"{STATE}/transaction"
_JOURNAL: Final = f"{PLACE}/journal"
_DONE: Final = f"{PLACE}/done"
_STATE_DIRECTORIES: Final = (INSTALLED, CATALOGS, STATE, CACHE)
"""They go when they are empty."""


def recover(process: Process) -> bool:
    """Undo, or finish, what an earlier pkg left behind; whether a change had to be undone."""
    undone = False
    if process.fs.exists(PLACE):
        journal = process.try_read(_JOURNAL)
        done = process.try_read(_DONE)
        if journal is not None:
            _undo(process, parse_json(journal))
            undone = True
        elif done is not None:
            _clean(process, parse_json(done))
        remove_tree(process, PLACE)
    return undone


def remove_tree(process: Process, path: str) -> None:
    """Remove a file or directory, if it is there."""
    if process.fs.exists(path, follow=False):
        Remover(process, recursive=True, force=True).remove(path)


@dataclass(slots=True)
class Transaction:
    """What is to be moved, and out of the way of what."""

    process: Process
    _count: int = 0
    steps: list[tuple[str, str, str]] = field(default_factory=list)
    """A path, the staged file that goes there, and the place where what is there goes; each may be "" but the first."""
    abandoned: set[str] = field(default_factory=set)
    """Directories that go if nothing is left in them."""
    _times: dict[str, int] = field(default_factory=dict)

    def begin(self) -> None:
        """Make the directory of what is staged."""
        for directory in ("/var", "/var/lib", "/var/cache", STATE, INSTALLED, CACHE):
            self._note_time(directory)
        self.process.fs.makedirs(PLACE, 0o700)
        self.process.fs.makedirs(INSTALLED, 0o755)

    def stage(self) -> str:
        """A new path for something that is to be moved into place."""
        self._count += 1
        return f"{PLACE}/{self._count}"

    def put(self, path: str, staged: str) -> None:
        """Move a staged file or directory to a path, once what is there has gone."""
        self.steps.append((path, staged, ""))

    def take_away(self, path: str) -> None:
        """Remove what is at a path."""
        if self.process.fs.exists(path, follow=False):
            self.steps.append((path, "", self.stage()))

    def commit(self) -> None:
        """Do it. What fails is undone, and raised."""
        fs = self.process.fs
        missing: set[str] = set()
        for path, staged, _ in self.steps:
            above = path.rpartition("/")[0]
            while above and not fs.exists(above):
                if staged:
                    missing.add(above)
                above = above.rpartition("/")[0]
            self._note_time(above or "/")
        for directory in self.abandoned:
            self._note_time(directory.rpartition("/")[0] or "/")
        made = sorted(missing)
        self._check_mounts(made)
        journal = {"steps": self.steps, "made": made, "times": self._times, "gone": sorted(self.abandoned)}
        data = json.dumps(journal).encode()
        self.process.write_file(f"{PLACE}/writing", data, 0o600)
        fs.rename(f"{PLACE}/writing", _JOURNAL)
        try:
            for path, _, aside in self.steps:
                if aside:
                    fs.rename(path, aside)
            for directory in made:
                fs.mkdir(directory, 0o755)
                fs.chmod(directory, 0o755)
            for path, staged, _ in self.steps:
                if staged:
                    fs.rename(staged, path)
        except BaseException:
            self.undo()
            raise

    def _check_mounts(self, made: Iterable[str]) -> None:
        """Refuse a place on another file system: nothing can be moved there in one go. PackageError."""
        fs, new = self.process.fs, set(made)
        device = fs.stat(PLACE).dev
        for path, _, _ in self.steps:
            above = path.rpartition("/")[0]
            while above in new:
                above = above.rpartition("/")[0]
            if fs.stat(above or "/").dev != device:
                raise PackageError(f"{path} is on another file system (mounted at {above}): packages can't go there")

    def undo(self) -> None:
        """Take back a commit that was not finished."""
        journal = self.process.try_read(_JOURNAL)
        if journal is not None:
            _undo(self.process, parse_json(journal))

    def finish(self) -> None:
        """Make it final, and remove what was replaced."""
        self.process.fs.rename(_JOURNAL, _DONE)
        _clean(self.process, parse_json(self.process.read_file(_DONE)))
        self.close()

    def close(self) -> None:
        """Remove what is left of it; what was noted of times is put back."""
        remove_tree(self.process, PLACE)
        for directory in _STATE_DIRECTORIES:
            with suppress(SysError):
                self.process.fs.rmdir(directory)
        _restore_times(self.process, self._times)

    def _note_time(self, directory: str) -> None:
        about = self.process.fs.try_stat(directory)
        if about is not None and about.is_dir:
            self._times.setdefault(directory, about.mtime)


def _undo(process: Process, journal: Any) -> None:
    fs = process.fs
    for path, staged, _ in reversed(journal["steps"]):
        if staged and not fs.exists(staged, follow=False) and fs.exists(path, follow=False):
            fs.rename(path, staged)
    for directory in reversed(journal["made"]):
        with suppress(SysError):
            fs.rmdir(directory)
    for path, _, aside in reversed(journal["steps"]):
        if aside and fs.exists(aside, follow=False):
            fs.rename(aside, path)
    _restore_times(process, journal["times"])
    with suppress(SysError):
        fs.unlink(_JOURNAL)


def _clean(process: Process, journal: Any) -> None:
    """Remove the directories that are empty now."""
    for directory in sorted(journal["gone"], key=len, reverse=True):
        remove_tree(process, f"{directory}/__pycache__")  # Python's own, of modules that are gone
        with suppress(SysError):
            process.fs.rmdir(directory)
    _restore_times(process, journal["times"])


def _restore_times(process: Process, times: dict[str, int]) -> None:
    for directory, mtime in times.items():
        with suppress(SysError):
            process.fs.utimens(directory, None, mtime)
