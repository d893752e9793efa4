"""The state of one run of find: its options, where it is, and how it fared."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.flags import O_CLOEXEC, O_CREAT, O_TRUNC, O_WRONLY
from belljar.abi.records import NANO, Stat
from belljar.bin._kit.clock import zone_of
from belljar.bin._kit.users import Accounts
from belljar.bin._tree import Follow, Visit
from belljar.kernel.process import Process
from belljar.kernel.vfs.namespace import Place
from belljar.libc.zones import localtime

Matcher = Callable[[Visit], bool]
DAY = 86400 * NANO


class Quit(Exception):
    """-quit: end the walk at once."""


class Search:
    def __init__(self, process: Process, *, follow: Follow) -> None:
        self.process = process
        self.home: Place = process.fs.cwd
        self.follow = follow
        self.max_depth: int | None = None
        self.min_depth = 0
        self.contents_first = False
        self.one_file_system = False
        self.regex_type = "emacs"
        self.files0: str | None = None
        self.start = ""
        """The operand being walked."""
        self.status = 0
        self.now = process.kernel.now()
        self.day_start = self.now - DAY
        self.accounts = Accounts(process)
        self.zone = zone_of(process.env)
        self._at_end: list[Callable[[], None]] = []
        self._files: dict[str, int] = {}

    def fail(self, message: str) -> None:
        self.process.stdout.flush()
        self.process.warn(message)
        self.status = 1

    def begin_days_at_midnight(self) -> None:
        """-daystart"""
        seconds = self.now // NANO
        moment = localtime(seconds, self.zone)
        midnight = seconds - moment.hour * 3600 - moment.minute * 60 - moment.second
        self.day_start = midnight * NANO
        self.now = self.day_start + DAY

    def at_end(self, action: Callable[[], None]) -> None:
        self._at_end.append(action)

    def finish(self) -> None:
        """Run the delayed actions: commands that collect arguments."""
        for action in self._at_end:
            action()

    def referent(self, visit: Visit) -> Stat | None:
        """Stat a symlink's target; None if it is dangling."""
        self.process.fs.cwd = visit.directory
        return self.process.fs.try_stat(visit.name)

    def output(self, path: str) -> Callable[[bytes], None]:
        """A file that an action writes to; actions that name the same one share it."""
        process = self.process
        if path == "/dev/stdout":
            return process.stdout.write
        fd = self._files.get(path)
        if fd is None:
            fd = self._files[path] = process.open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC)
        return lambda data: process.write_all(fd, data)
