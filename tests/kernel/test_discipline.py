"""The line discipline beside a real Linux terminal: the same keys give the same echo and the same lines."""

import os
import select
import termios as host
import time
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from belljar.abi import termios as t
from belljar.abi.dataclass import replace
from belljar.abi.termios import Termios
from belljar.kernel.discipline import LINE_MAX, Discipline, advance

COOKED = Termios()


def without(flags: int) -> Termios:
    return replace(COOKED, lflag=COOKED.lflag & ~flags)


def with_input(on: int = 0, off: int = 0) -> Termios:
    return replace(COOKED, iflag=COOKED.iflag & ~off | on)


SETTINGS = {
    "cooked": COOKED,
    "no echo": without(t.ECHO),
    "echo newline": replace(COOKED, lflag=COOKED.lflag & ~t.ECHO | t.ECHONL),
    "no ECHOE": without(t.ECHOE),
    "no ECHOK": without(t.ECHOK),
    "no ECHOKE": without(t.ECHOKE),
    "no ECHOCTL": without(t.ECHOCTL),
    "no IEXTEN": without(t.IEXTEN),
    "no ISIG": without(t.ISIG),
    "NOFLSH": replace(COOKED, lflag=COOKED.lflag | t.NOFLSH),
    "no OPOST": replace(COOKED, oflag=0),
    "OCRNL": replace(COOKED, oflag=t.OPOST | t.OCRNL),
    "no ICRNL": with_input(off=t.ICRNL),
    "IGNCR": with_input(t.IGNCR),
    "INLCR": with_input(t.INLCR, t.ICRNL),
    "ISTRIP": with_input(t.ISTRIP),
    "no IUTF8": with_input(off=t.IUTF8),
    "no IXON": with_input(off=t.IXON),
    "end of line #": replace(COOKED, cc=(*t.DEFAULT_CC[: t.VEOL], ord("#"), *t.DEFAULT_CC[t.VEOL + 1 :])),
    "raw with echo": without(t.ICANON | t.ISIG),
    "raw": replace(COOKED, iflag=0, lflag=0, oflag=0),
}

KEYS = [
    b"hello\r",
    b"hello\nworld\r",
    b"helxx\x7f\x7flo\r",
    b"\x7f\x7fa\x7f\x7fb\r",
    b"one two  three\x17\x17x\r",
    b"a-b_c.d\x17\x17\r",
    b"gone\x15kept\r",
    b"\x15\r",
    b"ab\x04cd\x04\x04",
    b"\x04",
    b"caf\xc3\xa9\x7f\x7fx\r",
    b"\xe2\x82\xac\xf0\x9f\x98\x80\x7f\x7f\r",
    b"a\tb\tc\x7f\x7f\x7f\x7fz\r",
    b"\t\t\x7f\x7f\r",
    b"\x01\x02\x7f\x1b[A\r",
    b"\x16\x03\x16\x04\x16\x7f\x16\x16\r",
    b"abc\x12def\r",
    b"abc\x03def\r",
    b"line\rabc\x1a\x1cdef\r",
    b"a\x00b\x00\r",
    b"x#y#z\r",
    b"\xff\xfe\x80\x7f\r",
    b"tail",
]


class RealTerminal:
    """A pseudo-terminal of the machine we test on."""

    def __init__(self, settings: Termios) -> None:
        self.master, self.slave = os.openpty()
        attributes = host.tcgetattr(self.slave)
        attributes[:4] = [settings.iflag, settings.oflag, settings.cflag, settings.lflag]
        attributes[6] = [bytes([value]) for value in settings.cc] + attributes[6][len(settings.cc) :]
        host.tcsetattr(self.slave, host.TCSANOW, attributes)
        self.canonical = bool(settings.lflag & t.ICANON)
        os.set_blocking(self.slave, False)
        os.set_blocking(self.master, False)

    def play(self, keys: bytes, expected: tuple[bytes, list[bytes]]) -> tuple[bytes, list[bytes]]:
        """What the keys do. The kernel works through them in its own time: wait for what is expected."""
        os.write(self.master, keys)
        echo, lines = b"", list[bytes]()
        until = time.monotonic() + 30
        shown = select.poll()
        shown.register(self.master, select.POLLIN)
        while time.monotonic() < until and (echo, lines) != expected:
            if shown.poll(1):
                echo += os.read(self.master, 65536)
            try:
                data = os.read(self.slave, 5000)
            except BlockingIOError:
                continue
            if self.canonical or not lines:
                lines.append(data)
            else:
                lines[0] += data
        return echo, lines

    def close(self) -> None:
        os.close(self.master)
        os.close(self.slave)


