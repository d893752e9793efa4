"""Runs a compiled script: the cycle of reading a line, executing commands and printing."""

from __future__ import annotations

from collections.abc import Callable

from belljar.abi.dataclass import dataclass
from belljar.abi.errors import SysError
from belljar.bin.sed.inplace import Edit, begin_edit
from belljar.bin.sed.reader import ScriptError
from belljar.bin.sed.streams import Output, Reader, create, open_for_reading
from belljar.kernel.budget import Budget
from belljar.kernel.process import Process
from belljar.regex import Regex

END = -1  # of the cycle: print, then read the next line
DELETE = -2  # the cycle ends without printing
RESTART = -3  # D: another cycle without reading
QUIT = -4  # print, then end
QUIT_SILENTLY = -5

MOST_PIECES = 1 << 16

Operation = Callable[[], int | None]


@dataclass(frozen=True, slots=True)
class Settings:
    """The command line, but for script and files."""

    quiet: bool = False
    separate: bool = False
    in_place: str | None = None  # the suffix of backups, "" for none
    follow_symlinks: bool = False
    null_data: bool = False
    unbuffered: bool = False
    posix: bool = False
    line_length: int = 70


class Fatal(Exception):
    """Ends the program with a message and a status."""

    def __init__(self, message: str, status: int = 4) -> None:
        super().__init__(message)
        self.status = status


class Range:
    """The state of an `addr1,addr2`; compiled conditions set it."""

    __slots__ = ("active", "closed", "end", "from_start")

    def __init__(self, from_start: bool) -> None:
        self.from_start = from_start
        self.active = from_start
        self.closed = False  # a range that starts at a line number starts once
        self.end = -1

    def reset(self) -> None:
        self.active = self.from_start
        self.closed = False


class Space:
    """The contents of the pattern or hold space. What N, G and H append is joined when it is looked at.

    So `:a;N;$!ba` takes linear time.
    """

    __slots__ = ("_added", "_added_size", "_text")

    def __init__(self) -> None:
        self._text = b""
        self._added: list[bytes] = []
        self._added_size = 0

    def get(self) -> bytes:
        if self._added:
            self.set(b"".join([self._text, *self._added]))
        return self._text

    def set(self, text: bytes) -> None:
        self._text = text
        if self._added:
            self._added = []
            self._added_size = 0

    def append(self, separator: bytes, text: bytes, budget: Budget) -> None:
        self._added_size += len(separator) + len(text)
        budget.charge_size(len(self._text) + self._added_size)
        self._added += (separator, text)
        if len(self._added) >= MOST_PIECES:
            self.get()


