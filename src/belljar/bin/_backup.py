"""Backups of files about to be overwritten: `file~`, `file.~1~` (cp, mv, ln, install)."""

from __future__ import annotations

import re
from typing import Final

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.abi.paths import dirname
from belljar.bin._kit.choices import pick
from belljar.kernel.process import Process

BACKUP_HELP: Final = "make a backup of each existing destination file"
SUFFIX_HELP: Final = "override the usual backup suffix"
_CONTROLS: Final = {"none": ("off",), "simple": ("never",), "existing": ("nil",), "numbered": ("t",)}


@dataclass(frozen=True, slots=True)
class Backup:
    """How to name backups, if they are wanted."""

    control: str
    suffix: str

    @property
    def enabled(self) -> bool:
        return self.control != "none"

    def name(self, process: Process, path: str) -> str:
        path = path.rstrip("/")
        if self.control == "simple":
            return path + self.suffix
        highest = _highest(process, path)
        if self.control == "existing" and highest == 0:
            return path + self.suffix
        return f"{path}.~{highest + 1}~"

    def save(self, process: Process, path: str) -> str:
        """Rename a file out of the way; its new name."""
        name = self.name(process, path)
        process.fs.rename(path, name)
        return name


def parse_backup(process: Process, control: str | None, suffix: str | None, *, wanted: bool) -> Backup:
    """Combine --backup, -b and -S with their environment variables."""
    env = process.env
    if suffix is None:
        suffix = env.get("SIMPLE_BACKUP_SUFFIX") or "~"
        if "/" in suffix:
            suffix = "~"
    elif control is None:
        wanted = True
    if control is None and not wanted:
        return Backup("none", suffix)
    option = "backup type"
    text = control or ""
    if not text:
        text = env.get("VERSION_CONTROL") or "existing"
        option = "$VERSION_CONTROL"
    return Backup(pick(process, option, text, _CONTROLS), suffix)


def _highest(process: Process, path: str) -> int:
    """The largest number among the numbered backups of a file."""
    base = re.escape(path.rpartition("/")[2])
    pattern = re.compile(base + r"\.~([1-9][0-9]*)~")
    try:
        entries = process.fs.readdir(dirname(path))
    except SysError:
        return 0
    process.budget.charge(len(entries))
    found = (pattern.fullmatch(entry.name) for entry in entries)
    return max((int(match[1]) for match in found if match), default=0)
