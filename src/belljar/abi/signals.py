"""Signal numbers (Linux), their names and default actions."""

from enum import IntEnum
from typing import Final


class Signal(IntEnum):
    HUP = 1
    INT = 2
    QUIT = 3
    ILL = 4
    TRAP = 5
    ABRT = 6
    BUS = 7
    FPE = 8
    KILL = 9
    USR1 = 10
    SEGV = 11
    USR2 = 12
    PIPE = 13
    ALRM = 14
    TERM = 15
    STKFLT = 16
    CHLD = 17
    CONT = 18
    STOP = 19
    TSTP = 20
    TTIN = 21
    TTOU = 22
    URG = 23
    XCPU = 24
    XFSZ = 25
    VTALRM = 26
    PROF = 27
    WINCH = 28
    IO = 29
    PWR = 30
    SYS = 31


RTMIN: Final = 34
RTMAX: Final = 64

IGNORED_BY_DEFAULT: Final = frozenset({Signal.CHLD, Signal.URG, Signal.WINCH, Signal.CONT})
STOPPING: Final = frozenset({Signal.STOP, Signal.TSTP, Signal.TTIN, Signal.TTOU})
UNCATCHABLE: Final = frozenset({Signal.KILL, Signal.STOP})

DESCRIPTIONS: Final[dict[int, str]] = {
    1: "Hangup", 2: "Interrupt", 3: "Quit", 4: "Illegal instruction", 5: "Trace/breakpoint trap",
    6: "Aborted", 7: "Bus error", 8: "Floating point exception", 9: "Killed", 10: "User defined signal 1",
    11: "Segmentation fault", 12: "User defined signal 2", 13: "Broken pipe", 14: "Alarm clock",
    15: "Terminated", 16: "Stack fault", 17: "Child exited", 18: "Continued", 19: "Stopped (signal)",
    20: "Stopped", 21: "Stopped (tty input)", 22: "Stopped (tty output)", 23: "Urgent I/O condition",
    24: "CPU time limit exceeded", 25: "File size limit exceeded", 26: "Virtual timer expired",
    27: "Profiling timer expired", 28: "Window changed", 29: "I/O possible", 30: "Power failure",
    31: "Bad system call",
}  # fmt: skip


def signal_name(number: int) -> str:
    """`TERM` for 15, `RTMIN+2` for 36; the number itself where there is no name."""
    if 0 < number < 32:
        return Signal(number).name
    if RTMIN <= number <= RTMAX:
        middle = (RTMIN + RTMAX) // 2
        base, offset = ("RTMIN", number - RTMIN) if number <= middle else ("RTMAX", number - RTMAX)
        return f"{base}{offset:+d}" if offset else base
    return str(number)


def parse_signal(text: str) -> int | None:
    """The number of `TERM`, `SIGTERM`, `term` or `15`; None if there is no such signal."""
    if text.isascii() and text.isdigit():
        number = int(text[:18])
        return number if number <= RTMAX else None
    name = text.upper().removeprefix("SIG")
    if name in Signal.__members__:
        return Signal[name].value
    aliases = {"IOT": Signal.ABRT, "CLD": Signal.CHLD, "POLL": Signal.IO, "EXIT": 0}
    if name in aliases:
        return int(aliases[name])
    for base, start in (("RTMIN", RTMIN), ("RTMAX", RTMAX)):
        if name == base:
            return start
        if name.startswith(base) and name[len(base)] in "+-" and name[len(base) + 1 :].isdecimal():
            number = start + int(name[len(base) :][:18])
            return number if RTMIN <= number <= RTMAX else None
    return None