class Machine:
    """Pattern space, hold space, input and output of one run."""

    def __init__(self, process: Process, settings: Settings, files: list[str]) -> None:
        self.process = process
        self.settings = settings
        self.separator = b"\0" if settings.null_data else b"\n"
        self.files = files
        self.next_file = 0
        self.reader: Reader | None = None
        self.upcoming: tuple[Reader, str] | None = None
        self.file_name = "-"
        self.stdout = Output(process, 1, self.separator, process.stdout, unbuffered=settings.unbuffered)
        self.out = self.stdout
        self.edit: Edit | None = None
        self.separate = settings.separate or settings.in_place is not None
        self.quiet = settings.quiet
        self.status = 0
        self.exit_code = 0
        self.pattern_space = Space()
        self.end = self.separator
        self.hold_space = Space()
        self.hold_end = self.separator
        self.number = 0
        self.replaced = False
        self.last_regex: Regex | None = None
        self.appends: list[tuple[str, bytes | str]] = []
        self.ranges: list[Range] = []
        self.written: dict[str, Output] = {}
        self.sources: dict[str, Reader | None] = {}
        self.preludes: list[str] = []  # `0r FILE`

    @property
    def space(self) -> bytes:
        return self.pattern_space.get()

    @space.setter
    def space(self, text: bytes) -> None:
        self.pattern_space.set(text)

    @property
    def hold(self) -> bytes:
        return self.hold_space.get()

    @hold.setter
    def hold(self, text: bytes) -> None:
        self.hold_space.set(text)

    # -- files

    def writer_for(self, name: str) -> Output:
        """The output of w, W and s///w: made when the script is compiled."""
        if name == "/dev/stdout":
            return self.stdout
        found = self.written.get(name)
        if found is None:
            if name == "/dev/stderr":
                found = Output(self.process, 2, self.separator, unbuffered=True)
            else:
                try:
                    found = Output(
                        self.process, create(self.process, name), self.separator, unbuffered=self.settings.unbuffered
                    )
                except SysError as error:
                    raise Fatal(f"couldn't open file {name}: {error.reason}") from error
            self.written[name] = found
        return found

    def open_next(self) -> tuple[Reader, str] | None:
        """The next file that can be read; those that can't are reported."""
        while self.next_file < len(self.files):
            name = self.files[self.next_file]
            self.next_file += 1
            if name == "-" and self.settings.in_place is None:
                return self.make_reader(0), name
            try:
                stat = self.process.fs.stat(name)
                if self.settings.in_place is not None and not stat.is_regular:
                    self.process.warn(f"couldn't edit {name}: not a regular file")
                    self.status = 4
                    continue
                if stat.is_dir:
                    self.process.warn(f"read error on {name}: Is a directory")
                    self.status = 2
                    continue
                return self.make_reader(open_for_reading(self.process, name)), name
            except SysError as error:
                self.process.warn(f"can't read {name}: {error.reason}")
                self.status = 2
        return None

    def make_reader(self, fd: int) -> Reader:
        return Reader(self.process, fd, self.separator, minimal=fd == 0 and self.settings.unbuffered)

    def switch(self, opened: tuple[Reader, str]) -> None:
        """Go on with the next file."""
        self.close_file()
        self.reader, self.file_name = opened
        if self.separate:
            self.number = 0
            for one in self.ranges:
                one.reset()
            for name, reader in self.sources.items():
                if reader is not None:
                    self.process.close(reader.fd)
                    self.sources[name] = None
            self.sources.clear()
        if self.settings.in_place is not None:
            try:
                self.edit = begin_edit(self.process, self.file_name, self.settings.follow_symlinks)
            except SysError as error:
                raise Fatal(f"couldn't open temporary file: {error.reason}") from error
            self.out = Output(self.process, self.edit.fd, self.separator)

    def close_file(self) -> None:
        if self.reader is not None and self.reader.fd:
            self.process.close(self.reader.fd)
        self.reader = None
        if self.edit is not None:
            self.out.close()
            self.edit.commit(self.settings.in_place or "")
            self.edit = None
            self.out = self.stdout

    def has_next(self) -> bool:
        """Is there another line for this cycle's N and n?"""
        reader = self.reader
        if reader is not None and (reader.lines or reader.fill()):
            return True
        return not self.separate and self.peek_file()

    def peek_file(self) -> bool:
        """Open files ahead until one has a line."""
        while self.upcoming is None:
            opened = self.open_next()
            if opened is None:
                return False
            if opened[0].fill():
                self.upcoming = opened
            elif opened[0].fd:
                self.process.close(opened[0].fd)
        return True

    def is_last(self) -> bool:
        return not self.has_next()

    def take(self) -> bytes | None:
        """The next line of input."""
        reader = self.reader
        while reader is None or not (reader.lines or reader.fill()):
            if self.upcoming is None:
                opened = self.open_next()
                if opened is None:
                    return None
            else:
                opened, self.upcoming = self.upcoming, None
            self.switch(opened)
            reader = self.reader
        line = reader.lines.popleft()
        self.end = self.separator if reader.complete or reader.lines else b""
        self.number += 1
        self.replaced = False  # t asks about the time since the last line was read, be it by n or N
        return line

    # -- running

    def run(self, operations: list[Operation]) -> int:
        """Run to the end of input; returns the exit status."""
        try:
            self.cycles(operations)
            self.finish()
        except ScriptError as error:
            self.stdout.writer.flush()
            self.process.warn(str(error))
            return error.status
        except Fatal as error:
            self.stdout.writer.flush()
            self.process.warn(str(error))
            return error.status
        return self.exit_code or self.status

    def cycles(self, operations: list[Operation]) -> None:
        count = len(operations)
        budget = self.process.budget
        outcome = END
        while True:
            if outcome != RESTART:
                line = self.take()
                if line is None:
                    return
                self.space = line
                if self.preludes:
                    self.insert_preludes()
            budget.steps += count + 1
            if budget.steps >= budget.checkpoint:
                budget.check()
            position = 0
            outcome = END
            while position < count:
                result = operations[position]()
                if result is None:
                    position += 1
                elif result >= 0:
                    position = result
                else:
                    outcome = result
                    break
            if not self.quiet and outcome in (END, QUIT):
                self.out.line(self.space, self.end)
            if self.appends and outcome != QUIT_SILENTLY:
                self.flush_appends()
            if outcome <= QUIT:
                if outcome == QUIT:
                    self.out.complete()
                self.give_back()
                return

    def finish(self) -> None:
        self.close_file()
        for output in self.written.values():
            output.close()

    def give_back(self) -> None:
        if self.reader is not None and self.reader.fd == 0:
            self.reader.give_back()

    def insert_preludes(self) -> None:
        for name in self.preludes:
            self.appends.append(("r", name))
        self.preludes = []
        self.flush_appends()

    def flush_appends(self) -> None:
        queue, self.appends = self.appends, []
        for kind, value in queue:
            if isinstance(value, bytes):
                if kind == "a":
                    self.out.raw(value)
                else:
                    self.out.line(value, self.separator if kind == "R" else b"")
            else:
                self.copy_file(value)

    def copy_file(self, name: str) -> None:
        try:
            for chunk in self.process.chunks("-" if name == "/dev/stdin" else name):
                self.out.raw(chunk)
        except SysError:
            return  # GNU: a file that can't be read is an empty one

    def line_from(self, name: str) -> None:
        """R: queue the next line of a file."""
        if name not in self.sources:
            try:
                fd = 0 if name == "/dev/stdin" else open_for_reading(self.process, name)
                self.sources[name] = Reader(self.process, fd, self.separator)
            except SysError:
                self.sources[name] = None
        reader = self.sources[name]
        if reader is not None and reader.fill():
            line = reader.lines.popleft()
            self.appends.append(("R" if reader.complete or reader.lines else "R without newline", line))

    def regex(self, given: Regex | None) -> Regex:
        """The regex of a command; an empty one means the last one used."""
        if given is None:
            if self.last_regex is None:
                raise ScriptError("-e expression #1, char 0: no previous regular expression")
            return self.last_regex
        self.last_regex = given
        return given
