"""curl's progress meter and bar on standard error, redrawn about once a second."""

from __future__ import annotations

from collections.abc import Callable

from belljar.kernel.process import Process

_HEAD = (
    "  % Total    % Received % Xferd  Average Speed   Time    Time     Time  Current\n"
    "                                 Dload  Upload   Total   Spent    Left  Speed\n"
)
EVERY = 1.0


class Meter:
    """Shows how far a transfer is. `write` takes text for standard error."""

    def __init__(self, process: Process, write: Callable[[str], None], *, bar: bool) -> None:
        self._process = process
        self._clock = process.kernel.hub.clock
        self._write = write
        self._bar = bar
        self._shown = False
        self._begin()

    def _begin(self) -> None:
        self._started = self._drawn = self._clock.monotonic()
        self.total: int | None = None
        self.received = 0
        self.to_send: int | None = None
        self.sent = 0
        self._last = (self._started, 0)
        self._speed = 0.0

    def start(self) -> None:
        """A transfer begins (again)."""
        self._begin()
        if self._bar:
            return
        if not self._shown:
            self._write(_HEAD)
            self._shown = True
        self._write("\r" + self._line())

    def moved(self) -> None:
        """Bytes went by; redrawn if it is time to."""
        now = self._clock.monotonic()
        if now - self._drawn >= EVERY:
            before, amount = self._last
            self._speed = (self.received + self.sent - amount) / (now - before)
            self._last = (now, self.received + self.sent)
            self._drawn = now
            self._write("\r" + (self._bar_line() if self._bar else self._line()))

    def finish(self, *, failed_early: bool = False) -> None:
        """The transfer is over. One that got nowhere has its error on the same line."""
        if failed_early and not self._bar:
            return
        elapsed = self._clock.monotonic() - self._started
        if self._speed == 0.0 and elapsed > 0:
            self._speed = (self.received + self.sent) / elapsed
        self._write("\r" + (self._bar_line() if self._bar else self._line()) + "\n")

    def _bar_line(self) -> str:
        width = 79
        columns = self._process.env.get("COLUMNS", "")
        if columns.isascii() and columns.isdecimal() and 20 <= int(columns[:4]) <= 1000:
            width = int(columns[:4]) - 1
        total = self.total or self.received
        share = self.received / total if total else 1.0
        room = width - 7
        return f"{'#' * int(share * room):<{room}} {share * 100:5.1f}%"

    def _line(self) -> str:
        elapsed = self._clock.monotonic() - self._started
        total, received, sent = self.total or 0, self.received, self.sent
        everything = total + (self.to_send or 0)
        down = received / elapsed if elapsed > 0 else 0.0
        up = sent / elapsed if elapsed > 0 else 0.0
        rate = (received + sent) / elapsed if elapsed > 0 else 0.0
        whole = everything / rate if everything and rate else 0.0
        left = max(0.0, whole - elapsed) if whole else 0.0
        return (
            f"{_percent(received + sent, everything):>3} {_size(everything or received + sent):>5}  "
            f"{_percent(received, total):>3} {_size(received):>5}  "
            f"{_percent(sent, self.to_send or 0):>3} {_size(sent):>5}  "
            f"{_size(down):>5}  {_size(up):>5} {_time(whole)} {_time(elapsed)} {_time(left)} {_size(self._speed):>5}"
        )


def _percent(part: int, whole: int) -> int:
    return min(100, part * 100 // whole) if whole > 0 else 0


def _size(count: float) -> str:
    """In at most five characters."""
    number = int(count)
    if number < 100_000:
        return str(number)
    if number < 10_000 * 1024:
        return f"{number // 1024}k"
    for power, letter in ((2, "M"), (3, "G"), (4, "T")):
        scaled = number / 1024**power
        if scaled < 100:
            return f"{scaled:.1f}{letter}"
        if scaled < 10_000:
            return f"{int(scaled)}{letter}"
    return "lots"


def _time(seconds: float) -> str:
    whole = int(seconds)
    if whole <= 0:
        return "--:--:--"
    hours, rest = divmod(whole, 3600)
    if hours <= 99:
        return f"{hours:2d}:{rest // 60:02d}:{rest % 60:02d}"
    days = whole // 86400
    return f"{days:3d}d {hours % 24:02d}h" if days <= 999 else f"{days:7d}d"
