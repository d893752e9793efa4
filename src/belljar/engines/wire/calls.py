"""The frames by which an engine process makes system calls as one process of the sandbox's kernel.

An engine process (guest Python, JavaScript, WebAssembly) has one socket and no other right. The worker's end of it
belongs to a virtual process: descriptors, working directory, credentials, children and signals are that process's. All
integers are little-endian.

**Requests** (engine to worker)::

    u32 length   of what follows this field; at most REQUEST_MAX
    u32 id       any number but 0; the answer has it too
    u16 call     a number of `CALLS`
    u16 flags    BACKGROUND: answer when it is done, meanwhile take further requests; else they are done in order.
                 NO_ANSWER: nobody waits for it, not even for an error
    ...          the arguments

**Answers and events** (worker to engine)::

    u32 length   of what follows this field; at most ANSWER_MAX
    u32 id       the request's; 0: an event
    i32 errno    0, or Linux's error number, and then nothing follows; of an event: its kind
    ...          the results

**Values** are written one after the other, by the letters of a signature:

====  =====================================================================================================
`q`   i64
`s`   bytes: u32 length, then the bytes. Paths and names are bytes, UTF-8 or not
`l`   list of bytes: u32 count, then each as `s`
`Q`   list of i64: u32 count, then each
`S`   a stat: 12 i64: mode ino dev nlink uid gid size atime mtime ctime rdev blocks; times in nanoseconds
`D`   a directory: u32 count, then for each entry: i64 ino, i64 mode (the S_IFMT bits), `s` name
`T`   a directory with stats: u32 count, then for each entry: `S`, `s` name. An entry that vanished is left out
====  =====================================================================================================

A `dirfd` is a descriptor of a directory, or AT_FDCWD. Flags, modes, whence, poll events and signal numbers are
Linux's (x86_64), see `abi/flags.py`. Unless `nofollow` is 1, a symlink in the last place is followed.

**Events.** START (once, before anything else; a process made ahead waits for it): `l` argv, `l` environment as
`NAME=value`, `s` working directory, `s` JSON of the kind's own options, `Q` numbers in the order of `Start`, `Q` for
each of the descriptors 0 to 3 its mode (0: closed) and its flags.
SIGNAL: `q` number, of a signal that `catch` asked to hear of. It may come between a request and its answer; a call that
waits is answered with EINTR then. A signal that was not asked for has its default effect, with no event.
LIMITS: `q` processor time in nanoseconds, `q` bytes of memory on top of what is held: what may be used from now on.

**The end** is the call `exit` or `finish` (not answered), or the end of the connection: the virtual process is then
killed. Conversely a process that is killed has its connection closed and its engine process ended.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, NamedTuple

AT_FDCWD: Final = -100
BACKGROUND: Final = 1
NO_ANSWER: Final = 2
REQUEST_MAX: Final = 8 << 20
ANSWER_MAX: Final = 16 << 20
DATA_MAX: Final = 1 << 20
"""The most bytes of one read, and what a client should give one write."""
FILE_MAX: Final = 8 << 20
"""The largest file that `read_file` takes in one trip; EFBIG beyond, then open and read it."""

START: Final = 1
SIGNAL: Final = 2
LIMITS: Final = 3

REQUEST: Final = struct.Struct("<IIHH")
ANSWER: Final = struct.Struct("<IIi")
LENGTH: Final = struct.Struct("<I")
NUMBER: Final = struct.Struct("<q")
STAT: Final = struct.Struct("<12q")
ENTRY: Final = struct.Struct("<qqI")


class Start(NamedTuple):
    """The numbers of START, in order."""

    pid: int
    ppid: int
    uid: int
    gid: int
    umask: int
    ttys: int
    """Bits 0, 1, 2: whether that descriptor is a terminal."""
    cpu_ns: int
    """Processor time the exec has left."""
    memory_bytes: int


class Call(NamedTuple):
    """One system call: its number, and the signatures of what it takes and gives."""

    number: int
    takes: str
    gives: str


CALLS: Final[dict[str, Call]] = {
    # Files by descriptor.
    "open": Call(1, "qsqq", "qS"),  # dirfd path flags mode -> fd stat
    "close": Call(2, "q", ""),
    "read": Call(3, "qq", "s"),  # fd size: empty at the end
    "write": Call(4, "qs", "q"),
    "pread": Call(5, "qqq", "s"),  # fd size offset
    "pwrite": Call(6, "qsq", "q"),  # fd data offset
    "seek": Call(7, "qqq", "q"),  # fd offset whence
    "fstat": Call(8, "q", "S"),
    "ftruncate": Call(9, "qq", ""),
    "fchmod": Call(10, "qq", ""),
    "fchown": Call(11, "qqq", ""),
    "futimens": Call(12, "qqqq", ""),  # fd atime mtime which
    "fsync": Call(13, "q", ""),
    "dup": Call(14, "qqq", "q"),  # fd lowest cloexec
    "dup2": Call(15, "qqq", ""),  # fd target cloexec
    "pipe": Call(16, "q", "qq"),  # cloexec -> reader writer
    "getfl": Call(17, "q", "qq"),  # fd -> O_ flags, cloexec
    "setfl": Call(18, "qq", ""),  # fd, O_APPEND | O_NONBLOCK
    "setcloexec": Call(19, "qq", ""),
    # Files by path.
    "stat": Call(20, "qsq", "S"),  # dirfd path nofollow
    "access": Call(21, "qsq", ""),  # dirfd path mode
    "readlink": Call(22, "qs", "s"),
    "readdir": Call(23, "qs", "D"),  # dirfd path; an empty path is the dirfd itself
    "scandir": Call(24, "qs", "T"),
    "mkdir": Call(25, "qsq", ""),  # dirfd path mode
    "rmdir": Call(26, "qs", ""),
    "unlink": Call(27, "qs", ""),
    "rename": Call(28, "qsqsq", ""),  # dirfd old dirfd new flags
    "link": Call(29, "qsqsq", ""),  # dirfd old dirfd new follow
    "symlink": Call(30, "sqs", ""),  # target dirfd path
    "chmod": Call(31, "qsqq", ""),  # dirfd path mode nofollow
    "chown": Call(32, "qsqqq", ""),  # dirfd path uid gid nofollow
    "utimens": Call(33, "qsqqqq", ""),  # dirfd path atime mtime which nofollow
    "truncate": Call(34, "qsq", ""),
    "mkfifo": Call(35, "qsq", ""),  # dirfd path mode
    "read_file": Call(36, "qs", "s"),  # dirfd path: a whole file in one trip, at most FILE_MAX
    "write_file": Call(37, "qsqqs", "q"),  # dirfd path flags mode data: open, write all, close
    "statfs": Call(38, "qs", "Q"),  # dirfd path -> block_size blocks free files files_free name_max
    "converse": Call(39, "qsqq", "qs"),  # fd data fd size: write all, then read -> errno of that, what was read
    # The process.
    "chdir": Call(40, "qs", ""),
    "getcwd": Call(41, "", "s"),
    "umask": Call(42, "q", "q"),
    "sleep": Call(43, "q", ""),  # nanoseconds
    "poll": Call(44, "QQq", "Q"),  # fds, events, timeout (ns; -1: none) -> the events of each, 0 if not ready
    "spawn": Call(45, "sllsQQq", "q"),  # path argv env cwd targets sources flags -> pid; see SPAWN below
    "wait": Call(46, "qq", "qqq"),  # pid options -> pid (0: no news), code, signal
    "kill": Call(47, "qq", ""),  # pid signal
    "catch": Call(48, "qq", ""),  # signal, how: DEFAULT, IGNORED or REPORTED
    "ids": Call(49, "", "Q"),  # -> pid ppid pgid session uid gid
    "hostname": Call(50, "", "s"),
    "exit": Call(51, "qqq", ""),  # code, signal (if not 0: as if killed by it), processor time used (ns)
    "exceeded": Call(52, "sq", ""),  # a limit's name, processor time (ns): ends the exec; not answered
    "finish": Call(53, "qsqqq", "q"),  # fd data, then as exit: only answered, with a count, if not all was written
    "flock": Call(54, "qq", ""),  # fd, LOCK_ bits
    "getrlimit": Call(55, "q", "qq"),  # number -> soft hard; -1: unlimited
    "setrlimit": Call(56, "qqq", ""),  # number soft hard
    "setitimer": Call(57, "qq", "qq"),  # of the wall clock: value, interval (ns) -> those before; -1 first: only ask
    # Terminals.
    "isatty": Call(60, "q", "q"),
    "winsize": Call(61, "q", "qq"),  # rows columns
    "raw": Call(62, "qq", ""),  # fd; 1 raw, 0 as it was at the start
    "edit": Call(63, "sql", "qs"),  # a line from the terminal with line editing; see EDIT below
    "history": Call(64, "l", ""),  # the lines that `edit` offers
    "tcgetattr": Call(65, "q", "Q"),  # -> iflag oflag cflag lflag ispeed ospeed, then the control characters
    "tcsetattr": Call(66, "qqQ", ""),  # fd; 0 now, 1 after output, 2 and without input; as above
    "tcflush": Call(67, "qq", ""),  # fd; 0 input, 1 output, 2 both
    "tcgetpgrp": Call(68, "q", "q"),
    "tcsetpgrp": Call(69, "qq", ""),
    "tcgetsid": Call(70, "q", "q"),
    "setwinsize": Call(71, "qqq", ""),  # fd rows columns
    "ttyname": Call(72, "q", "s"),
    "ptsname": Call(73, "q", "s"),  # of a master
    "unread": Call(74, "q", "q"),  # bytes that can be read now (FIONREAD)
}

EDIT_HISTORY, EDIT_COMPLETES, EDIT_LISTS_ALL, EDIT_ONE_COLUMN = 1, 2, 4, 8
"""Bits of the second argument of `edit`.

