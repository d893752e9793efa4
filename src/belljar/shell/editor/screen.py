"""Showing the line on a terminal: only what changed is written, over as many rows as it takes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from belljar.libc.width import character_width, display_width

INVISIBLE: Final = re.compile(
    r"\x1b\[[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1b[()][A-Za-z0-9]|[\x00-\x1f]"
)
"""Escape sequences of a prompt that take no columns: colours, titles."""
_TAB: Final = 8

Place = tuple[int, int]
"""A row, counted from that of the prompt's last line, and a column."""


class Screen:
    """One line being edited. `write` takes the terminal's text."""

    def __init__(self, write: Callable[[str], None], prompt: str, columns: int) -> None:
        self._write = write
        self.columns = max(columns, 2)
        head, newline, self.prompt = prompt.rpartition("\n")
        self.first_prompt = self.prompt
        self._pieces: list[str] = []
        self._end: Place = (0, 0)
        self._cursor: Place = (0, 0)
        if newline:
            write(head + newline)
        self._begin()

    def _begin(self) -> None:
        """Show the prompt where the cursor is."""
        self._pieces = []
        width = display_width(INVISIBLE.sub("", self.prompt))
        self._cursor = self._end = divmod(width, self.columns)
        out = self.prompt
        if width and width % self.columns == 0:
            out += " \r"
        self._write(out)
        self._start = self._cursor

    def show(self, text: str, point: int) -> None:
        """Make the screen show the text, with the cursor before its character `point`."""
        pieces, places = self._lay_out(text)
        old = self._pieces
        same = 0
        limit = min(len(old), len(pieces))
        while same < limit and old[same] == pieces[same]:
            same += 1
        out: list[str] = []
        end = places[-1]
        if same < len(pieces) or same < len(old):
            out.append(self._move(places[same]))
            out.append("".join(pieces[same:]))
            if len(pieces) > same and end[1] == 0 and not pieces[-1].endswith("\n"):
                out.append(" \r")  # the terminal goes to the next row only with the next character
            self._cursor = end
            if same < len(old) and (self._end > end or "\n" in "".join(old[same:]) or self._wide(old[same:])):
                out.append("\x1b[J" if self._end[0] > end[0] else "\x1b[K")
            self._pieces, self._end = pieces, end
        out.append(self._move(places[point]))
        shown = "".join(out)
        if shown:
            self._write(shown)

    @staticmethod
    def _wide(pieces: list[str]) -> bool:
        return not "".join(pieces).isascii()

    def _lay_out(self, text: str) -> tuple[list[str], list[Place]]:
        """The text shown for each character, the place where each begins, and where the last ends."""
        row, column = self._start
        columns = self.columns
        pieces: list[str] = []
        places: list[Place] = []
        for char in text:
            if char == "\n":
                places.append((row, column))
                pieces.append("\x1b[K\n")
                row, column = row + 1, 0
                continue
            piece = char
            if char == "\t":
                piece = " " * (_TAB - column % _TAB)
            elif char < " " or char == "\x7f":
                piece = f"^{chr(ord(char) ^ 0x40)}"
            elif "\udc80" <= char <= "\udcff":
                piece = f"\\{ord(char) - 0xDC00:o}"
            width = character_width(char) if piece is char else len(piece)
            if width == 2 and column == columns - 1:
                row, column = row + 1, 0
            places.append((row, column))
            pieces.append(piece)
            column += width
            row, column = row + column // columns, column % columns
        places.append((row, column))
        return pieces, places

    def _move(self, to: Place) -> str:
        """Escape sequences that move the cursor to a place."""
        row, column = self._cursor
        self._cursor = to
        out = ""
        if to[0] < row:
            out = f"\x1b[{row - to[0]}A"
        elif to[0] > row:
            out = f"\x1b[{to[0] - row}B"
        if to[1] == column:
            return out
        if to[1] == 0:
            return out + "\r"
        if to[1] < column:
            back = column - to[1]
            return out + ("\b" * back if back < 5 else f"\x1b[{back}D")
        return out + f"\x1b[{to[1] - column}C"

    def set_prompt(self, prompt: str) -> None:
        """Another prompt in place of its last line (while searching)."""
        if prompt != self.prompt:
            self._erase()
            self.prompt = prompt
            self._begin()

    def _erase(self) -> None:
        self._write(self._move((0, 0)) + "\r\x1b[J")

    def resize(self, columns: int) -> None:
        """The window changed: a terminal joins and breaks rows by itself, so begin at the line's first row anew."""
        columns = max(columns, 2)
        rows, _ = self._cursor
        before = rows * self.columns + self._cursor[1]
        self._cursor = (before // columns if "\n" not in "".join(self._pieces) else rows, 0)
        self.columns = columns
        self._erase()
        self._begin()

    def leave(self) -> None:
        """Go to a new row after the line."""
        self._write(self._move(self._end) + "\n")

    def print_below(self, text: str) -> None:
        """Show something under the line, and the line again under that."""
        self._write(self._move(self._end) + "\n" + text)
        self._begin()

    def ask(self, question: str) -> None:
        """Put a question under the line; the answer is followed by `clear_state`."""
        self._write(self._move(self._end) + "\n" + question)

    def clear_state(self) -> None:
        """The cursor is at the start of an empty row: the line goes there."""
        self._begin()

    def clear(self) -> None:
        """An empty window with the line at its top."""
        self._write("\x1b[H\x1b[2J")
        self._begin()
