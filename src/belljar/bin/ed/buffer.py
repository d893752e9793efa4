"""The text that ed and ex work on: lines, the current one, marks, and one step of undo."""

from __future__ import annotations

from belljar.kernel.budget import Budget


class EditError(Exception):
    """A command can't be done; the text is what `h` explains."""


class Line:
    """One line. Lines are objects so that marks and global commands find them wherever they have moved."""

    __slots__ = ("text",)

    def __init__(self, text: bytes) -> None:
        self.text = text


class Buffer:
    """Lines, numbered from 1; 0 is before the first."""

    def __init__(self, budget: Budget) -> None:
        self._budget = budget
        self.lines: list[Line] = []
        self.current = 0
        self.modified = False
        self.marks: dict[str, Line] = {}
        self._before: tuple[list[Line], list[bytes], int] | None = None

    @property
    def last(self) -> int:
        return len(self.lines)

    def text(self, number: int) -> bytes:
        return self.lines[number - 1].text

    def remember(self) -> None:
        """Keep the present state: the next undo goes back to it."""
        self._budget.charge(len(self.lines) // 64 + 1)
        self._before = (list(self.lines), [line.text for line in self.lines], self.current)

    def undo(self) -> None:
        if self._before is None:
            raise EditError("Nothing to undo")
        lines, texts, current = self._before
        self.remember()
        for line, text in zip(lines, texts, strict=True):
            line.text = text
        self.lines, self.current, self.modified = lines, current, True

    def insert(self, after: int, texts: list[bytes]) -> None:
        """Put lines after one; the last of them is then the current one."""
        self._budget.charge(len(texts) + 1)
        self.lines[after:after] = [Line(text) for text in texts]
        self._budget.charge_size(64 * len(self.lines) + sum(map(len, texts)))
        self.current = after + len(texts)
        self.modified = self.modified or bool(texts)

    def delete(self, first: int, last: int) -> list[Line]:
        """Take lines out; the one after them is then the current one."""
        gone = self.lines[first - 1 : last]
        del self.lines[first - 1 : last]
        self.current = min(first, len(self.lines))
        self.modified = True
        return gone

    def move(self, first: int, last: int, after: int) -> None:
        if first <= after < last:
            raise EditError("Invalid destination")
        moved = self.delete(first, last)
        target = after - len(moved) if after >= last else after
        self.lines[target:target] = moved
        self.current = target + len(moved)

    def number_of(self, line: Line) -> int:
        """Return where a line is now; 0 if it is gone."""
        self._budget.charge(len(self.lines) // 64 + 1)
        for number, other in enumerate(self.lines, 1):
            if other is line:
                return number
        return 0

    def marked(self, name: str) -> int:
        line = self.marks.get(name)
        number = self.number_of(line) if line is not None else 0
        if not number:
            raise EditError("Invalid address")
        return number
