"""Searching the history while typing (^R and ^S)."""

from __future__ import annotations

from msgspec import Struct, field


class Search(Struct):
    """A search under way: what is looked for, and where in `lines` it was found."""

    lines: list[str]
    place: int
    before: tuple[str, int]
    """The line and cursor to return to if it is given up."""
    backward: bool = True
    query: str = ""
    failed: bool = False
    point: int = 0
    trail: list[tuple[str, int, int, bool]] = field(default_factory=list)
    """The state before each key, for Backspace."""

    @property
    def prompt(self) -> str:
        kind = "reverse-i-search" if self.backward else "i-search"
        return f"({'failed ' if self.failed else ''}{kind})`{self.query}': "

    @property
    def line(self) -> str:
        return self.lines[self.place]

    def type(self, text: str) -> None:
        self._note()
        self.query += text
        self._find(self.place)

    def again(self, *, backward: bool, last: str) -> None:
        """The next match; with nothing typed yet, what was looked for last time."""
        self._note()
        self.backward = backward
        if not self.query:
            self.query = last
            self._find(self.place)
        elif self.query:
            self._find(self.place + (-1 if backward else 1))

    def erase(self) -> None:
        if self.trail:
            self.query, self.place, self.point, self.failed = self.trail.pop()

    def _note(self) -> None:
        self.trail.append((self.query, self.place, self.point, self.failed))

    def _find(self, start: int) -> None:
        if not self.query:
            return
        places = range(start, -1, -1) if self.backward else range(start, len(self.lines))
        for place in places:
            if 0 <= place < len(self.lines):
                found = self.lines[place].rfind(self.query)
                if found >= 0:
                    self.place, self.point, self.failed = place, found, False
                    return
        self.failed = True
