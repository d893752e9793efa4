"""Linux's termios flags and control characters, and the window size."""

from typing import Final, NamedTuple

from belljar.abi.dataclass import dataclass

# Input.
IGNBRK: Final = 0o1
BRKINT: Final = 0o2
IGNPAR: Final = 0o4
PARMRK: Final = 0o10
INPCK: Final = 0o20
ISTRIP: Final = 0o40
INLCR: Final = 0o100
IGNCR: Final = 0o200
ICRNL: Final = 0o400
IUCLC: Final = 0o1000
IXON: Final = 0o2000
IXANY: Final = 0o4000
IXOFF: Final = 0o10000
IMAXBEL: Final = 0o20000
IUTF8: Final = 0o40000

# Output.
OPOST: Final = 0o1
OLCUC: Final = 0o2
ONLCR: Final = 0o4
OCRNL: Final = 0o10
ONOCR: Final = 0o20
ONLRET: Final = 0o40

# Line.
CSIZE: Final = 0o60
CS8: Final = 0o60
CSTOPB: Final = 0o100
CREAD: Final = 0o200
PARENB: Final = 0o400
PARODD: Final = 0o1000
HUPCL: Final = 0o2000
CLOCAL: Final = 0o4000

# Local.
ISIG: Final = 0o1
ICANON: Final = 0o2
ECHO: Final = 0o10
ECHOE: Final = 0o20
ECHOK: Final = 0o40
ECHONL: Final = 0o100
NOFLSH: Final = 0o200
TOSTOP: Final = 0o400
ECHOCTL: Final = 0o1000
ECHOPRT: Final = 0o2000
ECHOKE: Final = 0o4000
IEXTEN: Final = 0o100000

# Which place in `Termios.cc` holds which character; 0 there means none.
VINTR: Final = 0
VQUIT: Final = 1
VERASE: Final = 2
VKILL: Final = 3
VEOF: Final = 4
VTIME: Final = 5
VMIN: Final = 6
VSWTC: Final = 7
VSTART: Final = 8
VSTOP: Final = 9
VSUSP: Final = 10
VEOL: Final = 11
VREPRINT: Final = 12
VDISCARD: Final = 13
VWERASE: Final = 14
VLNEXT: Final = 15
VEOL2: Final = 16
NCCS: Final = 19

DEFAULT_CC: Final = (3, 28, 127, 21, 4, 0, 1, 0, 17, 19, 26, 0, 18, 15, 23, 22, 0, 0, 0)


@dataclass(frozen=True, slots=True)
class Termios:
    """A terminal's settings; change one with `dataclasses.replace`."""

    iflag: int = ICRNL | IXON | IUTF8
    oflag: int = OPOST | ONLCR
    cflag: int = CS8 | CREAD
    lflag: int = ISIG | ICANON | ECHO | ECHOE | ECHOK | ECHOCTL | ECHOKE | IEXTEN
    cc: tuple[int, ...] = DEFAULT_CC
    ispeed: int = 38400
    ospeed: int = 38400

    def __post_init__(self) -> None:
        if len(self.cc) != NCCS or not all(0 <= value <= 255 for value in self.cc):
            raise ValueError(f"Termios.cc must be {NCCS} bytes")


class WinSize(NamedTuple):
    """Size of the window, in characters and (if known) pixels."""

    rows: int = 0
    columns: int = 0
    width: int = 0
    height: int = 0
