"""A terminal's line discipline: from keys typed to lines read, with editing, echo and signals.

It does no I/O: output to echo collects in `echoed`, signals to send in `signals`.
"""

from __future__ import annotations

import re
from collections import deque
from typing import Final

from belljar.abi import termios as t
from belljar.abi.signals import Signal
from belljar.abi.termios import Termios

LINE_MAX: Final = 4095
INPUT_MAX: Final = 4096
"""Writers to the master wait while this much is unread."""
ECHO_MAX: Final = 1 << 16
"""Echo beyond this is dropped: a few keys (^R) can ask for a lot."""

_CONTROL: Final = re.compile(rb"[\x00-\x08\x0a-\x1f\x7f]")
_CONTROLS: Final = bytes([*range(32), 127])
_CONTINUATION: Final = bytes(range(0x80, 0xC0))
_WORD: Final = frozenset(b"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_") | frozenset(
    range(128, 256)
)


class Discipline:
    """The settings of one terminal, the line being typed, and what is ready to be read."""

    def __init__(self) -> None:
        self.termios = Termios()
        self.line = bytearray()
        self.ready: deque[bytes] = deque()
        """Finished lines (b"" for an end of file); without ICANON, whatever came."""
        self.ready_bytes = 0
        self.stopped = False
        """Stopped by ^S: programs' writes wait."""
        self.echoed = bytearray()
        self.signals: list[int] = []
        self.flush_output = False
        self.column = 0
        self._line_column = 0
        self._literal = False
        self._special = re.compile(b"")
        self.set_termios(self.termios)

    # Settings.

    def set_termios(self, termios: Termios) -> None:
        was_canonical = self.canonical
        self.termios = termios
        if was_canonical != self.canonical:
            # What was typed so far can be read at once, whichever way the change goes.
            rest = b"".join([*self.ready, bytes(self.line)])
            self.line.clear()
            self.ready = deque([rest] if rest else [])
            self.ready_bytes = len(rest)
            self._literal = False
        if not termios.iflag & t.IXON:
            self.stopped = False
        specials = set(self._actions())
        if termios.iflag & (t.IGNCR | t.ICRNL):
            specials.add(13)
        if termios.iflag & t.INLCR:
            specials.add(10)
        self._special = (
            re.compile(b"[" + re.escape(bytes(sorted(specials))) + b"]") if specials else re.compile(b"(?!)")
        )

    @property
    def canonical(self) -> bool:
        return bool(self.termios.lflag & t.ICANON)

    def _actions(self) -> dict[int, str]:
        """The action of each special character under the current flags; of two on one character the first here wins."""
        termios = self.termios
        named: list[tuple[int, str]] = []
        if termios.iflag & t.IXON:
            named += [(t.VSTART, "start"), (t.VSTOP, "stop")]
        if termios.lflag & t.ISIG:
            named += [(t.VINTR, "interrupt"), (t.VQUIT, "quit"), (t.VSUSP, "suspend")]
        if termios.lflag & t.ICANON:
            named += [(t.VERASE, "erase"), (t.VKILL, "kill")]
            if termios.lflag & t.IEXTEN:
                named += [(t.VWERASE, "erase_word"), (t.VLNEXT, "literal")]
                if termios.lflag & t.ECHO:
                    named.append((t.VREPRINT, "reprint"))
            named += [(t.VEOF, "end"), (t.VEOL, "end_line")]
            if termios.lflag & t.IEXTEN:
                named.append((t.VEOL2, "end_line"))
        actions: dict[int, str] = {}
        for index, action in named:
            if termios.cc[index]:
                actions.setdefault(termios.cc[index], action)
        if termios.lflag & t.ICANON:
            actions[10] = "newline"
        return actions

    # Typing.

    @property
    def full(self) -> bool:
        # Each piece counts as one more, or ends of file (^D) would pile up for free.
        return self.ready_bytes + len(self.ready) >= INPUT_MAX

    def receive(self, data: bytes) -> None:
        """Process input from the terminal."""
        termios = self.termios
        if termios.iflag & t.ISTRIP:
            data = data.translate(bytes(value & 0x7F for value in range(256)))
        if termios.iflag & t.IUCLC and termios.lflag & t.IEXTEN:
            data = data.lower()
        if self.stopped and data and termios.iflag & t.IXANY:
            self.stopped = False
        actions = self._actions()
        position = 0
        while position < len(data):
            if self._literal:
                self._literal = False
                self._ordinary(data[position : position + 1])
                position += 1
                continue
            found = self._special.search(data, position)
            end = found.start() if found is not None else len(data)
            if end > position:
                self._ordinary(data[position:end])
            if found is not None:
                self._act(data[end], actions)
                end += 1
            position = end

    def _act(self, key: int, actions: dict[int, str]) -> None:
        action = actions.get(key) if key not in (10, 13) else None
        if action is None:
            if key == 13:
                if self.termios.iflag & t.IGNCR:
                    return
                if self.termios.iflag & t.ICRNL:
                    key = 10
            elif key == 10 and self.termios.iflag & t.INLCR:
                key = 13
            action = actions.get(key, "ordinary")
        key_bytes = bytes([key])
        match action:
            case "start":
                self.stopped = False
            case "stop":
                self.stopped = True
            case "interrupt":
                self._signal(Signal.INT, key_bytes)
            case "quit":
                self._signal(Signal.QUIT, key_bytes)
            case "suspend":
                self._signal(Signal.TSTP, key_bytes)
            case "erase":
                self._erase(key_bytes, word=False)
            case "erase_word":
                self._erase(key_bytes, word=True)
            case "kill":
                self._kill(key_bytes)
            case "literal":
                self._literal = True
                if self.termios.lflag & t.ECHO and self.termios.lflag & t.ECHOCTL:
                    self._emit(b"^\b")
            case "reprint":
                self._echo(key_bytes)
                self._emit(b"\n")
                self._line_column = self.column
                self._echo(bytes(self.line))
            case "newline":
                if self.termios.lflag & (t.ECHO | t.ECHONL):
                    self._emit(b"\n")
                self._finish(b"\n")
            case "end":
                self._finish(b"")
            case "end_line":
                self._echo(key_bytes)
                self._finish(key_bytes)
            case _:
                self._ordinary(key_bytes, shown=b"\n" if key == 10 else None)

    def _ordinary(self, data: bytes, shown: bytes | None = None) -> None:
        if not self.canonical:
            self.ready.append(data)
            self.ready_bytes += len(data)
            if shown is None:
                self._echo(data)
            elif self.termios.lflag & t.ECHO:
                self._emit(shown)
            return
        room = LINE_MAX - len(self.line)
        if len(data) > room:
            data = data[:room]
            if self.termios.iflag & t.IMAXBEL:
                self.echoed += b"\a"
        if not self.line:
            self._line_column = self.column
        self.line += data
        self._echo(data)

    def _finish(self, ending: bytes) -> None:
        self.ready.append(bytes(self.line) + ending)
        self.ready_bytes += len(self.line) + len(ending)
        self.line.clear()

    def _signal(self, number: int, key: bytes) -> None:
        if not self.termios.lflag & t.NOFLSH:
            self.flush_input()
            self.echoed.clear()
            self.flush_output = True
        self._echo(key)
        self.stopped = False
        self.signals.append(number)

    def flush_input(self) -> None:
        self.line.clear()
        self.ready.clear()
        self.ready_bytes = 0
        self._literal = False

    # Erasing.

    def _erase(self, key: bytes, *, word: bool) -> None:
        start = self._word_start() if word else self._character_start()
        flags = self.termios.lflag
        if word or flags & t.ECHOE:
            self._erase_echo(start)
        elif start < len(self.line):
            self._echo(key)
        del self.line[start:]

    def _character_start(self) -> int:
        start = max(0, len(self.line) - 1)
        if self._utf8:
            while start > 0 and self.line[start] in _CONTINUATION:
                start -= 1
        return start

    def _word_start(self) -> int:
        """The start of the last word, which includes what follows it."""
        start, line = len(self.line), self.line
        while start > 0 and line[start - 1] not in _WORD:
            start -= 1
        while start > 0 and line[start - 1] in _WORD:
            start -= 1
        return start

    def _erase_echo(self, start: int) -> None:
        """Erase the echo of the line from `start` on: each character by backspaces, tabs by their width."""
        if not self.termios.lflag & t.ECHO:
            return
        rest = bytes(self.line[start:])
        while True:
            rest, tab, last = rest.rpartition(b"\t")
            self._emit(b"\b \b" * advance(0, self._shown(last), self._utf8))
            if not tab:
                return
            before = bytes(self.line[:start]) + rest
            column = advance(self._line_column, self._shown(before), self._utf8)
            self._emit(b"\b" * (8 - column % 8))

    def _kill(self, key: bytes) -> None:
        flags = self.termios.lflag
        if not self.line:
            return
        if not flags & t.ECHO:
            self.line.clear()
        elif flags & t.ECHOK and flags & t.ECHOKE and flags & t.ECHOE:
            self._erase_echo(0)
            self.line.clear()
        else:
            self.line.clear()
            self._echo(key)
            if flags & t.ECHOK:
                self._emit(b"\n")

    # Showing.

    @property
    def _utf8(self) -> bool:
        return bool(self.termios.iflag & t.IUTF8)

    def _shown(self, data: bytes) -> bytes:
        return _visible(data) if self.termios.lflag & t.ECHOCTL else data

    def _echo(self, data: bytes) -> None:
        if self.termios.lflag & t.ECHO:
            self._emit(self._shown(data))

    def _emit(self, data: bytes) -> None:
        if len(self.echoed) < ECHO_MAX:
            self.echoed += self.process_output(data)

    def process_output(self, data: bytes) -> bytes:
        """Apply the output flags (OPOST, ONLCR, ...)."""
        flags = self.termios.oflag
        if flags & t.OPOST:
            if flags & t.OLCUC:
                data = data.upper()
            if flags & t.OCRNL:
                data = data.replace(b"\r", b"\n")
            if flags & t.ONLCR:
                data = data.replace(b"\n", b"\r\n")
            if flags & t.ONLRET:
                self.column = advance(self.column, data.replace(b"\n", b"\r"), self._utf8)
            else:
                self.column = advance(self.column, data, self._utf8)
        return data

    # Reading.

    def take(self, size: int) -> bytes:
        """The next line or bytes, at most `size`; there must be some ready."""
        if self.canonical:
            data = self.ready.popleft()
            if len(data) > size:
                self.ready.appendleft(data[size:])
                data = data[:size]
        else:
            everything = b"".join(self.ready)
            data, rest = everything[:size], everything[size:]
            self.ready = deque([rest] if rest else [])
        self.ready_bytes -= len(data)
        return data


def _visible(data: bytes) -> bytes:
    """Control characters as ^X; only tabs stay."""
    return _CONTROL.sub(lambda found: bytes((94, found[0][0] ^ 0x40)), data)


def advance(column: int, data: bytes, utf8: bool) -> int:
    """The column after some output; a character is one wide."""
    start = data.rfind(b"\r") + 1
    if start:
        data, column = data[start:], 0
    first = True
    for part in data.split(b"\t"):
        if not first:
            column = (column // 8 + 1) * 8
        first = False
        backs = part.count(b"\b")
        plain = part.translate(None, _CONTROLS + _CONTINUATION if utf8 else _CONTROLS)
        column = max(0, column + len(plain) - backs)
    return column
