"""Tab stops as expand and unexpand read them: one size, a list, and `/N` or `+N` for what follows the list."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process

_LARGEST = 1 << 62


@dataclass(frozen=True, slots=True)
class TabStops:
    """Tab stops. Past the list there is a stop every `step` columns from `origin`; none if step is 0."""

    stops: tuple[int, ...] = ()
    step: int = 8
    origin: int = 0

    def next(self, column: int) -> int | None:
        """The first stop right of a column; None if there is none."""
        index = bisect_right(self.stops, column)
        if index < len(self.stops):
            return self.stops[index]
        if self.step == 0:
            return None
        base = self.origin
        return column + self.step - (column - base) % self.step if column >= base else base

    @property
    def widest(self) -> int:
        """No tab takes more columns than this."""
        return max((self.step, *self.stops))

    @property
    def uniform(self) -> int:
        """The size if all are alike, else 0."""
        return 0 if self.stops or self.origin else self.step


def parse_tabs(process: Process, texts: Sequence[str]) -> TabStops:
    """The stops that the values of -t mean together. UsageError if one is wrong."""
    stops: list[int] = []
    extend = increment = 0
    for text in texts:
        for item in text.replace(" ", ",").replace("\t", ",").split(","):
            if not item:
                continue
            digits = item.lstrip("/+")
            sign = item[len(item) - len(digits) - 1] if digits != item else ""
            if digits and not (digits.isascii() and digits.isdecimal()):
                bad = digits.lstrip("0123456789")
                if bad[0] in "/+":
                    raise UsageError(
                        f"'{bad[0]}' specifier not at start of number: {quote(bad, process.env)}", hint=False
                    )
                raise UsageError(f"tab size contains invalid character(s): {quote(bad, process.env)}", hint=False)
            if len(digits) > 19 or int(digits or "0") > _LARGEST * 2:
                raise UsageError(f"tab stop is too large {quote(digits, process.env)}", hint=False)
            number = int(digits or "0")
            if (extend and sign != "+") or (increment and sign != "/"):
                raise UsageError(f"'{'/' if extend else '+'}' specifier only allowed with the last value", hint=False)
            if sign:
                if sign == "/":
                    extend = number
                else:
                    increment = number
            else:
                stops.append(number)
    _check(stops, extend, increment)
    if extend and increment:
        raise UsageError("'/' specifier is mutually exclusive with '+'", hint=False)
    if not stops:
        return TabStops((), extend or increment or 8)
    if len(stops) == 1 and not extend and not increment:
        return TabStops((), stops[0])
    if extend:
        return TabStops(tuple(stops), extend)
    if increment:
        return TabStops(tuple(stops), increment, stops[-1])
    return TabStops(tuple(stops), 0)


def _check(stops: list[int], extend: int, increment: int) -> None:
    last = 0
    for stop in stops:
        if stop == 0:
            raise UsageError("tab size cannot be 0", hint=False)
        if stop <= last:
            raise UsageError("tab sizes must be ascending", hint=False)
        last = stop


def digits_as_tabs(args: list[str], option: str = "--tabs") -> list[str]:
    """`-2,4` and `-8` are `-t 2,4` and `-t 8`."""
    done: list[str] = []
    for index, arg in enumerate(args):
        if arg == "--":
            return done + args[index:]
        if len(arg) > 1 and arg[0] == "-" and arg[1].isdecimal():
            done.append(f"{option}={arg[1:]}")
        else:
            done.append(arg)
    return done
