"""sleep - delay for a specified amount of time

Usage: sleep NUMBER[SUFFIX]...

SUFFIX is s for seconds (the default), m for minutes, h for hours or d for days. NUMBER need not be an integer; with
several arguments, sleep for the sum of them.
"""

from belljar.abi.dataclass import dataclass
from belljar.bin._kit import UsageError, utility
from belljar.bin._kit.quoting import quote
from belljar.kernel.process import Process

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


@dataclass(frozen=True, slots=True)
class Options:
    pass


@utility("sleep", Options)
def main(process: Process, options: Options, operands: list[str]) -> int:
    if not operands:
        raise UsageError("missing operand")
    total = 0.0
    wrong: list[str] = []
    for text in operands:
        seconds = parse_interval(text)
        if seconds is None:
            wrong.append(f"invalid time interval {quote(text, process.env)}")
            continue
        total += seconds
    if wrong:
        raise UsageError(f"\n{process.called}: ".join(wrong))
    process.sleep(total)
    return 0


def parse_interval(text: str) -> float | None:
    """Seconds of `1.5m`, `inf` or `10`; None if it is no time interval."""
    number, unit = (text[:-1], _UNITS[text[-1]]) if text[-1:] in _UNITS else (text, 1)
    try:
        seconds = float.fromhex(number) if number[:2].lower() == "0x" else float(number)
    except ValueError:
        return None
    return seconds * unit if seconds >= 0 and "_" not in number else None