EDIT: takes the prompt, bits and a list; gives 0 and a line with its newline, b"" at the end of input. With EDIT_HISTORY
the line is remembered. With EDIT_COMPLETES the answer may be 1 and the text before the cursor: Tab was typed; then the
call is to be made again, with the number of characters to be completed as the first of the list and the candidates as
the others. Many candidates are listed only if a question is answered by yes: not so with EDIT_LISTS_ALL.
"""
DEFAULT, IGNORED, REPORTED = 0, 1, 2
"""Dispositions that `catch` can set."""
PROGRAM_SESSION, PROGRAM_SITE, PROGRAM_TERMINAL, PROGRAM_CLOSED_SHIFT = 1, 2, 4, 3
"""Flags of the program that guest Python's `park` returns; from the shift on, a bit for each closed standard stream."""
ATIME_SET, ATIME_NOW, MTIME_SET, MTIME_NOW = 1, 2, 4, 8
"""Bits of `which` in the calls that set times."""
NEW_GROUP, NEW_SESSION, CLOSE_OTHERS, INHERIT_ENV = 1, 2, 4, 8
"""Bits of the flags of `spawn`.

SPAWN: `path` without a slash is searched for in the PATH of the new environment. The child has the descriptors of the
process that are not close-on-exec (with CLOSE_OTHERS: only 0, 1, 2 and the targets); then each descriptor of `targets`
is made what the one of `sources` at the same place is in the process. An empty cwd is the process's own.
"""


