"""The line being edited: its text, where the cursor is, what was killed, and how to undo."""

from __future__ import annotations

from collections.abc import Callable

_UNDO_MAX = 500
_RING_MAX = 60


class KillRing:
    """Killed text, for yanking; one for all lines of a shell."""

    def __init__(self) -> None:
        self.texts: list[str] = []
        self.joins = False
        """Whether the next kill is appended to the last: they follow each other."""

    def push(self, text: str, *, backward: bool) -> None:
        if not text:
            return
        if self.joins and self.texts:
            last = self.texts[-1]
            self.texts[-1] = text + last if backward else last + text
        else:
            self.texts.append(text)
            del self.texts[:-_RING_MAX]
        self.joins = True


class Buffer:
    """Text with a cursor (`point`, an index between characters) and Emacs' operations on it."""

    def __init__(self, ring: KillRing, text: str = "") -> None:
        self.ring = ring
        self.text = text
        self.point = len(text)
        self.mark = 0
        self._undo: list[tuple[str, int]] = []

    def remember(self) -> None:
        """Save the line for `undo`."""
        if not self._undo or self._undo[-1][0] != self.text:
            self._undo.append((self.text, self.point))
            del self._undo[:-_UNDO_MAX]

    def undo(self) -> bool:
        while self._undo:
            text, point = self._undo.pop()
            if text != self.text:
                self.text, self.point = text, point
                return True
        return False

    def forget(self) -> None:
        """Drop the undo history."""
        self._undo.clear()

    def set(self, text: str, point: int | None = None) -> None:
        self.text = text
        self.point = len(text) if point is None else point

    def insert(self, text: str) -> None:
        self.text = self.text[: self.point] + text + self.text[self.point :]
        self.point += len(text)

    def overwrite(self, text: str) -> None:
        self.text = self.text[: self.point] + text + self.text[self.point + len(text) :]
        self.point += len(text)

    def delete(self, start: int, end: int) -> str:
        cut = self.text[start:end]
        self.text = self.text[:start] + self.text[end:]
        if self.point > start:
            self.point = max(start, self.point - len(cut))
        return cut

    def kill(self, start: int, end: int, *, backward: bool = False) -> None:
        self.ring.push(self.delete(start, end), backward=backward)

    # Places.

    def word_end(self, start: int | None = None) -> int:
        """After the next word of letters and digits."""
        place, text = self.point if start is None else start, self.text
        while place < len(text) and not text[place].isalnum():
            place += 1
        while place < len(text) and text[place].isalnum():
            place += 1
        return place

    def word_start(self, end: int | None = None) -> int:
        place, text = self.point if end is None else end, self.text
        while place > 0 and not text[place - 1].isalnum():
            place -= 1
        while place > 0 and text[place - 1].isalnum():
            place -= 1
        return place

    def field_start(self, separators: str = " \t\n") -> int:
        """The start of what ^W kills: a word between blanks."""
        place, text = self.point, self.text
        while place > 0 and text[place - 1] in separators:
            place -= 1
        while place > 0 and text[place - 1] not in separators:
            place -= 1
        return place

    def vi_word_start(self) -> int:
        """The start of what vi's ^W kills: a word, or the blanks and punctuation before the cursor."""
        text, point = self.text, self.point

        def bounds(at: int) -> bool:
            return at >= len(text) or not (text[at].isalnum() or ord(text[at]) > 127)

        if point == len(text):
            while point and text[point - 1] in " \t\n":
                point -= 1
        if point and not bounds(point) and bounds(point - 1):
            point -= 1
        between = point < len(text) and bounds(point)
        while point and bounds(point - 1) is between:
            point -= 1
        return point

    def previous(self) -> int:
        """One character back, with the marks combined with it."""
        from belljar.libc.width import character_width

        place = self.point - 1
        while place > 0 and character_width(self.text[place]) == 0:
            place -= 1
        return max(place, 0)

    def next(self) -> int:
        from belljar.libc.width import character_width

        place = self.point + 1
        while place < len(self.text) and character_width(self.text[place]) == 0:
            place += 1
        return min(place, len(self.text))

    # Changes.

    def transpose_characters(self) -> bool:
        if self.point == 0 or len(self.text) < 2:
            return False
        at = self.point if self.point < len(self.text) else self.point - 1
        self.text = self.text[: at - 1] + self.text[at] + self.text[at - 1] + self.text[at + 1 :]
        self.point = at + 1
        return True

    def transpose_words(self) -> bool:
        end = self.word_end()
        start = self.word_start(end)
        before = self.word_start(start)
        before_end = self.word_end(before)
        if before_end > start or before == start:
            return False
        text = self.text
        self.text = text[:before] + text[start:end] + text[before_end:start] + text[before:before_end] + text[end:]
        self.point = end
        return True

    def change_word(self, change: Callable[[str], str]) -> None:
        """Upper, lower or capital letters up to the end of the word."""
        end = self.word_end()
        self.text = self.text[: self.point] + change(self.text[self.point : end]) + self.text[end:]
        self.point = end
