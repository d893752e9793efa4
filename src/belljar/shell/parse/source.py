"""The text being parsed: a growing buffer with a position, line numbers and alias text spliced in."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Iterator

from msgspec import Struct

from belljar.shell.parse.errors import ShellSyntaxError, Warned

CHUNK = 1 << 15

#: How much text aliases may add to one command: each may name others twice, so it could double again and again.
MAX_ALIAS_TEXT = 1 << 16

#: Levels of nested commands, substitutions and parentheses before the parser gives up; bash goes on till it crashes.
MAX_NESTING = 150

#: Backslash-newlines.
JOINTS = re.compile(r"(?:\\\n)++")

Reader = Callable[[], "str | None"]


class ParseOptions(Struct):
    """Parser options taken from the shell's options and aliases; may change between two commands.

    `alias` returns the text of an alias, or None; None itself when aliases aren't expanded.
    """

    extglob: bool = False
    posix: bool = False
    comments: bool = True
    alias: Callable[[str], str | None] | None = None


class ActiveAlias(Struct):
    """An alias whose text is being read: it isn't expanded again before `end` is passed."""

    name: str
    end: int
    next_word: bool
    newlines: int


def chunks_of(text: str) -> Iterator[str]:
    """`text` in pieces that end with a newline, so that replacing an alias never copies a whole script."""
    start = 0
    while start < len(text):
        end = text.find("\n", start + CHUNK) + 1 or len(text)
        yield text[start:end]
        start = end


