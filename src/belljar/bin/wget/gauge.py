"""How wget shows a download: rows of dots in a log, a bar on a terminal, and its ways to write speeds."""

from __future__ import annotations

from collections.abc import Callable

DOT = 1 << 10
ROW = 50
CLUSTER = 10
_UNITS = ("B", "K", "M", "G", "T")


def _scaled(rate: float) -> tuple[float, str]:
    power = 0
    while rate >= 1024 and power < len(_UNITS) - 1:
        rate /= 1024
        power += 1
    return rate, _UNITS[power]


def _digits(number: float) -> str:
    return f"{number:.0f}" if number >= 99.95 else f"{number:.1f}" if number >= 9.995 else f"{number:.2f}"


def short_rate(size: int, seconds: float) -> str:
    """914K"""
    number, unit = _scaled(size / max(seconds, 1e-6))
    return _digits(number) + (unit if unit != "B" else " ")


def long_rate(size: int, seconds: float) -> str:
    """914 KB/s"""
    number, unit = _scaled(size / max(seconds, 1e-6))
    return f"{_digits(number)} {unit if unit == 'B' else unit + 'B'}/s"


def short_size(size: int) -> str:
    """98K, as after a length"""
    number, unit = _scaled(size)
    return f"{number:.1f}{unit}" if number < 10 else f"{number:.0f}{unit}"


def duration(seconds: float) -> str:
    """Two figures are enough."""
    if seconds < 0.0005:
        return "0"
    return f"{seconds:.2g}" if seconds < 9.95 else f"{seconds:.0f}"


class Dots:
    """A dot for each kilobyte, fifty to a line."""

    def __init__(self, write: Callable[[str], None], total: int | None, start: int) -> None:
        self._write = write
        self._total = total
        self._size = 0
        self._dots = 0
        self._start = start
        self._row_since = 0.0
        self._row_size = 0
        write("\n     0K")
        if start:
            write("\n     0K")

    def moved(self, size: int, seconds: float) -> None:
        self._size += size
        self._row_size += size
        while self._size // DOT > self._dots:
            if self._dots % CLUSTER == 0:
                self._write(" ")
            self._write(".")
            self._dots += 1
            if self._dots % ROW == 0 and self._size > self._dots * DOT:
                self._write(self._stats(seconds, self._dots * DOT) + self._left(seconds) + f"\n{self._dots:6d}K")
                self._row_since, self._row_size = seconds, 0

    def finish(self, seconds: float) -> None:
        blank = ROW - self._dots % ROW if self._dots % ROW or not self._dots else 0
        inside = self._dots % ROW
        width = 55 - (inside + (inside + CLUSTER - 1) // CLUSTER) if blank else 0
        self._write(" " * width + self._stats(seconds, self._size) + f"={duration(seconds)}s\n\n")

    def _stats(self, seconds: float, size: int) -> str:
        percent = f"{min(100, (size + self._start) * 100 // self._total):3d}%" if self._total else "    "
        return f"{percent} {short_rate(self._row_size, seconds - self._row_since):>5}"

    def _left(self, seconds: float) -> str:
        if not self._total:
            return ""
        rate = self._size / max(seconds, 1e-6)
        return f" {max(0, self._total - self._size - self._start) / max(rate, 1.0):.0f}s"


class Bar:
    """One line, drawn over and over."""

    EVERY = 0.2

    def __init__(self, write: Callable[[str], None], name: str, total: int | None, start: int) -> None:
        self._write = write
        self._name = name[:19]
        self._total = total
        self._start = self._size = start
        self._drawn = 0.0

    def moved(self, size: int, seconds: float) -> None:
        self._size += size
        if seconds - self._drawn >= self.EVERY:
            self._drawn = seconds
            self._draw(seconds, "")

    def finish(self, seconds: float) -> None:
        self._draw(seconds, f"in {duration(seconds)}s")
        self._write("\n")

    def _draw(self, seconds: float, tail: str) -> None:
        room = 19
        if self._total:
            share = min(1.0, self._size / self._total)
            filled = int(share * room)
            bar = f"{int(share * 100):3d}%[{'=' * max(0, filled - 1)}{'>' if filled else ''}{' ' * (room - filled)}]"
        else:
            bar = f"    [ {'<=>':<{room - 2}}]"
        rate = long_rate(self._size - self._start, seconds).replace(" ", "") if seconds > 0.05 else "--.-KB/s"
        self._write(f"\r{self._name:<19} {bar} {short_size(self._size):>7} {rate:>9}    {tail:<12}")
