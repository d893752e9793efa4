"""Editing files in place: a new file takes the old one's name when it is complete."""

from __future__ import annotations

from belljar.abi.dataclass import dataclass
from belljar.abi.errno import EEXIST
from belljar.abi.errors import SysError
from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_EXCL, O_WRONLY
from belljar.kernel.process import Process

_ATTEMPTS = 1000


@dataclass(slots=True)
class Edit:
    """One file being rewritten."""

    process: Process
    target: str
    temporary: str
    fd: int
    mode: int

    def commit(self, suffix: str) -> None:
        """The new contents replace the old; with a suffix those are kept under another name."""
        fs = self.process.fs
        fs.chmod(self.temporary, self.mode & 0o7777)
        if suffix:
            directory, slash, base = self.target.rpartition("/")
            name = suffix.replace("*", base) if "*" in suffix else base + suffix
            fs.rename(self.target, name if "/" in name else directory + slash + name)
        fs.rename(self.temporary, self.target)


def begin_edit(process: Process, name: str, follow: bool) -> Edit:
    """A new file beside `name`."""
    target = name
    for _ in range(40):
        if not follow or not process.fs.stat(target, follow=False).is_symlink:
            break
        link = process.fs.readlink(target)
        target = link if link.startswith("/") else target.rpartition("/")[0] + "/" * ("/" in target) + link
    directory, slash, _ = target.rpartition("/")
    for number in range(_ATTEMPTS):
        temporary = f"{directory}{slash}sed{number:06d}"
        try:
            fd = process.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0o600)
        except SysError as error:
            if error.errno != EEXIST:
                raise
            continue
        return Edit(process, target, temporary, fd, process.fs.stat(target).mode)
    raise SysError(EEXIST, directory)