class BadFrame(ValueError):
    """Bytes that are no frame of ours, or values that do not fit their signature."""


def encode(signature: str, values: Sequence[Any]) -> bytes:
    """Values as bytes."""
    if len(signature) != len(values):
        raise BadFrame(f"{len(values)} values for the signature {signature!r}")
    return b"".join([_WRITERS[letter](value) for letter, value in zip(signature, values, strict=True)])


def _bytes(value: bytes) -> bytes:
    return LENGTH.pack(len(value)) + value


def _list(values: Sequence[bytes]) -> bytes:
    return LENGTH.pack(len(values)) + b"".join([LENGTH.pack(len(value)) + value for value in values])


def _numbers(values: Sequence[int]) -> bytes:
    return struct.pack(f"<I{len(values)}q", len(values), *values)


def _stat(value: Sequence[int]) -> bytes:
    return STAT.pack(*value)


def _entries(entries: Sequence[tuple[int, int, bytes]]) -> bytes:
    return LENGTH.pack(len(entries)) + b"".join(
        [ENTRY.pack(ino, mode, len(name)) + name for ino, mode, name in entries]
    )


def _stats(entries: Sequence[tuple[Sequence[int], bytes]]) -> bytes:
    return LENGTH.pack(len(entries)) + b"".join([STAT.pack(*stat) + _bytes(name) for stat, name in entries])


_WRITERS: Final[dict[str, Callable[[Any], bytes]]] = {
    "q": NUMBER.pack,
    "s": _bytes,
    "l": _list,
    "Q": _numbers,
    "S": _stat,
    "D": _entries,
    "T": _stats,
}


def decode(signature: str, body: bytes) -> list[Any]:
    """The values in bytes; every length is checked against what is there. Raises BadFrame."""
    reader = _Reader(body)
    try:
        values = [_READERS[letter](reader) for letter in signature]
    except struct.error:
        raise BadFrame(f"too short for the signature {signature!r}") from None
    if reader.position != len(body):
        raise BadFrame(f"too long for the signature {signature!r}")
    return values


class _Reader:
    """Takes values off the front of bytes."""

    __slots__ = ("body", "position")

    def __init__(self, body: bytes) -> None:
        self.body = body
        self.position = 0

    def number(self) -> int:
        (value,) = NUMBER.unpack_from(self.body, self.position)
        self.position += 8
        return int(value)

    def length(self) -> int:
        (value,) = LENGTH.unpack_from(self.body, self.position)
        self.position += 4
        return int(value)

    def count(self, least: int) -> int:
        """A count of things of at least so many bytes: not more than there can be."""
        count = self.length()
        if count * least > len(self.body) - self.position:
            raise BadFrame(f"{count} things in {len(self.body) - self.position} bytes")
        return count

    def string(self) -> bytes:
        end = self.position + 4 + self.length()
        if end > len(self.body):
            raise BadFrame("a string longer than its frame")
        value = self.body[self.position : end]
        self.position = end
        return value

    def stat(self) -> tuple[int, ...]:
        value = STAT.unpack_from(self.body, self.position)
        self.position += STAT.size
        return value

    def entries(self) -> Iterator[tuple[int, int, bytes]]:
        for _ in range(self.count(ENTRY.size)):
            ino, mode = self.number(), self.number()
            yield ino, mode, self.string()

    def stats(self) -> Iterator[tuple[tuple[int, ...], bytes]]:
        for _ in range(self.count(STAT.size + 4)):
            yield self.stat(), self.string()


_READERS: Final[dict[str, Callable[[_Reader], Any]]] = {
    "q": _Reader.number,
    "s": _Reader.string,
    "l": lambda reader: [reader.string() for _ in range(reader.count(4))],
    "Q": lambda reader: [reader.number() for _ in range(reader.count(8))],
    "S": _Reader.stat,
    "D": lambda reader: list(reader.entries()),
    "T": lambda reader: list(reader.stats()),
}
