"""A simple pager for less and more: a screen at a time on a terminal, plain copying elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from belljar.abi.dataclass import replace
from belljar.abi.errors import SysError
from belljar.abi.flags import O_RDONLY
from belljar.abi.paths import fsdecode, fsencode
from belljar.abi.termios import ECHO, ICANON, Termios
from belljar.kernel.process import Process
from belljar.regex import RegexError, compile

Source = Callable[[], Iterator[bytes]]


def copy(process: Process, chunks: Iterator[bytes]) -> None:
    for chunk in chunks:
        process.stdout.write(chunk)


class Pager:
    """Shows lines on standard output, which is a terminal; keys come from /dev/tty, or standard error."""

    def __init__(self, process: Process, title: str) -> None:
        self.process = process
        self.title = title
        self.lines: list[bytes] = []
        self.top = 0
        self.pattern = ""

    def show(self, chunks: Iterator[bytes], *, quit_if_one_screen: bool, stops_at_end: bool) -> None:
        data = b""
        for chunk in chunks:
            data += chunk
            self.process.budget.charge_size(len(data))
        self.lines = data.split(b"\n")
        if self.lines and not self.lines[-1]:
            self.lines.pop()
        rows = self._rows()
        keys = self._keyboard()
        if keys is None or (quit_if_one_screen and len(self.lines) <= rows):
            self.process.stdout.write(data)
            return
        try:
            settings = self.process.ioctl(keys, "termios")
        except SysError:
            settings = None
        try:
            if isinstance(settings, Termios):
                # Keys come one by one and are not shown.
                raw = replace(settings, lflag=settings.lflag & ~(ICANON | ECHO))
                self.process.ioctl(keys, "set_termios", raw)
            self._loop(keys, stops_at_end)
        finally:
            if isinstance(settings, Termios):
                self.process.ioctl(keys, "set_termios", settings)
            if keys > 2:
                self.process.close(keys)

    def _rows(self) -> int:
        try:
            size = self.process.ioctl(1, "winsize")
        except SysError:
            return 23
        rows = size[0] if isinstance(size, tuple) and size else 24
        return max(1, int(rows or 24) - 1)

    def _keyboard(self) -> int | None:
        try:
            return self.process.open("/dev/tty", O_RDONLY)
        except SysError:
            return 2 if self.process.isatty(2) else None

    def _loop(self, keys: int, stops_at_end: bool) -> None:
        self._page(self._rows())
        while True:
            rows = self._rows()
            at_end = self.top + rows >= len(self.lines)
            if at_end and stops_at_end:
                return
            self._write(b"\x1b[7m" + self._prompt(at_end) + b"\x1b[0m")
            command = self._command(keys)
            self._write(b"\r\x1b[K")
            if command in ("", "q", "Q", ":q", "ZZ"):
                return
            self._move(command, rows)

    def _prompt(self, at_end: bool) -> bytes:
        return b"(END)" if at_end else fsencode(self.title or ":")

    def _move(self, command: str, rows: int) -> None:
        last = max(0, len(self.lines) - rows)
        before = self.top
        match command:
            case " " | "f" | "z":
                self.top = min(last, self.top + rows)
            case "b" | "w":
                self.top = max(0, self.top - rows)
            case "\n" | "\r" | "j" | "e":
                self.top = min(last, self.top + 1)
            case "k" | "y":
                self.top = max(0, self.top - 1)
            case "d":
                self.top = min(last, self.top + rows // 2)
            case "u":
                self.top = max(0, self.top - rows // 2)
            case "g" | "<":
                self.top = 0
            case "G" | ">":
                self.top = last
            case _ if command.startswith("/") or command == "n":
                self._search(command[1:] if command != "n" else "")
            case _:
                return
        step = self.top - before
        if 0 < step < rows:
            self._write(b"".join(line + b"\n" for line in self.lines[before + rows : self.top + rows]))
        elif step:
            self._page(rows)

    def _page(self, rows: int) -> None:
        self._write(b"".join(line + b"\n" for line in self.lines[self.top : self.top + rows]))

    def _search(self, pattern: str) -> None:
        self.pattern = pattern or self.pattern
        try:
            regex = compile(fsencode(self.pattern), syntax="ere")
        except RegexError:
            return
        for index in range(self.top + 1, len(self.lines)):
            self.process.budget.charge()
            if regex.test(self.lines[index]):
                self.top = index
                return

    def _command(self, keys: int) -> str:
        """One key; a search or a colon command goes on to the end of its line."""
        key = fsdecode(self.process.read(keys, 1))
        if key in ("/", ":"):
            while (char := fsdecode(self.process.read(keys, 1))) not in ("", "\n", "\r"):
                key += char
        return key

    def _write(self, data: bytes) -> None:
        self.process.stdout.write(data)
        self.process.stdout.flush()