def ours(settings: Termios) -> Discipline:
    discipline = Discipline()
    discipline.set_termios(settings)
    return discipline


def play(discipline: Discipline, keys: bytes) -> tuple[bytes, list[bytes]]:
    discipline.receive(keys)
    echo = bytes(discipline.echoed)
    discipline.echoed.clear()
    lines = []
    while discipline.ready:
        lines.append(discipline.take(5000))
    return echo, lines


@pytest.fixture(name="real")
def _real(request: pytest.FixtureRequest) -> Iterator[RealTerminal]:
    terminal = RealTerminal(request.param)
    yield terminal
    terminal.close()


@pytest.mark.parametrize(
    ("settings", "real"), [(s, s) for s in SETTINGS.values()], ids=list(SETTINGS), indirect=["real"]
)
def test_no_difference_to_linux(settings: Termios, real: RealTerminal) -> None:
    discipline = ours(settings)
    for keys in KEYS:
        expected = play(discipline, keys)
        assert expected == real.play(keys, expected), keys


@settings(max_examples=60)
@given(
    keys=st.lists(
        st.sampled_from(
            [b"a", b"b_", b" ", b"-", b"\t", b"\x01", b"\x7f", b"\x17", b"\x15", b"\x16", b"\xc3\xa9", b"\r"]
        ),
        max_size=12,
    ).map(b"".join)
)
def test_any_editing_is_linux_editing(keys: bytes) -> None:
    real = RealTerminal(COOKED)
    try:
        expected = play(ours(COOKED), keys + b"\x04")
        assert expected == real.play(keys + b"\x04", expected)
    finally:
        real.close()


def test_a_line_has_a_limit_and_its_end_still_counts() -> None:
    discipline = Discipline()
    discipline.set_termios(without(t.ECHO))
    discipline.receive(b"x" * 10_000 + b"\r")
    assert discipline.take(5000) == b"x" * LINE_MAX + b"\n"


def test_a_line_can_be_read_in_bites_that_end_with_it() -> None:
    discipline = Discipline()
    discipline.receive(b"abcdef\rgh\r")
    assert [discipline.take(4) for _ in range(3)] == [b"abcd", b"ef\n", b"gh\n"]


def test_flow_control() -> None:
    discipline = Discipline()
    stopped = []
    for keys in (b"\x13", b"abc", b"\x11"):
        discipline.receive(keys)
        stopped.append(discipline.stopped)
    discipline.set_termios(with_input(t.IXANY))
    for keys in (b"\x13", b"a"):
        discipline.receive(keys)
        stopped.append(discipline.stopped)
    assert stopped == [True, True, False, True, False]


def test_what_was_typed_survives_a_change_to_raw_and_back() -> None:
    discipline = Discipline()
    discipline.receive(b"line\rpart")
    discipline.set_termios(without(t.ICANON))
    assert discipline.take(100) == b"line\npart"
    discipline.receive(b"raw")
    discipline.set_termios(COOKED)
    assert discipline.take(100) == b"raw"


def test_signals_are_decided_not_sent() -> None:
    discipline = Discipline()
    discipline.receive(b"abc\x03\x1c\x1a")
    assert discipline.signals == [2, 3, 20]
    assert discipline.flush_output


@pytest.mark.parametrize(
    ("start", "data", "end"),
    [
        (0, b"abc", 3),
        (5, b"x\r\ny", 1),
        (5, b"\n", 5),
        (5, b"\r", 0),
        (0, b"\t", 8),
        (7, b"\t", 8),
        (3, b"a\tb", 9),
        (2, b"\b\b\b", 0),
    ],
)
def test_columns(start: int, data: bytes, end: int) -> None:
    assert advance(start, data, utf8=True) == end