class Source:
    """`text[pos:]` is what comes next. Positions stay valid until the next top-level command begins."""

    def __init__(self, source: str | Reader, options: ParseOptions | None = None, first_line: int = 1) -> None:
        """`source` is the text, or a function giving the next whole line or lines, and None at the end."""
        self.options = options or ParseOptions()
        self.warnings: list[Warned] = []
        if isinstance(source, str):
            pieces = chunks_of(source)
            self._read: Reader = lambda: next(pieces, None)
        else:
            self._read = source
        self.text = ""
        self.pos = 0
        self.depth = 0
        self._ended = False
        self._line_pos = 0
        self._line = first_line
        self.aliases: list[ActiveAlias] = []
        self.alias_text = 0
        self._joints: list[int] = []
        """Positions where a backslash and a newline were removed from the text, in order."""
        self.unaliased: dict[int, str] = {}
        """The lines of this command in which aliases were replaced, as they were before."""

    # --- reading ---

    def fill(self, until: str = "\n") -> bool:
        """Append more text, at least as far as the next `until`; False at the end of input."""
        pieces = []
        while not self._ended:
            piece = self._read()
            if piece is None:
                self._ended = True
            else:
                pieces.append(piece)
                if until in piece:
                    break
        if not pieces:
            return False
        self.text += "".join(pieces)
        return True

    def drop_consumed(self) -> None:
        """Discard the text before `pos`; only when no positions are in use."""
        if self.pos < CHUNK // 2:  # not worth the copy
            return
        cut = self.text.rfind("\n", 0, self.pos) + 1  # an error message may want the current line
        if cut:
            self.line_at(cut)
            self._line_pos -= cut
            self.text = self.text[cut:]
            self.pos -= cut
            for alias in self.aliases:
                alias.end -= cut
            self._joints = [joint - cut for joint in self._joints if joint > cut]

    def join_lines(self, pos: int, pattern: re.Pattern[str] = JOINTS) -> bool:
        """Take the backslash-newlines out of what `pattern` matches at `pos`, reading on while that is all there is.

        False if there are none.
        """
        match = pattern.match(self.text, pos)
        while match is not None and match.end() == len(self.text) and "\\\n" in match.group() and self.fill():
            match = pattern.match(self.text, pos)
        pieces = match.group().split("\\\n") if match is not None else []
        if match is None or len(pieces) < 2:
            return False
        end, removed = match.end(), 2 * (len(pieces) - 1)
        if self._line_pos > pos:
            self.line_at(pos)
        self.text = self.text[:pos] + "".join(pieces) + self.text[end:]
        for alias in self.aliases:
            if alias.end > pos:
                alias.end = max(alias.end - removed, pos)
        joints = []
        for piece in pieces[:-1]:
            pos += len(piece)
            joints.append(pos)
        if self._joints and self._joints[-1] > joints[0]:
            self._joints = sorted([*self._joints, *joints])
        else:
            self._joints += joints
        return True

    def find(self, char: str, start: int) -> int:
        """The position of `char` at or after `start`, reading as far as it takes; -1 if there is none."""
        while True:
            found = self.text.find(char, start)
            if found >= 0:
                return found
            start = len(self.text)
            if not self.fill(char):
                return -1

    # --- where we are ---

    def line_at(self, pos: int) -> int:
        """The line number at `pos`, cheap when asked in rising order."""
        if pos >= self._line_pos:
            self._line += self.text.count("\n", self._line_pos, pos)
        else:
            self._line -= self.text.count("\n", pos, self._line_pos)
        if self._joints:
            self._line += bisect_right(self._joints, pos) - bisect_right(self._joints, self._line_pos)
        self._line_pos = pos
        return self._line

    def line_text(self, pos: int) -> str:
        """The whole line around `pos` as it was read, as bash shows it under an error."""
        if self.unaliased and (before := self.unaliased.get(self.line_at(pos))) is not None:
            return before
        start = self.text.rfind("\n", 0, pos) + 1
        end = self.text.find("\n", pos)
        end = end if end >= 0 else len(self.text)
        place = bisect_right(self._joints, pos)
        if place:
            start = max(start, self._joints[place - 1])
        if place < len(self._joints):
            end = min(end, self._joints[place])
        return self.text[start:end]

    def end_line(self) -> int:
        """The line number bash gives for the end of input: one past a final newline."""
        line = self.line_at(len(self.text))
        return line if self.text.endswith("\n") or not self.text else line + 1

    # --- errors ---

    def unexpected_eof(self, wanted: str, line: int) -> ShellSyntaxError:
        return ShellSyntaxError(line, f"unexpected EOF while looking for matching `{wanted}'", incomplete=True)

    def too_deep(self) -> ShellSyntaxError:
        return ShellSyntaxError(self.line_at(self.pos), "syntax error: too deeply nested")

    def enter(self) -> None:
        """Begin one level of nesting; the caller subtracts it from `depth` when it is done."""
        self.depth += 1
        if self.depth > MAX_NESTING:
            raise self.too_deep()

    # --- aliases ---

    def splice_alias(self, name: str, value: str, start: int, end: int) -> None:
        """Put an alias's `value` in place of the word at start:end and read on from its beginning.

        Its last token ends there, as if a blank followed.
        """
        inserted = value if self.text[end : end + 1] in ("", " ", "\t", "\n") else value + " "
        self.alias_text += len(inserted)
        if self.alias_text > MAX_ALIAS_TEXT:
            raise ShellSyntaxError(self.line_at(start), f"{name}: alias expands without end")
        grown = len(inserted) - (end - start)
        for alias in self.aliases:
            alias.end += grown
        self._joints = [joint + grown if joint >= end else joint for joint in self._joints]
        self.unaliased.setdefault(self.line_at(start), self.line_text(start))
        self.aliases.append(ActiveAlias(name, start + len(inserted), value[-1:] in (" ", "\t"), inserted.count("\n")))
        self.text = self.text[:start] + inserted + self.text[end:]
        self.pos = start

    def alias_for(self, name: str) -> str | None:
        """The text of alias `name`, unless that alias is being read now."""
        if self.options.alias is None or any(alias.name == name for alias in self.aliases):
            return None
        return self.options.alias(name)

    def leave_aliases(self, pos: int) -> bool:
        """Forget the aliases that end before `pos`; True if one ended in a blank: the next word may be an alias too."""
        next_word = False
        while self.aliases and pos >= self.aliases[-1].end:
            alias = self.aliases.pop()
            next_word |= alias.next_word
            if alias.newlines:  # which are on no line of the script
                self.line_at(alias.end)
                self._line -= alias.newlines
        return next_word
