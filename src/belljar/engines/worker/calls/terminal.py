"""The kernel's side of the calls on terminals: settings, window, job control."""

from __future__ import annotations

from belljar.abi.dataclass import replace
from belljar.abi.errno import EINVAL
from belljar.abi.errors import SysError
from belljar.abi.paths import fsencode
from belljar.abi.termios import ECHO, ICANON, ICRNL, IEXTEN, ISIG, IXON, OPOST, VMIN, VTIME, Termios, WinSize
from belljar.kernel.process import Process


class RawMode:
    """Switches terminals to raw mode, and back to what they were at first."""

    def __init__(self) -> None:
        self._before: dict[int, Termios] = {}

    def set(self, process: Process, fd: int, on: int) -> None:
        before = self._before.setdefault(fd, _settings(process, fd))
        if on:
            cc = list(before.cc)
            cc[VMIN], cc[VTIME] = 1, 0
            before = replace(
                before,
                iflag=before.iflag & ~(ICRNL | IXON),
                oflag=before.oflag & ~OPOST,
                lflag=before.lflag & ~(ISIG | ICANON | ECHO | IEXTEN),
                cc=tuple(cc),
            )
        process.ioctl(fd, "set_termios", before)


def _settings(process: Process, fd: int) -> Termios:
    settings = process.ioctl(fd, "termios")
    assert isinstance(settings, Termios)
    return settings


def _number(process: Process, fd: int, request: str) -> tuple[int]:
    found = process.ioctl(fd, request)
    assert isinstance(found, int)
    return (found,)


def tcgetattr(process: Process, fd: int) -> tuple[list[int]]:
    found = _settings(process, fd)
    return ([found.iflag, found.oflag, found.cflag, found.lflag, found.ispeed, found.ospeed, *found.cc],)


def tcsetattr(process: Process, fd: int, when: int, values: list[int]) -> None:
    if when not in (0, 1, 2) or len(values) < 6 or not all(0 <= value < 1 << 32 for value in values):
        raise SysError(EINVAL)
    iflag, oflag, cflag, lflag, ispeed, ospeed, *cc = values
    if len(cc) != len(_settings(process, fd).cc) or not all(value < 256 for value in cc):
        raise SysError(EINVAL)
    if when == 2:
        process.ioctl(fd, "flush", "input")
    process.ioctl(fd, "set_termios", Termios(iflag, oflag, cflag, lflag, tuple(cc), ispeed, ospeed))


def tcflush(process: Process, fd: int, queue: int) -> None:
    if queue not in (0, 1, 2):
        raise SysError(EINVAL)
    process.ioctl(fd, "flush", ("input", "output", "both")[queue])


def tcgetpgrp(process: Process, fd: int) -> tuple[int]:
    return _number(process, fd, "pgrp")


def tcsetpgrp(process: Process, fd: int, pgid: int) -> None:
    process.ioctl(fd, "set_pgrp", pgid)


def tcgetsid(process: Process, fd: int) -> tuple[int]:
    return _number(process, fd, "session")


def setwinsize(process: Process, fd: int, rows: int, columns: int) -> None:
    process.ioctl(fd, "set_winsize", WinSize(rows, columns))


def ttyname(process: Process, fd: int) -> tuple[bytes]:
    return (fsencode(str(process.ioctl(fd, "tty_name"))),)


def ptsname(process: Process, fd: int) -> tuple[bytes]:
    return (f"/dev/pts/{_number(process, fd, 'pty_number')[0]}".encode(),)


def unread(process: Process, fd: int) -> tuple[int]:
    return _number(process, fd, "unread")
